"""Tables as people read them: whole on a narrow terminal, aligned in every script, plain where nobody sees colour."""

import sys

import pytest

from belino.cli.show import clean, counted, paint, show_table

COLUMNS = ("key", "what", "why")
ROWS = [("p-1-0-5b14e10f24ac", "日本語 🌄", ""), ("p-2", "résumé", "it waited for longer than it may, and is held")]


def be_a_terminal(monkeypatch: pytest.MonkeyPatch, *, columns: int = 80, no_color: str = "1") -> None:
    """What stdout is from now on."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    show_table(COLUMNS, ROWS, empty="nothing")
    return capsys.readouterr().out.splitlines()


def test_columns_stand_below_each_other_in_letters_that_take_two_places(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys) == [
        "KEY                 WHAT       WHY",
        "p-1-0-5b14e10f24ac  日本語 🌄",
        "p-2                 résumé     it waited for longer than it may, and is held",
    ]


def test_text_of_strangers_keeps_what_joins_letters_and_loses_what_a_terminal_obeys() -> None:
    family, persian = "👨\u200d👩\u200d👧", "می\u200cخواهم"
    assert clean(f"{family} {persian}") == f"{family} {persian}"
    assert clean("\u202egnp.exe\x1b[31m\x07") == "�gnp.exe�[31m�"


def test_the_last_column_takes_the_lines_it_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_a_terminal(monkeypatch, columns=60)
    assert shown(capsys) == [
        "key                 what       why",
        "p-1-0-5b14e10f24ac  日本語 🌄",
        "p-2                 résumé     it waited for longer than it",
        "                               may, and is held",
    ]


def test_a_table_too_wide_for_the_terminal_is_told_row_by_row_and_no_id_is_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_a_terminal(monkeypatch, columns=40)
    assert shown(capsys) == [
        "key   p-1-0-5b14e10f24ac",
        "what  日本語 🌄",
        "",
        "key   p-2",
        "what  résumé",
        "why   it waited for longer than it may, and is held",
    ]


def test_there_is_colour_on_a_terminal_that_can_show_it_and_may(monkeypatch: pytest.MonkeyPatch) -> None:
    be_a_terminal(monkeypatch, no_color="")
    assert paint("well", "green") == "\x1b[32mwell\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("well", "bold") == "well"
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert paint("well", "green") == "well"


def test_one_is_counted_as_one() -> None:
    assert [counted(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert [counted(number, "try", "tries") for number in (1, 2)] == ["1 try", "2 tries"]
