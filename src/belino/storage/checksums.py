"""Checksums: verify blobs before they are served, at most once a day per file."""

import asyncio
import hashlib
import os
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from weakref import WeakValueDictionary

from belino.domain.outcome import CacheSize
from belino.domain.ports import Clock
from belino.storage.disk import on_disk

REMEMBERED = 20_000
BELIEVED = timedelta(days=1)
"""A disk may flip a bit without changing the file's time, so each file is verified again after this time."""
PIECE = 1 << 18


@dataclass(frozen=True, slots=True)
class _Seen:
    """A verified file, with its metadata at that time."""

    identity: tuple[int, int, int]
    at: datetime


class Checksums:
    """Verified files, so that each is hashed once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._looking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def holds(self, sha256: str, place: Path) -> bool:
        """Whether this file has this checksum; False if it does not exist."""
        if self._is_known(sha256, place):
            return True
        async with self._looking.setdefault(sha256, asyncio.Lock()):
            if self._is_known(sha256, place):
                return True
            found = await on_disk(_look, place)
        if found is None or found[0] != sha256:
            return False
        self._remember(sha256, found[1])
        return True

    @property
    def size(self) -> CacheSize:
        return CacheSize.of_entries(len(self._seen), most=REMEMBERED, each=500)

    def vouch(self, sha256: str, place: Path) -> None:
        """Record that these bytes were hashed while they were written."""
        identity = _identity(place)
        if identity is not None:
            self._remember(sha256, identity)

    def forget(self, sha256: str) -> None:
        """Drop the verification of these bytes."""
        self._seen.pop(sha256, None)

    def _is_known(self, sha256: str, place: Path) -> bool:
        seen = self._seen.get(sha256)
        return seen is not None and seen.at + BELIEVED > self._clock.now() and seen.identity == _identity(place)

    def _remember(self, sha256: str, identity: tuple[int, int, int]) -> None:
        self._seen[sha256] = _Seen(identity, self._clock.now())
        self._seen.move_to_end(sha256)
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)


def _identity(place: Path) -> tuple[int, int, int] | None:
    try:
        return _identity_of(place.lstat())
    except FileNotFoundError:
        return None


def _identity_of(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_mtime_ns, status.st_size


def _look(place: Path) -> tuple[str, tuple[int, int, int]] | None:
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    digest, buffer = hashlib.sha256(), bytearray(PIECE)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        identity = _identity_of(os.fstat(descriptor))
        while count := file.readinto(buffer):
            digest.update(memoryview(buffer)[:count])
    return digest.hexdigest(), identity
