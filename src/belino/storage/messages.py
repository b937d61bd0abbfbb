"""Messages: inserted once, updated in place, read back as values with their media and reactions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import orjson

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey, Quote, SpokenText
from belino.domain.outcome import CHOSE_SILENCE, PASSED_ON, MessageOutcome, Standing, TurnState
from belino.domain.reading import SenderLanguage
from belino.domain.stored import StoredMessage
from belino.domain.turn import Usage
from belino.storage.arrivals import count_forgotten
from belino.storage.database import TableRow, Tx, from_micros, maybe_from_micros
from belino.storage.dialect import marks
from belino.storage.encryption import Keys
from belino.storage.refs import FORWARDED, OWN, QUOTED, make_author, refs_of_messages
from belino.storage.row_ids import KEY_COLUMNS, SEQ_BITS, SEQ_MASK, find_channel, find_place, key_of
from belino.storage.short_ids import codes_named, lengthen, short_id
from belino.storage.thread_reports import LATEST
from belino.storage.transcript_rows import spoken_in

_INSERT = """
INSERT INTO messages (id, channel, conversation, kind, platform_id, author_id, author_name, author_marks,
    sent, received, text, standing, outcome, reason, trace, short, turn, reply_to, quote, forward, album,
    root, edited, language, sender_may_command, author_other_names, joined, expires)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (channel, platform_id, kind) DO NOTHING
"""
NAMED_AT_MOST = 20
RECENT_MESSAGES = 50
"""Messages of a conversation among which those of a sender are looked for."""
RECENT_TEXTS = 5

# In the order in which `_message` takes them: finding columns by name costs more than the rest of reading a row.
SELECT = """
SELECT m.id, m.platform_id, m.author_id, m.author_name, m.author_marks, m.sent, m.received, m.text, m.standing,
    m.outcome, m.reason, m.trace, m.reply_to, m.quote, m.forward, m.album, m.edited, m.deleted, m.root,
    m.short, m.short_chars, m.sender_may_command, t.state AS turn_state, t.reason AS turn_reason, m.channel,
    m.conversation
FROM messages m LEFT JOIN turns t ON t.id = m.turn
"""
_ID, _NAME, _AUTHOR, _CHANNEL, _CONVERSATION = 0, 1, slice(2, 5), 24, 25
_STANDINGS = {standing.value: standing for standing in Standing}
_ENDS = {outcome.value: outcome for outcome in MessageOutcome}
OUTCOMES = {
    TurnState.WAITING: MessageOutcome.WAITING,
    TurnState.RUNNING: MessageOutcome.WORKING,
    TurnState.ANSWERED: MessageOutcome.ANSWERED,
    TurnState.FAILED: MessageOutcome.FAILED,
    TurnState.ABORTED: MessageOutcome.ABORTED,
}
_SILENT = f"{CHOSE_SILENCE}: "
_QUOTED = PASSED_ON.replace("'", "''")
SILENT = (
    f"t.state = '{TurnState.ANSWERED}' AND substr(t.reason, 1, {len(_SILENT)}) = '{_SILENT}' "
    f"AND substr(t.reason, {len(_SILENT) + 1}) <> '{_QUOTED}'"
)
"""Condition for turns whose agent chose to send nothing, for a query that names its turns t."""


class MessageRow(NamedTuple):
    """A new message in the order of its columns, passed to SQLite as it is."""

    id: int
    channel: int
    conversation: int
    kind: str
    platform_id: str
    author_id: str
    author_name: str
    author_marks: int
    sent: int
    received: int
    text: str
    standing: str
    outcome: str
    reason: str
    trace: str
    short: int
    turn: int | None = None
    reply_to: str | None = None
    quote: bytes | None = None
    forward: bytes | None = None
    album: str | None = None
    root: str | None = None
    edited: int | None = None
    language: str | None = None
    sender_may_command: int = 0
    author_other_names: str = ""
    """One per line."""
    joined: str = ""
    """Why it joined the turn of an earlier message; empty if it did not."""
    expires: int | None = None


class Inserted(NamedTuple):
    """A message that was inserted."""

    recalled: int = 0
    """The row id of the imported copy that it replaced, for `succeed`; 0 if there was none."""
    is_older: bool = False
    """Whether that copy has later edits: then the message gets the copy's text."""


def insert_message(tx: Tx, row: MessageRow) -> Inserted | None:
    """None if the channel has this platform id of this kind already; an imported copy is replaced."""
    if tx.execute(_INSERT, row).rowcount == 1:
        lengthen(tx, row.channel, row.short)
        return Inserted()
    if row.outcome == MessageOutcome.RECALLED or (recalled := _give_way(tx, row)) is None:
        return None
    is_older = (recalled["edited"] or 0) > (row.edited or 0)
    if is_older:
        row = row._replace(text=recalled["text"], edited=recalled["edited"])
    tx.execute(_INSERT, row)
    lengthen(tx, row.channel, row.short)
    return Inserted(recalled["id"], is_older)


def _give_way(tx: Tx, row: MessageRow) -> TableRow | None:
    """Delete the imported copy of a message that arrives live; None if it had arrived live, or is deleted."""
    recalled: TableRow | None = tx.execute(
        "SELECT id, text, edited FROM messages WHERE channel = ? AND platform_id = ? AND kind = ? AND outcome = ? "
        "AND deleted IS NULL",
        (row.channel, row.platform_id, row.kind, MessageOutcome.RECALLED),
    ).fetchone()
    if recalled is None:
        return None
    tx.execute("DELETE FROM messages WHERE id = ?", (recalled["id"],))
    note_changed(tx, [recalled["id"]])
    count_forgotten(tx, row.channel, 1)
    return recalled


def note_changed(tx: Tx, numbers: Iterable[int]) -> None:
    """Note that the search index is to read these messages again: their text, author or root changed, or they are gone.

    To be called in the transaction that changes them. Arrivals need no note.
    """
    changed = [(number,) for number in numbers]
    tx.many("INSERT INTO search_stale (message) VALUES (?)", changed)
    tx.many("DELETE FROM search_vectors WHERE message = ?", changed)


def note_media_change(tx: Tx, message: int) -> None:
    """The same for a message whose media are about to change, and for those that show the same media."""
    tx.execute(
        "INSERT INTO search_stale (message) SELECT ?1 UNION SELECT o.message FROM message_refs b "
        "JOIN message_refs o ON o.ref = b.ref WHERE b.message = ?1 AND b.role = 'own'",
        (message,),
    )
    tx.execute("DELETE FROM search_vectors WHERE message = ?", (message,))


def quote_row(quote: Quote | None) -> bytes | None:
    """A quote without its media, which have refs of their own."""
    if quote is None:
        return None
    author = quote.author
    return orjson.dumps(
        {
            "author": None if author is None else [author.id, author.name, author.is_bot, author.is_agent],
            "message_id": quote.message_id,
            "text": quote.text,
            "sent": quote.sent,
        }
    )


def history(
    tx: Tx,
    keys: Keys,
    conversation: ConversationKey,
    *,
    before: int | None,
    after: int | None,
    limit: int,
) -> tuple[StoredMessage, ...]:
    """Oldest to newest: the newest (before a seq), or the first after a seq."""
    place = find_place(tx, conversation)
    if place is None:
        return ()
    first = place.channel << SEQ_BITS
    lowest = first + min(max(after or 0, 0), SEQ_MASK)
    highest = first + min(max(SEQ_MASK if before is None else before, 0), SEQ_MASK)
    order = "DESC" if after is None else "ASC"
    rows = tx.execute(
        f"{SELECT} WHERE m.channel = ? AND m.conversation = ? AND m.id > ? AND m.id < ? ORDER BY m.id {order} LIMIT ?",
        (place.channel, place.conversation, lowest, highest, limit),
    ).fetchall()
    return load(tx, keys, rows if after is not None else rows[::-1])


def messages(tx: Tx, keys: Keys, channel: ConversationKey, ids: Sequence[str]) -> tuple[StoredMessage, ...]:
    """Those of these platform ids that this channel has, any thread, oldest first."""
    number = find_channel(tx, channel)
    if number is None or not ids:
        return ()
    rows = tx.execute(
        f"{SELECT} WHERE m.channel = ? AND m.platform_id IN ({marks(ids)}) ORDER BY m.id",
        (number, *ids),
    ).fetchall()
    return load(tx, keys, rows)


def messages_named(
    tx: Tx, keys: Keys, channel: ConversationKey, names: Sequence[str]
) -> Mapping[str, tuple[StoredMessage, ...]]:
    """For each name the messages of this channel whose id it is, or whose short id begins with it, oldest first."""
    number = find_channel(tx, channel)
    meant: dict[str, list[int]] = {}
    for name in names:
        found = tx.execute(
            "SELECT id FROM messages WHERE channel = ?1 AND platform_id = ?2 "
            "UNION SELECT id FROM messages WHERE channel = ?1 AND short BETWEEN ?3 AND ?4 ORDER BY id LIMIT ?5",
            (number, name, *codes_named(name), NAMED_AT_MOST),
        )
        meant[name] = [row["id"] for row in found]
    loaded = by_number(tx, keys, [each for numbers in meant.values() for each in numbers])
    by_seq = {message.seq: message for message in loaded}
    # A message and a note about it, which belino does not support, may have one id.
    return {
        name: tuple({message.id: message for message in (by_seq[each & SEQ_MASK] for each in numbers)}.values())
        for name, numbers in meant.items()
    }


def find_messages(tx: Tx, keys: Keys, name: str) -> tuple[StoredMessage, ...]:
    """Messages by trace, platform id or short id. A trace names its first message."""
    rows = tx.execute(
        f"{SELECT} WHERE m.id IN (SELECT id FROM messages WHERE id = ?1 AND trace = ?2 "
        "UNION SELECT x.id FROM channels k CROSS JOIN messages x WHERE x.channel = k.id AND x.platform_id = ?2 "
        "UNION SELECT x.id FROM channels k CROSS JOIN messages x WHERE x.channel = k.id AND x.short BETWEEN ?3 AND ?4) "
        "ORDER BY m.id LIMIT ?5",
        (_number_of_trace(name), name, *codes_named(name), NAMED_AT_MOST),
    ).fetchall()
    return load(tx, keys, rows)


def by_number(tx: Tx, keys: Keys, numbers: Sequence[int]) -> tuple[StoredMessage, ...]:
    """Messages by row id, oldest first."""
    rows = tx.execute(f"{SELECT} WHERE m.id IN ({marks(numbers)}) ORDER BY m.id", tuple(numbers))
    return load(tx, keys, rows.fetchall())


def sender_of(tx: Tx, channel: ConversationKey, ref_id: str) -> SenderLanguage:
    """What tells the language of who made a ref's item; of who sent it, if its maker said nothing here."""
    row = tx.execute(
        "SELECT r.conversation, r.message, r.author_id, m.author_id AS bearer FROM refs r "
        "LEFT JOIN messages m ON m.id = r.message WHERE r.channel = ? AND r.id = ?",
        (find_channel(tx, channel), ref_id),
    ).fetchone()
    if row is None:
        return SenderLanguage()
    recent = tx.execute(
        "SELECT author_id, text, language FROM messages WHERE conversation = ? AND id <= ? AND deleted IS NULL "
        "ORDER BY id DESC LIMIT ?",
        (row["conversation"], row["message"], RECENT_MESSAGES),
    ).fetchall()
    own = [each for each in recent if each["author_id"] == row["author_id"]]
    own = own or [each for each in recent if each["author_id"] == row["bearer"]]
    texts = [each["text"] for each in own if each["text"].strip()]
    reported = next((each["language"] for each in own if each["language"]), None)
    return SenderLanguage(reported=reported, recent_texts=tuple(texts[:RECENT_TEXTS]))


def trace_of(number: int) -> str:
    """The trace that begins with a message: its row id, so that finding it needs no index."""
    return f"{number:016x}"


def _number_of_trace(name: str) -> int | None:
    try:
        number = int(name, 16) if len(name) == 16 else -1
    except ValueError:
        return None
    return number if 0 <= number < 1 << 63 else None


def load(tx: Tx, keys: Keys, rows: Sequence[TableRow], *, until: int = LATEST) -> tuple[StoredMessage, ...]:
    """Rows of `SELECT` as values, with the reactions up to a time."""
    if not rows:
        return ()
    media = refs_of_messages(tx, keys, [row[_ID] for row in rows])
    voices = {place: own for place, refs in media.items() if (own := _voices(refs))}
    spoken = {**_told_spoken(media), **(spoken_in(tx, voices) if voices else {})}
    reactions = _reactions(tx, rows, until)
    conversations = _conversations(tx, rows)
    authors = {said_by: make_author(*said_by) for said_by in {row[_AUTHOR] for row in rows}}
    return tuple(
        _message(
            row,
            conversations[row[_CONVERSATION]],
            authors[row[_AUTHOR]],
            media,
            spoken,
            reactions.get((row[_CHANNEL], row[_NAME]), ()),
        )
        for row in rows
    )


def _voices(refs: Sequence[MediaRef]) -> list[str]:
    """The hashes of the voice messages among refs, as far as they are stored."""
    return [ref.sha256 for ref in refs if ref.kind is MediaKind.VOICE and ref.sha256 is not None]


def _told_spoken(media: Mapping[tuple[int, str], Sequence[MediaRef]]) -> dict[tuple[int, str], SpokenText]:
    """What the platform itself has heard in voice messages, by message and role."""
    found = {}
    for place, refs in media.items():
        told = [ref for ref in refs if ref.kind is MediaKind.VOICE and ref.transcript]
        if told:
            text = "\n".join(ref.transcript or "" for ref in told)
            found[place] = SpokenText(text=text, partial=any(ref.is_transcript_partial for ref in told))
    return found


def _conversations(tx: Tx, rows: Sequence[TableRow]) -> Mapping[int, ConversationKey]:
    """The conversations of these messages: few, however many messages there are."""
    numbers = {row[_CONVERSATION] for row in rows}
    found = tx.execute(
        f"SELECT v.id, {KEY_COLUMNS} FROM conversations v JOIN channels c ON c.id = v.channel "
        f"WHERE v.id IN ({marks(numbers)})",
        tuple(numbers),
    )
    return {row["id"]: key_of(row) for row in found}


def _reactions(tx: Tx, rows: Sequence[TableRow], until: int) -> Mapping[tuple[int, str], tuple[tuple[str, int], ...]]:
    found: dict[tuple[int, str], tuple[tuple[str, int], ...]] = {}
    for channel in {row[_CHANNEL] for row in rows}:
        ids = [row[_NAME] for row in rows if row[_CHANNEL] == channel]
        counted = tx.execute(
            "SELECT min(at) AS first, emoji, message_id, count(*) AS people FROM reactions "
            f"WHERE channel = ? AND added = 1 AND message_id IN ({marks(ids)}) AND at <= ? GROUP BY message_id, emoji",
            (channel, *ids, until),
        )
        for row in sorted(counted, key=lambda row: (row["first"], row["emoji"])):
            place = (channel, row["message_id"])
            found[place] = (*found.get(place, ()), (row["emoji"], row["people"]))
    return found


def _message(
    row: TableRow,
    conversation: ConversationKey,
    author: Author,
    media: Mapping[tuple[int, str], tuple[MediaRef, ...]],
    spoken: Mapping[tuple[int, str], SpokenText],
    reactions: tuple[tuple[str, int], ...],
) -> StoredMessage:
    (number, name, _, _, _, sent, received, text, standing, outcome, reason, trace, reply_to, quote, forward, album,
     edited, deleted, root, short, chars, may_command, state, turn_reason, _, _) = row  # fmt: skip
    return StoredMessage(
        seq=number & SEQ_MASK,
        conversation=conversation,
        id=name,
        author=author,
        sent=from_micros(sent),
        received=from_micros(received),
        text=text,
        media=media.get((number, OWN), ()) if media else (),
        standing=_STANDINGS[standing],
        outcome=_ENDS[outcome] if state is None else _outcome(standing, TurnState(state), turn_reason),
        reason=turn_reason or reason,
        trace=trace,
        reply_to=reply_to,
        quote=None if quote is None else _quote(quote, media.get((number, QUOTED), ()), spoken.get((number, QUOTED))),
        forward=None
        if forward is None
        else _quote(forward, media.get((number, FORWARDED), ()), spoken.get((number, FORWARDED))),
        album=album,
        edited=maybe_from_micros(edited),
        deleted=maybe_from_micros(deleted),
        reactions=reactions,
        root=root,
        spoken=spoken.get((number, OWN)) if spoken else None,
        short_id="" if short is None else short_id(short, chars),
        sender_may_command=bool(may_command),
    )


def _outcome(standing: str, state: TurnState, reason: str) -> MessageOutcome:
    """How a message with a turn ended; one that was heard and does not address the agent is observed."""
    heard_only = state is TurnState.ABORTED and standing == Standing.OBSERVED
    if state is TurnState.ANSWERED and reason.startswith(_SILENT) and reason != _SILENT + PASSED_ON:
        return MessageOutcome.SILENT
    return MessageOutcome.OBSERVED if heard_only else OUTCOMES[state]


def _quote(stored: bytes, media: tuple[MediaRef, ...], spoken: SpokenText | None) -> Quote:
    quote = orjson.loads(stored)
    author = quote["author"]
    return Quote(
        author=None if author is None else Author(id=author[0], name=author[1], is_bot=author[2], is_agent=author[3]),
        message_id=quote["message_id"],
        text=quote["text"],
        sent=None if quote["sent"] is None else datetime.fromisoformat(quote["sent"]),
        media=media,
        spoken=spoken,
    )


def spent(tx: Tx, channel: ConversationKey, message_id: str) -> Usage | None:
    """What the turn cost that ended with this message of our agent."""
    number = find_channel(tx, channel)
    turn = tx.execute(
        "SELECT t.input_tokens, t.output_tokens, t.cost, t.model FROM parcels p JOIN turns t ON t.id = p.turn "
        "WHERE p.channel = ? AND p.message_id = ? AND p.id = (SELECT max(l.id) FROM parcels l WHERE l.turn = t.id)",
        (number, message_id),
    ).fetchone()
    if turn is None or not (turn["input_tokens"] or turn["output_tokens"]):
        return None
    return Usage(
        input_tokens=turn["input_tokens"],
        output_tokens=turn["output_tokens"],
        cost_usd=turn["cost"],
        model=turn["model"],
    )
