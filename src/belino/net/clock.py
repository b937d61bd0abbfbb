"""Clock of the machine: wall time, a monotonic one, and the time zone."""

import asyncio
import os
import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from belino.domain.ports import Clock

LOCAL_TIME = Path("/etc/localtime")


class SystemClock:
    """The real clock; all code that waits or timestamps receives one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SteadyClock:
    """A clock that ignores steps back of the wall clock: what is due in a minute stays due in a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.now()
        self._read = clock.monotonic()

    def now(self) -> datetime:
        """Wall time that never goes back, and advances with the monotonic clock."""
        read = self._clock.monotonic()
        self._last = max(self._last + timedelta(seconds=read - self._read), self._clock.now())
        self._read = read
        return self._last

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


def time_zone(name: str = "") -> tzinfo:
    """A time zone by its IANA name; without one the system's. ValueError if there is none of that name."""
    for own in [name] if name else _system_names():
        try:
            return ZoneInfo(own)
        except (KeyError, ValueError, OSError):  # not found, not a name, a folder
            continue
    if name:
        raise ValueError(f"there is no time zone {name!r}; a name looks like Europe/Berlin or UTC")
    return datetime.now().astimezone().tzinfo or UTC


def _system_names() -> list[str]:
    """The names that the environment and the link to the local time give."""
    _, found, linked = os.path.realpath(LOCAL_TIME).partition("/zoneinfo/")
    return [name for name in (os.environ.get("TZ", "").removeprefix(":"), linked if found else "") if name]
