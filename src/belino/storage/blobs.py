"""The blobs port: bytes by their sha256, as a storage engine holds them in a folder or in an object store.

An engine implements `Blobs`. It knows no rows: a verb of the store puts the bytes before it writes their row, and
deletes them after their row, so that a row without bytes is damage, and bytes without a row are a stray.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Protocol

from belino.domain.outcome import CacheSize

PREFIXES = tuple(f"{number:02x}" for number in range(256))
"""The first two digits of all names: what `list` takes, one after the other."""


class BlobState(Enum):
    """What a check found under a name."""

    HELD = "held"
    MISSING = "missing"
    DAMAGED = "damaged"
    """Bytes of another checksum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBytes:
    """Bytes that were put."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A stray that was set aside."""

    size: int
    since: float
    """Seconds since the epoch."""


class Blobs(Protocol):
    """A storage engine for bytes. A name that is no sha256 is MediaNotFound; other errors are StoreErrors."""

    @property
    def scratch(self) -> Path:
        """A local folder for files in the making: uploads, and what the sandbox writes."""
        ...

    def put(
        self, chunks: AsyncIterator[bytes], *, limit: int, complete: Callable[[], object] | None = None
    ) -> AbstractAsyncContextManager[StoredBytes]:
        """Store all the bytes, hashed while they come. MediaTooLarge past `limit`.

        `complete` is called after the last of them and before they are visible; what it raises refuses them.

        On entering the block they are durable, and visible under their hash; never a part of them, also after a kill.
        Inside it the name is settling: no `delete` and no `set_aside` of this process takes the bytes, so the block is
        where their row is written.
        """
        ...

    def adopt(self, path: Path, sha256: str) -> AbstractAsyncContextManager[None]:
        """The same for a complete and synced file in `scratch` that has this hash; its old name is gone inside."""
        ...

    async def check(self, sha256: str) -> BlobState:
        """Whether the bytes are held, and are what their name says; restores them if they were set aside.

        The checksum is verified at most once a day, unless the engine does so itself.
        """
        ...

    def local(self, sha256: str) -> AbstractAsyncContextManager[Path]:
        """The bytes as a file to read, at a path that is valid inside the block. To be called after `check`.

        A file that was opened inside the block stays readable after it: an engine never writes to it again.
        """
        ...

    def stream(self, sha256: str) -> AsyncIterator[bytes]:
        """The bytes in pieces of about a megabyte, also if they were set aside. MediaNotFound if they are not held."""
        ...

    async def list(self, prefix: str) -> Mapping[str, int]:
        """Every name that begins with these two digits, and its size; not those set aside."""
        ...

    async def delete(self, names: Iterable[str]) -> int:
        """Delete what has no row by the writer's latest answer, also where it was set aside; returns the bytes freed.

        Await this directly after that answer, with no other await between: names that settle now are left alone, and
        bytes that are put from now on are not taken by this call.
        """
        ...

    def is_settling(self, sha256: str) -> bool:
        """Whether these bytes are being put now, so that they may be here before their row."""
        ...

    def is_moving(self, sha256: str) -> bool:
        """Whether these bytes are being put or deleted now, so that they and their row may disagree."""
        ...

    async def set_aside(self, names: Iterable[str], *, now: datetime) -> tuple[str, ...]:
        """Hide strays where only `restore` finds them, under the same condition as `delete`; returns those hidden."""
        ...

    async def restore(self, names: Iterable[str]) -> None:
        """Make visible again what was set aside."""
        ...

    async def list_aside(self) -> Mapping[str, Aside]:
        """Everything that is set aside."""
        ...

    async def delete_aside(self, names: Iterable[str]) -> None:
        """Delete what was set aside."""
        ...

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """Sizes of the engine's in-memory caches."""
        ...
