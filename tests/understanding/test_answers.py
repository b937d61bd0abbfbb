"""The worker's answers are checked: an attacker may control the process that gives them."""

import pytest

from belino.domain.errors import ProviderError
from belino.domain.reading import Read
from belino.understanding.local.answers import found_page, page_answer, spoken, written


def row(text: str, *, top: float = 0, hidden: bool = False, confidence: float = 0.9) -> dict[str, object]:
    return {"text": text, "box": [0, top, 50, top + 10], "confidence": confidence, "slant": 0, "hidden": hidden}


def page(*rows: dict[str, object]) -> dict[str, object]:
    return {"lines": list(rows), "width": 100, "height": 100}


def read_page(*rows: dict[str, object]) -> Read:
    return written(found_page(page(*rows)), model="m", least=0.5)


def test_segments_become_a_transcript() -> None:
    segments = [{"text": " Hello\nthere.", "start": 0, "end": 1.5}, {"text": "  ", "start": 2, "end": 3}]
    read = spoken({"segments": segments, "language": "en", "uncertain": True}, model="m")
    assert (read.text, read.language, read.uncertain, len(read.segments)) == ("Hello there.", "en", True, 1)


def test_nothing_said_is_not_uncertain() -> None:
    assert spoken({"segments": [], "uncertain": True}, model="m").uncertain is False


def test_lines_become_text_with_an_empty_line_between_blocks() -> None:
    read = read_page(row("e", top=60), row("a\tb"), row("c  d", top=12))
    assert read.text == "a\tb\nc d\n\ne"
    assert read.segments[0].box == (0.0, 0.0, 0.5, 0.1)
    assert not read.uncertain


def test_lines_of_low_confidence_are_left_out_and_make_the_rest_uncertain() -> None:
    read = read_page(row("ok"), row("long and doubtful", top=20, confidence=0.4))
    assert (read.text, read.uncertain) == ("ok", True)
    assert not read_page().uncertain


def test_a_line_that_nobody_sees_is_not_in_the_text() -> None:
    read = read_page(row("seen"), row("unseen", top=12, hidden=True), row("also seen", top=24))
    assert read.text == "seen\nalso seen"
    assert [one.text for one in read.segments if one.hidden] == ["unseen"]


def test_places_are_never_beyond_the_picture() -> None:
    read = read_page({**row("a"), "box": [-3, 90, 110, 104]})
    assert read.segments[0].box == (0.0, 0.9, 1.0, 1.0)


def test_a_page_reaches_the_other_side_of_the_wall_as_it_is() -> None:
    found = found_page(page(row("a"), row("b", top=20, hidden=True)))
    assert found_page(page_answer(found)) == found


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"segments": "words"},
        {"segments": [{"text": "a", "start": 2, "end": 1}]},
        {"segments": [{"text": 7, "start": 0, "end": 1}]},
        {"segments": [{"text": "a", "start": float("nan"), "end": 1}]},
    ],
)
def test_a_transcript_of_the_wrong_form_is_refused(answer: dict[str, object]) -> None:
    with pytest.raises(ProviderError, match="no proper answer"):
        spoken(answer, model="m")


@pytest.mark.parametrize(
    "change",
    [
        {"box": [0, 0, float("nan"), 1]},
        {"box": [0.5, 0, 0.1, 1]},
        {"box": [0, 0, 1e9, 1]},
        {"confidence": 7},
        {"hidden": 7},
        {"slant": 9},
        {"text": None},
    ],
)
def test_a_line_of_the_wrong_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ProviderError, match="no proper answer"):
        found_page(page({**row("a"), **change}))


@pytest.mark.parametrize("change", [{"width": 0}, {"height": "x"}, {"lines": None}])
def test_a_page_of_the_wrong_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ProviderError, match="no proper answer"):
        found_page({**page(row("a")), **change})
