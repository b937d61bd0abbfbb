"""Maintenance of the state folder: delete at once what users deleted, and within the hour what is old or unused.

Scheduled backups run here too, and the checks whose findings the doctor and the status report.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from belino import __version__
from belino.aio.deadline import deadline
from belino.aio.retry import backoff
from belino.config import Config
from belino.domain.errors import StoreError
from belino.domain.outcome import Finding
from belino.domain.ports import Clock
from belino.domain.stored import Strays, Tidied
from belino.domain.units import format_size
from belino.media.fetch import Fetcher
from belino.media.sandbox.sandbox import Sandbox
from belino.media.session_files import remove_copies, remove_older
from belino.storage.backup_config import BackupConfig
from belino.storage.backup_schedule import backup_folder, made_backups, make_backup, next_due
from belino.storage.database import DiskState
from belino.storage.disk import on_disk
from belino.storage.home import Home
from belino.storage.store import Store
from belino.turns.reply import Replies

log = logging.getLogger(__name__)

SWEEP_SECONDS = 3_600.0
AGAIN_SECONDS = 10.0
"""Bytes that were in use when they were deleted are tried again this soon: all must be gone within a minute."""
FINISHED_KEPT = timedelta(hours=1)
"""How long a finished upload waits for the message that attaches it."""
UNFINISHED_KEPT = timedelta(days=1)
"""How long an unfinished upload can be resumed."""
GONE_TOLD = timedelta(days=30)
"""How long a deleted item is reported as deleted rather than as unknown."""
SLOW_SECONDS = 1.0
"""A commit takes milliseconds; platforms call again after two or three seconds."""
UNCHECKED = Finding(name="database", ok=True, says="it is being checked")
NOT_CHECKED = "could not be checked"
CHECK_TRIES = 5
CHECK_AGAIN_SECONDS = 1.0
"""The first wait before the database check is retried; it doubles."""
INDEX_SECONDS = 30.0
"""Deleted messages must leave the index within a minute."""
TRIAL_AFTER_SECONDS = 120.0
"""When every decoder is tried: late enough not to slow the start."""
BACKUP_RETRY = timedelta(hours=1)
"""A backup that failed is tried again after this time, or after its interval if that is shorter."""
LONGEST_BACKUP_WAIT = timedelta(hours=1)
"""How often the clock and the folder are checked: a machine may sleep, and backups may be deleted by hand."""


class Maintenance:
    """Sweeps at the start and every hour, and carries out deletions."""

    def __init__(
        self, store: Store, fetcher: Fetcher, replies: Replies, *, config: Config, home: Home, clock: Clock
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
        """Sweep now and every hour; check the database after the first sweep, and later until a check succeeds."""
        checked = False
        while True:
            await self._swept()
            if not checked:
                self._database = await check_database(self._store, self._clock)
                checked = not self._database.says.startswith(NOT_CHECKED)
            await self._clock.sleep(SWEEP_SECONDS)

    def soundness(self) -> tuple[Finding, ...]:
        """The database check, disk writes, media found damaged since the start, and strays."""
        return (
            self._database,
            *check_disk(self._store.disk),
            *check_media(self._store.damaged),
            *check_strays(self._store.strays),
        )

    def deletion(self) -> None:
        """Signal that a message or media was deleted, or that a message with a timer is stored."""
        self._deleted.set()

    async def follow_deletions(self) -> None:
        """Delete copies and bytes of what users deleted or whose timer ended, and retry until all of them are gone."""
        while True:
            self._deleted.clear()
            ends: datetime | None = None
            try:
                ends = await self._store.expire_timed()
                left = await forget_deleted(self._store, self._home, self._fetcher.purge)
            except StoreError as error:
                log.warning("what was deleted could not be let go of: %s", type(error).__name__)
                left = 1
            if left:
                await self._clock.sleep(AGAIN_SECONDS)
            else:
                await self._next_deletion(ends)

    async def _next_deletion(self, ends: datetime | None) -> None:
        """Wait for the next deletion, or until the timer of a message ends."""
        if ends is None:
            await self._deleted.wait()
            return
        with suppress(TimeoutError):
            async with deadline(self._clock, max(0.0, (ends - self._clock.now()).total_seconds())):
                await self._deleted.wait()

    async def tidy(self, *, dry_run: bool = False, all_strays: bool = False) -> Tidied:
        """Collect garbage, or only count it."""
        return await tidy_up(self._store, self._home, self._fetcher.purge, dry_run=dry_run, all_strays=all_strays)

    async def _swept(self) -> None:
        try:
            await self._sweep()
        except StoreError as error:
            log.warning("nothing could be swept: %s", type(error).__name__)

    async def _sweep(self) -> None:
        now = self._clock.now()
        uploads = await self._store.sweep_uploads(
            finished_before=now - FINISHED_KEPT, begun_before=now - UNFINISHED_KEPT
        )
        messages = await self._expire_messages(now)
        aged = await self._fetcher.sweep()
        files = await self._sweep_folders(now)
        await self._store.forget_gone(now - GONE_TOLD)
        await self._fetcher.purge()
        tidied = await self._store.tidy()
        if uploads or messages or aged or files or tidied.total:
            log.info(
                "swept %d uploads no message took, %d aged messages, %d aged media, %d aged files, %d unused blobs, "
                "%d rows without bytes, %d unfinished files; of files that no row lists: %d left, %d put aside, "
                "%d brought back, %d expired",
                uploads,
                messages,
                aged,
                files,
                tidied.unused,
                tidied.lost,
                tidied.unfinished,
                tidied.strays,
                tidied.put_aside,
                tidied.brought_back,
                tidied.expired,
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


class _BackupStopped(Exception):
    """The gateway stops while a backup is being made."""


class Backups:
    """Makes a backup whenever one is due."""

    def __init__(self, config: BackupConfig, home: Home, clock: Clock) -> None:
        self._config = config
        self._home = home
        self._clock = clock
        self._failure = ""

    async def run(self) -> None:
        """Wait for the next backup and make it, for as long as the gateway runs."""
        interval = self._config.interval
        if interval is None:
            return
        folder = backup_folder(self._config, self._home)
        while True:
            now = self._clock.now()
            wait = next_due(folder, interval, now) - now
            if wait > timedelta():
                await self._clock.sleep(min(wait, LONGEST_BACKUP_WAIT).total_seconds())
            elif not await self._made(now):
                await self._clock.sleep(min(interval, BACKUP_RETRY).total_seconds())

    def finding(self) -> tuple[Finding, ...]:
        """The result of the last backup, for the doctor and the status."""
        return check_backups(self._config, self._home, self._clock.now(), failure=self._failure)

    async def _made(self, now: datetime) -> bool:
        try:
            problems = await self._in_thread(now)
        except (StoreError, OSError) as error:
            problems = (_failure_of(error),)
        self._failure = problems[0] if problems else ""
        if problems:
            log.error("the scheduled backup failed: %s", problems[0])
        else:
            log.info("a backup was made and verified")
        return not problems

    async def _in_thread(self, now: datetime) -> tuple[str, ...]:
        """Copy and verify in a thread, which stops at the next file when the gateway stops."""
        stopping = threading.Event()

        def progress(done: int, total: int) -> None:
            if stopping.is_set():
                raise _BackupStopped

        work = asyncio.get_running_loop().run_in_executor(
            None, make_backup, self._config, self._home, now, __version__, progress
        )
        try:
            return tuple(await asyncio.shield(work))
        except asyncio.CancelledError:
            stopping.set()
            await asyncio.wait([work])
            if not work.cancelled():
                work.exception()  # retrieved so that asyncio does not log it; the gateway is stopping
            raise


async def index_ahead(store: Store, clock: Clock) -> None:
    """Index new messages and remove deleted ones regularly, so that searches find most of the index up to date."""
    while True:
        await clock.sleep(INDEX_SECONDS)
        try:
            if await store.index_ahead():
                await asyncio.to_thread(release_memory)
        except StoreError as error:
            log.warning("nothing could be indexed: %s", type(error).__name__)


async def try_all_decoders(clock: Clock) -> None:
    """Try every decoder once, long after the start; a failure is logged."""
    await clock.sleep(TRIAL_AFTER_SECONDS)
    from belino.media.trial import try_decoders

    try:
        # In a sandbox of its own: until a file comes, none is kept running.
        async with Sandbox() as sandbox:
            tried = await try_decoders(sandbox)
    except OSError as error:
        log.warning("decoders could not be tried: %s", type(error).__name__)
        return
    for failure in tried.failures:
        log.warning("a decoder does not work here: %s", failure)


async def forget_deleted(store: Store, home: Home, purge: Callable[[], Awaitable[Sequence[str]]]) -> int:
    """Delete copies and bytes of what users deleted. Returns how many items are still in use."""
    while copied := await store.copied():
        for gone in copied:
            for folder in await on_disk(home.session_folders, gone.conversations):
                await on_disk(remove_copies, folder, gone.refs)
            await store.copies_removed(gone.refs)
    if went := await purge():
        log.info("let go of %d blobs of what was deleted", len(went))
    return await store.taken_back()


async def tidy_up(
    store: Store,
    home: Home,
    purge: Callable[[], Awaitable[Sequence[str]]],
    *,
    dry_run: bool,
    all_strays: bool = False,
) -> Tidied:
    """Collect all garbage, with or without a gateway."""
    deleted = await store.taken_back()
    left = deleted if dry_run else await forget_deleted(store, home, purge)
    tidied = await store.tidy(dry_run=dry_run, all_strays=all_strays)
    return replace(tidied, deleted=deleted if dry_run else max(0, deleted - left))


async def check_database(store: Store, clock: Clock) -> Finding:
    """Whether `quick_check` finds corruption; a check that fails for another reason is retried and reported as such."""
    for attempt in range(1, CHECK_TRIES + 1):
        try:
            found = await store.check_database()
        except StoreError as error:
            if attempt == CHECK_TRIES:
                log.warning("the database could not be checked: %s", error)
                cure = "This says nothing about the data. `belino doctor` shows the next check, within the hour."
                return Finding(name="database", ok=False, says=f"{NOT_CHECKED}: {error}", cure=cure)
            await clock.sleep(backoff(attempt, first=CHECK_AGAIN_SECONDS))
        else:
            break
    if not found:
        return Finding(name="database", ok=True, says="whole, by quick_check")
    log.error("the database is damaged")
    cure = (
        "Stop the gateway; `belino doctor --repair` salvages what can still be read and keeps the old file, "
        "`belino restore DIR` restores a backup."
    )
    return Finding(name="database", ok=False, says=f"damaged: {found}", cure=cure)


def check_disk(disk: DiskState) -> tuple[Finding, ...]:
    """A finding if the disk refuses writes or is slow; else none."""
    if disk.refusal:
        cure = "Free disk space and make the state folder writable; belino then continues by itself."
        return (Finding(name="disk", ok=False, says=f"the last write was refused: {disk.refusal}", cure=cure),)
    if disk.commit_seconds < SLOW_SECONDS:
        return ()
    says = f"slow: a write takes {disk.commit_seconds:.1f} s, and {disk.waiting} wait"
    return (Finding(name="disk", ok=False, says=says, cure="Look for what else uses the disk, and for its errors."),)


def check_media(damaged: int) -> tuple[Finding, ...]:
    """A finding if bytes on disk are damaged; else none."""
    if not damaged:
        return ()
    found = f"{_files(damaged)} {'was' if damaged == 1 else 'were'}"
    says = f"{found} found damaged on disk since the start; `belino media ls` shows their state"
    cure = "Check the disk. `belino media fetch` gets the bytes again."
    return (Finding(name="media", ok=False, says=says, cure=cure),)


def check_strays(strays: Strays) -> tuple[Finding, ...]:
    """Files in `blobs/` that the database does not list, or an empty `blobs/`: how many, where, and what to do."""
    if strays.missing:
        found = f"blobs/ is empty, and the database lists {_files(strays.missing)} in it"
        cure = (
            "Mount or restore the folder; nothing is given up until then. If the files are gone for good, "
            "`belino media gc --all-strays` marks them as lost."
        )
        return (Finding(name="blobs", ok=False, says=found, cure=cure),)
    says = []
    if strays.left:
        says.append(
            f"{_files(strays.left)} ({format_size(strays.left_bytes)}) of {strays.files} in blobs/ "
            f"{'is' if strays.left == 1 else 'are'} not in the database"
        )
    if strays.aside:
        says.append(f"{_files(strays.aside)} ({format_size(strays.aside_bytes)}) put aside in blobs/aside/ for a week")
    if not says:
        return ()
    cure = "If belino.db is not the right one, stop the gateway and put the right one back, or `belino restore DIR`"
    if strays.too_many:
        cure += "; if it is, `belino media gc --all-strays` puts them aside for a week"
    cure += ". A file that the database lists again is brought back."
    return (Finding(name="strays", ok=not strays.too_many, says="; ".join(says), cure=cure),)


def _files(count: int) -> str:
    return "one file" if count == 1 else f"{count} files"


def check_backups(config: BackupConfig, home: Home, now: datetime, *, failure: str = "") -> tuple[Finding, ...]:
    """Findings about scheduled backups, from the folder and the last attempt; none if they are not configured."""
    interval = config.interval
    if interval is None:
        return ()
    folder = backup_folder(config, home)
    made = made_backups(folder)
    last = f"the last one is of {max(made):%Y-%m-%d %H:%M} UTC" if made else "there is none yet"
    cure = f"Check that {folder} is writable and has free space; `belino backup --verify` verifies a backup."
    if failure:
        return (Finding(name="backup", ok=False, says=f"the last attempt failed: {failure}; {last}", cure=cure),)
    if made and next_due(folder, interval, now) + interval < now:
        return (Finding(name="backup", ok=False, says=f"overdue: one is due every {config.every}; {last}", cure=cure),)
    return (Finding(name="backup", ok=True, says=f"every {config.every}, {len(made)} kept in {folder}; {last}"),)


def _failure_of(error: StoreError | OSError) -> str:
    return f"{error.strerror} ({error.filename})" if isinstance(error, OSError) else str(error)


def release_memory() -> None:
    """Return freed memory to the system, where the C library can: glibc keeps what an evicted index leaves."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
