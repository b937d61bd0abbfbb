"""Ref → blob: once at a time, bounded, at most once ever, every end an outcome."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

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
from belino.domain.media import Blob, MediaRef
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.ports import Clock
from belino.domain.store import Blobs, Library, RefRecord
from belino.media.placeholder import format_size
from belino.net.stream import bounded

AT_ONCE = 8
OPEN_SECONDS = 30.0
STREAM_SECONDS = 600.0

OpenMedia = Callable[[MediaRef], AbstractAsyncContextManager[AsyncIterator[bytes]]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaConfig:
    """How much media may cost."""

    max_bytes: int = field(
        default=100 * 1024 * 1024, metadata={"says": "The largest file, in bytes; a platform's lower limit wins."}
    )
    channel_bytes_per_day: int = field(
        default=500 * 1024 * 1024, metadata={"says": "How many bytes one channel may fetch within 24 hours."}
    )
    image_block_bytes: int = field(
        default=1024 * 1024, metadata={"says": "The largest picture handed to an agent as a picture; above, as a file."}
    )


class Fetcher:
    """Keeps the promise of a ref."""

    def __init__(
        self, library: Library, blobs: Blobs, open_media: OpenMedia, config: MediaConfig, clock: Clock
    ) -> None:
        self._library = library
        self._blobs = blobs
        self._open_media = open_media
        self._config = config
        self._clock = clock
        self._room = asyncio.Semaphore(AT_ONCE)
        self._turnstiles: dict[str, _Turnstile] = {}
        self._allowances: dict[ConversationKey, _Allowance] = {}

    async def fetch(self, record: RefRecord) -> Blob:
        """The bytes of a ref; a MediaError says why they cannot be had. A second caller waits for the first."""
        if blob := await self._held(record):
            return blob
        turnstile = self._turnstiles.setdefault(record.ref.id, _Turnstile())
        turnstile.users += 1
        try:
            async with turnstile.lock:
                return await self._fetch_alone(record)
        finally:
            turnstile.users -= 1
            if not turnstile.users:
                self._turnstiles.pop(record.ref.id, None)

    async def _fetch_alone(self, record: RefRecord) -> Blob:
        current = await self._library.ref(record.conversation.whole_channel, record.ref.id)
        if current is None:
            raise MediaNotFound(f"{record.ref.id} is not known here")
        if blob := await self._held(current):
            return blob
        try:
            self._check(current)
            async with self._room, self._allowance(current) as allowed:
                blob = await self._stream(current.ref, allowed)
                await self._library.end_media(current.ref.id, MediaOutcome.HELD, blob=blob)
                return blob
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
        return await self._blobs.blob(record.ref.sha256) if record.ref.sha256 else None

    def _check(self, record: RefRecord) -> None:
        """Refuse without a platform call what cannot be had."""
        ref, limit = record.ref, self._config.max_bytes
        match record.outcome:
            case MediaOutcome.EXPIRED:
                raise MediaExpired(record.reason or f"the platform no longer has {ref.id}")
            case MediaOutcome.NOT_FOUND:
                raise MediaNotFound(record.reason or f"the platform does not know {ref.id}")
            case MediaOutcome.REFUSED:
                raise MediaRefused(record.reason or f"{ref.id} was refused")
            case MediaOutcome.TOO_LARGE if ref.size is None:
                raise MediaTooLarge(record.reason or f"{ref.id} is over {format_size(limit)}", limit=limit)
        if ref.size is not None and ref.size > limit:
            raise MediaTooLarge(f"{format_size(ref.size)} is over {format_size(limit)}", limit=limit)

    @asynccontextmanager
    async def _allowance(self, record: RefRecord) -> AsyncIterator[int]:
        """Bytes set aside from what the channel may still fetch today, so that fetches in parallel cannot overdraw."""
        channel = record.conversation.whole_channel
        allowance = self._allowances.setdefault(channel, _Allowance())
        allowance.users += 1
        taken = 0
        try:
            async with allowance.changed:
                while not (taken := await self._take(channel, allowance, record.ref)):
                    await allowance.changed.wait()
                allowance.reserved += taken
            yield taken
        finally:
            allowance.users -= 1
            allowance.reserved -= taken
            if not allowance.users:
                self._allowances.pop(channel, None)
            elif taken:
                async with allowance.changed:
                    allowance.changed.notify_all()

    async def _take(self, channel: ConversationKey, allowance: "_Allowance", ref: MediaRef) -> int:
        """How many bytes this fetch may take now; 0 while others hold what is left."""
        limit = self._config.channel_bytes_per_day
        left = limit - await self._library.bytes_fetched(channel, self._clock.now() - timedelta(days=1))
        if left <= 0 or (ref.size is not None and ref.size > left):
            raise OverDailyLimit(f"the channel has {format_size(max(left, 0))} left for today", limit=limit)
        wanted = min(self._config.max_bytes, left)
        return wanted if allowance.reserved + wanted <= left else 0

    async def _stream(self, ref: MediaRef, allowed: int) -> Blob:
        async with _opened(self._open_media(ref)) as chunks:
            within = bounded(chunks, limit=allowed, deadline_seconds=STREAM_SECONDS, clock=self._clock)
            try:
                return await self._blobs.keep(within, mime=ref.mime, limit=allowed)
            except MediaTooLarge as error:
                if error.limit == allowed < self._config.max_bytes:
                    limit = self._config.channel_bytes_per_day
                    raise OverDailyLimit("the file is larger than what is left for today", limit=limit) from error
                raise


class _Turnstile:
    """One ref being fetched, and how many wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class _Allowance:
    """What fetches under way have set aside of a channel's bytes for today."""

    def __init__(self) -> None:
        self.changed = asyncio.Condition()
        self.reserved = 0
        self.users = 0


@asynccontextmanager
async def _opened(
    opening: AbstractAsyncContextManager[AsyncIterator[bytes]],
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The stream, opened within its time."""
    with _platform_failures():
        async with asyncio.timeout(OPEN_SECONDS) as timer, opening as chunks:
            timer.reschedule(None)
            async with aclosing(_watched(chunks)) as watched:
                yield watched


async def _watched(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The same chunks; a stream that breaks is the platform's failure, whoever reads it."""
    with _platform_failures():
        async for chunk in chunks:
            yield chunk


@contextmanager
def _platform_failures() -> Iterator[None]:
    """What sockets throw becomes an AdapterError, and so does a plugin's own bug: the item must have its outcome."""
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
