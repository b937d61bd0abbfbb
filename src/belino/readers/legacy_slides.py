"""Legacy slides, of presentations before 2007 (MS-PPT): each slide's title, text and notes, hidden slides marked."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import ole
from belino.readers.ole import number
from belino.readers.parts import CannotRead, Parts, ReadOptions, one_line
from belino.readers.slides import HIDDEN_SLIDE, HIDDEN_SLIDES_NOTE, SLIDES_AT_MOST

EDITS_AT_MOST = 10_000
RECORDS_AT_MOST = 500_000
DEPTH_AT_MOST = 50

_LOCKED = 0xF3D1C4DF
_DOCUMENT, _EDIT, _PERSISTS = 1000, 4085, 6002
_LIST, _LISTED, _SLIDE, _ABOUT, _SHOWING = 4080, 1011, 1006, 1007, 1017
_TEXT_KIND, _CHARACTERS, _BYTES, _OUTLINE = 3999, 4000, 4008, 3998
_SLIDES, _NOTES = 0, 2
"""The lists of a document that are read; the one between them is that of the masters."""
_TITLES, _SPOKEN = frozenset({0, 6}), 2
"""Kinds of text: titles, and speaker notes."""
_HIDDEN = 0x04
_CONTROLS = {**dict.fromkeys(range(32)), 0x09: "\t", 0x0A: "\n", 0x0B: "\n", 0x0D: "\n"}


class _Lost(Exception):
    """No record leads to the document."""


@dataclass(frozen=True, slots=True)
class _Record:
    kind: int
    instance: int
    begin: int
    end: int
    inside: bool
    """Whether it contains other records."""


@dataclass(frozen=True, slots=True)
class _Text:
    kind: int
    words: str


@dataclass(slots=True)
class _Listed:
    """A slide, or its notes, as listed in the document: its record, and the texts of its outline."""

    record: _Record
    texts: list[_Text]


def prepare() -> None:
    """Import the parser before the sandbox forks: its child cannot."""
    ole.prepare()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The text of each slide."""
    container = ole.opened(file)
    user, content = ole.top_stream(container, "Current User"), ole.top_stream(container, "PowerPoint Document")
    if number(user, 12) == _LOCKED:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    show = _Show(content)
    parts = Parts(options, DocumentUnit.SLIDE)
    try:
        show.open(number(user, 16))
    except _Lost as error:
        show.search()
        if not show.slides:
            raise CannotRead(Unread.UNREADABLE, "the presentation is broken") from error
        parts.note("the file is damaged: slides may be missing, doubled or out of order")
    for at, listed in enumerate(show.slides.values(), 1):
        if parts.wants(at):
            title, text, hides = show.slide(listed)
            parts.note(*((HIDDEN_SLIDES_NOTE,) if hides else ()))
            parts.add(at, text, title)
    return parts.document(len(show.slides))


@dataclass(slots=True)
class _Show:
    content: bytes
    slides: dict[int, _Listed] = field(default_factory=dict)
    """By their ids."""
    notes: dict[int, _Listed] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)
    _left: int = RECORDS_AT_MOST

    def open(self, edit: int) -> None:
        """Find the last saved document, and its lists."""
        for record in self._inside(self._last_saved(edit)):
            if record.kind == _LIST and record.instance in (_SLIDES, _NOTES):
                self._list(record, self.slides if record.instance == _SLIDES else self.notes)

    def search(self) -> None:
        """Find every slide in the file, if no list of them is left."""
        whole = _Record(0, 0, 0, len(self.content), inside=True)
        found = [record for record in self._inside(whole) if record.kind == _SLIDE]
        self.slides.update(enumerate(_Listed(record, []) for record in found[:SLIDES_AT_MOST]))

    def slide(self, listed: _Listed) -> tuple[str, str, bool]:
        """Title and text, the title first, and whether it is hidden."""
        spoken, hides = "", False
        for record in self._inside(listed.record):
            if record.kind == _ABOUT:
                spoken = self._spoken(number(self.content, record.begin + 16))
            elif record.kind == _SHOWING:
                hides = bool(number(self.content, record.begin + 10, 2) & _HIDDEN)
        texts = self._texts(listed)
        title = next((one_line(text.words) for text in texts if text.kind in _TITLES and text.words.strip()), "")
        body = [text.words for text in texts if text.kind not in _TITLES or one_line(text.words) != title]
        blocks = [f"# {title}" if title else "", HIDDEN_SLIDE if hides else "", *body]
        blocks += [f"Notes: {spoken}"] if spoken else []
        return title, "\n\n".join(block for block in blocks if block.strip()), hides

    def _spoken(self, notes: int) -> str:
        texts = self._texts(self.notes[notes]) if notes in self.notes else []
        return "\n".join(text.words for text in texts if text.kind == _SPOKEN and text.words.strip())

    def _texts(self, listed: _Listed) -> list[_Text]:
        """All texts in the order of the shapes; those of the outline are in a list of their own."""
        found: list[_Text] = []
        kind = -1
        for record in self._below(listed.record):
            if record.kind == _TEXT_KIND:
                kind = number(self.content, record.begin)
            elif record.kind == _OUTLINE:
                found += listed.texts[(at := number(self.content, record.begin)) : at + 1]
            elif record.kind in (_CHARACTERS, _BYTES):
                found.append(_Text(kind, self._words(record)))
        return [*(text for text in listed.texts if text not in found), *found]

    def _words(self, record: _Record) -> str:
        content = self.content[record.begin : record.end]
        text = content.decode("utf-16-le", "replace") if record.kind == _CHARACTERS else content.decode("latin-1")
        return text.translate(_CONTROLS).strip()

    def _last_saved(self, edit: int) -> _Record:
        """The document. Each save appends what has changed, and leaves the rest unchanged."""
        document = 0
        for _ in range(EDITS_AT_MOST):
            record = self._at(edit)
            if record is None or record.kind != _EDIT:
                break
            if record.end - record.begin >= 32:  # it contains a reference to the encryption key
                raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
            document = document or number(self.content, record.begin + 16)
            self._learn(self._at(number(self.content, record.begin + 12)))
            edit = number(self.content, record.begin + 8)
            if not edit:
                break
        found = self._at(self._places.get(document, -1))
        if found is None or found.kind != _DOCUMENT:
            raise _Lost
        return found

    def _learn(self, record: _Record | None) -> None:
        """Read the offset of each object; the latest list wins."""
        at, end = (record.begin, record.end) if record is not None and record.kind == _PERSISTS else (0, 0)
        while at < end and self._left > 0:
            told = number(self.content, at)
            first, count = told & 0xFFFFF, min(told >> 20, (end - at) // 4)
            for each in range(count):
                self._places.setdefault(first + each, number(self.content, at + 4 + 4 * each))
            self._left -= count + 1
            at += 4 * (count + 1)

    def _list(self, record: _Record, into: dict[int, _Listed]) -> None:
        texts: list[_Text] = []
        kind = -1
        for each in self._inside(record):
            if each.kind == _LISTED:
                texts, place = [], self._at(self._places.get(number(self.content, each.begin), -1))
                if place is not None and len(into) < SLIDES_AT_MOST:
                    into[number(self.content, each.begin + 12)] = _Listed(place, texts)
            elif each.kind == _TEXT_KIND:
                kind = number(self.content, each.begin)
            elif each.kind in (_CHARACTERS, _BYTES):
                texts.append(_Text(kind, self._words(each)))

    def _below(self, record: _Record) -> Iterator[_Record]:
        """All records inside it, at any depth, in order."""
        waiting = [self._inside(record)]
        while waiting:
            each = next(waiting[-1], None)
            if each is None:
                waiting.pop()
                continue
            yield each
            if each.inside and len(waiting) < DEPTH_AT_MOST:
                waiting.append(self._inside(each))

    def _inside(self, record: _Record) -> Iterator[_Record]:
        at = record.begin
        while at + 8 <= record.end and self._left > 0 and (found := self._at(at)) is not None:
            self._left -= 1
            yield found
            at = found.end

    def _at(self, at: int) -> _Record | None:
        if not 0 <= at <= len(self.content) - 8:
            return None
        about, kind, size = struct.unpack_from("<HHI", self.content, at)
        end = min(at + 8 + size, len(self.content))
        return _Record(kind, about >> 4, at + 8, end, inside=about & 0xF == 0xF)
