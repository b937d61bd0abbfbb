"""A failed message that a person wants answered: one more turn, whose answer follows the apology."""

from datetime import timedelta

import pytest

from belino.config import SessionsConfig
from belino.domain.errors import AgentError, Busy
from belino.domain.outcome import MessageOutcome
from belino.domain.stored import StoredMessage
from belino.gateway.events import NoticeKind, TurnNotice
from belino.gateway.explain import NotFailed, explain
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent
from gateway.house import House, HungAgent, until

SORRY = "Sorry, I could not answer that: the model is gone."


async def failed(house: House, gateway: Gateway, channel: str = "dm") -> StoredMessage:
    await house.ask(gateway, house.say("a question", channel=channel))
    message = (await house.history(gateway, channel))[0]
    assert message.outcome is MessageOutcome.FAILED
    return message


async def answered(house: House, gateway: Gateway, texts: int) -> None:
    await until(lambda: len(house.wire.texts()) == texts)


async def test_a_retried_message_is_answered_after_its_apology_as_a_reply_to_it(house: House) -> None:
    house.agent = ScriptedAgent(AgentError("the model is gone"), "the answer")
    async with house.at_work() as gateway:
        message = await failed(house, gateway)
        (waiting,) = await gateway.retry_message(message)
        assert (waiting.id, waiting.outcome) == (message.id, MessageOutcome.WAITING)
        await answered(house, gateway, 2)
        await until(lambda: gateway.counters.turns["answered"])
        told = await explain(gateway.store, message.id)
    assert house.wire.texts() == [SORRY, "the answer"]
    assert [parcel.reply_to for parcel in house.wire.seen] == [None, message.id]
    assert told.message.outcome is MessageOutcome.ANSWERED
    reasons = {(step.outcome, step.reason) for step in told.steps if step.stage == "turn"}
    assert {("failed", "the model is gone"), ("retried", "by a person")} <= reasons


async def test_a_message_retried_after_later_ones_were_answered_turns_nothing_back(house: House) -> None:
    house.agent = agent = ScriptedAgent(AgentError("the model is gone"), "second", "first at last", "third")
    async with house.at_work() as gateway:
        message = await failed(house, gateway)
        await house.ask(gateway, house.say("another question"))
        before = await gateway.store.session(message.conversation)
        await gateway.retry_message(message)
        await answered(house, gateway, 3)
        await until(lambda: gateway.counters.turns["answered"] == 2)
        after = await gateway.store.session(message.conversation)
        await house.ask(gateway, house.say("a third"))
    assert house.wire.texts() == [SORRY, "second", "first at last", "third"]
    assert agent.told(2).count("a question") == 1, "it is what this turn answers"
    assert "another question" not in agent.told(2), "the agent was told that in its own turn"
    assert before.told is not None and after.told is not None
    assert (after.told.seq, after.turns) == (before.told.seq, before.turns + 1)


async def test_what_fails_again_says_so_again_and_can_be_retried_again(house: House) -> None:
    house.agent = ScriptedAgent(*[AgentError("the model is gone")] * 2, "the answer")
    async with house.at_work() as gateway:
        message = await failed(house, gateway)
        await gateway.retry_message(message)
        await answered(house, gateway, 2)
        await until(lambda: gateway.counters.turns["failed"] == 2)
        await gateway.retry_message(message)
        await answered(house, gateway, 3)
    assert house.wire.texts() == [SORRY, SORRY, "the answer"]


async def test_a_subscriber_sees_a_retried_message_wait(house: House) -> None:
    house.agent = ScriptedAgent(AgentError("the model is gone"))
    async with house.at_work() as gateway:
        message = await failed(house, gateway)
        async with gateway.notices.subscribe() as notices:
            await gateway.retry_message(message)
            heard = [await anext(notices)]
            # The delivery of the failed turn's apology may be reported in between.
            while heard[-1].kind is not NoticeKind.TURN:
                heard.append(await anext(notices))
    assert {notice.kind for notice in heard} - {NoticeKind.PARCEL} == {NoticeKind.MESSAGE, NoticeKind.TURN}
    payload = heard[-1].payload
    assert isinstance(payload, TurnNotice)
    assert payload.state == "waiting"


async def test_a_message_that_did_not_fail_is_refused_with_the_reason(house: House) -> None:
    house.agent = ScriptedAgent("fine")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        question, answer = await house.history(gateway)
        with pytest.raises(NotFailed, match="did not fail: it is answered; only a failed message can be retried"):
            await gateway.retry_message(question)
        with pytest.raises(NotFailed, match="is a message of the agent; name the message that was not answered"):
            await gateway.retry_message(answer)


async def test_a_message_whose_turn_waits_or_runs_is_not_retried_beside_itself(house: House) -> None:
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await until(lambda: agent.running)
        await gateway.accept(house.say())
        running, waiting = await house.history(gateway)
        with pytest.raises(NotFailed, match="its turn is running"):
            await gateway.retry_message(running)
        with pytest.raises(NotFailed, match="is already queued"):
            await gateway.retry_message(waiting)


async def test_a_retry_waits_like_any_message_when_too_many_do(house: House) -> None:
    house.sessions = SessionsConfig(max_waiting=1, max_running=1)
    house.agent = ScriptedAgent(AgentError("the model is gone"))
    async with house.at_work() as gateway:
        message = await failed(house, gateway)
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say(channel="busy"))
        await until(lambda: agent.running)
        await gateway.accept(house.say(channel="full"))
        with pytest.raises(Busy, match="1 messages wait for their turn"):
            await gateway.retry_message(message)
        found = await gateway.store.messages(message.conversation, [message.id])
    assert found[0].outcome is MessageOutcome.FAILED


async def test_a_retried_message_in_a_group_replies_as_any_answer_there(house: House) -> None:
    house.agent = ScriptedAgent(AgentError("the model is gone"), "the answer")
    async with house.at_work() as gateway:
        said = house.say("a question", channel="team")
        await house.ask(gateway, said)
        (message,) = await gateway.store.messages(said.conversation, [said.id])
        await gateway.retry_message(message)
        await answered(house, gateway, 2)
    assert [parcel.reply_to for parcel in house.wire.seen] == [said.id, said.id]


async def test_a_retry_without_a_gateway_is_answered_at_the_next_start(house: House) -> None:
    house.agent = ScriptedAgent(AgentError("the model is gone"))
    async with house.at_work() as gateway:
        message = await failed(house, gateway)
    async with house.gateway() as gateway:
        await gateway.store.retry_turn(message.conversation, message.id)
    house.clock.shift(timedelta(hours=1).total_seconds())
    house.agent = ScriptedAgent("the answer")
    async with house.at_work() as gateway:
        await answered(house, gateway, 2)
    assert house.wire.texts() == [SORRY, "the answer"]
