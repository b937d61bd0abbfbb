"""What came together is taken in together: in its order, each judged by itself, and never with a gap."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from belino.config import SessionsConfig
from belino.domain.errors import ScopeError
from belino.domain.message import Author, ConversationKey, Edit, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import AcceptsMany, Incoming, Taken, hand_in
from belino.domain.stored import ScreenedArrival
from belino.gateway.gateway import Gateway
from gateway.house import ANN, BOB, EVE, House, until


def numbered(messages: Sequence[Message | Edit]) -> list[Incoming]:
    """The messages, each with the cursor that says how far the account has read with it."""
    return [(message, str(number)) for number, message in enumerate(messages, 1)]


def edit(message: Message, text: str, author: Author) -> Edit:
    return Edit(
        conversation=message.conversation,
        id=f"{message.id}-{text}",
        message_id=message.id,
        author=author,
        sent=message.sent,
        text=text,
    )


def door(gateway: Gateway) -> AcceptsMany:
    accept = gateway._intake.for_account("memory", "default")
    assert isinstance(accept, AcceptsMany)
    return accept


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many arrivals each transaction took in."""
    from belino.storage.store import Store

    sizes: list[int] = []
    take_in_all = Store.take_in_all

    async def counted(self: Store, arrivals: Sequence[ScreenedArrival], **more: object) -> tuple[Taken, ...]:
        taken = await take_in_all(self, arrivals, **more)  # type: ignore[arg-type]
        sizes.append(len(arrivals))
        return taken

    monkeypatch.setattr(Store, "take_in_all", counted)
    return sizes


async def test_what_comes_together_shares_a_commit_and_keeps_its_order(house: House, runs: list[int]) -> None:
    said = [house.say(f"{number}", author=EVE, channel="team") for number in range(100)]
    async with house.gateway() as gateway:
        taken = await door(gateway).many(numbered(said))
        assert {one.outcome for one in taken} == {MessageOutcome.OBSERVED}
        assert [message.text for message in await house.history(gateway, "team")] == [f"{n}" for n in range(100)]
        assert await gateway.store.cursor("memory", "default") == "100"
    assert runs == [100]


async def test_each_is_judged_by_itself(house: House) -> None:
    twice = house.say("twice", channel="team", author=BOB)
    said = [house.say("hello"), house.say("let me in", author=EVE), house.say("psst", channel="elsewhere", author=BOB)]
    said += [house.say("overheard", author=EVE, channel="team"), twice, twice]
    async with house.gateway() as gateway:
        taken = await door(gateway).many(numbered(said))
        assert [one.outcome for one in taken] == [
            MessageOutcome.WAITING,
            MessageOutcome.DENIED,
            MessageOutcome.DENIED,
            MessageOutcome.OBSERVED,
            MessageOutcome.WAITING,
            MessageOutcome.DUPLICATE,
        ]
        assert {pairing.sender_id for pairing in await gateway.store.pairings()} == {"eve", "bob"}
        assert await gateway.store.cursor("memory", "default") == "6"


async def test_an_edit_is_judged_by_the_message_it_came_with(house: House, runs: list[int]) -> None:
    command = house.say("water the plants", channel="team")
    async with house.gateway() as gateway:
        incoming = numbered([command, edit(command, "feed the cat", ANN), edit(command, "burn it down", EVE)])
        taken = await door(gateway).many(incoming)
        assert [(one.outcome, one.reason) for one in taken[1:]] == [
            (MessageOutcome.NOTED, "applied"),
            (MessageOutcome.DENIED, "only who may command may change a command"),
        ]
        assert [message.text for message in await house.history(gateway, "team")] == ["feed the cat"]
    assert runs == [1, 2]


async def test_one_that_cannot_be_stored_leaves_those_before_it_and_none_after(house: House) -> None:
    first, second, broken, last = (house.say(f"{number}", author=EVE, channel="team") for number in range(4))
    poison = replace(broken, reply_to=2**70)  # type: ignore[arg-type]  # no column holds it
    async with house.gateway() as gateway:
        with pytest.raises(OverflowError):
            await door(gateway).many(numbered([first, second, poison, last]))
        assert [message.text for message in await house.history(gateway, "team")] == ["0", "1"]
        assert await gateway.store.cursor("memory", "default") == "2"
        again = await door(gateway).many(numbered([first, second, broken, last]))
        assert [one.outcome for one in again] == [MessageOutcome.DUPLICATE] * 2 + [MessageOutcome.OBSERVED] * 2
        assert gateway.counters.arrivals == {MessageOutcome.OBSERVED: 4, MessageOutcome.DUPLICATE: 2}


async def test_an_arrival_of_another_account_lets_none_in(house: House) -> None:
    mine = house.say("mine")
    theirs = replace(mine, conversation=ConversationKey(platform="memory", account="second", channel="dm"))
    async with house.gateway() as gateway:
        with pytest.raises(ScopeError, match="memory:default passed an arrival of memory:second"):
            await door(gateway).many(numbered([mine, theirs]))
        assert await house.history(gateway) == ()


async def test_a_burst_larger_than_the_waiting_room_is_answered_to_its_end(house: House, runs: list[int]) -> None:
    house.sessions = SessionsConfig(max_waiting=3)
    said = [house.say(f"{number}", channel="team", author=(ANN, BOB)[number % 2]) for number in range(10)]
    async with house.at_work() as gateway:
        await door(gateway).many(numbered(said))
        await until(lambda: len(house.wire.texts()) == 10)
        assert [message.text for message in await house.history(gateway, "team") if not message.author.is_agent] == [
            f"{number}" for number in range(10)
        ]
    assert sum(runs) == 10
    assert max(runs) <= 3


async def test_a_door_that_takes_one_at_a_time_is_given_one_at_a_time(house: House) -> None:
    seen: list[Incoming] = []

    async def accept(arrival: object, *, cursor: str | None = None) -> Taken:
        seen.append((arrival, cursor))  # type: ignore[arg-type]
        return Taken(outcome=MessageOutcome.OBSERVED)

    incoming = numbered([house.say("one"), house.say("two")])
    await hand_in(accept, incoming)
    assert seen == incoming
