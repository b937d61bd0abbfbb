"""Blobs port: whole bytes by their hash, and uploads that a client still sends in pieces."""

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

        A `mime` that is asked for is asked once the bytes are whole.
        """
        ...

    async def blob(self, sha256: str) -> Blob | None:
        """The bytes, if they are here and still what they were; damaged ones go, and their refs say so."""
        ...

    async def purge(self, *, keep: Container[str] = ()) -> tuple[str, ...]:
        """Delete the bytes of what was taken back, but for those that somebody else uses. Returns those that went.

        Bytes in `keep`, which may change meanwhile, have half a minute; then they go all the same.
        """
        ...

    async def taken_back(self) -> int:
        """How many bytes and copies of what was taken back are still here for `purge` and `copies_removed`."""
        ...

    async def copied(self) -> tuple[GoneCopies, ...]:
        """Refs that were taken back and may still have copies in the folders of sessions."""
        ...

    async def copies_removed(self, ref_ids: Sequence[str]) -> None:
        """No folder holds copies of these refs any more."""
        ...

    async def forget_gone(self, before: datetime) -> None:
        """Nobody has to be told any more of what was taken back before then."""
        ...

    async def tidy(self, *, dry_run: bool = False, all_strays: bool = False) -> Tidied:
        """Delete what no ref, upload or parcel uses any more, put strays aside, and notice which bytes are missing.

        Little at a time. `dry_run` only counts; `all_strays` puts every stray aside, however many and however soon.
        """
        ...

    async def touch(self, sha256: str) -> None:
        """These bytes were asked for: others go before them."""
        ...

    async def evict(self, limit: int, *, keep: Container[str] = ()) -> int:
        """Delete bytes that can be fetched again, those used longest ago first, until `limit` are held or none is left.

        Bytes in `keep`, which may change meanwhile, of a running turn, of an undelivered parcel, and those that came
        with their message and cannot be had again stay. Returns how many bytes are held.
        """
        ...

    async def expire_media(self, before: datetime, *, keep: Container[str] = ()) -> int:
        """Refs stored before then end as `expired` and let go of their bytes. Returns how many did."""
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
        """Append at exactly `offset`; what was written before the client went away counts.

        The last byte completes it: hashed, checked against the announced hash, moved to the blobs. UploadError on a
        wrong offset, a wrong hash or a byte too many.
        """
        ...

    async def drop_upload(self, upload_id: str) -> None: ...

    async def sweep_uploads(self, *, finished_before: datetime, begun_before: datetime) -> int:
        """Forget uploads that no message took: those finished before one time, and those unfinished and begun before
        the other. Returns how many."""
        ...
