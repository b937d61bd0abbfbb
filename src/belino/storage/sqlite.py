"""The SQLite engine: one writer thread with group commit, and a few reader connections.

A batch is what queued during the previous commit: there is no timer, and a single write commits at once. No caller gets
a result before COMMIT has returned. Only one process has the database open, so row ids and counters are cached from one
transaction to the next, and statements are bound to the connection directly.
"""

import asyncio
import os
import re
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, cast

from belino.domain.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnwritable,
)
from belino.domain.failpoints import failpoint
from belino.domain.outcome import CacheSize
from belino.storage.database import DiskState, Memo, Work
from belino.storage.disk import store_error_of
from belino.storage.migrations import STEPS
from belino.storage.sqlite_text import SqliteText

BATCH = 500
WRITER_PAGES, READER_PAGES = 16 * 1024 * 1024, 2_000 * 1024
"""Bytes of pages that a connection may cache; a reader's is SQLite's own default."""
WAITING_WRITES = 2_000
READERS = 3
WAITING_MESSAGES = 1_000
"""Messages that a slow listener may leave unread; then the oldest is dropped."""

T = TypeVar("T")
M = TypeVar("M", bound=Memo)

_ERROR_CODE = re.compile(r"error code=(\d+)")
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
CORRUPTION = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""Primary result codes by which SQLite reports a damaged file; every other code says nothing about its content."""
_HELD = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
BUSY_MS = 1_500
"""How long another process may lock the database before a write is refused; platforms wait for three seconds."""


class SqliteTx:
    """A transaction on one connection."""

    __slots__ = ("_connection", "_memos", "execute", "many")

    execute: Callable[..., sqlite3.Cursor]
    many: Callable[..., sqlite3.Cursor]

    def __init__(self, connection: sqlite3.Connection, text: SqliteText | None = None) -> None:
        """`text` if the database has escaped text, or the arguments may need it."""
        self._connection = connection
        self._memos: dict[type[Any], Any] = {}
        self.bind_directly()
        if text is not None:
            self.escape(text)

    def escape(self, text: SqliteText) -> None:
        """Escape arguments, and unescape what is read."""
        connection = self._connection
        connection.text_factory = text.read
        self.execute = lambda sql, args=(): connection.execute(sql, text.escaped(args))
        self.many = lambda sql, rows: connection.executemany(sql, map(text.escaped, rows))

    def bind_directly(self) -> None:
        """Pass arguments to SQLite, and take what it returns, as they are."""
        self._connection.text_factory = str
        self.execute, self.many = self._connection.execute, self._connection.executemany

    def memo(self, kind: type[M]) -> M:
        found = self._memos.get(kind)
        if found is None:
            found = self._memos[kind] = kind()
        return cast("M", found)

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """What the memos hold."""
        return {name: size for memo in tuple(self._memos.values()) for name, size in memo.cache_sizes().items()}

    def flush(self) -> None:
        """Write what the memos still hold."""
        for memo in self._memos.values():
            memo.flush(self)

    def undo(self) -> None:
        """Tell the memos that the transaction is rolled back."""
        for memo in self._memos.values():
            memo.undo()


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

    def __init__(self, connection: sqlite3.Connection, text: SqliteText) -> None:
        self._connection = connection
        self._text = text
        self._escapes_first = False
        """Whether the current transaction is the first to store escaped text."""
        self._tx = SqliteTx(connection)
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._room = asyncio.Semaphore(WAITING_WRITES)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="belino-writer", daemon=True)
        self._closed = False
        self._refusal = ""
        self._took = 0.0
        self._begun: float | None = None
        self._thread.start()

    def escape_text(self) -> None:
        """Read and write escaped text, before the first transaction."""
        self._tx.escape(self._text)

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

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """What the transactions' memos hold."""
        return self._tx.cache_sizes()

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
                job.result = job.work(self._tx)
            self._tx.flush()
            failpoint("store.commit.before")
            connection.execute("COMMIT")
            failpoint("store.commit.after")
        except Exception as error:  # noqa: BLE001  no error of a job may end the writer
            self._roll_back()
            is_alone = len(batch) == 1 and not self._may_escape(error)
            if is_alone or isinstance(as_store_error(error), StoreBusy | StoreReadOnly):
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
                job.error = self._run_apart(job)
                if self._may_escape(job.error):
                    job.error = self._run_escaped(job)
            failpoint("store.commit.before")
            connection.execute("COMMIT")
            self._escapes_first = False
            failpoint("store.commit.after")
        except Exception as error:  # noqa: BLE001  a failed commit fails every job of the batch
            self._roll_back()
            for job in batch:
                job.error = job.error or error

    def _run_apart(self, job: _Job[Any], *, escapes_first: bool = False) -> Exception | None:
        connection = self._connection
        connection.execute("SAVEPOINT one")
        error: Exception | None = None
        try:
            if escapes_first:
                self._text.store(connection)
            job.result = job.work(self._tx)
            self._tx.flush()
        except Exception as failure:
            self._tx.undo()
            if not connection.in_transaction:
                raise  # SQLite rolled back the whole transaction (a full disk), with every job
            connection.execute("ROLLBACK TO one")
            error = failure
        connection.execute("RELEASE one")
        return error

    def _may_escape(self, error: Exception | None) -> bool:
        """Whether escaped text may help: the driver refused a text, or the work failed to encode one itself."""
        return isinstance(error, UnicodeEncodeError) and not self._text.in_use

    def _run_escaped(self, job: _Job[Any]) -> Exception | None:
        """Run a job with escaped text, the first of this database."""
        # Before the commit: a reader that sees the first escaped text must know of it.
        self._text.in_use = self._escapes_first = True
        self._tx.escape(self._text)
        error = self._run_apart(job, escapes_first=True)
        if error is not None:
            self._escape_no_more()
        return error

    def _escape_no_more(self) -> None:
        self._text.in_use = self._escapes_first = False
        self._tx.bind_directly()

    def _roll_back(self) -> None:
        self._tx.undo()
        if self._escapes_first:
            self._escape_no_more()
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

    def __init__(self, database: Path, text: SqliteText) -> None:
        self._database = database
        self._text = text
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
            return self._read(connection, work)
        finally:
            self._idle.put(connection)

    def _read(self, connection: sqlite3.Connection, work: Work[T]) -> T:
        if self._text.in_use:
            return _read_once(connection, work, self._text)
        with suppress(UnicodeEncodeError):
            result = _read_once(connection, work)
            if not self._text.in_use:
                return result
        # A text in the arguments was refused, or the first escaped text was stored before this view was taken.
        return _read_once(connection, work, self._text)


def _read_once(connection: sqlite3.Connection, work: Work[T], text: SqliteText | None = None) -> T:
    try:
        connection.execute("BEGIN")
        return work(SqliteTx(connection, text))
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class SqliteDatabase:
    """One SQLite file, used by this process only; `held` closes the connection and what protects it."""

    def __init__(self, path: Path, connection: sqlite3.Connection, held: ExitStack) -> None:
        self.path = path
        self._connection = connection
        self._held = held
        self._text = SqliteText()
        self._writer = Writer(connection, self._text)
        self._readers = Readers(path, self._text)
        self._listeners: dict[str, set[asyncio.Queue[str]]] = {}
        self.write = self._writer.write
        self.read = self._readers.read

    @property
    def disk(self) -> DiskState:
        return self._writer.state

    async def migrate(self) -> None:
        await asyncio.to_thread(migrate, self._connection)
        self._text.load(self._connection)
        if self._text.in_use:
            self._writer.escape_text()

    async def notify(self, topic: str, message: str) -> None:
        for queue in self._listeners.get(topic, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(message)

    async def listen(self, topic: str) -> AsyncIterator[str]:
        queue: asyncio.Queue[str] = asyncio.Queue(WAITING_MESSAGES)
        self._listeners.setdefault(topic, set()).add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._listeners[topic].discard(queue)

    async def check(self) -> str:
        try:
            with closing(connect(self.path, read_only=True)) as connection:
                looking = asyncio.get_running_loop().run_in_executor(None, quick_check, connection)
                try:
                    return await asyncio.shield(looking)
                except asyncio.CancelledError:
                    connection.interrupt()
                    looking.add_done_callback(lambda done: done.exception())
                    await asyncio.wait([looking])
                    raise
        except sqlite3.Error as error:
            if primary_code(error) in CORRUPTION:
                return str(error)
            raise StoreError(why_unreadable(error, self.path)) from error

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        held = held_pages(self.path, WRITER_PAGES)
        return {
            **self._writer.cache_sizes(),
            "sqlite_reader_pages": self._readers.pages,
            "sqlite_writer_pages": CacheSize(entries=1, bytes=held, most_bytes=WRITER_PAGES),
        }

    async def close(self) -> None:
        await self._writer.close()
        await self._readers.close()
        self._held.close()


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


@contextmanager
def snapshot(database: Path) -> Iterator[SqliteTx]:
    """One consistent state of a database file, at this program's version; an older one is migrated in memory."""
    try:
        with closing(connect(database.absolute(), read_only=True)) as connection:
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            if version < len(STEPS):
                with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
                    connection.backup(copy)
                    copy.row_factory = sqlite3.Row
                    migrate(copy)
                    yield _tx_of(copy)
                return
            migrate(connection)  # refuses a database that a newer belino wrote
            connection.execute("BEGIN")
            yield _tx_of(connection)
    except sqlite3.Error as error:
        raise as_store_error(error) from error


def _tx_of(connection: sqlite3.Connection) -> SqliteTx:
    text = SqliteText()
    text.load(connection)
    return SqliteTx(connection, text if text.in_use else None)


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


def quick_check(connection: sqlite3.Connection, *, with_indexes: bool = False) -> str:
    """The first corruption that `PRAGMA quick_check` reports, or empty; sqlite3.Error if the check itself failed.

    `with_indexes` compares every index with its table, too, which takes much longer.
    """
    try:
        pragma = "integrity_check" if with_indexes else "quick_check"
        found: str = connection.execute(f"PRAGMA {pragma}(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if primary_code(error) in CORRUPTION:
            return str(error)
        raise
    # A page that could not be read is reported as a row, too; its code tells a damaged page from a failed read.
    code = _ERROR_CODE.search(found)
    if code is not None and int(code.group(1)) & 0xFF not in CORRUPTION:
        raise sqlite3.OperationalError(found)
    return "" if found == "ok" else found


def why_unreadable(error: sqlite3.Error, database: Path) -> str:
    """The reason that a database could not be checked; the system's own if SQLite only says that it could not."""
    if primary_code(error) == sqlite3.SQLITE_CANTOPEN:
        try:
            os.close(os.open(database, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW))
        except OSError as reason:
            return f"{error}: {reason.strerror}"
    return str(error)


def migrate(connection: sqlite3.Connection, steps: tuple[str, ...] = STEPS) -> None:
    """Migrate a database to this program's version; each step is atomic."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(steps):
        raise StoreTooNew(
            f"the database is of version {version} and this belino knows version {len(steps)}; "
            "use the newer belino that wrote it, or another state folder"
        )
    for number in range(version, len(steps)):
        # executescript commits an open transaction first, so the script has its own.
        failpoint("migrate.step.before")
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{steps[number]}\nPRAGMA user_version = {number + 1};\nCOMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        failpoint("migrate.step.after")
