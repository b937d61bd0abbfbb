"""Files of every kind, asked for in every form, on every platform: the plan, what is told, and what arrives agree."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.harness import until
from adapters.in_house import at_work
from belino.adapters.telegram import client as telegram_client
from belino.cli.files import planned_files
from belino.delivery.decide import FORM_NAMES, Action
from belino.domain.errors import ToolError
from belino.domain.graphemes import cut
from belino.domain.limits import SendAs
from belino.domain.media import MediaKind, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.reply import ParcelState
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import FakeUpload, SlackServer, TelegramServer
from belino.testing.discord import TOKEN, DiscordServer
from belino.testing.discord.request import DiscordPace
from belino.testing.faults import CannedAnswer
from belino.testing.files import make_png, make_wav, sample_files
from belino.testing.slack.request import SlackPace
from belino.testing.telegram.request import TelegramPace
from belino.web.wire import media_json

pytestmark = pytest.mark.usefixtures("brisk_discord")

PICTURES = ("photo.jpg", "drawing.png", "wave.gif", "sticker.webp", "old.bmp", "logo.svg")
STREAMS = ("voice.ogg", "old.oga", "song.mp3", "memo.m4a", "take.wav", "clip.mp4", "clip.mov", "sticker.webm")
OTHERS = ("dance.tgs", "report.pdf", "ours.docx", "notes.txt", "files.zip")
FORMS = {name: form for form, name in FORM_NAMES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A file on its way, as a plan, a tool or a platform tells it; None where it does not."""

    name: str
    mime: str
    size: int
    form: SendAs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A direct chat on one platform, and the files that arrive there."""

    where: ConversationKey
    settings: dict[str, Any]
    ready: Callable[[], object]
    arrived: Callable[[Gateway], Awaitable[list[Sent]]]
    has_voice: bool = True

    @asynccontextmanager
    async def open(self, home: Path, **more: Any) -> AsyncIterator[Gateway]:
        """A gateway that is connected to the platform."""
        table = {**self.settings, **({} if self.where.platform == "web" else {"access": {"senders": ["*"]}})}
        own: dict[str, Any] = {self.where.platform: table}
        async with at_work(home, more=more, **own) as (gateway, _):
            await until(self.ready)
            yield gateway


@pytest.fixture
async def discord() -> AsyncIterator[DiscordServer]:
    async with DiscordServer(pace=DiscordPace(routes={}, other=(10_000, 1.0), all_per_second=10_000)) as running:
        yield running


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    pace = SlackPace(methods={}, other=10_000, channel_burst=10_000, channel_per_second=1e5, posts=10_000)
    async with SlackServer(pace=pace) as running:
        yield running


@pytest.fixture
async def telegram_post(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Post]:
    monkeypatch.setattr(telegram_client, "ALL_PER_SECOND", 10_000)
    pace = TelegramPace(chat_per_second=1e5, chat_burst=10_000, all_per_second=10_000)
    async with TelegramServer(pace=pace) as server:
        monkeypatch.setenv("OUT_TOKEN", server.token)
        ada = server.user("Ada")

        async def arrived(_: Gateway) -> list[Sent]:
            forms = [next(form for form in SendAs if form in message) for message in server.sent]
            return [replace(_sent(file), form=form) for file, form in zip(server.received, forms, strict=True)]

        yield Post(
            where=ConversationKey(platform="telegram", account="default", channel=str(ada["id"])),
            settings={"token": "env:OUT_TOKEN", "api_url": server.url},
            ready=lambda: server.calls["getUpdates"],
            arrived=arrived,
        )


@pytest.fixture
def discord_post(discord: DiscordServer, monkeypatch: pytest.MonkeyPatch) -> Post:
    monkeypatch.setenv("OUT_TOKEN", TOKEN)

    async def arrived(_: Gateway) -> list[Sent]:
        voices = [SendAs.VOICE if message["flags"] & 8192 else None for message in discord.sent]
        return [replace(_sent(file), form=form) for file, form in zip(discord.received, voices, strict=True)]

    return Post(
        where=ConversationKey(platform="discord", account="default", channel=discord.dm(discord.user("ada"))["id"]),
        settings={"token": "env:OUT_TOKEN", "api_url": discord.api_url, "gateway_url": discord.gateway_url},
        ready=lambda: discord.sessions.identified,
        arrived=arrived,
    )


@pytest.fixture
def slack_post(slack: SlackServer, monkeypatch: pytest.MonkeyPatch) -> Post:
    monkeypatch.setenv("OUT_BOT", slack.bot_token)
    monkeypatch.setenv("OUT_APP", slack.app_token)

    async def arrived(_: Gateway) -> list[Sent]:
        return [_sent(file) for file in slack.received]

    return Post(
        where=ConversationKey(platform="slack", account="default", channel=slack.dm(slack.user("Ada"))["id"]),
        settings={"bot_token": "env:OUT_BOT", "app_token": "env:OUT_APP", "api_url": slack.api_url},
        ready=lambda: slack.socket_mode.connections,
        arrived=arrived,
        has_voice=False,
    )


@pytest.fixture
def web_post() -> Post:
    where = ConversationKey(platform="web", account="default", channel="main")

    async def arrived(gateway: Gateway) -> list[Sent]:
        shown = await gateway.store.history(where, limit=1_000)
        return [
            Sent(
                name=ref.file_name or "",
                mime=ref.mime,
                size=ref.size or 0,
                form=SendAs.VOICE if ref.kind is MediaKind.VOICE else None,
            )
            for message in shown
            for ref in message.media
        ]

    return Post(where=where, settings={}, ready=lambda: True, arrived=arrived)


@pytest.fixture(params=["telegram", "discord", "slack", "web"])
def post(request: pytest.FixtureRequest) -> Post:
    found: Post = request.getfixturevalue(f"{request.param}_post")
    return found


def _sent(file: FakeUpload) -> Sent:
    return Sent(name=file.name or "", mime=file.mime or "", size=file.announced)


@pytest.mark.slow
@pytest.mark.parametrize("has_decoder", [True, False], ids=["av", "core"])
async def test_what_is_planned_and_told_is_what_arrives(
    post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_decoder: bool
) -> None:
    if not has_decoder:
        monkeypatch.setitem(sys.modules, "av", None)
    paths = _written(Home.at(tmp_path / "home").outgoing(post.where), *(() if has_decoder else STREAMS))
    wishes = [(path, form) for form in (None, *SendAs) for path in paths]
    async with post.open(tmp_path / "home") as gateway:
        planned = await _planned(gateway, post.where, wishes)
        told = [await _told(gateway, post.where, path, form) for path, form in wishes]
        differences = await _differences(gateway, post.where)
        arrived = await post.arrived(gateway)
    assert told == [each and each.form for each in planned]
    expected = [each for each in planned if each is not None]
    assert arrived == [_as_seen(each, on, post) for each, on in zip(expected, arrived, strict=True)]
    assert differences == []


async def test_a_file_at_a_url_that_net_allow_names_arrives_and_no_other(post: Post, tmp_path: Path) -> None:
    async with _serving(make_png(20, 10)) as port:
        call = {"url": f"http://127.0.0.1:{port}/chart.png", "caption": "The chart"}
        async with post.open(tmp_path / "home", net={"allow": [f"127.0.0.1:{port}"]}) as gateway:
            (block,) = await gateway.toolbox(post.where).call("send_media", call)
            assert await _differences(gateway, post.where) == []
            (arrived,) = await post.arrived(gateway)
        async with post.open(tmp_path / "other") as gateway:
            with pytest.raises(ToolError, match="only public"):
                await gateway.toolbox(post.where).call("send_media", call)
    assert isinstance(block, TextBlock) and block.text.startswith("chart.png: image/png, 20×10, ")
    assert (arrived.name, arrived.size) == ("chart.png", len(make_png(20, 10)))


LONG_WORDS = "a boat and its shadow, " * 60


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"caption": "*The* harbour & sea"}, "The harbour & sea"),
        ({"caption": "Look", "alt": "Boats below a crane"}, "Boats below a crane"),
        ({"alt": LONG_WORDS}, LONG_WORDS),
        ({}, ""),
    ],
    ids=["caption", "alt", "long", "none"],
)
async def test_a_picture_has_alt_text_where_the_platform_has_it(
    post: Post, request: pytest.FixtureRequest, tmp_path: Path, given: dict[str, str], said: str
) -> None:
    _written(Home.at(tmp_path / "home").outgoing(post.where), "drawing.png", "report.pdf")
    async with post.open(tmp_path / "home") as gateway:
        for name in ("drawing.png", "report.pdf"):
            await gateway.toolbox(post.where).call("send_media", {"path": name, **given})
        assert await _differences(gateway, post.where) == []
        shown = await gateway.store.history(post.where, limit=10)
        stored = [media_json(ref, None)["alt"] for message in shown for ref in message.media]
    assert stored == [said.strip() or None, None]
    match post.where.platform:
        case "discord":
            files = [file for sent in request.getfixturevalue("discord").sent for file in sent["attachments"]]
            told, most = [file.get("description") or "" for file in files], 1_024
        case "slack":
            files = [file for sent in request.getfixturevalue("slack").sent for file in sent["files"]]
            told, most = [file.get("alt_txt", "") for file in files], 1_000
        case _:
            return  # Telegram has none, and the web page shows what is stored
    assert told == [cut(said.strip(), most - 1), ""]


async def test_a_voice_message_that_slack_shows_as_a_sound_is_told_as_such(slack_post: Post, tmp_path: Path) -> None:
    _written(Home.at(tmp_path / "home").outgoing(slack_post.where), "voice.ogg")
    async with slack_post.open(tmp_path / "home") as gateway:
        (block,) = await gateway.toolbox(slack_post.where).call("send_media", {"path": "voice.ogg", "as": "voice"})
    assert isinstance(block, TextBlock) and block.text.endswith("as a voice message (people see an audio file here).")


async def test_what_slack_stored_otherwise_than_planned_is_told_by_explain(
    slack_post: Post, slack: SlackServer, tmp_path: Path
) -> None:
    _written(Home.at(tmp_path / "home").outgoing(slack_post.where), "report.pdf")
    size = len(sample_files()["report.pdf"][1])
    async with slack_post.open(tmp_path / "home") as gateway:
        shares = {"private": {slack_post.where.channel: [{"ts": "1795000000.000100"}]}}
        stored = {"ok": True, "file": {"id": "F0BLN000001", "size": 7, "name": "report.pdf", "shares": shares}}
        slack.fail("files.info", CannedAnswer(status=200, body=json.dumps(stored).encode()))
        await _told(gateway, slack_post.where, Path("report.pdf"), None)
        differences = await _differences(gateway, slack_post.where)
    assert differences == [f"report.pdf: the platform holds 7 of {size} bytes"]


@asynccontextmanager
async def _serving(content: bytes) -> AsyncIterator[int]:
    """A web server on this machine with one file; its port."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=content, content_type="image/png")

    app = web.Application()
    app.router.add_get("/chart.png", answer)
    async with TestServer(app, host="127.0.0.1") as server:
        assert server.port is not None
        yield server.port


def _as_seen(planned: Sent, arrived: Sent, post: Post) -> Sent:
    """What was planned, without the type and form that a platform is not told; most are told of a voice message."""
    is_told = arrived.form is not None or (planned.form is SendAs.VOICE and post.has_voice)
    form = planned.form if is_told else None
    return replace(planned, form=form, mime=planned.mime if arrived.mime else "")


def _written(folder: Path, *names: str) -> list[Path]:
    samples = sample_files()
    for name in names or (*PICTURES, *STREAMS, *OTHERS):
        (folder / name).write_bytes(make_wav(0.5) if name == "take.wav" else samples[name][1])
    return [folder / name for name in names or (*PICTURES, *STREAMS, *OTHERS)]


async def _planned(
    gateway: Gateway, where: ConversationKey, wishes: Sequence[tuple[Path, SendAs | None]]
) -> list[Sent | None]:
    """What `belino media plan` says; None for a file that is not sent."""
    (own,) = gateway.config.adapters
    decisions, _ = await planned_files(where.platform, wishes, gateway.config, own)
    return [
        Sent(name=each.offer.name, mime=each.offer.mime, size=each.offer.size, form=each.send_as)
        if each.action is Action.SEND
        else None
        for each in decisions
    ]


async def _told(gateway: Gateway, where: ConversationKey, path: Path, wish: SendAs | None) -> SendAs | None:
    """The form that `send_media` announces; None if it refuses the file."""
    more = {} if wish is None else {"as": wish.value}
    try:
        (block,) = await gateway.toolbox(where).call("send_media", {"path": f"outgoing/{path.name}", **more})
    except ToolError:
        return None
    assert isinstance(block, TextBlock)
    found = re.search(r"It goes out now as (an? [a-z ]+?)(?: \(|\.)", block.text)
    assert found is not None, block.text
    return FORMS[found[1]]


async def _differences(gateway: Gateway, where: ConversationKey) -> list[str]:
    """What platforms reported to have stored otherwise than planned."""
    parcels = await gateway.store.parcels(limit=1_000)
    while any(parcel.state is not ParcelState.SENT for parcel in parcels):
        await asyncio.sleep(0.01)
        parcels = await gateway.store.parcels(limit=1_000)
    told = list[str]()
    for message in await gateway.store.history(where, limit=1_000):
        story = await gateway.store.story(where, message.id)
        told += (
            [step.reason for step in story.steps if step.outcome == "differs"] if story is not None else ["no story"]
        )
    return told
