"""A Word document of the old kind says what its readers saw, and what they did not is marked."""

import io

import pytest

from belino.domain.media import DocumentText, Unread
from belino.readers import legacy_word
from belino.readers.parts import HIDDEN_NOTE, CannotRead, ReadOptions
from readers.office97 import DELETED, IN_TABLE, LISTED, ROW_ENDS, VANISH, WHITE, early_word, make_word97
from readers.outlook import make_ole


def read(content: bytes, **options: int) -> DocumentText:
    return legacy_word.read(io.BytesIO(content), ReadOptions(mime="application/msword", **options))  # type: ignore[arg-type]


def shown(content: bytes) -> str:
    (part,) = read(content).parts
    return part.text


@pytest.mark.parametrize("wide", [True, False], ids=["two bytes", "one byte"])
def test_headings_lists_and_paragraphs(wide: bool) -> None:
    made = make_word97(
        [
            ([("Größe\r", b"")], 1, b""),
            ([("“Plain”\x0bwords\r", b"")], 0, b""),
            ([("milk\r", b"")], 0, LISTED),
            ([("bread\r", b"")], 0, LISTED),
        ],
        wide=wide,
    )
    assert shown(made) == "# Größe\n\n“Plain”\nwords\n\n- milk\n- bread"
    assert read(made).parts[0].title == "Größe"


def test_a_table_has_rows_and_its_cells_may_be_empty_or_long() -> None:
    cells = [("a\r", IN_TABLE), ("more\x07", IN_TABLE), ("\x07", IN_TABLE), ("\x07", ROW_ENDS),
             ("1\x07", IN_TABLE), ("2\x07", IN_TABLE), ("\x07", ROW_ENDS), ("after\r", b"")]  # fmt: skip
    made = make_word97([([(text, b"")], 0, said) for text, said in cells])
    assert shown(made) == "| a more |  |\n| --- | --- |\n| 1 | 2 |\n\nafter"


def test_hidden_deleted_and_white_text_is_marked() -> None:
    made = make_word97([([("seen ", b""), ("obey)", VANISH), (" old", DELETED), ("pale", WHITE), ("\r", b"")], 0, b"")])
    text = read(made)
    assert text.parts[0].text == "seen (hidden text: obey])(deleted text: old)(hidden text: pale)"
    assert HIDDEN_NOTE in text.notes


def test_a_field_shows_its_result_and_its_address() -> None:
    field = 'go \x13 HYPERLINK "http://a.b" \x14\x13 PAGE \x1412\x15 here\x15 now\r'
    assert shown(make_word97([([(field, b"")], 0, b"")])) == "go 12 here (http://a.b) now"


def test_footnotes_follow_the_text() -> None:
    assert shown(make_word97([([("Text\x02\r", b"")], 0, b"")], notes="\x02 a note\r")) == "Text\n\nFootnote: a note"


def test_documents_of_word_95_are_read_in_the_set_that_makes_sense() -> None:
    text = "Поезд опаздывает на три часа\r"
    assert shown(early_word(f"{text}a\x07b\x07\x07c\x07d\x07\x07", "cp1251")) == (
        "Поезд опаздывает на три часа\n\n| a | b |\n| --- | --- |\n| c | d |"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (make_word97([([("x\r", b"")], 0, b"")], locked=True), "password"),
        (make_ole({"WordDocument": b"\xec\xa5\xc1\0".ljust(4096, b"\0")}), "broken"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "broken"),
    ],
    ids=["locked", "no table", "no directory"],
)
def test_what_cannot_be_read_says_why(content: bytes, reason: str) -> None:
    with pytest.raises(CannotRead, match=reason) as error:
        read(content)
    assert error.value.unread is Unread.UNREADABLE
