"""What platforms tell of the past is kept behind what was heard live."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta

from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Deletion, Edit, Message
from belino.domain.outcome import MediaOutcome, MessageOutcome, Standing
from belino.domain.stored import ReadPosition, Verdict
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


def past(say: Say, id: str, minutes: float, text: str = "long ago", **more: object) -> Message:  # noqa: A002
    return say(id, text, sent=START - timedelta(minutes=minutes), **more)


async def test_history_is_observed_context_in_its_own_time_and_answers_nothing(store: Store, say: Say) -> None:
    await store.take_in(say("9", "now"), ANSWER)
    assert await store.take_history(MAIN, [past(say, "2", 1), past(say, "1", 2)]) == 2
    (anchor,) = await store.messages(MAIN, ["9"])
    around = await store.around(anchor, now=START)
    assert [near.message.id for near in around.nearby] == ["1", "2"]
    assert {near.message.standing for near in around.nearby} == {Standing.OBSERVED}
    assert {near.message.outcome for near in around.nearby} == {MessageOutcome.RECALLED}
    assert await store.waiting_turns() == 1


async def test_what_was_heard_before_stays_as_it_is(store: Store, say: Say) -> None:
    await store.take_in(say("1", "as it was said"), ANSWER)
    assert await store.take_history(MAIN, [say("1", "as the platform tells it now")]) == 0
    (kept,) = await store.messages(MAIN, ["1"])
    assert (kept.text, kept.outcome) == ("as it was said", MessageOutcome.WAITING)


async def test_an_edit_that_was_missed_is_seen_in_the_history(store: Store, say: Say, photo: Photo) -> None:
    await store.take_in(say("1", "as it was said"), ANSWER)
    changed = say("1", "as it reads now", media=(photo("1"),), edited=START + timedelta(minutes=5))
    for _ in range(2):
        assert await store.take_history(MAIN, [changed]) == 0
        (kept,) = await store.messages(MAIN, ["1"])
        assert (kept.text, kept.edited, len(kept.media)) == ("as it reads now", changed.edited, 1)
        assert kept.outcome is MessageOutcome.WAITING
    assert (audit := await store.audit()).difference == 0 and not audit.discrepancies


async def test_an_older_edit_that_comes_late_does_not_undo_what_history_shows(store: Store, say: Say) -> None:
    await store.take_history(MAIN, [say("1", "third edition", edited=START + timedelta(minutes=5))])
    second = Edit(conversation=MAIN, id="1@2", message_id="1", author=say("1").author,
                  sent=START + timedelta(minutes=2), text="second edition")  # fmt: skip
    await store.take_in(second, ANSWER)
    (kept,) = await store.messages(MAIN, ["1"])
    assert (kept.text, kept.edited) == ("third edition", START + timedelta(minutes=5))


async def test_a_message_told_late_reads_as_its_recalled_copy_that_was_changed_since(
    store: Store, say: Say, photo: Photo
) -> None:
    changed = say("1", "with the right picture", media=(photo("1", "right"),), edited=START + timedelta(minutes=5))
    await store.take_history(MAIN, [changed])
    taken = await store.take_in(say("1", "with a wrong picture", media=(photo("1", "wrong"),)), ANSWER)
    assert taken.outcome is MessageOutcome.WAITING
    (kept,) = await store.messages(MAIN, ["1"])
    assert (kept.text, kept.edited, [ref.item for ref in kept.media]) == (changed.text, changed.edited, ["right"])
    assert [ref.id for ref in taken.refs] == [ref.id for ref in kept.media]
    assert (audit := await store.audit()).difference == 0 and not audit.discrepancies


async def test_what_the_agent_wrote_piece_by_piece_was_not_edited(store: Store, say: Say) -> None:
    agent = Author(id="bot", name="Agent", is_agent=True)
    own = say("1", "an answer that grew", author=agent, edited=START + timedelta(seconds=3))
    await store.take_history(MAIN, [own])
    await store.take_history(MAIN, [replace(own, text="once more", edited=START + timedelta(minutes=5))])
    (kept,) = await store.messages(MAIN, ["1"])
    assert (kept.text, kept.edited) == ("an answer that grew", None)


async def test_what_is_heard_live_takes_the_place_of_its_recalled_copy_and_is_answered(
    store: Store, say: Say, photo: Photo
) -> None:
    asked = say("1", "what is this?", media=(photo("1"),))
    await store.take_history(MAIN, [asked])
    taken = await store.take_in(asked, ANSWER)
    assert taken.outcome is MessageOutcome.WAITING
    (kept,) = await store.messages(MAIN, ["1"])
    assert kept.standing is Standing.MAY_COMMAND and [ref.id for ref in kept.media] == [ref.id for ref in taken.refs]
    assert len(await store.refs(MAIN)) == 1 and await store.waiting_turns() == 1
    assert (await store.take_in(asked, ANSWER)).outcome is MessageOutcome.DUPLICATE
    assert await store.take_history(MAIN, [asked]) == 0


async def test_what_was_fetched_of_a_recalled_copy_is_not_fetched_again_for_the_live_one(
    store: Store, say: Say, photo: Photo
) -> None:
    asked = say("1", "what is this?", media=(photo("1"), photo("1", "old")))
    await store.take_history(MAIN, [asked])
    gone, ref = (record.ref for record in await store.refs(MAIN))
    blob = await store.keep(chunks(b"12345"), mime="image/png", limit=10)
    await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    overheard = Verdict(standing=Standing.OBSERVED, reason="not addressed")
    await store.take_in(replace(asked, media=(photo("1"),)), overheard)
    (record,) = await store.refs(MAIN)
    assert (record.ref.id, record.outcome, record.ref.sha256) == (ref.id, MediaOutcome.HELD, blob.sha256)
    assert (await store.tidy()).total == 0 and await store.blob(blob.sha256) is not None
    assert await store.ref(MAIN, gone.id) is None
    (kept,) = await store.messages(MAIN, ["1"])
    assert [media.id for media in kept.media] == [ref.id]
    left = await store.unclaimed_refs(MAIN, asked.author.id, since=START, limit=5)
    assert [record.ref.id for record in left] == [ref.id]


async def test_history_asked_for_twice_is_kept_once(store: Store, say: Say) -> None:
    messages = [past(say, str(number), number) for number in range(1, 30)]
    assert await store.take_history(MAIN, messages) == 29
    assert await store.take_history(MAIN, messages) == 0


async def test_messages_of_another_channel_are_left_out(store: Store, say: Say) -> None:
    await store.take_in(say("5", conversation=OTHER), ANSWER)
    assert await store.take_history(MAIN, [past(say, "1", 1, conversation=OTHER), past(say, "2", 1)]) == 1
    assert [message.id for message in await store.messages(OTHER, ["1", "2", "5"])] == ["5"]


async def test_a_message_deleted_before_it_was_recalled_says_nothing(store: Store, say: Say) -> None:
    await store.take_in(say("9"), ANSWER)
    await store.take_in(Deletion(conversation=MAIN, id="d", message_id="1", author=None, sent=START), ANSWER)
    await store.take_history(MAIN, [past(say, "1", 1, "a secret")])
    (kept,) = await store.messages(MAIN, ["1"])
    assert kept.deleted is not None and kept.text == ""
    assert (await store.take_in(past(say, "1", 1, "a secret"), ANSWER)).outcome is MessageOutcome.DUPLICATE


async def test_replies_find_the_root_they_lacked(store: Store, say: Say) -> None:
    await store.take_in(say("3", "and so?", reply_to="2"), ANSWER)
    await store.take_history(MAIN, [past(say, "1", 2, "the root"), past(say, "2", 1, "a reply", reply_to="1")])
    slice_ = await store.thread(MAIN, "1")
    assert slice_ is not None and slice_.root is not None and slice_.root.text == "the root"
    assert [reply.id for reply in slice_.replies] == ["2", "3"]


async def test_pictures_of_the_past_do_not_belong_to_the_next_question(
    store: Store, say: Say, photo: Photo, clock: FakeClock
) -> None:
    await store.take_history(MAIN, [past(say, "1", 60, media=(photo("1"),))])
    author = say("2").author.id
    assert await store.unclaimed_refs(MAIN, author, since=clock.now() - timedelta(minutes=10)) == ()
    assert len(await store.refs(MAIN)) == 1


async def test_a_session_is_told_what_was_said_while_nobody_listened_once_and_nothing_older(
    store: Store, say: Say
) -> None:
    await store.take_in(say("1", sent=START), ANSWER)
    await store.take_in(say("5", sent=START + timedelta(minutes=5)), ANSWER)
    gap = [say("3", sent=START + timedelta(minutes=3)), say("2", sent=START + timedelta(minutes=2))]
    await store.take_history(MAIN, [*gap, past(say, "0", 9)])
    first, last = (message.seq for message in await store.messages(MAIN, ["1", "5"]))
    missed = await store.missed_changes(MAIN, ReadPosition(seq=first), until=last)
    assert [message.id for message in missed.arrived] == ["2", "3"] and missed.total_arrived == 2
    await store.take_in(say("6", sent=START + timedelta(minutes=6)), ANSWER)
    (next_one,) = await store.messages(MAIN, ["6"])
    assert (await store.missed_changes(MAIN, missed.now, until=next_one.seq)).arrived == ()


async def test_half_a_surrogate_pair_does_not_stop_the_rest(store: Store, say: Say) -> None:
    assert await store.take_history(MAIN, [past(say, "1", 1, "bad \ud800 text"), past(say, "2", 2)]) == 2


async def test_threads_of_the_channel_are_kept_in_their_place(store: Store, say: Say) -> None:
    thread = replace(MAIN, thread="1")
    await store.take_history(MAIN, [past(say, "1", 5), past(say, "2", 4, conversation=thread)])
    assert [message.id for message in await store.history(thread)] == ["2"]


async def test_the_last_word_of_a_conversation_is_the_last_that_was_heard(store: Store, say: Say) -> None:
    await store.take_in(say("9", "now"), ANSWER)
    await store.take_history(MAIN, [past(say, "1", 60), past(say, "2", 50, conversation=replace(MAIN, thread="1"))])
    (summary,) = await store.conversations()
    assert summary.last_text == "now" and summary.messages == 2
