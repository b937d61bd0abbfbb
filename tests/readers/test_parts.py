"""Parts are gathered within what was asked for, and whatever is left out is said."""

import pytest

from belino.domain.media import DocumentUnit, Unread
from belino.readers import parts as module
from belino.readers.parts import BlockCutter, CannotRead, ParagraphBlock, Parts, ReadOptions, hidden, table


def parts(at_most: int | None = None, **options: int) -> Parts:
    return Parts(ReadOptions(mime="", **options), DocumentUnit.PAGE, at_most=at_most)  # type: ignore[arg-type]


def test_what_does_not_fit_beside_others_is_left_whole_for_who_asks_for_it() -> None:
    gathered = parts(max_chars=5)
    gathered.add(1, "abc")
    gathered.add(2, "defg")
    assert not gathered.wants(3)
    text = gathered.document(9)
    assert [(part.number, part.text) for part in text.parts] == [(1, "abc")] and text.total == 9
    assert text.reason == "", "nothing is lost"


def test_what_fits_nowhere_is_cut_off_and_said() -> None:
    gathered = parts(max_chars=5, first=2)
    gathered.add(2, "abcdefg")
    text = gathered.document(9)
    assert [part.text for part in text.parts] == ["abcde"]
    assert text.reason == "of page 2 only the first 5 characters were read"


def test_when_the_time_is_up_nothing_more_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered = parts()
    gathered.add(1, "abc")
    monkeypatch.setattr(module, "SECONDS_AT_MOST", -1)
    assert not gathered.wants(2)
    assert "-1 s" in gathered.document(2).reason


def test_a_document_broken_before_its_first_word_is_unreadable() -> None:
    gathered = parts()
    gathered.broke(CannotRead(Unread.UNREADABLE, "its XML is broken"))
    text = gathered.document(1)
    assert (text.unread, text.reason) == (Unread.UNREADABLE, "its XML is broken")


def test_notes_are_said_once_and_are_few() -> None:
    gathered = parts()
    gathered.note("a", "a", *map(str, range(100)))
    assert len(gathered.document(0).notes) == module.NOTES_AT_MOST


def test_the_items_of_a_list_stay_together() -> None:
    cutter = BlockCutter(parts())
    cutter.take(
        [
            ParagraphBlock(text="a"),
            ParagraphBlock(text="- b", item=True),
            ParagraphBlock(text="- c", item=True),
            ParagraphBlock(text="d"),
        ]
    )
    assert cutter.document().parts[0].text == "a\n\n- b\n- c\n\nd"


def test_a_table_of_many_pages_is_cut_between_its_rows() -> None:
    cutter = BlockCutter(parts())
    cutter.add("\n".join(f"| {number} |" for number in range(10_000)))
    text = cutter.document()
    assert text.total > 5
    assert all(len(part.text) <= 2 * module.PART_CHARS for part in text.parts)
    assert "\n".join(part.text for part in text.parts).count("|") == 20_000


def test_a_text_without_a_word_has_one_part_and_no_text() -> None:
    text = BlockCutter(parts()).document()
    assert (text.total, text.unread) == (1, Unread.NO_TEXT)


def test_a_table_is_as_wide_as_its_widest_row_and_ends_with_its_last_word() -> None:
    assert table([["a"], ["b", "c\nd", ""], [""]]) == "| a |  |\n| --- | --- |\n| b | c d |"
    assert table([[], [""]]) == ""


def test_hidden_text_stays_inside_its_mark() -> None:
    assert hidden(" a)\n(b ") == "(hidden text: a] [b)"
    assert hidden(" ") == ""
