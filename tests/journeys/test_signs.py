"""On each platform people see that an answer is on its way or that their message waits, and `/stop` stops both."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from belino.domain.outcome import MessageOutcome
from belino.gateway.explain import explain
from belino.testing.discord import DiscordServer
from belino.testing.slack import SlackServer
from belino.testing.telegram import TelegramServer
from journeys.busy_group import BusyGroup
from journeys.busy_place import BusyPlace, Gated, until
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BusyWorkspace

pytestmark = pytest.mark.slow
WORKING, WAITING = "working", "waiting"
_NAMES = {
    "👀": WORKING, "eyes": WORKING, "⏳": WAITING, "hourglass_flowing_sand": WAITING, "✍": WAITING,
}  # fmt: skip


class Signed:
    """A place and the signs in it."""

    def __init__(self, place: BusyPlace, server: TelegramServer | DiscordServer | SlackServer) -> None:
        self.place = place
        self.server = server

    def on(self, message: dict[str, Any]) -> list[str]:
        """The bot's reactions to a message."""
        match self.server:
            case TelegramServer():
                found = self.server.reacted.get((message["chat"]["id"], message["message_id"]), [])
            case DiscordServer():
                found = [emoji for emoji, users in self.server.reactions[message["id"]].items() if users]
            case SlackServer():
                chosen = self.server.reactions[message["channel"], message["ts"]]
                found = [emoji for emoji, users in chosen.items() if users]
        return [_NAMES.get(each, each) for each in found]

    @property
    def typed(self) -> int:
        """How often typing was shown."""
        return sum(times for name, times in self.server.calls.items() if name == "sendChatAction" or "/typing" in name)

    @property
    def reacted(self) -> int:
        """How many calls were made for reactions."""
        return sum(times for name, times in self.server.calls.items() if "reaction" in name.lower())

    def write(self, text: str) -> dict[str, Any]:
        said = self.place.write(text)
        assert isinstance(said, dict)
        return said


@pytest.fixture(params=["telegram", "discord", "slack"])
async def signed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Signed]:
    async with AsyncExitStack() as stack:
        home = tmp_path / "home"
        if request.param == "telegram":
            telegram = await stack.enter_async_context(TelegramServer())
            yield Signed(BusyGroup(telegram, home), telegram)
        elif request.param == "discord":
            discord = await stack.enter_async_context(DiscordServer())
            yield Signed(BusyServer(discord, home), discord)
        else:
            slack = await stack.enter_async_context(SlackServer())
            yield Signed(BusyWorkspace(slack, home), slack)


async def test_an_answer_on_its_way_and_a_message_that_waits_are_visible(signed: Signed) -> None:
    agent = Gated()
    async with signed.place.gateway(agent):
        first = signed.write("first")
        await until(lambda: agent.turns)
        await until(lambda: signed.typed or signed.on(first) == [WORKING])
        second = signed.write("second")
        await until(lambda: signed.on(second) == [WAITING])
        agent.gate.set()
        await until(lambda: len(signed.place.sent) == 2)
        await until(lambda: signed.on(first) == signed.on(second) == [])
    assert len(agent.turns) == 2


async def test_nothing_is_shown_where_signs_are_off(signed: Signed) -> None:
    agent = Gated()
    signed.place.more["delivery"] = {"sign": "off"}
    async with signed.place.gateway(agent) as gateway:
        signed.write("first")
        await until(lambda: agent.turns)
        signed.write("second")
        await signed.place.stored(gateway, 2)
        agent.gate.set()
        await until(lambda: len(signed.place.sent) == 2)
    assert (signed.typed, signed.reacted) == (0, 0)


async def test_stop_stops_the_running_turn_and_the_one_that_waits_at_once(signed: Signed) -> None:
    agent = Gated()
    async with signed.place.gateway(agent) as gateway:
        signed.write("first")
        await until(lambda: agent.turns)
        second = signed.write("second")
        await until(lambda: signed.on(second) == [WAITING])
        signed.write("/stop")
        await until(lambda: agent.stopped and signed.place.sent)
        await until(lambda: gateway.counters.turns["aborted"] and not signed.on(second))
        outcomes = [each.outcome for each in (await gateway.store.history(signed.place.private, limit=9))[:3]]
        assert (await gateway.audit()).is_balanced
    assert outcomes == [MessageOutcome.ABORTED, MessageOutcome.ABORTED, MessageOutcome.COMMAND]
    assert len(agent.turns) == 1


async def test_messages_that_wait_are_answered_together_where_that_is_wanted(signed: Signed) -> None:
    agent = Gated()
    signed.place.more["sessions"] = {"while_busy": "join"}
    async with signed.place.gateway(agent) as gateway:
        signed.write("first")
        await until(lambda: agent.turns)
        waiting = []
        for text in ("second", "third"):  # one after the other, so that they come in no batch
            waiting.append(signed.write(text))
            await until(lambda: all(signed.on(each) == [WAITING] for each in waiting))
        agent.gate.set()
        await until(lambda: len(signed.place.sent) == 2 and not any(signed.on(each) for each in waiting))
        kept = (await gateway.store.history(signed.place.private, limit=9))[:3]
        joined = [
            step.reason for step in (await explain(gateway.store, kept[2].trace)).steps if step.outcome == "joined"
        ]
        assert (await gateway.audit()).is_balanced
    assert [[message.text for message in turn.messages] for turn in agent.turns] == [["first"], ["second", "third"]]
    assert joined == ["it came while another turn ran"]


async def test_a_message_stops_the_turn_that_runs_where_that_is_wanted(signed: Signed) -> None:
    agent = Gated()
    signed.place.more["sessions"] = {"while_busy": "interrupt"}
    async with signed.place.gateway(agent) as gateway:
        signed.write("write a book")
        await until(lambda: agent.turns)
        signed.write("no, a line")
        await until(lambda: len(agent.turns) == 2 and agent.stopped == 1)
        agent.gate.set()
        await until(lambda: signed.place.sent)
        kept = (await gateway.store.history(signed.place.private, limit=9))[:2]
        assert (await gateway.audit()).is_balanced
    assert (kept[0].outcome, kept[0].reason) == (MessageOutcome.ABORTED, "stopped by a newer message")
    assert kept[1].outcome is MessageOutcome.ANSWERED and len(signed.place.sent) == 1
