"""Parts of a document: which are requested, how text is marked, split and collected, and why there may be none."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from belino.domain.media import DocumentText, DocumentUnit, Part, Unread

TITLE_CHARS = 200
NOTE_CHARS = 300
NOTES_AT_MOST = 20
SECONDS_AT_MOST = 12
"""The child is killed after twenty; a partial result is better than none."""
HIDDEN_NOTE = "text that a reader of the document would not see is marked as (hidden text: …)"
DELETED_NOTE = "text that tracked changes have deleted is marked as (deleted text: …)"

PART_CHARS = 8_000
"""A text without pages is split into parts of about this size, so that one fits into an answer."""
PART_CHARS_AT_HEADING = 2_000
"""From this size on, a part ends before a heading."""
ITEMS_AT_MOST = 100

_SPACE = re.compile(r"\s+")
_HEADING = re.compile(r"^#{1,6} +(.{1,500})", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*+)\]\([^)]*+\)")
# Separators after which a part may end, best first.
_PLACES = ("\n\n", "\n", ". ", "。", ", ", ",", " ")

Kind = Literal["shown", "hidden", "deleted"]
Span = tuple[Kind, str]


class CannotRead(Exception):
    """There is no text, for a reason that is reported."""

    def __init__(self, unread: Unread, reason: str) -> None:
        super().__init__(reason)
        self.unread = unread
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Which parts of a document are requested, and the maximum of text."""

    mime: str
    name: str = ""
    first: int = 1
    last: int | None = None
    max_chars: int = 2_000_000


@dataclass(slots=True)
class Parts:
    """Collects parts: call `wants` before reading one, `add` it, and take the `document` at the end."""

    options: ReadOptions
    unit: DocumentUnit
    at_most: int | None = None
    """How many parts are read at a time, where each of them is expensive."""
    _parts: list[Part] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _chars: int = 0
    _stopped: bool = False
    """Reading has stopped; further parts can be requested."""
    _lost: str = ""
    """What a further request does not bring."""
    _broken: str = ""
    _begun: float = field(default_factory=time.monotonic)

    def wants(self, number: int) -> bool:
        """Whether this part is requested and fits the limits of size and time."""
        first, last = self.options.first, self.options.last
        if self._stopped or number < first or (last is not None and number > last):
            return False
        full = self.at_most is not None and len(self._parts) >= self.at_most
        self._stopped = self._chars >= self.options.max_chars or full or self.late
        if self.late:
            self._lost = f"reading stopped after {SECONDS_AT_MOST} s, before {self.unit} {number}; there may be more"
        return not self._stopped

    @property
    def late(self) -> bool:
        """Whether the time is up: what has not been read by now is not even counted."""
        return time.monotonic() - self._begun > SECONDS_AT_MOST

    @property
    def room(self) -> int:
        """Characters left."""
        return max(0, self.options.max_chars - self._chars)

    def add(self, number: int, text: str, title: str = "", *, scanned: bool = False) -> None:
        """Add a part. One that does not fit with others is left for the next call; one that never fits is truncated."""
        text = text.strip("\n ")
        if len(text) > self.room:
            self._stopped = True
            if self._parts:
                return
            text = text[: self.room]
            self._lost = f"of {self.unit} {number} only the first {self.room} characters were read"
        self._chars += len(text)
        self._parts.append(Part(number=number, text=text, title=one_line(title)[:TITLE_CHARS], scanned=scanned))

    def broke(self, error: CannotRead) -> None:
        """Record that reading failed here; what was read is kept."""
        self._broken = error.reason

    def note(self, *notes: str) -> None:
        """Add notes for the reader, each once."""
        for note in notes:
            if note not in self._notes and len(self._notes) < NOTES_AT_MOST:
                self._notes.append(note[:NOTE_CHARS])

    def document(self, total: int, *, without_text: Unread = Unread.NO_TEXT) -> DocumentText:
        """The result; `without_text` is the reason if no part has text."""
        found = any(part.text for part in self._parts)
        return DocumentText(
            unit=self.unit,
            total=total,
            parts=tuple(self._parts),
            unread=None
            if found or self.options.first > total > 0
            else Unread.UNREADABLE
            if self._broken
            else without_text,
            reason=self._reason(total, found=found),
            notes=tuple(self._notes),
        )

    def _reason(self, total: int, *, found: bool) -> str:
        if self._broken:
            return f"not all of it could be read: {self._broken}" if found else self._broken
        if self._lost:
            return self._lost
        if self.options.first > total > 0:
            return f"there are only {total} {self.unit}s" if total > 1 else f"there is only one {self.unit}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphBlock:
    """A paragraph, a table or a list item; or a heading, with its text as the title of what follows."""

    text: str
    heading: str = ""
    item: bool = False


@dataclass(slots=True)
class BlockCutter:
    """Splits a text without pages into parts, at headings or when a part is long enough."""

    parts: Parts
    number: int = 1
    _blocks: list[str] = field(default_factory=list)
    _chars: int = 0
    _title: str = ""

    def take(self, blocks: Iterable[ParagraphBlock]) -> None:
        """Add many blocks; the items of a list stay together."""
        items: list[str] = []
        for block in blocks:
            if block.item and len(items) < ITEMS_AT_MOST:
                items.append(block.text)
                continue
            self.add("\n".join(items))
            items = [block.text] if block.item else []
            if not block.item:
                self.add(block.text, heading=block.heading)
        self.add("\n".join(items))

    def add(self, block: str, *, heading: str = "") -> None:
        """Add one block; ignored if it has no text."""
        block = block.strip("\n")
        if not block.strip():
            return
        while len(block) > 2 * PART_CHARS and (end := block.rfind("\n", 0, PART_CHARS)) > 0:
            # A table of many pages: rows are not split.
            self.add(block[:end], heading=heading)
            block, heading = block[end + 1 :], ""
        if self._chars + len(block) > PART_CHARS or (heading and self._chars >= PART_CHARS_AT_HEADING):
            self._end()
        if heading and not self._title:
            self._title = heading
        self._blocks.append(block)
        self._chars += len(block) + 2

    def document(self) -> DocumentText:
        """The document; a text without words has one empty part."""
        if self._blocks or self.number == 1:
            self._end()
        return self.parts.document(self.number - 1)

    def _end(self) -> None:
        if not self._blocks and self.number > 1:
            return
        if self.parts.wants(self.number):
            self.parts.add(self.number, "\n\n".join(self._blocks), self._title)
        self.number += 1
        self._blocks, self._chars, self._title = [], 0, ""


def pieces(texts: Iterable[str], *, headings: bool = True) -> Iterator[tuple[str, str]]:
    """Title and text of each part; the title is the heading that applies at its start."""
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


def cut_document(text: str | Iterable[str], options: ReadOptions, *, notes: Iterable[str] = (), headings: bool = True,
                 hides: bool = False) -> DocumentText:  # fmt: skip
    """A text without pages as a document; `hides` says that hidden text in it was marked."""
    parts = Parts(options, DocumentUnit.PART)
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
    """The heading that applies at the start of a part, and the one for the next part if it has none."""
    found = [_LINK.sub(r"\1", heading) for heading in _HEADING.findall(piece)]
    begins = bool(found) and (not before or piece.lstrip().startswith("#"))
    return (found[0] if begins else before), (found[-1] if found else before)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStyle:
    """The properties of a style that may hide text; None where it does not set one."""

    vanished: bool | None = None
    white: bool | None = None
    tiny: bool | None = None
    shaded: bool = False

    def over(self, under: "TextStyle") -> "TextStyle":
        """This style applied over another one."""
        return TextStyle(
            vanished=under.vanished if self.vanished is None else self.vanished,
            white=under.white if self.white is None else self.white,
            tiny=under.tiny if self.tiny is None else self.tiny,
            shaded=self.shaded or under.shaded,
        )

    def hides(self, *, shaded: bool) -> bool:
        """Whether text in this style is invisible on white paper, or on a shaded background."""
        return bool(self.vanished or self.tiny or (self.white and not shaded and not self.shaded))


PLAIN_STYLE = TextStyle()


def nothing(unread: Unread, reason: str) -> DocumentText:
    """A document without text, and the reason."""
    return DocumentText(unit=DocumentUnit.PART, total=0, unread=unread, reason=reason)


def hidden(text: str) -> str:
    """Text that a reader would not see, marked."""
    return marked("hidden", text)


def marked(kind: str, text: str) -> str:
    """Text with a mark of its kind; brackets in it cannot end the mark."""
    inside = one_line(text).replace("(", "[").replace(")", "]")
    return f"({kind} text: {inside})" if inside else ""


def joined(spans: Iterable[Span], note: Callable[[str], None]) -> str:
    """The text of a paragraph, with hidden and deleted text marked and noted."""
    text = ""
    for kind, group in groupby(spans, key=lambda span: span[0]):
        words = "".join(piece for _, piece in group)
        if kind == "shown" or not words.strip():
            text += words
        else:
            note(HIDDEN_NOTE if kind == "hidden" else DELETED_NOTE)
            text += marked(kind, words)
    return text


def one_line(text: str) -> str:
    """Text with all white space made single spaces."""
    return _SPACE.sub(" ", text).strip()


def table(rows: Iterable[Iterable[str]]) -> str:
    """Rows as a Markdown table, the first as its header; empty rows at the end are left out."""
    lines = [[_cell(cell) for cell in row] for row in rows]
    while lines and not any(lines[-1]):
        lines.pop()
    width = max((_filled(line) for line in lines), default=0)
    if not width:
        return ""
    written = ["| " + " | ".join((line + [""] * width)[:width]) + " |" for line in lines]
    return "\n".join([written[0], "|" + " --- |" * width, *written[1:]])


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _filled(line: list[str]) -> int:
    return next((at for at in range(len(line), 0, -1) if line[at - 1]), 0)
