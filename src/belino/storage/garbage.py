"""Garbage collection: unused and lost blobs, strays, and the eviction of blobs beyond a limit."""

import shutil
import stat
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from belino.domain.outcome import MediaOutcome
from belino.domain.stored import Strays, Tidied
from belino.storage import blob_rows, deletions, uploads
from belino.storage.blob_rows import RENDITION
from belino.storage.blobs import PREFIXES, Blobs
from belino.storage.database import Database, TableRow, Tx, to_micros
from belino.storage.deletions import forsake, note_deletion
from belino.storage.dialect import marks
from belino.storage.disk import on_disk

FRESH = timedelta(hours=1)
"""A blob younger than this may be waiting for its first use, and a temporary file may still be written to."""
AT_ONCE = 200
"""Blobs per transaction, so that arrivals need not wait for all of them."""
SETTLED = timedelta(hours=1)
"""Time after a start to notice that the database is the wrong one."""
KEPT_ASIDE = timedelta(days=7)
EVICTED = "its bytes made room for others; asked for again, they are fetched again"
DAMAGED = "its bytes were damaged on disk"
# Refs with any other outcome have ended: it explains more than their age would.
_AGEING = tuple(
    str(outcome)
    for outcome in (
        MediaOutcome.REFERENCED,
        MediaOutcome.HELD,
        MediaOutcome.OVER_DAILY_LIMIT,
        MediaOutcome.FAILED,
    )
)


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
        went = await database.write(partial(lose, names=names[first : first + AT_ONCE], now=now))
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
    """Delete the scratch files and folders of an earlier process, except those named."""
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
        path = scratch / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class StraySweep:
    """Puts strays aside and deletes those that were put aside a week ago; a dry run only counts."""

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        *,
        now: datetime,
        open_for: timedelta,
        dry_run: bool,
        all_strays: bool,
    ) -> None:
        """`open_for` is the time since the start; `all_strays` says that a person has decided to put all aside."""
        self._database = database
        self._blobs = blobs
        self._now = now
        self._is_settled = open_for >= SETTLED
        self._dry_run = dry_run
        self._all_strays = all_strays

    async def run(self, sizes: Mapping[str, int], files: int, found: Tidied) -> tuple[Tidied, Strays]:
        """Process these strays, of so many files; returns the updated counts and the remaining strays."""
        moves = self._all_strays or (self._is_settled and not Strays(left=len(sizes), files=files).too_many)
        names = await self._put_aside(list(sizes)) if moves else await self._confirmed(list(sizes))
        found = replace(found, put_aside=len(names)) if moves else replace(found, strays=len(names))
        expired, aside = await self._expire()
        went = moves and not self._dry_run
        strays = Strays(
            left=0 if went else len(names),
            left_bytes=0 if went else sum(sizes[name] for name in names),
            files=files - len(names) if went else files,
            aside=len(aside),
            aside_bytes=sum(aside.values()),
        )
        return replace(found, expired=len(expired), freed=found.freed + sum(expired.values())), strays

    async def _put_aside(self, names: list[str]) -> list[str]:
        if self._dry_run:
            return await self._confirmed(names)
        moved: list[str] = []
        for first in range(0, len(names), AT_ONCE):
            some = await self._strays_among(names[first : first + AT_ONCE])
            moved += await self._blobs.set_aside(some, now=self._now)
        return moved

    async def _confirmed(self, names: list[str]) -> list[str]:
        found: list[str] = []
        for first in range(0, len(names), AT_ONCE):
            found += await self._strays_among(names[first : first + AT_ONCE])
        return found

    async def _strays_among(self, names: list[str]) -> tuple[str, ...]:
        # Read on the writer, whose order counts: a row that is inserted later is also reported later.
        return await self._database.write(partial(blob_rows.strays_among, names=names))

    async def _expire(self) -> tuple[dict[str, int], dict[str, int]]:
        """The sizes of files that expired after a week, and of those that remain."""
        aside = await self._blobs.list_aside()
        until = (self._now - KEPT_ASIDE).timestamp()
        old = [name for name, file in aside.items() if self._is_settled and file.since < until]
        gone = await self._confirmed(old)
        if not self._dry_run:
            await self._blobs.delete_aside(gone)
        sizes = {name: file.size for name, file in aside.items()}
        expired = {name: sizes[name] for name in gone}
        return expired, sizes if self._dry_run else {name: sizes[name] for name in sizes if name not in expired}


def bytes_held(tx: Tx) -> int:
    """Bytes of all blobs."""
    return int(tx.execute("SELECT coalesce(sum(size), 0) FROM blobs").fetchone()[0])


def least_needed(tx: Tx, too_many: int, keep: Container[str]) -> tuple[str, ...]:
    """Blobs to evict to free this many bytes, least recently used first; fewer if not enough may be evicted."""
    found: list[str] = []
    for row in tx.execute("SELECT sha256, size FROM blobs ORDER BY kept, sha256"):
        if too_many <= 0:
            break
        if row["sha256"] not in keep and _may_go(tx, row["sha256"]):
            found.append(row["sha256"])
            too_many -= row["size"]
    return tuple(found)


def evict(tx: Tx, names: Sequence[str], keep: Container[str], now: int) -> tuple[str, ...]:
    """Delete the rows of these blobs, except those in use by now; their refs can be fetched again."""
    gone = tuple(name for name in names if name not in keep and _may_go(tx, name))
    for name in gone:
        tx.execute("DELETE FROM renditions WHERE blob = ?", (name,))
        for owner in _owners(tx, name):
            tx.execute(
                "UPDATE refs SET outcome = ?, reason = ?, ended = ? WHERE id = ?",
                (MediaOutcome.REFERENCED, EVICTED, now, owner.removeprefix("ref:")),
            )
        tx.execute("DELETE FROM blob_uses WHERE sha256 = ?", (name,))
        blob_rows.delete_blob(tx, name)
    note_deletion(tx, gone, now)
    return gone


def aged_refs(tx: Tx, before: int, after: int, limit: int) -> Sequence[TableRow]:
    """Refs stored before a time that have not ended, in order, after a number."""
    return tx.execute(
        "SELECT seq, id, sha256 FROM refs WHERE seq > ? AND stored < ? "
        f"AND outcome IN ({marks(_AGEING)}) ORDER BY seq LIMIT ?",
        (after, before, *_AGEING, limit),
    ).fetchall()


def expire(tx: Tx, rows: Sequence[TableRow], keep: Container[str], now: int) -> int:
    """Mark these refs as expired and drop their bytes; those of unsent parcels stay."""
    gone = [row for row in rows if row["sha256"] is None or row["sha256"] not in keep]
    for row in gone:
        tx.execute(
            "UPDATE refs SET outcome = ?, reason = ?, ended = ? WHERE id = ?",
            (MediaOutcome.EXPIRED, f"{row['id']} is older than media is kept here", now, row["id"]),
        )
        tx.execute("DELETE FROM blob_uses WHERE owner = ? AND sha256 = ?", (f"ref:{row['id']}", row["sha256"]))
    forsake(tx, [row["sha256"] for row in gone if row["sha256"] is not None], now)
    return len(gone)


def lose(tx: Tx, names: Sequence[str], now: int) -> tuple[str, ...]:
    """Delete the rows of damaged or missing blobs, and record the reason at their refs.

    A ref that was fetched can be fetched again; bytes that came with their message cannot. Returns those deleted.
    """
    gone = []
    for name in names:
        for owner in _owners(tx, name):
            tx.execute(
                "UPDATE refs SET outcome = CASE WHEN fetched IS NULL THEN ? ELSE ? END, "
                "reason = CASE WHEN fetched IS NULL THEN ? ELSE ? END, ended = ? WHERE id = ?",
                (
                    MediaOutcome.NOT_FOUND,
                    MediaOutcome.REFERENCED,
                    f"{DAMAGED}, and only its sender has them",
                    f"{DAMAGED}; asked for again, they are fetched again",
                    now,
                    owner.removeprefix("ref:"),
                ),
            )
        tx.execute("DELETE FROM renditions WHERE blob = ?", (name,))
        tx.execute("DELETE FROM blob_uses WHERE sha256 = ? AND substr(owner, 1, 7) <> 'parcel:'", (name,))
        gone += [name] * blob_rows.delete_blob(tx, name)
    return tuple(gone)


def touch(tx: Tx, sha256: str, now: int, every: int) -> None:
    """Record a blob's use, unless the last record is younger than `every`."""
    tx.execute("UPDATE blobs SET kept = ? WHERE sha256 = ? AND kept < ?", (now, sha256, now - every))


def _may_go(tx: Tx, sha256: str) -> bool:
    """Only blobs of refs and renditions, all of which can be fetched or made again, and none of a running turn."""
    owners = tuple(_owners(tx, sha256))
    return bool(owners) and all(_can_return(tx, owner) for owner in owners)


def _owners(tx: Tx, sha256: str) -> Iterator[str]:
    for row in tx.execute("SELECT owner FROM blob_uses WHERE sha256 = ?", (sha256,)).fetchall():
        yield row["owner"]


def _can_return(tx: Tx, owner: str) -> bool:
    if owner.startswith(RENDITION):
        return True
    if not owner.startswith("ref:"):
        return False  # an upload no message has taken yet, or a parcel that is not delivered
    row = tx.execute(
        "SELECT fetched IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message_refs l JOIN messages m ON m.id = l.message "
        "JOIN turns t ON t.id = m.turn WHERE l.ref = refs.seq AND t.state = 'running') FROM refs WHERE id = ?",
        (owner.removeprefix("ref:"),),
    ).fetchone()
    return row is None or bool(row[0])
