"""Groups that ask for access, what the owner decided about each, and what the owner was told."""

from datetime import timedelta

from belino.domain.message import Author, ChatType, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.owner import PLATFORM_EVENT, GroupState
from belino.domain.stored import Verdict
from belino.storage.owner import TOLD_EVERY, WAITING_AT_MOST, WAITING_KEPT
from belino.storage.store import Store
from belino.testing.clock import FakeClock

ANN = Author(id="ann", name="Ann")


def group(name: str, *, account: str = "default") -> ConversationKey:
    return ConversationKey(platform="memory", account=account, channel=name)


async def states(store: Store) -> dict[str, GroupState]:
    return {one.channel.channel: one.state for one in await store.groups()}


async def test_a_group_asks_once_and_is_allowed_with_who_added_the_agent(store: Store, clock: FakeClock) -> None:
    asked = await store.ask_group(group("team"), "The Team", ANN)
    assert asked is not None and (asked.name, asked.inviter_id, asked.state) == ("The Team", "ann", GroupState.WAITING)
    assert await store.ask_group(group("team"), "Another name", None) is None
    clock.shift(60)
    decided = await store.decide_group(group("team"), GroupState.ALLOWED, everyone=True)
    assert decided is not None and (decided.everyone, decided.inviter_name, decided.decided) == (
        True,
        "Ann",
        clock.now(),
    )
    assert await store.groups() == (decided,)
    assert decided.code == asked.code and len(decided.code) == 6
    assert await store.decide_group(group("nowhere"), GroupState.ALLOWED) is None


async def test_of_a_refused_group_nothing_but_its_id_is_kept(store: Store) -> None:
    await store.ask_group(group("team"), "The Team", ANN)
    refused = await store.decide_group(group("team"), GroupState.REFUSED, everyone=True)
    assert refused is not None
    assert (refused.name, refused.inviter_id, refused.inviter_name, refused.everyone) == ("", "", "", False)
    assert await store.ask_group(group("team"), "The Team", ANN) is None
    assert await store.forget_group(group("team"), only=GroupState.WAITING) is False
    assert await store.forget_group(group("team")) is True
    assert await store.forget_group(group("team")) is False
    assert await store.ask_group(group("team"), "The Team", ANN) is not None


async def test_a_request_without_a_decision_ends_after_a_week_and_a_decision_does_not(
    store: Store, clock: FakeClock
) -> None:
    await store.ask_group(group("old"), "Old", ANN)
    await store.ask_group(group("kept"), "Kept", None)
    await store.decide_group(group("kept"), GroupState.ALLOWED)
    clock.shift(WAITING_KEPT / 1_000_000)
    assert await states(store) == {"kept": GroupState.ALLOWED}
    assert await store.ask_group(group("old"), "Old", ANN) is not None


async def test_a_crowd_of_groups_cannot_fill_the_list_of_an_account(store: Store) -> None:
    for number in range(WAITING_AT_MOST):
        assert await store.ask_group(group(f"g{number}"), "", None) is not None
    assert await store.ask_group(group("one more"), "", None) is None
    assert await store.ask_group(group("g0", account="other"), "", None) is not None
    await store.decide_group(group("g0"), GroupState.REFUSED)
    assert await store.ask_group(group("one more"), "", None) is not None


async def test_a_notice_of_one_kind_is_told_once_an_hour_and_its_text_renewed(store: Store, clock: FakeClock) -> None:
    assert timedelta(hours=1) == timedelta(microseconds=TOLD_EVERY)
    first = await store.notice("account a", "it is down")
    assert first is not None and first.text == "it is down"
    clock.shift(3_599)
    assert await store.notice("account a", "it is still down") is None
    assert await store.notice("account b", "it is down too") is not None
    assert [one.text for one in await store.owner_notices()] == ["it is still down", "it is down too"]
    clock.shift(1)
    assert await store.notice("account a", "for an hour") is not None


async def test_a_closed_notice_is_not_shown_and_not_told_again_within_the_hour(store: Store, clock: FakeClock) -> None:
    await store.notice("account a", "it is down")
    assert await store.close_notice("account a") is True
    assert await store.close_notice("account a") is False
    assert await store.owner_notices() == ()
    assert await store.notice("account a", "it is down again") is None
    assert [one.text for one in await store.owner_notices()] == ["it is down again"]
    await store.close_notice("account a")
    clock.shift(2 * 24 * 3600)
    assert await store.notice("another", "that is all") is not None
    assert [one.kind for one in await store.owner_notices()] == ["another"]


async def test_the_direct_messages_with_a_person_are_those_where_they_wrote_last(
    store: Store, clock: FakeClock
) -> None:
    assert await store.direct_channel("memory", "default", "ann") is None
    may = Verdict(standing=Standing.MAY_COMMAND, reason="")
    for number, (channel, sort) in enumerate(
        [("old", ChatType.DIRECT), ("new", ChatType.DIRECT), ("team", ChatType.GROUP)]
    ):
        clock.shift(1)
        message = Message(
            conversation=group(channel), id=str(number), author=ANN, sent=clock.now(), text="x", chat_type=sort
        )
        await store.take_in(message, may)
    assert await store.direct_channel("memory", "default", "ann") == group("new")
    assert await store.direct_channel("memory", "other", "ann") is None


async def test_platform_noise_is_counted_apart_from_denied_people(store: Store, clock: FakeClock) -> None:
    message = Message(conversation=group("team"), id="1", author=ANN, sent=clock.now(), text="x")
    for reason in (PLATFORM_EVENT, "the channel is not listed", PLATFORM_EVENT):
        await store.take_in(message, Verdict(standing=Standing.DENIED, reason=reason))
    counts = await store.counts()
    assert (counts["denied"], counts["noise"]) == (1, 2)
