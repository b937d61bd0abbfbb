"""What people send in a row is answered once on every platform, by a gateway that listens to it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import LIMIT, until
from adapters.in_house import at_work
from belino.config import from_table
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.turn import Final, ReplyPart, Turn
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import SlackServer, TelegramServer, make_jpeg
from belino.testing.discord import DiscordServer
from belino.testing.slack.shapes import BOT_USER

EVERYBODY = {"senders": ["*"]}
BUTTON = {"inline_keyboard": [[{"text": "Yes", "callback_data": "0123456789ab"}]]}


class Patient:
    """Answers with what it was given, except turns that never end by themselves: its first, or those without media."""

    remembers = True
    sees_images = False

    def __init__(self, stuck: int = 0, *, wants_media: bool = False) -> None:
        self.turns: list[Turn] = []
        self.stuck = stuck
        self.wants_media = wants_media

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.turns.append(turn)
        if len(self.turns) <= self.stuck or (self.wants_media and not turn.message.attachments):
            await asyncio.Event().wait()
        yield Final(text=f"answer to {len(turn.messages)}")

    @property
    def last(self) -> list[str]:
        """The beginnings of the words that were answered last."""
        said = self.turns[-1].messages
        return [(one.text or (one.forward.text if one.forward else ""))[:10] for one in said]


class Gated:
    """Answers once a test lets it."""

    remembers = True
    sees_images = False

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.go_on = asyncio.Event()

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.turns.append(turn)
        await self.go_on.wait()
        yield Final(text="done")


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch, slack: SlackServer, discord: DiscordServer, server: TelegramServer) -> None:
    for name, value in (
        ("TELEGRAM", server.token),
        ("DISCORD", discord.token),
        ("BOT", slack.bot_token),
        ("APP", slack.app_token),
        ("HOOK", slack.signing_secret),
    ):
        monkeypatch.setenv(name, value)


def telegram(server: TelegramServer) -> dict[str, Any]:
    return {"token": "env:TELEGRAM", "api_url": server.url, "access": EVERYBODY}


def discord_settings(discord: DiscordServer) -> dict[str, Any]:
    urls = {"api_url": discord.api_url, "cdn_url": discord.cdn.url}
    return {"token": "env:DISCORD", **urls, "access": EVERYBODY}


def slack_settings(slack: SlackServer, **access: Any) -> dict[str, Any]:
    keys = {"bot_token": "env:BOT", "app_token": "env:APP", "signing_secret": "env:HOOK"}
    return {**keys, "api_url": slack.api_url, "access": {**EVERYBODY, **access}}


@pytest.mark.usefixtures("tokens")
async def test_a_paste_that_telegram_split_and_a_comment_with_its_forward_are_one_turn_each(
    server: TelegramServer, tmp_path: Path
) -> None:
    ada, bob, agent = server.user("Ada"), server.user("Bob"), Patient()
    server.say(ada, ada, "x" * 4_096)
    server.say(ada, ada, "the end")
    origin = {"type": "hidden_user", "sender_user_name": "Cleo", "date": 1_700_000_000}
    server.say(bob, bob, "is that true?")
    server.say(bob, bob, "it rains", forward_origin=origin)
    async with at_work(tmp_path / "home", agent=agent, telegram=telegram(server)):
        await until(lambda: len(server.sent) == 2)
    answered = sorted([message.text[:13] for message in turn.messages] for turn in agent.turns)
    assert [len(turn.messages) for turn in agent.turns] == [2, 2]
    assert ["x" * 13, "the end"] in answered


@pytest.mark.usefixtures("tokens")
async def test_lines_that_telegram_reports_with_a_press_are_one_turn(server: TelegramServer, tmp_path: Path) -> None:
    ada, bob, agent = server.user("Ada"), server.user("Bob"), Gated()
    question = server.compose(server.chats[bob["id"]], server.bot, "Which one?", reply_markup=BUTTON)
    async with at_work(tmp_path / "home", agent=agent, telegram=telegram(server)):
        server.say(ada, ada, "wait")
        await until(lambda: agent.turns)
        server.press(question, bob, "Yes")
        server.say(ada, ada, "one")
        server.say(ada, ada, "two")
        await until(lambda: server.press_answers)
        agent.go_on.set()
        await until(lambda: len(server.sent) == 2)
    assert [message.text for message in agent.turns[1].messages] == ["one", "two"]


@pytest.mark.usefixtures("tokens", "brisk_discord")
async def test_a_forward_on_discord_starts_the_turn_of_its_comment_again(
    discord: DiscordServer, tmp_path: Path
) -> None:
    ada, agent = discord.user("ada"), Patient(stuck=1)
    other = discord.channel(discord.guild("Club", ada), "harbour")
    about = discord.compose(other, ada, "it rains")
    async with at_work(tmp_path / "home", agent=agent, discord=discord_settings(discord)):
        await until(lambda: any(one.session is not None for one in discord.gateway.connections))
        discord.say(ada, ada, "is that true?")
        await until(lambda: len(agent.turns) == 1)
        discord.say(ada, ada, forward=about)
        await until(lambda: discord.sent)
    assert len(agent.turns[-1].messages) == 2
    assert [message["content"] for message in discord.sent] == ["answer to 2"]


@pytest.mark.usefixtures("tokens", "brisk_discord")
async def test_a_text_at_discords_limit_waits_for_its_end(discord: DiscordServer, tmp_path: Path) -> None:
    ada, agent = discord.user("ada"), Patient()
    async with at_work(tmp_path / "home", agent=agent, discord=discord_settings(discord)):
        await until(lambda: any(one.session is not None for one in discord.gateway.connections))
        discord.say(ada, ada, "x" * 1_990)
        discord.say(ada, ada, "the end")
        await until(lambda: discord.sent)
    assert agent.last == ["x" * 10, "the end"]


@pytest.mark.usefixtures("tokens")
async def test_a_mention_on_slack_gets_the_files_that_come_with_its_second_report(
    slack: SlackServer, tmp_path: Path
) -> None:
    ada, agent = slack.user("Ada"), Patient(wants_media=True)
    room = slack.channel("general", ada)
    slack.mentions_first = True
    config = slack_settings(slack, channels={room["id"]: {"senders": ["*"]}})
    async with at_work(tmp_path / "home", agent=agent, slack=config) as (gateway, _):
        await until(lambda: slack.socket_mode.connections)
        slack.say(room, ada, f"<@{BOT_USER}> what is this?", files=[make_jpeg(32, 24)])
        await until(lambda: slack.sent)
        assert [len(message.attachments) for message in agent.turns[-1].messages] == [1]
        assert (await gateway.audit()).is_balanced


@pytest.mark.parametrize(
    ("while_busy", "outcomes", "turns"),
    [
        ("queue", ["answered", "answered", "answered"], [1, 1, 1]),
        ("join", ["answered", "answered", "answered"], [1, 2]),
        ("interrupt", ["aborted", "aborted", "answered"], [1, 1, 1]),
    ],
)
async def test_what_the_page_sends_while_a_turn_runs_waits_joins_or_stops_it(
    tmp_path: Path, while_busy: str, outcomes: list[str], turns: list[int]
) -> None:
    agent = Gated()
    config = from_table({"server": {"port": 0}, "sessions": {"while_busy": while_busy}})
    where = ConversationKey(platform="web", account="default", channel="main")

    def said(number: int) -> Message:
        now = datetime.now(UTC)
        return Message(conversation=where, id=f"w{number}", author=Author(id="me", name="Me"), sent=now, text="go on")

    async with Gateway(config, Home.at(tmp_path / "home"), agent=agent) as gateway, asyncio.TaskGroup() as group:
        group.create_task(gateway.run())
        assert gateway.web is not None
        async with asyncio.timeout(LIMIT):
            for number in (1, 2, 3):
                await gateway.web.post(said(number))
                await until(lambda number=number: len(agent.turns) >= (number if while_busy == "interrupt" else 1))  # type: ignore[misc]
            agent.go_on.set()
            await until(lambda: gateway.counters.parcels["sent"] == outcomes.count("answered") - turns.count(2))
        ended = [str(one.outcome) for one in await gateway.store.history(where) if not one.author.is_agent]
        assert ended == outcomes
        assert (await gateway.audit()).is_balanced
        gateway.stop()
    assert [len(turn.messages) for turn in agent.turns] == turns
