"""Contacts, places and polls are written in the same words on every platform."""

from belino.net.json_fields import one_line, texts, texts_by_key
from belino.net.message_lines import contact_line, place_line, poll_lines


def test_a_contact_is_its_facts_or_empty() -> None:
    assert contact_line("Eve", "", "+49170") == "Contact: Eve, +49170"
    assert contact_line("", "") == "Contact: empty"


def test_a_place_is_its_coordinates_and_names() -> None:
    assert place_line(48.1371, 11.5754, "Town hall", "", kind="Live location") == (
        "Live location: 48.137100, 11.575400 (Town hall)"
    )
    assert place_line(None, 11.5) == "Location: unknown"


def test_a_poll_is_its_question_and_options() -> None:
    assert list(poll_lines("", ["Lake", "Hill"], mark=" (several answers)")) == [
        "Poll (several answers): without a question",
        "- Lake",
        "- Hill",
    ]


def test_lists_and_objects_of_texts_are_read_without_what_is_none() -> None:
    assert texts({"k": ["a", 1, None, "\ud800"]}, "k") == ("a", "\ufffd")
    assert texts({"k": "a"}, "k") == ()
    assert texts_by_key({"a": "b", "c": 1}) == {"a": "b", "c": ""}
    assert one_line("a\n b" + "c" * 10, most=6) == "a bcc…"
