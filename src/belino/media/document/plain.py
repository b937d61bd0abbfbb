"""Plain text in any character set, and what is written as such: Markdown, logs, JSON, XML, source."""

import io
import re
from collections.abc import Iterator
from typing import BinaryIO

from belino.domain.document import DocumentText
from belino.media.document import charset, feed, notebook
from belino.media.document.cutting import cut_document
from belino.media.document.parts import Wish

CHUNK_BYTES = 1024 * 1024
HEAD_BYTES = 64 * 1024
SCAN_CHUNKS = 100
CHUNK_CHARS = 256 * 1024

_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)")
_XML_CHARSET = re.compile(rb"""\A\s{0,20}<\?xml[^>]{1,100}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})["']""")


def prepare() -> None:
    """Load the codecs; in the child it would be too late."""
    charset.prepare()
    feed.prepare()


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """The text as it is written, cut into parts; notebooks and feeds as their readers see them."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    if wish.mime.endswith("json") and notebook.is_notebook(head, wish.name):
        told = notebook.text(file)
        if told is not None:
            return cut_document(told, wish)
    if wish.mime.endswith("xml") and feed.is_feed(head) and (fed := feed.read(file, wish)) is not None:
        return fed
    codec, texts = open_text(file)
    notes = () if codec == "utf-8" else (f"read as {codec.replace('_', '-').upper()}",)
    return cut_document(texts, wish, notes=notes, headings=wish.mime == "text/markdown")


def open_text(file: BinaryIO, *, declared: str = "") -> tuple[str, Iterator[str]]:
    """The character set of a file, and its text piece by piece, with lines that end in `\\n`."""
    codec, mark = _detected(file, declared)
    file.seek(mark)
    return codec, _texts(io.TextIOWrapper(file, encoding=codec, errors="replace"))


def _texts(reader: io.TextIOWrapper) -> Iterator[str]:
    try:
        while text := reader.read(CHUNK_CHARS):
            plain = text.replace("\f", "\n").replace("\0", "")
            yield _COLOURS.sub("", plain) if "\x1b" in plain else plain
    finally:
        reader.detach()


def _detected(file: BinaryIO, declared: str) -> tuple[str, int]:
    """By the first stretch that is not ASCII alone, wherever it is."""
    file.seek(0)
    first = file.read(CHUNK_BYTES)
    if not declared and (found := _XML_CHARSET.match(first)):
        declared = charset.written_in_ascii(found[1])
    codec, mark = charset.detect(first, declared=declared)
    if codec != "utf-8" or mark or not first.isascii():
        return codec, mark
    for _ in range(SCAN_CHUNKS):
        chunk = file.read(CHUNK_BYTES)
        if not chunk:
            break
        if not chunk.isascii():
            # A chunk may begin in the middle of a character; a line does not.
            return charset.detect(chunk[chunk.find(b"\n") + 1 :], declared=declared)[0], 0
    return codec, 0
