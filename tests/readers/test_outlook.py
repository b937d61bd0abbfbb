"""A message that Outlook kept is read like any other."""

import io

import pytest

from belino.domain.media import DocumentText, Unread
from belino.readers import outlook
from belino.readers.parts import CannotRead, ReadOptions
from readers.outlook import make_msg, message


def read(content: bytes) -> DocumentText:
    return outlook.read(io.BytesIO(content), ReadOptions(mime="application/vnd.ms-outlook"))


def test_an_outlook_message_is_read() -> None:
    text = read(
        make_msg(subject="Lunch", sender=("Ann Poe", "ann@example.org"), to="bob@example.org", body="At noon.\r\n",
                 attachments=(("menu.pdf", "application/pdf", b"x" * 2000),)),
    )  # fmt: skip
    assert text.parts[0].text == (
        "From: Ann Poe <ann@example.org>\nTo: bob@example.org\nDate: 2026-01-01 10:00 UTC\nSubject: Lunch\n\nAt noon."
        "\n\nAttachments:\n- menu.pdf, application/pdf, 2KB"
    )


def test_an_outlook_message_inside_another_follows_it() -> None:
    inner = message(subject="Menu", sender=("Bob", "bob@example.org"), to="ann@example.org", body="Soup.")
    text = read(make_msg(subject="Fwd", sender=("Ann", "a@b.c"), to="d", body="See below.", inside=inner))
    assert [part.title for part in text.parts] == ["Fwd", "Menu"]
    assert text.parts[1].text == (
        "From: Bob <bob@example.org>\nTo: ann@example.org\nDate: 2026-01-01 10:00 UTC\nSubject: Menu\n\nSoup."
    )


def test_an_outlook_message_that_is_broken_is_told_of() -> None:
    with pytest.raises(CannotRead) as error:
        read(make_msg(subject="x", sender=("a", "b"), to="c", body="d")[:600])
    assert error.value.unread is Unread.UNREADABLE


def test_packed_rtf_bodies_are_unpacked() -> None:
    packed = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    )
    assert outlook.unpacked_rtf(packed) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
