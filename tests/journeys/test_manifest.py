"""A picture is shown once while the agent remembers it, and again when it does not."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from belino.agents import demo
from belino.context.budget import ContextConfig
from belino.domain.errors import AgentError
from belino.domain.media import Block, ImageBlock, TextBlock
from belino.domain.message import ConversationKey, Message
from belino.domain.stored import Session
from belino.domain.turn import Accepted, Compacted, Final, Refused, ReplyPart, Turn
from belino.gateway.explain import explain
from belino.gateway.gateway import Gateway
from belino.testing import make_png
from gateway.house import House, until

pytestmark = pytest.mark.slow

DM = ConversationKey(platform="memory", account="default", channel="dm")
CAT, DOG = make_png(8, 6), make_png(6, 8)
RECOVERY = "[Post-compaction context recovery: re-attaching {} media items from this thread]"
REF = re.compile(r"ref:(\w+_[a-z0-9]{12})")


class Viewer:
    """Looks at what the message brings if it says so, and at any ref named in it; then does what a test wants."""

    remembers = True
    sees_images = True

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.answers: list[tuple[Block, ...]] = []
        self.then: list[ReplyPart | Exception] = []
        """Done once, at the end of the next turn."""

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.turns.append(turn)
        yield Accepted()
        message = told(turn).rpartition("<<<message ")[2]
        if "look" in message:
            for ref in dict.fromkeys(REF.findall(message) + re.findall(r"look at (\w+_[a-z0-9]{12})", message)):
                self.answers.append(await turn.toolbox.call("fetch_media", {"ref": ref}))
            yield Accepted()
        doing, self.then = self.then, []
        for part in doing:
            if isinstance(part, Exception):
                raise part
            yield part
        yield Final(text="done")


class Journey:
    """A direct conversation that goes on and on, over restarts."""

    def __init__(self, house: House, agent: Viewer) -> None:
        self.house, self.agent = house, agent
        house.agent, house.context = agent, ContextConfig(attach_media="never")
        wire = house.prepare()
        self.files = wire._far_side.files
        self.refs: list[str] = []

    def message(
        self, text: str, picture: bytes | None = None, name: str = "photo.png", where: ConversationKey = DM
    ) -> Message:
        message = self.house.say(text, conversation=where)
        if picture is None:
            return message
        item = f"file of {message.id}"
        self.files[item] = picture
        return replace(message, media=(self.house.picture(message, item=item, name=name),))

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator["Talk"]:
        async with self.house.at_work() as gateway:
            yield Talk(self, gateway)


class Talk:
    """The journey while a gateway runs."""

    def __init__(self, journey: Journey, gateway: Gateway) -> None:
        self.journey, self.gateway = journey, gateway

    async def say(
        self, text: str, picture: bytes | None = None, name: str = "photo.png", where: ConversationKey = DM
    ) -> str:
        """Say it, wait for the answer; the ref of the picture, if there is one."""
        message = self.journey.message(text, picture, name, where)
        await self.journey.house.ask(self.gateway, message)
        (stored,) = await self.gateway.store.messages(message.conversation.whole_channel, [message.id])
        return stored.media[0].id if stored.media else ""

    async def session(self, where: ConversationKey = DM) -> Session:
        return await self.gateway.store.session(where)

    async def steps(self, text: str) -> Mapping[str, str]:
        """How the turn that answered this went, by outcome."""
        history = await self.journey.house.history(self.gateway)
        message = next(one for one in history if one.text == text)
        story = await explain(self.gateway.store, f"{message.conversation}/{message.id}")
        return {step.outcome: step.reason for step in story.steps}


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    return Journey(House(tmp_path / "home"), Viewer())


def told(turn: Turn) -> str:
    return "\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))


def pictures(blocks: tuple[Block, ...]) -> list[bytes]:
    return [block.data for block in blocks if isinstance(block, ImageBlock)]


def words(blocks: tuple[Block, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


async def test_the_same_picture_is_shown_once_across_turns_restarts_and_re_uploads(journey: Journey) -> None:
    agent = journey.agent
    async with journey.at_work() as talk:
        cat = await talk.say("look", CAT)
        assert pictures(agent.answers[-1]) == [CAT]
        await talk.say(f"look at {cat}")
        assert not pictures(agent.answers[-1]) and "shown to you at turn 1" in words(agent.answers[-1])
    async with journey.at_work() as talk:
        await talk.say(f"look at {cat}")
        assert not pictures(agent.answers[-1]) and "shown to you at turn 1" in words(agent.answers[-1])
        renamed = await talk.say("look", CAT, "holiday.png")
        assert renamed != cat
        assert not pictures(agent.answers[-1]) and "holiday.png was shown to you at turn 1" in words(agent.answers[-1])
        await talk.say("look", DOG)
        assert pictures(agent.answers[-1]) == [DOG]
        assert [entry.included_at_turn for entry in (await talk.session()).manifest] == [1, 5]


async def test_a_picture_of_a_failed_turn_may_be_shown_again(journey: Journey) -> None:
    async with journey.at_work() as talk:
        journey.agent.then = [AgentError("the model is overloaded")]
        cat = await talk.say("look", CAT)
        assert (await talk.session()).manifest == ()
        await talk.say(f"look at {cat}")
        assert pictures(journey.agent.answers[-1]) == [CAT]
        assert len((await talk.session()).manifest) == 1


async def test_after_compaction_the_pictures_come_back_once_as_bytes_before_the_message(journey: Journey) -> None:
    agent = journey.agent
    async with journey.at_work() as talk:
        cat = await talk.say("look", CAT)
        journey.house.clock.shift(60)
        await talk.say("look", DOG, "dog.png")
        agent.then = [Compacted()]
        await talk.say("much later")
        before = await talk.session()
        assert before.compacted and len(before.lost) == 2
        assert not pictures(agent.turns[-1].blocks)
    async with journey.at_work() as talk:
        await talk.say("what was on it?")
        turn = agent.turns[-1]
        assert isinstance(turn.blocks[0], TextBlock) and turn.blocks[0].text == RECOVERY.format(2)
        assert pictures(turn.blocks) == [DOG, CAT]
        last = max(at for at, block in enumerate(turn.blocks) if isinstance(block, ImageBlock))
        assert "what was on it?" in words(turn.blocks[last:])
        after = await talk.session()
        assert (after.manifest, after.lost, after.compacted) == (before.manifest, (), False)
        assert (await talk.steps("what was on it?"))["recovered after compaction"] == "2 attached"
        await talk.say(f"and now? look at {cat}")
        assert not pictures(agent.turns[-1].blocks) and "recovery" not in told(agent.turns[-1])
        assert not pictures(agent.answers[-1]) and "shown to you at turn 1" in words(agent.answers[-1])


async def test_a_recovery_whose_turn_failed_is_made_again(journey: Journey) -> None:
    agent = journey.agent
    async with journey.at_work() as talk:
        await talk.say("look", CAT)
        agent.then = [Compacted()]
        await talk.say("later")
        agent.then = [AgentError("no")]
        await talk.say("once")
        await talk.say("twice")
        await talk.say("thrice")
    assert [len(pictures(turn.blocks)) for turn in agent.turns[2:]] == [1, 1, 0]


async def test_a_picture_the_model_would_not_take_is_not_remembered_as_shown(journey: Journey) -> None:
    journey.house.context = ContextConfig(attach_media="message")
    async with journey.at_work() as talk:
        ref = await talk.say("hello", CAT)
        dog = journey.message("see", DOG, "dog.png")
        await talk.gateway.accept(replace(dog, album="held back"))
        ((taken,),) = [one.media for one in await talk.gateway.store.messages(DM, [dog.id])]
        journey.agent.then = [Refused(ref=taken.id, why="too many pixels")]
        await journey.house.clock.advance(5)
        await until(lambda: talk.gateway.counters.turns["answered"] == 2)
        assert [entry.artifact_id for entry in (await talk.session()).manifest] == [ref]
        await talk.say(f"look at {taken.id}")
        assert pictures(journey.agent.answers[-1]) == [DOG]


async def test_only_the_eight_newest_come_back_and_the_rest_can_be_asked_for(journey: Journey) -> None:
    agent = journey.agent
    shots = [make_png(4 + number, 3) for number in range(10)]
    async with journey.at_work() as talk:
        refs = []
        for number, shot in enumerate(shots):
            journey.house.clock.shift(60)
            refs.append(await talk.say("look", shot, f"{number}.png"))
        agent.then = [Compacted()]
        await talk.say("later")
        await talk.say("and?")
        assert agent.turns[-1].blocks[0] == TextBlock(text=RECOVERY.format(8))
        assert pictures(agent.turns[-1].blocks) == shots[:1:-1]
        assert (await talk.session()).lost == (refs[0], refs[1])
        await talk.say(f"look at {refs[0]}")
        assert pictures(agent.answers[-1]) == [shots[0]]


async def test_an_old_picture_asked_for_in_the_turn_that_lost_it_is_shown(
    journey: Journey, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with journey.at_work() as talk:
        cat = await talk.say("look", CAT)
        found: list[tuple[Block, ...]] = []

        async def forget(turn: Turn) -> AsyncIterator[ReplyPart]:
            yield Accepted()
            found.append(await turn.toolbox.call("fetch_media", {"ref": cat}))
            yield Compacted()
            found.append(await turn.toolbox.call("fetch_media", {"ref": cat}))
            yield Accepted()
            found.append(await turn.toolbox.call("fetch_media", {"ref": cat}))
            yield Compacted(only=(cat,))
            found.append(await turn.toolbox.call("fetch_media", {"ref": cat}))
            yield Accepted()
            yield Final(text="seen")

        monkeypatch.setattr(journey.agent, "run_turn", forget)
        await talk.say("what was it?")
        assert [len(pictures(blocks)) for blocks in found] == [0, 1, 0, 1]
        session = await talk.session()
        assert (session.lost, [entry.included_at_turn for entry in session.manifest]) == ((), [2])


async def test_the_same_bytes_sent_again_after_compaction_are_shown_and_then_known(journey: Journey) -> None:
    agent = journey.agent
    async with journey.at_work() as talk:
        cat = await talk.say("look", CAT)
        agent.then = [Compacted()]
        await talk.say("later")
        agent.then = [Compacted()]
        await talk.say("later still")
        again = await talk.say("hello", CAT, "again.png")
        assert pictures(agent.turns[-1].blocks) == [CAT]  # made good by the recovery
        await talk.say(f"look at {again}")
        assert not pictures(agent.answers[-1]) and "shown to you at turn 1" in words(agent.answers[-1])
        agent.then = [Compacted(only=(cat,))]
        await talk.say("drop the old picture")
        await talk.say(f"look at {again}")
        assert pictures(agent.answers[-1]) == [CAT]
        await talk.say(f"look at {cat}")
        assert not pictures(agent.answers[-1]) and "shown to you at turn 7" in words(agent.answers[-1])
        assert not any(pictures(turn.blocks) for turn in agent.turns[4:])


async def test_a_picture_that_is_gone_for_good_is_told_with_its_reason_and_the_rest_comes_back(
    journey: Journey,
) -> None:
    agent = journey.agent
    async with journey.at_work() as talk:
        cat = await talk.say("look", CAT)
        await talk.say("look", DOG, "dog.png")
        agent.then = [Compacted()]
        await talk.say("later")
        await talk.gateway.store._database.write(
            lambda connection: connection.execute("UPDATE refs SET sha256 = NULL, outcome = 'referenced'")
        )
        del journey.files["file of m1"]
        await talk.say("and?")
        assert pictures(agent.turns[-1].blocks) == [DOG]
        assert RECOVERY.format(1) in told(agent.turns[-1])
        assert re.search(r"\[Image: photo.png, .*expired\]: not attached: ", told(agent.turns[-1]))
        assert (await talk.steps("and?"))["recovered after compaction"] == "1 attached, 1 not to be had"
        assert (await talk.session()).lost == (cat,)


async def test_another_threads_pictures_do_not_come_back(journey: Journey) -> None:
    agent = journey.agent
    thread = replace(DM, thread="m1")
    other = replace(DM, thread="m2")
    async with journey.at_work() as talk:
        root = await talk.say("hello", CAT, "root.png")
        aside = await talk.say("hello", DOG, "aside.png", where=other)
        own = await talk.say("look", make_png(3, 3), "own.png", where=thread)
        await talk.say(f"look at {root}, look at {aside}", where=thread)
        assert len((await talk.session(thread)).manifest) == 3
        agent.then = [Compacted()]
        await talk.say("later", where=thread)
        await talk.say("and?", where=thread)
        assert [block.ref for block in agent.turns[-1].blocks if isinstance(block, ImageBlock)] == [own, root]
        assert (await talk.session(thread)).lost == (aside,)
        assert (await talk.session()).manifest == ()


async def test_a_message_picture_attached_unasked_is_named_when_it_comes_again(journey: Journey) -> None:
    agent = journey.agent
    journey.house.context = ContextConfig(attach_media="message")
    async with journey.at_work() as talk:
        await talk.say("see", CAT)
        assert pictures(agent.turns[-1].blocks) == [CAT]
        await talk.say("see again", CAT, "other.png")
        assert not pictures(agent.turns[-1].blocks)
        assert re.search(r"\[Image: other.png, .*, shown at turn 1\]", told(agent.turns[-1]))
        assert (await talk.steps("see again"))["media attached"] == "1 shown before"
        ref = await talk.say("see and look", DOG, "dog.png")
        assert pictures(agent.turns[-1].blocks) == [DOG]
        assert not pictures(agent.answers[-1]) and "in this turn already" in words(agent.answers[-1])
        assert [entry.artifact_id for entry in (await talk.session()).manifest][1:] == [ref]


async def test_a_picture_that_cannot_be_attached_is_told_with_its_reason_and_the_turn_goes_on(
    journey: Journey,
) -> None:
    journey.house.context = ContextConfig(attach_media="message")
    async with journey.at_work() as talk:
        message = journey.message("see", CAT)
        journey.files.clear()
        await journey.house.ask(talk.gateway, message)
        assert re.search(r"\[Image: photo.png, image/png, expired\]: not attached: ", told(journey.agent.turns[-1]))
        assert journey.house.wire.texts() == ["done"]


async def test_the_demo_agent_sees_every_picture_anew_because_it_forgets(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    journey = Journey(house, Viewer())
    house.agent = demo.Agent(demo.Config())
    async with journey.at_work() as talk:
        await talk.say("hello", CAT)
        await talk.say("hello", CAT, "holiday.png")
    async with journey.at_work() as talk:
        await talk.say("and this", CAT, "third.png")
        session = await talk.session()
        assert len(session.manifest) == 3 and set(session.lost) == {entry.artifact_id for entry in session.manifest}
    for name, answer in zip(("photo", "holiday", "third"), house.wire.texts(), strict=True):
        assert f"I was shown {name}.png: image/png, 8×6" in answer
    house.agent = journey.agent  # whoever comes next has seen nothing yet
    async with journey.at_work() as talk:
        await talk.say("look", CAT)
        assert pictures(journey.agent.answers[-1]) == [CAT]
