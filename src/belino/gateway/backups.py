"""Scheduled backups: make one when it is due, and report how the last one went."""

import asyncio
import logging
import threading
from datetime import datetime, timedelta

from belino import __version__
from belino.domain.errors import StoreError
from belino.domain.outcome import Finding
from belino.domain.ports import Clock
from belino.storage.backup_config import BackupConfig
from belino.storage.backup_schedule import backup_folder, made_backups, make_backup, next_due
from belino.storage.home import Home

log = logging.getLogger(__name__)

RETRY = timedelta(hours=1)
"""A backup that failed is tried again after this time, or after its interval if that is shorter."""
LONGEST_WAIT = timedelta(hours=1)
"""How often the clock and the folder are checked: a machine may sleep, and backups may be deleted by hand."""


class _Stopped(Exception):
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
                await self._clock.sleep(min(wait, LONGEST_WAIT).total_seconds())
            elif not await self._made(now):
                await self._clock.sleep(min(interval, RETRY).total_seconds())

    def finding(self) -> tuple[Finding, ...]:
        """The result of the last backup, for the doctor and the status."""
        return check_backups(self._config, self._home, self._clock.now(), failure=self._failure)

    async def _made(self, now: datetime) -> bool:
        try:
            problems = await self._in_thread(now)
        except (StoreError, OSError) as error:
            problems = (_told(error),)
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
                raise _Stopped

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


def check_backups(config: BackupConfig, home: Home, now: datetime, *, failure: str = "") -> tuple[Finding, ...]:
    """Findings about scheduled backups, from the folder and the last attempt; none if they are not configured."""
    interval = config.interval
    if interval is None:
        return ()
    folder = backup_folder(config, home)
    made = made_backups(folder)
    last = f"the last one is of {max(made):%Y-%m-%d %H:%M} UTC" if made else "there is none yet"
    cure = f"See whether {folder} can be written to and has room; `belino backup --verify` reads one back."
    if failure:
        return (Finding(name="backup", ok=False, says=f"the last attempt failed: {failure}; {last}", cure=cure),)
    if made and next_due(folder, interval, now) + interval < now:
        return (Finding(name="backup", ok=False, says=f"overdue: one is due every {config.every}; {last}", cure=cure),)
    return (Finding(name="backup", ok=True, says=f"every {config.every}, {len(made)} kept in {folder}; {last}"),)


def _told(error: StoreError | OSError) -> str:
    return f"{error.strerror} ({error.filename})" if isinstance(error, OSError) else str(error)
