"""The worker's answers are checked: an attacker may control the process that gives them."""

import pytest

from belino.domain.errors import ProviderError
from belino.understanding.local.answers import spoken, written


def row(text: str, *, block: int = 0, confidence: float = 0.9) -> dict[str, object]:
    return {"text": text, "block": block, "confidence": confidence, "box": [0, 0.1, 0.5, 0.2]}


def test_segments_become_a_transcript() -> None:
    segments = [{"text": " Hello\nthere.", "start": 0, "end": 1.5}, {"text": "  ", "start": 2, "end": 3}]
    read = spoken({"segments": segments, "language": "en", "uncertain": True}, model="m")
    assert (read.text, read.language, read.uncertain, len(read.segments)) == ("Hello there.", "en", True, 1)


def test_nothing_said_is_not_uncertain() -> None:
    assert spoken({"segments": [], "uncertain": True}, model="m").uncertain is False


def test_lines_become_text_with_an_empty_line_between_blocks() -> None:
    read = written({"lines": [row("a\tb"), row("c  d"), row("e", block=1)]}, model="m")
    assert read.text == "a\tb\nc d\n\ne"
    assert read.segments[0].box == (0.0, 0.1, 0.5, 0.2)
    assert not read.uncertain


def test_text_of_low_confidence_is_uncertain() -> None:
    assert written({"lines": [row("long and doubtful", confidence=0.4), row("ok")]}, model="m").uncertain


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
    "change", [{"box": [0, 0, 2, 1]}, {"box": [0.5, 0, 0.1, 1]}, {"confidence": 7}, {"block": "a"}]
)
def test_a_line_of_the_wrong_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ProviderError, match="no proper answer"):
        written({"lines": [{**row("a"), **change}]}, model="m")
