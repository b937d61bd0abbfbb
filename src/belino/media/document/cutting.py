"""Long text cut into parts of readable size, at its headings, paragraphs or lines, without holding all of it."""

import re
from collections.abc import Iterable, Iterator

from belino.domain.document import DocumentText, Unit
from belino.media.document.parts import HIDDEN_NOTE, PART_CHARS, Parts, Wish

_HEADING = re.compile(r"^#{1,6} +(.{1,500})", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*+)\]\([^)]*+\)")
# From the best place to cut to the last resort; each is a place after which a part may end.
_PLACES = ("\n\n", "\n", ". ", "。", ", ", ",", " ")


def pieces(texts: Iterable[str], *, headings: bool = True) -> Iterator[tuple[str, str]]:
    """Title and text of each part; a title is the heading that the part stands under."""
    title, rest = "", ""
    for text in texts:
        rest, at = rest + text, 0
        while len(rest) - at > PART_CHARS:
            end = _cut(rest, at, headings=headings)
            piece = rest[at:end]
            name, title = _titles(piece, title) if headings else ("", "")
            yield name, piece
            at = end
        rest = rest[at:]
    if rest.strip():
        yield _titles(rest, title)[0] if headings else "", rest


def cut_document(text: str | Iterable[str], wish: Wish, *, notes: Iterable[str] = (), headings: bool = True,
                 hides: bool = False) -> DocumentText:  # fmt: skip
    """A text without pages as a document: `hides` says that hidden text in it was marked."""
    parts = Parts(wish, Unit.PART)
    parts.note(*notes, *((HIDDEN_NOTE,) if hides else ()))
    total = 0
    for title, piece in pieces([text] if isinstance(text, str) else text, headings=headings):
        total += 1
        if parts.wants(total):
            parts.add(total, piece, title)
    return parts.document(total)


def _cut(text: str, begin: int, *, headings: bool) -> int:
    least, most = begin + PART_CHARS // 2, begin + PART_CHARS
    if headings:
        places = [found.start() for found in _HEADING.finditer(text, least, most)]
        if places:
            return places[-1]
    for mark in _PLACES:
        at = text.rfind(mark, least, most)
        if at >= 0:
            return at + len(mark)
    return most


def _titles(piece: str, before: str) -> tuple[str, str]:
    """The heading a part stands under, and the one that the next stands under if it has none."""
    found = [_LINK.sub(r"\1", heading) for heading in _HEADING.findall(piece)]
    begins = bool(found) and (not before or piece.lstrip().startswith("#"))
    return (found[0] if begins else before), (found[-1] if found else before)
