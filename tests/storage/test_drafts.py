"""A draft is in the outbox before its turn has ended, and the answer changes it or stands in its place."""

from collections.abc import Callable

import pytest

from belino.domain.errors import StoreError
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing, TurnState
from belino.domain.reply import DRAFT_OF, Parcel, ParcelKind, ParcelState, Receipt
from belino.domain.stored import ClaimedParcel, ClaimedTurn, TurnEnd, Verdict
from belino.storage.store import Store
from belino.testing.clock import FakeClock

MAIN = ConversationKey(platform="web", account="default", channel="main")
AGENT = Author(id="belino", name="belino", is_agent=True)
ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
DRAFT = Parcel(key="d", conversation=MAIN, kind=ParcelKind.DRAFT, text="Thin …")
FINAL = Parcel(key="p", conversation=MAIN, kind=ParcelKind.EDIT, text="Thinking done.", edits=f"{DRAFT_OF}d")

Say = Callable[..., Message]


async def running(store: Store, clock: FakeClock, say: Say) -> ClaimedTurn:
    await store.take_in(say("1"), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    await store.start_draft(turn.id, DRAFT)
    return turn


async def claim(store: Store, clock: FakeClock) -> Parcel:
    claimed = await store.claim_parcel(MAIN, clock.now())
    assert isinstance(claimed, ClaimedParcel), claimed
    return claimed.parcel


async def end(store: Store, turn: ClaimedTurn) -> None:
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(FINAL,)))


async def said(store: Store) -> list[str]:
    return [message.text for message in await store.history(MAIN)]


async def test_the_answer_changes_the_draft_that_was_sent(store: Store, clock: FakeClock, say: Say) -> None:
    turn = await running(store, clock, say)
    assert (await claim(store, clock)).kind is ParcelKind.DRAFT
    await store.confirm_parcel("d", Receipt(message_id="m", sent=clock.now()), AGENT)
    assert await said(store) == ["hello", "Thin …"]
    await end(store, turn)
    final = await claim(store, clock)
    assert (final.kind, final.edits) == (ParcelKind.EDIT, "m")
    await store.confirm_parcel("p", Receipt(message_id="m", sent=clock.now()), AGENT)
    assert await said(store) == ["hello", "Thinking done."]


async def test_a_draft_nobody_began_to_send_is_never_sent(store: Store, clock: FakeClock, say: Say) -> None:
    turn = await running(store, clock, say)
    await end(store, turn)
    final = await claim(store, clock)
    assert (final.key, final.kind, final.edits) == ("p", ParcelKind.TEXT, None)
    await store.confirm_parcel("p", Receipt(message_id="n", sent=clock.now()), AGENT)
    assert await said(store) == ["hello", "Thinking done."]


@pytest.mark.parametrize("state", [ParcelState.DEAD, ParcelState.UNCERTAIN, ParcelState.HELD])
async def test_an_answer_whose_draft_has_no_receipt_is_a_message_of_its_own(
    store: Store, clock: FakeClock, say: Say, state: ParcelState
) -> None:
    turn = await running(store, clock, say)
    await claim(store, clock)
    await end(store, turn)
    await store.end_parcel("d", state, "why")
    final = await claim(store, clock)
    assert (final.key, final.kind, final.edits) == ("p", ParcelKind.TEXT, None)
    draft = await store.parcel("d")
    assert draft is not None
    assert draft.state is (ParcelState.UNCERTAIN if state is ParcelState.UNCERTAIN else ParcelState.DEAD)
    if state is ParcelState.HELD:
        assert await store.retry_parcel("d") is None, "asked for later, it would be a second answer"


async def test_a_turn_that_is_run_again_finds_the_draft_it_had(store: Store, clock: FakeClock, say: Say) -> None:
    turn = await running(store, clock, say)
    await store.release_turn(turn.id)
    again = await store.claim_turn(MAIN, clock.now())
    assert isinstance(again, ClaimedTurn)
    assert (turn.has_parcels, again.has_parcels) == (False, True)
    await store.start_draft(again.id, DRAFT)
    assert [(one.key, one.state) for one in await store.parcels()] == [("d", ParcelState.READY)]


async def test_a_turn_that_has_ended_begins_no_draft(store: Store, clock: FakeClock, say: Say) -> None:
    turn = await running(store, clock, say)
    await end(store, turn)
    with pytest.raises(StoreError, match="not running"):
        await store.start_draft(turn.id, DRAFT)
