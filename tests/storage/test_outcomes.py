"""The story of a message, told from the store."""

from collections.abc import Callable
from datetime import timedelta

from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import MediaOutcome, Stage, Standing, Step, TurnState
from belino.domain.reply import Parcel, Receipt
from belino.domain.stored import ClaimedTurn, TurnEnd, Verdict
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.engines import Engine

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
AGENT = Author(id="belino", name="belino", is_agent=True)

Say = Callable[..., Message]


async def answered(store: Store, clock: FakeClock, message: Message) -> ClaimedTurn:
    await store.take_in(message, ANSWER)
    clock.shift(1)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    clock.shift(1)
    await store.note(
        turn.trace, Step(at=clock.now(), stage=Stage.TOOL, outcome="ok", reason="fetched", subject="fetch_media")
    )
    clock.shift(1)
    parcel = Parcel(key="p", conversation=MAIN, text="a picture", trace=turn.trace)
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,)))
    clock.shift(1)
    await store.claim_parcel(MAIN, clock.now())
    await store.delay_parcel("p", clock.now(), "the platform was busy")
    await store.claim_parcel(MAIN, clock.now())
    await store.confirm_parcel("p", Receipt(message_id="m", sent=clock.now()), AGENT)
    return turn


async def test_a_story_tells_every_stage_in_order_even_after_a_restart(
    engine: Engine, clock: FakeClock, say: Say, photo: Callable[..., MediaRef]
) -> None:
    store = await engine.open()
    await answered(store, clock, say("1", media=(photo("1"),)))
    await store.close()
    store = await engine.open()
    story = await store.story(MAIN, "1")
    assert story is not None
    assert [(step.stage, step.outcome, step.reason) for step in story.steps] == [
        (Stage.RECEIVED, "message", ""),
        (Stage.STORED, "stored", ""),
        (Stage.GATE, "may_command", "on the list"),
        (Stage.TURN, "waiting", ""),
        (Stage.MEDIA, "referenced", ""),
        (Stage.TURN, "running", "attempt 1"),
        (Stage.TOOL, "ok", "fetched"),
        (Stage.TURN, "answered", ""),
        (Stage.REPLY, "text", ""),
        (Stage.DELIVERY, "sent", "2 attempts"),
    ]
    assert [record.ref.message_id for record in story.refs] == ["1"]
    assert [(parcel.key, parcel.message_id) for parcel in story.parcels] == [("p", "m")]
    await store.close()


async def test_the_agents_own_message_has_the_same_story(store: Store, clock: FakeClock, say: Say) -> None:
    await answered(store, clock, say("1"))
    asked, answer = await store.story(MAIN, "1"), await store.story(MAIN, "m")
    assert asked is not None
    assert answer is not None
    assert (asked.message.id, answer.message.id) == ("1", "m")
    assert asked.steps == answer.steps


async def test_a_later_item_of_an_album_is_told_the_turn_it_joined(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("0", album="a"), ANSWER, ready=clock.now() + timedelta(milliseconds=500))
    await answered(store, clock, say("1", album="a"))
    story = await store.story(MAIN, "1")
    assert story is not None
    stages = {step.stage for step in story.steps}
    assert {Stage.TURN, Stage.TOOL, Stage.REPLY, Stage.DELIVERY} <= stages
    assert story.message.trace != (await store.messages(MAIN, ["0"]))[0].trace


async def test_an_observed_message_ends_at_the_gate_with_its_reason(store: Store, say: Say) -> None:
    await store.take_in(say("1"), OBSERVE)
    story = await store.story(MAIN, "1")
    assert story is not None
    assert (story.steps[-1].stage, story.steps[-1].outcome, story.steps[-1].reason) == (
        Stage.GATE,
        "observed",
        "overheard",
    )
    assert story.parcels == ()
    assert await store.story(MAIN, "2") is None


async def test_what_became_of_media_is_part_of_the_story(
    store: Store, say: Say, photo: Callable[..., MediaRef]
) -> None:
    (ref,) = (await store.take_in(say("1", media=(photo("1"),)), OBSERVE)).refs
    await store.end_media(ref.id, MediaOutcome.TOO_LARGE, "over 100 MB")
    story = await store.story(MAIN, "1")
    assert story is not None
    assert [(step.outcome, step.reason, step.subject) for step in story.steps if step.stage is Stage.MEDIA] == [
        ("referenced", "", ref.id),
        ("too large", "over 100 MB", ref.id),
    ]


async def test_a_message_is_found_by_its_trace_or_its_platform_id(store: Store, clock: FakeClock, say: Say) -> None:
    turn = await answered(store, clock, say("1"))
    other = ConversationKey(platform="telegram", account="default", channel="main")
    await store.take_in(say("1", conversation=other), OBSERVE)
    assert [message.id for message in await store.find_messages(turn.trace)] == ["1"]
    assert {message.conversation for message in await store.find_messages("1")} == {MAIN, other}
    for unknown in ("", "nothing", "f" * 16, "0" * 16, "-" * 16, "٣" * 16):
        assert await store.find_messages(unknown) == ()


async def test_no_more_than_twenty_are_named(store: Store, say: Say) -> None:
    for number in range(25):
        await store.take_in(
            say("same", conversation=ConversationKey(platform="web", account="default", channel=str(number))), OBSERVE
        )
    assert len(await store.find_messages("same")) == 20
