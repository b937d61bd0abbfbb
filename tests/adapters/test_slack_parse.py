"""What people and apps do on Slack, as arrivals: nothing is fetched, nothing is lost, nothing is believed."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.slack_samples import NAMES, RECEIVED, VIEW, message, one, parsed, sample
from belino.adapters.slack.authors import Directory, SlackApp, author_of, other_names, shown_name
from belino.adapters.slack.parse import is_own_change, parse, said, says_nothing_new
from belino.domain.media import MediaKind
from belino.domain.message import ChatType, Deletion, Edit, Message, Reaction, Unsupported


def test_every_sample_is_something() -> None:
    assert len(NAMES) >= 45
    for name in NAMES:
        assert parsed(sample(name)), name


def test_a_picture_is_a_reference_by_its_id_and_nothing_else() -> None:
    (ref,) = message("image").media
    assert ref.locator == {"file": ref.item}
    assert (ref.kind, ref.mime, ref.file_name, ref.caption) == (
        MediaKind.IMAGE, "image/jpeg", "harbour.jpg", "What is this?",
    )  # fmt: skip
    assert ref.width
    assert ref.size


def test_ten_files_are_one_message_with_the_text_at_the_first() -> None:
    ten = message("files_ten")
    assert len({ref.item for ref in ten.media}) == 10
    assert [ref.caption for ref in ten.media] == ["Our week", *[None] * 9]


@pytest.mark.parametrize(
    ("name", "mime"), [("voice", "audio/mp4"), ("voice_mp4", "audio/mp4"), ("voice_webm", "audio/webm")]
)
def test_a_recording_is_a_voice_message_whatever_slack_calls_its_container(name: str, mime: str) -> None:
    (ref,) = message(name).media
    assert (ref.kind, ref.mime) == (MediaKind.VOICE, mime)
    assert ref.duration
    assert ref.duration > 5


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("file_tombstone", "deleted"),
        ("file_hidden_by_limit", "old.png"),
        ("file_access_denied", "may not see"),
        ("external", "https://docs.google.com/"),
    ],
)
def test_a_file_without_bytes_is_told_in_words(name: str, says: str) -> None:
    told = message(name)
    assert told.media == ()
    assert says in told.text


@pytest.mark.parametrize("name", ["file_check_info", "file_check_info_bare", "stranger_file"])
def test_a_file_of_another_workspace_is_promised_although_slack_tells_nothing_of_it(name: str) -> None:
    (ref,) = message(name).media
    assert (ref.mime, ref.file_name, ref.size) == ("application/octet-stream", None, None)


def test_a_stranger_is_known_by_workspace_too() -> None:
    assert message("stranger").author.id == "U0FARAWAY1@T0FARAWAY1"
    assert message("text_dm").author.id == "U0ADA00001"


@pytest.mark.parametrize(
    ("name", "addressed"),
    [
        ("text_dm", True),
        ("text_channel", False),
        ("mention", True),
        ("mention_named", True),
        ("mention_other", False),
        ("mention_here", False),
        ("app_mention", True),
        ("thread_reply", False),
        ("thread_reply_mention", True),
        ("thread_reply_to_bot", True),
        ("own_message", False),
        ("command", True),
    ],
)
def test_who_is_spoken_to(name: str, addressed: bool) -> None:
    assert message(name).addressed is addressed


def test_a_message_is_told_with_the_name_of_its_channel_and_sort() -> None:
    assert (message("text_channel").channel_name, message("text_channel").chat_type) == ("general", ChatType.CHANNEL)
    assert message("text_mpim").chat_type is ChatType.GROUP
    assert message("text_group").chat_type is ChatType.CHANNEL


@pytest.mark.parametrize("name", ["thread_reply", "thread_broadcast", "thread_broadcast_old", "thread_reply_image"])
def test_a_reply_belongs_to_its_thread(name: str) -> None:
    reply = message(name)
    assert reply.conversation.thread == reply.reply_to == "1767268740.000100"


def test_the_first_message_of_a_thread_belongs_to_its_channel() -> None:
    ts = "1767268800.000100"
    assert message("text_channel", ts=ts, thread_ts=ts).conversation.thread is None


def test_what_is_said_to_us_in_a_channel_may_begin_a_thread() -> None:
    view = replace(VIEW, in_threads=True)
    (asked,) = parse(sample("mention"), view)
    (other,) = parse(sample("text_channel"), view)
    (direct,) = parse(sample("text_dm"), view)
    assert [each.conversation.thread for each in (asked, other, direct)] == [asked.id, None, None]


@pytest.mark.parametrize("name", ["own_message", "own_file", "own_metadata"])
def test_what_we_said_is_marked_as_ours(name: str) -> None:
    assert message(name).author.is_agent


def test_bots_are_bots() -> None:
    assert (message("bot_message").author.is_bot, message("bot_message").author.name) == (True, "ci")


def test_a_bot_that_tells_nothing_but_its_name_is_a_bot() -> None:
    author = message("bot_message", user=None, bot_id=None, bot_profile=None, username="github").author
    assert (author.id, author.name, author.is_bot) == ("unknown", "github", True)


def test_what_slackbot_answers_is_said() -> None:
    answer = message("text_channel", subtype="slackbot_response", user="USLACKBOT", text="It is 1234.")
    assert (answer.text, answer.author.is_bot) == ("It is 1234.", True)


def test_a_forward_brings_who_said_it_and_its_files() -> None:
    forward = message("forward_image").forward
    assert forward is not None
    assert forward.author is not None
    assert (forward.author.name, forward.text, len(forward.media)) == ("Bo Berg", "our boat", 1)
    assert forward.media[0].message_id == message("forward_image").id
    assert forward.sent is not None


def test_a_pasted_link_to_a_message_quotes_it() -> None:
    quote = message("quote_link").quote
    assert quote is not None
    assert quote.text == "The ferry leaves at 9:40"


def test_a_second_message_that_is_pasted_brings_its_author_words_and_files() -> None:
    pasted = [
        {
            "is_msg_unfurl": True,
            "author_id": "U0BOBOBO01",
            "text": text,
            "files": [{"id": own, "mimetype": "image/png"}],
        }
        for text, own in (("the harbour", "F0HARBOUR1"), ("the ferry", "F0FERRY001"))
    ]
    told = message("text_channel", attachments=pasted)
    assert told.quote is not None
    assert [ref.item for ref in (*told.quote.media, *told.media)] == ["F0HARBOUR1", "F0FERRY001"]
    assert told.text.endswith("Bo\nthe ferry")


def rich(*texts: str) -> dict[str, Any]:
    sections = [{"type": "rich_text_section", "elements": [{"type": "text", "text": text}]} for text in texts]
    return {"type": "rich_text", "block_id": "b", "elements": sections}


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def test_what_an_app_writes_richly_counts_beside_the_text_for_notifications() -> None:
    assert message("app_message", text="A report", blocks=[rich("Rain: 42 mm")]).text == "A report\nRain: 42 mm"
    assert message("app_message", text="run `make`", blocks=[rich("run make")]).text == "run `make`"
    waved = {"type": "rich_text_section", "elements": [{"type": "emoji", "name": "wave", "skin_tone": 2}]}
    blocks = [{"type": "rich_text", "elements": [waved]}]
    assert message("app_message", text=":wave::skin-tone-2:", blocks=blocks).text == ":wave::skin-tone-2:"


def test_what_an_app_writes_richly_can_be_changed_under_the_same_text() -> None:
    raw = sample("edit_text")
    before = {**raw["event"]["previous_message"], "bot_id": "B0CICICI01", "blocks": [rich("41 mm")]}
    for now, changed in (("42 mm", True), ("41 mm", False)):
        raw["event"] |= {"previous_message": before, "message": {**before, "blocks": [rich(now) | {"block_id": "c"}]}}
        assert says_nothing_new(raw) is not changed


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("card", {"title": plain("Oslo"), "body": plain("Rain")}, "Oslo\nRain"),
        ("carousel", {"elements": [{"type": "card", "title": plain("a")}] * 2}, "a\na"),
        ("plan", {"title": "Plan", "tasks": [{"title": "dig", "output": rich("deep")}]}, "Plan\ndig\ndeep"),
        ("container", {"child_blocks": [{"type": "header", "text": plain("Hi")}]}, "Hi"),
        ("data_table", {"rows": [[{"type": "raw_text", "text": "mm"}, {"type": "raw_number", "text": "3"}]]}, "mm | 3"),
        ("call", {"call_id": "R1", "call": {"v1": {"name": "Standup"}}}, "Standup"),
        ("video", {"title": plain("V"), "title_url": "https://example.org/v"}, "V (https://example.org/v)"),
    ],
)
def test_a_block_of_a_newer_kind_is_told_by_the_words_in_it(kind: str, fields: dict[str, Any], says: str) -> None:
    assert message("app_message", text="", blocks=[{"type": kind, **fields}]).text == says


@pytest.mark.parametrize("kind", ["table", "card", "lists"])
def test_blocks_within_blocks_are_read_no_deeper_than_anybody_writes(kind: str) -> None:
    inner: Any = plain("deep down")
    for _ in range(300):
        inner = {"type": "table", "rows": [[inner]]} if kind == "table" else {"type": "card", "body": inner}
        inner = [inner] if kind == "lists" else inner
    block = {"type": "card", "title": plain("above"), "body": inner}
    assert message("app_message", text="", blocks=[block]).text == "above"


def test_a_list_that_goes_on_is_numbered_on() -> None:
    numbered = {"type": "rich_text_list", "style": "ordered", "offset": 4, "elements": rich("five")["elements"]}
    assert message("app_message", text="", blocks=[{"type": "rich_text", "elements": [numbered]}]).text == "5. five"


def test_a_file_that_is_told_in_the_old_way_is_a_file() -> None:
    (ref,) = message("text_dm", subtype="file_share", file={"id": "F0OLD00001", "mimetype": "image/png"}).media
    assert ref.locator == {"file": "F0OLD00001"}


def test_a_sound_that_slack_calls_a_film_is_a_sound() -> None:
    file = {"id": "F0SOUND001", "mimetype": "video/mp4", "media_display_type": "audio", "name": "talk.mp4"}
    (ref,) = message("text_dm", files=[file]).media
    assert (ref.kind, ref.mime) == (MediaKind.AUDIO, "audio/mp4")


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("blocks_only", ["Build 42", "failed", "Retries 2", "Run again"]),
        ("attachments_fields", ["Disk full", "97 % used", "Host: web-1"]),
        ("table", ["City | Rain", "Bergen | 2495"]),
        ("link_unfurled", ["An example", "Words about it"]),
        ("escapes", ["a < b && b > c"]),
        ("link", ["the plan (https://example.org/a?b=1&c=2)", "ada@example.org"]),
        ("me_message", ["/me waves"]),
        ("date", ["Jan 2, 2026"]),
        ("mention_other", ["@Bo"]),
        ("mention", ["@belino"]),
    ],
)
def test_what_is_laid_out_is_told_in_words(name: str, holds: list[str]) -> None:
    text = message(name).text
    assert [each for each in holds if each not in text] == []


def test_an_address_is_told_without_its_secret() -> None:
    assert "token=•••" in message("link_unfurled").text


@pytest.mark.parametrize("name", ["edit_text", "edit_dm", "edit_file_removed", "edit_file_deleted"])
def test_an_edit_is_a_change_of_words_or_files(name: str) -> None:
    assert isinstance(one(name), Edit)
    assert not says_nothing_new(sample(name))


def test_a_message_that_slack_looks_up_later_is_quoted_with_its_files() -> None:
    edit = one("edit_quote")
    assert isinstance(edit, Edit)
    assert edit.text.endswith(" is what I mean\n> Bo Berg: The ferry leaves at 9:40")
    assert [(ref.item, ref.message_id) for ref in edit.media] == [("F0FERRY001", edit.message_id)]
    assert not says_nothing_new(sample("edit_quote"))


@pytest.mark.parametrize(
    "name",
    ["edit_unfurl", "edit_thread_grew", "message_replied", "message_replied_without_subtype"],
)
def test_a_preview_or_a_thread_that_grew_is_no_edit(name: str) -> None:
    assert isinstance(one(name), Unsupported)
    assert says_nothing_new(sample(name))


def test_who_replied_is_told_by_name_whatever_else_the_list_holds() -> None:
    told = message("text_channel", reply_count=2, reply_users=["U0ADA00001", ["U0BOBOBO01"], {}, None, "U0UNKNOWN1"])
    assert told.thread_report is not None
    assert told.thread_report.participants == ("Ada",)


def test_our_own_change_is_known() -> None:
    assert is_own_change(sample("edit_own"), VIEW.me)
    assert not is_own_change(sample("edit_text"), VIEW.me)
    assert not is_own_change(sample("own_message"), VIEW.me)


@pytest.mark.parametrize("name", ["deleted", "deleted_bare", "deleted_reply", "deleted_own", "deleted_thread_parent"])
def test_a_deletion_names_what_is_gone(name: str) -> None:
    gone = one(name)
    assert isinstance(gone, Deletion)
    assert gone.message_id.startswith("17672687" if name == "deleted_thread_parent" else "17672688")


def test_a_reaction_is_told_by_its_name_and_two_of_them_by_two_ids() -> None:
    on, off = one("reaction"), one("reaction_removed")
    assert isinstance(on, Reaction)
    assert (on.emoji, on.added, off.added) == (":thumbsup:", True, False)
    assert on.id != off.id


@pytest.mark.parametrize("name", ["reaction", "edit_text", "deleted"])
def test_what_does_not_say_when_it_was_is_told_from_the_next_by_its_event(name: str) -> None:
    untold: list[str] = []
    for number in ("Ev1", "Ev2"):
        raw = sample(name) | {"event_id": number}
        raw["event"] |= {"event_ts": None, "ts": None}
        raw["event"].get("message", {}).pop("edited", None)
        untold += [arrival.id for arrival in parsed(raw)]
    assert len(set(untold)) == 2


def test_ids_of_other_servers_are_ids() -> None:
    raw = sample("text_channel")
    raw["event"] |= {"text": "<@U_my-bot> look", "files": [{"id": "F_upload-1", "mimetype": "image/png"}]}
    (told,) = parse(raw, replace(VIEW, me=SlackApp(user="U_my-bot", name="belino")))
    assert isinstance(told, Message)
    assert (told.addressed, [ref.item for ref in told.media]) == (True, ["F_upload-1"])


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("service_", "unknown_"))])
def test_what_nobody_said_is_unsupported_and_says_what_it_was(name: str) -> None:
    told = one(name)
    assert isinstance(told, Unsupported)
    assert told.what
    assert not told.addressed


def test_who_only_opens_our_page_has_not_written_to_us() -> None:
    opened = one("app_home_opened", channel="D0DIRECT01")
    assert isinstance(opened, Unsupported)
    assert opened.chat_type is ChatType.CHANNEL


def test_history_tells_the_same_message_as_the_event() -> None:
    raw = sample("image")["event"]
    told = said(raw, raw["channel"], replace(VIEW, server="T0WORK0001"))
    assert told == message("image")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(data=st.data())
def test_whatever_stands_in_a_field_is_survived(data: st.DataObject) -> None:
    raw: Any = sample(data.draw(st.sampled_from(NAMES)))
    spots = list(_spots(raw))
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(spots)) if spots else ({}, "x")
        holder[key] = data.draw(_JSON)
    for arrival in parsed(raw):
        assert arrival.id
        assert arrival.sent.tzinfo is not None
        json.dumps(str(arrival), ensure_ascii=False).encode()
    assert says_nothing_new(raw) in (True, False)


def _spots(value: Any) -> Any:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from _spots(inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield value, index
            yield from _spots(inner)


def test_a_message_without_a_time_is_still_a_message() -> None:
    untold = message("text_dm", ts=None, client_msg_id=None)
    assert isinstance(untold, Message)
    assert (untold.sent, untold.text) == (RECEIVED, "Good morning, can you help me?")


def test_the_names_of_a_user_that_are_not_shown_are_the_others() -> None:
    user = {"id": "U1", "name": "kngata", "real_name": "Katherine Ngata", "profile": {"display_name": "Kit"}}
    others = {"U1": other_names(user)}
    author = author_of({"user": "U1"}, SlackApp(), Directory(users={"U1": shown_name(user)}, other_names=others))
    assert (author.name, author.other_names) == ("Kit", ("Katherine Ngata", "kngata"))


@pytest.mark.parametrize(
    ("name", "changes", "what"),
    [
        ("service_channel_join", {}, "Ada joined"),
        ("service_channel_leave", {}, "Ada left"),
        ("service_channel_name", {}, "the channel has a new name: everybody"),
        ("service_channel_topic", {}, "the channel has a new topic: Spring"),
        ("service_channel_purpose", {}, "the channel has a new description: Plans"),
        ("service_pinned_item", {}, "a message was pinned"),
        ("service_pinned_item", {"item": {"message": {"text": "We meet\nat 8"}}}, "a message was pinned: We meet at 8"),
        ("service_pinned_item", {"attachments": [{"text": "We meet at 8"}]}, "a message was pinned: We meet at 8"),
    ],
)
def test_a_service_message_tells_its_content(name: str, changes: dict[str, Any], what: str) -> None:
    told = one(name, **changes)
    assert isinstance(told, Unsupported) and told.what == what


def test_a_canvas_is_named_by_its_title_and_a_clip_has_the_size_of_its_picture() -> None:
    canvas = {"id": "F1", "name": "Untitled", "title": "Launch plan", "mimetype": "application/vnd.slack-docs"}
    clip = {"id": "F2", "name": "clip.mp4", "mimetype": "video/mp4", "thumb_video_w": 640, "thumb_video_h": 360}
    first, second = message("text_channel", files=[canvas | {"mode": "quip"}, clip | {"mode": "hosted"}]).media
    assert (first.file_name, first.file_id) == ("Launch plan", None)  # a canvas changes under its id
    assert (second.width, second.height, second.file_id) == (640, 360, "F2")


def test_a_picture_in_a_block_becomes_a_ref_wherever_it_is() -> None:
    image = {"type": "image", "slack_file": {"id": "F0166IJGD2X"}, "alt_text": "inspiration"}
    link = "https://files.slack.com/files-pri/T0WORK0001-F0ACCESS01/a.png"
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "look"}}
    section["accessory"] = {"type": "image", "slack_file": {"url": link}, "alt_text": "a chart"}
    context = {"type": "context", "elements": [image, {"type": "image", "slack_file": {"id": "../x"}}]}
    below = {"blocks": [{"type": "image", "slack_file": {"id": "F0BELOW001"}, "alt_text": "below"}]}
    said = message("text_channel", bot_id="B1", blocks=[image, section, context], attachments=[below])
    assert [(ref.item, ref.kind, ref.caption, ref.file_id) for ref in said.media] == [
        ("F0166IJGD2X", "image", "inspiration", None),
        ("F0ACCESS01", "image", "a chart", None),
        ("F0BELOW001", "image", "below", None),
    ]


def test_a_picture_on_another_server_has_its_address_in_the_text() -> None:
    image = {"type": "image", "image_url": "https://pics.example.com/a.png", "alt_text": "a chart"}
    legacy = {"fallback": "b", "image_url": "https://pics.example.com/b.png"}
    said = message("text_channel", bot_id="B1", blocks=[image], attachments=[legacy])
    assert "(a picture: a chart, https://pics.example.com/a.png)" in said.text
    assert "(with a picture: https://pics.example.com/b.png)" in said.text


def test_the_change_that_brings_slacks_own_transcript_brings_it_with_the_clip() -> None:
    edit = one("edit_transcribed")
    assert isinstance(edit, Edit) and not says_nothing_new(sample("edit_transcribed"))
    (ref,) = edit.media
    assert (ref.item, ref.transcript) == ("F0VOICE001", "Can you move the meeting?")


@pytest.mark.parametrize(
    ("transcription", "told"),
    [
        ({"status": "complete", "preview": {"content": "Hello", "has_more": True}}, "Hello…"),
        ({"status": "complete", "preview": {"content": " "}}, None),
        ({"status": "processing", "preview": {"content": "Hel"}}, None),
        (None, None),
    ],
)
def test_a_transcript_counts_when_it_is_complete(transcription: object, told: str | None) -> None:
    clip = {"id": "F2", "subtype": "slack_audio", "mimetype": "audio/mp4", "transcription": transcription}
    assert message("text_channel", files=[clip]).media[0].transcript == told
