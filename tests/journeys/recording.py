"""A conversation about a photo on each platform of our own, recorded, and everything a recording must not hold."""

import asyncio
import base64
import binascii
import gzip
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from belino.domain.message import Author, ConversationKey, Message
from belino.domain.ports import Agent
from belino.domain.reply import ParcelState
from belino.domain.stored import ParcelRecord
from belino.gateway.cassettes import WrittenCassette
from belino.gateway.gateway import Gateway
from belino.testing import DiscordServer, LineServer, SlackServer, TelegramServer, make_jpeg
from journeys import busy_group, busy_line, busy_server, busy_workspace
from journeys.busy_place import BusyPlace, Curious, until

PHOTO = make_jpeg(64, 48)
QUESTION = "what is on it, and does Bob know?"


class WebPlace(BusyPlace):
    """The web chat alone."""

    platform = "web"
    environment: dict[str, str] = {}  # noqa: RUF012 - a property in the other places
    sent: Any = ()

    def adapter(self) -> dict[str, Any]:
        return {}

    def table(self) -> dict[str, Any]:
        return {"sessions": {"album_window_ms": 300}}

    def channel(self) -> ConversationKey:
        return ConversationKey(platform="web", account="default", channel="trip-to-rome")

    @property
    def private(self) -> ConversationKey:
        return self.channel()

    def write(self, text: str, **more: Any) -> object:
        raise NotImplementedError


@asynccontextmanager
async def place_on(platform: str, path: Path, **settings: Any) -> AsyncIterator[BusyPlace]:
    """A place with people on this platform."""
    match platform:
        case "telegram":
            async with TelegramServer() as telegram:
                yield busy_group.BusyGroup(telegram, path)
        case "discord":
            async with DiscordServer() as discord:
                yield busy_server.BusyServer(discord, path, **settings)
        case "slack":
            async with SlackServer() as slack:
                yield busy_workspace.BusyWorkspace(slack, path, **settings)
        case "line":
            async with LineServer() as line:
                yield busy_line.BusyLine(line, path)
        case _:
            yield WebPlace(path)


async def show_photo(place: BusyPlace, gateway: Gateway, words: str = QUESTION) -> None:
    """Somebody shows a photo in the room and asks the agent."""
    match place:
        case busy_group.BusyGroup():
            place.server.say(place.chat, place.ann, photo=PHOTO, caption=f"{busy_group.BOT} {words}")
        case busy_server.BusyServer():
            place.discord.say(place.room, place.ann, f"{busy_server.BOT} {words}", files=[PHOTO])
        case busy_workspace.BusyWorkspace():
            place.slack.say(place.room, place.ann, f"{busy_workspace.BOT} {words}", files=[PHOTO])
        case busy_line.BusyLine():
            photo = place.line.say(place.room, place.ann, image=PHOTO)
            place.line.say(place.room, place.ann, f"{busy_line.BOT} {words}", quote=photo)
        case _:
            await _post(gateway, place.channel(), words)


async def _post(gateway: Gateway, where: ConversationKey, words: str) -> None:
    web = gateway.web
    assert web is not None
    author = Author(id="user-4711", name="Ann Walker")
    await web.post(Message(conversation=where, id="m-1", author=author, sent=gateway.clock.now(), text=words))


async def answered(gateway: Gateway, count: int = 1) -> tuple[ParcelRecord, ...]:
    """Every parcel, once so many are sent and the recording knows."""
    parcels: tuple[ParcelRecord, ...] = ()

    async def sent() -> bool:
        nonlocal parcels
        parcels = tuple(await gateway.store.parcels(state=ParcelState.SENT))
        ends = [each for each in gateway.recorder.journal.records() if each["record"] == "parcel"]
        return len(parcels) >= count and (not gateway.recorder.on or len(ends) >= count)

    await until(sent)
    return parcels


async def record(
    place: BusyPlace, agent: Agent | None = None, talk: Callable[..., Any] = show_photo, **wishes: Any
) -> WrittenCassette:
    """Record one question and its answer."""
    async with place.gateway(agent or Curious()) as gateway:
        await gateway.record(**wishes)
        await talk(place, gateway)
        await answered(gateway)
        return await gateway.stop_recording()


def readings(path: Path) -> Iterator[str]:
    """A file as somebody who looks for something in it would read it."""
    raw = path.read_bytes()
    plain = gzip.decompress(raw)
    text = plain.decode()
    yield raw.decode("latin-1")
    yield text
    yield unquote(text)
    yield text.encode().decode("unicode_escape", errors="replace")
    for packed in re.findall(rb"[A-Za-z0-9+/]{16,}={0,2}", plain):
        with suppress(binascii.Error):
            yield base64.b64decode(packed + b"=" * (-len(packed) % 4)).decode("latin-1")


async def make_samples(folder: Path) -> None:
    """Record a conversation on every platform anew, for tests/samples: `python -m journeys.recording tests/samples`."""
    for platform in sys.argv[2:] or ("discord", "line", "slack", "telegram", "web"):
        with tempfile.TemporaryDirectory() as home:
            async with place_on(platform, Path(home) / "home") as place:
                written = await record(place)
            (folder / platform / "photo.cassette.jsonl.gz").write_bytes(written.path.read_bytes())


if __name__ == "__main__":
    asyncio.run(make_samples(Path(sys.argv[1])))
