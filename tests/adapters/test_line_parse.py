"""What LINE tells becomes arrivals: each event ends in one, and nothing is fetched for it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.line_samples import ADA, GROUP, NAMES, OWN, RECEIVED, one, parsed, sample, view
from belino.adapters.line.parse import context_from_json, context_to_json, parse
from belino.domain.media import MediaKind
from belino.domain.message import ChatType, Deletion, Edit, Message, Presence, Unsupported

FILES = {
    "image": (MediaKind.IMAGE, "image/jpeg", None, None, None),
    "image_external": (MediaKind.IMAGE, "image/jpeg", None, None, None),
    "video": (MediaKind.VIDEO, "video/mp4", None, None, 60.5),
    "video_external": (MediaKind.VIDEO, "video/mp4", None, None, 9.0),
    "audio": (MediaKind.VOICE, "audio/mp4", None, None, 4.2),
    "audio_external": (MediaKind.VOICE, "audio/mp4", None, None, 4.2),
    "file": (MediaKind.DOCUMENT, "application/pdf", "minutes.pdf", 20480, None),
    "file_song": (MediaKind.AUDIO, "audio/mpeg", "song.mp3", 3145728, None),
    "file_odd": (MediaKind.DOCUMENT, "application/octet-stream", "данные.bin7", 7, None),
    "sticker": (MediaKind.STICKER, "image/png", "sticker-446-1988.png", None, None),
}


@pytest.mark.parametrize("name", NAMES)
def test_every_event_ends_in_exactly_one_arrival(name: str) -> None:
    (arrival,) = parsed(sample(name))
    assert arrival.id and arrival.sent.tzinfo is UTC
    assert arrival.conversation.channel


def test_a_text_has_its_time_to_the_millisecond_its_author_and_the_author_s_language() -> None:
    said = one("text")
    assert (said.text, said.author.id, said.author.name) == ("Good evening, what is on tomorrow?", ADA, "Ada")
    assert (said.chat_type, said.addressed, said.language) == (ChatType.DIRECT, True, "de-AT")
    assert said.sent == datetime.fromtimestamp(1767323046.123, UTC)
    assert said.conversation.channel == ADA


def test_in_a_group_a_mention_of_the_account_or_a_quote_of_its_message_addresses_it() -> None:
    for name, addressed, another in (
        ("text_group", False, False),
        ("text_mention", True, False),
        ("text_mention_other", False, True),
        ("text_mention_all", False, True),
        ("text_quote", True, False),
        ("text_room", False, False),
    ):
        said = one(name)
        assert (said.addressed, said.mentions_another) == (addressed, another), name
        assert said.chat_type is ChatType.GROUP
    assert one("text_group").conversation.channel == GROUP
    assert one("text_group").channel_name == "Trip"
    assert one("text_quote").reply_to == OWN


def test_what_comes_for_another_module_is_kept_and_not_answered() -> None:
    assert one("text_standby").addressed is False


def test_a_message_that_comes_again_is_the_same_message() -> None:
    first = sample("text")
    (again,) = parsed({**first, "deliveryContext": {"isRedelivery": True}})
    assert again == one("text")


@pytest.mark.parametrize("name", FILES)
def test_every_attachment_is_a_ref_with_kind_type_name_and_length(name: str) -> None:
    (ref,) = one(name).media
    assert (ref.kind, ref.mime, ref.file_name, ref.size, ref.duration) == FILES[name]
    assert "://" not in json.dumps(dict(ref.locator))


def test_where_a_file_elsewhere_is_stands_in_the_sealed_part_alone() -> None:
    (ref,) = one("image_external").media
    assert dict(ref.sealed) == {"url": "https://pictures.example/full.jpg"}
    assert "pictures.example" not in repr(ref) and set(ref.locator) == {"external"}


def test_pictures_that_were_sent_together_are_an_album() -> None:
    first, second = one("image_set_1"), one("image_set_2")
    assert first.album == second.album == "C0FFEE0123456789AB"
    assert first.id != second.id
    assert one("image_set_no_index").album == "C0FFEE0123456789AC"
    assert one("image").album is None


def test_places_and_stickers_are_lines_of_text() -> None:
    assert one("location").text == "Location: 45.649526, 13.776818 (the harbour, Pier 4, Trieste)"
    assert one("location_bare").text == "Location: 1.500000, -2.250000 (somewhere)"
    assert one("sticker").text == "Sticker: Hi, Wave"
    assert one("sticker_text").text == "Sticker: On my way"


def test_a_place_or_sticker_without_its_parts_is_told_all_the_same() -> None:
    for message, text in (
        ({"id": "1", "type": "location"}, "Location: unknown"),
        ({"id": "1", "type": "sticker", "packageId": "x/../y", "stickerId": "1"}, "Sticker"),
    ):
        said = one("text", message=message)
        assert (said.text, said.media) == (text, ())


def test_an_unsent_message_is_deleted_and_an_edited_one_changed() -> None:
    unsent, direct, edited = one("unsend"), one("unsend_direct"), one("edited")
    assert isinstance(unsent, Deletion) and isinstance(direct, Deletion) and isinstance(edited, Edit)
    assert unsent.message_id == edited.message_id == one("text_group").id
    assert (unsent.chat_type, direct.chat_type) == (ChatType.GROUP, ChatType.DIRECT)
    assert unsent.author is not None and unsent.author.id == ADA
    assert edited.text == "lunch at one, anybody?"


def test_a_press_of_a_choice_has_its_key_and_another_its_words() -> None:
    choice, menu, date = one("postback_choice"), one("postback"), one("postback_date")
    assert (choice.press, choice.text) == ("0123456789ab", "")
    assert (menu.press, menu.text, menu.addressed) == (None, "Menu: action=menu&item=7", True)
    assert date.text == "Menu: day (2026-02-03)"


@pytest.mark.parametrize(
    ("name", "presence"),
    [
        ("join", Presence.ADDED),
        ("leave", Presence.REMOVED),
        ("follow", Presence.ADDED),
        ("unfollow", Presence.REMOVED),
        ("member_joined", None),
        ("member_left", None),
    ],
)
def test_joining_and_leaving_are_told_and_only_the_account_s_own_changes_its_presence(
    name: str, presence: Presence | None
) -> None:
    event = one(name)
    assert isinstance(event, Unsupported)
    assert (event.is_event, event.presence, event.addressed) == (True, presence, False)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("beacon", "beacon"),
        ("unknown", "telepathy"),
        ("message_unknown", "hologram"),
        ("bot_suspended", "suspended the account"),
        ("video_play_complete", "watched a video"),
        ("delivery", "delivery"),
    ],
)
def test_what_is_no_message_is_told_as_what_it_is(name: str, what: str) -> None:
    event = one(name)
    assert isinstance(event, Unsupported) and what in event.what


def test_an_event_without_a_place_starts_no_direct_conversation() -> None:
    assert one("bot_suspended").chat_type is ChatType.CHANNEL


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        "text",
        {},
        {"type": 7},
        {"type": "message"},
        {"type": "message", "message": {"id": 5}},
        {"type": "message", "message": {"id": "5", "type": "text", "text": 9}, "source": {"type": "user"}},
        {"type": "unsend", "unsend": {}},
        {"type": "postback", "postback": {"data": ["x"]}},
        {"type": "message", "timestamp": -1, "message": {"id": "5", "type": "image", "imageSet": []}},
        {"type": "message", "timestamp": 10**30, "message": {"id": "5", "type": "sticker", "keywords": "x"}},
    ],
)
def test_what_cannot_be_read_is_unsupported_and_breaks_nothing(raw: Any) -> None:
    (arrival,) = parsed(raw)
    assert isinstance(arrival, Unsupported | Message)
    assert arrival.id


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_event_is_parsed_to_the_same_arrivals(name: str) -> None:
    raw = sample(name)
    known = json.loads(json.dumps(context_to_json(view(), raw)))
    assert parse(raw, context_from_json(known, "default", RECEIVED)) == parsed(raw)
