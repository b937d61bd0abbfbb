"""Edits, deletions and reactions reach their message, whichever comes first."""

import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from belino.domain.media import MediaRef
from belino.domain.message import (
    Arrival,
    Author,
    ConversationKey,
    Deletion,
    DeliveryState,
    DeliveryStatus,
    Edit,
    Message,
    Quote,
    Reaction,
)
from belino.domain.outcome import MediaOutcome, MessageOutcome, Standing, TurnState
from belino.domain.stored import ClaimedTurn, StoredMessage, TurnEnd, Verdict
from belino.storage.home import Home
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock
from storage.engines import Engine

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")
ANNA = Author(id="u-anna", name="Anna")
BORIS = Author(id="u-boris", name="Boris")

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


def edit(text: str, *, after: float = 1, author: Author = ANNA, media: tuple[MediaRef, ...] = ()) -> Edit:
    sent = START + timedelta(seconds=after)
    return Edit(conversation=MAIN, id=f"1@{after}", message_id="1", author=author, sent=sent, text=text, media=media)


def deletion(after: float = 5) -> Deletion:
    sent = START + timedelta(seconds=after)
    return Deletion(conversation=MAIN, id="1-gone", message_id="1", author=None, sent=sent)


def reaction(emoji: str, *, by: Author = ANNA, added: bool = True, after: float = 1) -> Reaction:
    sent = START + timedelta(seconds=after)
    name = f"{emoji}-{by.id}-{added}-{after}"
    return Reaction(conversation=MAIN, id=name, message_id="1", author=by, sent=sent, emoji=emoji, added=added)


async def the_message(store: Store) -> StoredMessage:
    (message,) = await store.messages(MAIN, ["1"])
    return message


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_the_last_edit_wins_in_whatever_order_they_come(store: Store, say: Say, order: tuple[int, ...]) -> None:
    arrivals: list[Arrival] = [say("1", "first"), edit("second", after=1), edit("third", after=2)]
    for position in order:
        taken = await store.take_in(arrivals[position], ANSWER)
        assert taken.outcome in (MessageOutcome.WAITING, MessageOutcome.NOTED)
    message = await the_message(store)
    assert (message.text, message.edited) == ("third", START + timedelta(seconds=2))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_a_deleted_message_is_gone_in_whatever_order_its_story_comes(
    store: Store, engine: Engine, say: Say, photo: Photo, order: tuple[int, ...]
) -> None:
    said = say("1", "GONEWORDS", media=(photo("1", caption="GONECAPTION"),), quote=Quote(text="GONEQUOTE"))
    arrivals: list[Arrival] = [said, edit("GONEEDIT"), deletion()]
    for position in order:
        await store.take_in(arrivals[position], OBSERVE)
    message = await the_message(store)
    assert (message.text, message.media, message.quote) == ("", (), None)
    assert message.deleted == START + timedelta(seconds=5)
    assert await store.refs(MAIN) == ()
    assert "GONE" not in await engine.dump()


async def test_an_edit_that_came_first_waits_for_its_message_across_a_restart(
    engine: Engine, home: Home, say: Say, photo: Photo
) -> None:
    store = await engine.open()
    early = edit("corrected", media=(photo("1", "new", sealed={"key": "CANARY"}, locator={"id": "7"}),))
    taken = await store.take_in(early, ANSWER)
    assert (taken.outcome, taken.reason) == (MessageOutcome.NOTED, "kept until its message comes")
    assert not any(b"CANARY" in path.read_bytes() for path in home.path.rglob("*") if path.is_file())
    await store.close()
    store = await engine.open()
    await store.take_in(say("1", "wrogn"), ANSWER)
    message = await the_message(store)
    assert message.text == "corrected"
    assert [ref.id for ref in message.media] == [ref.id for ref in taken.refs]
    assert message.media[0].sealed == {"key": "CANARY"}
    assert message.media[0].locator == {"id": "7"}
    await store.close()


async def test_an_edit_before_the_turn_replaces_what_the_agent_is_told(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_in(say("1", "befroe"), ANSWER)
    await store.take_in(edit("before"), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    assert [message.text for message in turn.messages] == ["before"]
    assert await store.waiting_turns() == 0  # the edit made no turn of its own


async def test_only_who_said_it_may_say_it_otherwise(store: Store, say: Say) -> None:
    await store.take_in(say("1", "mine"), ANSWER)
    await store.take_in(edit("yours", author=BORIS), ANSWER)
    assert (await the_message(store)).text == "mine"
    story = await store.story(MAIN, "1")
    assert story is not None
    assert "edit refused" in [step.outcome for step in story.steps]


async def test_an_edit_in_another_channel_does_not_reach_here(store: Store, say: Say) -> None:
    await store.take_in(say("1", "here"), ANSWER)
    there = Edit(conversation=OTHER, id="e", message_id="1", author=ANNA, sent=START, text="there")
    await store.take_in(there, ANSWER)
    assert (await the_message(store)).text == "here"


async def test_an_edit_may_bring_other_media_and_keeps_what_became_of_the_old(
    store: Store, say: Say, photo: Photo
) -> None:
    await store.take_in(say("1", media=(photo("1", "a"), photo("1", "b"))), ANSWER)
    a, b = (await the_message(store)).media
    blob = await store.keep(_one(b"bytes"), mime="image/png", limit=100)
    await store.end_media(a.id, MediaOutcome.HELD, blob=blob)
    await store.take_in(edit("other", media=(photo("1", "c"), photo("1", "a"))), ANSWER)
    media = (await the_message(store)).media
    assert [ref.item for ref in media] == ["c", "a"]
    assert media[1].sha256 == blob.sha256
    assert await store.ref(MAIN, b.id) is None


async def test_an_edit_of_words_alone_leaves_the_media(store: Store, say: Say, photo: Photo) -> None:
    await store.take_in(say("1", media=(photo("1"),)), ANSWER)
    await store.take_in(edit("words"), ANSWER)
    assert len((await the_message(store)).media) == 1


async def test_a_message_deleted_while_it_waits_is_not_answered(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), ANSWER)
    await store.take_in(say("2"), ANSWER)
    await store.take_in(deletion(), ANSWER)
    message = await the_message(store)
    assert (message.outcome, message.reason) == (MessageOutcome.ABORTED, "deleted before it was answered")
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    assert [found.id for found in turn.messages] == ["2"]


async def test_an_album_is_still_answered_while_one_item_is_left(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1", album="a"), ANSWER)
    await store.take_in(say("2", album="a"), ANSWER)
    await store.take_in(deletion(), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    assert [(found.id, found.deleted is not None) for found in turn.messages] == [("1", True), ("2", False)]


async def test_a_deletion_while_the_turn_runs_does_not_disturb_it(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    await store.take_in(deletion(), ANSWER)
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED))
    assert (await the_message(store)).outcome is MessageOutcome.ANSWERED


async def test_reactions_are_counted_per_person_and_taken_away_again(store: Store, say: Say) -> None:
    await store.take_in(reaction("👀"), OBSERVE)  # before its message
    await store.take_in(say("1"), OBSERVE)
    await store.take_in(reaction("👀", by=BORIS), OBSERVE)
    await store.take_in(reaction("👍", by=BORIS, after=2), OBSERVE)
    assert (await the_message(store)).reactions == (("👀", 2), ("👍", 1))
    await store.take_in(reaction("👀", by=BORIS, added=False, after=3), OBSERVE)
    assert (await the_message(store)).reactions == (("👀", 1), ("👍", 1))


async def test_a_reaction_taken_away_stays_away_when_its_coming_is_told_late(store: Store, say: Say) -> None:
    await store.take_in(say("1"), OBSERVE)
    await store.take_in(reaction("👀", added=False, after=3), OBSERVE)
    await store.take_in(reaction("👀", added=True, after=2), OBSERVE)
    assert (await the_message(store)).reactions == ()


async def test_a_platform_with_one_reaction_to_a_person_replaces_the_one_before(store: Store, say: Say) -> None:
    await store.take_in(say("1"), OBSERVE)
    for number, (emoji, by) in enumerate((("👀", ANNA), ("👍", BORIS), ("🎉", ANNA))):
        await store.take_in(replace(reaction(emoji, by=by, after=number), replaces=True), OBSERVE)
    assert dict((await the_message(store)).reactions) == {"🎉": 1, "👍": 1}
    late = replace(reaction("❤", after=1), replaces=True)
    await store.take_in(late, OBSERVE)
    assert dict((await the_message(store)).reactions)["🎉"] == 1, "what came later stays"
    await store.take_in(replace(reaction("", added=False, after=9), replaces=True), OBSERVE)
    assert dict((await the_message(store)).reactions) == {"👍": 1}


async def test_news_of_delivery_is_noted_once(store: Store) -> None:
    status = DeliveryStatus(conversation=MAIN, id="d", message_id="p", sent=START, state=DeliveryState.READ)
    assert (await store.take_in(status, OBSERVE)).outcome is MessageOutcome.NOTED
    assert (await store.take_in(status, OBSERVE)).outcome is MessageOutcome.DUPLICATE


async def _one(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk


async def test_of_two_edits_in_one_second_that_came_before_their_message_the_later_counts(
    store: Store, say: Say
) -> None:
    for number in (9, 10):
        await store.take_in(replace(edit(f"edit {number}"), id=f"1@1.{number}"), OBSERVE)
    await store.take_in(say("1", "as it was said"), OBSERVE)
    assert (await the_message(store)).text == "edit 10"
