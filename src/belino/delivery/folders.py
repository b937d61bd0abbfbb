"""Folders of a conversation's `outgoing/`: files waiting in `pending`, and where they are moved in the end."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from belino.domain.failpoints import failpoint
from belino.domain.ports import Clock
from belino.domain.reply import ParcelState
from belino.media.jail import Jail, Seen, ending_in
from belino.storage.disk import on_disk

OUTGOING = "outgoing"
PENDING, SENT, ERROR = (f"{OUTGOING}/{name}" for name in ("pending", "sent", "error"))
QUIET_SECONDS = 2.0
"""A file that has not been written to for this long counts as complete."""
LOOKED_AT = 1_000
REASON = ".error.txt"

_HALF_DONE = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".swp", "~")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The contents of `pending`: files that can be sent, and how many are still being written."""

    files: tuple[Seen, ...] = ()
    unfinished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The state of a pending file, by the parcel that carries it."""

    state: ParcelState
    reason: str = ""
    since: datetime | None = None


def mark_of(seen: Seen) -> str:
    """Distinguishes a pending file from a later one of the same name; stored with its parcel."""
    return f"{seen.inode:x}-{seen.mtime_ns:x}-{seen.size:x}"


def joined(*marks: str | None) -> str | None:
    """One mark for several files of the same content."""
    return "/".join(mark for mark in marks if mark) or None


def split(marks: str) -> list[str]:
    return marks.split("/")


class Folders:
    """The folders of one conversation."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock

    async def waiting(self, busy: Collection[str]) -> Waiting:
        """The files that can be sent now. Files that were just written to get a moment to be finished."""
        first = await self._look(busy)
        since = self._clock.now().timestamp() - QUIET_SECONDS
        fresh = {seen.path: seen for seen in first if not 0 <= seen.mtime_ns / 1e9 <= since}
        if not fresh:
            return Waiting(files=first)
        await self._clock.sleep(QUIET_SECONDS)
        now = await self._look(busy)
        whole = [seen for seen in now if seen.path not in fresh or fresh[seen.path].identity == seen.identity]
        known = {seen.path for seen in first}
        files = tuple(seen for seen in whole if seen.path in known)
        return Waiting(files=files, unfinished=len(now) - len(files))

    async def is_used(self) -> bool:
        """Whether `pending` or `error` contains anything."""
        return await self._in_jail(
            lambda jail: any(next(jail.files(folder, deep=0, most=1), None) for folder in (PENDING, ERROR))
        )

    async def settle(self, fates: Mapping[str, Fate]) -> frozenset[str]:
        """Move each pending file by the outcome of its parcel. Returns the marks of those still on their way."""

        def work(jail: Jail) -> frozenset[str]:
            for seen in list(jail.files(PENDING, deep=0, most=LOOKED_AT)):
                fate = fates.get(mark_of(seen))
                if fate is not None:
                    with suppress(FileNotFoundError):  # removed since it was listed
                        self._follow(jail, seen, fate)
            self._forgive(jail, fates)
            return frozenset(mark for mark, fate in fates.items() if _is_under_way(fate))

        return await self._in_jail(work)

    async def refuse(self, marks: Mapping[str, str]) -> None:
        """Move pending files that cannot be sent to `error`, each with its reason."""
        await self.settle({mark: Fate(state=ParcelState.DEAD, reason=reason) for mark, reason in marks.items()})

    async def sweep(self, before: datetime) -> int:
        """Delete files that were moved to `sent` or `error` before then. Returns how many were deleted."""

        def work(jail: Jail) -> int:
            bound, count = before.timestamp() * 1e9, 0
            for folder in (SENT, ERROR):
                for seen in list(jail.files(folder, most=100 * LOOKED_AT)):
                    if max(seen.mtime_ns, seen.atime_ns) < bound:
                        jail.remove(seen.path)
                        count += 1
            return count

        return await self._in_jail(work)

    async def _look(self, busy: Collection[str]) -> tuple[Seen, ...]:
        def work(jail: Jail) -> tuple[Seen, ...]:
            found = jail.files(PENDING, deep=0, most=LOOKED_AT)
            return tuple(seen for seen in found if not is_half_done(seen.name) and mark_of(seen) not in busy)

        return await self._in_jail(work)

    def _follow(self, jail: Jail, seen: Seen, fate: Fate) -> None:
        """Move a file by the state of its parcel, never by its name: the same name may be another file by now."""
        if fate.state is ParcelState.SENT:
            self._move(jail, seen, SENT)
            if not any(left.name == seen.name for left in jail.files(ERROR, deep=0, most=LOOKED_AT)):
                # It was put back by hand after an error that no longer counts.
                jail.remove(f"{ERROR}/{ending_in(seen.name, REASON)}")
        elif not _is_under_way(fate):
            moved = self._move(jail, seen, ERROR)
            jail.write(f"{ERROR}/{ending_in(moved, REASON)}", f"{fate.reason or fate.state}\n")

    def _forgive(self, jail: Jail, fates: Mapping[str, Fate]) -> None:
        """Move files from `error` to `sent` if their parcel arrived after a retry.

        It must have arrived after the file was moved to `error`: an earlier arrival was another file with the same
        inode number and size.
        """
        arrived: dict[tuple[str, str], datetime] = {}
        for mark, fate in fates.items():
            if fate.state is ParcelState.SENT and fate.since is not None:
                arrived.setdefault(_lasting(mark), fate.since)
        for seen in list(jail.files(ERROR, deep=0, most=LOOKED_AT)) if arrived else ():
            since = arrived.get(_lasting(mark_of(seen)))
            if since is not None and since.timestamp() >= seen.mtime_ns / 1e9:
                self._move(jail, seen, SENT)
                jail.remove(f"{ERROR}/{ending_in(seen.name, REASON)}")

    def _move(self, jail: Jail, seen: Seen, folder: str) -> str:
        # The file's time becomes that of the move: retention counts from then; if put back by hand, it is a new file.
        failpoint("file.move.before")
        moved = jail.move(seen.path, folder, at=self._clock.now())
        failpoint("file.move.after")
        return moved

    async def _in_jail(self, work: Callable[[Jail], T]) -> T:
        def held() -> T:
            with Jail(self.path) as jail:
                return work(jail)

        return await on_disk(held)


def is_half_done(name: str) -> bool:
    """Whether the name marks a file that is unfinished or hidden."""
    return name.startswith(".") or name.lower().endswith(_HALF_DONE)


def fates_of(carried: Iterable[tuple[str, ParcelState, str, datetime]]) -> dict[str, Fate]:
    """Fates by mark, from what parcels carried, newest first: the newest counts."""
    fates: dict[str, Fate] = {}
    for marks, state, reason, since in carried:
        for mark in split(marks):
            fates.setdefault(mark, Fate(state=state, reason=reason, since=since))
    return fates


def _is_under_way(fate: Fate) -> bool:
    return fate.state in (ParcelState.READY, ParcelState.SENDING, ParcelState.HELD)


def _lasting(mark: str) -> tuple[str, str]:
    """The parts of a mark that a move does not change."""
    inode, _, size = mark.split("-")
    return inode, size
