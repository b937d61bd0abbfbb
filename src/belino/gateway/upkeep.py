"""The state folder kept clean: what was deleted goes at once, what is old or unused within the hour."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from belino.config import Config
from belino.domain.errors import StoreError
from belino.domain.outcome import Finding
from belino.domain.ports import Clock
from belino.domain.record import Tidied
from belino.gateway.reply import Replies
from belino.media.copies import remove_copies, remove_older
from belino.media.fetch import Fetcher
from belino.storage.blobs import on_disk
from belino.storage.home import Home
from belino.storage.sqlite import SqliteStore

log = logging.getLogger(__name__)

SWEEP_SECONDS = 3_600.0
AGAIN_SECONDS = 10.0
"""What was deleted while somebody read it is tried again so soon: all of it is to be gone within a minute."""
UPLOADS_KEPT = timedelta(days=1)
GONE_TOLD = timedelta(days=30)
"""How long whoever names a deleted item is told that it was deleted, rather than that there is none."""
UNCHECKED = Finding(name="database", ok=True, says="it is being looked through")


class Upkeep:
    """Sweeps at the start and every hour, and follows deletions."""

    def __init__(
        self, store: SqliteStore, fetcher: Fetcher, replies: Replies, *, config: Config, home: Home, clock: Clock
    ) -> None:
        self._store = store
        self._fetcher = fetcher
        self._replies = replies
        self._config = config
        self._home = home
        self._clock = clock
        self._deleted = asyncio.Event()
        self._database = UNCHECKED

    async def run(self) -> None:
        """Sweep now and every hour; the database is looked through once, when there is time for it."""
        await self._swept()
        self._database = await check_database(self._store)
        while True:
            await self._clock.sleep(SWEEP_SECONDS)
            await self._swept()

    def soundness(self) -> tuple[Finding, ...]:
        """Whether the database was whole at the start, and whether bytes on disk have changed by themselves since."""
        return (self._database, *check_media(self._store.damaged))

    def deletion(self) -> None:
        """Something was taken back."""
        self._deleted.set()

    async def follow_deletions(self) -> None:
        """Let go of what was taken back, until all of it is gone."""
        while True:
            self._deleted.clear()
            try:
                left = await forget_deleted(self._store, self._home, self._fetcher.purge)
            except StoreError as error:
                log.warning("what was deleted could not be let go of: %s", type(error).__name__)
                left = 1
            if left:
                await self._clock.sleep(AGAIN_SECONDS)
            else:
                await self._deleted.wait()

    async def tidy(self, *, dry_run: bool = False) -> Tidied:
        """Look for whatever lies around, and let it go unless it is only to be counted."""
        return await tidy_up(self._store, self._home, self._fetcher.purge, dry_run=dry_run)

    async def _swept(self) -> None:
        try:
            await self._sweep()
        except StoreError as error:
            log.warning("nothing could be swept: %s", type(error).__name__)

    async def _sweep(self) -> None:
        now = self._clock.now()
        uploads = await self._store.sweep_uploads(now - UPLOADS_KEPT)
        messages = await self._expire_messages(now)
        aged = await self._fetcher.sweep()
        files = await self._sweep_folders(now)
        await self._store.forget_gone(now - GONE_TOLD)
        await self._fetcher.purge()
        tidied = await self._store.tidy()
        if uploads or messages or aged or files or tidied.total:
            log.info(
                "swept %d uploads no message took, %d aged messages, %d aged media, %d aged files, %d unused blobs, "
                "%d strays, %d rows without bytes, %d unfinished files",
                uploads,
                messages,
                aged,
                files,
                tidied.unused,
                tidied.strays,
                tidied.lost,
                tidied.unfinished,
            )

    async def _expire_messages(self, now: datetime) -> int:
        days = self._config.retention_days
        return await self._store.expire_messages(now - timedelta(days=days)) if days else 0

    async def _sweep_folders(self, now: datetime) -> int:
        days = self._config.media.retention_days
        before = now - timedelta(days=days) if days else None
        gone = await self._replies.sweep(before)
        if before is not None:
            known = [summary.conversation for summary in await self._store.conversations()]
            for folder in await on_disk(self._home.session_folders, known):
                gone += await on_disk(remove_older, folder, before)
        return gone


async def forget_deleted(store: SqliteStore, home: Home, purge: Callable[[], Awaitable[Sequence[str]]]) -> int:
    """Let go of copies and bytes of what was taken back. Returns how much of it somebody still needs."""
    while copied := await store.copied():
        for gone in copied:
            for folder in await on_disk(home.session_folders, gone.conversations):
                await on_disk(remove_copies, folder, gone.refs)
            await store.copies_removed(gone.refs)
    if went := await purge():
        log.info("let go of %d blobs of what was deleted", len(went))
    return await store.taken_back()


async def tidy_up(
    store: SqliteStore, home: Home, purge: Callable[[], Awaitable[Sequence[str]]], *, dry_run: bool
) -> Tidied:
    """All that lies around, with or without a gateway."""
    deleted = await store.taken_back()
    left = deleted if dry_run else await forget_deleted(store, home, purge)
    tidied = await store.tidy(dry_run=dry_run)
    return replace(tidied, deleted=deleted if dry_run else max(0, deleted - left))


async def check_database(store: SqliteStore) -> Finding:
    """Whether the database is whole, as far as a quick look through all of it tells."""
    try:
        found = await store.quick_check()
    except StoreError as error:
        found = str(error)
    if not found:
        return Finding(name="database", ok=True, says="whole, by quick_check")
    log.error("the database is damaged")
    cure = "Stop the gateway and `belino restore` the last backup; keep a copy of the folder first."
    return Finding(name="database", ok=False, says=f"damaged: {found}", cure=cure)


def check_media(damaged: int) -> tuple[Finding, ...]:
    """Nothing to tell, unless bytes on disk have changed by themselves."""
    if not damaged:
        return ()
    found = "one file was" if damaged == 1 else f"{damaged} files were"
    says = f"{found} found damaged on disk since the start; `belino media ls` tells what became of them"
    cure = "Check the disk. `belino media fetch` gets the bytes again."
    return (Finding(name="media", ok=False, says=says, cure=cure),)
