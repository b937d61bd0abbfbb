"""WhatsApp's webhooks become arrivals: each payload ends in something, each file in a ref, and nothing is fetched."""

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.whatsapp_samples import ADA, NAMES, VIEW, message, one, parsed, sample
from belino.adapters.whatsapp.parse import parse
from belino.domain.media import MediaKind
from belino.domain.message import (
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

HOLD = {"status_failed_window": DeliveryState.WINDOW_CLOSED, "status_failed_pair": DeliveryState.AGAIN}


@pytest.mark.parametrize("name", NAMES)
def test_every_payload_ends_in_arrivals_of_this_account_that_name_no_url_of_a_file(name: str) -> None:
    arrivals = parsed(sample(name))
    assert arrivals
    for arrival in arrivals:
        assert (arrival.conversation.platform, arrival.conversation.account) == ("whatsapp", "default")
        assert arrival.id and arrival.conversation.channel
        if isinstance(arrival, Message):
            assert not any("://" in value for ref in arrival.media for value in ref.locator.values())


@pytest.mark.parametrize(
    ("name", "kind", "mime", "file_name"),
    [
        ("image", MediaKind.IMAGE, "image/jpeg", None),
        ("image_without_caption", MediaKind.IMAGE, "image/jpeg", None),
        ("image_with_url", MediaKind.IMAGE, "image/jpeg", None),
        ("video", MediaKind.VIDEO, "video/mp4", None),
        ("audio", MediaKind.AUDIO, "audio/mpeg", None),
        ("voice", MediaKind.VOICE, "audio/ogg", None),
        ("document", MediaKind.DOCUMENT, "application/pdf", "invoice.pdf"),
        ("document_picture", MediaKind.IMAGE, "image/png", "scan.png"),
        ("sticker", MediaKind.STICKER, "image/webp", None),
        ("sticker_animated", MediaKind.STICKER, "image/webp", None),
    ],
)
def test_a_file_is_a_ref_of_its_kind_and_type(name: str, kind: MediaKind, mime: str, file_name: str | None) -> None:
    (ref,) = message(name).media
    assert (ref.kind, ref.mime, ref.file_name) == (kind, mime, file_name)
    assert set(ref.locator) == {"media", "sha256"} and ref.locator["media"] == ref.item


def test_a_checksum_reads_the_same_in_base64_and_in_hex() -> None:
    (base64,), (hexadecimal,) = message("image").media, message("image_hex_checksum").media
    assert base64.locator["sha256"] == hexadecimal.locator["sha256"] == base64.file_id


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("location", "Location: 37.442100, -122.161000 (Philz Coffee, 101 Forest Ave, Palo Alto) https://example.org/"),
        ("contacts", "Contact: Barbara Johnson, Social Tsunami, +1 650-555-9999, barbara@example.org"),
        ("button", "Unsubscribe"),
        ("interactive_button", "Cancel"),
        ("interactive_list", "Priority Mail Express: Next Day to 2 Days"),
        ("interactive_form", "flow\n- size: 42"),
        ("order", "- 2 × di9ozbzfi4, 30 USD each"),
        ("sticker_animated", "Sticker (animated)"),
        ("text_product", "About the product di9ozbzfi4"),
        ("text_advertisement", "Came from an advertisement: Chat with us"),
        ("text_surrogate", "half \ufffd of an emoji"),
    ],
)
def test_what_is_no_text_is_told_in_lines(name: str, lines: str) -> None:
    assert lines in message(name).text


def test_the_token_of_a_form_is_not_told() -> None:
    assert "token-of-the-form" not in message("interactive_form").text


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("unsupported", "a poll: WhatsApp does not support this kind of message [131051]"),
        ("unknown", "a message that the Cloud API does not show: WhatsApp does not support"),
        ("unsupported_media", "the person's file could not be downloaded by WhatsApp [131052]"),
        ("future_kind", "hologram"),
        ("media_without_id", "image"),
        ("system_number_changed", "the person's phone number changed to 12195555358"),
        ("system_number_changed_old", "the person's phone number changed to 12195555358"),
        ("system_identity", "the person's security code changed"),
        ("system_user_id", "the person's WhatsApp user id changed"),
        ("request_welcome", "the person opened the chat for the first time"),
    ],
)
def test_what_cannot_be_read_is_told_with_what_it_was(name: str, what: str) -> None:
    arrival = one(name)
    assert isinstance(arrival, Unsupported) and what in arrival.what
    assert arrival.conversation.channel == ADA and not arrival.is_event


@pytest.mark.parametrize("name", ["account_update", "template_status", "errors", "empty", "not_whatsapp"])
def test_what_is_about_no_conversation_is_an_event_and_its_repetition_the_same(name: str) -> None:
    arrival = one(name)
    assert isinstance(arrival, Unsupported) and arrival.is_event and arrival.chat_type is ChatType.CHANNEL
    assert one(name).id == arrival.id


def test_replies_and_forwards_say_so() -> None:
    assert message("text_reply").reply_to
    assert message("text_forwarded").forward is not None
    assert message("text_often_forwarded").forward is not None
    assert message("text").forward is None


def test_a_person_who_hides_their_number_is_known_by_metas_id() -> None:
    said = message("text_hidden_number")
    assert (said.author.id, said.author.name, said.author.other_names) == (
        "US.13491208655302741918",
        "Pablo",
        ("pablomorales",),
    )
    assert (said.conversation.channel, said.chat_type) == (said.author.id, ChatType.DIRECT)
    assert one("status_hidden_number").conversation == said.conversation


def test_a_reaction_replaces_the_one_before_and_an_absent_emoji_removes_it() -> None:
    added = one("reaction")
    assert isinstance(added, Reaction) and (added.emoji, added.added, added.replaces) == ("👍", True, True)
    for name in ("reaction_removed", "reaction_empty"):
        removed = one(name)
        assert isinstance(removed, Reaction) and (removed.emoji, removed.added) == ("", False)


def test_edits_and_revokes_name_the_message_they_change() -> None:
    edit, caption, revoke = one("edit"), one("edit_caption"), one("revoke")
    assert isinstance(edit, Edit) and edit.text == "Does it come in blue?"
    assert isinstance(revoke, Deletion) and revoke.message_id == edit.message_id == message("text").id
    assert isinstance(caption, Edit) and caption.message_id == message("image").id
    assert [ref.item for ref in caption.media] == [ref.item for ref in message("image").media]


@pytest.mark.parametrize(
    ("name", "addressed", "another"),
    [
        ("group_text", False, False),
        ("group_mention", True, False),
        ("group_reply", True, False),
        ("group_next", False, False),
        ("group_another", False, True),
    ],
)
def test_in_a_group_a_mention_of_the_number_or_a_reply_to_it_addresses_the_agent(
    name: str, addressed: bool, another: bool
) -> None:
    said = message(name)
    assert (said.chat_type, said.addressed, said.mentions_another) == (ChatType.GROUP, addressed, another)
    assert said.author.id == ADA != said.conversation.channel


def test_groups_that_are_made_and_end_are_told_as_memberships() -> None:
    made, ended, failed, joined = (one(f"group_{name}") for name in ("created", "deleted", "failed", "joined"))
    assert (made.presence, made.channel_name) == (Presence.ADDED, "Hikers")
    assert (ended.presence, failed.presence, joined.presence) == (Presence.REMOVED, None, None)


def test_what_the_business_writes_in_the_app_is_context_and_no_question() -> None:
    said = message("echo")
    assert (said.conversation.channel, said.author.id, said.addressed) == (ADA, "15550783881", False)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("status_sent", DeliveryState.SENT),
        ("status_delivered", DeliveryState.DELIVERED),
        ("status_read", DeliveryState.READ),
        ("status_played", DeliveryState.READ),
        ("status_failed_undeliverable", DeliveryState.FAILED),
        ("status_failed_unknown_code", DeliveryState.FAILED),
        ("status_failed_without_reason", DeliveryState.FAILED),
        *HOLD.items(),
    ],
)
def test_a_status_is_a_receipt_with_metas_reason_in_words(name: str, state: DeliveryState) -> None:
    status = one(name)
    assert isinstance(status, DeliveryStatus) and status.state is state
    assert bool(status.reason) == (name not in ("status_failed_without_reason",) and "failed" in name)


def test_a_text_that_can_be_sent_as_a_template_is_sent_again() -> None:
    held = one("status_failed_window")
    (again,) = parse(sample("status_failed_window"), replace(VIEW, texts=frozenset({held.message_id})))
    assert isinstance(again, DeliveryStatus) and again.state is DeliveryState.AGAIN


def test_statuses_of_a_group_are_one_for_each_person() -> None:
    status = one("status_group")
    assert status.id.endswith(f":read:{ADA}")


def test_a_batch_is_every_message_and_status_in_it_and_not_what_is_another_numbers() -> None:
    kinds = [arrival.kind for arrival in parsed(sample("batch"))]
    assert kinds == ["message", "message", "delivery", "unsupported"]
    (foreign,) = parsed(sample("other_number"))
    assert isinstance(foreign, Unsupported) and "not this account's" in foreign.what
    assert "for the other number" not in str(foreign)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        "text",
        {"entry": "x"},
        {"entry": [{"changes": [{"value": []}]}]},
        {"entry": [{"changes": [{"value": {"messages": [{}]}, "field": "messages"}]}]},
        {"entry": [{"changes": [{"value": {"messages": [{"type": []}], "contacts": [{"profile": 3}]}}]}]},
        {"entry": [{"changes": [{"value": {"statuses": [{"id": 3}], "errors": [{}]}}]}]},
    ],
)
def test_a_payload_of_any_form_ends_in_something(payload: Any) -> None:
    assert parsed(payload)


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_another_type_does_not_break_the_parser(name: str) -> None:
    def spoiled(value: Any, junk: Any) -> Any:
        if isinstance(value, dict):
            return {key: spoiled(each, junk) for key, each in value.items()}
        if isinstance(value, list):
            return [spoiled(each, junk) for each in value]
        return junk

    junks: tuple[Any, ...] = (None, 7, -1, True, "", "x" * 10, [], {}, 1e300)
    for junk in junks:
        for arrival in parsed(spoiled(sample(name), junk)):
            json.dumps(arrival.id)


def test_what_the_business_edits_or_takes_back_in_its_own_app_changes_its_message() -> None:
    said, edit, gone = message("echo"), one("echo_edit"), one("echo_revoke")
    assert isinstance(edit, Edit) and isinstance(gone, Deletion)
    assert (edit.message_id, edit.text) == (said.id, "My colleague will look into it")
    assert {each.conversation for each in (said, edit, gone)} == {said.conversation}
    assert gone.message_id == said.id and gone.author == edit.author == said.author


def test_an_answer_about_calls_is_told_as_one() -> None:
    asked = one("interactive_call_permission")
    assert isinstance(asked, Unsupported) and asked.what == "an answer to whether the business may call"
