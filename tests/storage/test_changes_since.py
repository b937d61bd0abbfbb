"""What a session missed is told whole, once, and without what it was told otherwise."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from belino.domain.media import MediaRef
from belino.domain.message import Arrival, Author, ConversationKey, Deletion, Edit, Message, Reaction
from belino.domain.outcome import Standing, TurnState
from belino.domain.reply import Parcel, ParcelKind, Receipt
from belino.domain.stored import ClaimedTurn, Happening, MissedChanges, ReadPosition, TurnEnd, Verdict
from belino.storage.store import Store
from belino.testing.clock import FakeClock

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
THREAD, ASIDE = (replace(MAIN, thread=name) for name in ("1", "aside"))
AGENT = Author(id="agent", name="belino", is_bot=True, is_agent=True)
BORIS = Author(id="u-boris", name="Boris")

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


class Talk:
    """A channel in which people talk and the agent answers."""

    def __init__(self, store: Store, clock: FakeClock, say: Say) -> None:
        self.store, self.clock, self.say = store, clock, say
        self._changes = 0

    async def hear(self, *ids: str, where: ConversationKey = MAIN, text: str = "hm", **more: object) -> None:
        for name in ids:
            self.clock.shift(1)
            await self.store.take_in(self.say(name, text, conversation=where, **more), OBSERVE)

    async def ask(
        self, name: str, state: TurnState = TurnState.ANSWERED, *, where: ConversationKey = MAIN, reply: str = ""
    ) -> None:
        self.clock.shift(1)
        await self.store.take_in(self.say(name, f"question {name}", conversation=where), ANSWER)
        turn = await self.store.claim_turn(where, self.clock.now())
        assert isinstance(turn, ClaimedTurn)
        parcels = (Parcel(key=reply, conversation=where, kind=ParcelKind.TEXT, text="answer"),) if reply else ()
        await self.store.finish_turn(turn.id, TurnEnd(state=state, parcels=parcels))
        if reply:
            await self.store.claim_parcel(where, self.clock.now())
            await self.store.confirm_parcel(reply, Receipt(message_id=reply, sent=self.clock.now()), AGENT)

    async def change(self, arrival: Arrival) -> None:
        await self.store.take_in(arrival, OBSERVE)

    def _named(self) -> str:
        self._changes += 1
        self.clock.shift(1)
        return f"change {self._changes}"

    def edit(self, message: str, text: str, media: tuple[MediaRef, ...] = (), author: Author | None = None) -> Edit:
        name = self._named()
        who = author or self.say("x").author
        sent = self.clock.now()
        return Edit(conversation=MAIN, id=name, message_id=message, author=who, sent=sent, text=text, media=media)

    def deletion(self, message: str) -> Deletion:
        return Deletion(conversation=MAIN, id=self._named(), message_id=message, author=None, sent=self.clock.now())

    def reaction(self, message: str, emoji: str) -> Reaction:
        name = self._named()
        return Reaction(
            conversation=MAIN, id=name, message_id=message, author=BORIS, sent=self.clock.now(), emoji=emoji
        )

    async def missed(
        self, since: ReadPosition, until: str, *, where: ConversationKey = MAIN, limit: int = 200
    ) -> MissedChanges:
        (anchor,) = await self.store.messages(where.whole_channel, [until])
        return await self.store.missed_changes(where, since, until=anchor.seq, limit=limit)

    async def told(self, name: str, *, where: ConversationKey = MAIN) -> ReadPosition:
        """A session that has just been told of everything up to this message."""
        return (await self.missed(ReadPosition(), name, where=where)).now


@pytest.fixture
def talk(store: Store, clock: FakeClock, say: Say) -> Talk:
    return Talk(store, clock, say)


def ids(meanwhile: MissedChanges) -> list[str]:
    return [message.id for message in meanwhile.arrived]


def changes(meanwhile: MissedChanges) -> list[tuple[str, Happening, str]]:
    return [(message.id, what, message.text) for message, what in meanwhile.changed]


async def test_what_others_said_since_is_told_and_what_the_session_answered_or_said_itself_is_not(talk: Talk) -> None:
    await talk.hear("1", "2")
    await talk.ask("3", reply="r3")
    since = await talk.told("3")
    await talk.hear("4")
    await talk.ask("5", reply="r5")
    await talk.hear("6")
    await talk.ask("7")
    missed = await talk.missed(since, "7")
    assert ids(missed) == ["4", "6"]
    assert missed.total_arrived == 2
    assert ids(await talk.missed(missed.now, "7")) == []


async def test_a_turn_that_failed_or_was_stopped_left_its_question_untold(talk: Talk) -> None:
    await talk.ask("1")
    since = await talk.told("1")
    await talk.ask("2", TurnState.FAILED)
    await talk.ask("3", TurnState.ABORTED)
    await talk.ask("4")
    assert ids(await talk.missed(since, "4")) == ["2", "3"]


async def test_what_came_after_the_question_waits_for_the_next_one(talk: Talk) -> None:
    await talk.ask("1")
    since = await talk.told("1")
    await talk.hear("2")
    await talk.ask("3")
    await talk.hear("4")
    missed = await talk.missed(since, "3")
    assert ids(missed) == ["2"]
    await talk.ask("5")
    assert ids(await talk.missed(missed.now, "5")) == ["4"]


async def test_the_newest_are_listed_and_all_are_counted(talk: Talk) -> None:
    await talk.ask("q")
    since = await talk.told("q")
    await talk.hear(*(str(number) for number in range(9)))
    await talk.ask("q2")
    missed = await talk.missed(since, "q2", limit=3)
    assert ids(missed) == ["6", "7", "8"] and missed.total_arrived == 9


async def test_a_thread_and_its_channel_miss_different_things(talk: Talk) -> None:
    await talk.ask("1")
    await talk.ask("t1", where=THREAD)
    channel, thread = await talk.told("1"), await talk.told("t1", where=THREAD)
    await talk.hear("2")
    await talk.hear("t2", "t3", where=THREAD)
    await talk.hear("a1", where=ASIDE)
    await talk.ask("3")
    await talk.ask("t4", where=THREAD)
    from_channel, from_thread = await talk.missed(channel, "3"), await talk.missed(thread, "t4", where=THREAD)
    assert (ids(from_channel), from_channel.replies_elsewhere) == (["2"], 4)
    assert (ids(from_thread), from_thread.replies_elsewhere) == (["t2", "t3"], 1)
    assert (from_channel.said_in_channel, from_thread.said_in_channel) == (0, 2)
    assert [thread.thread_id for thread in from_thread.threads_elsewhere] == ["aside"]


async def test_changes_of_one_message_are_merged_into_what_it_is_now(talk: Talk) -> None:
    await talk.hear("1", "2", "3")
    await talk.ask("4")
    since = await talk.told("4")
    await talk.change(talk.edit("1", "once"))
    await talk.change(talk.reaction("2", "👀"))
    await talk.change(talk.edit("1", "twice"))
    await talk.change(talk.reaction("1", "👍"))
    await talk.change(talk.edit("3", "a SECRET"))
    await talk.change(talk.deletion("3"))
    await talk.ask("5")
    missed = await talk.missed(since, "5")
    assert changes(missed) == [
        ("2", Happening.REACTED, "hm"),
        ("1", Happening.EDITED, "twice"),
        ("1", Happening.REACTED, "twice"),
        ("3", Happening.DELETED, ""),
    ]
    assert missed.changed[0][0].reactions == (("👀", 1),)
    assert "SECRET" not in repr(missed)
    await talk.ask("6")
    assert (await talk.missed(missed.now, "6")).changed == ()


async def test_what_changed_before_it_was_told_is_told_as_it_is_and_not_as_a_change(talk: Talk) -> None:
    await talk.ask("1")
    since = await talk.told("1")
    await talk.hear("2", "3")
    await talk.change(talk.edit("2", "said better"))
    await talk.change(talk.deletion("3"))
    await talk.ask("4")
    missed = await talk.missed(since, "4")
    assert [message.text for message in missed.arrived] == ["said better"]
    assert missed.changed == () and missed.total_arrived == 1
    await talk.ask("5")
    assert (await talk.missed(missed.now, "5")).changed == ()


async def test_an_edit_by_somebody_else_and_one_that_changes_nothing_are_no_news(talk: Talk) -> None:
    await talk.ask("1")
    since = await talk.told("1")
    await talk.change(talk.edit("1", "never said", author=BORIS))
    await talk.change(talk.edit("1", "question 1"))
    await talk.ask("2")
    assert (await talk.missed(since, "2")).changed == ()


async def test_files_that_came_with_an_edit_are_told_with_it(talk: Talk, photo: Photo) -> None:
    await talk.ask("1")
    since = await talk.told("1")
    change = talk.edit("1", "question 1", media=(photo("1", file_name="late.png"),))
    await talk.change(change)
    await talk.change(replace(change, sent=change.sent + timedelta(seconds=1)))
    await talk.ask("2")
    ((message, what),) = (await talk.missed(since, "2")).changed
    assert what is Happening.EDITED and [ref.file_name for ref in message.media] == ["late.png"]
    assert len(await talk.store.refs(MAIN)) == 1


async def test_a_thread_hears_of_its_root_and_not_of_other_places(talk: Talk) -> None:
    await talk.hear("1", "2")
    await talk.hear("a1", where=ASIDE)
    await talk.ask("t1", where=THREAD)
    since = await talk.told("t1", where=THREAD)
    for name in ("1", "2", "a1", "t1"):
        await talk.change(talk.edit(name, f"{name} anew"))
    await talk.ask("t2", where=THREAD)
    assert [name for name, _, _ in changes(await talk.missed(since, "t2", where=THREAD))] == ["1", "t1"]


async def test_another_channel_is_never_looked_into(talk: Talk) -> None:
    elsewhere = replace(MAIN, channel="other")
    await talk.ask("1")
    await talk.ask("1", where=elsewhere)
    since = await talk.told("1")
    await talk.hear("2", where=elsewhere)
    await talk.change(replace(talk.edit("1", "elsewhere"), conversation=elsewhere))
    await talk.ask("3")
    missed = await talk.missed(since, "3")
    assert (missed.arrived, missed.changed, missed.replies_elsewhere) == ((), (), 0)


async def test_a_place_nobody_knows_has_missed_nothing(store: Store) -> None:
    missed = await store.missed_changes(MAIN, ReadPosition(), until=5)
    assert (missed.arrived, missed.changed, missed.now) == ((), (), ReadPosition(seq=5))
