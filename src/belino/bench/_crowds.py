"""Crowds on every platform at once, for load: a Telegram, a Discord and a Slack on loopback, and the web chat."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any, Protocol

from belino.testing.discord import DiscordServer
from belino.testing.discord.request import DiscordPace, slow_down
from belino.testing.faults import CannedAnswer, Reset
from belino.testing.file_server import FakeUpload
from belino.testing.process import GatewayProcess
from belino.testing.slack import SlackServer
from belino.testing.slack.request import SlackPace
from belino.testing.telegram import TelegramServer
from belino.testing.telegram.request import TelegramPace

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
    """People of one platform who speak in turn."""

    def __init__(self, people: list[Any]) -> None:
        self._people = people
        self._numbers = count()
        self._last: Any = None

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
    """People who write to a Telegram bot directly."""

    def __init__(self, server: TelegramServer) -> None:
        super().__init__([server.user(f"Person {number}") for number in range(PEOPLE)])
        self._server = server

    async def say(self, gateway: GatewayProcess, text: str, picture: bytes | None) -> None:
        who = self._next()
        if picture is None:
            self._last = self._server.say(who, who, text)
        else:
            self._server.say(who, who, caption=text, document=FakeUpload(content=picture, name="p.png"))

    def edit(self) -> None:
        self._server.edit(self._last, "said otherwise")

    def fail(self) -> None:
        self._server.fail("sendMessage", CannedAnswer(status=429, parameters={"retry_after": 1}))
        self._server.fail("getUpdates", Reset())


class DiscordCrowd(_Talkers):
    """People who write to a Discord bot directly."""

    def __init__(self, server: DiscordServer) -> None:
        super().__init__([server.user(f"person{number}") for number in range(PEOPLE)])
        server.guild("Everybody", *self._people)
        self._server = server

    async def say(self, gateway: GatewayProcess, text: str, picture: bytes | None) -> None:
        who = self._next()
        self._last = self._server.say(who, who, text, files=_files(picture))

    def edit(self) -> None:
        self._server.edit(self._last, "said otherwise")

    def fail(self) -> None:
        self._server.fail("POST /channels/{}/messages", slow_down(0.5))
        self._server.fail("POST /channels/{}/messages", Reset(done=True))


class SlackCrowd(_Talkers):
    """People who write to a Slack app directly."""

    def __init__(self, server: SlackServer) -> None:
        super().__init__([server.user(f"Person {number}") for number in range(PEOPLE)])
        self._server = server

    async def say(self, gateway: GatewayProcess, text: str, picture: bytes | None) -> None:
        who = self._next()
        self._last = self._server.say(who, who, text, files=_files(picture))

    def edit(self) -> None:
        self._server.edit(self._last, "said otherwise")

    def fail(self) -> None:
        self._server.fail("chat.postMessage", Reset(done=True))


def _files(picture: bytes | None) -> list[FakeUpload]:
    return [] if picture is None else [FakeUpload(content=picture, name="p.png")]
