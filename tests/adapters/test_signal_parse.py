"""Envelopes of signal-cli become arrivals: pure, nothing is fetched, every payload has one outcome."""

import json
from datetime import timedelta
from typing import Any

import pytest

from adapters.signal_samples import ME, SAMPLES, sample, view
from belino.adapters.signal.parse import context_from_json, context_to_json, parse, timer_of
from belino.domain.media import MediaKind
from belino.domain.message import Deletion, DeliveryState, DeliveryStatus, Edit, Message, Reaction, Unsupported
from belino.testing.clock import START

ANN = "5f0d7c52-6f0e-4a55-9d0b-0d5f4a1c9e01"
SILENT = {"typing", "typing_in_a_group", "story", "sync_read", "sync_contacts", "sync_story"}


def said(name: str) -> Message:
    (message,) = parse(sample(name), view())
    assert isinstance(message, Message), message
    return message


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_sample_has_one_outcome_and_is_parsed_again_from_a_recording(name: str) -> None:
    payload = sample(name)
    arrivals = parse(payload, view())
    assert len(arrivals) == (0 if name in SILENT else 2 if name == "receipt_delivery" else 1)
    told = json.loads(json.dumps(context_to_json(view(), payload)))
    assert parse(payload, context_from_json(told, view(bare=True))) == arrivals


def test_attachments_have_kind_name_size_and_type_and_the_first_carries_the_text() -> None:
    refs = said("attachments").media
    assert [(ref.kind, ref.file_name, ref.size, ref.mime) for ref in refs] == [
        (MediaKind.IMAGE, "garden.jpg", 84_211, "image/jpeg"),
        (MediaKind.VIDEO, "clip.mp4", 1_204_551, "video/mp4"),
        (MediaKind.DOCUMENT, "minutes.pdf", 48_120, "application/pdf"),
        (MediaKind.AUDIO, "song.mp3", 3_145_728, "audio/mpeg"),
    ]
    assert [ref.caption for ref in refs] == ["from today", "the pond", None, None]
    assert (refs[0].width, refs[0].height) == (1600, 1200)
    assert refs[0].locator == {"attachment": "Jk3x0Qd2mV8s4aLr.jpg", "channel": ANN}


@pytest.mark.parametrize("flag", [{}, {"voiceNote": True, "filename": "note.m4a"}])
def test_a_recording_of_the_apps_is_a_voice_message(flag: dict[str, Any]) -> None:
    payload = sample("voice")
    payload["envelope"]["dataMessage"]["attachments"][0] |= flag
    (message,) = parse(payload, view())
    assert isinstance(message, Message)
    (ref,) = message.media
    assert (ref.kind, ref.mime, ref.size) == (MediaKind.VOICE, "audio/aac", 21_877)


def test_a_sticker_is_named_by_its_pack_and_fetched_by_it() -> None:
    (ref,) = said("sticker").media
    assert (ref.kind, ref.mime) == (MediaKind.STICKER, "image/webp")
    assert ref.locator == {"pack": "00abac3bc18d7f599bff2325dc306d43", "sticker": "2"}


def test_a_quote_brings_its_thumbnails_under_the_names_of_what_they_show() -> None:
    message = said("quote_with_thumbnail")
    assert message.quote is not None
    (thumbnail,) = message.quote.media
    assert (message.quote.text, message.quote.author and message.quote.author.name) == ("look", "Ann")
    assert (thumbnail.file_name, thumbnail.kind, thumbnail.size) == ("garden.jpg", MediaKind.IMAGE, 3_901)
    assert thumbnail.message_id == message.reply_to == f"1767268700000.{ANN}"


def test_a_quote_of_ours_addresses_us_and_names_the_file_without_a_thumbnail() -> None:
    message = said("quote_of_ours")
    assert (message.addressed, message.reply_to) == (True, "1767268600000")
    assert message.quote is not None
    assert message.quote.text == "minutes.pdf"


def test_mentions_are_written_as_names_also_behind_emoji() -> None:
    message = said("mentions")
    assert message.text == "😀 @Ann and @belino, look"
    assert (message.addressed, message.mentions_another) == (True, True)


def test_an_edit_names_the_first_edition_whichever_one_it_targets() -> None:
    known = view()
    (first,) = parse(sample("edit"), known)
    assert isinstance(first, Edit)
    assert (first.message_id, first.text) == (f"1767268700000.{ANN}", "corrected")
    assert first.id == f"1767268900000.{ANN}"
    again = sample("edit")
    again["envelope"]["editMessage"] |= {"targetSentTimestamp": 1767268900000}
    again["envelope"]["editMessage"]["dataMessage"]["timestamp"] = 1767268950000
    (second,) = parse(again, view(aliases={first.id: first.message_id}))
    assert isinstance(second, Edit)
    assert (second.message_id, second.id != first.id) == (first.message_id, True)


def test_deletions_are_by_the_sender_or_by_an_administrator() -> None:
    (own,) = parse(sample("remote_delete"), view())
    (by_admin,) = parse(sample("admin_delete"), view())
    assert isinstance(own, Deletion) and isinstance(by_admin, Deletion)
    assert own.message_id == by_admin.message_id == f"1767268700000.{ANN}"
    assert (own.author is not None, by_admin.author) == (True, None)


def test_a_reaction_names_its_message_by_author_and_time() -> None:
    (added,) = parse(sample("reaction"), view())
    (removed,) = parse(sample("reaction_removed"), view())
    assert isinstance(added, Reaction) and isinstance(removed, Reaction)
    assert (added.emoji, added.added, added.message_id) == ("👍", True, "1767268600000")
    assert not removed.added
    assert (added.replaces, removed.replaces) == (True, True)


def test_receipts_of_a_groups_members_for_one_message_are_one() -> None:
    first, second = sample("receipt_read"), sample("receipt_read")
    second["envelope"] |= {"sourceUuid": "00000000-0000-4000-8000-000000000002", "sourceNumber": "+4915200000009"}
    known = view(places={"1767268600000": "group.abc="})
    (of_one,), (of_other,) = parse(first, known), parse(second, known)
    assert isinstance(of_one, DeliveryStatus) and isinstance(of_other, DeliveryStatus)
    assert (of_one.id, of_one.conversation) == (of_other.id, of_other.conversation)
    assert of_one.state is DeliveryState.READ


def test_receipts_are_about_our_messages_and_name_their_place() -> None:
    first, second = parse(sample("receipt_delivery"), view(places={"1767268600000": "group.abc="}))
    assert isinstance(first, DeliveryStatus) and isinstance(second, DeliveryStatus)
    assert (first.state, first.conversation.channel, first.message_id) == (
        DeliveryState.DELIVERED,
        "group.abc=",
        "1767268600000",
    )
    assert second.conversation.channel == ANN


def test_media_to_be_viewed_once_are_refused_with_a_sentence_and_leave_no_ref() -> None:
    once = said("view_once")
    assert once.text == "Media to be viewed once, which belino does not open or keep; ask for it as an ordinary message"
    assert (once.addressed, once.media) == (True, ())


def test_a_message_with_a_timer_expires_that_long_after_it_came() -> None:
    assert said("timer").expires == START + timedelta(seconds=3600)
    assert said("text").expires is None


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("timer_changed", "the timer of disappearing messages was changed"),
        ("group_update", "the group was changed"),
        ("call", "a call"),
        ("poll_vote", "a vote in a poll"),
        ("payment", "a payment"),
        ("untrusted", "a message under a new safety number of Ann, which is read once the number is trusted"),
        ("undecryptable", "a message that signal-cli could not read (ProtocolInvalidMessageException)"),
        ("error_of_an_older_daemon", "a message that signal-cli could not read (ProtocolInvalidMessageException)"),
        ("attachment_without_id", "a file that signal-cli does not hold"),
    ],
)
def test_what_is_no_message_is_told_by_its_kind(name: str, what: str) -> None:
    (arrival,) = parse(sample(name), view())
    assert isinstance(arrival, Unsupported)
    assert arrival.what == what


def test_a_message_without_any_content_is_a_notice_that_is_not_answered() -> None:
    (arrival,) = parse(sample("empty"), view())
    assert isinstance(arrival, Unsupported)
    assert (arrival.what, arrival.is_notice) == ("an empty message", True)


def test_an_address_may_be_a_number_alone() -> None:
    old, mention = said("older_daemon"), said("mention_by_number")
    assert (old.text, old.author.id, old.conversation.channel) == ("hi", "+4915200000002", "group.T2xkR3JvdXA=")
    assert (mention.addressed, mention.mentions_another) == (True, False)


def test_contacts_polls_and_previews_are_lines_of_text() -> None:
    assert said("contact").text == "Contact: Dr. Eve Example, Example Ltd, +4917012345678, eve@example.org"
    assert said("poll").text == "Poll (several answers): Where to?\n- Lake\n- Hill"
    assert said("preview").text.endswith("Preview of https://example.org/walk: A walk – Ten kilometres")


def test_messages_of_the_accounts_own_phone_are_the_agents_except_to_itself() -> None:
    own, note = said("sync_sent"), said("sync_note_to_self")
    assert (own.author.is_agent, own.conversation.channel, own.id) == (True, ANN, "1767268800000")
    assert (note.author.is_agent, note.conversation.channel, note.addressed) == (False, ME.uuid, True)


@pytest.mark.parametrize(
    "payload",
    [None, [], {}, {"envelope": None}, {"envelope": {"dataMessage": "x"}}, {"envelope": {"timestamp": "x"}},
     {"envelope": {"dataMessage": {"timestamp": -1, "mentions": [{"start": 10**12}], "quote": {"id": []}}}},
     {"envelope": {"syncMessage": {"sentMessage": {"timestamp": 10**30, "message": "\ud800"}}}},
     {"envelope": {"receiptMessage": {"timestamps": ["x", 10**30, True]}}}],
)  # fmt: skip
def test_a_malformed_payload_is_parsed_without_an_error(payload: Any) -> None:
    parse(payload, view())
    timer_of(payload, view())
