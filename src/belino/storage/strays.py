"""Strays: blob files that no row lists, put aside for a week instead of being deleted.

A killed process leaves a few. Many of them mean that the database is missing, older or not the one that the blobs
belong to, so they stay in their place in the first hour after a start, and while they are more than a tenth of all
blobs. Once a row lists such a file again, it is brought back.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from belino.domain.stored import Strays, Tidied
from belino.storage import blob_rows
from belino.storage.blobs import Blobs
from belino.storage.database import Database

SETTLED = timedelta(hours=1)
"""Time after a start to notice that the database is the wrong one."""
KEPT_ASIDE = timedelta(days=7)
AT_ONCE = 200
"""Files checked per transaction, so that arrivals need not wait for all of them."""


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
            some = await self._without_row(names[first : first + AT_ONCE])
            moved += await self._blobs.set_aside(some, now=self._now)
        return moved

    async def _confirmed(self, names: list[str]) -> list[str]:
        found: list[str] = []
        for first in range(0, len(names), AT_ONCE):
            found += await self._without_row(names[first : first + AT_ONCE])
        return found

    async def _without_row(self, names: list[str]) -> tuple[str, ...]:
        # Read on the writer, whose order counts: a row that is inserted later is also reported later.
        return await self._database.write(partial(blob_rows.without_row, names=names))

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
