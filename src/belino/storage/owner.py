"""Owner's rows: groups that ask for access, with the decision about each, and notices to the owner."""

from datetime import timedelta

from belino.domain.message import Author, ConversationKey
from belino.domain.owner import GroupAccess, GroupState, OwnerNotice
from belino.storage.database import TableRow, Tx, Verbs, from_micros, maybe_from_micros
from belino.storage.row_ids import KEY_COLUMNS, key_of
from belino.storage.text import sanitized

_MICROSECOND = timedelta(microseconds=1)
WAITING_AT_MOST = 10
"""Groups of one account that wait for a decision: strangers may add a bot to any number of groups."""
WAITING_KEPT = timedelta(days=7) // _MICROSECOND
TOLD_EVERY = timedelta(hours=1) // _MICROSECOND
CLOSED_KEPT = timedelta(days=1) // _MICROSECOND


class OwnerVerbs(Verbs):
    """Decisions of the owner about groups, and what the owner is told."""

    async def ask_group(self, channel: ConversationKey, name: str, inviter: Author | None) -> GroupAccess | None:
        """Store the request of a group. None if it is known already, or too many of its account wait."""
        now, (shown, who) = self._now(), sanitized((name, inviter))
        return await self._database.write(lambda tx: ask_group(tx, channel, shown, who, now))

    async def decide_group(
        self, channel: ConversationKey, state: GroupState, *, everyone: bool = False
    ) -> GroupAccess | None:
        """Allow or refuse a group that asked; None if there is none. Of a refused one only its id is kept."""
        now = self._now()
        return await self._database.write(lambda tx: decide_group(tx, channel, state, everyone, now))

    async def forget_group(self, channel: ConversationKey, *, only: GroupState | None = None) -> bool:
        """Forget a decision or a request, so that the group may ask again; False if there is none."""
        return await self._database.write(lambda tx: forget_group(tx, channel, only))

    async def groups(self) -> tuple[GroupAccess, ...]:
        """Every group that asked, oldest first."""
        now = self._now()
        return await self._database.read(lambda tx: groups(tx, now))

    async def notice(self, kind: str, text: str) -> OwnerNotice | None:
        """Store what the owner is to know; None if a notice of this kind was told within the last hour."""
        now, said = self._now(), sanitized(text)
        return await self._database.write(lambda tx: notice(tx, kind, said, now))

    async def close_notice(self, kind: str) -> bool:
        """End a notice: it was read, or its reason has gone; False if there is none."""
        return await self._database.write(lambda tx: close_notice(tx, kind))

    async def owner_notices(self) -> tuple[OwnerNotice, ...]:
        """Every open notice, newest first."""
        return await self._database.read(owner_notices)

    async def direct_channel(self, platform: str, account: str, sender_id: str) -> ConversationKey | None:
        """The direct conversation in which this sender wrote last, if there is one."""
        return await self._database.read(lambda tx: direct_channel(tx, platform, account, sender_id))


def ask_group(tx: Tx, channel: ConversationKey, name: str, inviter: Author | None, now: int) -> GroupAccess | None:
    """Insert a request, unless the group is known or too many wait."""
    tx.execute("DELETE FROM group_access WHERE state = 'waiting' AND asked <= ?", (now - WAITING_KEPT,))
    place = (channel.platform, channel.account)
    waiting = tx.execute(
        "SELECT count(*) FROM group_access WHERE platform = ? AND account = ? AND state = 'waiting'", place
    ).fetchone()
    if int(waiting[0]) >= WAITING_AT_MOST:
        return None
    who = ("", "") if inviter is None else (inviter.id, inviter.name)
    row = tx.execute(
        "INSERT INTO group_access (platform, account, channel, name, state, inviter_id, inviter_name, everyone, asked) "
        "VALUES (?, ?, ?, ?, 'waiting', ?, ?, 0, ?) ON CONFLICT (platform, account, channel) DO NOTHING RETURNING *",
        (*place, channel.channel, name, *who, now),
    ).fetchone()
    return None if row is None else _group(row)


def decide_group(tx: Tx, channel: ConversationKey, state: GroupState, everyone: bool, now: int) -> GroupAccess | None:
    """Store a decision. A refused group leaves neither its name nor who added the agent."""
    keep = state is not GroupState.REFUSED
    row = tx.execute(
        "UPDATE group_access SET state = ?1, everyone = ?2, decided = ?3, "
        "name = CASE WHEN ?4 = 1 THEN name ELSE '' END, "
        "inviter_id = CASE WHEN ?4 = 1 THEN inviter_id ELSE '' END, "
        "inviter_name = CASE WHEN ?4 = 1 THEN inviter_name ELSE '' END "
        "WHERE platform = ?5 AND account = ?6 AND channel = ?7 RETURNING *",
        (state, int(everyone and keep), now, int(keep), channel.platform, channel.account, channel.channel),
    ).fetchone()
    return None if row is None else _group(row)


def forget_group(tx: Tx, channel: ConversationKey, only: GroupState | None) -> bool:
    """Delete a group's row, whatever its state, or only in one state."""
    terms, values = "", list[object]([channel.platform, channel.account, channel.channel])
    if only is not None:
        terms = " AND state = ?"
        values.append(only)
    gone = tx.execute(f"DELETE FROM group_access WHERE platform = ? AND account = ? AND channel = ?{terms}", values)
    return bool(gone.rowcount)


def groups(tx: Tx, now: int) -> tuple[GroupAccess, ...]:
    """Every group, without requests that expired."""
    rows = tx.execute(
        "SELECT * FROM group_access WHERE state <> 'waiting' OR asked > ? ORDER BY asked, channel",
        (now - WAITING_KEPT,),
    )
    return tuple(_group(row) for row in rows)


def notice(tx: Tx, kind: str, text: str, now: int) -> OwnerNotice | None:
    """Open a notice, or renew its text; it is to be told if the last time is an hour ago."""
    tx.execute("DELETE FROM owner_notices WHERE is_open = 0 AND told <= ?", (now - CLOSED_KEPT,))
    before = tx.execute("SELECT told FROM owner_notices WHERE kind = ?", (kind,)).fetchone()
    is_due = before is None or int(before["told"]) <= now - TOLD_EVERY
    tx.execute(
        "INSERT INTO owner_notices (kind, text, at, told, is_open) VALUES (?, ?, ?, ?, 1) "
        "ON CONFLICT (kind) DO UPDATE SET text = excluded.text, at = excluded.at, is_open = 1, "
        "told = CASE WHEN ? = 1 THEN excluded.told ELSE owner_notices.told END",
        (kind, text, now, now, int(is_due)),
    )
    return OwnerNotice(kind=kind, text=text, at=from_micros(now)) if is_due else None


def close_notice(tx: Tx, kind: str) -> bool:
    """Close a notice; its time is kept, so that the same is not told again within the hour."""
    return bool(tx.execute("UPDATE owner_notices SET is_open = 0 WHERE kind = ? AND is_open = 1", (kind,)).rowcount)


def owner_notices(tx: Tx) -> tuple[OwnerNotice, ...]:
    """Every open notice, newest first."""
    rows = tx.execute("SELECT kind, text, at FROM owner_notices WHERE is_open = 1 ORDER BY at DESC, kind")
    return tuple(OwnerNotice(kind=row["kind"], text=row["text"], at=from_micros(row["at"])) for row in rows)


def direct_channel(tx: Tx, platform: str, account: str, sender_id: str) -> ConversationKey | None:
    """The direct conversation with the newest message of a sender."""
    row = tx.execute(
        f"SELECT {KEY_COLUMNS} FROM messages m JOIN conversations v ON v.id = m.conversation "
        "JOIN channels c ON c.id = v.channel WHERE c.platform = ? AND c.account = ? AND c.chat_type = 'direct' "
        "AND m.author_id = ? ORDER BY m.received DESC LIMIT 1",
        (platform, account, sender_id),
    ).fetchone()
    return None if row is None else key_of(row).whole_channel


def _group(row: TableRow) -> GroupAccess:
    return GroupAccess(
        channel=ConversationKey(platform=row["platform"], account=row["account"], channel=row["channel"]),
        state=GroupState(row["state"]),
        name=row["name"],
        inviter_id=row["inviter_id"],
        inviter_name=row["inviter_name"],
        everyone=bool(row["everyone"]),
        asked=from_micros(row["asked"]),
        decided=maybe_from_micros(row["decided"]),
    )
