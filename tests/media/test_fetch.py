"""Ref → blob: once at a time, bounded, every end an outcome."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from belino.domain.errors import (
    AdapterError,
    BelinoError,
    MediaError,
    MediaExpired,
    MediaNotFound,
    MediaRefused,
    MediaTooLarge,
    OverDailyLimit,
    StoreFull,
)
from belino.domain.media import Blob, MediaKind, MediaRef
from belino.domain.message import ConversationKey, Deletion
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import RefRecord, Verdict
from belino.media.fetch import AT_ONCE, BEGINNINGS, PER_ACCOUNT, Fetcher, MediaConfig
from belino.net.stream import BrokenOff
from belino.testing import make_png
from belino.testing.clock import START
from blob_files import content_of, is_here, path_of
from tools.town import HERE, THERE, File, Town


class Platform:
    """Hands out bytes when it is told to, and counts."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.open_now = 0
        self.most_at_once = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.body = b"0123456789"
        self.opening: BaseException | None = None
        self.breaking: BaseException | None = None

    @asynccontextmanager
    async def open_media(self, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        self.calls.append(ref.id)
        if self.opening:
            raise self.opening
        self.open_now += 1
        self.most_at_once = max(self.most_at_once, self.open_now)
        try:
            yield self._pieces()
        finally:
            self.open_now -= 1

    async def _pieces(self) -> AsyncIterator[bytes]:
        await self.gate.wait()
        for start in range(0, len(self.body), 4):
            yield self.body[start : start + 4]
        if self.breaking:
            raise self.breaking


@pytest.fixture
def platform() -> Platform:
    return Platform()


def fetcher(town: Town, platform: Platform, **limits: Any) -> Fetcher:
    return Fetcher(town.store, town.store, platform.open_media, MediaConfig(**limits), town.clock)


async def arrive(town: Town, count: int = 1, **changes: object) -> list[RefRecord]:
    files = [File(content=b"", **({"size": 10} | changes)) for _ in range(count)]  # type: ignore[arg-type]
    _, refs = await town.say("", *files)
    return [await look(town, ref) for ref in refs]


async def arrive_at(town: Town, account: str, count: int) -> list[RefRecord]:
    where = replace(HERE, account=account)
    _, refs = await town.say("", *[File(content=b"", size=10) for _ in range(count)], where=where)
    return [await look(town, ref, where) for ref in refs]


async def look(town: Town, ref: str, where: ConversationKey = HERE) -> RefRecord:
    record = await town.store.ref(where, ref)
    assert record is not None
    return record


async def test_the_bytes_are_fetched_once_and_held(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    fetch = fetcher(town, platform)
    blob = await fetch.fetch(record)
    assert await content_of(town.store, blob) == platform.body
    again = await look(town, record.ref.id)
    assert again.outcome is MediaOutcome.HELD and again.ref.sha256 == blob.sha256
    assert await fetch.fetch(again) == await fetch.fetch(record) == blob
    assert len(platform.calls) == 1


async def test_callers_of_the_same_ref_share_one_stream(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    fetch = fetcher(town, platform)
    blobs = await asyncio.gather(*(fetch.fetch(record) for _ in range(20)))
    assert len(set(blobs)) == 1 and len(platform.calls) == 1


async def test_callers_of_the_same_ref_share_one_failure_and_the_next_one_tries_again(
    town: Town, platform: Platform
) -> None:
    (record,) = await arrive(town)
    fetch = fetcher(town, platform)
    for calls in (1, 2):
        platform.opening = AdapterError(f"attempt {calls}")
        ends = await asyncio.gather(*(fetch.fetch(record) for _ in range(20)), return_exceptions=True)
        assert {str(end) for end in ends} == {f"{record.ref.id} could not be fetched: attempt {calls}"}
        assert len(platform.calls) == calls


async def test_a_caller_that_gives_up_does_not_take_the_others_along(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    fetch = fetcher(town, platform)
    platform.gate.clear()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(fetch.fetch(record))
        while not platform.open_now:
            await asyncio.sleep(0)
        second = group.create_task(fetch.fetch(record))
        await asyncio.sleep(0)
        first.cancel()
        platform.gate.set()
    assert first.cancelled() and second.result().size == 10
    assert platform.open_now == 0 and len(platform.calls) == 2


@pytest.mark.parametrize(("accounts", "most"), [(1, PER_ACCOUNT), (2, 2 * PER_ACCOUNT), (5, AT_ONCE)])
async def test_three_streams_per_account_and_eight_in_all_are_open_at_once(
    town: Town, platform: Platform, accounts: int, most: int
) -> None:
    records = [record for number in range(accounts) for record in await arrive_at(town, f"account-{number}", 6)]
    fetch = fetcher(town, platform, max_bytes=100)
    platform.gate.clear()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for record in records:
            group.create_task(fetch.fetch(record))
        while platform.open_now < most:
            await asyncio.sleep(0)
        for _ in range(100):  # nobody else comes in, however long we wait
            await asyncio.sleep(0)
        platform.gate.set()
    assert platform.most_at_once == most and len(platform.calls) == 6 * accounts


async def test_a_ref_known_to_be_too_large_makes_no_platform_call(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town, size=11)
    with pytest.raises(MediaTooLarge) as refusal:
        await fetcher(town, platform, max_bytes=10).fetch(record)
    assert refusal.value.limit == 10 and platform.calls == []
    assert (await look(town, record.ref.id)).outcome is MediaOutcome.TOO_LARGE


async def test_a_body_larger_than_it_said_is_cut_off_and_nothing_is_kept(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town, size=3)
    platform.body = b"x" * 1000
    with pytest.raises(MediaTooLarge):
        await fetcher(town, platform, max_bytes=100).fetch(record)
    ended = await look(town, record.ref.id)
    assert ended.outcome is MediaOutcome.TOO_LARGE and ended.ref.sha256 is None


async def test_an_operator_who_raises_the_limit_is_heard(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    with pytest.raises(MediaTooLarge):
        await fetcher(town, platform, max_bytes=5).fetch(record)
    assert (await fetcher(town, platform, max_bytes=50).fetch(record)).size == 10


@pytest.mark.parametrize(
    ("error", "outcome", "raised"),
    [
        (MediaExpired("gone"), MediaOutcome.EXPIRED, MediaExpired),
        (MediaNotFound("who?"), MediaOutcome.NOT_FOUND, MediaNotFound),
        (MediaRefused("html"), MediaOutcome.REFUSED, MediaRefused),
        (MediaTooLarge("20 MB", limit=20), MediaOutcome.TOO_LARGE, MediaTooLarge),
        (AdapterError("500"), MediaOutcome.FAILED, MediaError),
        (ConnectionResetError(), MediaOutcome.FAILED, MediaError),
        (TimeoutError(), MediaOutcome.FAILED, MediaError),
        (KeyError("a bug of the adapter"), MediaOutcome.FAILED, MediaError),
    ],
)
@pytest.mark.parametrize("when", ["opening", "breaking"])
async def test_every_end_is_an_outcome(
    town: Town, platform: Platform, error: BaseException, outcome: MediaOutcome, raised: type[BelinoError], when: str
) -> None:
    (record,) = await arrive(town)
    setattr(platform, when, error)
    with pytest.raises(raised):
        await fetcher(town, platform).fetch(record)
    ended = await look(town, record.ref.id)
    assert ended.outcome is outcome and ended.reason
    assert ended.ref.sha256 is None


async def test_what_is_lost_for_good_is_not_asked_for_again(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town, size=None, mime="")
    platform.opening = MediaExpired("gone")
    fetch = fetcher(town, platform)
    for _ in range(3):
        with pytest.raises(MediaExpired):
            await fetch.fetch(record)
    assert len(platform.calls) == 1


async def test_what_failed_for_now_may_be_tried_again(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    platform.opening = AdapterError("502")
    fetch = fetcher(town, platform)
    with pytest.raises(MediaError):
        await fetch.fetch(record)
    platform.opening = None
    assert (await fetch.fetch(record)).size == 10
    assert (await look(town, record.ref.id)).outcome is MediaOutcome.HELD


async def test_a_channel_may_fetch_so_many_bytes_a_day_and_again_the_next(town: Town, platform: Platform) -> None:
    records = await arrive(town, 3)
    fetch = fetcher(town, platform, channel_bytes_per_day=25)
    await fetch.fetch(records[0])
    await fetch.fetch(records[1])
    with pytest.raises(OverDailyLimit):
        await fetch.fetch(records[2])
    assert (await look(town, records[2].ref.id)).outcome is MediaOutcome.OVER_DAILY_LIMIT
    town.clock.shift(25 * 3600)
    assert (await fetch.fetch(records[2])).size == 10


async def test_fetches_in_parallel_cannot_overdraw_the_day(town: Town, platform: Platform) -> None:
    records = await arrive(town, 12)
    fetch = fetcher(town, platform, channel_bytes_per_day=45, max_bytes=20)
    platform.body = b"unlike"  # the size it told was not true; what counts is what came
    results = await asyncio.gather(*(fetch.fetch(record) for record in records), return_exceptions=True)
    spent = await town.store.bytes_fetched(HERE, town.clock.now().replace(year=2020))
    assert 0 < spent <= 45
    assert all(isinstance(result, OverDailyLimit) or not isinstance(result, BaseException) for result in results)
    assert sum(not isinstance(result, BaseException) for result in results) >= 4


@pytest.mark.parametrize("end", [AdapterError("reset"), MediaRefused("compressed")])
async def test_bytes_that_came_for_nothing_count_for_the_day(town: Town, platform: Platform, end: BelinoError) -> None:
    records = await arrive(town, 3)
    fetch = fetcher(town, platform, channel_bytes_per_day=25)
    platform.breaking = end
    for record in records[:2]:
        with pytest.raises(MediaError):
            await fetch.fetch(record)
    with pytest.raises(OverDailyLimit):
        await fetch.fetch(records[2])
    assert len(platform.calls) == 2


async def test_bytes_that_are_fetched_again_count_again(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform, channel_bytes_per_day=35, disk_bytes=15)
    pair = [(await hold(town, platform, fetch, bytes([number]) * 10))[0] for number in range(2)]
    platform.body = bytes(10)
    await fetch.fetch(pair[0])  # each makes room for the other
    with pytest.raises(OverDailyLimit):
        await fetch.fetch(pair[1])
    assert len(platform.calls) == 3


async def test_a_message_that_is_deleted_gives_no_bytes_back(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform, channel_bytes_per_day=25)
    for record in await arrive(town, 2):
        await fetch.fetch(record)
    deletion = Deletion(conversation=HERE, id="d", message_id="1", author=None, sent=town.clock.now())
    await town.store.take_in(deletion, Verdict(standing=Standing.OBSERVED, reason="test"))
    (record,) = await arrive(town)
    with pytest.raises(OverDailyLimit):
        await fetch.fetch(record)


async def test_bytes_past_the_limit_came_and_count(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town, size=None, mime="")
    fetch = fetcher(town, platform, channel_bytes_per_day=3)
    with pytest.raises(OverDailyLimit, match="larger than what is left"):
        await fetch.fetch(record)
    with pytest.raises(OverDailyLimit, match="has 0B left"):
        await fetch.fetch(record)
    assert len(platform.calls) == 1


async def test_a_body_that_is_begun_again_has_no_more_than_the_day_has_left(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    platform.breaking = BrokenOff("it changed")
    fetch = fetcher(town, platform, channel_bytes_per_day=15)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        fetching = group.create_task(failing(fetch, record))
        while not fetching.done():
            await town.clock.advance(60)
    assert len(platform.calls) == 1
    assert (await look(town, record.ref.id)).outcome is MediaOutcome.OVER_DAILY_LIMIT


async def test_a_fetch_is_counted_before_its_ref_holds_the_bytes(
    town: Town, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    (record,) = await arrive(town)
    spent: list[int] = []
    end_media = type(town.store).end_media

    async def looked_at(store: Any, *given: Any, **named: Any) -> bool:
        spent.append(await store.bytes_fetched(HERE, START))
        return await end_media(store, *given, **named)

    monkeypatch.setattr(type(town.store), "end_media", looked_at)
    await fetcher(town, platform).fetch(record)
    assert spent == [10]  # ended just here and begun anew, it would have come twice and count twice


async def test_bytes_that_nobody_waited_for_count_for_the_day(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    fetch = fetcher(town, platform, channel_bytes_per_day=25)
    came = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        fetching = group.create_task(fetch.fetch(record, progress=lambda count, _: came.set() if count > 4 else None))
        await came.wait()
        fetching.cancel()
    assert await town.store.bytes_fetched(HERE, town.clock.now().replace(year=2020)) >= 8


async def test_a_store_that_cannot_count_does_not_hide_why_a_fetch_ended(
    town: Town, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise StoreFull("the disk is full")

    monkeypatch.setattr(type(town.store), "note_fetched", full)
    (record,) = await arrive(town)
    platform.breaking = MediaExpired("gone")
    with pytest.raises(MediaExpired):
        await fetcher(town, platform).fetch(record)


async def test_one_channels_day_is_not_another_channels(town: Town, platform: Platform) -> None:
    (here,) = await arrive(town)
    _, (there,) = await town.say("", File(content=b"", size=10), where=THERE)
    fetch = fetcher(town, platform, channel_bytes_per_day=10)
    await fetch.fetch(here)
    record = await town.store.ref(THERE, there)
    assert record is not None and (await fetch.fetch(record)).size == 10


async def test_a_fetch_that_is_cancelled_leaves_the_ref_as_it_was(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    platform.gate.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await fetcher(town, platform).fetch(record)
    assert (await look(town, record.ref.id)).outcome is MediaOutcome.REFERENCED
    assert platform.open_now == 0


Told = list[tuple[int, int | None]]


def note(told: Told, count: int, total: int | None) -> None:
    told.append((count, total))


async def test_whoever_waits_is_told_how_far_it_is(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    fetch = fetcher(town, platform)
    first, second, held = Told(), Told(), Told()
    platform.gate.clear()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for told in (first, second):
            group.create_task(fetch.fetch(record, progress=partial(note, told)))
        while not platform.open_now:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        platform.gate.set()
    assert first == second == [(4, 10), (8, 10), (10, 10)]
    await fetch.fetch(record, progress=partial(note, held))
    assert held == []


@pytest.mark.parametrize(
    ("body", "declared", "name", "mime", "lies"),
    [
        (make_png(4, 4), "image/png", None, "image/png", ""),
        (make_png(4, 4), "image/jpeg", "x.jpg", "image/png", "declared image/jpeg, is image/png"),
        (make_png(4, 4), "application/octet-stream", "x", "image/png", ""),
        (b"%PDF-1.7\n%%EOF", "", None, "application/pdf", ""),
        (b"", "text/plain", "empty.txt", "application/octet-stream", ""),
    ],
)
async def test_a_blob_is_what_its_bytes_say_and_a_lie_is_kept_with_the_ref(
    town: Town, platform: Platform, body: bytes, declared: str, name: str | None, mime: str, lies: str
) -> None:
    (record,) = await arrive(town, mime=declared, name=name, size=len(body))
    platform.body = body
    blob = await fetcher(town, platform).fetch(record)
    held = await town.store.blob(blob.sha256)
    ended = await look(town, record.ref.id)
    assert held is not None and held.size == len(body)
    assert (ended.outcome, ended.reason) == (MediaOutcome.HELD, lies)
    if body:
        assert blob.mime == held.mime == mime


PAGE = b"<!DOCTYPE html>\n<html><head><title>Log in</title></head><body>" + b"x" * 100_000


@pytest.mark.parametrize(
    ("mime", "kind", "name"),
    [
        ("image/png", None, None),
        ("video/mp4", None, "clip.mp4"),
        ("application/pdf", None, "report.pdf"),
        ("application/octet-stream", MediaKind.VOICE, None),
        ("", MediaKind.STICKER, None),
    ],
)
async def test_a_login_page_in_place_of_a_file_is_refused_until_the_platform_has_the_file(
    town: Town, platform: Platform, mime: str, kind: MediaKind | None, name: str | None
) -> None:
    (record,) = await arrive(town, mime=mime, kind=kind, name=name, size=None)
    platform.body = PAGE
    fetch = fetcher(town, platform)
    with pytest.raises(MediaRefused, match="web page"):
        await fetch.fetch(record)
    ended = await look(town, record.ref.id)
    assert ended.outcome is MediaOutcome.REFUSED and ended.ref.sha256 is None
    assert (await town.store.counts())["blobs"] == 0
    platform.body = make_png(2, 2)
    assert (await fetch.fetch(record)).mime == "image/png"


@pytest.mark.parametrize(
    ("mime", "name"), [("text/html", None), ("application/octet-stream", "x.html"), ("text/plain", "x.txt")]
)
async def test_a_page_that_somebody_sent_as_a_page_is_a_file(
    town: Town, platform: Platform, mime: str, name: str | None
) -> None:
    (record,) = await arrive(town, mime=mime, name=name, size=len(PAGE))
    platform.body = PAGE
    assert (await fetcher(town, platform).fetch(record)).size == len(PAGE)


async def test_nothing_where_something_was_promised_is_a_failure_that_may_pass(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town, size=10)
    platform.body = b""
    fetch = fetcher(town, platform)
    with pytest.raises(MediaError, match="empty file"):
        await fetch.fetch(record)
    assert (await look(town, record.ref.id)).outcome is MediaOutcome.FAILED
    platform.body = b"0123456789"
    assert (await fetch.fetch(record)).size == 10


async def test_a_body_that_cannot_be_continued_is_begun_again(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    platform.breaking = BrokenOff("it changed")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        fetching = group.create_task(fetcher(town, platform).fetch(record))
        while not town.clock.sleeping:
            await asyncio.sleep(0)
        platform.breaking = None
        await town.clock.advance(60)
    assert await content_of(town.store, fetching.result()) == platform.body
    assert len(platform.calls) == 2


async def test_a_body_that_never_holds_is_given_up(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    platform.breaking = BrokenOff("it changed")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        fetching = group.create_task(failing(fetcher(town, platform), record))
        while not fetching.done():
            await town.clock.advance(60)
    assert len(platform.calls) == BEGINNINGS
    assert (await look(town, record.ref.id)).outcome is MediaOutcome.FAILED


async def failing(fetch: Fetcher, record: RefRecord) -> None:
    with pytest.raises(MediaError):
        await fetch.fetch(record)


async def hold(town: Town, platform: Platform, fetch: Fetcher, body: bytes) -> tuple[RefRecord, Blob]:
    (record,) = await arrive(town, size=len(body))
    platform.body = body
    blob = await fetch.fetch(record)
    return await look(town, record.ref.id), blob


async def test_what_was_used_longest_ago_makes_room_and_can_be_fetched_again(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform, disk_bytes=25)
    old, _ = await hold(town, platform, fetch, b"0" * 10)
    used, _ = await hold(town, platform, fetch, b"1" * 10)
    town.clock.shift(3600)
    await fetch.fetch(old)  # asked for again: the other one is older now
    new, _ = await hold(town, platform, fetch, b"2" * 10)
    outcomes = [(await look(town, record.ref.id)).outcome for record in (old, used, new)]
    assert outcomes == [MediaOutcome.HELD, MediaOutcome.REFERENCED, MediaOutcome.HELD]
    again = await look(town, used.ref.id)
    assert "made room" in again.reason and again.ref.sha256 == used.ref.sha256
    platform.body = b"1" * 10
    assert await content_of(town.store, await fetch.fetch(again)) == b"1" * 10


async def test_what_is_needed_now_makes_no_room(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform, disk_bytes=15)
    first, blob = await hold(town, platform, fetch, b"0" * 10)
    with fetch.pin(blob.sha256):
        second, _ = await hold(town, platform, fetch, b"1" * 10)
        assert (await look(town, first.ref.id)).outcome is MediaOutcome.HELD and await is_here(town.store, blob)
    await hold(town, platform, fetch, b"2" * 10)
    assert (await look(town, first.ref.id)).outcome is MediaOutcome.REFERENCED and not await is_here(town.store, blob)
    assert (await look(town, second.ref.id)).outcome is MediaOutcome.REFERENCED


async def test_media_past_its_time_is_expired_and_not_asked_for(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform, retention_days=30)
    held, blob = await hold(town, platform, fetch, b"0" * 10)
    (promised,) = await arrive(town)
    town.clock.shift(29 * 86_400)
    assert await fetch.sweep() == 0
    town.clock.shift(2 * 86_400)
    assert await fetch.sweep() == 2
    await town.store.tidy()
    assert not await is_here(town.store, blob)
    calls = len(platform.calls)
    for record in (held, promised):
        ended = await look(town, record.ref.id)
        assert ended.outcome is MediaOutcome.EXPIRED and record.ref.id in ended.reason
        with pytest.raises(MediaExpired, match=record.ref.id):
            await fetch.fetch(record)
    assert len(platform.calls) == calls
    assert await fetch.sweep() == 0


async def test_media_may_be_kept_for_ever(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform, retention_days=0)
    held, _ = await hold(town, platform, fetch, b"0" * 10)
    town.clock.shift(4000 * 86_400)
    assert await fetch.sweep() == 0
    assert (await look(town, held.ref.id)).outcome is MediaOutcome.HELD


async def test_small_files_are_read_from_disk_once(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform, memory_bytes=1000)
    _, small = await hold(town, platform, fetch, b"small")
    _, large = await hold(town, platform, fetch, b"x" * 101)
    assert await fetch.read(small, 3) == b"sma" and await fetch.read(large, 3) == b"xxx"
    path_of(town.store, small).unlink()
    path_of(town.store, large).unlink()
    assert await fetch.read(small, 100) == b"small"
    with pytest.raises(MediaNotFound):
        await fetch.read(large, 3)


async def test_memory_holds_no_more_than_it_may(town: Town, platform: Platform) -> None:
    fetch = fetcher(town, platform, memory_bytes=1000)
    blobs = [(await hold(town, platform, fetch, bytes([number]) * 100))[1] for number in range(11)]
    for blob in blobs:
        await fetch.read(blob, 1)
    for blob in blobs:
        path_of(town.store, blob).unlink()
    for blob in blobs[1:]:
        assert len(await fetch.read(blob, 100)) == 100
    with pytest.raises(MediaNotFound):
        await fetch.read(blobs[0], 1)
    nothing = fetcher(town, platform, memory_bytes=0)
    _, blob = await hold(town, platform, nothing, b"again")
    assert await nothing.read(blob, 10) == b"again"
    path_of(town.store, blob).unlink()
    with pytest.raises(MediaNotFound):
        await nothing.read(blob, 10)


async def test_it_is_counted_how_often_bytes_were_found_in_memory(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    counts: Counter[str] = Counter()
    fetch = Fetcher(town.store, town.store, platform.open_media, MediaConfig(), town.clock, counts)
    blob = await fetch.fetch(record)
    for _ in range(3):
        await fetch.read(blob, 10)
    assert counts == {"misses": 1, "hits": 2}
