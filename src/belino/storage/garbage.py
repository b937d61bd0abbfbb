"""Garbage collection of blobs: unused ones, files without a row, rows without a file, unfinished files."""

import stat
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from belino.domain.stored import Strays, Tidied
from belino.storage import blob_rows, deletions, eviction, uploads
from belino.storage.blobs import PREFIXES, Blobs
from belino.storage.database import Database, Tx, to_micros
from belino.storage.disk import on_disk
from belino.storage.strays import StraySweep

FRESH = timedelta(hours=1)
"""A blob younger than this may be waiting for its first use, and a temporary file may still be written to."""
AT_ONCE = 200
"""Blobs per transaction, so that arrivals need not wait for all of them."""


async def tidy(
    database: Database,
    blobs: Blobs,
    *,
    now: datetime,
    open_for: timedelta,
    dry_run: bool,
    all_strays: bool = False,
) -> tuple[Tidied, Strays]:
    """Find all of it, in small steps, and delete it unless this is a dry run; strays are put aside."""
    before = now - FRESH
    found = await _unused(database, blobs, kept_before=to_micros(before), now=to_micros(now), dry_run=dry_run)
    sizes, files, lost = dict[str, int](), 0, list[str]()
    for prefix in PREFIXES:
        lying = await blobs.list(prefix)
        known = await database.read(partial(blob_rows.known, prefix=prefix))
        files += len(lying)
        sizes |= {name: size for name, size in lying.items() if name not in known and not blobs.is_settling(name)}
        lost += [name for name in known if name not in lying]
    found, lost = await _bring_back(blobs, lost, found, dry_run=dry_run)
    missing = 0
    if files or found.brought_back or all_strays:
        found = await _lost(database, lost, found, now=to_micros(now), dry_run=dry_run)
    else:
        missing = len(lost)  # no file exists at all: the folder is gone, or its disk is not mounted
    sweep = StraySweep(database, blobs, now=now, open_for=open_for, dry_run=dry_run, all_strays=all_strays)
    found, strays = await sweep.run(sizes, files, found)
    return await _unfinished(database, blobs.scratch, before, found, dry_run=dry_run), replace(strays, missing=missing)


async def _unused(database: Database, blobs: Blobs, *, kept_before: int, now: int, dry_run: bool) -> Tidied:
    found, past = Tidied(), ""
    while page := await database.read(
        partial(blob_rows.unused_blobs, kept_before=kept_before, after=past, limit=AT_ONCE)
    ):
        names, past = [name for name, _ in page], page[-1][0]
        if not dry_run:
            forget = partial(_forget_unused, names=names, kept_before=kept_before, now=now)
            names = list(await database.write(forget))
            await blobs.delete(names)
            await database.write(partial(deletions.files_deleted, sha256s=names))
        found = replace(
            found,
            unused=found.unused + len(names),
            freed=found.freed + sum(size for name, size in page if name in names),
        )
    return found


def _forget_unused(tx: Tx, names: Sequence[str], kept_before: int, now: int) -> tuple[str, ...]:
    forgotten = blob_rows.forget_unused(tx, names, kept_before)
    deletions.note_deletion(tx, forgotten, now)
    return forgotten


async def _bring_back(blobs: Blobs, names: Sequence[str], found: Tidied, *, dry_run: bool) -> tuple[Tidied, list[str]]:
    """Restore bytes that a row lists from those set aside; also returns the names of missing ones."""
    prefixes = sorted({name[:2] for name in names})
    here = {name for prefix in prefixes for name in await blobs.list(prefix)}  # again: some came since the first list
    missing = [name for name in names if name not in here]
    aside = (await blobs.list_aside()).keys() & set(missing) if missing else set()
    if not dry_run:
        await blobs.restore(aside)
    return replace(found, brought_back=len(aside)), [name for name in missing if name not in aside]


async def _lost(database: Database, names: Sequence[str], found: Tidied, *, now: int, dry_run: bool) -> Tidied:
    """Record missing blobs. A file is written before its row and deleted after it, so we did not cause this."""
    if dry_run:
        return replace(found, lost=len(names))
    for first in range(0, len(names), AT_ONCE):
        went = await database.write(partial(eviction.lose, names=names[first : first + AT_ONCE], now=now))
        found = replace(found, lost=found.lost + len(went))
    return found


async def _unfinished(database: Database, scratch: Path, before: datetime, found: Tidied, *, dry_run: bool) -> Tidied:
    keep = await arriving_files(database)
    stale = await on_disk(_unchanged, scratch, before.timestamp(), keep)
    if not dry_run:
        await on_disk(_discard, scratch, stale)
    return replace(found, unfinished=len(stale), freed=found.freed + sum(stale.values()))


async def arriving_files(database: Database) -> frozenset[str]:
    """The names of the scratch files of unfinished uploads."""
    return frozenset(map(uploads.file_name, await database.read(uploads.unfinished_uploads)))


def sweep_scratch(scratch: Path, *, keep: Container[str]) -> None:
    """Delete the scratch files of an earlier process, except those named."""
    _discard(scratch, [path.name for path in scratch.iterdir() if path.name not in keep])


def _unchanged(scratch: Path, before: float, keep: Container[str]) -> dict[str, int]:
    """Scratch files without a write since then, except those named, and their sizes."""
    found: dict[str, int] = {}
    for path in scratch.iterdir() if scratch.is_dir() else ():
        with suppress(FileNotFoundError):
            status = path.lstat()
            if status.st_mtime < before and path.name not in keep and not stat.S_ISDIR(status.st_mode):
                found[path.name] = status.st_size
    return found


def _discard(scratch: Path, names: Iterable[str]) -> None:
    for name in names:
        (scratch / name).unlink(missing_ok=True)
