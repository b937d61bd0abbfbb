"""Refs: one per item, found only from their own channel, with what became of each."""

import random
from collections.abc import Callable
from datetime import timedelta

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey, Message, Quote
from belino.domain.outcome import MediaOutcome, Standing, TurnState
from belino.domain.stored import ClaimedTurn, TurnEnd, Verdict
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock
from storage.engines import Engine
from storage.pieces import chunks

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")
BORIS = Author(id="u-boris", name="Boris")

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def test_two_equal_names_are_two_refs_and_the_same_item_is_one(store: Store, say: Say, photo: Photo) -> None:
    first = await store.take_in(say("1", media=(photo("1", "0"), photo("1", "1"))), OBSERVE)
    again = await store.take_in(say("1", media=(photo("1", "0"), photo("1", "1"))), OBSERVE)
    quoting = await store.take_in(say("2", quote=Quote(message_id="1", media=(photo("1", "0"),))), OBSERVE)
    a, b = (ref.id for ref in first.refs)
    assert a != b
    assert [ref.id for ref in again.refs] == [a, b]
    (message,) = await store.messages(MAIN, ["2"])
    assert message.quote is not None
    assert [ref.id for ref in message.quote.media] == [a]
    assert quoting.refs == ()
    assert len(await store.refs(MAIN)) == 2


async def test_a_ref_survives_a_restart(engine: Engine, say: Say, photo: Photo) -> None:
    store = await engine.open()
    ref = photo("1", size=5, caption="c", locator={"file_id": "7"}, kind=MediaKind.VOICE, duration=1.5)
    (with_id,) = (await store.take_in(say("1", media=(ref,)), OBSERVE)).refs
    await store.close()
    store = await engine.open()
    record = await store.ref(MAIN, with_id.id)
    assert record is not None
    assert record.ref == with_id
    assert (record.outcome, record.author, record.sent) == (MediaOutcome.REFERENCED, say("1").author, START)
    again = await store.take_in(say("2", quote=Quote(media=(ref,))), OBSERVE)
    assert again.refs == ()
    assert [found.ref.id for found in await store.refs(MAIN)] == [with_id.id]
    await store.close()


async def test_what_was_forwarded_from_elsewhere_belongs_to_the_channel_it_came_to(
    store: Store, say: Say, photo: Photo
) -> None:
    foreign = photo("9", channel_id="other")
    await store.take_in(say("9", conversation=OTHER, media=(foreign,)), OBSERVE)
    await store.take_in(say("1", forward=Quote(media=(foreign,))), OBSERVE)
    (here,) = await store.refs(MAIN)
    (there,) = await store.refs(OTHER)
    assert here.ref.id != there.ref.id
    assert here.conversation == MAIN


async def test_a_ref_is_served_under_another_name_that_leads_back_to_it(store: Store, say: Say, photo: Photo) -> None:
    (ref,) = (await store.take_in(say("1", media=(photo("1"),)), OBSERVE)).refs
    record = await store.ref(MAIN, ref.id)
    assert record is not None
    assert ref.id[4:] not in record.public_name
    assert await store.ref_by_public_name(record.public_name) == record
    assert await store.ref_by_public_name(ref.id) is None


async def test_refs_are_listed_newest_first_by_kind_time_and_page(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    for number in range(6):
        kind = MediaKind.VOICE if number % 2 else MediaKind.IMAGE
        await store.take_in(say(str(number), media=(photo(str(number), kind=kind),)), OBSERVE)
        clock.shift(60)
    await store.take_in(say("x", conversation=OTHER, media=(photo("x"),)), OBSERVE)

    async def listed(**wanted: object) -> list[str]:
        return [record.ref.message_id for record in await store.refs(MAIN, **wanted)]  # type: ignore[arg-type]

    assert await listed() == ["5", "4", "3", "2", "1", "0"]
    assert await listed(kind=MediaKind.VOICE) == ["5", "3", "1"]
    assert await listed(since=START + timedelta(minutes=4)) == ["5", "4"]
    assert await listed(limit=2) == ["5", "4"]
    before = (await store.refs(MAIN, limit=2))[-1].seq
    assert await listed(limit=2, before=before) == ["3", "2"]
    assert len(await store.refs(None)) == 7
    assert await store.refs(ConversationKey(platform="web", account="default", channel="unknown")) == ()


async def test_a_picture_sent_before_the_question_waits_to_be_claimed_once(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    async def unclaimed(author: str = "u-anna") -> list[str]:
        records = await store.unclaimed_refs(MAIN, author, since=clock.now() - timedelta(minutes=10))
        return [record.ref.message_id for record in records]

    await store.take_in(say("old", media=(photo("old"),)), OBSERVE)
    clock.shift(601)
    for number in range(3):
        await store.take_in(say(str(number), media=(photo(str(number)),)), OBSERVE)
    await store.take_in(say("b", media=(photo("b"),), author=BORIS), OBSERVE)
    await store.take_in(say("c", media=(photo("c"),), conversation=OTHER), OBSERVE)
    await store.take_in(say("asked", media=(photo("asked"),)), ANSWER)
    assert await unclaimed() == ["2", "1", "0"]
    assert len(await store.unclaimed_refs(MAIN, "u-anna", since=START, limit=2)) == 2
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    await store.take_in(say("later", media=(photo("later"),)), OBSERVE)
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED))
    assert await unclaimed() == ["later"]
    assert await unclaimed(BORIS.id) == ["b"]


async def test_a_failed_turn_leaves_pictures_unclaimed(store: Store, clock: FakeClock, say: Say, photo: Photo) -> None:
    await store.take_in(say("0", media=(photo("0"),)), OBSERVE)
    await store.take_in(say("1"), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.FAILED))
    assert len(await store.unclaimed_refs(MAIN, "u-anna", since=START)) == 1


async def test_every_end_of_a_fetch_is_recorded_with_its_reason(store: Store, say: Say, photo: Photo) -> None:
    (ref,) = (await store.take_in(say("1", media=(photo("1"),)), OBSERVE)).refs
    await store.end_media(ref.id, MediaOutcome.EXPIRED, "the platform no longer has it")
    record = await store.ref(MAIN, ref.id)
    assert record is not None
    assert (record.outcome, record.reason, record.ref.sha256) == (
        MediaOutcome.EXPIRED,
        "the platform no longer has it",
        None,
    )
    blob = await store.keep(chunks(b"12345"), mime="image/png", limit=10)
    await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    record = await store.ref(MAIN, ref.id)
    assert record is not None
    assert (record.outcome, record.reason, record.ref.sha256, record.ref.size) == (
        MediaOutcome.HELD,
        "",
        blob.sha256,
        5,
    )


async def test_media_whose_bytes_are_here_from_the_start_is_held(store: Store, say: Say, photo: Photo) -> None:
    blob = await store.keep(chunks(b"12345"), mime="image/png", limit=10)
    media = (photo("1", "0", sha256=blob.sha256), photo("1", "1", sha256="0" * 64))
    await store.take_in(say("1", media=media), OBSERVE)
    unknown, held = await store.refs(MAIN)
    assert (held.outcome, unknown.outcome) == (MediaOutcome.HELD, MediaOutcome.REFERENCED)


async def test_no_question_of_one_channel_is_answered_with_anything_of_another(
    store: Store, clock: FakeClock, say: Say, photo: Photo
) -> None:
    """Ids, refs and stories swapped a thousand times between channels, accounts and platforms."""
    places = [
        ConversationKey(platform=platform, account=account, channel=channel, thread=thread)
        for platform in ("web", "telegram")
        for account in ("default", "second")
        for channel in ("a", "b", "a:b")
        for thread in (None, "t")
    ]
    messages, refs = dict[str, ConversationKey](), dict[str, ConversationKey]()
    for number, key in enumerate(places):
        taken = await store.take_in(
            say(f"m{number}", conversation=key, media=(photo(f"m{number}", channel_id=key.channel),)), OBSERVE
        )
        messages[f"m{number}"] = refs[taken.refs[0].id] = key
    rng = random.Random(7)
    for _ in range(1000):
        asking, message, ref = rng.choice(places), rng.choice(list(messages)), rng.choice(list(refs))
        mine = messages[message].whole_channel == asking.whole_channel
        assert bool(await store.messages(asking, [message])) == mine
        assert (await store.story(asking, message) is not None) == mine
        assert (await store.ref(asking, ref) is not None) == (refs[ref].whole_channel == asking.whole_channel)
        assert all(found.conversation == asking for found in await store.history(asking))
    for key in places:
        assert {record.conversation.whole_channel for record in await store.refs(key)} == {key.whole_channel}
        unclaimed = await store.unclaimed_refs(key, "u-anna", since=START)
        assert {record.conversation for record in unclaimed} == {key}
