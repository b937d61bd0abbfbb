"""Manifest: which media shown to an agent is still in its context, and what a compaction removed."""

from collections.abc import Iterable

from belino.domain.stored import ManifestEntry, Session

RECOVERED_AT_MOST = 8


def in_context(session: Session) -> tuple[ManifestEntry, ...]:
    """What the agent still has before it: showing it again would be paid for twice."""
    return tuple(entry for entry in session.manifest if entry.artifact_id not in session.lost)


def suppressed(context: Iterable[ManifestEntry], ref: str, sha256: str | None) -> ManifestEntry | None:
    """The entry that makes a picture known: the same ref, or the same bytes under whatever name they come again."""
    return next((entry for entry in context if ref == entry.artifact_id or sha256 == entry.content_hash), None)


def to_recover(session: Session, thread: str | None) -> tuple[ManifestEntry, ...]:
    """What a compaction took of a thread's media, or of the channel's where there is no thread.

    Media of other threads are left to be asked for, and so is what is in the context again under another ref.
    """
    if not session.compacted:
        return ()
    there = {entry.content_hash for entry in in_context(session)}
    wanted: dict[str, ManifestEntry] = {}
    for entry in session.manifest:
        if entry.artifact_id in session.lost and entry.content_hash not in there and _is_of(entry, thread):
            wanted[entry.content_hash] = entry
    return tuple(wanted.values())


def _is_of(entry: ManifestEntry, thread: str | None) -> bool:
    """A thread's root was said in the channel itself, and belongs to the thread all the same."""
    return entry.source_thread_id == thread or (thread is not None and entry.source_message_id == thread)
