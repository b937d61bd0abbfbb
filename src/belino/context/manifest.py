"""Manifest: which media shown to an agent is still in its context, and what a compaction removed."""

from collections.abc import Iterable

from belino.domain.stored import ManifestEntry, Session

RECOVERED_AT_MOST = 8


def in_context(session: Session) -> tuple[ManifestEntry, ...]:
    """The media that is still in the agent's context: showing it again would cost twice."""
    return tuple(entry for entry in session.manifest if entry.artifact_id not in session.lost)


def suppressed(context: Iterable[ManifestEntry], ref: str, sha256: str | None) -> ManifestEntry | None:
    """The entry of a picture that was already shown: the same ref, or the same bytes under another name."""
    return next((entry for entry in context if ref == entry.artifact_id or sha256 == entry.content_hash), None)


def to_recover(session: Session, thread: str | None) -> tuple[ManifestEntry, ...]:
    """Media of a thread that a compaction removed, or of the channel if there is no thread.

    Media of other threads is fetched on request, and media that is in the context again under another ref is skipped.
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
    """Whether an entry belongs to the thread; its root does, although it was posted in the channel."""
    return entry.source_thread_id == thread or (thread is not None and entry.source_message_id == thread)
