"""The child's side of reading a document: what is wished for, how parts are gathered, and why there may be none."""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from belino.domain.document import DocumentText, Part, Unit, Unread

TITLE_CHARS = 200
NOTE_CHARS = 300
NOTES_AT_MOST = 20
SECONDS_AT_MOST = 12
"""The child is killed after twenty; what has been read by now is better than nothing."""
HIDDEN_NOTE = "text that a reader of the document would not see is marked as (hidden text: …)"

PART_CHARS = 8_000
"""A text without pages is cut into parts of about this size, so that one fits into an answer."""
PART_CHARS_AT_HEADING = 2_000
"""From this size on a part ends before a heading."""
ITEMS_AT_MOST = 100

_SPACE = re.compile(r"\s+")


class CannotRead(Exception):
    """There is no text to be had, for a reason that is told."""

    def __init__(self, unread: Unread, reason: str) -> None:
        super().__init__(reason)
        self.unread = unread
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which parts of a document are asked for, and how much text at most."""

    mime: str
    name: str = ""
    first: int = 1
    last: int | None = None
    max_chars: int = 2_000_000


@dataclass(slots=True)
class Parts:
    """Parts as they are read: ask `wants` before reading one, `add` it, and take the `document` at the end."""

    wish: Wish
    unit: Unit
    at_most: int | None = None
    """How many parts are read at a time, where each of them is costly."""
    _parts: list[Part] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _chars: int = 0
    _stopped: bool = False
    """No more is read; whoever wants more asks for the next."""
    _lost: str = ""
    """What asking for the next does not bring."""
    _broken: str = ""
    _begun: float = field(default_factory=time.monotonic)

    def wants(self, number: int) -> bool:
        """Whether this part is asked for, and there is room and time for it."""
        if number < self.wish.first or (self.wish.last is not None and number > self.wish.last) or self._stopped:
            return False
        full = self.at_most is not None and len(self._parts) >= self.at_most
        self._stopped = self._chars >= self.wish.max_chars or full or self.late
        if self.late:
            self._lost = f"reading stopped after {SECONDS_AT_MOST} s, before {self.unit} {number}; there may be more"
        return not self._stopped

    @property
    def late(self) -> bool:
        """Whether the time is up: what has not been read by now is not even counted."""
        return time.monotonic() - self._begun > SECONDS_AT_MOST

    @property
    def over(self) -> bool:
        """Whether no part from here on will be wanted: the rest need only be counted."""
        return self._stopped

    @property
    def room(self) -> int:
        """Characters left."""
        return max(0, self.wish.max_chars - self._chars)

    def add(self, number: int, text: str, title: str = "") -> None:
        """Keep a part. One that does not fit beside others is left to who asks for it; one that never does is cut."""
        text = text.strip("\n ")
        if len(text) > self.room:
            self._stopped = True
            if self._parts:
                return
            text = text[: self.room]
            self._lost = f"of {self.unit} {number} only the first {self.room} characters were read"
        self._chars += len(text)
        self._parts.append(Part(number=number, text=text, title=one_line(title)[:TITLE_CHARS]))

    def broke(self, error: CannotRead) -> None:
        """Reading ended here, before the end; what was read is kept."""
        self._broken = error.reason

    def note(self, *notes: str) -> None:
        """Something a reader should know, said once."""
        for note in notes:
            if note not in self._notes and len(self._notes) < NOTES_AT_MOST:
                self._notes.append(note[:NOTE_CHARS])

    def document(self, total: int, *, without_text: Unread = Unread.NO_TEXT) -> DocumentText:
        """What was read; `without_text` says why, if there is no text in any part."""
        found = any(part.text for part in self._parts)
        return DocumentText(
            unit=self.unit,
            total=total,
            parts=tuple(self._parts),
            unread=None
            if found or self.wish.first > total > 0
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
        if self.wish.first > total > 0:
            return f"there are only {total} {self.unit}s" if total > 1 else f"there is only one {self.unit}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, a table, an item of a list; or a heading, with its words as the title of what follows."""

    text: str
    heading: str = ""
    item: bool = False


@dataclass(slots=True)
class Cutting:
    """Cuts a text without pages: blocks go in one after the other, at headings or when it is long a part comes out."""

    parts: Parts
    number: int = 1
    _blocks: list[str] = field(default_factory=list)
    _chars: int = 0
    _title: str = ""

    def take(self, blocks: Iterable[Block]) -> None:
        """Many blocks; the items of a list stay together."""
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
        """One block; nothing, if there is no word in it."""
        block = block.strip("\n")
        if not block.strip():
            return
        while len(block) > 2 * PART_CHARS and (end := block.rfind("\n", 0, PART_CHARS)) > 0:
            # A table of many pages: rows stay whole.
            self.add(block[:end], heading=heading)
            block, heading = block[end + 1 :], ""
        if self._chars + len(block) > PART_CHARS or (heading and self._chars >= PART_CHARS_AT_HEADING):
            self._end()
        if heading and not self._title:
            self._title = heading
        self._blocks.append(block)
        self._chars += len(block) + 2

    def document(self) -> DocumentText:
        """All of it; a text without a word has one part, without any."""
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


def hidden(text: str) -> str:
    """Text that a reader would not see, marked."""
    return marked("hidden", text)


def marked(kind: str, text: str) -> str:
    """Text that is not as it seems, marked; brackets in it cannot end the mark."""
    inside = one_line(text).replace("(", "[").replace(")", "]")
    return f"({kind} text: {inside})" if inside else ""


def one_line(text: str) -> str:
    """Text with all white space made single spaces."""
    return _SPACE.sub(" ", text).strip()


def table(rows: Iterable[Iterable[str]]) -> str:
    """Rows as a table in Markdown, the first as its head; empty rows at the end are left out."""
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
