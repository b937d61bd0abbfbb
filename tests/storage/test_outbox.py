"""Parcels leave in order and become one message each, however often they are confirmed."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from belino.domain.errors import StoreError
from belino.domain.limits import Markup, SendAs
from belino.domain.message import Author, ConversationKey, Deletion, DeliveryState, DeliveryStatus, Message
from belino.domain.outcome import MediaOutcome, MessageOutcome, Standing, TurnState
from belino.domain.reply import Doubt, OutgoingFile, Parcel, ParcelKind, ParcelState, Receipt
from belino.domain.stored import ClaimedParcel, ClaimedTurn, Ready, TurnEnd, Verdict
from belino.domain.turn import Usage
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock
from storage.engines import Engine

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
AGENT = Author(id="belino", name="belino", is_agent=True)

Say = Callable[..., Message]


def text(key: str, words: str = "hi", **more: object) -> Parcel:
    return Parcel(key=key, conversation=MAIN, text=words, **more)  # type: ignore[arg-type]


async def answer(store: Store, clock: FakeClock, say: Say, *parcels: Parcel, asked: str = "1") -> ClaimedTurn:
    await store.take_in(say(asked), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=parcels))
    return turn


async def test_the_last_message_of_an_answer_says_what_its_turn_has_cost(
    store: Store, clock: FakeClock, say: Say
) -> None:
    spent = Usage(input_tokens=1200, output_tokens=80, cost_usd=0.0042, model="m")
    await store.take_in(say("1"), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    end = TurnEnd(state=TurnState.ANSWERED, parcels=(text("a"), text("b")), usage=spent)
    await store.finish_turn(turn.id, end)
    for key in ("a", "b"):
        await claim(store, clock)
        await store.confirm_parcel(key, Receipt(message_id=key, sent=clock.now()), AGENT)
    assert [await store.spent(MAIN, message.id) for message in await store.history(MAIN)] == [None, None, spent]


async def claim(store: Store, clock: FakeClock) -> ClaimedParcel:
    claimed = await store.claim_parcel(MAIN, clock.now())
    assert isinstance(claimed, ClaimedParcel), claimed
    return claimed


async def test_a_parcel_that_replies_carries_the_beginning_of_what_it_quotes_until_that_is_deleted(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await answer(store, clock, say, text("a", reply_to="1"), text("b", reply_to="1"), text("c", reply_to="unknown"))
    asked = (await store.history(MAIN))[0]
    assert (await claim(store, clock)).parcel.quoted == asked.text[:300] != ""
    await store.confirm_parcel("a", Receipt(message_id="a", sent=clock.now()), AGENT)
    gone = Deletion(conversation=MAIN, id="gone", message_id="1", author=asked.author, sent=clock.now())
    await store.take_in(gone, OBSERVE)
    for key in ("b", "c"):
        assert (await claim(store, clock)).parcel.quoted == ""
        await store.confirm_parcel(key, Receipt(message_id=key, sent=clock.now()), AGENT)


async def test_parcels_leave_in_order_one_after_the_other(store: Store, clock: FakeClock, say: Say) -> None:
    turn = await answer(store, clock, say, text("a", markup=Markup.MARKDOWN, reply_to="1"), text("b"))
    assert await store.ready_parcels() == (Ready(conversation=MAIN, at=clock.now()),)
    first = await claim(store, clock)
    assert first.parcel == text("a", markup=Markup.MARKDOWN, reply_to="1", trace=turn.trace)
    assert (first.attempt, first.created) == (1, clock.now())
    await store.confirm_parcel("a", Receipt(message_id="a", sent=clock.now()), AGENT)
    assert (await claim(store, clock)).parcel.key == "b"
    await store.confirm_parcel("b", Receipt(message_id="b", sent=clock.now()), AGENT)
    assert await store.claim_parcel(MAIN, clock.now()) is None
    assert await store.ready_parcels() == ()


async def test_what_was_sent_is_a_message_by_the_agent_once(store: Store, clock: FakeClock, say: Say) -> None:
    turn = await answer(store, clock, say, text("a", "answer"))
    await claim(store, clock)
    receipt = Receipt(message_id="m-9", sent=clock.now())
    message = await store.confirm_parcel("a", receipt, AGENT)
    assert message is not None
    assert (message.id, message.text, message.author, message.trace) == ("m-9", "answer", AGENT, turn.trace)
    assert (message.outcome, message.standing) == (MessageOutcome.ANSWERED, Standing.MAY_COMMAND)
    clock.shift(1)
    assert await store.confirm_parcel("a", receipt, AGENT) == message
    assert await store.confirm_parcel("a", Receipt(message_id="other", sent=clock.now()), AGENT) == message
    assert [found.id for found in await store.history(MAIN)] == ["1", "m-9"]
    echo = await store.take_in(say("m-9", author=AGENT), OBSERVE)
    assert echo.outcome is MessageOutcome.DUPLICATE


async def test_an_echo_that_beats_its_receipt_becomes_the_agents_message(
    store: Store, clock: FakeClock, say: Say
) -> None:
    turn = await answer(store, clock, say, text("a", "answer"))
    await claim(store, clock)
    await store.take_in(say("m-9", "answer", author=Author(id="bot-7", name="?", is_bot=True)), OBSERVE)
    message = await store.confirm_parcel("a", Receipt(message_id="m-9", sent=clock.now()), AGENT)
    assert message is not None
    assert (message.author, message.outcome, message.trace) == (AGENT, MessageOutcome.ANSWERED, turn.trace)
    assert len(await store.history(MAIN)) == 2


async def test_a_delayed_parcel_keeps_those_behind_it_waiting(store: Store, clock: FakeClock, say: Say) -> None:
    await answer(store, clock, say, text("a"), text("b"))
    await claim(store, clock)
    later = clock.now() + timedelta(seconds=30)
    await store.delay_parcel("a", later, "rate limited")
    assert await store.claim_parcel(MAIN, clock.now()) == Ready(conversation=MAIN, at=later)
    (record,) = await store.parcels(state=ParcelState.READY, limit=1)
    assert record.key == "b"
    clock.shift(30)
    again = await claim(store, clock)
    assert (again.parcel.key, again.attempt) == ("a", 2)


@pytest.mark.parametrize("state", [ParcelState.DEAD, ParcelState.UNCERTAIN, ParcelState.HELD])
async def test_a_parcel_that_ended_lets_the_next_one_go_and_says_why(
    store: Store, clock: FakeClock, say: Say, state: ParcelState
) -> None:
    await answer(store, clock, say, text("a"), text("b"))
    await claim(store, clock)
    await store.end_parcel("a", state, "the channel is gone")
    assert (await claim(store, clock)).parcel.key == "b"
    (record,) = await store.parcels(state=state)
    assert (record.key, record.reason, record.attempts) == ("a", "the channel is gone", 1)


async def test_a_parcel_whose_sender_died_is_claimed_again_under_the_same_key(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    await answer(store, clock, say, text("a"))
    first = await claim(store, clock)
    await store.close()
    store = await engine.open()
    assert [record.key for record in await store.parcels(state=ParcelState.SENDING)] == ["a"]
    assert len(await store.ready_parcels()) == 1
    again = await claim(store, clock)
    assert (again.parcel, again.attempt) == (first.parcel, 2)
    await store.close()


async def test_the_same_key_twice_is_one_parcel(store: Store, clock: FakeClock, say: Say) -> None:
    await answer(store, clock, say, text("a", "first"))
    await answer(store, clock, say, text("a", "second"), asked="2")
    assert [(record.text, record.state) for record in await store.parcels()] == [("first", ParcelState.READY)]


@pytest.mark.parametrize(
    "state",
    [ParcelState.SENDING, ParcelState.SENT, ParcelState.DEAD, ParcelState.UNCERTAIN, ParcelState.HELD],
)
async def test_a_key_that_comes_again_leaves_its_parcel_where_it_is(
    store: Store, clock: FakeClock, say: Say, state: ParcelState
) -> None:
    await answer(store, clock, say, text("a", "first"))
    await claim(store, clock)
    if state is ParcelState.SENT:
        await store.confirm_parcel("a", Receipt(message_id="a", sent=clock.now()), AGENT)
    elif state is not ParcelState.SENDING:
        await store.end_parcel("a", state, "it ended so")
    before = await store.parcels()
    assert [record.state for record in before] == [state]
    clock.shift(60)
    await answer(store, clock, say, text("a", "second"), asked="2")
    assert await store.parcels() == before


async def test_a_sent_parcel_is_neither_delayed_nor_ended(store: Store, clock: FakeClock, say: Say) -> None:
    await answer(store, clock, say, text("a"))
    await claim(store, clock)
    await store.confirm_parcel("a", Receipt(message_id="a", sent=clock.now()), AGENT)
    with pytest.raises(StoreError, match="sent already"):
        await store.delay_parcel("a", clock.now(), "")
    with pytest.raises(StoreError, match="sent already"):
        await store.end_parcel("a", ParcelState.DEAD, "")
    with pytest.raises(StoreError, match="no parcel x"):
        await store.confirm_parcel("x", Receipt(message_id="a", sent=clock.now()), AGENT)


async def test_an_edit_parcel_changes_its_message_and_makes_none(store: Store, clock: FakeClock, say: Say) -> None:
    draft = text("a", "Thinking", kind=ParcelKind.DRAFT)
    await answer(store, clock, say, draft, text("b", "Done.", kind=ParcelKind.EDIT, edits="m"))
    await claim(store, clock)
    await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    await claim(store, clock)
    clock.shift(2)
    for _ in range(2):
        changed = await store.confirm_parcel("b", Receipt(message_id="m", sent=clock.now()), AGENT)
        assert changed is not None
        assert (changed.id, changed.text, changed.edited) == ("m", "Done.", clock.now())
    assert [(found.id, found.text) for found in await store.history(MAIN)] == [("1", "hello"), ("m", "Done.")]


async def test_an_edit_that_was_said_anew_is_the_message_the_platform_shows(
    store: Store, clock: FakeClock, say: Say
) -> None:
    draft = text("a", "Thinking", kind=ParcelKind.DRAFT)
    await answer(store, clock, say, draft, text("b", "Done.", kind=ParcelKind.EDIT, edits="m", reply_to="1"))
    await claim(store, clock)
    await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    await claim(store, clock)
    for _ in range(2):
        said = await store.confirm_parcel("b", Receipt(message_id="n", sent=clock.now()), AGENT)
        assert said is not None
        assert (said.id, said.text, said.edited, said.reply_to) == ("n", "Done.", None, "1")
    kept = [(found.id, found.text, found.deleted is None) for found in await store.history(MAIN)]
    assert kept == [("1", "hello", True), ("m", "", False), ("n", "Done.", True)]
    made_by = await store.parcel_of(MAIN, "n")
    assert made_by is not None and made_by.key == "b"


async def test_what_is_to_be_said_anew_is_a_text_of_its_own_and_what_it_would_have_changed_is_gone(
    store: Store, clock: FakeClock, say: Say
) -> None:
    draft = text("a", "Thinking", kind=ParcelKind.DRAFT)
    await answer(store, clock, say, draft, text("b", "Done.", kind=ParcelKind.EDIT, edits="m"))
    await claim(store, clock)
    await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    fence = (await claim(store, clock)).fence
    assert not await store.send_as_new("b", "it is gone", fence=fence - 1)
    assert await store.send_as_new("b", "it is gone", fence=fence)
    again = await claim(store, clock)
    assert (again.parcel.kind, again.parcel.edits, again.doubt) == (ParcelKind.TEXT, None, Doubt.NONE)
    assert [(found.id, found.deleted is None) for found in await store.history(MAIN)] == [("1", True), ("m", False)]


async def test_what_is_taken_apart_keeps_its_turn_its_doubt_and_its_bytes(
    store: Store, clock: FakeClock, say: Say
) -> None:
    blobs = [await store.keep(_one(content), mime="text/plain", limit=10) for content in (b"one", b"two")]
    files = tuple(
        OutgoingFile(name=blob.sha256[:4], mime="text/plain", size=3, sha256=blob.sha256, pending=blob.sha256[:4])
        for blob in blobs
    )
    album = text("a", "", kind=ParcelKind.FILES, files=files)
    await answer(store, clock, say, album)
    fence = (await claim(store, clock)).fence
    parts = replace(album, files=files[:1]), replace(album, key="a-1", files=files[1:])
    assert not await store.take_apart("a", parts, "not together", fence=fence - 1)
    await store.delay_parcel("a", clock.now(), "no answer", doubt=Doubt.UNANSWERED)
    fence = (await claim(store, clock)).fence
    assert await store.take_apart("a", parts, "not together", fence=fence)
    for key, blob in zip(("a", "a-1"), blobs, strict=True):
        claimed = await claim(store, clock)
        assert (claimed.parcel.key, [file.sha256 for file in claimed.parcel.files]) == (key, [blob.sha256])
        assert claimed.doubt is Doubt.UNANSWERED and claimed.askers
        await store.confirm_parcel(key, Receipt(message_id=key, sent=clock.now()), AGENT)
    assert [mark for mark, state, *_ in await store.carried_files(MAIN) if state is ParcelState.SENT] == [
        files[1].pending,
        files[0].pending,
    ]


async def test_what_a_platform_could_not_deliver_after_all_is_dead_with_its_reason(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await answer(store, clock, say, text("a"))
    await claim(store, clock)
    await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    for state, reason in ((DeliveryState.DELIVERED, ""), (DeliveryState.FAILED, "number blocked")):
        status = DeliveryStatus(conversation=MAIN, id=state, message_id="m", sent=START, state=state, reason=reason)
        await store.take_in(status, OBSERVE)
    (record,) = await store.parcels()
    assert (record.state, record.reason) == (ParcelState.DEAD, "number blocked")
    story = await store.story(MAIN, "1")
    assert story is not None
    assert [step.outcome for step in story.steps if step.stage == "delivery"] == ["dead", "delivered", "failed"]


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize(
    ("state", "after"),
    [
        (DeliveryState.HELD, ParcelState.HELD),
        (DeliveryState.WINDOW_CLOSED, ParcelState.HELD),
        (DeliveryState.AGAIN, ParcelState.READY),
    ],
)
async def test_what_a_platform_delivers_only_later_is_held_or_ready_again_with_its_files_and_no_message(
    store: Store, clock: FakeClock, say: Say, state: DeliveryState, after: ParcelState, early: bool
) -> None:
    blob = await store.keep(_one(b"a file"), mime="text/plain", limit=100)
    file = OutgoingFile(name="a.txt", mime="text/plain", size=6, sha256=blob.sha256)
    await answer(store, clock, say, text("a", "answer", kind=ParcelKind.FILES, files=(file,)))
    await claim(store, clock)
    receipt = Receipt(message_id="m", sent=clock.now())
    status = DeliveryStatus(
        conversation=MAIN, id="s", message_id="m", sent=START, state=state, reason="a day has gone by"
    )
    if early:
        await store.take_in(status, OBSERVE)
    await store.confirm_parcel("a", receipt, AGENT)
    if not early:
        await store.take_in(status, OBSERVE)
    (record,) = await store.parcels()
    assert (record.state, record.reason, record.message_id) == (after, "a day has gone by", None)
    (_, ours) = await store.history(MAIN, limit=10)
    assert (ours.text, ours.media, ours.deleted is not None) == ("", (), True)
    if state is DeliveryState.WINDOW_CLOSED:
        assert await store.reopen_parcels(MAIN) == (MAIN,)
    elif after is ParcelState.HELD:
        await store.retry_parcel("a")
    claimed = await claim(store, clock)
    assert [each.sha256 for each in claimed.parcel.files] == [blob.sha256]
    await store.confirm_parcel("a", replace(receipt, message_id="m2"), AGENT)
    (record,) = await store.parcels()
    assert (record.state, record.message_id) == (ParcelState.SENT, "m2")
    async with store.local(blob.sha256) as place:
        assert place.read_bytes() == b"a file"


async def test_the_outbox_tells_the_last_report_of_a_platform(store: Store, clock: FakeClock, say: Say) -> None:
    await answer(store, clock, say, text("a"))
    await claim(store, clock)
    await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    (record,) = await store.parcels()
    assert record.delivery is None
    for state in (DeliveryState.READ, DeliveryState.SENT, DeliveryState.DELIVERED):
        status = DeliveryStatus(conversation=MAIN, id=state, message_id="m", sent=START, state=state)
        await store.take_in(status, OBSERVE)
    (record,) = await store.parcels()
    assert (record.state, record.delivery) == (ParcelState.SENT, DeliveryState.READ)


async def test_a_deletion_that_beats_the_receipt_leaves_no_words(store: Store, clock: FakeClock, say: Say) -> None:
    await answer(store, clock, say, text("a", "regretted"))
    await claim(store, clock)
    await store.take_in(Deletion(conversation=MAIN, id="d", message_id="m", author=None, sent=START), OBSERVE)
    message = await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    assert message is not None
    assert (message.text, message.deleted) == ("", START)


async def test_files_of_a_parcel_are_kept_until_sent_and_then_belong_to_the_message(
    store: Store, clock: FakeClock, say: Say
) -> None:
    blob = await store.keep(_one(b"report"), mime="text/plain", limit=100)
    file = OutgoingFile(
        name="r.txt", mime="text/plain", size=6, sha256=blob.sha256, send_as=SendAs.AUDIO, caption="here"
    )
    await answer(store, clock, say, text("a", "", kind=ParcelKind.FILES, files=(file,)))
    clock.shift(7200)
    assert (await store.tidy()).total == 0
    (sent,) = (await claim(store, clock)).parcel.files
    assert sent == file
    assert b"".join([piece async for piece in sent.chunks()]) == b"report"
    message = await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    assert message is not None
    assert [(ref.file_name, ref.caption, ref.sha256) for ref in message.media] == [("r.txt", "here", blob.sha256)]
    assert (await store.refs(MAIN))[0].outcome is MediaOutcome.HELD
    assert (await store.tidy()).total == 0


async def test_markup_travels_with_its_plain_words_and_only_those_become_what_was_said(
    store: Store, clock: FakeClock, say: Say
) -> None:
    blob = await store.keep(_one(b"voice"), mime="audio/ogg", limit=100)
    file = OutgoingFile(
        name="v.ogg", mime="audio/ogg", size=5, sha256=blob.sha256, send_as=SendAs.VOICE, caption="<b>x</b>", plain="x",
        width=3, height=4, seconds=1.5, waveform=bytes(range(256)), pending="v.ogg",
    )  # fmt: skip
    first = text("a", "<b>hi</b>", plain="hi", markup=Markup.HTML, kind=ParcelKind.FILES, files=(file,), trace="t")
    await answer(store, clock, say, first)
    assert (await claim(store, clock)).parcel == first
    message = await store.confirm_parcel("a", Receipt(message_id="m", sent=clock.now()), AGENT)
    assert message is not None
    assert (message.text, [ref.caption for ref in message.media]) == ("hi", ["x"])


async def _one(chunk: bytes) -> AsyncIterator[bytes]:
    yield chunk


async def test_parcels_that_no_turn_made_are_messages_all_the_same(store: Store, clock: FakeClock) -> None:
    await store.put_parcels([text("a", "here it is", trace="flush-1"), text("b", trace="flush-1")])
    await store.put_parcels([text("a", "offered again", trace="flush-1")])
    assert (await claim(store, clock)).parcel.text == "here it is"
    said = await store.confirm_parcel("a", Receipt(message_id="m-1", sent=clock.now()), AGENT)
    assert said is not None
    assert (said.text, said.author) == ("here it is", AGENT)
    assert [parcel.key for parcel in await store.parcels()] == ["b", "a"]


async def test_what_parcels_carry_out_of_pending_is_known_with_its_state(store: Store, clock: FakeClock) -> None:
    blob = await store.keep(_one(b"bytes"), mime="text/plain", limit=10)
    file = OutgoingFile(name="n.txt", mime="text/plain", size=5, sha256=blob.sha256, pending="mark")
    plain = OutgoingFile(name="o.txt", mime="text/plain", size=5, sha256=blob.sha256)
    assert await store.carried_files(MAIN) == ()
    await store.put_parcels([text("a", kind=ParcelKind.FILES, files=(file, plain))])
    assert await store.carried_files(MAIN) == (("mark", ParcelState.READY, "", clock.now()),)
    await claim(store, clock)
    await store.end_parcel("a", ParcelState.DEAD, "refused")
    assert await store.carried_files(MAIN) == (("mark", ParcelState.DEAD, "refused", clock.now()),)
    elsewhere = ConversationKey(platform="web", account="default", channel="elsewhere")
    assert await store.carried_files(elsewhere) == ()
