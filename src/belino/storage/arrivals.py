"""Arrival counters: how many arrivals each account has brought, counted apart from what became of them.

The accounting check compares these counters with the rows that arrivals left. Each counter changes in the transaction
that takes in, replaces or deletes what it counts.
"""

import sqlite3
from collections import Counter

from belino.domain.message import ConversationKey
from belino.domain.outcome import MessageOutcome

OWN = f"m.outcome = '{MessageOutcome.ANSWERED}' AND m.turn IS NULL"
"""What tells a message that an agent of ours sent from one that arrived, for a query that names its messages m."""

_TAKEN = """
INSERT INTO arrivals (platform, account, taken) VALUES (?, ?, ?)
ON CONFLICT (platform, account) DO UPDATE SET taken = taken + excluded.taken
"""
# The account may have no counters yet: those of its first transaction are written at its end.
_WITHOUT_ROW = """
INSERT INTO arrivals (platform, account, taken, duplicates, forgotten)
SELECT platform, account, 0, ?1, ?2 FROM channels WHERE id = ?3
ON CONFLICT (platform, account) DO UPDATE SET duplicates = duplicates + ?1, forgotten = forgotten + ?2
"""
_STORED = f"""
INSERT INTO arrivals (platform, account, taken) SELECT platform, account, sum(times) FROM (
    SELECT platform, account, times FROM denied
    UNION ALL SELECT c.platform, c.account, count(*) FROM changes x JOIN channels c ON c.id = x.channel GROUP BY c.id
    UNION ALL SELECT c.platform, c.account, count(*) FROM messages m JOIN channels c ON c.id = m.channel
        WHERE NOT ({OWN}) GROUP BY c.id
) GROUP BY platform, account
"""  # noqa: S608 - a condition from above


class ArrivalTally:
    """Arrivals of the transaction that is under way: written once, at its end, because a statement for each of them
    would cost a twentieth of the intake."""

    def __init__(self) -> None:
        self._taken: Counter[tuple[str, str]] = Counter()

    def add(self, conversation: ConversationKey) -> None:
        """Count an arrival, before anything is decided about it."""
        self._taken[conversation.platform, conversation.account] += 1

    def write(self, connection: sqlite3.Connection) -> None:
        """Write what was counted, in the transaction it was counted in."""
        for account, times in self._taken.items():
            connection.execute(_TAKEN, (*account, times))
        self._taken.clear()

    def undo(self) -> None:
        """Forget what was counted: its transaction was rolled back."""
        self._taken.clear()


def count_duplicate(connection: sqlite3.Connection, channel: int) -> None:
    """Count an arrival that left no row of its own, because its message is stored already."""
    connection.execute(_WITHOUT_ROW, (1, 0, channel))


def count_forgotten(connection: sqlite3.Connection, channel: int, times: int) -> None:
    """Count arrivals whose rows are deleted: aged, or replaced by a copy heard live."""
    connection.execute(_WITHOUT_ROW, (0, times, channel))


def recount(connection: sqlite3.Connection) -> None:
    """Begin again with what is stored, where rows were lost."""
    connection.execute("DELETE FROM arrivals")
    connection.execute(_STORED)
