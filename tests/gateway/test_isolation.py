"""After a crash suspects run one at a time with nothing beside them, and only the one that crashes is given up."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from belino.domain.media import TextBlock
from belino.domain.message import ConversationKey, Deletion
from belino.domain.outcome import MessageOutcome
from belino.domain.turn import Accepted, Final, ReplyPart, Turn
from belino.gateway.explain import explain
from belino.gateway.gateway import Gateway
from belino.gateway.sessions import Isolation
from gateway.house import ANN, House, until

A, B, C = (ConversationKey(platform="memory", account="default", channel=name) for name in "abc")
POISON = "poison"


class Crashing:
    """An agent at which the process dies: it never answers `poison`, nor anybody else before it is told to."""

    remembers = True
    sees_images = False

    def __init__(self, *, patient: bool = False) -> None:
        self.running: list[str] = []
        """The channels whose turns run now."""
        self.most = 0
        """How many ran at once at most."""
        self.begun: list[str] = []
        self.go = asyncio.Event()
        if not patient:
            self.go.set()

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        where = turn.conversation.channel
        self.running.append(where)
        self.begun.append(where)
        self.most = max(self.most, len(self.running))
        yield Accepted()
        try:
            if any(POISON in block.text for block in turn.blocks if isinstance(block, TextBlock)):
                await asyncio.Event().wait()
            await self.go.wait()
            yield Final(text=f"answer in {where}")
        finally:
            self.running.remove(where)


async def outcomes(house: House, gateway: Gateway, channels: Sequence[str]) -> dict[str, MessageOutcome]:
    return {channel: (await house.history(gateway, channel))[0].outcome for channel in channels}


async def test_ten_turns_beside_a_poison_message_are_answered_and_it_alone_is_given_up(house: House) -> None:
    others = [f"dm{number}" for number in range(10)]
    agent = house.agent = Crashing(patient=True)
    async with house.until_killed() as gateway:  # first crash: eleven ran
        for channel in (*others[:5], POISON, *others[5:]):
            await gateway.accept(house.say(POISON if channel == POISON else "hello", channel=channel))
        await until(lambda: len(agent.running) == 11)
    agent = house.agent = Crashing()
    async with house.until_killed() as gateway:  # second: each runs alone, and it dies with the poison
        await until(lambda: POISON in agent.running)
        assert agent.running == [POISON]
        assert agent.most == 1
    agent = house.agent = Crashing()
    async with house.until_killed() as gateway:  # third: the others come first now, and are all answered
        await until(lambda: POISON in agent.running)
        assert agent.most == 1
        answered = await outcomes(house, gateway, others)
        assert set(answered.values()) == {MessageOutcome.ANSWERED}
    agent = house.agent = Crashing()
    async with house.until_killed() as gateway:  # it waits until the process has been up for a while, nobody else does
        await house.clock.advance(19)
        await house.ask(gateway, house.say(channel="later"))
        assert POISON not in agent.begun
        await house.clock.advance(1)
        await until(lambda: POISON in agent.running)
    house.agent = agent = Crashing()
    async with house.at_work() as gateway:
        await until(lambda: gateway.counters.turns["failed"])
        (message,) = (await house.history(gateway, POISON))[:1]
        assert (message.outcome, message.reason) == (
            MessageOutcome.FAILED,
            "belino stopped 3 times while this ran alone",
        )
        assert agent.begun == []
        await until(lambda: house.wire.texts(POISON))
        story = await explain(gateway.store, message.id)
    assert house.wire.texts(POISON) == ["Sorry, I could not answer that: belino stopped 3 times while this ran alone."]
    assert all(house.wire.texts(channel) == [f"answer in {channel}"] for channel in others)
    assert [step.reason for step in story.steps if step.outcome == "interrupted"] == [
        "belino stopped while it ran beside 10 other turns; not counted",
        "belino stopped while it ran alone; counted, 1 of 3",
        "belino stopped while it ran alone; counted, 2 of 3",
        "belino stopped while it ran alone; counted, 3 of 3",
    ]


async def test_kills_that_come_again_and_again_never_use_up_the_tries_of_a_turn(house: House) -> None:
    agent = house.agent = Crashing(patient=True)
    async with house.until_killed() as gateway:
        await gateway.accept(house.say())
        await until(lambda: agent.running)
    for _ in range(20):
        agent = house.agent = Crashing(patient=True)
        async with house.until_killed():
            await until(lambda: agent.running or house.clock.sleeps_for(20))  # noqa: B023 - awaited in its round
            await house.clock.advance(5)
    agent = house.agent = Crashing()
    async with house.at_work() as gateway:
        # Time that went on would end the turn at its deadline, before a slow disk has given it what it needs.
        await until(lambda: agent.begun or house.clock.sleeps_for(20))
        await house.clock.advance(20)
        await until(lambda: house.wire.texts())
    assert house.wire.texts() == ["answer in dm"]


async def test_a_due_suspect_waits_for_those_that_run_and_holds_back_those_that_do_not(house: House) -> None:
    await interrupt_twice(house, "suspect")
    agent = house.agent = Crashing(patient=True)
    async with house.at_work() as gateway:
        await gateway.accept(house.say(channel="running"))
        await until(lambda: agent.running == ["running"])
        await house.clock.advance(20)  # the suspect is due
        await until(lambda: gateway._sessions._isolation._suspects)
        await gateway.accept(house.say(channel="held"))
        await until(lambda: gateway._sessions._isolation._held)
        assert agent.running == ["running"]
        agent.go.set()
        await until(lambda: len(agent.begun) == 3)
    assert agent.begun == ["running", "suspect", "held"]
    assert agent.most == 1


async def test_a_stop_while_a_suspect_is_waited_for_ends_at_once_and_leaves_it_waiting(house: House) -> None:
    await interrupt_twice(house, "suspect")
    agent = house.agent = Crashing(patient=True)
    async with asyncio.timeout(60), house.gateway() as gateway, asyncio.TaskGroup() as group:
        working = group.create_task(gateway.run())
        await gateway.accept(house.say(channel="running"))
        await until(lambda: agent.running)
        await house.clock.advance(20)
        await until(lambda: gateway._sessions._isolation._suspects)
        gateway.stop()
        agent.go.set()
        await working
        found = await outcomes(house, gateway, ["running", "suspect"])
    assert found == {"running": MessageOutcome.ANSWERED, "suspect": MessageOutcome.WAITING}
    assert agent.begun == ["running"]


async def test_a_suspect_that_is_deleted_before_it_runs_holds_nobody_back(house: House) -> None:
    agent = house.agent = Crashing(patient=True)
    message = house.say(channel="gone")
    async with house.until_killed() as gateway:
        await gateway.accept(house.say(channel="first"))
        await gateway.accept(message)
        await until(lambda: len(agent.running) == 2)
    agent = house.agent = Crashing(patient=True)
    async with house.at_work() as gateway:
        await gateway.accept(house.say(channel="third"))
        await until(lambda: agent.running == ["first"])
        where = message.conversation
        await gateway.accept(Deletion(conversation=where, id="d", message_id=message.id, author=ANN, sent=message.sent))
        agent.go.set()
        await until(lambda: house.wire.texts("third"))
        found = await outcomes(house, gateway, ["first", "gone", "third"])
    assert list(found.values()) == [MessageOutcome.ANSWERED, MessageOutcome.ABORTED, MessageOutcome.ANSWERED]
    assert agent.begun == ["first", "third"]


async def interrupt_twice(house: House, channel: str) -> None:
    """A turn that waits for 20 s of uptime from now on."""
    agent = house.agent = Crashing(patient=True)
    async with house.until_killed() as gateway:
        await gateway.accept(house.say(channel=channel))
        await until(lambda: agent.running)
    agent = house.agent = Crashing(patient=True)
    async with house.until_killed() as gateway:
        await until(lambda: agent.running)


def test_nobody_enters_beside_a_suspect_and_everybody_held_back_is_woken() -> None:
    woken: list[ConversationKey] = []
    isolation = Isolation(woken.append)
    assert isolation.enter(A)
    isolation.isolate(B)
    assert not isolation.enter(B), "it waits for what runs"
    assert not isolation.enter(C), "nothing new begins before it"
    isolation.leave(A)
    assert woken == [B]
    assert isolation.enter(B)
    assert isolation.is_alone(B)
    assert not isolation.enter(A)
    isolation.leave(B)
    assert woken == [B, B, C, A]
    assert isolation.enter(A) and isolation.enter(C)


@given(st.data())
def test_whatever_the_order_a_suspect_is_alone_and_nothing_is_left_asleep(data: st.DataObject) -> None:
    due: dict[ConversationKey, None] = dict.fromkeys((A, B, C))
    isolation = Isolation(lambda conversation: due.setdefault(conversation))
    suspects = set(data.draw(st.lists(st.sampled_from([A, B, C]))))
    left = data.draw(st.fixed_dictionaries({where: st.integers(1, 3) for where in (A, B, C)}))
    inside: set[ConversationKey] = set()
    while due or inside:
        choices = [("step", where) for where in due if where not in inside] + [("end", where) for where in inside]
        act, where = data.draw(st.sampled_from(choices))
        if act == "end":
            inside.remove(where)
            isolation.leave(where)
            due.setdefault(where)
            continue
        del due[where]
        if not isolation.enter(where):
            continue
        if where in suspects and not isolation.is_alone(where):
            isolation.isolate(where)
            isolation.leave(where)
        elif left[where] == 0:
            isolation.leave(where)
        else:
            assert not inside or not (isolation.is_alone(where) or any(map(isolation.is_alone, inside)))
            suspects.discard(where)
            left[where] -= 1
            inside.add(where)
    assert left == {A: 0, B: 0, C: 0}
