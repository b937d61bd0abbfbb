"""People see within a second that their message waits or is being answered."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from belino.config import Config
from belino.delivery.send import DeliveryConfig
from belino.delivery.typing import ANSWERED, FAILED, TYPING_SECONDS, WAITS, WORKS, SignMode
from belino.domain.choice import Choice
from belino.domain.errors import AgentError, Undeliverable
from belino.domain.message import ConversationKey
from belino.domain.turn import ReplyPart, Turn
from belino.testing import ScriptedAgent
from gateway.house import House, HungAgent, Wire, until


class SignHouse(House):
    """A gateway with a way to show signs."""

    mode: SignMode = "auto"

    def config(self) -> Config:
        return replace(super().config(), delivery=DeliveryConfig(sign=self.mode))

    @property
    def reactions(self) -> list[tuple[str, str, bool]]:
        return self.wire._far_side.reactions


class TypingWire(Wire):
    """Shows typing in some channels only."""

    shown = 0
    refuses = False

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        if self.refuses:
            raise Undeliverable("not here")
        self.shown += 1


class FailingAgent(ScriptedAgent):
    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        raise AgentError("no model today")
        yield


@pytest.fixture
def house(house: House) -> SignHouse:
    house.__class__ = SignHouse
    assert isinstance(house, SignHouse)
    return house


def with_typing(house: SignHouse, *, refuses: bool = False) -> TypingWire:
    wire = house.prepare()
    wire.__class__ = TypingWire
    assert isinstance(wire, TypingWire)
    wire.refuses = refuses
    return wire


async def test_a_platform_without_typing_gets_a_reaction_that_goes_with_the_answer(house: SignHouse) -> None:
    async with house.at_work() as gateway:
        message = house.say()
        await house.ask(gateway, message)
        await until(lambda: len(house.reactions) == 2)
    assert house.reactions == [(message.id, WORKS, True), (message.id, WORKS, False)]


async def test_typing_is_shown_where_it_exists(house: SignHouse) -> None:
    wire = with_typing(house)
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await until(lambda: agent.running)
        assert not wire.shown
        await house.clock.advance(TYPING_SECONDS)
        await until(lambda: wire.shown)
    assert house.reactions == []


async def test_a_reaction_takes_the_place_of_typing_that_cannot_be_shown(house: SignHouse) -> None:
    with_typing(house, refuses=True)
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        message = house.say()
        await gateway.accept(message)
        await until(lambda: agent.running)
        await house.clock.advance(TYPING_SECONDS)
        await until(lambda: house.reactions)
    assert house.reactions == [(message.id, WORKS, True)]


@pytest.mark.parametrize(("agent", "last"), [(ScriptedAgent, ANSWERED), (FailingAgent, FAILED)])
async def test_a_reaction_says_how_the_turn_ended(house: SignHouse, agent: type[ScriptedAgent], last: str) -> None:
    house.mode, house.agent = "reaction", agent()
    async with house.at_work() as gateway:
        message = house.say()
        await house.ask(gateway, message)
        await until(lambda: len(house.reactions) == 3)
    assert house.reactions == [(message.id, WORKS, True), (message.id, WORKS, False), (message.id, last, True)]


@pytest.mark.parametrize("mode", ["off", "typing"])
async def test_no_reaction_is_made_where_none_is_wanted(house: SignHouse, mode: SignMode) -> None:
    house.mode = mode
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
    assert house.reactions == []


async def test_a_message_that_waits_behind_a_turn_shows_it_until_its_own_begins(house: SignHouse) -> None:
    with_typing(house)
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("first"))
        await until(lambda: agent.running)
        second = house.say("second")
        await gateway.accept(second)
        await until(lambda: house.reactions == [(second.id, WAITS, True)])
        await gateway.abort(second.conversation)
        await until(lambda: len(house.reactions) == 2)
    assert house.reactions[1] == (second.id, WAITS, False)


async def test_a_message_that_waits_behind_other_conversations_shows_it_too(house: SignHouse) -> None:
    with_typing(house)
    house.sessions = replace(house.sessions, max_running=1)
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        first, second = house.say("first"), house.say("second", channel="other")
        await gateway.accept(first)
        await until(lambda: agent.running)
        await gateway.accept(second)
        await until(lambda: house.reactions == [(second.id, WAITS, True)])
        await gateway.abort(first.conversation)
        await until(lambda: len(house.reactions) == 2)
    assert house.reactions[1] == (second.id, WAITS, False)


async def test_a_message_that_is_stopped_while_it_waits_shows_nothing_more(house: SignHouse) -> None:
    with_typing(house)
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("first"))
        await until(lambda: agent.running)
        second = house.say("second")
        await gateway.accept(second)
        await until(lambda: house.reactions)
        await gateway.accept(house.say("/stop"))
        await until(lambda: len(house.reactions) == 2)
    assert house.reactions[1] == (second.id, WAITS, False)


async def test_a_sign_that_a_dead_process_left_is_removed_when_the_turn_begins(house: SignHouse) -> None:
    with_typing(house)
    async with house.gateway() as gateway:
        message = house.say("first")
        await gateway.accept(message)
    await house.clock.advance(60)
    async with house.at_work():
        await until(lambda: house.reactions)
    assert house.reactions == [(message.id, WAITS, False)]


async def test_the_question_bears_the_sign_of_a_press(house: SignHouse) -> None:
    agent = house.agent = HungAgent()
    wire = with_typing(house, refuses=True)
    wire.limits = replace(wire.limits, buttons=True)
    async with house.at_work() as gateway:
        where = ConversationKey(platform="memory", account="default", channel="dm")
        ask = gateway._replies.asks_all(where)
        assert ask is not None
        await ask("Deploy now?", [Choice(label="Yes"), Choice(label="No")])
        await until(lambda: wire.seen)
        (question,) = wire.seen
        press = house.say("", press=question.buttons[0].key, reply_to=f"sent-{question.key}")
        await gateway.accept(press)
        await until(lambda: agent.running)
        await house.clock.advance(TYPING_SECONDS)
        await until(lambda: house.reactions)
    assert house.reactions == [(press.reply_to, WORKS, True)]
