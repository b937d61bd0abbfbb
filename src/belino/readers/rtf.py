"""RTF: its text as displayed, in any character set, hidden text marked; pictures and style tables left out."""

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from belino.domain.media import DocumentText, Unread
from belino.readers import charset
from belino.readers.parts import CannotRead, ReadOptions, cut_document, hidden

BYTES_AT_MOST = 50 * 1024 * 1024
DEPTH_AT_MOST = 2_000
WHITE = 245
TINY_HALF_POINTS = 4

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})?[ ]?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+|([^\\{}\r\n]+)", re.DOTALL
)
_COLOURS = re.compile(rb"\\colortbl\b([^{}]{0,100000})")
_COLOUR = re.compile(rb"\\(red|green|blue)(\d{1,3})")
_GROUNDS = re.compile(rb"\\(?:highlight|cb|chcbpat|cbpat|clcbpat|trcbpat|chshdng|shading|clshdng)[1-9]")
# Groups whose content is not shown on the page.
_ASIDE = frozenset(
    b"fonttbl colortbl stylesheet info pict objdata themedata colorschememapping latentstyles datastore "
    b"listtable listoverridetable rsidtbl generator xmlnstbl filetbl revtbl fldinst bkmkstart bkmkend nonshppict "
    b"shppict blipuid picprop sp sn sv datafield formfield pgdsctbl panose falt background ftnsep ftnsepc ftncn "
    b"aftnsep aftnsepc aftncn htmltag mhtmltag xe tc tcn private template".split()
)
_KEPT_ASIDE = frozenset(
    {b"shptxt", b"shpinst", b"shprslt", b"footnote", b"annotation", b"fldrslt", b"result", b"docfmt"}
)
"""Groups marked as ignorable that contain text all the same."""
_WORDS = {
    b"par": "\n", b"line": "\n", b"sect": "\n\n", b"page": "\n\n", b"row": "\n", b"nestrow": "\n", b"cell": " | ",
    b"nestcell": " | ", b"tab": "\t", b"emdash": "—", b"endash": "–", b"emspace": " ", b"enspace": " ", b"qmspace": " ",
    b"bullet": "•", b"lquote": "‘", b"rquote": "’", b"ldblquote": "“", b"rdblquote": "”", b"softline": "\n",
}  # fmt: skip
_SIGNS = {b"~": "\u00a0", b"_": "-", b"-": "", b"\n": "\n", b"\r": "\n", b"{": "{", b"}": "}", b"\\": "\\"}
# A font's character set, and its code page.
_FONT_SETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "big5hkscs", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250", 255: "cp437",
}  # fmt: skip
_PAGES = {932: "cp932", 936: "gb18030", 949: "cp949", 950: "big5hkscs", 10000: "mac_roman", 65001: "utf-8"}


@dataclass(frozen=True, slots=True)
class _Group:
    """State that is restored at the end of a group."""

    aside: bool = False
    vanished: bool = False
    white: bool = False
    tiny: bool = False
    fallback: int = 1
    """How many fallback characters follow a Unicode one, for older readers."""
    font: int = -1
    fonts: bool = False
    """Inside the font table."""

    @property
    def hidden(self) -> bool:
        """Whether text here is hidden."""
        return self.vanished or self.white or self.tiny


@dataclass(slots=True)
class _Reader:
    text: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    hides: bool = False
    codec: str = "cp1252"
    whites: frozenset[int] = frozenset()
    """Indexes of colours that are invisible on paper."""
    _group: _Group = field(default_factory=_Group)
    _above: list[_Group] = field(default_factory=list)
    _codecs: dict[int, str] = field(default_factory=dict)
    _bytes: bytearray = field(default_factory=bytearray)
    """Bytes that are not decoded yet, because one may be half a character."""
    _skip: int = 0
    _half: int = 0
    _opened: bool = False
    """Whether the previous token opened a group."""
    _starred: bool = False

    def take(self, content: bytes) -> None:
        """Process all tokens in order."""
        at = 0
        while found := _TOKEN.match(content, at):
            at = found.end()
            word, number, code, sign, brace, plain = found.groups()
            if word == b"bin":
                at += max(0, int(number or 0))
            elif word is not None:
                self._word(word, int(number) if number is not None else None)
            elif code is not None:
                self._byte(bytes([int(code, 16)]))
            elif brace is not None:
                self._brace(opens=brace == b"{")
            elif plain is not None and not self._group.aside:
                self._byte(plain)
            elif sign is not None:
                self._sign(sign)
            self._opened = brace == b"{"
        self._flush()
        self._reveal()

    def _brace(self, *, opens: bool) -> None:
        self._flush()
        self._skip = 0
        if opens:
            if len(self._above) >= DEPTH_AT_MOST:
                raise CannotRead(Unread.UNREADABLE, "its groups are nested too deeply")
            self._above.append(self._group)
        elif self._above:
            self._group = self._above.pop()
            if not self._group.hidden:
                self._reveal()
        self._starred = False

    def _sign(self, sign: bytes) -> None:
        if sign == b"*":
            self._starred = self._opened  # elsewhere it has no meaning
        else:
            self._write(_SIGNS.get(sign, ""))

    def _word(self, word: bytes, number: int | None) -> None:
        starred, self._starred = self._starred, False
        if word in _ASIDE or (starred and word not in _KEPT_ASIDE):
            self._flush()
            self._group = replace(self._group, aside=True, fonts=word == b"fonttbl")
        elif self._group.fonts:
            self._font(word, number or 0)
        elif word == b"u" and number is not None:
            self._flush()
            self._unicode(number & 0xFFFF)
            self._skip = self._group.fallback
        elif word in _WORDS:
            self._write(_WORDS[word])
        else:
            self._state(word, number)

    def _state(self, word: bytes, number: int | None) -> None:
        match word:
            case b"v" | b"webhidden" | b"deleted":
                self._look(vanished=number != 0)
            case b"plain":
                self._look(vanished=False, white=False, tiny=False)
            case b"cf":
                self._look(white=(number or 0) in self.whites)
            case b"fs":
                self._look(tiny=0 < (number or 0) <= TINY_HALF_POINTS)
            case b"htmlrtf":
                self._flush()
                self._group = replace(self._group, aside=number != 0)
            case b"uc":
                self._group = replace(self._group, fallback=max(0, min(number or 0, 100)))
            case b"f":
                self._flush()
                self._group = replace(self._group, font=number or 0)
            case b"ansicpg":
                self.codec = _code_page(number or 0) or self.codec
            case b"mac" | b"pc" | b"pca":
                self.codec = {b"mac": "mac_roman", b"pc": "cp437", b"pca": "cp850"}[word]

    def _look(self, **changes: bool) -> None:
        if all(getattr(self._group, name) is set_to for name, set_to in changes.items()):
            return
        self._flush()
        self._group = replace(self._group, **changes)
        if not self._group.hidden:
            self._reveal()

    def _font(self, word: bytes, number: int) -> None:
        if word == b"f":
            self._group = replace(self._group, font=number)
        elif word == b"fcharset" and number in _FONT_SETS and number:
            self._codecs[self._group.font] = _FONT_SETS[number]
        elif word == b"cpg" and (codec := _code_page(number)):
            self._codecs[self._group.font] = codec

    def _byte(self, written: bytes) -> None:
        if self._group.aside:
            return
        if self._skip:
            taken = min(self._skip, len(written))
            self._skip -= taken
            written = written[taken:]
        self._bytes += written

    def _unicode(self, unit: int) -> None:
        """Characters beyond U+FFFF come as surrogate pairs."""
        if 0xD800 <= unit < 0xDC00:
            self._half = unit
            return
        if 0xDC00 <= unit < 0xE000:
            pair = 0x10000 + ((self._half - 0xD800) << 10) + (unit - 0xDC00) if self._half else 0xFFFD
            self._half = 0
            self._write(chr(pair))
            return
        self._write(chr(unit))

    def _flush(self) -> None:
        if self._bytes:
            codec = self._codecs.get(self._group.font, self.codec)
            written, self._bytes = bytes(self._bytes).decode(codec, "replace"), bytearray()
            self._write(written)

    def _write(self, text: str) -> None:
        if self._bytes:
            self._flush()
        if not self._group.aside:
            (self.unseen if self._group.hidden else self.text).append(text)

    def _reveal(self) -> None:
        """End hidden text: it is marked in its place."""
        if self.unseen:
            told, self.unseen = hidden("".join(self.unseen)), []
            self.hides = self.hides or bool(told)
            self.text.append(told)


def prepare() -> None:
    """Load the codecs before the sandbox forks: its child cannot."""
    charset.prepare()
    for codec in (*_FONT_SETS.values(), *_PAGES.values(), *_SMALL_PAGES):
        codecs.lookup(codec)


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The text, split into parts."""
    content = file.read(BYTES_AT_MOST + 1)
    if len(content) > BYTES_AT_MOST:
        raise CannotRead(Unread.TOO_LARGE, f"RTF over {BYTES_AT_MOST // 2**20} MB is not read")
    text, hides = text_of(content)
    return cut_document(text, options, hides=hides, headings=False)


def text_of(content: bytes) -> tuple[str, bool]:
    """The text, and whether some of it was hidden."""
    reader = _Reader(whites=_whites(content))
    reader.take(content)
    lines = (line.rstrip(" |\t") if line.endswith(" | ") else line.rstrip() for line in _lines(reader.text))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)), reader.hides


def _whites(content: bytes) -> frozenset[int]:
    """The indexes of white in the colour table; empty if the document sets any background colour."""
    table = _COLOURS.search(content)
    if table is None or _GROUNDS.search(content):
        return frozenset()
    colours = [dict(_COLOUR.findall(entry)) for entry in table.group(1).split(b";")]
    return frozenset(
        at
        for at, colour in enumerate(colours)
        if len(colour) == 3 and all(int(part) >= WHITE for part in colour.values())
    )


def _lines(texts: Iterable[str]) -> list[str]:
    return "".join(texts).split("\n")


_SMALL_PAGES = ("cp437", "cp850", "cp852", "cp866", "cp874", *(f"cp{page}" for page in range(1250, 1259)))


def _code_page(number: int) -> str | None:
    return _PAGES.get(number) or (f"cp{number}" if f"cp{number}" in _SMALL_PAGES else None)
