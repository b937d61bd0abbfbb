"""Parsing of a linked device: every event of the samples, which neonize itself wrote, ends in one outcome."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.adapters.whatsapp.linked.parse import LinkedView, parse
from belino.domain.media import MediaKind
from belino.domain.message import (
    Arrival,
    ChatType,
    Deletion,
    DeliveryState,
    DeliveryStatus,
    Edit,
    Message,
    Presence,
    Reaction,
    Unsupported,
)

SAMPLES = sorted((Path(__file__).parent.parent / "samples" / "whatsapp" / "linked").glob("*.json"))
GROUP = "120363041234567890@g.us"
ANN = "4917012345678"
VIEW = LinkedView(me="4915550001@s.whatsapp.net", lid="9@lid", groups={GROUP: "Trips"})


def sample(name: str) -> Any:
    (path,) = [path for path in SAMPLES if path.stem == name]
    return json.loads(path.read_text(encoding="utf-8"))


def one(name: str) -> Arrival:
    (arrival,) = parse(sample(name), VIEW)
    return arrival


def message(name: str) -> Message:
    arrival = one(name)
    assert isinstance(arrival, Message), arrival
    return arrival


def unsupported(name: str) -> Unsupported:
    arrival = one(name)
    assert isinstance(arrival, Unsupported), arrival
    return arrival


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_event_has_an_outcome_and_no_arrival_holds_a_key(path: Path) -> None:
    arrivals = parse(json.loads(path.read_text(encoding="utf-8")), VIEW)
    assert arrivals
    assert "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" not in repr(arrivals)


def test_a_text_is_from_its_sender_in_their_chat() -> None:
    said = message("text")
    assert (said.text, said.id, said.conversation.channel) == ("Hello, how are you?", "3EB0C431C26A1916E07A", ANN)
    assert (said.author.id, said.author.name, said.addressed, said.chat_type) == (ANN, "Ann", True, ChatType.DIRECT)
    assert said.sent.isoformat() == "2025-11-17T17:20:00.123000+00:00"


def test_a_person_of_a_group_is_known_by_number_where_whatsapp_tells_it_and_the_message_by_the_hidden_id() -> None:
    said = message("text_group_hidden")
    assert (said.conversation.channel, said.channel_name, said.chat_type) == (GROUP, "Trips", ChatType.GROUP)
    assert (said.author.id, said.id) == (ANN, "3EB0C431C26A1916E07A.L123456789012345")
    assert said.addressed
    assert not said.mentions_another


@pytest.mark.parametrize(
    ("name", "kind", "facts"),
    [
        ("image", MediaKind.IMAGE, {"mime": "image/jpeg", "width": 640, "height": 480, "caption": "the summit"}),
        ("voice", MediaKind.VOICE, {"mime": "audio/ogg", "duration": 12.0}),
        ("video", MediaKind.VIDEO, {"mime": "video/mp4", "duration": 7.0, "width": 1280, "height": 720}),
        ("video_note", MediaKind.VIDEO, {"mime": "video/mp4"}),
        (
            "document",
            MediaKind.DOCUMENT,
            {"mime": "application/pdf", "file_name": "report.pdf", "caption": "please read"},
        ),
        ("sticker", MediaKind.STICKER, {"mime": "image/webp", "width": 512}),
    ],
)
def test_a_file_is_a_ref_with_its_facts_and_its_key_is_sealed(
    name: str, kind: MediaKind, facts: dict[str, object]
) -> None:
    (ref,) = message(name).media
    assert (ref.kind, ref.size) == (kind, 12345)
    assert {key: getattr(ref, key) for key in facts} == facts
    assert set(ref.locator) == {"type", "path", "encrypted", "plain"}
    assert ref.sealed == {"key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}


def test_a_file_to_be_viewed_once_has_neither_path_nor_key() -> None:
    (ref,) = message("view_once").media
    assert (dict(ref.locator), dict(ref.sealed), ref.kind) == ({"once": "yes"}, {}, MediaKind.IMAGE)


def test_places_contacts_and_polls_are_lines() -> None:
    assert message("location").text == "Location: 47.421100, 10.985300 (Zugspitze, 82475)"
    assert message("contact").text == "Contact: Bob, +49 170 2"
    assert message("poll").text == "Poll: When?\n- Monday\n- Friday"


def test_a_reply_to_us_is_addressed_and_brings_the_quoted_file_under_the_id_it_had() -> None:
    said = message("reply")
    assert said.quote is not None
    assert (said.addressed, said.reply_to) == (True, "3EB0AAAA.me")
    (ref,) = said.quote.media
    assert (ref.message_id, ref.item, said.quote.text) == ("3EB0AAAA.me", "0", "the summit")


def test_a_quoted_file_has_the_id_of_the_file_in_its_message() -> None:
    (ref,) = message("image").media
    raw = sample("reply")
    source = raw["data"]["Info"]["MessageSource"]
    source |= {"Chat": f"{ANN}@s.whatsapp.net", "Sender": f"{ANN}@s.whatsapp.net"}
    around = raw["data"]["Message"]["extendedTextMessage"]["contextInfo"]
    around |= {"stanzaID": ref.message_id, "participant": f"{ANN}@s.whatsapp.net"}
    (said,) = parse(raw, VIEW)
    assert isinstance(said, Message)
    assert said.quote is not None
    (quoted,) = said.quote.media
    identity = [(each.message_id, each.item, each.channel_id, each.locator, each.sealed) for each in (quoted, ref)]
    assert identity[0] == identity[1]


def test_a_forward_is_told_as_one_and_a_timer_is_kept() -> None:
    forwarded, timed = message("forwarded"), message("disappearing")
    assert forwarded.forward is not None
    assert (forwarded.text, forwarded.forward.text) == ("", "read this")
    assert timed.expires is not None
    assert (timed.expires - timed.sent).total_seconds() == 86400


def test_items_of_an_album_belong_together_and_its_parent_is_an_event() -> None:
    assert message("album_item").album == "3EB0EEEE"
    assert unsupported("album").is_event


def test_a_reaction_of_a_person_to_our_message_names_it_and_its_removal_says_so() -> None:
    added, removed = one("reaction"), one("reaction_removed")
    assert isinstance(added, Reaction)
    assert isinstance(removed, Reaction)
    assert (added.message_id, added.emoji, added.added) == ("3EB0BBBB.me", "👍", True)
    assert (removed.message_id, removed.emoji, removed.added, removed.replaces) == ("3EB0BBBB.me", "", False, True)


def test_edits_and_deletions_name_the_message_of_their_sender() -> None:
    edit, deletion = one("edit"), one("revoke")
    assert isinstance(edit, Edit)
    assert isinstance(deletion, Deletion)
    assert (edit.message_id, edit.text, deletion.message_id) == ("3EB0DDDD", "nine o'clock", "3EB0DDDD")


def test_what_the_owner_writes_on_the_phone_is_the_agents_for_others_and_a_question_to_oneself_is_one() -> None:
    own, note = message("own_on_phone"), message("note_to_self")
    assert (own.author.is_agent, own.id, own.conversation.channel) == (True, "3EB0C431C26A1916E07A.me", ANN)
    assert (note.author.is_agent, note.author.id, note.conversation.channel) == (False, "4915550001", "4915550001")


def test_receipts_of_others_are_states_of_our_messages() -> None:
    read = parse(sample("receipt_read"), VIEW)
    assert [each.message_id for each in read if isinstance(each, DeliveryStatus)] == ["3EB0FFFF.me", "3EB0FFFE.me"]
    (delivered,) = parse(sample("receipt_delivered"), VIEW)
    assert isinstance(delivered, DeliveryStatus)
    assert delivered.state is DeliveryState.DELIVERED
    own = sample("receipt_read")
    own["data"]["MessageSource"]["IsFromMe"] = True
    assert parse(own, VIEW) == ()


def test_the_history_has_the_messages_of_everyone_with_their_refs() -> None:
    said = parse(sample("history"), VIEW)
    assert [each.author.id for each in said if isinstance(each, Message)] == [ANN, "4917099999999", "4915550001"]
    assert isinstance(said[2], Message)
    assert (said[2].id, len(said[2].media)) == ("3EB0HIST2.me", 1)


def test_what_cannot_be_read_is_told_with_what_it_was() -> None:
    assert "viewed once" in unsupported("undecryptable").what
    assert "vote" in unsupported("vote").what
    assert unsupported("timer").is_notice
    assert unsupported("keys").is_event
    assert unsupported("status").is_event
    assert unsupported("unknown").what == "a message of the kind paymentReminderMessage"


def test_being_added_to_a_group_is_told() -> None:
    joined = unsupported("group_joined")
    assert (joined.presence, joined.channel_name, joined.author.id) == (Presence.ADDED, "Trips", ANN)
    left = sample("group_joined")
    left["data"] |= {"Leave": left["data"].pop("Join")}
    (gone,) = parse(left, VIEW)
    assert isinstance(gone, Unsupported)
    assert gone.presence is Presence.REMOVED


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_an_event_with_anything_in_the_place_of_anything_is_parsed(path: Path, data: st.DataObject) -> None:
    event = json.loads(path.read_text(encoding="utf-8"))
    place: Any = event
    while isinstance(place, dict) and place:
        key = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or data.draw(st.booleans()):
            place[key] = data.draw(JUNK)
            break
        place = place[key]
    assert all(isinstance(arrival.id, str) for arrival in parse(event, VIEW))
