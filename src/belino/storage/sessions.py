"""Sessions of agents: memory, turns ended, read positions, and the manifest of media they were shown."""

import logging
from dataclasses import asdict

import orjson

from belino.domain.message import ConversationKey
from belino.domain.stored import ManifestEntry, ReadPosition, Session, TurnEnd
from belino.storage.database import TableRow, Tx
from belino.storage.row_ids import find_place

log = logging.getLogger(__name__)

_NEW = Session(memory=None, turns=0, manifest=())
MANIFEST_MOST = 1_000
"""Entries kept, the most recently shown: more pictures than any model has in its context."""


def session(tx: Tx, conversation: ConversationKey) -> Session:
    """The session of a conversation; empty for a new one."""
    place = find_place(tx, conversation)
    row = None if place is None else _row(tx, place.conversation)
    return _NEW if row is None else _session(row)


def end_session_turn(tx: Tx, conversation: int, end: TurnEnd) -> None:
    """Count the turn, and store the memory, what was shown and lost, and the read position."""
    row = _row(tx, conversation)
    before = (_NEW if row is None else _session(row)).found_by(end.agent)
    if end.forgot:
        before = before.forgotten()
    manifest = _with(before.manifest, end.shown)
    told = end.told or before.told
    tx.execute(
        "INSERT INTO sessions (conversation, memory, turns, manifest, lost, compacted, told_seq, told_change, "
        "context_turn, agent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (conversation) DO UPDATE SET memory = excluded.memory, turns = excluded.turns, "
        "manifest = excluded.manifest, lost = excluded.lost, compacted = excluded.compacted, "
        "told_seq = excluded.told_seq, told_change = excluded.told_change, context_turn = excluded.context_turn, "
        "agent = excluded.agent",
        (
            conversation,
            before.memory if end.memory is None else end.memory,
            before.turns + 1,
            orjson.dumps([asdict(entry) for entry in manifest]),
            orjson.dumps(_lost(before, end, manifest)),
            int(end.compacted or (before.compacted and end.recovered is None)),
            None if told is None else told.seq,
            None if told is None else told.change,
            before.context_turn if end.context_turn is None else end.context_turn,
            end.agent or before.agent,
        ),
    )


def _with(manifest: tuple[ManifestEntry, ...], shown: tuple[ManifestEntry, ...]) -> tuple[ManifestEntry, ...]:
    """The manifest with the newly shown items, each once, in the order they were last shown."""
    entries = {(entry.artifact_id, entry.content_hash): entry for entry in manifest}
    for entry in shown:
        entries.pop((entry.artifact_id, entry.content_hash), None)
        entries[entry.artifact_id, entry.content_hash] = entry
    return tuple(entries.values())[-MANIFEST_MOST:]


def _lost(before: Session, end: TurnEnd, manifest: tuple[ManifestEntry, ...]) -> list[str]:
    """What is in the manifest and no longer in the agent's context."""
    found = {*(end.recovered or ()), *(entry.artifact_id for entry in end.shown)}
    lost = {*before.lost} - found | {*end.lost}
    return list(dict.fromkeys(entry.artifact_id for entry in manifest if entry.artifact_id in lost))


def _row(tx: Tx, conversation: int) -> TableRow | None:
    row: TableRow | None = tx.execute("SELECT * FROM sessions WHERE conversation = ?", (conversation,)).fetchone()
    return row


def _session(row: TableRow) -> Session:
    told = None if row["told_seq"] is None else ReadPosition(seq=row["told_seq"], change=row["told_change"])
    manifest = _manifest(row)
    return Session(
        memory=row["memory"],
        turns=row["turns"],
        manifest=manifest,
        lost=_lost_refs(row, manifest),
        compacted=bool(row["compacted"]),
        told=told,
        context_turn=row["context_turn"],
        agent=row["agent"],
    )


def _manifest(row: TableRow) -> tuple[ManifestEntry, ...]:
    """The manifest; empty if it cannot be read, because the worst effect is a picture shown twice."""
    try:
        return tuple(_entry(entry) for entry in orjson.loads(row["manifest"]))
    except (ValueError, TypeError, KeyError):
        log.warning("the manifest of conversation %d cannot be read; it starts empty", row["conversation"])
        return ()


def _lost_refs(row: TableRow, manifest: tuple[ManifestEntry, ...]) -> tuple[str, ...]:
    """Refs lost from context; all if unreadable: a picture shown twice costs less than one never seen again."""
    try:
        lost = orjson.loads(row["lost"] or b"[]")
    except ValueError:
        lost = None
    if not isinstance(lost, list) or not all(isinstance(ref, str) for ref in lost):
        log.warning("what the agent of conversation %d lost cannot be read; all counts as lost", row["conversation"])
        return tuple(dict.fromkeys(entry.artifact_id for entry in manifest))
    return tuple(lost)


def _entry(stored: dict[str, object]) -> ManifestEntry:
    entry = ManifestEntry(**stored)  # type: ignore[arg-type]  # checked field by field below
    texts = (entry.artifact_id, entry.display_name, entry.media_type, entry.content_hash, entry.source_message_id)
    thread, turn = entry.source_thread_id, entry.included_at_turn
    fits = all(isinstance(text, str) for text in texts) and (thread is None or isinstance(thread, str))
    if not fits or not isinstance(turn, int):
        raise TypeError("an entry of the manifest has a value of another type")
    return entry
