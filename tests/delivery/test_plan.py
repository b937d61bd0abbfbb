"""A reply as parcels."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.delivery.decide import Action, Decision, decide
from belino.delivery.plan import REFUSALS_TOLD, parcel_key, plan
from belino.delivery.text import Text, length
from belino.domain.limits import FileLimit, Limits, Markup, Once, SendAs
from belino.domain.message import ConversationKey
from belino.domain.reply import Offer, Parcel, ParcelKind, Reply
from delivery.files import FILES, offer, picture
from delivery.platforms import KB, LINE, MB, PLATFORMS
from delivery.test_dialects import read_html

WHERE = ConversationKey(platform="web", account="default", channel="main")
LIMITS = Limits(text_chars=40, once=Once.KEY)
TELEGRAM, DISCORD = PLATFORMS["telegram"], PLATFORMS["discord"]


def planned(limits: Limits, *files: Offer, text: str = "") -> tuple[Parcel, ...]:
    """What a reply with files becomes; nothing is prepared, so what would be changed first is not sent."""
    reply = Reply(conversation=WHERE, text=text)
    return plan(reply, decide(files, limits), limits, turn=1, trace="t")


def photo(name: str, caption: str = "", size: int = 100 * KB) -> Offer:
    return picture(name, "image/jpeg", size, 800, 600, caption=caption)


def document(name: str, caption: str = "", size: int = 100 * KB) -> Offer:
    return offer(name, "application/pdf", size, caption=caption)


def names(parcels: Sequence[Parcel]) -> list[list[str]]:
    return [[file.name for file in parcel.files] for parcel in parcels]


def said(parcel: Parcel) -> str:
    return parcel.plain or parcel.text


def test_a_long_reply_becomes_parcels_under_the_platforms_limit() -> None:
    text = "First paragraph here.\n\nSecond paragraph, which is longer.\n\nThird."
    parcels = plan(Reply(conversation=WHERE, text=text), (), LIMITS, turn=7, trace="t")
    assert [parcel.text for parcel in parcels] == [
        "First paragraph here.",
        "Second paragraph, which is longer.",
        "Third.",
    ]
    assert all(len(parcel.text) <= 40 for parcel in parcels)


def test_the_same_reply_has_the_same_keys_so_that_planning_twice_sends_once() -> None:
    reply = Reply(conversation=WHERE, text="word " * 100)
    first, second = (plan(reply, (), LIMITS, turn=7, trace="t") for _ in range(2))
    assert [parcel.key for parcel in first] == [parcel.key for parcel in second]
    assert len({parcel.key for parcel in first}) == len(first) > 1
    assert parcel_key(7, 0, "t") != parcel_key(8, 0, "t")


def test_only_the_first_parcel_answers_the_message() -> None:
    parcels = plan(Reply(conversation=WHERE, text="word " * 20, reply_to="m1"), (), LIMITS, turn=1, trace="t")
    assert [parcel.reply_to for parcel in parcels] == ["m1", None, None]


def test_a_reply_without_anything_visible_makes_no_parcel() -> None:
    assert plan(Reply(conversation=WHERE, text=" \n" * 200), (), LIMITS, turn=1, trace="t") == ()


def test_files_come_in_the_order_named_and_then_the_text() -> None:
    parcels = planned(TELEGRAM, document("1.pdf"), photo("2.jpg"), document("3.pdf"), text="**Here.**")
    assert names(parcels) == [["1.pdf"], ["2.jpg"], ["3.pdf"], []]
    assert [parcel.kind for parcel in parcels] == [*[ParcelKind.FILES] * 3, ParcelKind.TEXT]
    assert (parcels[3].text, parcels[3].plain, parcels[3].markup) == ("<b>Here.</b>", "Here.", Markup.HTML)


def test_neighbours_that_may_be_mixed_travel_as_one_album() -> None:
    video = offer("v.mp4", "video/mp4", MB)
    parcels = planned(TELEGRAM, photo("1.jpg"), video, document("2.pdf"), document("3.pdf"), FILES["mp3"])
    assert names(parcels) == [["1.jpg", "v.mp4"], ["2.pdf", "3.pdf"], ["song.mp3"]]


def test_an_album_is_split_where_it_is_full() -> None:
    parcels = planned(TELEGRAM, *(photo(f"{number}.jpg") for number in range(23)))
    assert [len(parcel.files) for parcel in parcels] == [10, 10, 3]
    assert [len(parcel.files) for parcel in planned(LINE, photo("1.jpg"), photo("2.jpg"))] == [1, 1]


def test_an_album_is_split_where_it_weighs_too_much_together() -> None:
    parcels = planned(DISCORD, *(photo(f"{number}.jpg", size=9 * MB) for number in range(3)))
    assert [len(parcel.files) for parcel in parcels] == [2, 1]


def test_captions_travel_with_their_files() -> None:
    (parcel,) = planned(TELEGRAM, photo("1.jpg", "*one* & only"), photo("2.jpg", "two"))
    assert [(file.caption, file.plain) for file in parcel.files] == [
        ("<i>one</i> &amp; only", "one & only"),
        ("two", ""),
    ]


def test_a_caption_that_is_too_long_follows_as_text_right_behind_its_file() -> None:
    long = "word " * 300
    parcels = planned(TELEGRAM, photo("1.jpg", long), document("2.pdf"), text="Done.")
    assert names(parcels) == [["1.jpg"], [], ["2.pdf"], []]
    assert parcels[0].files[0].caption == ""
    assert said(parcels[1]) == long.strip()
    assert said(parcels[3]) == "Done."


def test_captions_that_follow_an_album_name_their_files() -> None:
    parcels = planned(TELEGRAM, photo("1.jpg", "word " * 300), photo("2.jpg", "short"))
    assert [file.caption for file in parcels[0].files] == ["", "short"]
    assert said(parcels[1]).startswith("1.jpg: word word")


def test_a_platform_without_captions_gets_them_as_text() -> None:
    parcels = planned(LINE, photo("1.jpg", "one"), text="Done.")
    assert [(names([parcel])[0], said(parcel)) for parcel in parcels] == [(["1.jpg"], ""), ([], "one"), ([], "Done.")]


def test_a_sticker_takes_no_caption_along() -> None:
    sticker = replace(FILES["webp as sticker"], caption="hello")
    parcels = planned(TELEGRAM, sticker)
    assert [(parcel.kind, said(parcel)) for parcel in parcels] == [(ParcelKind.FILES, ""), (ParcelKind.TEXT, "hello")]


def test_a_file_that_travels_alone_leaves_its_text_behind() -> None:
    alone = replace(DISCORD, files={**DISCORD.files, SendAs.DOCUMENT: FileLimit(max_bytes=MB, alone=True)})
    parcels = planned(alone, document("2.pdf"), text="Done.")
    assert [(names([parcel])[0], said(parcel)) for parcel in parcels] == [(["2.pdf"], ""), ([], "Done.")]


def test_where_text_travels_with_files_they_go_with_its_first_part() -> None:
    parcels = planned(DISCORD, photo("1.jpg", "look"), document("2.pdf"), text="word " * 500)
    assert names(parcels) == [["1.jpg", "2.pdf"], []]
    assert parcels[0].kind is ParcelKind.FILES
    assert said(parcels[0]).startswith("1.jpg: look\n\nword word")
    assert all(len(parcel.text) <= 2_000 for parcel in parcels)


def test_what_is_refused_is_named_in_the_text_with_its_reason() -> None:
    parcels = planned(TELEGRAM, document("big_*file*.pdf", "the report", size=60 * MB), photo("1.jpg"), text="Here.")
    assert names(parcels) == [["1.jpg"], []]
    assert said(parcels[1]) == (
        "Here.\n\nthe report\nbig_*file*.pdf was not sent: it has 60.0MB, and at most 50.0MB are taken here."
    )


def test_refusals_are_told_even_without_any_text() -> None:
    (parcel,) = planned(TELEGRAM, document("a.pdf", size=60 * MB))
    assert said(parcel) == "a.pdf was not sent: it has 60.0MB, and at most 50.0MB are taken here."


def test_of_many_refusals_the_last_are_named_and_the_rest_counted() -> None:
    (parcel,) = planned(TELEGRAM, *(document(f"{number}.pdf", size=60 * MB) for number in range(9)))
    assert said(parcel).startswith("4 more files were not sent.\n4.pdf was not sent")
    assert said(parcel).count("was not sent") == REFUSALS_TOLD


def test_a_file_that_was_to_be_changed_and_was_not_is_never_sent_as_it_is() -> None:
    (parcel,) = planned(TELEGRAM, FILES["large jpeg"])
    assert said(parcel) == "b.jpg was not sent: it was not made ready to be sent."


captions = st.sampled_from(["", "", "a *caption*", "word " * 400, "😀" * 900])
offers = st.lists(
    st.tuples(st.sampled_from(sorted(FILES)), captions, st.sampled_from([None, *SendAs])), max_size=25
).map(
    lambda chosen: [
        replace(FILES[name], name=f"{place}-{FILES[name].name}", caption=words, wanted=wish or FILES[name].wanted)
        for place, (name, words, wish) in enumerate(chosen)
    ]
)
replies = st.one_of(
    st.just(""), st.text(max_size=200), st.integers(1, 400).map(lambda times: "**bold** word.\n" * times)
)


def done(decision: Decision, limits: Limits) -> Decision:
    """As if it had been prepared: what was to be changed fits now."""
    if decision.action in (Action.SEND, Action.REFUSE):
        return decision
    limit = limits.files[decision.send_as].of(decision.offer.mime)
    mime = decision.fit.formats[0] if decision.fit else "audio/ogg"
    made = replace(decision.offer, size=limit.max_bytes, mime=mime, codec="opus", width=512, height=512)
    return replace(decision, action=Action.SEND, offer=made)


def check_limits(parcel: Parcel, limits: Limits) -> None:
    if parcel.text:
        assert length(Text(text=parcel.text, plain=parcel.plain), limits) <= limits.text_chars
    assert len(parcel.files) <= max(1, limits.album_items)
    forms = {file.send_as for file in parcel.files}
    if len(parcel.files) > 1:
        assert any(forms <= mix for mix in limits.album_mixes)
        assert sum(file.size for file in parcel.files) <= (limits.album_bytes or 2**63)
    assert not (parcel.text and parcel.files) or limits.text_with_files
    for file in parcel.files:
        limit = limits.files[file.send_as].of(file.mime)
        assert 0 < file.size <= limit.max_bytes
        assert not limit.mimes or file.mime in limit.mimes
        assert length(Text(text=file.caption, plain=file.plain), limits) <= limits.caption_chars
        assert not file.caption or limit.caption
        if limit.max_sides and file.width and file.height:
            assert file.width + file.height <= limit.max_sides
            assert max(file.width, file.height) <= (limit.max_ratio or 2**31) * min(file.width, file.height)


@pytest.mark.parametrize("platform", sorted(PLATFORMS))
@settings(max_examples=25, deadline=None)
@given(files=offers, text=replies, prepared=st.booleans())
def test_a_plan_exceeds_no_limit_keeps_the_order_and_drops_nothing_without_a_word(
    platform: str, files: list[Offer], text: str, prepared: bool
) -> None:
    limits = PLATFORMS[platform]
    decisions = decide(files, limits)
    if prepared:
        decisions = tuple(done(decision, limits) for decision in decisions)
    parcels = plan(Reply(conversation=WHERE, text=text), decisions, limits, turn=1, trace="t")
    sent = [file.name for parcel in parcels for file in parcel.files]
    assert sent == [each.offer.name for each in decisions if each.action is Action.SEND]
    refused = [each for each in decisions if each.action is not Action.SEND]
    words = " ".join(said(parcel) for parcel in parcels)
    for each in refused[-REFUSALS_TOLD:]:
        assert each.offer.name in words
        assert each.reason
    assert len(refused) <= REFUSALS_TOLD or f"{len(refused) - REFUSALS_TOLD} more files" in words
    shown = words + "".join(file.plain or file.caption for parcel in parcels for file in parcel.files)
    assert shown.count("😀") >= 900 * sum(file.caption.startswith("😀") for file in files)
    for parcel in parcels:
        check_limits(parcel, limits)
        if limits.markup is Markup.HTML and "\r" not in parcel.text and "\0" not in parcel.text:
            assert read_html(parcel.text) == said(parcel)
