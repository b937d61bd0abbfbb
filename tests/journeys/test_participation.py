"""On each platform the agent is addressed without a mention where it takes part, and by its wake words."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from belino.domain.outcome import MessageOutcome
from belino.gateway.explain import explain
from belino.gateway.gateway import Gateway
from belino.testing.discord import DiscordServer
from belino.testing.slack import SlackServer
from belino.testing.slack.shapes import TEAM
from belino.testing.telegram import TelegramServer
from journeys.busy_group import BOT as TELEGRAM_BOT
from journeys.busy_group import BusyGroup
from journeys.busy_place import BusyPlace, until
from journeys.busy_server import BOT as DISCORD_BOT
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BOT as SLACK_BOT
from journeys.busy_workspace import BusyWorkspace

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A place, and how Ann writes in a thread and in the channel of it."""

    place: BusyPlace
    bot: str
    other: str
    """How Bob is mentioned."""
    say: Callable[[str], Any]
    say_outside: Callable[[str], Any]
    add_robot: Callable[[], tuple[dict[str, Any], Callable[[str], Any]]]
    """Another bot comes, which writes in the channel."""


def telegram_topic(server: TelegramServer, home: Path) -> Thread:
    group = BusyGroup(server, home)
    group.chat = server.group("Workshop", forum=True)
    bob = server.user("Bo", username="bob_the_other")
    return Thread(
        place=group,
        bot=TELEGRAM_BOT,
        other=f"@{bob['username']}",
        say=lambda text: server.say(group.chat, group.ann, text, topic=12),
        say_outside=lambda text: server.say(group.chat, group.ann, text),
        add_robot=lambda: telegram_robot(server, group.chat),
    )


def telegram_robot(server: TelegramServer, chat: dict[str, Any]) -> tuple[dict[str, Any], Callable[[str], Any]]:
    robot = server.user("Robo", username="robo_bot", is_bot=True)
    return robot, lambda text: server.say(chat, robot, text)


def discord_thread(discord: DiscordServer, home: Path) -> Thread:
    club = BusyServer(discord, home)
    thread = discord.thread(club.room, club.ann, "trips")
    return Thread(
        place=club,
        bot=DISCORD_BOT,
        other=f"<@{club.bob['id']}>",
        say=lambda text: discord.say(thread, club.ann, text),
        say_outside=lambda text: discord.say(club.room, club.ann, text),
        add_robot=lambda: discord_robot(discord, club.room),
    )


def discord_robot(discord: DiscordServer, room: dict[str, Any]) -> tuple[dict[str, Any], Callable[[str], Any]]:
    robot = discord.user("robo", bot=True)
    return robot, lambda text: discord.say(room, robot, text)


def slack_thread(slack: SlackServer, home: Path) -> Thread:
    crew = BusyWorkspace(slack, home)
    root = slack.say(crew.room, crew.ann, "a plan")
    return Thread(
        place=crew,
        bot=SLACK_BOT,
        other=f"<@{crew.bob['id']}>",
        say=lambda text: slack.say(crew.room, crew.ann, text, thread=root),
        say_outside=lambda text: slack.say(crew.room, crew.ann, text),
        add_robot=lambda: slack_robot(slack, crew.room),
    )


def slack_robot(slack: SlackServer, room: dict[str, Any]) -> tuple[dict[str, Any], Callable[[str], Any]]:
    robot = slack.user("Robo", bot=True)
    return robot, lambda text: slack.say(room, robot, text)


@pytest.fixture(params=["telegram", "discord", "slack"])
async def thread(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Thread]:
    async with AsyncExitStack() as stack:
        home = tmp_path / "home"
        if request.param == "telegram":
            yield telegram_topic(await stack.enter_async_context(TelegramServer()), home)
        elif request.param == "discord":
            yield discord_thread(await stack.enter_async_context(DiscordServer()), home)
        else:
            yield slack_thread(await stack.enter_async_context(SlackServer()), home)


async def found(place: BusyPlace, gateway: Gateway, text: str) -> tuple[MessageOutcome, str]:
    """The outcome of the message with this text, once it is stored, and why the access rules decided as they did."""
    where = place.channel()

    async def kept() -> list[Any]:
        everything = [message async for message in everywhere(gateway, where.channel)]
        return [message for message in everything if text in message.text]

    async def is_kept() -> bool:
        return bool(await kept())

    await until(is_kept)
    (message,) = await kept()
    gate = next(step for step in (await explain(gateway.store, message.trace)).steps if step.stage == "gate")
    return message.outcome, gate.reason


async def everywhere(gateway: Gateway, channel: str) -> AsyncIterator[Any]:
    """The messages of a channel with its threads."""
    for conversation in await gateway.store.conversations():
        if conversation.conversation.channel == channel:
            for message in await gateway.store.history(conversation.conversation, limit=50):
                yield message


async def test_in_a_thread_where_the_agent_answered_no_mention_is_needed(thread: Thread) -> None:
    place = thread.place
    async with place.gateway() as gateway:
        thread.say("before it spoke")
        assert (await found(place, gateway, "before it spoke"))[0] is MessageOutcome.OBSERVED
        thread.say(f"{thread.bot} who comes?")
        await until(lambda: gateway.counters.parcels["sent"] == 1)
        thread.say("and when is it?")
        await until(lambda: len(place.sent) == 2)
        outcome, why = await found(place, gateway, "and when is it?")
        assert why == "continues turn 1's thread" and outcome is MessageOutcome.ANSWERED
        thread.say(f"{thread.other} what do you think?")
        thread.say_outside("nothing for the agent")
        assert (await found(place, gateway, "what do you think?"))[0] is MessageOutcome.OBSERVED
        assert (await found(place, gateway, "nothing for the agent"))[0] is MessageOutcome.OBSERVED
        assert (await gateway.audit()).is_balanced
    assert len(place.agent.turns) == len(place.sent) == 2


async def test_participation_is_off_where_its_time_is_zero_and_a_wake_word_still_counts(thread: Thread) -> None:
    place = thread.place
    adapter = place.adapter()
    adapter["access"] |= {"participation_minutes": 0, "wake_words": ["hey belino"]}
    place.more["adapters"] = {place.platform: adapter, "web": {"enabled": False}}
    async with place.gateway() as gateway:
        thread.say(f"{thread.bot} who comes?")
        await until(lambda: gateway.counters.parcels["sent"] == 1)
        thread.say("and when is it?")
        assert (await found(place, gateway, "and when is it?"))[0] is MessageOutcome.OBSERVED
        thread.say_outside("Hey, Belino: are you there?")
        await until(lambda: len(place.sent) == 2)
        assert (await found(place, gateway, "are you there?"))[1] == "says 'hey belino'"


async def test_a_bot_is_answered_twice_until_a_person_writes(thread: Thread) -> None:
    place = thread.place
    robot, write = thread.add_robot()
    adapter = place.adapter()
    room = place.channel().channel
    adapter["access"]["channels"][room]["senders"] = ["*", str(robot["id"])]
    place.more["adapters"] = {place.platform: adapter, "web": {"enabled": False}}
    async with place.gateway() as gateway:
        for number in (1, 2):
            write(f"{thread.bot} ping {number}")
            await until(lambda number=number: gateway.counters.parcels["sent"] == number)  # type: ignore[misc]
        write(f"{thread.bot} ping 3")
        outcome, why = await found(place, gateway, "ping 3")
        assert outcome is MessageOutcome.OBSERVED and "bot_turns" in why
        thread.say_outside("carry on, you two")
        assert (await found(place, gateway, "carry on"))[0] is MessageOutcome.OBSERVED
        write(f"{thread.bot} ping 4")
        await until(lambda: gateway.counters.parcels["sent"] == 3)
        assert (await gateway.audit()).is_balanced
    assert len(place.agent.turns) == 3


async def test_a_reply_to_what_was_said_to_the_agent_continues_its_chain_on_telegram(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        group = BusyGroup(server, tmp_path / "home")
        async with group.gateway() as gateway:
            asked = server.say(group.chat, group.ann, f"{TELEGRAM_BOT} who comes?")
            await until(lambda: gateway.counters.parcels["sent"] == 1)
            server.say(group.chat, group.bob, "also on Sunday?", reply_to=asked)
            await until(lambda: len(group.sent) == 2)
            assert (await found(group, gateway, "also on Sunday?"))[1] == "continues turn 1's thread"


async def test_a_reply_to_what_was_said_to_the_agent_continues_its_chain_on_discord(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        async with club.gateway() as gateway:
            asked = discord.say(club.room, club.ann, f"{DISCORD_BOT} who comes?")
            await until(lambda: gateway.counters.parcels["sent"] == 1)
            discord.say(club.room, club.bob, "also on Sunday?", reply_to=asked)
            await until(lambda: len(club.sent) == 2)
            assert (await found(club, gateway, "also on Sunday?"))[1] == "continues turn 1's thread"


async def test_a_whole_server_of_discord_is_allowed_and_the_narrowest_rule_counts(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        quiet, elsewhere = discord.channel(club.club, "quiet"), discord.channel(discord.guild("Other", club.ann), "far")
        rules = {f"server:{club.club['id']}": {"senders": ["*"]}, quiet["id"]: {"senders": []}}
        club.settings["access"] = {"channels": rules}
        async with club.gateway() as gateway:
            for place in (elsewhere, quiet, club.room):
                discord.say(place, club.ann, f"{DISCORD_BOT} who comes?")
            thread = discord.thread(club.room, club.ann, "trips")
            discord.say(thread, club.ann, f"{DISCORD_BOT} and when?")
            await until(lambda: gateway.counters.parcels["sent"] == 2)
            edited = discord.say(club.room, club.ann, "a word")
            discord.edit(edited, "another word")
            assert (await found(club, gateway, "another word"))[0] is MessageOutcome.OBSERVED
            assert gateway.counters.arrivals["denied"] >= 1
            (heard,) = await gateway.store.history(club.channel(quiet), limit=5)
            assert (heard.outcome, heard.reason) == (MessageOutcome.OBSERVED, "not on the channel's list")
            assert await gateway.store.history(club.channel(elsewhere), limit=5) == ()
        assert {message["channel_id"] for message in discord.sent} == {club.room["id"], thread["id"]}


async def test_a_whole_workspace_of_slack_is_allowed_and_the_narrowest_rule_counts(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        crew = BusyWorkspace(slack, tmp_path / "home")
        quiet = slack.channel("quiet", crew.ann)
        crew.settings["access"] = {
            "channels": {f"server:{TEAM}": {"senders": ["*"]}, quiet["id"]: {"senders": []}},
        }
        async with crew.gateway() as gateway:
            for place in (quiet, crew.room):
                slack.say(place, crew.ann, f"{SLACK_BOT} who comes?")
            await until(lambda: gateway.counters.parcels["sent"] == 1)
            said = slack.say(crew.room, crew.ann, "a word")
            slack.edit(said, "another word")
            assert (await found(crew, gateway, "another word"))[0] is MessageOutcome.OBSERVED
            (heard,) = await gateway.store.history(crew.channel(quiet), limit=5)
            assert (heard.outcome, heard.reason) == (MessageOutcome.OBSERVED, "not on the channel's list")
        assert [message["channel"] for message in slack.sent] == [crew.room["id"]]
