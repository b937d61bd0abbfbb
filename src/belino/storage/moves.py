"""Moves: the places that channels moved to. A channel keeps its first id, so that no other row changes."""

from belino.domain.message import ConversationKey
from belino.domain.places import Moved
from belino.storage.database import Tx, Verbs
from belino.storage.row_ids import find_channel, find_moved

Account = tuple[str, str]


class MoveVerbs(Verbs):
    """Channels that go on under another id."""

    async def move_channel(self, account: Account, move: Moved, *, is_listed: bool) -> Moved | None:
        """Store a move of a channel that is known here, or listed; with the first id of one that moved before.

        None if it is stored already, or the channel is of no interest: strangers must not fill the table.
        """
        now = self._now()
        return await self._database.write(lambda tx: move_channel(tx, account, move, is_listed, now))

    async def moved_channels(self) -> tuple[tuple[Account, Moved], ...]:
        """Every move, oldest first."""
        return await self._database.read(moved_channels)


def move_channel(tx: Tx, account: Account, move: Moved, is_listed: bool, now: int) -> Moved | None:
    """Insert a move, once."""
    first = find_moved(tx, *account, move.old) or move.old
    channel = ConversationKey(platform=account[0], account=account[1], channel=first)
    asked = "SELECT 1 FROM group_access WHERE platform = ? AND account = ? AND channel = ?"
    is_known = find_channel(tx, channel) is not None or tx.execute(asked, (*account, first)).fetchone() is not None
    if first == move.new or not (is_known or is_listed):
        return None
    stored = tx.execute(
        "INSERT INTO moved_channels (platform, account, place, channel, at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (platform, account, place) DO NOTHING",
        (*account, move.new, first, now),
    )
    return Moved(old=first, new=move.new) if stored.rowcount else None


def moved_channels(tx: Tx) -> tuple[tuple[Account, Moved], ...]:
    """Every move, oldest first."""
    rows = tx.execute("SELECT platform, account, place, channel FROM moved_channels ORDER BY at, place")
    return tuple(((row["platform"], row["account"]), Moved(old=row["channel"], new=row["place"])) for row in rows)
