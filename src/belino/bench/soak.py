"""Soak: a gateway on all platforms under steady load and some chaos; whether its memory, descriptors or errors grow."""

import asyncio
import base64
import json
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from belino.bench import Row
from belino.bench.start import resident
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.stored import ScreenedArrival, Verdict
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing import GatewayProcess, make_png
from belino.testing.discord import DiscordServer
from belino.testing.discord.request import DiscordPace, slow_down
from belino.testing.faults import CannedAnswer, Reset
from belino.testing.file_server import FakeUpload
from belino.testing.slack import SlackServer
from belino.testing.slack.request import SlackPace
from belino.testing.telegram import TelegramServer
from belino.testing.telegram.request import TelegramPace

MINUTES, RATE = 2.0, 20.0
JUDGED_MINUTES = 30.0
"""A shorter run mostly measures caches and the allocator filling up."""
GOAL_SLOPE = 1.0
SAMPLE_SECONDS = 5.0
SETTLE_SECONDS = 600.0
PAST_CHANNELS, PAST_MESSAGES, PAST_BATCH = 40, 20_000, 500
FULL = 0.9
"""The share of its limit at which a cache counts as full: an entry that does not fit makes room for itself."""
PICTURE_EVERY, EDIT_EVERY, CHAOS_EVERY = 20, 10, 200
"""One message in so many has a picture, is edited, or meets a failing platform."""
PICTURES = 50
HOUR = 3_600.0
GROWN_DESCRIPTORS = 30
"""The number of connections varies with sending; a leak exceeds this."""

_WORDS = (
    "What is in this picture?",
    "Please tell me what was said about the trip.",
    "find the train to Bergen",
    "Thank you, that is all for now.",
)

PEOPLE = 10
WAIT_SECONDS = 60.0
LOOK_AGAIN_SECONDS = 0.05
_MANY = 100_000


class Crowd(Protocol):
    """People who talk to a gateway on one platform."""

    async def say(self, gateway: GatewayProcess, text: str, picture: bytes | None) -> None:
        """The next person says something, perhaps with a picture."""
        ...

    def edit(self) -> None:
        """The last speaker edits the message, where that is possible."""
        ...

    def fail(self) -> None:
        """The platform fails the gateway's next call."""
        ...

    async def heard(self, gateway: GatewayProcess) -> None:
        """Wait until the gateway listens."""
        ...


Platforms = tuple[dict[str, Any], Mapping[str, str], tuple[Crowd, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakSample:
    """The gateway at one moment."""

    at: float
    megabytes: float
    cached: float
    """Megabytes in caches."""
    descriptors: int


def run(*, corpus: Path | None = None, minutes: float = MINUTES, rate: float = RATE) -> list[Row]:
    """Measure for so many minutes. A corpus has no effect."""
    return asyncio.run(_measure(minutes, rate))


async def _measure(minutes: float, rate: float) -> list[Row]:
    with TemporaryDirectory(prefix="belino-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        if minutes >= JUDGED_MINUTES:
            await _fill(home)
        async with crowds() as (table, secrets, people):
            (home / "belino.json").write_text(json.dumps(table), encoding="utf-8")
            with GatewayProcess(home, environment=secrets) as gateway:
                if minutes >= JUDGED_MINUTES:
                    await _full_caches(gateway)
                for crowd in people:
                    await crowd.heard(gateway)
                async with asyncio.TaskGroup() as group:
                    load = group.create_task(_talk(people, gateway, minutes, rate))
                    samples = await _sampled(gateway, load)
                sent = load.result()
                unanswered = await _unanswered(gateway, sent)
                unhandled = sum((await _numbers(gateway, "belino_unhandled_exceptions_total")).values())
                assert await asyncio.to_thread(gateway.stop) == 0
    return _rows(samples, minutes=minutes, sent=sent, unanswered=unanswered, unhandled=unhandled)


async def _fill(home: Path) -> None:
    """Give a state folder a past whose index does not fit into its cache, as that of a gateway that ran for months."""
    store = await open_store(Home.at(home), clock=SystemClock())
    verdict = Verdict(standing=Standing.OBSERVED, reason="bench")
    rng = Random(2)  # noqa: S311 - the same past every time
    begun = datetime.now(UTC) - timedelta(days=30)
    for channel in range(PAST_CHANNELS):
        conversation = ConversationKey(platform="web", account="default", channel=f"past-{channel}")
        for first in range(0, PAST_MESSAGES, PAST_BATCH):
            await store.take_in_all(
                [
                    ScreenedArrival(
                        arrival=Message(
                            id=f"{number}",
                            conversation=conversation,
                            author=Author(id="ann", name="Ann"),
                            sent=begun + timedelta(seconds=number),
                            text=" ".join(f"word{int(rng.paretovariate(0.5)) % 50_000}" for _ in range(12)),
                        ),
                        verdict=verdict,
                    )
                    for number in range(first, first + PAST_BATCH)
                ]
            )
    await store.close()


async def _full_caches(gateway: GatewayProcess) -> None:
    """Wait until the gateway has indexed its past, so that the word index is at its limit."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        held = (await _numbers(gateway, "belino_cache_bytes"))['belino_cache_bytes{cache="word_index"}']
        most = (await _numbers(gateway, "belino_cache_most_bytes"))['belino_cache_most_bytes{cache="word_index"}']
        if held > FULL * most:
            return
        await asyncio.sleep(1)
    raise TimeoutError(f"the word index holds {held:,.0f} of {most:,.0f} bytes after {SETTLE_SECONDS:g} s")


async def _talk(people: Sequence[Crowd], gateway: GatewayProcess, minutes: float, rate: float) -> int:
    """Send so many messages a second, in turn on every platform. Returns how many were sent."""
    rng = Random(1)  # noqa: S311 - the same load every time
    pictures = [make_png(320 + number, 240) for number in range(PICTURES)]
    begun, sent = time.monotonic(), 0
    while (now := time.monotonic() - begun) < minutes * 60:
        while sent < now * rate:
            crowd = people[sent % len(people)]
            number = sent // len(people)  # so that each platform gets its share of everything
            if number % CHAOS_EVERY == CHAOS_EVERY - 1:
                crowd.fail()
            picture = rng.choice(pictures) if number % PICTURE_EVERY == 0 else None
            await crowd.say(gateway, f"message {sent}: {rng.choice(_WORDS)}", picture)
            if number % EDIT_EVERY == EDIT_EVERY - 1:
                crowd.edit()
            sent += 1
        await asyncio.sleep(0.5 / rate)
    return sent


async def _sampled(gateway: GatewayProcess, load: "asyncio.Task[int]") -> list[SoakSample]:
    samples: list[SoakSample] = []
    while not load.done():
        samples.append(await _sample(gateway))
        await asyncio.wait({load}, timeout=SAMPLE_SECONDS)
    return samples


async def _sample(gateway: GatewayProcess) -> SoakSample:
    cached = sum((await _numbers(gateway, "belino_cache_bytes")).values())
    handles = Path(f"/proc/{gateway.pid}/fd")
    return SoakSample(
        at=time.monotonic(),
        megabytes=await asyncio.to_thread(resident, gateway.pid),
        cached=cached / 1e6,
        descriptors=len(os.listdir(handles)) if handles.exists() else 0,  # noqa: PTH208 - only counted
    )


async def _numbers(gateway: GatewayProcess, metric: str) -> dict[str, float]:
    """The values of one metric, by label."""
    status, text = await asyncio.to_thread(gateway.call, "GET", "/metrics")
    assert status == 200, text
    lines = (line for line in text.decode().splitlines() if line.startswith((f"{metric}{{", f"{metric} ")))
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


async def _unanswered(gateway: GatewayProcess, sent: int) -> int:
    """How many messages have no answer, once everything is processed."""
    deadline = time.monotonic() + SETTLE_SECONDS
    answered = 0.0
    while time.monotonic() < deadline:
        answered = (await _numbers(gateway, "belino_turns_total")).get('belino_turns_total{outcome="answered"}', 0)
        if answered >= sent:
            return 0
        await asyncio.sleep(1)
    return sent - int(answered)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the second value over the first, by least squares."""
    count = len(points)
    if count < 2:
        return 0.0
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def _rows(samples: Sequence[SoakSample], *, minutes: float, sent: int, unanswered: int, unhandled: float) -> list[Row]:
    half = [sample for sample in samples if sample.at >= (samples[0].at + samples[-1].at) / 2]
    growth = slope([(one.at, one.megabytes) for one in half]) * HOUR
    cached = slope([(one.at, one.cached) for one in half]) * HOUR
    judged = minutes >= JUDGED_MINUTES
    handles = half[-1].descriptors - min(sample.descriptors for sample in half)
    return [
        Row(
            metric="memory slope, MB/h over the last half",
            ours=growth,
            beside_name="caches",
            beside=cached,
            goal=f"< {GOAL_SLOPE:g}, from full caches on" if judged else f"judged from {JUDGED_MINUTES:g} minutes on",
            # All memory counts: the caches are full from the start.
            ok=growth < GOAL_SLOPE if judged else None,
        ),
        Row(metric="MB in memory at the end", ours=samples[-1].megabytes, beside_name="caches", beside=half[-1].cached),
        Row(
            metric="descriptors at the end",
            ours=half[-1].descriptors,
            beside_name="least in the last half",
            beside=min(sample.descriptors for sample in half),
            goal=f"< {GROWN_DESCRIPTORS} more",
            ok=handles < GROWN_DESCRIPTORS,
        ),
        Row(metric="unhandled task exceptions", ours=unhandled, goal="0", ok=unhandled == 0),
        Row(metric=f"of {sent:,} messages not answered", ours=unanswered, goal="0", ok=unanswered == 0),
    ]


@asynccontextmanager
async def crowds() -> AsyncIterator[Platforms]:
    """The configuration of a gateway, its secrets, and the people it serves."""
    telegram = TelegramServer(pace=TelegramPace(chat_burst=_MANY, group_per_minute=_MANY, all_per_second=_MANY))
    discord = DiscordServer(pace=DiscordPace(routes={}, other=(_MANY, 1.0), all_per_second=_MANY))
    slack = SlackServer(
        pace=SlackPace(channel_burst=1_000, channel_per_second=1_000.0, posts=_MANY, other=_MANY, methods={})
    )
    async with AsyncExitStack() as opened:
        for server in (telegram, discord, slack):
            await opened.enter_async_context(server)
        everybody = {"senders": ["*"]}
        adapters = {
            "web": {},
            "telegram": {"token": "env:BENCH_TELEGRAM", "api_url": telegram.url, "access": everybody},
            "discord": {
                "token": "env:BENCH_DISCORD",
                "api_url": discord.api_url,
                "cdn_url": discord.cdn.url,
                "access": everybody,
            },
            "slack": {
                "bot_token": "env:BENCH_SLACK_BOT",
                "app_token": "env:BENCH_SLACK_APP",
                "api_url": slack.api_url,
                "access": everybody,
            },
        }
        secrets = {
            "BENCH_TELEGRAM": telegram.token,
            "BENCH_DISCORD": discord.token,
            "BENCH_SLACK_BOT": slack.bot_token,
            "BENCH_SLACK_APP": slack.app_token,
        }
        people = (WebCrowd(), TelegramCrowd(telegram), DiscordCrowd(discord), SlackCrowd(slack))
        yield {"adapters": adapters}, secrets, people


class WebCrowd:
    """People in the web chat, each in a conversation of their own."""

    def __init__(self) -> None:
        self._numbers = count()

    async def say(self, gateway: GatewayProcess, text: str, picture: bytes | None) -> None:
        where = f"web:default:c{next(self._numbers) % PEOPLE}"
        wish: dict[str, Any] = {"conversation": where, "message": text}
        if picture is not None:
            content = base64.b64encode(picture).decode()
            wish["attachments"] = [{"mime_type": "image/png", "file_name": "p.png", "content": content}]
        status, answer = await asyncio.to_thread(gateway.call, "POST", "/api/messages", wish)
        assert status == 200, answer

    def edit(self) -> None:
        """The web chat has no edits."""

    def fail(self) -> None:
        """The web chat has no platform behind it."""

    async def heard(self, gateway: GatewayProcess) -> None:
        for number in range(PEOPLE):
            status, answer = await asyncio.to_thread(gateway.call, "POST", "/api/conversations", {"name": f"c{number}"})
            assert status == 201, answer


class _Talkers:
    """People who write to a bot of one platform directly, in turn."""

    def __init__(self, server: TelegramServer | DiscordServer | SlackServer) -> None:
        self._server = server
        self._people: list[Any] = [server.user(f"person{number}") for number in range(PEOPLE)]
        self._numbers = count()
        self._last: Any = None

    async def say(self, gateway: GatewayProcess, text: str, picture: bytes | None) -> None:
        who = self._next()
        files = [] if picture is None else [FakeUpload(content=picture, name="p.png")]
        self._last = self._server.say(who, who, text, files=files)

    def edit(self) -> None:
        self._server.edit(self._last, "said otherwise")

    def _next(self) -> Any:
        return self._people[next(self._numbers) % len(self._people)]

    async def heard(self, gateway: GatewayProcess) -> None:
        """Wait until the gateway is connected to the platform."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                _, status = await asyncio.to_thread(gateway.call, "GET", "/api/status")
                if all(adapter["state"] == "running" for adapter in status["adapters"]):
                    return
                await asyncio.sleep(LOOK_AGAIN_SECONDS)


class TelegramCrowd(_Talkers):
    """People who write to a Telegram bot."""

    async def say(self, gateway: GatewayProcess, text: str, picture: bytes | None) -> None:
        who = self._next()
        if picture is None:
            self._last = self._server.say(who, who, text)
        else:
            self._server.say(who, who, caption=text, document=FakeUpload(content=picture, name="p.png"))

    def fail(self) -> None:
        self._server.fail("sendMessage", CannedAnswer(status=429, parameters={"retry_after": 1}))
        self._server.fail("getUpdates", Reset())


class DiscordCrowd(_Talkers):
    """People who write to a Discord bot, and share a guild with it."""

    def __init__(self, server: DiscordServer) -> None:
        super().__init__(server)
        server.guild("Everybody", *self._people)

    def fail(self) -> None:
        self._server.fail("POST /channels/{}/messages", slow_down(0.5))
        self._server.fail("POST /channels/{}/messages", Reset(done=True))


class SlackCrowd(_Talkers):
    """People who write to a Slack app."""

    def fail(self) -> None:
        self._server.fail("chat.postMessage", Reset(done=True))
