"""Summaries: channels, conversations, counts, and the media seen and fetched."""

from collections import defaultdict
from collections.abc import Mapping

from belino.domain.media import MediaKind
from belino.domain.message import ChatType, ConversationKey
from belino.domain.outcome import TurnState
from belino.domain.owner import PLATFORM_EVENT
from belino.domain.reply import ParcelState
from belino.domain.stored import ChannelSummary, ConversationSummary, MediaTally, Unfetched
from belino.storage.database import Tx, maybe_from_micros
from belino.storage.row_ids import CHANNEL_NAME, KEY_COLUMNS, RowIds, call_channel, key_of
from belino.storage.transcript_rows import last_spoken

_SNIPPET_CHARS = 200
_COUNTS = {
    "channels": "SELECT count(*) FROM channels",
    "conversations": "SELECT count(*) FROM conversations",
    "messages": "SELECT count(*) FROM messages",
    "refs": "SELECT count(*) FROM refs",
    "refs_held": "SELECT count(*) FROM refs WHERE outcome = 'held'",
    "blobs": "SELECT count(*) FROM blobs",
    "blob_bytes": "SELECT coalesce(sum(size), 0) FROM blobs",
    "uploads_open": "SELECT count(*) FROM uploads WHERE sha256 IS NULL",
    "denied": f"SELECT coalesce(sum(times), 0) FROM denied WHERE reason <> '{PLATFORM_EVENT}'",
    "noise": f"SELECT coalesce(sum(times), 0) FROM denied WHERE reason = '{PLATFORM_EVENT}'",
}
# Bytes that came with the message were not fetched by choice.
_SEEN = "FROM refs WHERE NOT (sha256 IS NOT NULL AND fetched IS NULL)"


def open_conversation(tx: Tx, key: ConversationKey, name: str, chat_type: ChatType, now: int) -> None:
    """Create a conversation before its first message."""
    place = tx.memo(RowIds).conversation(tx, key, now)
    tx.execute("UPDATE conversations SET name = ? WHERE id = ?", (name, place.id))
    call_channel(tx, place.channel, None if key.thread else name, chat_type)


def channels(tx: Tx) -> tuple[ChannelSummary, ...]:
    """Every channel and its totals, the most recently active first."""
    rows = tx.execute(
        "SELECT * FROM ("
        "SELECT c.id, c.platform, c.account, c.channel AS channel_key, '' AS thread, c.chat_type, "
        f"{CHANNEL_NAME} AS name, "
        "(SELECT count(*) FROM messages m WHERE m.channel = c.id) AS messages, "
        "(SELECT count(*) FROM refs r WHERE r.channel = c.id) AS media, "
        "(SELECT count(*) FROM refs r WHERE r.channel = c.id AND r.outcome = 'held') AS held, "
        "(SELECT received FROM messages m WHERE m.id BETWEEN c.id << 40 AND (c.id + 1 << 40) - 1 "
        "ORDER BY m.id DESC LIMIT 1) AS last FROM channels c) x "
        "WHERE last IS NOT NULL OR name <> '' ORDER BY coalesce(last, -1) DESC, id"
    )
    return tuple(
        ChannelSummary(
            channel=key_of(row),
            name=row["name"] or row["channel_key"],
            chat_type=ChatType(row["chat_type"]),
            messages=row["messages"],
            media=row["media"],
            media_held=row["held"],
            last=maybe_from_micros(row["last"]),
        )
        for row in rows
    )


def has_channel(tx: Tx, channel: ConversationKey) -> bool:
    """Whether a channel is among `channels`: it has a name or a message, be it one of its history."""
    row = tx.execute(
        "SELECT 1 FROM channels c WHERE c.platform = ? AND c.account = ? AND c.channel = ? "
        "AND (c.name <> '' OR EXISTS (SELECT 1 FROM messages m WHERE m.channel = c.id))",
        (channel.platform, channel.account, channel.channel),
    ).fetchone()
    return row is not None


def conversations(tx: Tx, platform: str | None) -> tuple[ConversationSummary, ...]:
    """Every conversation and its last message, the most recently active first."""
    of_platform, values = ("true", ()) if platform is None else ("c.platform = ?", (platform,))
    rows = tx.execute(
        f"SELECT {KEY_COLUMNS}, v.name, v.created, {CHANNEL_NAME} AS channel_name, m.received, m.author_name, m.text, "
        "m.id AS message, "
        "(SELECT count(*) FROM messages x WHERE x.conversation = v.id) AS messages, "
        "(SELECT count(*) FROM turns t WHERE t.conversation = v.id AND t.state IN ('waiting', 'running')) AS waiting "
        "FROM conversations v JOIN channels c ON c.id = v.channel "
        "LEFT JOIN messages m ON m.id = (SELECT x.id FROM messages x WHERE x.conversation = v.id "
        "AND x.outcome <> 'recalled' ORDER BY x.id DESC LIMIT 1) "
        f"WHERE {of_platform} AND (m.id IS NOT NULL OR v.name <> '' OR c.name <> '') "
        "ORDER BY coalesce(m.received, v.created) DESC, v.id",
        values,
    ).fetchall()
    spoken = last_spoken(tx, [row["message"] for row in rows if row["text"] == ""])
    return tuple(
        ConversationSummary(
            conversation=key_of(row),
            name=row["name"] or row["channel_name"] or row["channel_key"],
            messages=row["messages"],
            last=maybe_from_micros(row["received"]),
            last_author=row["author_name"] or "",
            last_text=(row["text"] or spoken.get(row["message"], ""))[:_SNIPPET_CHARS],
            waiting=row["waiting"],
        )
        for row in rows
    )


def counts(tx: Tx) -> Mapping[str, int]:
    """Numbers by name; turns and parcels by their state."""
    found = {name: int(tx.execute(query).fetchone()[0]) for name, query in _COUNTS.items()}
    found |= {f"turns_{state}": 0 for state in TurnState} | {f"parcels_{state}": 0 for state in ParcelState}
    for table in ("turns", "parcels"):
        for row in tx.execute(f"SELECT state, count(*) FROM {table} GROUP BY state"):
            found[f"{table}_{row[0]}"] = int(row[1])
    return found


def tallies(tx: Tx) -> tuple[MediaTally, ...]:
    """Media per channel: all items, those fetched, and the rest by kind, type and picture size."""
    said = dict(tx.execute("SELECT channel, count(*) FROM messages GROUP BY channel").fetchall())
    seen = {
        row[0]: tuple(row[1:])
        for row in tx.execute(
            f"SELECT channel, count(*), count(fetched), coalesce(sum(fetched_bytes), 0) {_SEEN} GROUP BY channel"
        )
    }
    left = _unfetched(tx)
    return tuple(
        MediaTally(
            channel=ConversationKey(platform=row["platform"], account=row["account"], channel=row["channel"]),
            name=row["name"],
            messages=said.get(row["id"], 0),
            seen=seen.get(row["id"], (0, 0, 0))[0],
            fetched=seen.get(row["id"], (0, 0, 0))[1],
            fetched_bytes=seen.get(row["id"], (0, 0, 0))[2],
            unfetched=tuple(left[row["id"]]),
        )
        for row in tx.execute(
            f"SELECT c.id, platform, account, channel, {CHANNEL_NAME} AS name FROM channels c ORDER BY c.id"
        )
    )


def _unfetched(tx: Tx) -> defaultdict[int, list[Unfetched]]:
    found: defaultdict[int, list[Unfetched]] = defaultdict(list)
    rows = tx.execute(
        "SELECT channel, kind, mime, width, height, count(*) AS items, coalesce(sum(size), 0) AS size "
        f"{_SEEN} AND fetched IS NULL GROUP BY channel, kind, mime, width, height"
    )
    for row in rows:
        kind, mime, width, height = MediaKind(row["kind"]), row["mime"], row["width"], row["height"]
        group = Unfetched(kind=kind, mime=mime, width=width, height=height, items=row["items"], size=row["size"])
        found[row["channel"]].append(group)
    return found
