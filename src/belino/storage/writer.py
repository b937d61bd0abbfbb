"""One writer thread with group commit, and a few reader connections.

A batch is what queued during the previous commit: there is no timer, and a single write commits at once. No caller gets
a result before COMMIT has returned.
"""

import asyncio
import errno
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from belino.domain.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreReadOnly, StoreUnwritable
from belino.domain.failpoints import failpoint
from belino.domain.outcome import CacheSize

BATCH = 500
WRITER_PAGES, READER_PAGES = 16 * 1024 * 1024, 2_000 * 1024
"""Bytes of pages that a connection may cache; a reader's is SQLite's own default."""
WAITING_WRITES = 2_000
READERS = 3

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
CORRUPTION = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""Primary result codes by which SQLite reports a damaged file; every other code says nothing about its content."""
_HELD = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
BUSY_MS = 1_500
"""How long another process may lock the database before a write is refused; platforms wait for three seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskState:
    """The result of the last write, and the duration of the current one."""

    refusal: str = ""
    """Why the last commit failed; empty if it did not."""
    commit_seconds: float = 0.0
    waiting: int = 0
    """Writes that wait for their commit."""


class _Job(Generic[T]):
    """A queued write; its work may run twice, so it must start from nothing each time."""

    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: Work[T], future: asyncio.Future[T]) -> None:
        self.work = work
        self.future = future
        self.result: T
        self.error: BaseException | None = None


class Writer:
    """The only connection that writes."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        undone: Callable[[], None],
        settle: Callable[[sqlite3.Connection], None] = lambda connection: None,
    ) -> None:
        """`undone` is called in the writer's thread after every rollback: caches are then invalid.

        `settle` is called at the end of every transaction, before COMMIT: it writes what the jobs counted together.
        """
        self._connection = connection
        self._undone = undone
        self._settle = settle
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._room = asyncio.Semaphore(WAITING_WRITES)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="belino-writer", daemon=True)
        self._closed = False
        self._refusal = ""
        self._took = 0.0
        self._begun: float | None = None
        self._thread.start()

    async def write(self, work: Work[T]) -> T:
        """Run work in the next transaction; returns once that is on disk."""
        await self._room.acquire()
        if self._closed:
            self._room.release()
            raise StoreError("the store is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(work, future))
        return await future

    @property
    def state(self) -> DiskState:
        """The state of recent writes."""
        begun = self._begun
        running = 0.0 if begun is None else time.monotonic() - begun
        return DiskState(refusal=self._refusal, commit_seconds=max(self._took, running), waiting=self._jobs.qsize())

    async def close(self) -> None:
        """Finish queued writes, then stop."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while True:
            first = self._jobs.get()
            batch, last = self._gather(first)
            if batch:
                self._begun = time.monotonic()
                self._commit(batch)
                self._note_commit(batch, self._begun)
                self._tell(batch)
            if last:
                break

    def _note_commit(self, batch: list[_Job[Any]], begun: float) -> None:
        refused = (as_store_error(job.error) for job in batch if job.error is not None)
        # An error of one job says nothing about the disk.
        self._refusal = next((str(error) for error in refused if isinstance(error, StoreUnwritable)), "")
        self._took, self._begun = time.monotonic() - begun, None

    def _gather(self, first: _Job[Any] | None) -> tuple[list[_Job[Any]], bool]:
        batch: list[_Job[Any]] = []
        job = first
        while job is not None:
            batch.append(job)
            if len(batch) == BATCH:
                return batch, False
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return batch, False
        return batch, True

    def _commit(self, batch: list[_Job[Any]]) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in batch:
                job.result = job.work(connection)
            self._settle(connection)
            failpoint("store.commit.before")
            connection.execute("COMMIT")
            failpoint("store.commit.after")
        except Exception as error:  # noqa: BLE001  no error of a job may end the writer
            self._roll_back()
            if len(batch) == 1 or isinstance(as_store_error(error), StoreBusy | StoreReadOnly):
                for job in batch:
                    job.error = error
            else:
                self._commit_apart(batch)

    def _commit_apart(self, batch: list[_Job[Any]]) -> None:
        """Run a failed batch again, each job in its own savepoint."""
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in batch:
                self._run_apart(job)
            failpoint("store.commit.before")
            connection.execute("COMMIT")
            failpoint("store.commit.after")
        except Exception as error:  # noqa: BLE001  a failed commit fails every job of the batch
            self._roll_back()
            for job in batch:
                job.error = job.error or error

    def _run_apart(self, job: _Job[Any]) -> None:
        connection = self._connection
        connection.execute("SAVEPOINT one")
        try:
            job.result = job.work(connection)
            self._settle(connection)
        except Exception as error:
            self._undone()
            if not connection.in_transaction:
                raise  # SQLite rolled back the whole transaction (a full disk), with every job
            connection.execute("ROLLBACK TO one")
            job.error = error
        connection.execute("RELEASE one")

    def _roll_back(self) -> None:
        self._undone()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _tell(self, batch: list[_Job[Any]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._resolve, batch)
        except RuntimeError:
            return  # the event loop is closed, and with it every waiting caller

    def _resolve(self, batch: list[_Job[Any]]) -> None:
        for job in batch:
            self._room.release()
            if job.future.done():
                continue  # the caller was cancelled; its write is stored all the same
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(as_store_error(job.error))


class Readers:
    """A few read-only connections, each used by one thread at a time."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="belino-reader")
        self._closed = False
        self._open = 0

    async def read(self, work: Work[T]) -> T:
        """Run work on one consistent view of what is committed."""
        if self._closed:
            raise StoreError("the store is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._run, work)
        except sqlite3.Error as error:
            raise as_store_error(error) from error

    @property
    def pages(self) -> CacheSize:
        """The most that the open connections may cache; SQLite does not report the actual size to Python."""
        held = self._open * held_pages(self._database, READER_PAGES)
        return CacheSize(entries=self._open, bytes=held, most_bytes=READERS * READER_PAGES)

    async def close(self) -> None:
        """Finish running reads, then stop."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown)
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def _run(self, work: Work[T]) -> T:
        try:
            connection = self._idle.get_nowait()
        except Empty:
            connection = connect(self._database, read_only=True)
            self._open += 1
        try:
            connection.execute("BEGIN")
            return work(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._idle.put(connection)


def connect(database: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection whose commits survive a power cut."""
    mode = "ro" if read_only else "rw"
    connection = sqlite3.connect(
        f"{database.as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    if not read_only:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not reach the disk
        # A burst over 1 000 conversations touches more pages than SQLite's 2 MB hold, and the same ones again with
        # every batch: with a cache for them, and fewer checkpoints, it is a quarter faster.
        connection.execute(f"PRAGMA cache_size = -{WRITER_PAGES // 1024}")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        # Overwrites deleted content in pages that are written anyway.
        connection.execute("PRAGMA secure_delete = FAST")
    return connection


def held_pages(database: Path, most: int) -> int:
    """The bytes of pages that a connection can cache: not more than the database and its log have."""
    files = (database, database.with_name(f"{database.name}-wal"))
    return min(most, sum(file.stat().st_size for file in files if file.exists()))


def as_store_error(error: BaseException) -> BaseException:
    """An SQLite error as one of ours; anything else unchanged."""
    if isinstance(error, OSError):
        return store_error_of(error, "the state folder cannot be used")
    if not isinstance(error, sqlite3.Error):
        return error
    ours = _refusal(error, primary_code(error))
    ours.__cause__ = error
    return ours


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code of an error, without the extended part; None if it has none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _refusal(error: sqlite3.Error, code: int | None) -> StoreError:
    if code in _NO_ROOM:
        # A file system that runs full while it syncs reports an I/O error, as a failing disk does.
        what = "is full" if code == sqlite3.SQLITE_FULL else f"is full or fails ({error})"
        return StoreFull(f"the disk {what}; nothing was stored, free some space and offer it again")
    if code == sqlite3.SQLITE_READONLY:
        return StoreReadOnly("the state folder is read-only; nothing was stored, make it writable and offer it again")
    if code in _HELD:
        return StoreBusy("another process holds the database; nothing was stored, end it and offer it again")
    if code in CORRUPTION:
        return StoreDamaged(
            f"the database belino.db is damaged ({error}); do not delete it: stop the gateway, then `belino doctor "
            "--repair` salvages what can still be read, or `belino restore DIR` brings a backup back"
        )
    return StoreError(f"the database refused: {error}")


def store_error_of(error: OSError, what: str) -> StoreError:
    """A file system error as one of ours; `what` names the failed operation."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFull(f"{what}: the disk is full")
    if error.errno == errno.EROFS:
        return StoreReadOnly(f"{what}: the file system is read-only")
    return StoreError(f"{what}: {error.strerror}")
