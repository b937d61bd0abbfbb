"""Manifest: which media shown to an agent is still in its context, and what a compaction removed."""

from collections.abc import Iterable
from dataclasses import asdict, replace

from belino.domain.stored import ManifestEntry, RefRecord, Session


def in_context(session: Session) -> tuple[ManifestEntry, ...]:
    """The media that is still in the agent's context: showing it again would cost twice."""
    return tuple(entry for entry in session.manifest if entry.artifact_id not in session.lost)


def suppressed(context: Iterable[ManifestEntry], ref: str, sha256: str | None) -> ManifestEntry | None:
    """The entry of a picture that was already shown: the same ref, or the same bytes under another name."""
    return next((entry for entry in context if ref == entry.artifact_id or sha256 == entry.content_hash), None)


def thread_media(session: Session, thread: str | None) -> tuple[ManifestEntry, ...]:
    """Media of a thread that the agent was shown, or of the channel if there is no thread; each content once.

    Content that is in its context under any ref is listed by that ref.
    """
    there = {entry.content_hash: entry for entry in in_context(session)}
    found: dict[str, ManifestEntry] = {}
    for entry in session.manifest:
        if _is_of(entry, thread):
            found[entry.content_hash] = there.get(entry.content_hash, entry)
    return tuple(found.values())


def if_compacted(session: Session) -> Session:
    """The session as it would be if its memory were compacted now; an agent without memory has nothing to compact."""
    if session.compacted or session.told is None:
        return session
    return replace(session, compacted=True, lost=tuple(entry.artifact_id for entry in session.manifest))


def session_json(session: Session, again: Iterable[RefRecord]) -> dict[str, object]:
    """A session for people and programs: its manifest, what was lost, and what is attached again, newest first."""
    return {
        "turns": session.turns,
        "has_context": session.told is not None and session.context_turn > 0,
        "compacted": session.compacted,
        "manifest": [asdict(entry) for entry in session.manifest],
        "lost": list(session.lost),
        "reattach": [record.ref.id for record in again],
    }


def _is_of(entry: ManifestEntry, thread: str | None) -> bool:
    """Whether an entry belongs to the thread; its root does, although it was posted in the channel."""
    return entry.source_thread_id == thread or (thread is not None and entry.source_message_id == thread)
