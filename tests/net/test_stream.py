"""No body is endless, oversized, late or a trickle."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from belino.domain.errors import AdapterError, MediaTooLarge
from belino.net.clock import SystemClock
from belino.net.stream import bounded, sent_events
from belino.testing import FakeClock

KB = 1024


async def body(clock: FakeClock, *pieces: tuple[float, int]) -> AsyncIterator[bytes]:
    """Pieces of so many bytes, each after so many seconds."""
    for seconds, size in pieces:
        clock.shift(seconds)
        yield b"x" * size


async def endless(clock: FakeClock, seconds: float, size: int) -> AsyncIterator[bytes]:
    while True:
        clock.shift(seconds)
        yield b"x" * size


async def read(chunks: AsyncIterator[bytes], clock: FakeClock, *, limit: int = 10**9, deadline: float = 600) -> bytes:
    return b"".join([piece async for piece in bounded(chunks, limit=limit, deadline_seconds=deadline, clock=clock)])


async def test_an_ordinary_body_passes_unchanged() -> None:
    clock = FakeClock()
    assert await read(body(clock, (1, 3), (1, 4)), clock, limit=7) == b"x" * 7


async def test_an_empty_body_is_empty() -> None:
    clock = FakeClock()
    assert await read(body(clock), clock) == b""


async def test_one_byte_over_the_limit_is_too_large() -> None:
    clock = FakeClock()
    with pytest.raises(MediaTooLarge, match="over 7 bytes") as caught:
        await read(body(clock, (0, 3), (0, 5)), clock, limit=7)
    assert caught.value.limit == 7


async def test_an_endless_body_ends_at_the_limit() -> None:
    clock = FakeClock()
    with pytest.raises(MediaTooLarge):
        await read(endless(clock, 0.001, 64 * KB), clock, limit=10 * KB * KB)


async def test_a_body_that_goes_on_past_the_deadline_is_late_however_fast_it_is() -> None:
    clock = FakeClock()
    with pytest.raises(AdapterError, match="did not arrive within 30 seconds"):
        await read(endless(clock, 1, 64 * KB), clock, deadline=30)


async def test_a_trickle_is_cut_off() -> None:
    clock = FakeClock()
    with pytest.raises(AdapterError, match="slower than 10240 bytes per second"):
        await read(endless(clock, 1, 1), clock)
    assert clock.monotonic() == 20


async def test_a_pause_is_forgiven_where_enough_came_before_it() -> None:
    clock = FakeClock()
    pieces = [(1.0, 300 * KB), (18.0, 10), (1.0, 300 * KB), (15.0, 10)]
    assert len(await read(body(clock, *pieces), clock)) == 600 * KB + 20


async def test_a_slow_reader_is_not_blamed_on_the_platform() -> None:
    clock = FakeClock()
    count = 0
    async for piece in bounded(body(clock, *[(1.0, KB)] * 10), limit=KB * KB, deadline_seconds=10_000, clock=clock):
        count += len(piece)
        clock.shift(100)
    assert count == 10 * KB


async def test_a_body_that_says_nothing_at_all_is_given_up() -> None:
    ended = asyncio.Event()

    async def silent() -> AsyncIterator[bytes]:
        try:
            await asyncio.Event().wait()
            yield b""
        finally:
            ended.set()

    async with asyncio.timeout(60):
        with pytest.raises(AdapterError, match=r"did not arrive within 0\.01 seconds"):
            async for _ in bounded(silent(), limit=1, deadline_seconds=0.01, clock=SystemClock()):
                raise AssertionError("nothing was sent")
        await ended.wait()


async def test_a_timeout_of_the_platforms_own_is_passed_on() -> None:
    async def failing() -> AsyncIterator[bytes]:
        raise TimeoutError("theirs")
        yield b""

    clock = FakeClock()
    with pytest.raises(TimeoutError, match="theirs"):
        await read(failing(), clock)


async def events(*pieces: bytes) -> list[bytes]:
    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return [event async for event in sent_events(chunks())]


async def test_sent_events_are_complete_however_they_are_cut_and_comments_are_none() -> None:
    text = b':\nevent:receive\ndata:{"a":1}\n\n:\r\ndata:{"b"\ndata::2}\r\n\r\ndata:cut off'
    whole = [b'{"a":1}', b'{"b"\n:2}']
    assert await events(text) == whole
    assert await events(*(text[at : at + 1] for at in range(len(text)))) == whole


async def test_an_event_without_an_end_is_an_error() -> None:
    with pytest.raises(AdapterError, match="an event is over"):
        await events(b"data:", *[b"x" * (1 << 20)] * 17)
