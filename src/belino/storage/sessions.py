"""What agents remember: memory, turns ended, and the manifest of media they were shown."""

import logging
import sqlite3
from dataclasses import asdict

import orjson

from belino.domain.message import ConversationKey
from belino.domain.record import ManifestEntry, Session, TurnEnd
from belino.storage.places import find_place

log = logging.getLogger(__name__)

_NEW = Session(memory=None, turns=0, manifest=())


def session(connection: sqlite3.Connection, conversation: ConversationKey) -> Session:
    """What is remembered of a conversation's agent; nothing, for a new one."""
    place = find_place(connection, conversation)
    row = None if place is None else _row(connection, place.conversation)
    return _NEW if row is None else _session(row)


def end_session_turn(connection: sqlite3.Connection, conversation: int, end: TurnEnd) -> None:
    """Count the turn, keep the memory, and note what was shown."""
    row = _row(connection, conversation)
    before = _NEW if row is None else _session(row)
    kept = () if end.compacted else before.manifest
    shown = {(entry.artifact_id, entry.content_hash): entry for entry in (*kept, *end.shown)}
    connection.execute(
        "INSERT INTO sessions (conversation, memory, turns, manifest) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "memory = excluded.memory, turns = excluded.turns, manifest = excluded.manifest",
        (
            conversation,
            before.memory if end.memory is None else end.memory,
            before.turns + 1,
            orjson.dumps([asdict(entry) for entry in shown.values()]),
        ),
    )


def _row(connection: sqlite3.Connection, conversation: int) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM sessions WHERE conversation = ?", (conversation,)
    ).fetchone()
    return row


def _session(row: sqlite3.Row) -> Session:
    return Session(memory=row["memory"], turns=row["turns"], manifest=_manifest(row))


def _manifest(row: sqlite3.Row) -> tuple[ManifestEntry, ...]:
    """A manifest that cannot be read is no reason to stop answering: the worst is a picture shown twice."""
    try:
        return tuple(_entry(entry) for entry in orjson.loads(row["manifest"]))
    except (ValueError, TypeError, KeyError):
        log.warning("the manifest of conversation %d cannot be read; it starts empty", row["conversation"])
        return ()


def _entry(stored: dict[str, object]) -> ManifestEntry:
    entry = ManifestEntry(**stored)  # type: ignore[arg-type]  # checked field by field below
    texts = (entry.artifact_id, entry.display_name, entry.media_type, entry.content_hash, entry.source_message_id)
    thread, turn = entry.source_thread_id, entry.included_at_turn
    fits = all(isinstance(text, str) for text in texts) and (thread is None or isinstance(thread, str))
    if not fits or not isinstance(turn, int):
        raise TypeError("an entry of the manifest has a value of another type")
    return entry
