"""Ref → blob: once at a time, bounded, every end an outcome."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

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
)
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.store import RefRecord
from belino.media.fetch import AT_ONCE, PER_ACCOUNT, Fetcher, MediaConfig
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


def fetcher(town: Town, platform: Platform, **limits: int) -> Fetcher:
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
    assert blob.path.read_bytes() == platform.body
    again = await look(town, record.ref.id)
    assert again.outcome is MediaOutcome.HELD and again.ref.sha256 == blob.sha256
    assert await fetch.fetch(again) == await fetch.fetch(record) == blob
    assert len(platform.calls) == 1


async def test_callers_of_the_same_ref_share_one_stream(town: Town, platform: Platform) -> None:
    (record,) = await arrive(town)
    fetch = fetcher(town, platform)
    blobs = await asyncio.gather(*(fetch.fetch(record) for _ in range(20)))
    assert len(set(blobs)) == 1 and len(platform.calls) == 1


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
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
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
