"""Legacy Word documents, before 2007 (MS-DOC): headings, lists, tables, notes; hidden and deleted text marked."""

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import BinaryIO

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import charset, ole
from belino.readers.ole import number
from belino.readers.parts import (
    BlockCutter,
    CannotRead,
    Kind,
    ParagraphBlock,
    Parts,
    ReadOptions,
    Span,
    joined,
    one_line,
    table,
)
from belino.readers.word import ADDRESS, TINY_HALF_POINTS, symbol

_WORD_97 = 0xC1
_LOCKED, _OTHER_TABLES = 0x0100, 0x0200
# The consecutive texts, with the offset of their lengths; text of macros is not shown.
_STORIES = (("", 0x4C), ("Footnote", 0x50), ("Header or footer", 0x54), (None, 0x58), ("Comment", 0x5C),
            ("Endnote", 0x60), ("Text box", 0x64), ("Text box", 0x68))  # fmt: skip
_VANISH, _DELETED, _SIZE, _COLOUR, _COLOUR_NUMBER = 0x083C, 0x0800, 0x4A43, 0x6870, 0x2A42
_BACKGROUNDS = frozenset({0xCA71, 0x4866, 0x2A0C, 0xC64D, 0x442D})
_IN_TABLE, _ROW_ENDS, _LIST, _LIST_DEPTH = 0x2416, 0x2417, 0x460B, 0x260A
_SYMBOL = 0x6A09
_WHITE, _WHITE_NUMBER = 0xFFFFFF, 8
_CELL, _BEGIN, _MIDDLE, _END = "\x07", "\x13", "\x14", "\x15"
_ENDS = re.compile("[\r\x07\x0c]")
_FIELD = re.compile("([\x13\x14\x15])")
_CONTROLS = {**dict.fromkeys(range(32)), 0x09: "\t", 0x0B: "\n", 0x0E: "\n", 0x1E: "-"}

PIECES_AT_MOST = 200_000
RUNS_AT_MOST = 1_000_000

_PIECE_TABLE, _CHARACTER_TABLE, _PARAGRAPH_TABLE = 0x1A2, 0xFA, 0x102
"""Offsets in the header at which the place of a table is given."""
_PAGE_BYTES = 512
_COMPRESSED = 0x4000_0000
_OPERANDS = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}
"""Operand bytes of a property, by the first bits of its number; the missing kind states its own length."""
_LONG = frozenset({0xD606, 0xD608})
"""Table definitions, which state their length in two bytes."""


def prepare() -> None:
    """Import the parser before the sandbox forks: its child cannot."""
    ole.prepare()
    charset.prepare()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The document's text, split at its headings."""
    container = ole.opened(file)
    main = ole.top_stream(container, "WordDocument")
    flags = number(main, 10, 2)
    if flags & _LOCKED:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    parts = Parts(options, DocumentUnit.PART)
    if number(main, 2, 2) < _WORD_97:
        begin, length = number(main, 0x18), number(main, 0x34)
        codec, _ = charset.detect(main[begin : begin + length].translate(None, bytes(range(32))))
        reader = _DocumentReader(main, parts, [_Piece(0, length, begin, codec)])
        return _document(reader, [("", length)])
    tables = ole.top_stream(container, "1Table" if flags & _OTHER_TABLES else "0Table")
    reader = _DocumentReader(
        main, parts, _pieces(main, tables), _character_runs(main, tables), _paragraph_runs(main, tables)
    )
    return _document(reader, [(name, number(main, at)) for name, at in _STORIES])


def _document(reader: "_DocumentReader", stories: list[tuple[str | None, int]]) -> DocumentText:
    cutter, told, at = BlockCutter(reader.parts), set[str](), 0
    for name, length in stories:
        if name == "":
            cutter.take(reader.blocks(at, at + length))
        for block in reader.blocks(at, at + length) if name else ():
            if block.text and block.text not in told:  # each section repeats its headers
                told.add(block.text)
                cutter.add(f"{name}: {block.text}")
        at += length
    return cutter.document()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A range of the text, and its place in the file."""

    first: int
    last: int
    offset: int
    codec: str

    @property
    def width(self) -> int:
        return 2 if self.codec == "utf-16-le" else 1


@dataclass(frozen=True, slots=True)
class _Runs:
    """The properties of ranges of the file, in order."""

    starts: list[int] = field(default_factory=list)
    _told: list[bytes] = field(default_factory=list)
    _skips: int = 0

    def at(self, offset: int) -> Mapping[int, int]:
        """The properties at an offset, by their numbers."""
        return _properties(self._raw(offset)[self._skips :])

    def style(self, offset: int) -> int:
        """The style of the paragraph at an offset: 1 to 9 are headings."""
        return number(self._raw(offset), 0, 2)

    def _raw(self, offset: int) -> bytes:
        found = bisect_right(self.starts, offset) - 1
        return self._told[found] if found >= 0 else b""


def _pieces(main: bytes, tables: bytes) -> list[_Piece]:
    """The ranges of the text, in order."""
    at, size = number(main, _PIECE_TABLE), number(main, _PIECE_TABLE + 4)
    end = at + size
    while at < end and tables[at : at + 1] == b"\x01":  # properties shared by pieces
        at += 3 + number(tables, at + 1, 2)
    if tables[at : at + 1] != b"\x02":
        raise CannotRead(Unread.UNREADABLE, "the document is broken")
    count = min((number(tables, at + 1) - 4) // 12, PIECES_AT_MOST)
    if count < 1 or at + 5 + 12 * count + 4 > len(tables):
        raise CannotRead(Unread.UNREADABLE, "the document is broken")
    places = struct.unpack_from(f"<{count + 1}I", tables, at + 5)
    found = []
    for each in range(count):
        offset = number(tables, at + 5 + 4 * (count + 1) + 8 * each + 2)
        codec = "cp1252" if offset & _COMPRESSED else "utf-16-le"
        offset = (offset & ~_COMPRESSED) // 2 if offset & _COMPRESSED else offset
        found.append(_Piece(places[each], places[each + 1], offset, codec))
    return found


def _character_runs(main: bytes, tables: bytes) -> _Runs:
    """The character properties."""
    found = sorted(_runs(main, tables, _CHARACTER_TABLE, entry=1))
    return _Runs([start for start, _ in found], [told for _, told in found])


def _paragraph_runs(main: bytes, tables: bytes) -> _Runs:
    """The paragraph properties, each beginning with its style."""
    found = sorted(_runs(main, tables, _PARAGRAPH_TABLE, entry=13))
    return _Runs([start for start, _ in found], [told for _, told in found], 2)


def _runs(main: bytes, tables: bytes, where: int, *, entry: int) -> Iterator[tuple[int, bytes]]:
    """Start and properties of each run, from pages of 512 bytes that are listed in a table."""
    at, size = number(main, where), number(main, where + 4)
    count, left = (min(size, len(tables)) - 4) // 8, RUNS_AT_MOST
    for each in range(max(0, count)):
        begin = _PAGE_BYTES * (number(tables, at + 4 * (count + 1) + 4 * each) & 0x3FFFFF)
        page = main[begin : begin + _PAGE_BYTES]
        held = page[-1] if len(page) == _PAGE_BYTES else 0
        left -= held
        if left < 0:
            return
        for run in range(held):
            place = 2 * number(page, 4 * (held + 1) + entry * run, 1)
            yield number(page, 4 * run), _told(page, place, long=entry > 1) if place else b""


def _told(page: bytes, place: int, *, long: bool) -> bytes:
    size = number(page, place, 1)
    if not long:
        return page[place + 1 : place + 1 + size]
    if size:
        return page[place + 1 : place + 2 * size]
    return page[place + 2 : place + 2 + 2 * number(page, place + 1, 1)]


@lru_cache(maxsize=4096)
def _properties(told: bytes) -> Mapping[int, int]:
    """Properties by their numbers, as far as they are known."""
    found: dict[int, int] = {}
    at = 0
    while at + 2 < len(told):
        name = number(told, at, 2)
        at += 2
        if (size := _OPERANDS.get(name >> 13)) is None:
            size = number(told, at, 2) + 1 if name in _LONG else number(told, at, 1) + 1
            found[name] = 1
        else:
            found[name] = number(told, at, size)
        at += size
    return MappingProxyType(found)


@dataclass(slots=True)
class _Field:
    """A field: its instruction, then its result."""

    how: str = ""
    tells: bool = False


@dataclass(slots=True)
class _DocumentReader:
    main: bytes
    parts: Parts
    pieces: list[_Piece]
    characters: _Runs = field(default_factory=_Runs)
    paragraphs: _Runs = field(default_factory=_Runs)
    _fields: list[_Field] = field(default_factory=list)
    _rows: list[list[str]] = field(default_factory=list)
    _row: list[str] = field(default_factory=list)
    _cell: list[str] = field(default_factory=list)

    def blocks(self, first: int, last: int) -> Iterator[ParagraphBlock]:
        """Paragraphs and tables in a range of characters."""
        spans: list[Span] = []
        self._fields.clear()
        for piece in self.pieces:
            begin, end = max(first, piece.first), min(last, piece.last)
            if begin >= end or self.parts.late:
                continue
            width, offset = piece.width, piece.offset + (begin - piece.first) * piece.width
            text, at = self.main[offset : offset + (end - begin) * width].decode(piece.codec, "replace"), 0
            for mark in _ENDS.finditer(text):
                about = offset + mark.start() * width
                spans += self._spans(text[at : mark.start()], offset + at * width, width, self.paragraphs.at(about))
                yield from self._paragraph(joined(spans, self.parts.note), mark.group(), about)
                spans, at = [], mark.end()
            spans += self._spans(text[at:], offset + at * width, width, {})
        yield from self._paragraph(joined(spans, self.parts.note), "\r", -1)
        yield from self._table()

    def _spans(self, text: str, offset: int, width: int, about: Mapping[int, int]) -> Iterator[Span]:
        """Ranges of text by whether they are shown."""
        starts, at = self.characters.starts, 0
        while at < len(text):
            run = bisect_right(starts, offset + at * width)
            end = (starts[run] - offset) // width if run < len(starts) else len(text)
            end = max(at + 1, min(end, len(text)))
            said = self.characters.at(offset + at * width)
            kind, words = _kind(said, about), symbol(said[_SYMBOL] >> 16) if _SYMBOL in said else text[at:end]
            for word in _FIELD.split(words):
                if told := self._shown_text(word).translate(_CONTROLS):
                    yield kind, told
            at = end

    def _shown_text(self, word: str) -> str:
        """The visible text of a field: its result, and its link target."""
        if word == _BEGIN:
            self._fields.append(_Field())
        elif word == _MIDDLE and self._fields:
            self._fields[-1].tells = True
        elif word == _END and self._fields:
            address = ADDRESS.search(self._fields.pop().how)
            word = f" ({address.group(1)})" if address else ""
        elif self._fields and not self._fields[-1].tells:
            self._fields[-1].how += word[:2000]
        return word if all(each.tells for each in self._fields) else ""

    def _paragraph(self, text: str, mark: str, offset: int) -> Iterator[ParagraphBlock]:
        """A paragraph, or the table that ends before it."""
        about = self.paragraphs.at(offset)
        text = text.strip(" \t")
        if mark == _CELL or _IN_TABLE in about:
            self._in_table(text, mark, about)
            return
        yield from self._table()
        style = self.paragraphs.style(offset)
        if text and 1 <= style <= 9:
            yield ParagraphBlock(text=f"{'#' * min(style, 6)} {one_line(text)}", heading=one_line(text))
        elif text:
            listed = bool(about.get(_LIST))
            indent = "  " * min(about.get(_LIST_DEPTH, 0), 8)
            yield ParagraphBlock(text=f"{indent}- {text}" if listed else text, item=listed)

    def _in_table(self, text: str, mark: str, about: Mapping[int, int]) -> None:
        # Before Word 97 the end of a row is marked only by an extra empty cell.
        ends = _ROW_ENDS in about if self.paragraphs.starts else not text and bool(self._row)
        if mark == _CELL and ends and not self._cell:
            self._rows.append(self._row)
            self._row = []
            return
        self._cell.append(text)
        if mark == _CELL:
            self._row.append("\n".join(self._cell))
            self._cell = []

    def _table(self) -> Iterator[ParagraphBlock]:
        rows = [*self._rows, *([[*self._row, *self._cell]] if self._row or self._cell else [])]
        self._rows, self._row, self._cell = [], [], []
        if rows:
            yield ParagraphBlock(text=table(rows))


def _kind(said: Mapping[int, int], about: Mapping[int, int]) -> Kind:
    """Whether characters with these properties are shown, in a paragraph with those."""
    if said.get(_DELETED):
        return "deleted"
    white = said.get(_COLOUR) == _WHITE or said.get(_COLOUR_NUMBER) == _WHITE_NUMBER
    shaded = _IN_TABLE in about or not _BACKGROUNDS.isdisjoint({*said, *about})
    tiny = said.get(_SIZE, TINY_HALF_POINTS + 1) <= TINY_HALF_POINTS
    return "hidden" if said.get(_VANISH) or tiny or (white and not shaded) else "shown"
