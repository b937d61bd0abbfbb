"""A body that breaks off goes on where it broke, against a server that lies and breaks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random

import pytest

from belino.domain.errors import AdapterError, AddressRefused, MediaRefused, MediaTooLarge, RateLimited, Unauthorized
from belino.domain.ports import HttpAnswer
from belino.net.client import Client
from belino.net.guard import Guard
from belino.net.stream import BrokenOff, bounded, range_headers, resumed
from belino.testing import FakeClock
from belino.testing.chaos import Act, ChaosServer, chaos, endless, ranges, says, stalls, whole

BODY = bytes(range(256)) * 8192  # 2 MiB
TAG = '"v1"'


class PatientClock(FakeClock):
    """Sleeps at once, and remembers how long."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.shift(seconds)


@pytest.fixture
def clock() -> PatientClock:
    return PatientClock()


@asynccontextmanager
async def stream(clock: PatientClock, *script: Act) -> AsyncIterator[tuple[ChaosServer, AsyncIterator[bytes]]]:
    client = Client(guard=Guard(["127.0.0.0/8"]))
    async with asyncio.timeout(60), chaos(*script) as server:

        def open_at(offset: int, validator: str | None) -> AbstractAsyncContextManager[HttpAnswer]:
            return client.request("GET", server.url, headers=range_headers(offset, validator), timeout=60)

        try:
            yield server, resumed(open_at, clock=clock, rng=Random(7))
        finally:
            await client.close()


async def read(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def test_a_whole_body_is_asked_for_once(clock: PatientClock) -> None:
    async with stream(clock, whole(BODY)) as (server, chunks):
        assert await read(chunks) == BODY
    assert len(server.asked) == 1 and "range" not in server.asked[0].headers


async def test_a_body_that_breaks_is_continued_by_range_and_nothing_comes_twice(clock: PatientClock) -> None:
    breaking = ranges(BODY, tag=TAG, breaks_after=700_000)
    async with stream(clock, breaking, breaking, ranges(BODY, tag=TAG)) as (server, chunks):
        assert await read(chunks) == BODY
    starts = [asked.headers.get("range") for asked in server.asked]
    assert starts == [None, "bytes=700000-", "bytes=1400000-"]
    assert {asked.headers.get("if-range") for asked in server.asked[1:]} == {TAG}


async def test_a_file_known_by_its_date_is_continued_too(clock: PatientClock) -> None:
    date = "Sun, 15 Nov 2026 12:00:00 GMT"
    first = says(200, {"Content-Length": "10", "Last-Modified": date, "ETag": 'W/"weak"'}, b"01234")
    rest = says(206, {"Content-Range": "bytes 5-9/10", "Content-Length": "5", "Last-Modified": date}, b"56789")
    async with stream(clock, first, rest) as (server, chunks):
        assert await read(chunks) == b"0123456789"
    assert server.asked[1].headers["if-range"] == date


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(whole(b"another file", {"ETag": '"v2"'}), id="whole again"),
        pytest.param(says(206, {"Content-Range": "bytes 5-9/10", "ETag": '"v2"'}, b"56789"), id="another tag"),
        pytest.param(says(206, {"Content-Range": "bytes 4-9/10", "ETag": TAG}, b"456789"), id="another start"),
        pytest.param(says(206, {"Content-Range": "bytes 5-9/11", "ETag": TAG}, b"56789"), id="another size"),
        pytest.param(says(206, {"ETag": TAG}, b"56789"), id="no range named"),
        pytest.param(says(416, {"Content-Range": "bytes */5", "ETag": TAG}), id="no such range"),
        pytest.param(says(206, {"Content-Range": "bytes */10", "ETag": TAG}, b"56789"), id="nonsense"),
    ],
)
async def test_a_file_that_is_another_now_is_never_glued_to_the_first(clock: PatientClock, second: Act) -> None:
    first = says(200, {"Content-Length": "10", "ETag": TAG}, b"01234")
    async with stream(clock, first, second) as (_, chunks):
        with pytest.raises(BrokenOff):
            await read(chunks)


UNKNOWN_SIZE = says(200, {"Transfer-Encoding": "chunked", "ETag": TAG}, b"5\r\n01234\r\n")


async def test_a_part_of_the_rest_is_not_taken_for_all_of_it(clock: PatientClock) -> None:
    part = says(206, {"Content-Range": "bytes 5-6/10", "Content-Length": "2", "ETag": TAG}, b"56")
    rest = says(206, {"Content-Range": "bytes 7-9/10", "Content-Length": "3", "ETag": TAG}, b"789")
    async with stream(clock, UNKNOWN_SIZE, part, rest) as (_, chunks):
        assert await read(chunks) == b"0123456789"


async def test_a_rest_of_which_nobody_knows_the_end_is_not_taken_for_one(clock: PatientClock) -> None:
    rest = says(206, {"Content-Range": "bytes 5-6/*", "Content-Length": "2", "ETag": TAG}, b"56")
    async with stream(clock, UNKNOWN_SIZE, rest) as (_, chunks):
        with pytest.raises(BrokenOff):
            await read(chunks)


async def test_a_file_without_a_mark_cannot_be_continued(clock: PatientClock) -> None:
    async with stream(clock, says(200, {"Content-Length": "10"}, b"01234")) as (server, chunks):
        with pytest.raises(BrokenOff, match="only whole"):
            await read(chunks)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_what_may_pass_is_tried_again(clock: PatientClock, status: int) -> None:
    async with stream(clock, says(status), says(status), whole(b"at last")) as (server, chunks):
        assert await read(chunks) == b"at last"
    assert len(server.asked) == 3 and len(clock.slept) == 2


@pytest.mark.parametrize("status", [204, 206, 300, 304, 400, 401, 403, 404, 410, 416, 451, 501])
async def test_what_will_not_pass_is_asked_for_once(clock: PatientClock, status: int) -> None:
    async with stream(clock, says(status)) as (server, chunks):
        with pytest.raises(Unauthorized if status == 401 else AdapterError):
            await read(chunks)
    assert len(server.asked) == 1 and clock.slept == []


async def test_three_failures_are_enough(clock: PatientClock) -> None:
    async with stream(clock, says(500)) as (server, chunks):
        with pytest.raises(AdapterError, match="status 500"):
            await read(chunks)
    assert len(server.asked) == 3


async def test_a_wish_to_wait_is_kept_and_a_long_one_is_passed_on(clock: PatientClock) -> None:
    async with stream(clock, says(429, {"Retry-After": "7"}), whole(b"x")) as (_, chunks):
        assert await read(chunks) == b"x"
    assert clock.slept == [7]
    async with stream(clock, says(429, {"Retry-After": "3600"})) as (server, chunks):
        with pytest.raises(RateLimited):
            await read(chunks)
    assert len(server.asked) == 1


async def test_a_server_that_gives_a_byte_per_request_is_given_up(clock: PatientClock) -> None:
    async with stream(clock, ranges(BODY, tag=TAG, breaks_after=1)) as (server, chunks):
        with pytest.raises(AdapterError):
            await read(chunks)
    assert len(server.asked) == 3


async def test_a_refused_address_is_not_tried_again(clock: PatientClock) -> None:
    async with stream(clock, says(302, {"Location": "http://10.0.0.1/"})) as (server, chunks):
        with pytest.raises(AddressRefused):
            await read(chunks)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(whole(b"\x1f\x8b", {"Content-Encoding": "gzip"}), id="the content"),
        pytest.param(says(200, {"Transfer-Encoding": "gzip, chunked"}, b"2\r\n\x1f\x8b\r\n0\r\n\r\n"), id="on its way"),
    ],
)
async def test_a_file_that_comes_compressed_is_refused(clock: PatientClock, answer: Act) -> None:
    async with stream(clock, answer) as (_, chunks):
        with pytest.raises(MediaRefused, match="compressed"):
            await read(chunks)


@pytest.mark.parametrize(
    ("length", "body", "told"),
    [("5", b"0123456789", b"01234"), ("0", b"0123456789", b"")],
)
async def test_a_body_longer_than_it_said_ends_where_it_said_or_is_refused(
    clock: PatientClock, length: str, body: bytes, told: bytes
) -> None:
    """Which of the two depends on whether the rest came in the same packet."""
    async with stream(clock, says(200, {"Content-Length": length}, body)) as (_, chunks):
        try:
            assert await read(chunks) == told
        except AdapterError as error:
            assert "failed" in str(error)


@pytest.mark.parametrize("length", ["100", "-5", "ten", "1e3", "5, 7", "9" * 40])
async def test_a_body_shorter_than_it_said_or_with_a_length_that_is_none_is_never_whole(
    clock: PatientClock, length: str
) -> None:
    async with stream(clock, says(200, {"Content-Length": length}, b"01234")) as (_, chunks):
        with pytest.raises(AdapterError):
            await read(chunks)


async def test_a_body_without_length_and_end_is_cut_off_at_the_limit(clock: PatientClock) -> None:
    async with stream(clock, endless()) as (_, chunks):
        with pytest.raises(MediaTooLarge):
            await read(bounded(chunks, limit=1_000_000, deadline_seconds=60, clock=clock))


async def test_a_body_that_stalls_after_a_byte_is_given_up(clock: PatientClock) -> None:
    async with stream(clock, stalls(b"x", length=100)) as (_, chunks):
        with pytest.raises(AdapterError, match=r"did not arrive within 0\.2 seconds"):
            await read(bounded(chunks, limit=1000, deadline_seconds=0.2, clock=clock))


async def test_an_empty_body_is_an_empty_file(clock: PatientClock) -> None:
    async with stream(clock, whole(b"")) as (_, chunks):
        assert await read(chunks) == b""
