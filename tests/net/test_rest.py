"""What adapters share: URLs of the configuration, rate limits, files by short-lived links, findings of the doctor."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from belino.domain.errors import AdapterError, ConfigError, MediaExpired, RateLimited, Unauthorized
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Arrival
from belino.domain.ports import Accept, HttpAnswer, Taken
from belino.net.rest import HookInbox, LinkedFile, RateLimits, check_base_url, clock_findings, token_finding
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
