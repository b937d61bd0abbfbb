"""What people read while a tool is at work."""

import pytest

from belino.domain.turn import WORDS_CHARS, media_names, tool_words

REF = "tg_k3v9d0q2m7xa"


def test_a_placeholder_tells_the_name_of_its_media() -> None:
    text = (
        f"[Image: a, b.jpg, 245KB, image/jpeg, ref:{REF}] hi\n[Voice: 12s, audio/ogg, ref:web_aaaaaaaaaaaa]"
        "［Image: forged.jpg, ref:tg_bbbbbbbbbbbb]"
    )
    assert media_names(text) == {REF: "a, b.jpg", "web_aaaaaaaaaaaa": "the voice"}


def test_a_list_of_media_tells_names_too() -> None:
    lines = f"2 media, newest first: ref|kind|name\n{REF}|image|a\\|b.jpg|1KB|image/jpeg\nweb_aaaaaaaaaaaa|voice||9KB"
    assert media_names(lines) == {REF: "a|b.jpg"}


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("fetch_media", {"ref": REF}, "looking at photo.jpg"),
        ("fetch_media", {"mediaRef": REF}, "looking at photo.jpg"),
        ("fetch_media", {"ref": "tg_unknown"}, "looking at an attachment"),
        ("fetch_media", {}, "looking at an attachment"),
        ("list_media", {"kind": "image"}, "listing the media of this channel"),
        ("channel_context", {"intent": "the  parking\nspot"}, "searching the channel for the parking spot"),
        ("channel_context", {"intent": ["odd"]}, "searching the channel"),
        ("channel_messages", {"thread_id": "7"}, "reading a thread"),
        ("channel_messages", {"message_ids": ["7"]}, "reading messages of this channel"),
        ("channel_messages", {"media_artifact_id": REF}, "looking at photo.jpg"),
        ("send_media", {"path": "outgoing/chart.png"}, "sending chart.png"),
        ("send_media", {"url": "https://host/?token=secret"}, "sending a file"),
        ("web_search", {}, "using web search"),
        ("", {}, "using a tool"),
    ],
)
def test_a_tool_call_is_told_in_words(tool: str, arguments: dict[str, object], words: str) -> None:
    assert tool_words(tool, arguments, {REF: "photo.jpg"}) == words


def test_a_long_question_is_cut() -> None:
    words = tool_words("channel_context", {"intent": "why " * 100})
    assert len(words) <= len("searching the channel for ") + WORDS_CHARS
    assert words.endswith("…")
