"""The database port: transactions that a storage engine runs, and the rows they return.

An engine implements `Database`. All SQL is in the common subset of SQLite and PostgreSQL; where the two differ, the
words are in `dialect.py`.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from belino.domain.outcome import CacheSize
from belino.domain.ports import Clock
from belino.storage.blobs import Blobs
from belino.storage.encryption import Keys

T = TypeVar("T")
M = TypeVar("M", bound="Memo")

Args = Sequence[object] | Mapping[str, object]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TableRow(Protocol):
    """A row: its values by column name, or by position."""

    def __getitem__(self, key: str | int | slice, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def keys(self) -> Iterable[str]: ...


class Rows(Protocol):
    """The result of one statement."""

    @property
    def rowcount(self) -> int:
        """How many rows an INSERT, UPDATE or DELETE changed."""
        ...

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Tx(Protocol):
    """A transaction. SQL takes `?` or `?1` for its arguments."""

    def execute(self, sql: str, args: Args = (), /) -> Rows: ...

    def many(self, sql: str, rows: Iterable[Args], /) -> object:
        """Execute one statement for each row of arguments."""
        ...

    def memo(self, kind: type[M], /) -> M:
        """The transaction's own object of this kind.

        An engine that only one process uses keeps it for the transactions that follow, so that it can cache rows.
        """
        ...


class Memo(Protocol):
    """What a transaction computes besides rows."""

    def flush(self, tx: Tx) -> None:
        """Write what is still to be written, at the end of the transaction."""
        ...

    def undo(self) -> None:
        """Forget everything: the transaction is rolled back."""
        ...

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """What it keeps between transactions, by name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskState:
    """The result of the last write, and the duration of the current one."""

    refusal: str = ""
    """Why the last commit failed; empty if it did not."""
    commit_seconds: float = 0.0
    waiting: int = 0
    """Writes that wait for their commit."""


Work = Callable[[Tx], T]
"""What happens in a transaction. It may run twice, so it starts from nothing each time."""


class Database(Protocol):
    """A storage engine. Its errors are StoreErrors, whatever its library raises."""

    @property
    def disk(self) -> DiskState:
        """The state of recent writes."""
        ...

    async def read(self, work: Work[T]) -> T:
        """Run work on one consistent view of what is committed."""
        ...

    async def write(self, work: Work[T]) -> T:
        """Run work in a transaction; returns once that is on disk."""
        ...

    async def notify(self, topic: str, message: str) -> None:
        """Send a short message to every process that listens to a topic."""
        ...

    def listen(self, topic: str) -> AsyncIterator[str]:
        """The messages of a topic, from now on."""
        ...

    async def migrate(self) -> None:
        """Bring the schema to this program's version, before any other work; StoreTooNew if a newer belino wrote it."""
        ...

    async def check(self) -> str:
        """The corruption that the engine finds in its files; empty if none. StoreError if the check cannot be made."""
        ...

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """Sizes of the engine's in-memory caches."""
        ...

    async def close(self) -> None:
        """Finish pending writes, then release the database."""
        ...


def to_micros(moment: datetime) -> int:
    """A time as it is stored: whole microseconds since 1970, UTC; exact, unlike a float of seconds."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(micros: int) -> datetime:
    """A stored time, in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


def maybe_from_micros(micros: int | None) -> datetime | None:
    """A stored time; None for None."""
    return None if micros is None else from_micros(micros)


class Verbs:
    """A group of verbs, each one transaction; `Store` has them all."""

    def __init__(self, database: Database, blobs: Blobs, clock: Clock, keys: Keys) -> None:
        self._database = database
        self._blobs = blobs
        self._clock = clock
        self._keys = keys

    def _now(self) -> int:
        return to_micros(self._clock.now())
