"""Journeys through the whole gateway: an arrival in, an answer out, and what must hold in between."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from belino.adapters.web import Adapter as WebAdapter
from belino.config import Config, SessionsConfig
from belino.context.budget import ContextConfig
from belino.domain.errors import AdapterError, ScopeError
from belino.domain.media import TextBlock
from belino.domain.message import Arrival, Author, ConversationKey, Deletion, Edit, Message, Reaction
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.domain.turn import Final, ReplyPart, Turn
from belino.gateway.events import NoticeKind, TurnNotice
from belino.gateway.gateway import Gateway
from belino.gateway.maintenance import INDEX_SECONDS, SWEEP_SECONDS, release_memory
from belino.testing import ScriptedAgent
from gateway.house import BOB, EVE, PATIENCE, House, until


class EchoAgent:
    """Answers with the words it was given, after as many passes of the loop as a test wants."""

    remembers = False
    sees_images = False

    def __init__(self, pauses: int = 0) -> None:
        self.pauses = pauses
        self.at_once: set[ConversationKey] = set()
        self.most = 0

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        assert turn.conversation not in self.at_once, "two turns of one conversation at once"
        self.at_once.add(turn.conversation)
        self.most = max(self.most, len(self.at_once))
        for _ in range(self.pauses):
            await asyncio.sleep(0)
        self.at_once.discard(turn.conversation)
        yield Final(text="\n".join(message.text for message in turn.messages))


def words(turn: Turn) -> str:
    """What was said in the message being answered."""
    texts = [block.text for block in turn.blocks if isinstance(block, TextBlock)]
    message = next(text for text in texts if text.startswith("<<<message "))
    return message.partition("\ntext:\n")[2].rpartition("\n")[0]


async def test_answers_keep_the_order_of_their_conversation_while_many_are_answered_at_once(house: House) -> None:
    agent = house.agent = EchoAgent(pauses=5)
    house.sessions = SessionsConfig(max_running=4)
    async with house.at_work() as gateway:
        said = [house.say(f"{channel} {number}", channel=channel) for number in range(10) for channel in "abcdefgh"]
        await asyncio.gather(*(gateway.accept(message) for message in said))
        await until(lambda: len("\n".join(house.wire.texts()).split("\n")) == len(said))
        for channel in "abcdefgh":
            answered = "\n".join(house.wire.texts(channel)).split("\n")  # lines that came in time share an answer
            assert answered == [f"{channel} {number}" for number in range(10)]
    assert 1 < agent.most <= 4


async def test_the_same_message_twice_gives_one_turn_and_one_answer(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        message = house.say()
        taken = await asyncio.gather(*(gateway.accept(message) for _ in range(5)))
        outcomes = sorted(one.outcome for one in taken)
        assert outcomes == [*[MessageOutcome.DUPLICATE] * 4, MessageOutcome.WAITING]
        assert len({one.trace for one in taken}) == 1
        await until(lambda: len(house.wire.seen) == 1)
        await gateway.accept(house.say("another"))
        await until(lambda: len(house.wire.seen) == 2)
    assert len(agent.turns) == 2


async def test_an_observed_message_is_context_and_starts_no_turn(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        observed = await gateway.accept(house.say("by a stranger", author=EVE, channel="team"))
        quiet = await gateway.accept(house.say("to nobody", author=BOB, channel="team", addressed=False))
        answered = await gateway.accept(house.say("to the agent", author=BOB, channel="team"))
        await until(lambda: gateway.counters.parcels["sent"] == 1)
        assert [one.outcome for one in (observed, quiet, answered)] == ["observed", "observed", "waiting"]
        kept = await house.history(gateway, "team")
        assert [message.text for message in kept] == ["by a stranger", "to nobody", "to the agent", "turn 1"]
    assert [words(turn) for turn in agent.turns] == ["to the agent"]


async def test_a_denied_message_leaves_nothing_but_its_cursor(house: House) -> None:
    async with house.at_work() as gateway:
        taken = await gateway.accept(house.say("let me in", author=EVE), cursor="9")
        elsewhere = await gateway.accept(house.say("psst", channel="group-elsewhere"))
        assert (taken.outcome, elsewhere.outcome) == (MessageOutcome.DENIED, MessageOutcome.DENIED)
        assert taken.reason
        assert await gateway.store.conversations() == ()
        assert await gateway.store.cursor("memory", "default") == "9"
        assert gateway.counters.arrivals["denied"] == 2


async def test_a_message_that_is_too_long_is_refused_with_the_limit_and_the_way_out(house: House) -> None:
    house.sessions = SessionsConfig(max_text_chars=100)
    async with house.at_work() as gateway:
        taken = await gateway.accept(house.say("x" * 101))
        assert taken.outcome is MessageOutcome.DENIED
        assert "100 characters" in taken.reason
        assert "as a file" in taken.reason
        assert not await house.history(gateway)


async def test_an_account_cannot_hand_in_what_belongs_to_another(house: House) -> None:
    house.accounts = ("default", "second")
    async with house.at_work() as gateway:
        accept = gateway._intake.for_account("memory", "second")
        with pytest.raises(ScopeError):
            await accept(house.say())
        assert not await house.history(gateway)


async def _one_turn_after(seconds: float, house: House, agent: ScriptedAgent) -> Turn:
    assert not agent.turns
    await house.clock.wake(seconds)
    await until(lambda: house.wire.texts() == ["turn 1"])
    (turn,) = agent.turns
    return turn


async def test_the_items_of_an_album_are_answered_together_once_no_more_come(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        for wait, left in ((1.5, 0.5), (0.5, 1.0), (1.0, 0.5)):  # each item makes the album wait 1.5 s from then
            message = house.say("", album="a1")
            await gateway.accept(replace(message, media=(house.picture(message),)))
            await house.clock.asleep(wait)
            await house.clock.advance(1.0 if wait > 1 else wait)
            await house.clock.asleep(left)
        turn = await _one_turn_after(0.5, house, agent)
    asked = [text for block in turn.blocks if (text := getattr(block, "text", "")).startswith("<<<message")]
    assert sum("[Image: photo.png" in text for text in asked) == 3


@pytest.mark.parametrize("dead_for", [1, 3600], ids=["a moment", "an hour"])
async def test_an_album_cut_in_two_by_a_restart_is_answered_together(house: House, dead_for: float) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("first", album="a1"))
    await house.clock.advance(dead_for)
    async with house.at_work() as gateway:
        await house.clock.asleep(house.sessions.album_max_ms / 1000)
        await house.clock.advance(2)  # the platform takes its time to let us in
        await gateway.accept(house.say("second", album="a1"))
        await house.clock.advance(1)
        await gateway.accept(house.say("third", album="a1"))
        while not agent.turns:
            await house.clock.advance(0.1)
            await asyncio.sleep(0.001)
        (turn,) = agent.turns
    assert [part in str(turn.blocks) for part in ("first", "second", "third")] == [True] * 3


async def test_an_album_whose_rest_never_comes_is_answered_soon_after_a_restart(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("all there is", album="a1"))
    await house.clock.advance(3600)
    async with house.at_work():
        await _one_turn_after(house.sessions.album_max_ms / 1000, house, agent)


async def test_an_item_that_comes_after_its_album_was_answered_gets_a_turn_of_its_own(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("first", album="a1"))
        await house.pass_album()
        await until(lambda: len(house.wire.seen) == 1)
        late = await gateway.accept(house.say("late", album="a1"))
        assert late.outcome is MessageOutcome.WAITING
        await house.pass_album()
        await until(lambda: len(house.wire.seen) == 2)
        marked = [message.album for message in await house.history(gateway) if not message.author.is_agent]
        assert marked == ["a1", "a1"]
    assert [words(turn) for turn in agent.turns] == ["first", "late"]


def _edit(message: Message, text: str) -> Edit:
    return Edit(
        conversation=message.conversation,
        id="e1",
        message_id=message.id,
        author=message.author,
        sent=message.sent + timedelta(seconds=1),
        text=text,
        chat_type=message.chat_type,
    )


def _deletion(message: Message) -> Deletion:
    """As platforms tell it that do not say who did it."""
    return Deletion(
        conversation=message.conversation,
        id="d1",
        message_id=message.id,
        author=None,
        sent=message.sent,
        chat_type=message.chat_type,
    )


async def test_a_message_edited_while_it_waits_is_answered_as_it_reads_now(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        message = house.say("what is 1+1?", album="a1")
        await gateway.accept(message)
        assert (await gateway.accept(_edit(message, "what is 2+2?"))).outcome is MessageOutcome.NOTED
        await house.pass_album()
        await until(lambda: len(house.wire.seen) == 1)
    assert words(agent.turns[0]) == "what is 2+2?"


async def test_an_edit_that_overtakes_its_direct_message_is_what_is_answered(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        message = house.say("what is 1+1?")
        early = await gateway.accept(_edit(message, "what is 2+2?"))
        assert (early.outcome, early.reason) == (MessageOutcome.NOTED, "kept until its message comes")
        assert (await gateway.accept(message)).outcome is MessageOutcome.WAITING
        await until(lambda: len(house.wire.seen) == 1)
    assert words(agent.turns[0]) == "what is 2+2?"


async def test_a_deletion_or_reaction_that_overtakes_its_direct_message_is_kept_for_it(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("hello"))
        await until(lambda: len(house.wire.seen) == 1)
        taken_back, liked = house.say("a secret"), house.say("a joke")
        early: list[Arrival] = [
            _deletion(taken_back),
            Reaction(
                conversation=liked.conversation,
                id="r1",
                message_id=liked.id,
                author=liked.author,
                sent=liked.sent,
                emoji="👍",
                chat_type=liked.chat_type,
            ),
        ]
        assert [(await gateway.accept(one)).reason for one in early] == ["kept until its message comes"] * 2
        for message in (taken_back, liked):
            await gateway.accept(message)
        await until(lambda: len(house.wire.seen) == 2)
        kept = {message.id: message for message in await house.history(gateway)}
    assert kept[taken_back.id].text == ""
    assert kept[liked.id].reactions == (("👍", 1),)
    assert [words(turn) for turn in agent.turns] == ["hello", "a joke"]


async def test_a_deletion_in_a_direct_chat_of_which_nothing_is_kept_leaves_nothing(house: House) -> None:
    async with house.at_work() as gateway:
        message = house.say("never seen", author=EVE, channel="eve")
        assert (await gateway.accept(_deletion(message))).outcome is MessageOutcome.DENIED
        assert await gateway.store.channels() == ()


async def test_a_message_deleted_while_it_waits_is_not_answered(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        message = house.say("forget it", album="a1")
        await gateway.accept(message)
        await gateway.accept(_deletion(message))
        await gateway.accept(house.say("this instead"))
        await house.clock.advance(5)
        await until(lambda: len(house.wire.seen) == 1)
    assert [words(turn) for turn in agent.turns] == ["this instead"]


async def test_a_stranger_cannot_change_or_learn_anything_through_other_kinds_of_arrival(house: House) -> None:
    async with house.at_work() as gateway:
        message = house.say("mine", author=BOB, channel="team", addressed=False)
        await gateway.accept(message)
        where = ConversationKey(platform="memory", account="default", channel="group-elsewhere")
        outside = Reaction(
            conversation=where, id="r1", message_id=message.id, author=EVE, sent=message.sent, emoji="👀"
        )
        rewritten = Edit(
            conversation=message.conversation,
            id="e1",
            message_id=message.id,
            author=EVE,
            sent=message.sent,
            text="obey me",
        )
        assert (await gateway.accept(outside)).outcome is MessageOutcome.DENIED
        await gateway.accept(rewritten)
        assert [kept.text for kept in await house.history(gateway, "team")] == ["mine"]


async def test_a_clock_that_is_turned_back_has_no_message_wait_for_it_to_come_round(house: House) -> None:
    agent = house.agent = HoldingAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("first"))
        await until(lambda: agent.holding)
        await gateway.accept(house.say("second"))
        house.clock.turn(timedelta(hours=-1))
        agent.go.set()
        await until(lambda: len(house.wire.seen) == 2)


async def test_an_album_that_came_by_a_clock_that_was_turned_back_since_is_answered_after_a_restart(
    house: House,
) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("all there is", album="a1"))
    house.clock.turn(timedelta(hours=-1))
    async with house.at_work():
        await house.clock.advance(house.sessions.album_max_ms / 1000)
        await until(lambda: house.wire.texts() == ["turn 1"])
    assert len(agent.turns) == 1


async def test_when_too_much_waits_the_platform_is_slowed_down_and_nothing_is_lost(house: House) -> None:
    agent = house.agent = HoldingAgent()
    house.sessions = SessionsConfig(max_running=1, max_waiting=3)
    async with house.at_work() as gateway, asyncio.TaskGroup() as group:
        said = [house.say(f"{number}", channel=f"c{number}") for number in range(8)]
        taken: list[Taken] = []

        async def platform() -> None:
            for message in said:
                taken.append(await gateway.accept(message))

        speaking = group.create_task(platform())
        await until(lambda: agent.holding)
        await until(lambda: len(taken) == 4)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(taken) == 4
        assert not speaking.done()
        agent.go.set()
        await until(lambda: len(house.wire.seen) == 8)


async def test_an_adapter_that_dies_again_and_again_does_not_disturb_its_neighbour(house: House) -> None:
    house.accounts = ("default", "dying")
    dying = house.prepare("dying")
    dying.deaths.extend(AdapterError("the socket broke") for _ in range(20))
    async with house.at_work() as gateway:
        for number in range(5):
            await house.clock.advance(30)
            await gateway.accept(house.say(f"message {number}"))
            await until(lambda: len(house.wire.seen) == number + 1)  # noqa: B023 - awaited before it changes
        await until(lambda: gateway.health()["memory", "dying"].restarts > 2)
        assert gateway.health()["memory", "default"].state == "running"
        assert gateway.health()["memory", "dying"].reason == "the socket broke"


async def test_watchers_see_a_message_its_turn_and_its_answer_in_order(house: House) -> None:
    seen: list[str] = []
    async with house.at_work() as gateway:
        # A gateway that is still looking for what an earlier run left behind may find a turn before it is told of.
        await gateway.accept(house.say("are you there?", channel="c0"))
        await until(lambda: len(house.wire.seen) == 1)
        async with gateway.notices.subscribe() as notices:
            said = house.say()
            await gateway.accept(said)
            async for notice in notices:
                payload = notice.payload
                if notice.conversation != said.conversation:
                    continue
                seen.append(f"turn {payload.state}" if isinstance(payload, TurnNotice) else notice.kind)
                if notice.kind is NoticeKind.PARCEL and getattr(payload, "state", "") == "sent":
                    break
    firsts = list(dict.fromkeys(seen))
    assert firsts[:4] == ["message", "turn waiting", "turn running", "turn writing"]
    assert sorted(firsts[4:]) == ["parcel", "turn answered"]


async def test_our_own_words_coming_back_from_the_platform_are_not_answered(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    echo = Author(id="agent", name="belino", is_bot=True, is_agent=True)
    async with house.at_work() as gateway:
        await gateway.accept(house.say("hello", channel="open", author=BOB))
        await until(lambda: len(house.wire.seen) == 1)
        taken = await gateway.accept(house.say("turn 1", channel="open", author=echo))
        assert taken.outcome is MessageOutcome.OBSERVED
    assert len(agent.turns) == 1


async def test_stopping_lets_a_running_turn_end_and_its_answer_is_kept(house: House) -> None:
    agent = house.agent = HoldingAgent()
    async with asyncio.timeout(60):
        async with house.gateway() as gateway, asyncio.TaskGroup() as group:
            group.create_task(gateway.run())
            await gateway.accept(house.say())
            await until(lambda: agent.holding)
            gateway.stop()
            agent.go.set()
        async with house.at_work():
            await until(lambda: house.wire.texts() == ["held"])


async def test_stopping_gives_back_a_turn_that_does_not_end_and_the_next_start_answers_it(house: House) -> None:
    agent = house.agent = HoldingAgent()
    async with asyncio.timeout(60):
        async with house.gateway() as gateway, asyncio.TaskGroup() as group:
            running = group.create_task(gateway.run())
            await gateway.accept(house.say())
            await until(lambda: agent.holding)
            gateway.stop()
            await house.clock.advance(house.sessions.shutdown_seconds)
            await until(running.done)
        scripted = house.agent = ScriptedAgent()
        async with house.at_work():
            await until(lambda: house.wire.texts() == ["turn 1"])
        assert len(scripted.turns) == 1


class HoldingAgent:
    """Holds every turn until a test lets it go."""

    remembers = False
    sees_images = False

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.holding = 0

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.holding += 1
        await self.go.wait()
        yield Final(text="held")


async def test_the_gateway_finds_the_web_by_what_it_can_do(house: House) -> None:

    async with Gateway(Config(), house.home, clock=house.clock) as gateway:
        assert isinstance(gateway.web, WebAdapter)
    async with house.gateway() as gateway:
        assert gateway.web is None


async def test_messages_are_kept_for_ever_or_as_many_days_as_configured(house: House) -> None:
    async with house.gateway() as gateway:
        await gateway.accept(house.say("old", author=EVE, channel="team"))
        house.clock.shift(timedelta(days=2).total_seconds())
        await gateway.accept(house.say("young", author=EVE, channel="team"))
    for days, kept in ((0, ["old", "young"]), (3, ["old", "young"]), (1, ["young"])):
        config = replace(house.config(), retention_days=days)
        async with (
            asyncio.timeout(PATIENCE),
            Gateway(config, house.home, clock=house.clock, make_adapter=house.make_adapter) as gateway,
            asyncio.TaskGroup() as group,
        ):
            running = group.create_task(gateway.run())
            await house.clock.asleep(SWEEP_SECONDS)
            assert [message.text for message in await house.history(gateway, "team")] == kept
            running.cancel()


async def test_memory_is_released_after_an_index_was_brought_up_to_date(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[None] = []
    behind = [0, 1]
    monkeypatch.setattr("belino.gateway.maintenance.release_memory", lambda: released.append(None))

    async def index_ahead() -> int:
        return behind.pop(0)

    async with house.at_work() as gateway:
        monkeypatch.setattr(gateway.store, "index_ahead", index_ahead)
        await house.clock.wake(INDEX_SECONDS)
        await house.clock.asleep(INDEX_SECONDS)
        assert not released
        await house.clock.wake(INDEX_SECONDS)
        await until(lambda: bool(released))


def test_memory_is_released_where_the_c_library_can() -> None:
    release_memory()


async def test_days_are_read_in_the_configured_time_zone(house: House) -> None:
    house.context = ContextConfig(timezone="Asia/Tokyo")
    async with house.at_work() as gateway:
        assert gateway.store.zone == ZoneInfo("Asia/Tokyo")
