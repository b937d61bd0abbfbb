"""Word documents as they were before 2007 (MS-DOC): headings, lists, tables, notes; hidden and deleted text marked."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from belino.domain.document import DocumentText, Unit, Unread
from belino.media.document import charset, container
from belino.media.document.container import number
from belino.media.document.parts import Block, CannotRead, Cutting, Parts, Wish, one_line, table
from belino.media.document.word97_tables import Piece, Runs, characters, paragraphs, pieces
from belino.media.document.word_text import ADDRESS, TINY_HALF_POINTS, Kind, Span, joined, symbol

_WORD_97 = 0xC1
_LOCKED, _OTHER_TABLES = 0x0100, 0x0200
# The texts that follow one another, with the place of their lengths; what belongs to macros nobody sees.
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


def prepare() -> None:
    """Import what reading needs; in the child it would be too late."""
    container.prepare()
    charset.prepare()


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """The document's text, cut at its headings."""
    ole = container.opened(file)
    main = container.top_stream(ole, "WordDocument")
    flags = number(main, 10, 2)
    if flags & _LOCKED:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    parts = Parts(wish, Unit.PART)
    if number(main, 2, 2) < _WORD_97:
        begin, length = number(main, 0x18), number(main, 0x34)
        codec, _ = charset.detect(main[begin : begin + length].translate(None, bytes(range(32))))
        reader = _Reader(main, parts, [Piece(0, length, begin, codec)])
        return _document(reader, [("", length)])
    tables = container.top_stream(ole, "1Table" if flags & _OTHER_TABLES else "0Table")
    reader = _Reader(main, parts, pieces(main, tables), characters(main, tables), paragraphs(main, tables))
    return _document(reader, [(name, number(main, at)) for name, at in _STORIES])


def _document(reader: "_Reader", stories: list[tuple[str | None, int]]) -> DocumentText:
    cutting, told, at = Cutting(reader.parts), set[str](), 0
    for name, length in stories:
        if name == "":
            cutting.take(reader.blocks(at, at + length))
        for block in reader.blocks(at, at + length) if name else ():
            if block.text and block.text not in told:  # each section repeats its headers
                told.add(block.text)
                cutting.add(f"{name}: {block.text}")
        at += length
    return cutting.document()


@dataclass(slots=True)
class _Field:
    """What is computed: first how, then the result."""

    how: str = ""
    tells: bool = False


@dataclass(slots=True)
class _Reader:
    main: bytes
    parts: Parts
    pieces: list[Piece]
    characters: Runs = field(default_factory=Runs)
    paragraphs: Runs = field(default_factory=Runs)
    _fields: list[_Field] = field(default_factory=list)
    _rows: list[list[str]] = field(default_factory=list)
    _row: list[str] = field(default_factory=list)
    _cell: list[str] = field(default_factory=list)

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Paragraphs and tables from one character to another."""
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
        """Stretches of text by what becomes of them."""
        starts, at = self.characters.starts, 0
        while at < len(text):
            run = bisect_right(starts, offset + at * width)
            end = (starts[run] - offset) // width if run < len(starts) else len(text)
            end = max(at + 1, min(end, len(text)))
            said = self.characters.at(offset + at * width)
            kind, words = _kind(said, about), symbol(said[_SYMBOL] >> 16) if _SYMBOL in said else text[at:end]
            for word in _FIELD.split(words):
                if told := self._told(word).translate(_CONTROLS):
                    yield kind, told
            at = end

    def _told(self, word: str) -> str:
        """A field shows its result, and the address it leads to."""
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

    def _paragraph(self, text: str, mark: str, offset: int) -> Iterator[Block]:
        """A paragraph, or a table that it ends."""
        about = self.paragraphs.at(offset)
        text = text.strip(" \t")
        if mark == _CELL or _IN_TABLE in about:
            self._in_table(text, mark, about)
            return
        yield from self._table()
        style = self.paragraphs.style(offset)
        if text and 1 <= style <= 9:
            yield Block(text=f"{'#' * min(style, 6)} {one_line(text)}", heading=one_line(text))
        elif text:
            listed = bool(about.get(_LIST))
            indent = "  " * min(about.get(_LIST_DEPTH, 0), 8)
            yield Block(text=f"{indent}- {text}" if listed else text, item=listed)

    def _in_table(self, text: str, mark: str, about: Mapping[int, int]) -> None:
        # Before Word 97 nothing tells where rows end but an empty cell more than there are.
        ends = _ROW_ENDS in about if self.paragraphs.starts else not text and bool(self._row)
        if mark == _CELL and ends and not self._cell:
            self._rows.append(self._row)
            self._row = []
            return
        self._cell.append(text)
        if mark == _CELL:
            self._row.append("\n".join(self._cell))
            self._cell = []

    def _table(self) -> Iterator[Block]:
        rows = [*self._rows, *([[*self._row, *self._cell]] if self._row or self._cell else [])]
        self._rows, self._row, self._cell = [], [], []
        if rows:
            yield Block(text=table(rows))


def _kind(said: Mapping[int, int], about: Mapping[int, int]) -> Kind:
    """What a reader would make of characters of which this is said, in a paragraph of which that is said."""
    if said.get(_DELETED):
        return "deleted"
    white = said.get(_COLOUR) == _WHITE or said.get(_COLOUR_NUMBER) == _WHITE_NUMBER
    shaded = _IN_TABLE in about or not _BACKGROUNDS.isdisjoint({*said, *about})
    tiny = said.get(_SIZE, TINY_HALF_POINTS + 1) <= TINY_HALF_POINTS
    return "hidden" if said.get(_VANISH) or tiny or (white and not shaded) else "shown"
