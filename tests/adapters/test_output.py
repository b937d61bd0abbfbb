"""Answers as people see them on each platform: long code, text with files, one bad picture."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.in_house import at_work
from belino.domain.message import ConversationKey
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import ScriptedAgent, SlackServer, TelegramServer, ToolCall, make_png
from belino.testing.discord import TOKEN, DiscordServer
from belino.testing.faults import CannedAnswer

pytestmark = pytest.mark.usefixtures("brisk_discord")

CODE = "\n".join(f"value_{number} = compute({number}, of=table)" for number in range(300))
LONG = f"Here is the module.\n\n```python\n{CODE}\n```\n\nAsk me for more."

Shown = list[tuple[str, list[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A direct chat with the agent on one platform."""

    platform: str
    settings: dict[str, Any]
    channel: Callable[[], str]
    ready: Callable[[], object]
    say: Callable[[str], object]
    shown: Callable[[], Shown]
    """Every message of the agent: its text and the names of its files."""

    @asynccontextmanager
    async def asked(self, home: Path, agent: ScriptedAgent, **more: Any) -> AsyncIterator[Gateway]:
        """A gateway at work, whose agent was asked something."""
        table = {**self.settings, "access": {"senders": ["*"]}}
        async with at_work(home, agent=agent, more=more, **{self.platform: table}) as (gateway, _):
            await until(self.ready)
            self.say("please")
            yield gateway

    def folder(self, home: Path) -> Path:
        where = ConversationKey(platform=self.platform, account="default", channel=self.channel())
        return Home.at(home).outgoing(where)


@pytest.fixture
def telegram_place(server: TelegramServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("OUT_TOKEN", server.token)
    ada = server.user("Ada")

    def shown() -> Shown:
        return [
            (
                str(sent.get("text") or sent.get("caption") or ""),
                [str(sent["document"].get("file_name"))] if "document" in sent else ["photo"] * ("photo" in sent),
            )
            for sent in server.sent
        ]

    return Place(
        platform="telegram",
        settings={"token": "env:OUT_TOKEN", "api_url": server.url},
        channel=lambda: str(ada["id"]),
        ready=lambda: server.calls["getUpdates"],
        say=lambda text: server.say(ada, ada, text),
        shown=shown,
    )


@pytest.fixture
def discord_place(discord: DiscordServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("OUT_TOKEN", TOKEN)
    ada = discord.user("ada")
    direct = discord.dm(ada)
    return Place(
        platform="discord",
        settings={"token": "env:OUT_TOKEN", "api_url": discord.api_url, "gateway_url": discord.gateway_url},
        channel=lambda: str(direct["id"]),
        ready=lambda: discord.sessions.identified,
        say=lambda text: discord.say(direct, ada, text),
        shown=lambda: [(sent["content"], _names(sent["attachments"], "filename")) for sent in discord.sent],
    )


@pytest.fixture
def slack_place(slack: SlackServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("OUT_BOT", slack.bot_token)
    monkeypatch.setenv("OUT_APP", slack.app_token)
    ada = slack.user("Ada")
    return Place(
        platform="slack",
        settings={"bot_token": "env:OUT_BOT", "app_token": "env:OUT_APP", "api_url": slack.api_url},
        channel=lambda: str(slack.dm(ada)["id"]),
        ready=lambda: slack.socket_mode.connections,
        say=lambda text: slack.say(ada, ada, text),
        shown=lambda: [(sent["text"], _names(sent.get("files", []), "name")) for sent in slack.sent],
    )


def _names(files: Sequence[dict[str, Any]], key: str) -> list[str]:
    return [str(file[key]) for file in files]


@pytest.fixture(params=["telegram", "discord", "slack"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(f"{request.param}_place")
    return found


async def test_three_hundred_lines_of_code_are_a_file_with_its_first_lines_shown(place: Place, tmp_path: Path) -> None:
    async with place.asked(tmp_path / "home", ScriptedAgent(LONG)):
        most = 2 if place.platform == "telegram" else 1  # Telegram's captions are too short for the text
        await until(lambda: len(place.shown()) == most)
        files = [name for _, names in place.shown() for name in names]
        (text,) = (text for text, _ in place.shown() if text)
    assert files == ["code.py"]
    assert "value_9 = " in text and "value_10 = " not in text
    assert "of 300 lines" in text and "code.py" in text and "Ask me for more." in text


@pytest.mark.parametrize(("lines", "files"), [(60, []), (61, ["code.txt"])])
async def test_up_to_sixty_lines_of_code_stay_in_the_message(
    place: Place, tmp_path: Path, lines: int, files: list[str]
) -> None:
    text = "\n".join(["```", *(f"line {number}" for number in range(lines)), "```"])
    async with place.asked(tmp_path / "home", ScriptedAgent(text)) as gateway:
        await until(lambda: gateway.counters.parcels["sent"])
        await until(lambda: any(names for _, names in place.shown()) or not files)
        assert [name for _, names in place.shown() for name in names] == files
        assert ("line 59" in "".join(text for text, _ in place.shown())) is (not files)


async def test_text_comes_with_the_first_files(place: Place, tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = place.folder(home)
    count = 2 if place.platform == "telegram" else 12
    for number in range(count):
        (folder / f"{number:02}.txt").write_bytes(f"page {number}".encode())
    calls = [ToolCall(name="send_media", arguments={"path": f"{number:02}.txt"}) for number in range(count)]
    async with place.asked(home, ScriptedAgent([*calls, "All the **pages**."])):
        await until(lambda: sum(len(names) for _, names in place.shown()) == count and any(t for t, _ in place.shown()))
        told = place.shown()
    if place.platform == "telegram":
        assert told[-1] == ("All the pages.", []) and len(told) == 3
    else:
        assert [len(names) for _, names in told] == [10, 2]
        assert [text.replace("*", "") for text, _ in told] == ["All the pages.", ""]


async def test_of_an_album_only_the_bad_picture_is_sent_in_another_form(
    telegram_place: Place, server: TelegramServer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    folder = telegram_place.folder(home)
    names = [f"{number}.png" for number in range(3)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(make_png(40 + number, 30))
    why = 'Bad Request: failed to send message #2 with the error message "PHOTO_INVALID_DIMENSIONS"'
    server.fail("sendMediaGroup", CannedAnswer(status=400, description=why))
    calls = [ToolCall(name="send_media", arguments={"path": name}) for name in names]
    async with telegram_place.asked(home, ScriptedAgent([*calls, "Three."])):
        await until(lambda: len(telegram_place.shown()) == 4)
    assert sorted(name for _, files in telegram_place.shown() for name in files) == ["1.png", "photo", "photo"]


TABLE = "# Tides\n\n| port | high |\n|---|---|\n| Hull | 9:40 |\n| Goole | 10:55 |\n\nThat is *all*."


async def test_a_table_is_a_rich_message_on_telegram_and_code_where_that_is_refused(
    telegram_place: Place, server: TelegramServer, tmp_path: Path
) -> None:
    async with telegram_place.asked(tmp_path / "home", ScriptedAgent(TABLE, TABLE, TABLE)):
        await until(lambda: len(server.sent) == 1)
        server.fail("sendRichMessage", CannedAnswer(status=400, description="Bad Request: RICH_MESSAGE_EMAIL_INVALID"))
        telegram_place.say("again")
        await until(lambda: len(server.sent) == 2)
        server.unknown_methods.add("sendrichmessage")
        telegram_place.say("and again")
        await until(lambda: len(server.sent) == 3)
    rich, *plain = server.sent
    assert "<h1>Tides</h1><table bordered><tr><th>port</th>" in rich["rich_message"]["html"]
    assert all("Hull   9:40" in message["text"] for message in plain)


async def test_a_server_that_is_older_than_rich_messages_is_asked_once(
    server: TelegramServer, telegram_place: Place, tmp_path: Path
) -> None:
    server.unknown_methods.add("sendrichmessage")
    async with telegram_place.asked(tmp_path / "home", ScriptedAgent(TABLE, TABLE)):
        await until(lambda: len(server.sent) == 1)
        telegram_place.say("again")
        await until(lambda: len(server.sent) == 2)
    assert server.calls["sendRichMessage"] == 1


async def test_what_slacks_markup_cannot_say_is_a_markdown_block(
    slack_place: Place, slack: SlackServer, tmp_path: Path
) -> None:
    answers = ["中文**粗体**中文", r"\*not bold\* <!channel>", TABLE, "plain **bold**", TABLE]
    async with slack_place.asked(tmp_path / "home", ScriptedAgent(*answers)):
        for number in range(2, 6):
            await until(lambda: len(slack.sent) == number - 1)  # noqa: B023 - waited for at once
            if number == 5:
                slack.fail(
                    "chat.postMessage", CannedAnswer(status=200, body=b'{"ok": false, "error": "invalid_blocks"}')
                )
            slack_place.say("again")
        await until(lambda: len(slack.sent) == 5)
    blocks = [[block["text"] for block in sent["blocks"] if block["type"] == "markdown"] for sent in slack.sent]
    assert blocks == [["中文**粗体**中文"], [r"\*not bold\* &lt;!channel>"], [TABLE], [], []]
    assert slack.sent[3]["text"] == "plain *bold*"
    assert "Hull   9:40" in slack.sent[4]["text"]


async def test_a_question_in_the_richer_format_has_its_buttons(
    place: Place, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    ask = ToolCall(name="ask_user", arguments={"question": TABLE, "choices": ["Hull", "Goole"]})
    server = request.getfixturevalue({"telegram": "server"}.get(place.platform, place.platform))
    async with place.asked(tmp_path / "home", ScriptedAgent([ask])):
        await until(lambda: server.sent)
    (question,) = server.sent
    found = {
        "telegram": lambda: question["rich_message"] and question["reply_markup"]["inline_keyboard"],
        "discord": lambda: question["components"][0]["components"],
        "slack": lambda: question["blocks"][0]["type"] == "markdown" and question["blocks"][1]["elements"],
    }
    assert len(found[place.platform]()) == 2


async def test_spoilers_are_hidden_where_the_platform_can(place: Place, tmp_path: Path) -> None:
    async with place.asked(tmp_path / "home", ScriptedAgent("He is ||the **butler**||.")):
        await until(place.shown)
    ((text, _),) = place.shown()
    hidden = {
        "telegram": "He is the butler.",
        "discord": "He is ||the **butler**||.",
        "slack": "He is ||the *butler*||.",
    }
    assert text == hidden[place.platform]


@pytest.mark.parametrize("previews", [True, False])
async def test_previews_of_links_are_shown_as_the_operator_wants(
    place: Place, request: pytest.FixtureRequest, tmp_path: Path, previews: bool
) -> None:
    place.settings["link_previews"] = previews
    async with place.asked(tmp_path / "home", ScriptedAgent("See https://example.com/a.")):
        await until(place.shown)
    if place.platform == "telegram":
        sent = request.getfixturevalue("server").sent[0]
        assert bool(sent.get("link_preview_options", {}).get("is_disabled")) is not previews
    elif place.platform == "discord":
        assert bool(request.getfixturevalue("discord").sent[0]["flags"] & 4) is not previews
    else:
        assert request.getfixturevalue("slack").unfurled == [previews]
