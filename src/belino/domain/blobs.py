"""Blobs port: complete bytes by their hash, and uploads in progress."""

from collections.abc import AsyncIterator, Callable, Container, Sequence
from datetime import datetime
from typing import Protocol

from belino.domain.media import Blob
from belino.domain.message import ConversationKey
from belino.domain.reply import OutgoingFile
from belino.domain.stored import GoneCopies, Tidied, Upload, UploadLimits


class Blobs(Protocol):
    """Bytes by sha256."""

    async def keep(self, chunks: AsyncIterator[bytes], *, mime: str | Callable[[], str], limit: int) -> Blob:
        """Hash while writing, fsync, rename. MediaTooLarge past `limit`; nothing half-written is ever visible.

        A callable `mime` is called once the bytes are complete.
        """
        ...

    async def blob(self, sha256: str) -> Blob | None:
        """The blob, if it is stored and its checksum is right; a damaged one is deleted, and its refs record it."""
        ...

    async def purge(self, *, keep: Container[str] = ()) -> tuple[str, ...]:
        """Delete the bytes of withdrawn refs, except those still in use. Returns those deleted.

        Bytes in `keep`, which may change during the call, stay for half a minute; then they are deleted all the same.
        """
        ...

    async def taken_back(self) -> int:
        """How many blobs and copies of withdrawn refs still wait for `purge` and `copies_removed`."""
        ...

    async def copied(self) -> tuple[GoneCopies, ...]:
        """Withdrawn refs that may still have copies in the folders of sessions."""
        ...

    async def copies_removed(self, ref_ids: Sequence[str]) -> None:
        """Record that no folder holds copies of these refs."""
        ...

    async def forget_gone(self, before: datetime) -> None:
        """Delete the records of refs that were withdrawn before then."""
        ...

    async def tidy(self, *, dry_run: bool = False, all_strays: bool = False) -> Tidied:
        """Delete what no ref, upload or parcel uses, put strays aside, and detect missing bytes.

        Works in small steps. `dry_run` only counts; `all_strays` puts every stray aside, however many and however soon.
        """
        ...

    async def touch(self, sha256: str) -> None:
        """Record a use of these bytes, so that others are evicted before them."""
        ...

    async def evict(self, limit: int, *, keep: Container[str] = ()) -> int:
        """Delete bytes that can be fetched again, least recently used first, until `limit` are held or none is left.

        Bytes in `keep`, which may change during the call, of a running turn, of an undelivered parcel, and those that
        came with their message and cannot be fetched again stay. Returns how many bytes are held.
        """
        ...

    async def expire_media(self, before: datetime, *, keep: Container[str] = ()) -> int:
        """End refs stored before then as `expired` and drop their bytes. Returns how many."""
        ...

    def outgoing(self, sha256: str, *, name: str, mime: str) -> OutgoingFile:
        """A held blob as a file to send."""
        ...


class Uploads(Protocol):
    """Bytes a client sends piece by piece."""

    async def start_upload(
        self,
        conversation: ConversationKey,
        *,
        file_name: str,
        mime: str,
        size: int,
        sha256: str | None,
        limits: UploadLimits | None = None,
        resumable: bool = True,
    ) -> Upload:
        """Announce bytes. OverDailyLimit or UploadsFull where `limits` has no room left for all of them.

        An upload that is not `resumable`, because no client knows its id, does not outlive the process.
        """
        ...

    async def upload(self, upload_id: str) -> Upload | None: ...

    async def extend_upload(self, upload_id: str, offset: int, chunks: AsyncIterator[bytes]) -> Upload:
        """Append at exactly `offset`; bytes written before the client disconnected count.

        The last byte completes it: hashed, checked against the announced hash, moved to the blobs. UploadError on a
        wrong offset, a wrong hash or a byte too many.
        """
        ...

    async def drop_upload(self, upload_id: str) -> None: ...

    async def sweep_uploads(self, *, finished_before: datetime, begun_before: datetime) -> int:
        """Delete uploads that no message took: finished before one time, or unfinished and begun before the other.

        Returns how many.
        """
        ...
