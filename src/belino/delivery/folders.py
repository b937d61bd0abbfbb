"""Folders of a conversation's `outgoing/`: what waits in `pending`, and where it moves when it has ended."""

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
from belino.storage.blobs import on_disk

OUTGOING = "outgoing"
PENDING, SENT, ERROR = (f"{OUTGOING}/{name}" for name in ("pending", "sent", "error"))
QUIET_SECONDS = 2.0
"""A file nobody has written to for so long is taken for whole."""
LOOKED_AT = 1_000
REASON = ".error.txt"

_HALF_DONE = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".swp", "~")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What lies in `pending`: files that can go out, and how many are still being written."""

    files: tuple[Seen, ...] = ()
    unfinished: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """How far a pending file has come, by the parcel that carries it."""

    state: ParcelState
    reason: str = ""
    since: datetime | None = None


def mark_of(seen: Seen) -> str:
    """What tells a pending file from a later one of the same name; kept with its parcel."""
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
        """What can go out now. Files that were written to just now are given a moment to be finished."""
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
        """Whether anything lies in `pending` or `error`."""
        return await self._beneath(
            lambda beneath: any(next(beneath.files(folder, deep=0, most=1), None) for folder in (PENDING, ERROR))
        )

    async def settle(self, fates: Mapping[str, Fate]) -> frozenset[str]:
        """Move each pending file to where its parcel's end says. Returns the marks of those still on their way."""

        def work(beneath: Jail) -> frozenset[str]:
            for seen in list(beneath.files(PENDING, deep=0, most=LOOKED_AT)):
                fate = fates.get(mark_of(seen))
                if fate is not None:
                    with suppress(FileNotFoundError):  # whoever put it there took it back
                        self._follow(beneath, seen, fate)
            self._forgive(beneath, fates)
            return frozenset(mark for mark, fate in fates.items() if _is_under_way(fate))

        return await self._beneath(work)

    async def refuse(self, marks: Mapping[str, str]) -> None:
        """Put pending files that cannot be sent aside, each with its reason."""
        await self.settle({mark: Fate(state=ParcelState.DEAD, reason=reason) for mark, reason in marks.items()})

    async def sweep(self, before: datetime) -> int:
        """Delete what was moved to `sent` or `error` before then. Returns how many files went."""

        def work(beneath: Jail) -> int:
            bound, count = before.timestamp() * 1e9, 0
            for folder in (SENT, ERROR):
                for seen in list(beneath.files(folder, most=100 * LOOKED_AT)):
                    if max(seen.mtime_ns, seen.atime_ns) < bound:
                        beneath.remove(seen.path)
                        count += 1
            return count

        return await self._beneath(work)

    async def _look(self, busy: Collection[str]) -> tuple[Seen, ...]:
        def work(beneath: Jail) -> tuple[Seen, ...]:
            found = beneath.files(PENDING, deep=0, most=LOOKED_AT)
            return tuple(seen for seen in found if not is_half_done(seen.name) and mark_of(seen) not in busy)

        return await self._beneath(work)

    def _follow(self, beneath: Jail, seen: Seen, fate: Fate) -> None:
        """Where a file goes is known by its parcel, never by the file: the same name may be another file by now."""
        if fate.state is ParcelState.SENT:
            self._move(beneath, seen, SENT)
        elif not _is_under_way(fate):
            moved = self._move(beneath, seen, ERROR)
            beneath.write(f"{ERROR}/{ending_in(moved, REASON)}", f"{fate.reason or fate.state}\n")

    def _forgive(self, beneath: Jail, fates: Mapping[str, Fate]) -> None:
        """What was given up on and arrived after all, because somebody tried it again, is no error any more.

        It arrived after it was put there: what arrived before was another file, whose number in the file system and
        size this one happens to have.
        """
        arrived: dict[tuple[str, str], datetime] = {}
        for mark, fate in fates.items():
            if fate.state is ParcelState.SENT and fate.since is not None:
                arrived.setdefault(_lasting(mark), fate.since)
        for seen in list(beneath.files(ERROR, deep=0, most=LOOKED_AT)) if arrived else ():
            since = arrived.get(_lasting(mark_of(seen)))
            if since is not None and since.timestamp() >= seen.mtime_ns / 1e9:
                self._move(beneath, seen, SENT)
                beneath.remove(f"{ERROR}/{ending_in(seen.name, REASON)}")

    def _move(self, beneath: Jail, seen: Seen, folder: str) -> str:
        # Its time becomes that of the move: retention counts from then, and put back by hand it is a new file.
        failpoint("file.move.before")
        moved = beneath.move(seen.path, folder, at=self._clock.now())
        failpoint("file.move.after")
        return moved

    async def _beneath(self, work: Callable[[Jail], T]) -> T:
        def held() -> T:
            with Jail(self.path) as beneath:
                return work(beneath)

        return await on_disk(held)


def is_half_done(name: str) -> bool:
    """Whether a name says that whoever writes the file is not done, or that it is nobody's business."""
    return name.startswith(".") or name.lower().endswith(_HALF_DONE)


def fates_of(carried: Iterable[tuple[str, ParcelState, str, datetime]]) -> dict[str, Fate]:
    """By mark, from what parcels carried, newest first: the last word counts."""
    fates: dict[str, Fate] = {}
    for marks, state, reason, since in carried:
        for mark in split(marks):
            fates.setdefault(mark, Fate(state=state, reason=reason, since=since))
    return fates


def _is_under_way(fate: Fate) -> bool:
    return fate.state in (ParcelState.READY, ParcelState.SENDING, ParcelState.HELD)


def _lasting(mark: str) -> tuple[str, str]:
    """What stays the same about a file that was moved."""
    inode, _, size = mark.split("-")
    return inode, size
