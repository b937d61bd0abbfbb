"""The story of one message."""

import json
from dataclasses import replace

import pytest

from belino.domain.errors import NoSuchMessage, RateLimited, SeveralMessages, Undeliverable
from belino.domain.message import Message
from belino.gateway.explain import as_json, explain, message_name
from belino.gateway.gateway import Gateway
from belino.storage.store import open_store
from belino.testing import ScriptedAgent, ToolCall, make_png
from gateway.house import EVE, House, HungAgent, until


async def answered_with_a_picture(house: House, gateway: Gateway) -> Message:
    """A message with a picture, which the agent fetched and answered."""
    agent = house.agent
    assert isinstance(agent, ScriptedAgent)
    message = house.say("look")
    message = replace(message, media=(house.picture(message),), album="hold")
    house.wire._far_side.files["f1"] = make_png(4, 3)
    taken = await gateway.accept(message)
    agent.script.append([ToolCall(name="fetch_media", arguments={"ref": taken.refs[0].id}), "a picture"])
    await house.pass_album()
    await until(lambda: gateway.counters.parcels["sent"] or gateway.counters.parcels["dead"])
    return message


async def test_the_story_tells_every_stage_in_order_with_times_and_reasons_also_after_a_restart(house: House) -> None:
    async with house.at_work() as gateway:
        message = await answered_with_a_picture(house, gateway)
    store = await open_store(house.home, clock=house.clock)
    try:
        story = await explain(store, f"{message.conversation}/{message.id}")
    finally:
        await store.close()
    stages = list(dict.fromkeys(step.stage for step in story.steps))
    assert set(stages) == {"received", "stored", "gate", "turn", "tool", "media", "reading", "reply", "delivery"}
    assert stages[:3] == ["received", "stored", "gate"]
    assert [step.at for step in story.steps] == sorted(step.at for step in story.steps)
    told = {(step.stage, step.outcome) for step in story.steps}
    assert {
        ("gate", "may_command"),
        ("turn", "waiting"),
        ("turn", "running"),
        ("turn", "answered"),
        ("tool", "done"),
        ("media", "held"),
        ("delivery", "sent"),
    } <= told
    assert next(step.reason for step in story.steps if step.stage == "gate") == "on the list for direct messages"


async def test_the_answer_can_be_asked_about_as_well_as_the_question_and_both_share_a_trace(house: House) -> None:
    async with house.at_work() as gateway:
        message = await answered_with_a_picture(house, gateway)
        (_, reply) = await house.history(gateway)
        by_reply = await explain(gateway.store, message_name(reply))
        by_trace = await explain(gateway.store, reply.trace)
        by_id = await explain(gateway.store, message.id)
        assert by_reply.message.id == reply.id
        assert by_trace == by_id
        assert by_trace.message.id == message.id
        assert by_reply.steps == by_trace.steps


async def test_a_failed_delivery_is_told_with_its_reason(house: House) -> None:
    house.prepare().refusals.append(Undeliverable("the person has blocked us"))
    async with house.at_work() as gateway:
        message = await answered_with_a_picture(house, gateway)
        story = await explain(gateway.store, message.id)
        (end,) = [step for step in story.steps if step.stage == "delivery"]
        assert (end.outcome, "blocked us" in end.reason) == ("dead", True)


async def test_every_try_that_failed_is_told_and_not_only_the_last(house: House) -> None:
    refusals = [RateLimited("status 503", retry_after=3), RateLimited("slow down", retry_after=7)]
    house.prepare().refusals.extend(refusals)
    async with house.at_work() as gateway:
        message = house.say()
        await gateway.accept(message)
        for refused in refusals:
            await house.clock.wake(refused.retry_after)
        await until(lambda: gateway.counters.parcels["sent"])
        story = await explain(gateway.store, message.id)
    told = [(step.outcome, step.reason.partition(";")[0]) for step in story.steps if step.stage == "delivery"]
    assert told == [("delayed", "status 503"), ("delayed", "slow down"), ("sent", "3 attempts")]


async def test_an_attempt_that_a_crash_interrupted_is_told_with_its_attribution(house: House) -> None:
    house.agent = agent = HungAgent()
    message = house.say()
    async with house.until_killed() as gateway:
        await gateway.accept(message)
        await until(lambda: agent.running)
    house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await until(lambda: gateway.counters.parcels["sent"])
        story = await explain(gateway.store, message.id)
    told = {step.outcome: step.reason for step in story.steps if step.stage == "turn"}
    assert sorted(told) == ["answered", "context attached", "interrupted", "running", "runs alone", "waiting"]
    assert told["interrupted"] == "belino stopped while it ran alone; counted, 1 of 3"
    assert told["runs alone"] == "attempt 2: belino stopped during an earlier one"


async def test_an_observed_message_is_explained_by_what_the_gate_said(house: House) -> None:
    async with house.at_work() as gateway:
        message = house.say(author=EVE, channel="team")
        await gateway.accept(message)
        story = await explain(gateway.store, message.id)
        assert (story.steps[-1].outcome, story.steps[-1].reason) == ("observed", "not on the channel's list")


async def test_an_id_that_two_channels_share_is_refused_with_both_names(house: House) -> None:
    async with house.at_work() as gateway:
        message = house.say(channel="a")
        twin = replace(house.say(channel="b"), id=message.id)
        for one in (message, twin):
            await gateway.accept(one)
        with pytest.raises(SeveralMessages) as refusal:
            await explain(gateway.store, message.id)
        assert f"memory:default:a/{message.id}" in str(refusal.value)
        assert f"memory:default:b/{message.id}" in str(refusal.value)


async def test_a_message_is_explained_by_its_short_id_alone_or_after_its_conversation(house: House) -> None:
    async with house.at_work() as gateway:
        said = house.say("hello", channel="team", addressed=False)
        await gateway.accept(said)
        (stored,) = await gateway.store.messages(said.conversation, [said.id])
        for name in (stored.short_id, f"{said.conversation}/{stored.short_id}"):
            assert (await explain(gateway.store, name)).message.id == said.id


@pytest.mark.parametrize("name", ["nothing", "memory:default:dm/m99", "a:b/c", "/", "%ff:x:y/z", ""])
async def test_a_name_that_means_nothing_is_refused_in_a_sentence(house: House, name: str) -> None:
    async with house.at_work() as gateway:
        with pytest.raises(NoSuchMessage, match="there is no message"):
            await explain(gateway.store, name)


async def test_the_story_as_json_is_plain_and_holds_no_locator(house: House) -> None:
    async with house.at_work() as gateway:
        message = await answered_with_a_picture(house, gateway)
        told = as_json(await explain(gateway.store, message.id))
    text = json.dumps(told)
    assert json.loads(text) == told
    assert "locator" not in text
    assert told["outcome"] == "answered"
