"""What adapters share: URL checks, a pace for each account, rate limits, files by short-lived links, findings."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from belino.domain.errors import AdapterError, ConfigError, MediaExpired, RateLimited, Unauthorized
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Arrival, ConversationKey
from belino.domain.ports import Accept, HttpAnswer, Taken
from belino.net.rest import (
    QUEUE_SECONDS,
    HookInbox,
    JsonFiles,
    Latest,
    LinkedFile,
    OnlyReactions,
    Pace,
    RateLimits,
    check_base_url,
    clock_findings,
    token_finding,
)
from belino.testing import FakeClock

NOW = FakeClock().now()
REF = MediaRef(
    platform="here", account="a", channel_id="c", message_id="m", item="i", kind=MediaKind.IMAGE, mime="", created=NOW
)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://x:99999999", "api_url is not a URL"),
        ("ftp://host", "api_url must be https://host"),
        ("https://", "api_url must be https://host"),
        ("https://user@host", "without a login"),
        ("https://host/?token=1", "without a login"),
        ("http://host.example", "api_url must be encrypted"),
        ("http://8.8.8.8", "api_url must be encrypted"),
    ],
)
def test_a_url_that_would_give_the_token_away_is_refused(url: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_base_url("api_url", url)


@pytest.mark.parametrize("host", ["127.0.0.1:8081", "[::1]", "10.1.2.3", "server", "bots.local", "bots.internal"])
def test_plain_http_is_for_servers_nearby(host: str) -> None:
    check_base_url("api_url", f"http://{host}/path")
    with pytest.raises(ConfigError, match="encrypted"):
        check_base_url("api_url", f"http://{host}/path", plain_nearby=False)


async def test_a_key_is_closed_for_as_long_as_the_platform_asks_and_others_are_not() -> None:
    clock = FakeClock()
    limits, made = RateLimits("The platform", clock), list[str]()

    async def refused() -> None:
        made.append("refused")
        raise RateLimited("not now", retry_after=5.0)

    async def taken() -> None:
        made.append("taken")

    with pytest.raises(RateLimited, match="not now"):
        await limits.call("one", refused)
    with pytest.raises(RateLimited, match=r"The platform asks to wait 5\.000 seconds"):
        await limits.call("one", taken)
    await limits.call("another", taken)
    await clock.advance(5.0)
    await limits.call("one", taken)
    assert made == ["refused", "taken", "taken"]


def test_all_keys_are_closed_at_once_except_for_calls_that_do_not_count() -> None:
    limits = RateLimits("The platform", FakeClock())
    limits.close("one", 5.0, everything=True)
    with pytest.raises(RateLimited) as closed:
        limits.check("another")
    assert closed.value.retry_after == 5.0
    limits.check("another", counts=False)


async def test_only_the_newest_items_are_kept() -> None:
    kept: Latest[str, int] = Latest(2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        kept.keep(key, value)
    assert dict(kept) == {"a": 3, "c": 4}


async def test_a_reaction_that_another_replaced_is_not_removed_again() -> None:
    reactions, made = OnlyReactions(), list[str]()
    here = ConversationKey(platform="here", account="a", channel="c")

    async def change(emoji: str, *, added: bool) -> None:
        async def call() -> None:
            made.append(f"{'+' if added else '-'}{emoji}")

        await reactions.change(here, "m", emoji, added=added, call=call)

    await change("👀", added=True)
    await change("✅", added=True)
    await change("👀", added=False)
    await change("✅", added=False)
    await change("👍", added=False)  # of before a restart
    assert made == ["+👀", "+✅", "-✅", "-👍"]


async def test_a_call_without_files_is_plain_json_of_the_announced_length() -> None:
    body = JsonFiles({"params": {"n": 1}}, ())
    written = b"".join([piece async for piece in body.chunks()])
    assert (written, body.length, body.written) == (b'{"params": {"n": 1}}', len(written), True)


async def test_a_webhook_is_let_in_only_while_its_adapter_runs() -> None:
    inbox, taken = HookInbox(), list[Accept]()

    async def work(accept: Accept) -> None:
        taken.append(accept)

    async def accept(arrival: Arrival, *, cursor: str | None = None) -> Taken:
        raise NotImplementedError

    assert (await inbox.take(work)).status == 503
    running = asyncio.create_task(inbox.run(accept))
    await asyncio.sleep(0)
    assert (await inbox.take(work)).status == 200
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await inbox.take(work)).status == 503
    assert taken == [accept]


class Answer:
    """A body, or the status of a link that is dead."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}

    async def read(self, limit: int) -> bytes:
        return b"bytes"

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"bytes"


class File(LinkedFile):
    """A file whose links are numbers; those below `good` are dead."""

    gone = frozenset({404})

    def __init__(self, *, good: int) -> None:
        super().__init__(REF, FakeClock(), get=self._answer)
        self._good = good
        self.made = 0
        self.asked: list[str] = []

    async def link(self) -> str:
        self.made += 1
        return str(self.made)

    def dead(self, status: int) -> MediaExpired:
        return MediaExpired(f"{self.shown} is gone ({status})")

    @asynccontextmanager
    async def _answer(self, link: str, headers: Mapping[str, str]) -> AsyncIterator[HttpAnswer]:
        self.asked.append(link)
        yield Answer(200 if int(link) >= self._good else 404)


@pytest.mark.parametrize(("good", "asked"), [(1, ["1"]), (2, ["1", "2"])])
async def test_a_file_comes_by_a_fresh_link_and_a_dead_one_is_replaced_once(good: int, asked: list[str]) -> None:
    file = File(good=good)
    async with file.open() as chunks:
        assert [chunk async for chunk in chunks] == [b"bytes"]
    assert file.asked == asked


async def test_a_file_whose_fresh_link_is_dead_is_given_up() -> None:
    file = File(good=3)
    async with file.open() as chunks:
        with pytest.raises(MediaExpired, match=r"this file is gone \(404\)"):
            await anext(chunks)
    assert file.asked == ["1", "2"]


def test_the_doctor_tells_a_refused_token_from_an_api_out_of_reach() -> None:
    refused = token_finding("bot", Unauthorized("no such token"), renew="Make a new one.", api="the API")
    unreached = token_finding("bot", AdapterError("no answer"), renew="Make a new one.", api="the API")
    assert (refused.ok, refused.says, refused.cure) == (False, "no such token", "Make a new one.")
    assert (unreached.ok, unreached.cure) == (False, "Check that this machine reaches the API.")


def test_the_doctor_compares_clocks_where_the_platform_tells_its_own() -> None:
    assert clock_findings("bot", "Theirs", theirs=None, ours=NOW) == ()
    (good,) = clock_findings("bot", "Theirs", theirs=NOW + timedelta(seconds=59), ours=NOW)
    (late,) = clock_findings("bot", "Theirs", theirs=NOW + timedelta(seconds=90), ours=NOW)
    assert (good.ok, late.ok, late.says) == (True, False, "it is 90 seconds away from Theirs's")


class Phone:
    """Notes when it was called."""

    def __init__(self, calls_per_minute: int) -> None:
        self.clock = FakeClock()
        self.pace = Pace(calls_per_minute, self.clock)
        self.made: list[float] = []
        self.refused = 0

    async def ring(self) -> None:
        try:
            await self.pace.call(self._ring)
        except RateLimited:
            self.refused += 1

    async def _ring(self) -> None:
        self.made.append(self.clock.monotonic())


async def test_a_minute_holds_so_many_calls_and_the_next_ones_wait_for_it_in_order() -> None:
    phone = Phone(3)
    for _ in range(3):
        await phone.ring()
        await phone.clock.advance(15)
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(phone.ring())
        await phone.clock.advance(60)
    assert phone.made == [0, 15, 30, 60, 75]


async def test_who_would_wait_too_long_is_told_so_at_once_and_takes_nobodys_turn() -> None:
    phone = Phone(1)
    await phone.ring()
    for _ in range(100):
        await phone.ring()
    assert (phone.made, phone.refused, phone.pace.wait) == ([0], 100, 60)
    await phone.clock.advance(60 - QUEUE_SECONDS)
    async with asyncio.TaskGroup() as group:
        group.create_task(phone.ring())
        await phone.clock.advance(QUEUE_SECONDS)
    assert phone.made == [0, 60]


async def test_a_platform_that_asks_for_patience_is_not_called_until_then() -> None:
    phone = Phone(5)

    async def refuse() -> None:
        raise RateLimited("slow down", retry_after=20)

    with pytest.raises(RateLimited, match="slow down"):
        await phone.pace.call(refuse)
    async with asyncio.TaskGroup() as group:
        group.create_task(phone.ring())
        await phone.clock.advance(19)
        assert phone.made == []
        await phone.clock.advance(1)
    assert phone.made == [20]


async def test_a_call_that_waited_is_not_made_if_the_platform_asked_for_patience_meanwhile() -> None:
    phone = Phone(1)
    waiting, refused = asyncio.Event(), asyncio.Event()

    async def refuse_later() -> None:
        waiting.set()
        await refused.wait()
        raise RateLimited("slow down", retry_after=100)

    async def first() -> None:
        with pytest.raises(RateLimited):
            await phone.pace.call(refuse_later)

    async with asyncio.TaskGroup() as group:
        group.create_task(first())
        await waiting.wait()
        await phone.clock.advance(50)
        group.create_task(phone.ring())
        await phone.clock.advance(1)
        refused.set()
        await phone.clock.advance(20)
    assert (phone.made, phone.refused) == ([], 1)
    assert phone.pace.wait == 80


async def test_a_caller_that_goes_away_while_it_waits_leaves_its_turn_to_others() -> None:
    phone = Phone(1)
    await phone.ring()
    await phone.clock.advance(50)
    async with asyncio.TaskGroup() as group:
        gone = group.create_task(phone.ring())
        await phone.clock.advance(1)
        gone.cancel()
        await phone.clock.advance(0)
        group.create_task(phone.ring())
        await phone.clock.advance(9)
    assert phone.made == [0, 60]


async def test_other_failures_do_not_close_the_line() -> None:
    phone = Phone(2)

    async def fail() -> None:
        raise AdapterError("no answer")

    with pytest.raises(AdapterError):
        await phone.pace.call(fail)
    assert phone.pace.wait == 0
