"""Fetch a blob for a ref, at most once: bounded, typed by its content, with an outcome; small ones stay in memory."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    aclosing,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from weakref import WeakValueDictionary

from belino.aio.retry import backoff
from belino.domain.errors import (
    AdapterError,
    BelinoError,
    MediaError,
    MediaExpired,
    MediaNotFound,
    MediaRefused,
    MediaTooLarge,
    OverDailyLimit,
    StoreError,
)
from belino.domain.failpoints import failpoint
from belino.domain.media import Blob, MediaKind, MediaRef, OpenBlob
from belino.domain.outcome import CacheSize, MediaOutcome
from belino.domain.ports import Clock
from belino.domain.stored import RefRecord
from belino.domain.units import format_size
from belino.media.daily_limit import DailyLimits, Meter
from belino.net.stream import BrokenOff, bounded
from belino.storage.blob_verbs import BlobVerbs
from belino.storage.library_verbs import LibraryVerbs

if TYPE_CHECKING:
    from cachebox import LRUCache

log = logging.getLogger(__name__)

AT_ONCE = 8
PER_ACCOUNT = 3
OPEN_SECONDS = 30.0
STREAM_SECONDS = 600.0
BEGINNINGS = 3
"""How often a body that cannot be resumed is started, at most."""
HEAD_BYTES = 64 * 1024
WEB_PAGE = "the platform sent a web page, perhaps a login, instead of the file"

OpenMedia = Callable[[MediaRef], AbstractAsyncContextManager[AsyncIterator[bytes]]]
Progress = Callable[[int, int | None], None]
"""(bytes so far, total bytes if known)."""

CACHE_SHARE = 10
"""One file may take at most a tenth of the cache, so that it does not evict all others."""

_PAGES = ("text/html", "application/xhtml+xml")
_PAGE_NAMES = (".html", ".htm", ".xhtml", ".mht", ".mhtml", ".txt", ".xml", ".svg")
# A file declared as one of these may be an HTML page.
_MAY_BE_PAGES = ("text/", "application/octet-stream", "application/xhtml", "application/xml", "message/")


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaConfig:
    """Limits of media."""

    max_bytes: int = field(
        default=100 * 1024 * 1024, metadata={"says": "The largest file, in bytes; a platform's lower limit wins."}
    )
    channel_bytes_per_day: int = field(
        default=500 * 1024 * 1024,
        metadata={"says": "The most bytes that one channel may fetch and upload within 24 hours."},
    )
    uploads_bytes: int = field(
        default=5 * 1024**3,
        metadata={"says": "The most bytes of uploads that are not in a message yet, for all channels together."},
    )
    image_block_bytes: int = field(
        default=1024 * 1024,
        metadata={"says": "The largest picture handed to an agent as a picture, in bytes; a larger one is shrunk."},
    )
    image_block_side: int = field(
        default=1568,
        metadata={
            "says": "The longer side of a picture handed to an agent, in pixels; a larger one is shrunk.",
            "least": 16,
        },
    )
    max_pixels: int = field(
        default=40_000_000,
        metadata={
            "says": "The most pixels of a picture or frame that are held at once; what is shrunk while it is loaded, "
            "such as a photograph, may have more.",
            "least": 1_000_000,
            "most": 100_000_000,
        },
    )
    memory_bytes: int = field(
        default=50 * 1024 * 1024, metadata={"says": "How many bytes of small files are kept in memory; 0 keeps none."}
    )
    disk_bytes: int = field(
        default=5 * 1024**3,
        metadata={"says": "The most bytes of media on disk; above it, files that can be fetched again are deleted."},
    )
    retention_days: int = field(
        default=30,
        metadata={
            "says": "The days for which media can be fetched and its bytes are kept; 0 means for ever.",
            "most": 36_500,
        },
    )
    ref_ttl_minutes: int = field(
        default=30,
        metadata={
            "says": "How long an agent in a container may fetch media, in minutes after it was sent (`agent.ipc`).",
            "least": 1,
            "most": 52_560_000,
        },
    )
    prefetch: Literal["never", "message"] = field(
        default="never",
        metadata={
            "says": "`message` puts the files of a message into the session's folder before its turn, for agents that "
            "cannot call tools."
        },
    )
    sandbox: Literal["auto", "required"] = field(
        default="auto",
        metadata={"says": "`required` decodes nothing unless the sandbox is full; `belino doctor` shows its level."},
    )


class Fetcher:
    """Fetches the bytes of a ref."""

    def __init__(
        self,
        library: LibraryVerbs,
        blobs: BlobVerbs,
        open_media: OpenMedia,
        config: MediaConfig,
        clock: Clock,
        counts: Counter[str] | None = None,
    ) -> None:
        """`counts` counts cache hits."""
        self._library = library
        self._blobs = blobs
        self._open_media = open_media
        self._config = config
        self._clock = clock
        self._memory = MediaCache(config.memory_bytes, Counter() if counts is None else counts, blobs.local)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._accounts: dict[tuple[str, str], asyncio.Semaphore] = {}
        self._turnstiles: dict[str, _Turnstile] = {}
        self._same_files: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = WeakValueDictionary()
        self.allowances = DailyLimits(library, clock, a_day=config.channel_bytes_per_day, a_fetch=config.max_bytes)
        self._pinned: Counter[str] = Counter()
        self._held_bytes: int | None = None

    async def fetch(self, record: RefRecord, *, progress: Progress | None = None) -> Blob:
        """The bytes of a ref; a MediaError says why they are unavailable. Concurrent callers share one fetch."""
        if blob := await self._held(record):
            return blob
        turnstile = self._turnstiles.setdefault(record.ref.id, _Turnstile())
        turnstile.users += 1
        before = turnstile.failure
        with turnstile.watched(progress):
            try:
                async with turnstile.lock:
                    if turnstile.failure is not None and turnstile.failure is not before:
                        raise turnstile.failure.with_traceback(None)
                    return await self._fetch_alone(record, turnstile)
            except BelinoError as error:
                turnstile.failure = error
                raise
            finally:
                turnstile.users -= 1
                if not turnstile.users:
                    self._turnstiles.pop(record.ref.id, None)

    async def read(self, blob: Blob, limit: int) -> bytes:
        """The first `limit` bytes of a blob, from the cache if possible."""
        return await self._memory.read(blob, limit)

    @property
    def memory_size(self) -> CacheSize:
        """How many bytes of files are cached."""
        return self._memory.size

    def pin(self, sha256: str) -> AbstractContextManager[None]:
        """Inside the block these blobs are in use: they are neither evicted nor expired."""
        return self._pin(sha256)

    @contextmanager
    def _pin(self, sha256: str) -> Iterator[None]:
        self._pinned[sha256] += 1
        try:
            yield
        finally:
            self._pinned[sha256] -= 1
            if not self._pinned[sha256]:
                del self._pinned[sha256]

    async def sweep(self) -> int:
        """Expire media by age, and evict what exceeds the disk limit; returns how many refs expired."""
        aged = 0
        if self._config.retention_days:
            before = self._clock.now() - timedelta(days=self._config.retention_days)
            aged = await self._blobs.expire_media(before, keep=self._pinned)
        self._held_bytes = await self._blobs.evict(self._config.disk_bytes, keep=self._pinned)
        return aged

    async def purge(self) -> tuple[str, ...]:
        """Delete the bytes of deleted messages, except those in use; returns the deleted ones."""
        gone = await self._blobs.purge(keep=self._pinned)
        for sha256 in gone:
            self._memory.forget(sha256)
        if gone:
            self._held_bytes = None
        return gone

    async def _fetch_alone(self, record: RefRecord, turnstile: "_Turnstile") -> Blob:
        current = await self._library.ref(record.conversation.whole_channel, record.ref.id)
        if current is None:
            raise MediaNotFound(f"{record.ref.id} is not known here")
        if blob := await self._held(current):
            return blob
        try:
            self._check(current)
            failpoint("fetch.begin")
            return await self._once_per_account(current, turnstile)
        except BelinoError as error:
            outcome, reason = _end_of(error)
            await self._library.end_media(current.ref.id, outcome, reason)
            if isinstance(error, MediaError):
                raise
            log.warning("fetching %s failed: %s", current.ref.id, type(error).__name__)
            if isinstance(error, StoreError):
                raise
            raise MediaError(f"{current.ref.id} could not be fetched: {reason}") from error

    async def _held(self, record: RefRecord) -> Blob | None:
        sha256 = record.ref.sha256
        if sha256 is None or record.outcome is MediaOutcome.EXPIRED:
            return None
        with self.pin(sha256):
            blob = await self._blobs.blob(sha256)
            if blob is not None:
                await self._blobs.touch(sha256)
            return blob

    def _check(self, record: RefRecord) -> None:
        """Refuse what is unavailable without a platform call."""
        ref, limit = record.ref, self._config.max_bytes
        match record.outcome:
            case MediaOutcome.EXPIRED:
                raise MediaExpired(record.reason or f"the platform no longer has {ref.id}")
            case MediaOutcome.NOT_FOUND:
                raise MediaNotFound(record.reason or f"the platform does not know {ref.id}")
            case MediaOutcome.REFUSED if record.reason != WEB_PAGE:  # the operator may have fixed the login since
                raise MediaRefused(record.reason or f"{ref.id} was refused")
            case MediaOutcome.TOO_LARGE if ref.size is None:
                raise MediaTooLarge(record.reason or f"{ref.id} is over {format_size(limit)}", limit=limit)
        if ref.size is not None and ref.size > limit:
            raise MediaTooLarge(f"{format_size(ref.size)} is over {format_size(limit)} (media.max_bytes)", limit=limit)

    async def _once_per_account(self, record: RefRecord, turnstile: "_Turnstile") -> Blob:
        """The bytes that the account has of the same file; without them, those of the platform."""
        ref = record.ref
        if ref.file_id is None:
            return await self._begin(record, turnstile)
        same = self._same_files.setdefault((ref.platform, ref.account, ref.file_id), asyncio.Lock())
        async with same:
            return await self._reused(ref, ref.file_id) or await self._begin(record, turnstile)

    async def _reused(self, ref: MediaRef, file_id: str) -> Blob | None:
        blob = await self._blobs.blob_of_file(ref.platform, ref.account, file_id)
        if blob is None:
            return None
        judge = _Inspector(ref)
        with self.pin(blob.sha256):
            head = await self._memory.read(blob, HEAD_BYTES)
            judge.look(head, whole=blob.size <= HEAD_BYTES)
            held = await self._library.end_media(ref.id, MediaOutcome.HELD, judge.lies, blob=blob, reused=True)
        return blob if held else None

    @asynccontextmanager
    async def _slot(self, ref: MediaRef) -> AsyncIterator[None]:
        """A slot for one more stream: first of this account, so that a slow platform leaves room for the others."""
        account = self._accounts.setdefault((ref.platform, ref.account), asyncio.Semaphore(PER_ACCOUNT))
        async with account, self._room:
            yield

    async def _begin(self, record: RefRecord, turnstile: "_Turnstile") -> Blob:
        """Fetch, store and report the bytes; a body that broke off for good is restarted a few times."""
        ref, channel = record.ref, record.conversation.whole_channel
        with ExitStack() as pins:
            for attempt in range(1, BEGINNINGS + 1):
                try:
                    judge = _Inspector(ref)
                    async with self.allowances.take(channel, ref.size) as meter, self._slot(ref):
                        blob = await self._stream(ref, meter, judge, turnstile)
                        pins.enter_context(self.pin(blob.sha256))  # it has no users yet, and counting takes a moment
                    break
                except BrokenOff:
                    if attempt == BEGINNINGS:
                        raise
                    await self._clock.sleep(backoff(attempt))
            failpoint("fetch.row.before")
            if not await self._library.end_media(ref.id, MediaOutcome.HELD, judge.lies, blob=blob):
                raise MediaNotFound(f"{ref.id} was deleted while it was fetched")
            failpoint("fetch.row.after")
            await self._make_room(blob.size)
        return blob

    async def _stream(self, ref: MediaRef, meter: Meter, judge: "_Inspector", turnstile: "_Turnstile") -> Blob:
        limit = self._config.max_bytes
        async with _opened(self._open_media(ref)) as chunks:
            counted = meter.chunks(chunks)
            within = bounded(counted, limit=limit, deadline_seconds=STREAM_SECONDS, clock=self._clock)
            seen = _judged(within, judge, lambda count: _came(turnstile, count, ref.size))
            return await self._blobs.keep(seen, mime=judge.mime, limit=limit)

    async def _make_room(self, arrived: int) -> None:
        if self._held_bytes is not None:
            self._held_bytes += arrived
        if self._held_bytes is None or self._held_bytes > self._config.disk_bytes:
            self._held_bytes = await self._blobs.evict(self._config.disk_bytes, keep=self._pinned)


class _Turnstile:
    """A running fetch, its number of waiters, and their progress callbacks."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.failure: BelinoError | None = None
        """The error of the last fetch, if any: its waiters need not ask the platform again."""
        self._watchers: list[Progress] = []

    @contextmanager
    def watched(self, progress: Progress | None) -> Iterator[None]:
        if progress is None:
            yield
            return
        self._watchers.append(progress)
        try:
            yield
        finally:
            self._watchers.remove(progress)

    def tell(self, count: int, total: int | None) -> None:
        for watcher in self._watchers:
            watcher(count, total)


def _came(turnstile: _Turnstile, count: int, total: int | None) -> None:
    failpoint("fetch.bytes")
    turnstile.tell(count, total)


def _end_of(error: BelinoError) -> tuple[MediaOutcome, str]:
    match error:
        case MediaTooLarge():
            return MediaOutcome.TOO_LARGE, str(error)
        case OverDailyLimit():
            return MediaOutcome.OVER_DAILY_LIMIT, str(error)
        case MediaExpired():
            return MediaOutcome.EXPIRED, str(error)
        case MediaNotFound():
            return MediaOutcome.NOT_FOUND, str(error)
        case MediaRefused():
            return MediaOutcome.REFUSED, str(error)
        case AdapterError() | StoreError() | MediaError():
            return MediaOutcome.FAILED, str(error)
        case _:
            return MediaOutcome.FAILED, type(error).__name__


class _Inspector:
    """The type of a ref's file by its first bytes, and whether it is acceptable."""

    def __init__(self, ref: MediaRef) -> None:
        self._ref = ref
        self._mime = ref.mime
        self.lies = ""
        """Claims about the file that its bytes contradict."""

    def look(self, head: bytes, *, whole: bool) -> None:
        """MediaRefused for a web page instead of a file; AdapterError for an empty file that should not be."""
        from belino.media.sniff import sniff  # on the first fetch: it costs 50 ms

        if not head and self._ref.size:
            raise AdapterError("the platform sent an empty file")
        found = sniff(head, name=self._ref.file_name, declared=self._ref.mime, whole=whole)
        if found.mime in _PAGES and not self._may_be_page():
            raise MediaRefused(WEB_PAGE)
        self._mime, self.lies = found.mime, found.lies

    def mime(self) -> str:
        """The type by content; the declared type before any bytes arrived."""
        return self._mime

    def _may_be_page(self) -> bool:
        declared = self._ref.mime.strip().lower()
        named = (self._ref.file_name or "").lower().endswith(_PAGE_NAMES)
        return self._ref.kind is MediaKind.DOCUMENT and (named or not declared or declared.startswith(_MAY_BE_PAGES))


async def _judged(chunks: AsyncIterator[bytes], judge: _Inspector, tell: Callable[[int], None]) -> AsyncIterator[bytes]:
    """The same bytes; the first are held back until they are inspected."""
    count = 0
    head: list[bytes] | None = []
    async for chunk in chunks:
        count += len(chunk)
        tell(count)
        if head is None:
            yield chunk
            continue
        head.append(chunk)
        if count >= HEAD_BYTES:
            first, head = b"".join(head), None
            judge.look(first[:HEAD_BYTES], whole=False)
            yield first
    if head is not None:
        first = b"".join(head)
        judge.look(first, whole=True)
        yield first


@asynccontextmanager
async def _opened(
    opening: AbstractAsyncContextManager[AsyncIterator[bytes]],
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The stream, opened within the time limit."""
    with _platform_failures():
        async with asyncio.timeout(OPEN_SECONDS) as timer, opening as chunks:
            timer.reschedule(None)
            async with aclosing(_watched(chunks)) as watched:
                yield watched


async def _watched(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The same chunks; a stream that breaks is the platform's failure, not the reader's."""
    with _platform_failures():
        async for chunk in chunks:
            yield chunk


@contextmanager
def _platform_failures() -> Iterator[None]:
    """Socket errors become an AdapterError, and so does a plugin's own bug: the item must have its outcome."""
    try:
        yield
    except BelinoError:
        raise
    except TimeoutError as error:
        raise AdapterError("the platform did not answer in time") from error
    except OSError as error:
        raise AdapterError(f"the platform broke off ({type(error).__name__})") from error
    except Exception as error:
        raise AdapterError(f"the adapter broke ({type(error).__name__})") from error


class MediaCache:
    """The bytes of recently read blobs, by hash: limited by bytes, the least recently used evicted first."""

    def __init__(self, limit: int, counts: Counter[str], open_blob: OpenBlob) -> None:
        self._limit = limit
        self._counts = counts
        self._open_blob = open_blob
        self._cache: LRUCache[str, bytes] | None = None

    async def read(self, blob: Blob, limit: int) -> bytes:
        """The first `limit` bytes of a blob."""
        whole = blob.size <= self._limit // CACHE_SHARE
        cache = self._opened() if whole else None
        held = None if cache is None else cache.get(blob.sha256)
        self._counts["misses" if held is None else "hits"] += 1
        if held is None:
            async with self._open_blob(blob.sha256) as path:
                held = await asyncio.to_thread(_head, path, blob.size if whole else limit)
            if cache is not None:
                cache.insert(blob.sha256, held)
        return held[:limit]

    @property
    def size(self) -> CacheSize:
        if self._cache is None:
            return CacheSize(entries=0, bytes=0, most_bytes=self._limit)
        return CacheSize(entries=len(self._cache), bytes=self._cache.current_size(), most_bytes=self._limit)

    def forget(self, sha256: str) -> None:
        """Drop these bytes from the cache."""
        if self._cache is not None:
            self._cache.pop(sha256, None)

    def _opened(self) -> "LRUCache[str, bytes]":
        if self._cache is None:
            from cachebox import LRUCache  # on the first read: it costs 60 ms

            self._cache = LRUCache(self._limit, getsizeof=lambda _, held: len(held))
        return self._cache


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError as error:
        raise MediaNotFound("the bytes are not here any more") from error
