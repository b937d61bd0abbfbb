"""Stream of bounded chunks: no body is endless, oversized or kept open by a trickle."""

import binascii
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, closing
from random import Random
from typing import TypeVar

from belino.aio.idle_timeout import IdleTimeout
from belino.aio.retry import backoff
from belino.domain.errors import (
    AdapterError,
    AddressRefused,
    MediaError,
    MediaRefused,
    MediaTooLarge,
    RateLimited,
    Unauthorized,
    Undeliverable,
)
from belino.domain.ports import Clock, HttpAnswer
from belino.net.client import error_for, header

MIN_RATE = 10 * 1024
RATE_WINDOW = 20.0

ATTEMPTS = 3
# People do not wait longer than this for a picture.
LONGEST_WAIT = 15.0
# Less than this is no progress: a server could send a file byte by byte, a request for each.
PROGRESS = 1 << 20
RETRIED = frozenset({408, 429, 500, 502, 503, 504})

_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_LENGTH = re.compile(r"\d{1,18}")
_DICE = Random()  # noqa: S311 - jitter, not a secret

EVENT_BYTES = 16 * 1024 * 1024

T = TypeVar("T")
OpenAt = Callable[[int, str | None], AbstractAsyncContextManager[HttpAnswer]]
"""(offset, validator) → the answer to a GET of a fresh URL, with `range_headers(offset, validator)`."""


class BrokenOff(AdapterError):
    """The body broke off and cannot be resumed; the received part is useless, and a restart may work."""


_LASTING = (AddressRefused, Unauthorized, Undeliverable, BrokenOff)


async def bounded(
    chunks: AsyncIterator[bytes],
    *,
    limit: int,
    deadline_seconds: float,
    clock: Clock,
    min_rate: float = MIN_RATE,
) -> AsyncIterator[bytes]:
    """The same chunks: at most `limit` bytes in all (MediaTooLarge), within the deadline, never slower than `min_rate`.

    The rate is checked once per 20 seconds spent waiting for bytes, so a pause is tolerated and a slow reader is not
    blamed on the platform. Too slow or too late is an AdapterError.
    """
    deadline = clock.monotonic() + deadline_seconds
    late = f"the file did not arrive within {deadline_seconds:g} seconds"
    slow = f"the file came slower than {min_rate:g} bytes per second"
    count = in_window = 0
    waited = 0.0
    with closing(IdleTimeout()) as patience:
        while (before := clock.monotonic()) < deadline:
            # A window that already has its bytes cannot fail any more: silence may then last through the next one.
            windows = 2 if in_window >= min_rate * RATE_WINDOW else 1
            longest = windows * RATE_WINDOW - waited
            try:
                with patience.of(min(deadline - before, longest)):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if not patience.is_over:
                    raise
                raise AdapterError(late if deadline - before <= longest else slow) from None
            count += len(chunk)
            if count > limit:
                raise MediaTooLarge(f"the file is over {limit} bytes", limit=limit)
            in_window += len(chunk)
            waited += clock.monotonic() - before
            if waited >= RATE_WINDOW:
                if in_window < min_rate * waited:
                    raise AdapterError(slow)
                in_window, waited = 0, 0.0
            yield chunk
    raise AdapterError(late)


async def verified(chunks: AsyncIterator[bytes], checksums: Collection[str], name: str) -> AsyncGenerator[bytes, None]:
    """The same chunks; MediaError at their end if their sha256 is not the one, or not each, that was announced."""
    digest = hashlib.sha256()
    async for chunk in chunks:
        digest.update(chunk)
        yield chunk
    if checksums and set(checksums) != {digest.hexdigest()}:
        raise MediaError(f"the bytes of {name} are not those that the platform announced (sha256)")


def range_headers(offset: int, validator: str | None) -> dict[str, str]:
    """The headers that request the bytes from `offset` on, if the file is still the same."""
    if not offset or validator is None:
        return {}
    return {"Range": f"bytes={offset}-", "If-Range": validator}


async def resumed(
    open_at: OpenAt, *, clock: Clock, attempts: int = ATTEMPTS, rng: Random = _DICE
) -> AsyncGenerator[bytes, None]:
    """The whole body in order. Only temporary failures are retried: 408, 429, 5xx and a broken connection.

    An attempt with good progress resets the count: a large file may break more often than a small one. BrokenOff if the
    file changed in between or the platform only sends it from its beginning.
    """
    body = _Body()
    failures = 0
    while True:
        before, lasting = body.count, False
        try:
            async with open_at(body.count, body.validator) as answer:
                lasting = answer.status not in RETRIED and answer.status != (206 if body.count else 200)
                refusal = error_for(answer.status, answer.headers, now=clock.now())
                if refusal is not None and not (body.count and answer.status == 416):
                    raise refusal
                async for chunk in body.rest(answer):
                    yield chunk
                return
        except AdapterError as error:
            failures = 1 if body.count - before >= PROGRESS else failures + 1
            if lasting or failures >= attempts or isinstance(error, _LASTING):
                raise
            wait = _wait(error, failures, rng)
            if body.count and body.validator is None:
                raise BrokenOff("the file broke off, and the platform gives it only whole") from error
        await clock.sleep(wait)


async def retried(
    work: Callable[[], Awaitable[T]],
    *,
    clock: Clock,
    lasting: tuple[type[AdapterError], ...] = (),
    attempts: int = ATTEMPTS,
    rng: Random = _DICE,
) -> T:
    """The result of a call without visible effect, retried a few times after temporary failures."""
    for failures in range(1, attempts):
        try:
            return await work()
        except AdapterError as error:
            if isinstance(error, _LASTING + lasting):
                raise
            wait = _wait(error, failures, rng)
        await clock.sleep(wait)
    return await work()


def _wait(error: AdapterError, failures: int, rng: Random) -> float:
    wait = error.retry_after if isinstance(error, RateLimited) else backoff(failures, rng=rng)
    if wait > LONGEST_WAIT:
        raise error
    return wait


async def base64_decoded(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The bytes of a base64 text that ends with a quotation mark."""
    left, piece = b"", first
    while True:
        text, mark, _ = piece.partition(b'"')
        text = left + text.replace(b"\\", b"")
        whole = len(text) if mark else len(text) - len(text) % 4
        left = text[whole:]
        try:
            if whole:
                yield binascii.a2b_base64(text[:whole], strict_mode=True)
        except binascii.Error:
            raise AdapterError("the file cannot be read: it is no base64") from None
        if mark:
            return
        if not (piece := await anext(chunks, b"")):
            raise AdapterError("the answer broke off in the middle of the file")


async def sent_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each complete server-sent event: https://html.spec.whatwg.org/multipage/server-sent-events.html."""
    data: list[bytes] = []
    async for line in _lines(chunks):
        if line.startswith(b"data:"):
            data.append(line[5:])
        elif not line and data:
            yield b"\n".join(data)
            data = []


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield (b"".join(parts) + line).removesuffix(b"\r")
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > EVENT_BYTES:
            raise AdapterError(f"an event is over {EVENT_BYTES} bytes")


class _Body:
    """A download in progress: the bytes received, and the validator that identifies the file."""

    def __init__(self) -> None:
        self.count = 0
        self.validator: str | None = None
        self._total: int | None = None

    async def rest(self, answer: HttpAnswer) -> AsyncIterator[bytes]:
        """The bytes after those already received."""
        codings = (header(answer.headers, name) for name in ("Content-Encoding", "Transfer-Encoding"))
        if any(coding.strip() not in ("", "identity", "chunked") for coding in ",".join(codings).lower().split(",")):
            raise MediaRefused("the platform sent the file compressed, which was not asked for")
        if self.count:
            self._check_same(answer)
        else:
            self._note(answer)
        async for chunk in answer.chunks():
            self.count += len(chunk)
            yield chunk
        if self._total is not None and self.count != self._total:
            raise AdapterError(f"the file ended at {self.count} of {self._total} bytes")

    def _note(self, answer: HttpAnswer) -> None:
        if answer.status != 200:
            raise AdapterError(f"the platform answered with status {answer.status}")
        length = header(answer.headers, "Content-Length")
        self._total = int(length) if _LENGTH.fullmatch(length) else None
        self.validator = _validator(answer.headers)

    def _check_same(self, answer: HttpAnswer) -> None:
        found = _CONTENT_RANGE.fullmatch(header(answer.headers, "Content-Range"))
        # A server may send less than requested: without the total size, a part looks complete.
        total = self._total if found is None or found[3] == "*" else int(found[3])
        fits = (
            answer.status == 206
            and found is not None
            and int(found[1]) == self.count
            and total is not None
            and self._total in (None, total)
            and _validator(answer.headers) in (None, self.validator)
        )
        if not fits:
            raise BrokenOff("the file broke off, and the platform now has another")
        self._total = total


def _validator(headers: Mapping[str, str]) -> str | None:
    """The validator of this file version; a weak tag only promises equal meaning, not equal bytes."""
    tag = header(headers, "ETag")
    if tag.startswith('"'):
        return tag
    return header(headers, "Last-Modified") or None
