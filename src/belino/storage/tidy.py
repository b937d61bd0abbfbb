"""What lies around: bytes nothing uses, files no row knows, rows whose file is gone, and files nobody finishes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from belino.domain.record import Tidied
from belino.storage import blobs, room, uploads
from belino.storage.blobs import BlobFolder, on_disk
from belino.storage.stamps import to_micros
from belino.storage.writer import Readers, Writer

FRESH = timedelta(hours=1)
"""A blob younger than this may be waiting for its first use, and a temporary file may still be written to."""
AT_ONCE = 200
"""Blobs that go in one transaction, so that arrivals need not wait for all of them."""
PREFIXES = tuple(f"{number:02x}" for number in range(256))


async def tidy(readers: Readers, writer: Writer, folder: BlobFolder, *, now: datetime, dry_run: bool) -> Tidied:
    """Find all of it, a little at a time, and let it go unless it is only to be counted."""
    before = now - FRESH
    found = await _unused(readers, writer, folder, kept_before=to_micros(before), dry_run=dry_run)
    for prefix in PREFIXES:
        lying = await on_disk(folder.lying, prefix)
        known = await readers.read(partial(blobs.known, prefix=prefix))
        strays = [name for name in lying if name not in known]
        if strays:
            found = await _strays(writer, folder, strays, lying, found, dry_run=dry_run)
        lost = [name for name in known if name not in lying]
        if lost:
            found = await _lost(writer, folder, lost, found, now=to_micros(now), dry_run=dry_run)
    return await _unfinished(readers, folder, before, found, dry_run=dry_run)


async def _unused(readers: Readers, writer: Writer, folder: BlobFolder, *, kept_before: int, dry_run: bool) -> Tidied:
    found, past = Tidied(), ""
    while page := await readers.read(partial(blobs.unused_blobs, kept_before=kept_before, after=past, limit=AT_ONCE)):
        names, past = [name for name, _ in page], page[-1][0]
        if not dry_run:
            names = list(await writer.write(partial(blobs.forget_unused, names=names, kept_before=kept_before)))
            await folder.let_go(names)
        found = replace(
            found,
            unused=found.unused + len(names),
            freed=found.freed + sum(size for name, size in page if name in names),
        )
    return found


async def _strays(
    writer: Writer, folder: BlobFolder, names: Sequence[str], sizes: dict[str, int], found: Tidied, *, dry_run: bool
) -> Tidied:
    # Asked of the writer, though it changes nothing: a row that comes after its answer is told after it, too.
    gone = await writer.write(partial(blobs.without_row, names=names))
    gone = tuple(name for name in gone if not folder.is_settling(name))
    if not dry_run:
        await folder.let_go(gone)
    freed = sum(sizes[name] for name in gone)
    return replace(found, strays=found.strays + len(gone), freed=found.freed + freed)


async def _lost(
    writer: Writer, folder: BlobFolder, names: Sequence[str], found: Tidied, *, now: int, dry_run: bool
) -> Tidied:
    """A file is there before its row and goes after it, so that a row without a file is none of our doing."""
    missing = [name for name in names if not folder.place(name).exists()]
    if not dry_run and missing:
        missing = list(await writer.write(partial(room.lose, names=missing, now=now)))
    return replace(found, lost=found.lost + len(missing))


async def _unfinished(
    readers: Readers, folder: BlobFolder, before: datetime, found: Tidied, *, dry_run: bool
) -> Tidied:
    arriving = await readers.read(uploads.unfinished_uploads)
    keep = {uploads.file_of(folder.temporary, upload_id).name for upload_id in arriving}
    stale = await on_disk(lambda: folder.unfinished(before.timestamp(), keep=keep))
    if not dry_run:
        await on_disk(folder.discard, stale)
    return replace(found, unfinished=len(stale), freed=found.freed + sum(stale.values()))
