"""belino demo: a busy group on a fake Telegram, the real gateway, and a page to watch."""

import asyncio
import json
import os
import sys
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from belino.cli import OK
from belino.cli.command import PORT, seconds_up_to
from belino.cli.serve import first_error, stop_on_signals
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey
from belino.net.redact import configure_logging, hide

if TYPE_CHECKING:
    from belino.config import AdapterConfig, Config
    from belino.domain.ports import Adapter, AdapterContext
    from belino.gateway.accounts import MakeAdapter
    from belino.gateway.gateway import Gateway
    from belino.testing import TelegramServer
    from belino.testing.telegram.crowd import ChattyGroup

MESSAGES, MEDIA = 212, 61
"""With one question and its answer, 214 messages."""
OPENING = 30
"""Sent before the page opens, so that the group is not empty."""
PACE_SECONDS = 0.45
SLOWEST_SECONDS = 60.0
ASKED_AFTER = 110
BREATH_SECONDS = 5.0
"""Pause of the group after an answer, to let people read."""
QUESTION = "what is in this picture?"
SETTLING_SECONDS = 60.0
ARRIVING_SECONDS = 15.0
"""How long the group waits for the page to be opened."""
LOOK_AGAIN_SECONDS = 0.05

EXPLAINS = (
    "Eight people talk on a Telegram server that runs on this machine only; nothing leaves it.\n"
    "Watch, or ask about a picture. Ctrl-C ends the demo and deletes its data."
)


def demo_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--no-browser", action="store_true", help="only print the address of the page")
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument(
        "--pace",
        type=seconds_up_to(SLOWEST_SECONDS),
        default=PACE_SECONDS,
        metavar="SECONDS",
        help=f"between two messages (default: {PACE_SECONDS})",
    )
    pace.add_argument("--fast", action="store_const", const=0.0, dest="pace", help="send all messages at once")
    parser.add_argument("--port", type=PORT, default=0, metavar="N", help="the page's port; any free one unless given")


def run_demo(args: Namespace) -> int:
    import uvloop

    configure_logging("error")
    # The state folder of a real belino is not used, whatever --home says.
    with (
        TemporaryDirectory(prefix="belino-demo-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop,
    ):
        try:
            loop.run(_demo(args, Path(folder)))
        except* BelinoError as group:
            raise first_error(group) from None
    return OK


async def _demo(args: Namespace, folder: Path) -> None:
    from belino.gateway.gateway import Gateway
    from belino.storage.home import Home
    from belino.testing import TelegramServer
    from belino.testing.telegram.crowd import ChattyGroup
    from belino.web.server import serve

    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with TelegramServer() as server:
        crowd, visitor = ChattyGroup(server), server.user("You")
        config = _config(server, crowd, port=args.port)
        home = Home.at(folder / "home")
        async with Gateway(config, home, make_adapter=_with_voice(server, visitor)) as gateway:
            stop_on_signals(gateway)
            show = Show(args=args, server=server, crowd=crowd, gateway=gateway)
            async with asyncio.TaskGroup() as group:
                page = group.create_task(serve(gateway, ready=told.set_result))
                play = group.create_task(show.play(told))
                await gateway.run()
                play.cancel()
                page.cancel()
            await show.bill("In the end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """The script: what is said when, and what the terminal prints."""

    args: Namespace
    server: "TelegramServer"
    crowd: "ChattyGroup"
    gateway: "Gateway"

    async def play(self, told: asyncio.Future[str]) -> None:
        """Play the talk, with a question about a picture, unless the visitor asked one."""
        from belino.testing.faults import FILE
        from belino.testing.telegram.crowd import conversation

        lines = conversation(MESSAGES, MEDIA)
        for line in lines[:OPENING]:
            self.crowd.say(line)
        if not await self._until(self._known):
            raise BelinoError(
                f"no message of the group arrived within {SETTLING_SECONDS:g} seconds; is this machine overloaded?"
            )
        await self._open(await told)
        if self.args.pace:
            await self._until(self._watched, seconds=ARRIVING_SECONDS)
        picture, answers = None, 0
        for number, line in enumerate(lines[OPENING:], start=OPENING):
            said = self.crowd.say(line)
            picture = said if "photo" in said else picture
            if number == ASKED_AFTER and picture is not None and not self.server.calls[FILE]:
                self.crowd.ask(QUESTION, picture)
            await self.gateway.clock.sleep(self.args.pace)
            if len(self.server.sent) > answers and self.args.pace:
                answers = len(self.server.sent)
                await self.gateway.clock.sleep(BREATH_SECONDS)
        await self._until(self._quiet)
        await self.bill("So far")

    async def bill(self, title: str) -> None:
        """Print a summary and the savings."""
        from belino.gateway.savings import as_json

        told = as_json(await self.gateway.store.media_tallies())
        self._print({"savings": told}, f"{title}: {told['says']}")

    async def _open(self, url: str) -> None:
        where = f"{url}&c={quote(str(_group_key(self.crowd)), safe='')}"
        hide(url.partition("#token=")[2])
        self._print({"url": where}, f"belino demo is at {where}\n{EXPLAINS}")
        if not self.args.no_browser and _has_screen():
            await asyncio.to_thread(webbrowser.open, where)

    def _print(self, value: object, text: str) -> None:
        print(json.dumps(value, ensure_ascii=False) if self.args.json else text, flush=True)

    async def _known(self) -> bool:
        return bool(await self.gateway.store.conversations(platform="telegram"))

    async def _quiet(self) -> bool:
        counts = await self.gateway.store.counts()
        busy = ("turns_waiting", "turns_running", "parcels_ready", "parcels_sending")
        return not self.server.updates.pending and not any(counts[name] for name in busy)

    async def _watched(self) -> bool:
        return self.gateway.notices.watched()

    async def _until(self, done: Callable[[], Awaitable[bool]], *, seconds: float = SETTLING_SECONDS) -> bool:
        """Whether it happened in time; a visitor who keeps asking is no reason to stop."""
        try:
            async with asyncio.timeout(seconds):
                while not await done():
                    await self.gateway.clock.sleep(LOOK_AGAIN_SECONDS)
        except TimeoutError:
            return False
        return True


def _config(server: "TelegramServer", crowd: "ChattyGroup", *, port: int) -> "Config":
    """A typical configuration: the group is listed, all members may ask, the agent answers mentions."""
    from belino import registry
    from belino.config import AccessConfig, AdapterConfig, ChannelAccess, Config, ServerConfig
    from belino.net.redact import Secret

    options = registry.find("adapters", "telegram").config_type(
        token=Secret("DEMO_TOKEN", server.token), api_url=server.url
    )
    channel = {str(crowd.group["id"]): ChannelAccess(senders=("*",), mention=True)}
    telegram = AdapterConfig(platform="telegram", access=AccessConfig(channels=channel), options=options)
    return Config(server=ServerConfig(port=port), adapters=(*Config().adapters, telegram))


def _with_voice(server: "TelegramServer", visitor: dict[str, Any]) -> "MakeAdapter":
    """The usual adapters, except that the page's visitor is a member of the group and may speak there."""
    from belino.adapters.telegram import Adapter as TelegramAdapter
    from belino.gateway.accounts import from_registry

    said: dict[str, str] = {}
    visitor_id = visitor["id"]

    class Visited(TelegramAdapter):
        """The real adapter, with the visitor as a group member."""

        visitor = str(visitor_id)

        async def speak(self, where: ConversationKey, text: str, *, key: str, reply_to: str | None = None) -> str:
            """Send a message to the agent in the group."""
            if key not in said:
                name = f"@{server.bot['username']}"
                words = text if name in text else f"{name} {text}"
                group = server.chats[int(where.channel)]
                number = int(reply_to) if reply_to and reply_to.isdecimal() else 0
                answered = server.messages.get((group["id"], number))
                fields = {} if answered is None else {"reply_to": answered}
                said[key] = str(server.say(group, visitor, words, **fields)["message_id"])
            return said[key]

    def make(config: "AdapterConfig", context: "AdapterContext") -> "Adapter":
        return Visited(config.options, context) if config.platform == "telegram" else from_registry(config, context)

    return make


def _group_key(crowd: "ChattyGroup") -> ConversationKey:
    return ConversationKey(platform="telegram", account="default", channel=str(crowd.group["id"]))


def _has_screen() -> bool:
    """A text browser would hide the demo's output."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
