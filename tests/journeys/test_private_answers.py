"""Answers to a platform's own commands are seen by their sender only, and every interaction is acknowledged."""

from pathlib import Path

import pytest

from belino.adapters.slack.hooks import SIGNS
from belino.domain.reply import ParcelState
from belino.gateway.commands import REFUSED
from belino.gateway.gateway import Gateway
from belino.testing.discord import DiscordServer
from belino.testing.discord.shapes import Json
from belino.testing.faults import CannedAnswer
from belino.testing.files import make_png
from belino.testing.slack import SlackServer
from journeys.busy_place import Gated, told, until
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BusyWorkspace

pytestmark = pytest.mark.slow


def is_stored(secret: str, folder: Path) -> bool:
    return any(secret.encode() in file.read_bytes() for file in folder.rglob("*") if file.is_file())


async def until_stored(gateway: Gateway, state: ParcelState) -> None:
    while not any(each.state is state for each in await gateway.store.parcels()):
        await gateway.store.waiting_turns()


async def test_slack_answers_a_slash_command_to_its_sender_alone(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        office = BusyWorkspace(slack, tmp_path / "home")
        async with office.gateway() as gateway:
            slack.command(office.room, office.ann, "/belino", "status")
            await until(lambda: slack.command_answers and slack.deliveries.acknowledged)
            assert (await gateway.audit()).is_balanced
            (path,) = slack.responses
            assert not is_stored(path, office.home.path)
    (answer,) = slack.command_answers
    assert answer["text"].startswith("Agent: belino")
    assert (answer["response_type"], answer["user"]) == ("ephemeral", office.ann["id"])
    assert (office.answers(), office.agent.turns) == ([], [])


async def test_slack_refuses_a_slash_command_in_private_also_where_the_app_is_no_member(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        office = BusyWorkspace(slack, tmp_path / "home")
        foreign = slack.channel("foreign", office.bob, member=False)
        async with office.gateway():
            slack.command(foreign, office.bob, "/belino", "new")
            await until(lambda: slack.command_answers)
    (answer,) = slack.command_answers
    assert (answer["text"], answer["user"], office.answers()) == (REFUSED, office.bob["id"], [])


async def test_slack_shows_the_agents_answer_to_the_sender_where_the_app_is_no_member(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        office = BusyWorkspace(slack, tmp_path / "home")
        foreign = slack.channel("foreign", office.ann, member=False, private=True)
        channels = {foreign["id"]: {"senders": ["*"], "mention": True}}
        office.settings["access"] = {"senders": [office.ann["id"]], "channels": channels}
        async with office.gateway():
            slack.command(foreign, office.ann, "/belino", "when does the ferry leave?")
            await until(lambda: slack.command_answers)
    assert len(office.agent.turns) == 1
    assert slack.command_answers[0]["response_type"] == "ephemeral"


async def test_slack_tells_the_sender_of_a_slash_command_that_the_agent_is_at_work(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        office, agent = BusyWorkspace(slack, tmp_path / "home"), Gated()
        async with office.gateway(agent):
            slack.command(office.room, office.ann, "/belino", "when does the ferry leave?")
            await until(lambda: slack.command_answers)
            slack.command(office.room, office.ann, "/belino", "and back?")
            await until(lambda: len(slack.command_answers) == 2)
            agent.gate.set()
            await until(lambda: len(office.answers()) == 2)
    said = [(answer["response_type"], answer["user"], answer["text"]) for answer in slack.command_answers[:2]]
    assert said == [("ephemeral", office.ann["id"], SIGNS[emoji]) for emoji in ("👀", "⏳")]
    assert not slack.calls["reactions.add"]


async def test_a_shortcut_of_a_slack_message_asks_the_agent_about_it(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        office = BusyWorkspace(slack, tmp_path / "home")
        async with office.gateway() as gateway:
            said = slack.say(office.room, office.bob, "The ferry leaves at nine.", files=[make_png(8, 8)])
            slack.shortcut(said, office.ann, "explain")
            await until(lambda: office.agent.turns and slack.deliveries.acknowledged)
            await until(lambda: office.answers() or slack.command_answers)
            assert (await gateway.audit()).is_balanced
    asked = told(office.agent.turns[0])
    assert "/explain" in asked and "The ferry leaves at nine." in asked
    assert slack.downloads == []


async def test_slack_answers_in_private_when_the_url_has_ended_and_never_twice(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        office = BusyWorkspace(slack, tmp_path / "home")
        async with office.gateway() as gateway:
            slack.command(office.room, office.ann, "/belino", "help")
            slack.responses.clear()
            await until(lambda: slack.ephemeral)
            slack.fail("chat.postEphemeral", CannedAnswer(status=503, description="service_unavailable"))
            slack.command(office.room, office.ann, "/belino", "help")
            slack.responses.clear()
            await until_stored(gateway, ParcelState.UNCERTAIN)
    ((room, person, text),) = slack.ephemeral
    assert (room, person, "/stop" in text) == (office.room["id"], office.ann["id"], True)
    assert slack.command_answers == slack.sent == []


def answer_to(discord: DiscordServer, given: Json) -> Json | None:
    return discord.interactions[given["token"]].answer


async def test_discord_answers_every_part_in_private_and_keeps_no_token(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        async with club.gateway() as gateway:
            given = discord.command(club.room, club.ann, "help")
            await until(lambda: answer_to(discord, given))
            await until_stored(gateway, ParcelState.SENT)
            assert (await gateway.audit()).is_balanced
            assert not is_stored(given["token"], club.home.path)
        calls = [call for call in discord.calls if call.endswith("/callback")]
    assert discord.interactions[given["token"]].flags & 1 << 6
    assert len(calls) == 1


async def test_discord_shows_the_agents_answer_in_private_where_it_may_not_write(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        async with club.gateway() as gateway:
            discord.forbid(club.room, "SEND_MESSAGES")
            given = discord.command(club.room, club.ann, "ask", question="when?")
            await until_stored(gateway, ParcelState.SENT)
    answer = answer_to(discord, given)
    assert answer is not None
    assert answer["content"] == "I am on it."
    hidden = [each["content"] for each in discord.messages[club.room["id"]].values() if each["flags"] & 1 << 6]
    assert len(hidden) == 2


async def test_discord_acknowledges_interactions_that_are_none_of_ours(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        async with club.gateway():
            pressed = discord._interact(club.room, club.ann, {"custom_id": "not ours", "component_type": 2}, type=3)
            typed = discord._interact(club.room, club.ann, {"name": "ask", "type": 1}, type=4)
            form = discord._interact(club.room, club.ann, {"custom_id": "not ours", "components": []}, type=5)
            await until(lambda: answer_to(discord, form))
            given = [discord.interactions[each["token"]] for each in (pressed, typed, form)]
    told = given[2].answer
    assert [each.acknowledged for each in given] == [True, True, True]
    assert told is not None
    assert told["content"] == "This cannot be done here."
