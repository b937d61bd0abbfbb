"""RTF is read as a word processor shows it."""

import io

import pytest

from belino.domain.media import DocumentText, Unread
from belino.readers import rtf
from belino.readers.parts import HIDDEN_NOTE, CannotRead, ReadOptions

HEAD = (
    r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss\fcharset0 Arial;}{\f1\fnil\fcharset128 Mincho;}"
    r"{\f2\fcharset204 Times;}}{\colortbl;\red255\green0\blue0;}{\*\generator Writer;}{\info{\title secret title}}"
)


def read(body: str) -> DocumentText:
    return rtf.read(io.BytesIO(f"{HEAD}{body}}}".encode("latin-1")), ReadOptions(mime="application/rtf"))


def shown(body: str) -> str:
    (part,) = read(body).parts
    return part.text


def test_paragraphs_and_signs() -> None:
    assert shown(r"\pard One {\b bold} word\par Two\line three\tab four\emdash five \{x\}") == (
        "One bold word\nTwo\nthree\tfour—five {x}"
    )


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"Caf\'e9 \'80", "Café €"),
        (r"\u8364\'80 and \u1055?\u1086?", "€ and По"),
        (r"\uc0\u960 r\uc2\u945 ab!", "πrα!"),
        (r"\u-10179?\u-8704?", "😀"),
        (r"\f1 \'93\'8c\'8b\'9e\f0  end", "東京 end"),
        (r"{\f2 \'cf\'f0\'e8}v", "Приv"),
    ],
    ids=["code-page", "unicode", "fallback", "two-halves", "double-byte", "font"],
)
def test_characters_of_every_set(written: str, text: str) -> None:
    assert shown(written) == text


def test_tables_are_rows() -> None:
    assert shown(r"\trowd\cellx100\cellx200 A\cell B\cell\row C\cell D\cell\row after") == "A | B\nC | D\nafter"


def test_pictures_objects_and_field_codes_are_left_out() -> None:
    picture = r"{\pict\pngblip 89504e47}{\object{\objdata 0105}}"
    assert shown(picture + r'{\field{\*\fldinst HYPERLINK "x"}{\fldrslt the link}} end') == "the link end"
    assert shown(r"a{\*\unknown secret}b{\pict\bin5 }}}}}c}d") == "abd"
    assert shown(r"{\object\objemb{\*\objclass Sheet}{\result 7 pears}}") == "7 pears", "what an object shows is seen"


def test_a_star_that_begins_no_group_leaves_nothing_out() -> None:
    assert shown(r"{\f2\i0\*\cs7 The quick brown fox}") == "The quick brown fox"


def test_hidden_text_is_marked() -> None:
    text = read(r"seen {\v obey me} and \v this too\v0  end")
    assert text.parts[0].text == "seen (hidden text: obey me) and (hidden text: this too) end"
    assert text.notes == (HIDDEN_NOTE,)


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    raw = f"{HEAD}\\pard begun {{\\b and".encode("latin-1")
    assert rtf.read(io.BytesIO(raw), ReadOptions(mime="application/rtf")).parts[0].text == "begun and"


def test_groups_without_end_are_refused() -> None:
    with pytest.raises(CannotRead) as error:
        read("{" * 10_000)
    assert error.value.unread is Unread.UNREADABLE


WHITE = rb"{\colortbl;\red0\green0\blue0;\red254\green255\blue255;}"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (WHITE + rb"a {\cf2 secret}\cf1 b", "a (hidden text: secret)b"),
        (WHITE + rb"a \cf2 secret\plain  b", "a (hidden text: secret) b"),
        (rb"a {\fs2 secret} b", "a (hidden text: secret) b"),
        (WHITE + rb"a {\cf1 seen} b", "a seen b"),
        (WHITE + rb"\trowd\clcbpat1\cellx99 {\cf2 seen}\cell\row", "seen"),
        (WHITE + rb"a {\highlight1\cf2 seen} b", "a seen b"),
    ],
    ids=["white", "until plain", "tiny", "black", "in a dark cell", "highlighted"],
)
def test_white_and_tiny_text_is_marked_unless_it_may_stand_on_another_ground(written: bytes, told: str) -> None:
    text, _ = rtf.text_of(rb"{\rtf1 " + written + b"}")
    assert text.strip() == told
