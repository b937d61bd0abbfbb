"""Earlier files of a conversation: what it received, and since when a file counts as new."""

from datetime import datetime

import orjson

from belino.domain.message import ConversationKey
from belino.domain.outcome import TurnState
from belino.domain.stored import EarlierFiles
from belino.storage.database import Tx, from_micros
from belino.storage.refs import author_of
from belino.storage.row_ids import find_place

PARCELS_AT_MOST = 2_000
REFS_AT_MOST = 1_000
"""The newest parcels and media that are compared with a reply's files."""


def earlier_files(tx: Tx, conversation: ConversationKey) -> EarlierFiles:
    """The files that a conversation has before a reply."""
    place = find_place(tx, conversation)
    if place is None:
        return EarlierFiles()
    refs = tx.execute(
        "SELECT conversation, file_name, sha256, author_id, author_name, author_marks FROM refs WHERE channel = ? "
        "ORDER BY seq DESC LIMIT ?",
        (place.channel, REFS_AT_MOST),
    ).fetchall()
    seen = {row["sha256"] for row in refs if row["conversation"] == place.conversation and row["sha256"]}
    # A thread's first message is in the channel, so names count in all of it.
    names = {row["file_name"] for row in refs if row["file_name"] and not author_of(row).is_agent}
    return EarlierFiles(
        since=_last_answer(tx, place.conversation),
        hashes=frozenset(seen | _sent(tx, place.conversation)),
        names=frozenset(names),
    )


def _sent(tx: Tx, conversation: int) -> set[str]:
    """Hashes of what parcels carry, and of the files it was made from; parcels that were given up do not count."""
    rows = tx.execute(
        "SELECT files FROM parcels WHERE conversation = ? AND files IS NOT NULL AND state <> 'dead' "
        "ORDER BY id DESC LIMIT ?",
        (conversation, PARCELS_AT_MOST),
    )
    files = [file for row in rows for file in orjson.loads(row["files"])]
    sources = {str(file[-1]["source"]) for file in files if isinstance(file[-1], dict) and "source" in file[-1]}
    return sources | {str(sha256) for sha256, *_ in files}


def _last_answer(tx: Tx, conversation: int) -> datetime | None:
    """When the last answered turn ended; None before the first.

    If it is forgotten, or the clock was set back since, the beginning of the running turn counts.
    """
    newest = "SELECT started, ended FROM turns WHERE state = ? AND conversation = ? ORDER BY id DESC LIMIT 1"
    answered = tx.execute(newest, (TurnState.ANSWERED, conversation)).fetchone()
    running = tx.execute(newest, (TurnState.RUNNING, conversation)).fetchone()
    (aged,) = tx.execute("SELECT aged_turns FROM conversations WHERE id = ?", (conversation,)).fetchone()
    times = [] if answered is None else [answered["ended"]]
    if running is not None and (times or aged):
        times.append(running["started"])
    return from_micros(min(times)) if times else None
