"""Blob verbs of the store: complete blobs, and uploads in pieces."""

import logging
from collections.abc import AsyncIterator, Callable, Container, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from belino.domain.audit import Audit
from belino.domain.errors import MediaError, MediaNotFound, UploadError
from belino.domain.failpoints import failpoint
from belino.domain.media import Blob
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.reply import OutgoingFile
from belino.domain.stored import GoneCopies, Strays, Tidied, Upload, UploadLimits
from belino.storage import blob_rows, deletions, garbage, uploads
from belino.storage.audit import audit_live
from belino.storage.blobs import Blobs, BlobState
from belino.storage.database import Database, TableRow, Tx, Verbs, to_micros
from belino.storage.disk import PIECE, on_disk
from belino.storage.encryption import Keys
from belino.storage.garbage import tidy
from belino.storage.row_ids import RowIds
from belino.storage.uploads import NOTE_BYTES, UploadFile

TOUCH_EVERY = 60_000_000
"""Microseconds: precision of a blob's last use, which limits how often it is written."""
AT_ONCE = 200
"""Refs or blobs per transaction, so that arrivals need not wait for a month of media."""

log = logging.getLogger(__name__)


class BlobVerbs(Verbs):
    """Blobs and uploads."""

    def __init__(self, database: Database, blobs: Blobs, clock: Clock, keys: Keys) -> None:
        super().__init__(database, blobs, clock, keys)
        self._arriving: set[str] = set()
        self.damaged = 0
        """Damaged blobs found since the store was opened."""
        self.strays = Strays()
        """Files that no row lists, as the last `tidy` found them."""
        self._opened = clock.monotonic()

    async def keep(self, chunks: AsyncIterator[bytes], *, mime: str | Callable[[], str], limit: int) -> Blob:
        """Hash while writing, fsync, rename. MediaTooLarge past `limit`; nothing half-written is ever visible.

        A callable `mime` is called once the bytes are complete.
        """
        kind = ""

        def find_type() -> None:
            nonlocal kind
            kind = mime() if callable(mime) else mime

        async with self._blobs.put(chunks, limit=limit, complete=find_type) as stored:
            sha256, size, now = stored.sha256, stored.size, self._now()
            await self._database.write(lambda tx: blob_rows.insert_blob(tx, sha256, kind, size, now))
            failpoint("blob.row.after")
        return Blob(sha256=sha256, mime=kind, size=size)

    async def blob(self, sha256: str) -> Blob | None:
        """The blob, if it is stored and its checksum is right; a damaged one is deleted, and its refs record it."""
        row = await self._database.read(lambda tx: blob_rows.find_blob(tx, sha256))
        return None if row is None else await self._proven(row)

    async def blob_of_file(self, platform: str, account: str, file_id: str) -> Blob | None:
        """The blob that an account has fetched for the file with this id, if it is stored and sound."""
        row = await self._database.read(lambda tx: blob_rows.find_by_file_id(tx, platform, account, file_id))
        return None if row is None else await self._proven(row)

    @asynccontextmanager
    async def local(self, sha256: str) -> AsyncIterator[Path]:
        """A stored blob as a file to read, at a path that is valid inside the block; its checksum is right.

        A file that was opened inside the block stays readable after it. MediaNotFound if there is no such blob.
        """
        if not await self._is_sound(sha256):
            raise MediaNotFound("the bytes are not here any more")
        async with self._blobs.local(sha256) as path:
            yield path

    @property
    def scratch(self) -> Path:
        """A folder for files in the making; `tidy` deletes what is left in it for an hour."""
        return self._blobs.scratch

    async def purge(self, *, keep: Container[str] = ()) -> tuple[str, ...]:
        """Delete the bytes of withdrawn refs, except those still in use. Returns those deleted.

        Bytes in `keep`, which may change during the call, stay for half a minute; then they are deleted all the same.
        """
        gone_at_all: list[str] = []
        past = ""
        while names := await self._database.read(partial(deletions.forsaken, after=past, limit=AT_ONCE)):
            past = names[-1]
            work = partial(deletions.purge, names=names, keep=keep, arrives=self._blobs.is_settling, now=self._now())
            went = await self._database.write(work)
            failpoint("tidy.row.after")
            await self._let_go(went)
            gone_at_all += went
        return tuple(gone_at_all)

    async def taken_back(self) -> int:
        """How many blobs and copies of withdrawn refs still wait for `purge` and `copies_removed`."""
        return await self._database.read(deletions.count_waiting)

    async def copied(self) -> tuple[GoneCopies, ...]:
        """Withdrawn refs that may still have copies in the folders of sessions."""
        return await self._database.read(partial(deletions.copied, limit=AT_ONCE))

    async def copies_removed(self, ref_ids: Sequence[str]) -> None:
        """Record that no folder holds copies of these refs."""
        await self._database.write(partial(deletions.copies_removed, ref_ids=ref_ids))

    async def forget_gone(self, before: datetime) -> None:
        """Delete the records of refs that were withdrawn before then."""
        await self._database.write(partial(deletions.forget_gone, before=to_micros(before)))

    async def tidy(self, *, dry_run: bool = False, all_strays: bool = False) -> Tidied:
        """Delete what no ref, upload or parcel uses, put strays aside, and detect missing bytes.

        Works in small steps. `dry_run` only counts; `all_strays` puts every stray aside, however many and however soon.
        """
        tidied, self.strays = await tidy(
            self._database,
            self._blobs,
            now=self._clock.now(),
            open_for=timedelta(seconds=self._clock.monotonic() - self._opened),
            dry_run=dry_run,
            all_strays=all_strays,
        )
        return tidied

    async def audit(self) -> Audit:
        """Audit the store."""
        return await audit_live(self._database, self._blobs)

    async def touch(self, sha256: str) -> None:
        """Record a use of these bytes, so that others are evicted before them."""
        now = self._now()
        await self._database.write(lambda tx: garbage.touch(tx, sha256, now, TOUCH_EVERY))

    async def evict(self, limit: int, *, keep: Container[str] = ()) -> int:
        """Delete bytes that can be fetched again, least recently used first, until `limit` are held or none is left.

        Bytes in `keep`, which may change during the call, of a running turn, of an undelivered parcel, and those that
        came with their message and cannot be fetched again stay. Returns how many bytes are held.
        """
        held = await self._database.read(garbage.bytes_held)
        if held <= limit:
            return held
        names = await self._database.read(lambda tx: garbage.least_needed(tx, held - limit, keep))
        now = self._now()
        for first in range(0, len(names), AT_ONCE):
            some = names[first : first + AT_ONCE]
            await self._let_go(await self._database.write(partial(garbage.evict, names=some, keep=keep, now=now)))
        return await self._database.read(garbage.bytes_held)

    async def expire_media(self, before: datetime, *, keep: Container[str] = ()) -> int:
        """End refs stored before then as `expired` and drop their bytes. Returns how many."""
        now, bound, past, count = self._now(), to_micros(before), 0, 0
        while rows := await self._database.read(partial(garbage.aged_refs, before=bound, after=past, limit=AT_ONCE)):
            past = rows[-1]["seq"]
            count += await self._database.write(partial(garbage.expire, rows=rows, keep=keep, now=now))
        return count

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
        if size < 0:
            raise UploadError("an upload cannot be smaller than nothing")
        now = self._now()

        def work(tx: Tx) -> TableRow | MediaError:
            channel = tx.memo(RowIds).channel(tx, conversation).id
            refusal = uploads.over_limits(tx, channel, size, limits, now) if limits is not None else None
            values = {"conversation": str(conversation), "file_name": file_name, "mime": mime, "size": size}
            values |= {"created": now, "announced": sha256, "channel": channel, "resumable": int(resumable)}
            return refusal or uploads.insert_upload(tx, values)

        row = await self._database.write(work)
        if isinstance(row, MediaError):
            raise row
        failpoint("upload.start.after")
        return self._as_upload(row) if size else await self.extend_upload(row["id"], 0, _nothing())

    async def upload(self, upload_id: str) -> Upload | None:
        row = await self._database.read(lambda tx: uploads.find_upload(tx, upload_id))
        return None if row is None else self._as_upload(row)

    async def extend_upload(self, upload_id: str, offset: int, chunks: AsyncIterator[bytes]) -> Upload:
        """Append at exactly `offset`; bytes written before the client disconnected count.

        The last byte completes it: hashed, checked against the announced hash, moved to the blobs. UploadError on a
        wrong offset, a wrong hash or a byte too many.
        """
        if upload_id in self._arriving:
            raise UploadError("another request is writing to this upload; try again")
        self._arriving.add(upload_id)
        try:
            return await self._extend(upload_id, offset, chunks)
        finally:
            self._arriving.discard(upload_id)

    async def drop_upload(self, upload_id: str) -> None:
        now = self._now()
        await self._database.write(lambda tx: uploads.drop_upload(tx, upload_id, now))
        uploads.file_of(self._blobs.scratch, upload_id).unlink(missing_ok=True)

    async def sweep_uploads(self, *, finished_before: datetime, begun_before: datetime) -> int:
        """Delete uploads that no message took: finished before one time, or unfinished and begun before the other.

        Returns how many.
        """
        finished, begun = to_micros(finished_before), to_micros(begun_before)
        old = await self._database.read(
            lambda tx: uploads.old_uploads(tx, finished_before=finished, begun_before=begun)
        )
        idle = [upload_id for upload_id in old if upload_id not in self._arriving]
        for upload_id in idle:
            await self.drop_upload(upload_id)
        return len(idle)

    async def _proven(self, row: TableRow) -> Blob | None:
        """The blob of a row, if its bytes are here and their checksum is right."""
        blob = Blob(sha256=row["sha256"], mime=row["mime"], size=row["size"])
        return blob if await self._is_sound(blob.sha256) else None

    async def _is_sound(self, sha256: str) -> bool:
        """Whether the bytes are here and their checksum is right; damaged ones are recorded as lost."""
        state = await self._blobs.check(sha256)
        if state is BlobState.DAMAGED:
            log.error("the bytes of blob %s are damaged on disk", sha256)
            self.damaged += 1
            await self._let_go(await self._database.write(partial(garbage.lose, names=(sha256,), now=self._now())))
        return state is BlobState.HELD

    async def _let_go(self, names: Sequence[str]) -> None:
        if names:
            await self._blobs.delete(names)
            await self._database.write(partial(deletions.files_deleted, sha256s=names))

    def chunks(self, sha256: str) -> AsyncIterator[bytes]:
        """The bytes of a blob in pieces. MediaNotFound if they are not held."""
        return self._blobs.stream(sha256)

    def opened(self, file: OutgoingFile) -> OutgoingFile:
        """A planned file with its bytes, for a parcel that does not come from the outbox."""
        return replace(file, chunks=self._open_file(file.sha256, file.name, file.mime, file.size).chunks)

    def _open_file(self, sha256: str, name: str, mime: str, size: int) -> OutgoingFile:
        return OutgoingFile(name=name, mime=mime, size=size, sha256=sha256, chunks=lambda: self._blobs.stream(sha256))

    async def _extend(self, upload_id: str, offset: int, chunks: AsyncIterator[bytes]) -> Upload:
        upload = await self.upload(upload_id)
        if upload is None:
            raise UploadError("there is no such upload")
        if offset != upload.offset:
            raise UploadError(f"the upload stands at {upload.offset}, not at {offset}")
        if upload.sha256 is not None:
            return upload
        path = uploads.file_of(self._blobs.scratch, upload_id)
        file = await on_disk(UploadFile, path, offset, upload.size)
        try:
            await self._append(file, upload, chunks)
        finally:
            # Also after an error: the bytes that arrived are on disk and count.
            await on_disk(file.close)
            stands = await self._note(upload_id, file.offset)
        return stands if stands.offset < upload.size else await self._complete(upload)

    async def _append(self, file: UploadFile, upload: Upload, chunks: AsyncIterator[bytes]) -> None:
        noted = file.offset
        waiting = bytearray()
        try:
            async for chunk in chunks:
                if file.offset + len(waiting) + len(chunk) > upload.size:
                    raise UploadError(f"more bytes came than the {upload.size} that were announced")
                waiting += chunk
                if len(waiting) >= PIECE:
                    await self._flush(file, waiting)
                if file.offset - noted >= NOTE_BYTES:
                    await on_disk(file.sync)
                    noted = (await self._note(upload.id, file.offset)).offset
        finally:
            await self._flush(file, waiting)

    async def _flush(self, file: UploadFile, waiting: bytearray) -> None:
        failpoint("upload.append.before")
        await on_disk(file.write, bytes(waiting))
        failpoint("upload.append.after")
        waiting.clear()

    async def _note(self, upload_id: str, offset: int) -> Upload:
        return self._as_upload(await self._database.write(lambda tx: uploads.note_written(tx, upload_id, offset)))

    def _as_upload(self, row: TableRow) -> Upload:
        return uploads.as_upload(row, self._blobs.scratch)

    async def _complete(self, upload: Upload) -> Upload:
        path = uploads.file_of(self._blobs.scratch, upload.id)
        sha256 = await on_disk(uploads.hash_file, path)
        row = await self._database.read(lambda tx: uploads.find_upload(tx, upload.id))
        if row is None:
            raise UploadError("there is no such upload")
        if row["announced"] is not None and row["announced"] != sha256:
            await self.drop_upload(upload.id)
            raise UploadError("the bytes do not have the sha256 that was announced; start the upload again")
        now = self._now()
        failpoint("upload.complete.before")
        async with self._blobs.adopt(path, sha256):
            done = await self._database.write(lambda tx: uploads.complete_upload(tx, row, sha256, now))
        failpoint("upload.complete.after")
        return self._as_upload(done)


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield
