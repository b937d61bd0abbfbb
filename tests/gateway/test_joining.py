"""What one sender sends in a row is answered once, and a message that comes while a turn runs is treated as wanted."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from belino.config import AccessConfig, ChannelAccess, SessionsConfig
from belino.domain.message import ConversationKey, Message, Quote
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.ports import AcceptsMany
from belino.domain.turn import Final, ReplyPart, TextDelta, Turn
from belino.gateway.explain import explain
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent
from belino.turns.preview import as_json, preview
from gateway.house import ANN, BOB, House, until

DM = ConversationKey(platform="memory", account="default", channel="dm")


class SlowAgent:
    """Answers with the words of its messages, once a test lets it; first it does what the test wants."""

    remembers = True
    sees_images = False

    def __init__(self, *, shows: bool = False, calls: bool = False) -> None:
        self.turns: list[list[str]] = []
        self.shows = shows
        self.calls = calls
        self.go_on = asyncio.Event()

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        said = [message.text for message in turn.messages]
        if self.calls:
            await turn.toolbox.call("list_media", {})
        if self.shows:
            yield TextDelta(text="I beg")
        self.turns.append(said)
        await self.go_on.wait()
        yield Final(text=" + ".join(said))


def forward(message: Message) -> Message:
    return replace(message, forward=Quote(text="what it is about"))


def door(gateway: Gateway) -> AcceptsMany:
    accept = gateway._intake.for_account("memory", "default")
    assert isinstance(accept, AcceptsMany)
    return accept


async def test_what_comes_in_one_batch_is_one_turn_for_each_sender(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    said = [house.say("one"), house.say("two"), house.say("three")]
    async with house.at_work() as gateway:
        taken = await door(gateway).many([(message, None) for message in said])
        assert {one.outcome for one in taken} == {MessageOutcome.WAITING}
        await until(lambda: house.wire.texts() == ["turn 1"])
        (turn,) = agent.turns
        assert [message.text for message in turn.messages] == ["one", "two", "three"]
        shown = [text for block in turn.blocks if (text := getattr(block, "text", "")).startswith("<<<message")]
        assert [("one" in text, "from: Ann" in text) for text in shown] == [(True, True), (False, True), (False, True)]
        steps = (await explain(gateway.store, said[2].id)).steps
        joined = [(step.subject, step.reason) for step in steps if step.outcome == "joined"]
        why = "it came together with the message before it"
        assert joined == [(f"message {said[1].id}", why), (f"message {said[2].id}", why)]
        assert gateway._sessions.waiting == 0
        assert (await gateway.audit()).is_balanced


@pytest.mark.parametrize("text", ["hello", "x" * (4_096 - 97)])
async def test_a_plain_message_waits_for_nothing(house: House, text: str) -> None:
    async with house.at_work() as gateway:
        await gateway.accept(house.say(text))
        await until(lambda: house.wire.texts() == ["turn 1"])  # the clock stands still


async def test_a_split_paste_is_one_turn(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    pieces = [house.say("x" * 4_000), house.say("y" * 4_090), house.say("the end")]
    async with house.at_work() as gateway:
        for piece in pieces:
            await gateway.accept(piece)
            await house.clock.advance(0.3)
        await until(lambda: house.wire.texts() == ["turn 1"])
    assert [message.id for message in agent.turns[0].messages] == [piece.id for piece in pieces]


async def test_a_long_text_that_does_not_go_on_is_answered_after_half_a_second(house: House) -> None:
    async with house.at_work() as gateway:
        await gateway.accept(house.say("x" * (4_096 - 96)))
        await house.clock.advance(0.49)
        assert house.wire.texts() == []
        await house.clock.wake(0.01)
        await until(lambda: house.wire.texts() == ["turn 1"])


async def test_a_forward_after_its_comment_starts_the_turn_again_with_both(house: House) -> None:
    agent = house.agent = SlowAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("look at this"))
        await until(lambda: len(agent.turns) == 1)
        await gateway.accept(forward(house.say("first")))
        await gateway.accept(forward(house.say("second")))
        agent.go_on.set()
        await house.clock.wake(0.5)
        await until(lambda: house.wire.texts() == ["look at this + first + second"])
        assert agent.turns == [["look at this"], ["look at this", "first", "second"]]
        steps = (await explain(gateway.store, (await house.history(gateway))[0].id)).steps
        assert "started again" in {step.outcome for step in steps}
        assert gateway._sessions.waiting == 0
        assert (await gateway.audit()).is_balanced


@pytest.mark.parametrize("done", ["text", "a tool call"])
async def test_a_turn_that_has_done_something_is_not_started_again(house: House, done: str) -> None:
    agent = house.agent = SlowAgent(shows=done == "text", calls=done == "a tool call")
    async with house.at_work() as gateway:
        await gateway.accept(house.say("look at this"))
        await until(lambda: len(agent.turns) == 1)
        await gateway.accept(forward(house.say("late")))
        agent.go_on.set()
        await until(lambda: house.wire.texts() == ["look at this", "late"])


async def test_a_process_that_dies_after_a_forward_joined_answers_both_once(house: House) -> None:
    agent = house.agent = SlowAgent()
    async with house.until_killed() as gateway:
        await gateway.accept(house.say("look at this"))
        await until(lambda: len(agent.turns) == 1)
        await gateway.accept(forward(house.say("first")))
    again = house.agent = SlowAgent()
    again.go_on.set()
    async with house.at_work() as gateway:
        await house.clock.advance(0.5)
        await until(lambda: house.wire.texts() == ["look at this + first"])
        assert again.turns == [["look at this", "first"]]
        assert (await gateway.audit()).is_balanced


async def test_while_busy_messages_are_queued_one_by_one(house: House) -> None:
    agent = house.agent = SlowAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("one"))
        await until(lambda: len(agent.turns) == 1)
        await gateway.accept(house.say("two"))
        await gateway.accept(house.say("three"))
        agent.go_on.set()
        await until(lambda: house.wire.texts() == ["one", "two", "three"])


async def test_while_busy_all_senders_may_be_joined_with_the_lowest_permission(house: House) -> None:
    agent = house.agent = SlowAgent()
    house.sessions = SessionsConfig(while_busy="join")
    async with house.at_work() as gateway:
        await gateway.accept(house.say("one", channel="team"))
        await until(lambda: len(agent.turns) == 1)
        await gateway.accept(house.say("two", channel="team"))
        await gateway.accept(house.say("three", channel="team", author=BOB))
        account = ("memory", "default")
        only = AccessConfig(channels={"team": ChannelAccess(senders=(ANN.id,))})
        gateway._access[account] = replace(gateway._access[account], access=only)
        agent.go_on.set()
        await until(lambda: gateway.counters.parcels["held"] + gateway.counters.parcels["dead"] == 1)
        assert agent.turns[1] == ["two", "three"]
        assert house.wire.texts() == ["one"]


async def test_while_busy_a_message_may_stop_the_turn(house: House) -> None:
    agent = house.agent = SlowAgent()
    house.sessions = SessionsConfig(while_busy="interrupt")
    async with house.at_work() as gateway:
        first = house.say("write a book")
        await gateway.accept(first)
        await until(lambda: len(agent.turns) == 1)
        await gateway.accept(house.say("no, a line"))
        await until(lambda: len(agent.turns) == 2)
        agent.go_on.set()
        await until(lambda: house.wire.texts() == ["no, a line"])
        (stopped,) = await gateway.store.messages(DM, [first.id])
        assert (stopped.outcome, stopped.reason) == (MessageOutcome.ABORTED, "stopped by a newer message")


async def test_a_copy_with_a_file_starts_the_turn_again_with_it(house: House) -> None:
    agent = house.agent = SlowAgent()
    async with house.at_work() as gateway:
        bare = house.say("what is this")
        await gateway.accept(bare)
        await until(lambda: len(agent.turns) == 1)
        taken = await gateway.accept(replace(bare, text="what is this?", media=(house.picture(bare),)))
        assert (taken.outcome, taken.completes) == (MessageOutcome.DUPLICATE, True)
        agent.go_on.set()
        await until(lambda: house.wire.texts() == ["what is this?"])
        (message,) = await gateway.store.messages(DM, [bare.id])
        assert len(message.media) == 1


async def test_a_line_that_replies_to_another_message_is_a_question_of_its_own(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    said = [house.say("what is this?"), house.say("and this?"), house.say("the red one")]
    said = [replace(one, reply_to=about) for one, about in zip(said, ("7", "8", "8"), strict=True)]
    async with house.at_work() as gateway:
        await door(gateway).many([(message, None) for message in said])
        await until(lambda: house.wire.texts() == ["turn 1", "turn 2"])
        asked = [[message.text for message in turn.messages] for turn in agent.turns]
        assert asked == [["what is this?"], ["and this?", "the red one"]]
        assert (await gateway.audit()).is_balanced


class CountingAgent(SlowAgent):
    """Keeps the authors of the messages of each turn."""

    def __init__(self) -> None:
        super().__init__()
        self.authors: list[set[str]] = []

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.authors.append({message.author.id for message in turn.messages})
        async for part in super().run_turn(turn):
            yield part


@pytest.mark.parametrize("seed", range(4))
async def test_joining_never_raises_the_permission_of_anyone(house: House, seed: int) -> None:
    chance, agent = random.Random(seed), CountingAgent()
    eve = replace(BOB, id="eve", name="Eve")
    house.agent, house.sessions = agent, SessionsConfig(while_busy="join", album_window_ms=0)
    async with house.at_work() as gateway:
        for number in range(14):
            author, addressed = chance.choice((ANN, BOB, eve)), chance.random() < 0.6
            said = house.say(f"line {number}", channel="team", author=author, addressed=addressed)
            if chance.random() < 0.3:
                said = forward(said)
            elif chance.random() < 0.3:
                said = replace(said, album=f"album {chance.randrange(2)}")
            await gateway.accept(said)
            agent.go_on.set() if chance.random() < 0.3 else agent.go_on.clear()
        agent.go_on.set()
        while await gateway.store.waiting_turns():
            await house.clock.advance(1)
        history = await house.history(gateway, "team")
        assert (await gateway.audit()).is_balanced
    theirs = [message for message in history if message.author.id == eve.id]
    assert theirs
    assert {message.standing for message in theirs} == {Standing.OBSERVED}
    assert agent.authors
    assert not any(eve.id in authors for authors in agent.authors)


async def test_context_and_explain_show_every_message_of_a_joined_turn(house: House) -> None:
    house.agent = ScriptedAgent()
    said = [house.say("one"), house.say("two"), house.say("three")]
    async with house.at_work() as gateway:
        await door(gateway).many([(message, None) for message in said])
        await until(lambda: house.wire.texts())
        key = gateway.home.key_file.read_bytes()
        for message in said:
            config, clock = gateway.config.context, gateway.clock
            shown = await preview(gateway.store, DM, message.id, config, clock=clock, key=key, history=gateway.history)
            told = json.dumps(as_json(shown))
            assert [each.text in told for each in said] == [True, True, True]
            story = await explain(gateway.store, message.id)
            assert [parcel.text for parcel in story.parcels] == ["turn 1"]
            assert [step.subject for step in story.steps if step.outcome == "joined"] == [
                f"message {each.id}" for each in said[1:]
            ]
