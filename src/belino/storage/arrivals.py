"""Arrivals of each account: how far it is read, and how many it has brought, independent of their outcomes.

The accounting check compares these counters with the rows that arrivals left. Each counter changes in the transaction
that stores, replaces or deletes what it counts.
"""

from collections import Counter
from collections.abc import Mapping

from belino.domain.message import ConversationKey
from belino.domain.outcome import CacheSize, MessageOutcome
from belino.storage.database import Tx

OWN = (
    f"(m.outcome = '{MessageOutcome.ANSWERED}' "
    f"OR (m.outcome = '{MessageOutcome.COMMAND}' AND m.author_marks & 2 <> 0)) AND m.turn IS NULL"
)
"""Condition for messages sent by our own agents, for a query that names its messages m."""

_TAKEN = """
INSERT INTO arrivals (platform, account, taken) VALUES (?, ?, ?)
ON CONFLICT (platform, account) DO UPDATE SET taken = arrivals.taken + excluded.taken
"""
# An account's counters are written at the end of its first transaction, so they may not exist yet.
_WITHOUT_ROW = """
INSERT INTO arrivals (platform, account, taken, duplicates, forgotten)
SELECT platform, account, 0, ?1, ?2 FROM channels WHERE id = ?3
ON CONFLICT (platform, account) DO UPDATE SET
    duplicates = arrivals.duplicates + excluded.duplicates, forgotten = arrivals.forgotten + excluded.forgotten
"""
_STORED = f"""
INSERT INTO arrivals (platform, account, taken) SELECT platform, account, sum(times) FROM (
    SELECT platform, account, times FROM denied
    UNION ALL SELECT c.platform, c.account, count(*) FROM changes x JOIN channels c ON c.id = x.channel GROUP BY c.id
    UNION ALL SELECT c.platform, c.account, count(*) FROM messages m JOIN channels c ON c.id = m.channel
        WHERE NOT ({OWN}) GROUP BY c.id
) x GROUP BY platform, account
"""


class ArrivalTally:
    """Arrivals of the current transaction.

    Written once, at its end: a statement for each arrival would cost a twentieth of the intake.
    """

    def __init__(self) -> None:
        self._taken: Counter[tuple[str, str]] = Counter()

    def add(self, conversation: ConversationKey) -> None:
        """Count an arrival, before its access decision."""
        self._taken[conversation.platform, conversation.account] += 1

    def flush(self, tx: Tx) -> None:
        """Write the counts, in the transaction they belong to."""
        for account, times in self._taken.items():
            tx.execute(_TAKEN, (*account, times))
        self._taken.clear()

    def undo(self) -> None:
        """Drop the counts of a transaction that was rolled back."""
        self._taken.clear()

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        return {}


def count_denied(tx: Tx, conversation: ConversationKey, reason: str) -> None:
    """Count a denied arrival; nothing else of it is stored."""
    tx.execute(
        "INSERT INTO denied (platform, account, reason, times) VALUES (?, ?, ?, 1) "
        "ON CONFLICT (platform, account, reason) DO UPDATE SET times = denied.times + 1",
        (conversation.platform, conversation.account, reason),
    )


def count_duplicate(tx: Tx, channel: int) -> None:
    """Count an arrival that left no row, because its message is already stored."""
    tx.execute(_WITHOUT_ROW, (1, 0, channel))


def count_forgotten(tx: Tx, channel: int, times: int) -> None:
    """Count arrivals whose rows are deleted: aged, or replaced by a live copy."""
    tx.execute(_WITHOUT_ROW, (0, times, channel))


def recount(tx: Tx) -> None:
    """Reset the counters to the stored rows, after rows were lost."""
    tx.execute("DELETE FROM arrivals")
    tx.execute(_STORED)


def move_cursor(tx: Tx, platform: str, account: str, cursor: str) -> None:
    """Store the account's read cursor."""
    tx.execute(
        "INSERT INTO cursors (platform, account, cursor) VALUES (?, ?, ?) "
        "ON CONFLICT (platform, account) DO UPDATE SET cursor = excluded.cursor",
        (platform, account, cursor),
    )


def find_cursor(tx: Tx, platform: str, account: str) -> str | None:
    """The account's read cursor."""
    row = tx.execute("SELECT cursor FROM cursors WHERE platform = ? AND account = ?", (platform, account)).fetchone()
    return None if row is None else str(row[0])
