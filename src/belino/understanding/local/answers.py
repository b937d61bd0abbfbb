"""Answers of the worker as readings: checked, because an attacker may control the process that gives them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from belino.domain.errors import ProviderError
from belino.domain.reading import Read, ReadSegment

CONFIDENT = 0.6
"""The mean confidence from which text of a picture counts as certain."""
LONGEST_LINE = 10_000


def spoken(answer: Mapping[str, object], *, model: str) -> Read:
    """A transcript: segments with their times; empty if nobody speaks."""
    segments = tuple(segment for raw in _list(answer, "segments") if (segment := _segment(raw)).text)
    language = answer.get("language")
    return Read(
        text=" ".join(segment.text for segment in segments),
        model=model,
        segments=segments,
        language=language if isinstance(language, str) and language.isalpha() and len(language) <= 8 else None,
        uncertain=bool(segments) and answer.get("uncertain") is True,
    )


def written(answer: Mapping[str, object], *, model: str) -> Read:
    """The text of a picture: a line per line, an empty one between blocks, and each line's place."""
    lines = [line for raw in _list(answer, "lines") if (line := _line(raw))[0].text]
    pieces: list[str] = []
    for before, after in pairwise([None, *lines]):
        if before is not None and after is not None and before[1] != after[1]:
            pieces.append("")
        pieces += [after[0].text] if after is not None else []
    letters = sum(len(segment.text) for segment, _, _ in lines)
    sure = sum(len(segment.text) * confidence for segment, _, confidence in lines)
    return Read(
        text="\n".join(pieces),
        model=model,
        segments=tuple(segment for segment, _, _ in lines),
        uncertain=bool(letters) and sure < CONFIDENT * letters,
    )


def _list(answer: Mapping[str, object], key: str) -> Sequence[object]:
    found = answer.get(key)
    if not isinstance(found, list):
        raise ProviderError("the local model gave no proper answer")
    return found


def _segment(raw: object) -> ReadSegment:
    match raw:
        case {"text": str(text), "start": float() | int() as start, "end": float() | int() as end} if 0 <= start <= end:
            return ReadSegment(text=_clean(text), start=float(start), end=float(end))
    raise ProviderError("the local model gave no proper answer")


def _line(raw: object) -> tuple[ReadSegment, int, float]:
    """The line, the number of its block, and its confidence from 0 to 1."""
    match raw:
        case {
            "text": str(text),
            "box": [float() | int() as left, float() | int() as top, float() | int() as right, float() | int() as low],
            "block": int(block),
            "confidence": float() | int() as confidence,
        } if 0 <= left <= right <= 1 and 0 <= top <= low <= 1 and 0 <= confidence <= 1:
            box = (float(left), float(top), float(right), float(low))
            return ReadSegment(text=_clean(text), box=box), block, float(confidence)
    raise ProviderError("the local model gave no proper answer")


def _clean(text: str) -> str:
    """On one line; a table's tabs remain."""
    return "\t".join(" ".join(cell.split()) for cell in text[:LONGEST_LINE].split("\t")).strip()
