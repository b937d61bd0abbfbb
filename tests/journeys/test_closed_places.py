"""Closed places: a thread that an answer opens, and answers whose thread or topic is gone."""

from pathlib import Path

import pytest

from belino.domain.reply import ParcelState
from belino.gateway.explain import explain
from belino.testing import ScriptedAgent
from belino.testing.discord import DiscordServer
from belino.testing.faults import CannedAnswer
from belino.testing.slack import SlackServer
from belino.testing.telegram import TelegramServer
from journeys.busy_group import BOT as TELEGRAM_BOT
from journeys.busy_group import BusyGroup
from journeys.busy_place import told, until
from journeys.busy_server import BOT as DISCORD_BOT
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BOT as SLACK_BOT
from journeys.busy_workspace import BusyWorkspace

SEND, OPEN = "POST /channels/{channel}/messages", "POST /channels/{channel}/messages/{message}/threads"


async def test_a_mention_on_discord_opens_a_thread_where_the_conversation_goes_on(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home", reply_in_threads=True)
        async with club.gateway():
            asked = discord.say(club.room, club.ann, f"{DISCORD_BOT} who comes? {'x' * 200}")
            await until(lambda: club.answers() == ["turn 1"])
            thread = discord.channels[asked["id"]]
            discord.say(thread, club.ann, "and when?")
            await until(lambda: club.answers() == ["turn 1", "turn 2"])
        assert {message["channel_id"] for message in discord.sent} == {asked["id"]}
        assert (thread["name"][:10], len(thread["name"])) == ("who comes?", 100)
        assert "who comes?" in told(club.agent.turns[0])
        assert club.agent.turns[0].conversation == club.agent.turns[1].conversation == club.channel(thread=thread)
        assert discord.calls[OPEN] == 1


async def test_without_the_permission_for_threads_the_answer_is_a_reply_in_the_channel(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home", reply_in_threads=True)
        discord.forbid(club.room, "CREATE_PUBLIC_THREADS")
        async with club.gateway():
            asked = discord.say(club.room, club.ann, f"{DISCORD_BOT} who comes?")
            await until(lambda: club.answers() == ["turn 1"])
        (answer,) = discord.sent
        assert answer["channel_id"] == club.room["id"]
        assert answer["message_reference"]["message_id"] == asked["id"]


async def test_an_answer_that_may_not_be_written_in_its_thread_is_in_the_channel_and_says_so(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        thread = discord.thread(club.room, club.ann, "trips")
        discord.forbid(club.room, "SEND_MESSAGES_IN_THREADS")
        async with club.gateway():
            discord.say(thread, club.ann, f"{DISCORD_BOT} who comes?")
            await until(lambda: club.answers())
        (answer,) = discord.sent
        assert answer["channel_id"] == club.room["id"] and "Send Messages in Threads" in answer["content"]


@pytest.mark.parametrize(("code", "why"), [(10003, "is gone"), (50083, "is archived"), (160005, "is locked")])
async def test_the_answer_for_a_closed_thread_of_discord_is_in_its_channel(tmp_path: Path, code: int, why: str) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        thread = discord.thread(club.room, club.ann, "trips")
        body = f'{{"code": {code}, "message": "no"}}'.encode()
        async with club.gateway() as gateway:
            discord.fail(SEND, CannedAnswer(status=400, body=body))
            discord.say(thread, club.ann, f"{DISCORD_BOT} who comes?")
            await until(lambda: len(club.answers()) == 1)

            async def is_sent() -> bool:
                return [each.state for each in await gateway.store.parcels()] == [ParcelState.SENT]

            await until(is_sent)
            (parcel,) = await gateway.store.parcels()
            (asked,) = await gateway.store.history(club.channel(thread=thread), limit=1)
            trail = [(step.outcome, step.reason) for step in (await explain(gateway.store, asked.trace)).steps]
            audit = await gateway.audit()
        assert parcel.conversation == club.channel()
        assert [outcome for outcome, reason in trail if why in reason].count("sent to the channel") == 1
        assert audit.is_balanced
        (answer,) = discord.sent
        assert answer["channel_id"] == club.room["id"]
        assert why in answer["content"] and answer["content"].endswith("\n\nturn 1")


async def test_the_answer_for_a_thread_of_slack_that_is_gone_is_in_its_channel(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        crew = BusyWorkspace(slack, tmp_path / "home")
        root = slack.say(crew.room, crew.ann, "a plan")
        async with crew.gateway():
            body = b'{"ok": false, "error": "thread_not_found"}'
            slack.fail("chat.postMessage", CannedAnswer(status=200, body=body))
            slack.say(crew.room, crew.ann, f"{SLACK_BOT} who comes?", thread=root)
            await until(lambda: len(crew.answers()) == 1)
        (answer,) = slack.sent
        assert "thread_ts" not in answer
        assert answer["text"] == "This answer is here because the thread is gone.\n\nturn 1"


@pytest.mark.parametrize("why", ["TOPIC_CLOSED", "TOPIC_DELETED", "message thread not found"])
async def test_the_answer_for_a_closed_topic_of_telegram_is_in_its_group(tmp_path: Path, why: str) -> None:
    async with TelegramServer() as server:
        group = BusyGroup(server, tmp_path / "home")
        group.chat = server.group("Workshop", forum=True)
        async with group.gateway():
            server.fail("sendMessage", CannedAnswer(status=400, description=f"Bad Request: {why}"))
            server.say(group.chat, group.ann, f"{TELEGRAM_BOT} who comes?", topic=12)
            await until(lambda: len(group.answers()) == 1)
        (answer,) = server.sent
        assert "message_thread_id" not in answer
        assert answer["text"].startswith("This answer is here because the topic is ")
        assert answer["text"].endswith("\n\nturn 1")


async def test_a_long_answer_for_a_closed_thread_says_once_why_it_is_in_the_channel(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        thread = discord.thread(club.room, club.ann, "trips")
        async with club.gateway(ScriptedAgent(["\n\n".join(f"{number} {'word ' * 150}" for number in range(6))])):
            discord.fail(SEND, CannedAnswer(status=400, body=b'{"code": 160005, "message": "no"}'))
            discord.say(thread, club.ann, f"{DISCORD_BOT} who comes?")
            await until(lambda: any("5 word" in answer for answer in club.answers()))
        said = "\n\n".join(club.answers())
        assert said.count("This answer is here because the thread is locked.") == 1
        assert [said.count(f"{number} word") for number in range(6)] == [1] * 6
        assert {message["channel_id"] for message in discord.sent} == {club.room["id"]}
        assert len(discord.sent) > 2
