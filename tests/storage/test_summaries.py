"""The store at a glance."""

from collections.abc import Callable

from belino.domain.media import MediaRef
from belino.domain.message import ChatType, ConversationKey, Message
from belino.domain.outcome import Standing, TurnState
from belino.domain.reply import Parcel
from belino.domain.stored import ClaimedTurn, TurnEnd, Verdict
from belino.storage.store import Store
from belino.testing.clock import START, FakeClock

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")

Say = Callable[..., Message]


async def test_a_conversation_is_known_before_anything_is_said_and_keeps_its_name(store: Store, say: Say) -> None:
    await store.open_conversation(MAIN, "Main", ChatType.DIRECT)
    await store.open_conversation(MAIN, "Home", ChatType.DIRECT)
    (summary,) = await store.conversations()
    assert (summary.conversation, summary.name, summary.messages, summary.last) == (MAIN, "Home", 0, None)
    await store.take_in(say("1"), OBSERVE)
    (summary,) = await store.conversations()
    assert (summary.name, summary.messages) == ("Home", 1)


async def test_conversations_are_listed_with_their_last_word_the_latest_first(
    store: Store, clock: FakeClock, say: Say
) -> None:
    thread = ConversationKey(platform="web", account="default", channel="main", thread="t")
    abroad = ConversationKey(platform="telegram", account="default", channel="7")
    for number, key in enumerate((MAIN, thread, abroad, MAIN)):
        await store.take_in(say(str(number), f"word {number}", conversation=key, channel_name="Main"), ANSWER)
        clock.shift(1)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    listed = await store.conversations()
    assert [summary.conversation for summary in listed] == [MAIN, abroad, thread]
    assert (listed[0].messages, listed[0].last_text, listed[0].last_author) == (2, "word 3", "Anna")
    assert [summary.waiting for summary in listed] == [2, 1, 1]  # one of them running
    assert [summary.conversation for summary in await store.conversations(platform="telegram")] == [abroad]


async def test_channels_are_listed_with_what_they_hold(
    store: Store, clock: FakeClock, say: Say, photo: Callable[..., MediaRef]
) -> None:
    thread = ConversationKey(platform="web", account="default", channel="main", thread="t")
    await store.take_in(say("1", media=(photo("1"),)), OBSERVE)
    await store.take_in(say("2", conversation=thread, chat_type=ChatType.GROUP), OBSERVE)
    (channel,) = await store.channels()
    assert channel.channel == MAIN
    assert (channel.messages, channel.media, channel.media_held, channel.last) == (2, 1, 0, START)
    assert (channel.name, channel.chat_type) == ("main", ChatType.GROUP)


async def test_numbers_for_status_are_counted(store: Store, clock: FakeClock, say: Say) -> None:
    await store.take_in(say("1"), ANSWER)
    await store.take_in(say("2"), ANSWER)
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn)
    parcel = Parcel(key="p", conversation=MAIN, text="hi")
    await store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,)))
    counts = await store.counts()
    assert (counts["messages"], counts["channels"], counts["turns_waiting"], counts["turns_answered"]) == (2, 1, 1, 1)
    assert counts["parcels_ready"] == 1
    assert counts["turns_running"] == counts["parcels_dead"] == 0


async def test_history_is_paged_both_ways(store: Store, say: Say) -> None:
    for number in range(1, 8):
        await store.take_in(say(str(number)), OBSERVE)

    async def page(**wanted: int) -> list[int]:
        return [message.seq for message in await store.history(MAIN, **wanted)]

    assert await page() == [1, 2, 3, 4, 5, 6, 7]
    assert await page(limit=3) == [5, 6, 7]
    assert await page(limit=3, before=5) == [2, 3, 4]
    assert await page(limit=3, after=2) == [3, 4, 5]
    assert await page(after=7) == []
    assert await page(after=2, before=5) == [3, 4]
    assert await page(before=1) == []
    assert await page(before=2**62) == [1, 2, 3, 4, 5, 6, 7]
    assert await page(after=2**62) == []
    assert await page(before=-(2**62)) == []
