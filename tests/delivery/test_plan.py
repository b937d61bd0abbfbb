"""A reply as parcels."""

from belino.delivery.plan import parcel_key, plan
from belino.domain.limits import Limits, Once
from belino.domain.message import ConversationKey
from belino.domain.reply import Reply

WHERE = ConversationKey(platform="memory", account="default", channel="c1")
LIMITS = Limits(text_chars=40, once=Once.KEY)


def test_a_long_reply_becomes_parcels_in_order_each_within_the_limit() -> None:
    text = "First paragraph is here.\n\nSecond paragraph is here.\n\nThird."
    parcels = plan(Reply(conversation=WHERE, text=text), (), LIMITS, turn=7, trace="t")
    assert [parcel.text for parcel in parcels] == ["First paragraph is here.", "Second paragraph is here.\n\nThird."]
    assert all(parcel.conversation == WHERE and parcel.trace == "t" for parcel in parcels)


def test_the_same_turn_planned_twice_has_the_same_keys_and_no_two_parcels_share_one() -> None:
    reply = Reply(conversation=WHERE, text="word " * 100)
    first, second = (plan(reply, (), LIMITS, turn=7, trace="t") for _ in range(2))
    assert first == second
    assert len({parcel.key for parcel in first}) == len(first) > 5
    assert parcel_key(7, 0, "t") != parcel_key(8, 0, "t") != parcel_key(8, 0, "u")


def test_only_the_first_parcel_answers_to_the_message() -> None:
    parcels = plan(Reply(conversation=WHERE, text="word " * 20, reply_to="m1"), (), LIMITS, turn=1, trace="t")
    assert [parcel.reply_to for parcel in parcels] == ["m1", None, None]


def test_a_reply_with_nothing_to_see_makes_no_parcel() -> None:
    assert plan(Reply(conversation=WHERE, text=" \n" * 200), (), LIMITS, turn=1, trace="t") == ()
