"""Answers of the worker as readings: checked, because an attacker may control the process that gives them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from belino.domain.errors import ProviderError
from belino.domain.reading import Read, ReadSegment
from belino.understanding.local.orientation import certainty
from belino.understanding.local.reading_order import FoundPage, PlacedLine, in_reading_order

CONFIDENT = 0.6
"""The mean confidence from which text of a picture counts as certain."""
LONGEST_LINE = 10_000
LINES_AT_MOST = 5_000
FAR = 1e6
IMPROPER = "the local model gave no proper answer"


def spoken(answer: Mapping[str, object], *, model: str) -> Read:
    """A transcript: segments with their times; empty without speech."""
    segments = tuple(segment for raw in _list(answer, "segments") if (segment := _segment(raw)).text)
    language = answer.get("language")
    return Read(
        text=" ".join(segment.text for segment in segments),
        model=model,
        segments=segments,
        language=language if isinstance(language, str) and language.isalpha() and len(language) <= 8 else None,
        uncertain=bool(segments) and answer.get("uncertain") is True,
    )


def page_answer(page: FoundPage) -> dict[str, object]:
    """A page as the worker's JSON value."""
    return {
        "width": page.width,
        "height": page.height,
        "lines": [
            {
                "text": line.text,
                "box": [line.left, line.top, line.right, line.bottom],
                "confidence": line.confidence,
                "slant": line.slant,
                "hidden": line.hidden,
            }
            for line in page.lines
        ],
    }


def found_page(answer: Mapping[str, object]) -> FoundPage:
    """The page that the worker gives as its answer."""
    match answer:
        case {"width": int(width), "height": int(height)} if width > 0 and height > 0:
            lines = tuple(_line(raw) for raw in _list(answer, "lines")[:LINES_AT_MOST])
            return FoundPage(lines=lines, width=width, height=height)
    raise ProviderError(IMPROPER)


def written(page: FoundPage, *, model: str, least: float) -> Read:
    """The text of a page: a line per line, an empty one between blocks, and each line's place.

    Lines below the `least` confidence are left out. Those that a person does not see are among the segments only.
    """
    lines = in_reading_order(line for line in page.lines if line.confidence >= least and line.text)
    pieces: list[str] = []
    for before, after in pairwise([None, *(line for line in lines if not line.line.hidden)]):
        if before is not None and after is not None and before.block != after.block:
            pieces.append("")
        pieces += [after.line.text] if after is not None else []
    return Read(
        text="\n".join(pieces),
        model=model,
        segments=tuple(_placed(one.line, page) for one in lines),
        uncertain=bool(page.lines) and certainty(page.lines) < CONFIDENT,
    )


def _placed(line: PlacedLine, page: FoundPage) -> ReadSegment:
    """The line with its place from 0 to 1."""
    left, right = (min(1.0, max(0.0, edge / page.width)) for edge in (line.left, line.right))
    top, bottom = (min(1.0, max(0.0, edge / page.height)) for edge in (line.top, line.bottom))
    return ReadSegment(text=line.text, box=(left, top, right, bottom), hidden=line.hidden)


def _list(answer: Mapping[str, object], key: str) -> Sequence[object]:
    found = answer.get(key)
    if not isinstance(found, list):
        raise ProviderError(IMPROPER)
    return found


def _segment(raw: object) -> ReadSegment:
    match raw:
        case {"text": str(text), "start": float() | int() as start, "end": float() | int() as end} if 0 <= start <= end:
            return ReadSegment(text=_clean(text), start=float(start), end=float(end))
    raise ProviderError(IMPROPER)


def _line(raw: object) -> PlacedLine:
    match raw:
        case {
            "text": str(text),
            "box": [float() | int() as left, float() | int() as top, float() | int() as right, float() | int() as low],
            "confidence": float() | int() as confidence,
            "slant": float() | int() as slant,
            "hidden": bool(hidden),
        } if -FAR <= left <= right <= FAR and -FAR <= top <= low <= FAR and 0 <= confidence <= 1 and -1 <= slant <= 1:
            return PlacedLine(
                text=_clean(text),
                left=left,
                top=top,
                right=right,
                bottom=low,
                confidence=confidence,
                slant=slant,
                hidden=hidden,
            )
    raise ProviderError(IMPROPER)


def _clean(text: str) -> str:
    """On one line; a table's tabs remain."""
    return "\t".join(" ".join(cell.split()) for cell in text[:LONGEST_LINE].split("\t")).strip()
