"""A gateway asks for the past when it needs it: once for a channel, and never in between."""

from dataclasses import replace
from datetime import timedelta

from belino.domain.media import TextBlock
from belino.domain.message import Author, ConversationKey
from belino.domain.outcome import MessageOutcome
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent
from gateway.house import BOB, House, until

TEAM, OPEN = (ConversationKey(platform="memory", account="default", channel=name) for name in ("team", "open"))

EVE = Author(id="eve", name="Eve")
STRANGE = {"recalled in team": True, "overheard": False, "by a stranger": True}


def remember(house: House, *texts: str, where: ConversationKey = TEAM, thread: str | None = None) -> None:
    """What was said on the platform before anybody listened."""
    far_side = house.prepare()._far_side if not house.wires else house.wire._far_side
    for number, text in enumerate(texts):
        sent = house.clock.now() - timedelta(minutes=60 - number)
        update = {"id": f"{where.channel}-{text}", "channel": where.channel, "text": text, "date": sent.timestamp()}
        far_side.past.append({**update, "from": {"id": 9, "name": "Cleo"}, "direct": False, "thread": thread})


async def ask(house: House, gateway: Gateway, text: str, **more: object) -> str:
    """Say something to the agent and wait for its answer; what it was told."""
    agent = house.agent
    assert isinstance(agent, ScriptedAgent)
    before = gateway.counters.turns["answered"]
    await gateway.accept(house.say(text, **more))  # type: ignore[arg-type]
    await until(lambda: gateway.counters.turns["answered"] > before)
    return "\n".join(block.text for block in agent.turns[-1].blocks if isinstance(block, TextBlock))


async def test_a_cold_start_costs_one_call_for_each_channel_in_which_somebody_asks_and_then_none(house: House) -> None:
    remember(house, "old one", "old two")
    remember(house, "old three", where=OPEN)
    async with house.at_work() as gateway:
        for number in range(3):
            await gateway.accept(house.say(f"talk {number}", author=BOB, channel="team", addressed=False))
        assert house.wire._far_side.asked == []
        told = await ask(house, gateway, "what was said?", channel="team")
        assert "old one" in told and "old two" in told and told.index("old two") < told.index("talk 0")
        for number in range(5):
            await ask(house, gateway, f"again {number}", channel="team")
            await ask(house, gateway, f"and here {number}", channel="open")
        assert sorted(house.wire._far_side.asked) == sorted([str(TEAM), str(OPEN)])
        assert gateway.counters.history["calls"] == 2
    async with house.at_work() as gateway:
        await ask(house, gateway, "once more", channel="team")
        await ask(house, gateway, "once more", channel="team")
        assert len(house.wire._far_side.asked) == 3


async def test_a_failed_call_is_in_the_story_and_the_turn_goes_on_without(house: House) -> None:
    remember(house, "old one")
    house.wire._far_side.refusals.append((500, {}))
    async with house.at_work() as gateway:
        told = await ask(house, gateway, "what was said?", channel="team")
        assert "old one" not in told
        (message,) = [one for one in await house.history(gateway, "team") if one.text == "what was said?"]
        assert message.outcome is MessageOutcome.ANSWERED
        story = await gateway.store.story(message.conversation, message.id)
        assert story is not None
        assert ("history incomplete", "The platform could not be asked; this is what is stored.") in {
            (step.outcome, step.reason) for step in story.steps
        }
        house.clock.shift(61)
        await ask(house, gateway, "and now?", channel="team")
        kept = {one.text for one in await house.history(gateway, "team")}
        assert "old one" in kept


async def test_a_turn_in_an_old_thread_is_told_how_it_began(house: House) -> None:
    remember(house, "how it began")
    remember(house, "a reply", thread="team-how it began")
    thread = replace(TEAM, thread="team-how it began")
    async with house.at_work() as gateway:
        told = await ask(house, gateway, "and now?", channel="team", conversation=thread)
        assert "how it began" in told and "a reply" in told
        await ask(house, gateway, "and then?", channel="team", conversation=thread)
        assert len(house.wire._far_side.asked) == 2


async def test_only_lines_of_those_who_may_not_command_are_marked_live_or_recalled(house: House) -> None:
    remember(house, "recalled in team")
    remember(house, "recalled in open", where=OPEN)
    async with house.at_work() as gateway:
        await gateway.accept(house.say("overheard", author=BOB, channel="team", addressed=False))
        await gateway.accept(house.say("by a stranger", author=EVE, channel="team", addressed=False))
        told = (await ask(house, gateway, "what was said?", author=BOB, channel="team")).splitlines()
        marked = {text: any(text in line and "observed" in line for line in told) for text in STRANGE}
        assert marked == STRANGE
        told = (await ask(house, gateway, "and here?", channel="open")).splitlines()
        assert [line for line in told if "recalled in open" in line and "observed" not in line]


async def test_what_is_offered_live_after_it_was_recalled_is_answered(house: House) -> None:
    async with house.at_work() as gateway:
        message = house.say("are you there?", channel="team")
        await gateway.store.take_history(TEAM, [message])
        await gateway.accept(message)
        await until(lambda: gateway.counters.turns["answered"])
        (kept,) = await gateway.store.messages(TEAM, [message.id])
        assert kept.outcome is MessageOutcome.ANSWERED
