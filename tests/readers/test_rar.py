"""A RAR is listed by its headers alone."""

import io
import zlib

import pytest

from belino.domain.media import DocumentText, Unread
from belino.readers import archive
from belino.readers.parts import CannotRead, ReadOptions
from belino.readers.read import reads

SIGNATURE = b"Rar!\x1a\x07\x01\0"


def _number(value: int) -> bytes:
    """A number of seven bits a byte."""
    written = b""
    while value > 127:
        written, value = written + bytes([value & 127 | 128]), value >> 7
    return written + bytes([value])


def _block(kind: int, body: bytes, *, flags: int = 0) -> bytes:
    head = _number(kind) + _number(flags) + body
    sized = _number(len(head)) + head
    return zlib.crc32(sized).to_bytes(4, "little") + sized


def make_rar(*names: str, content: bytes = b"hello", folder: bool = False) -> bytes:
    """A RAR of the fifth version with these files, stored."""
    made = SIGNATURE + _block(1, _number(0))
    for name in names:
        raw, data = name.encode(), b"" if folder else content
        body = _number(len(data)) + _number((1 if folder else 4) | 2) + _number(len(data)) + _number(0o644)
        body += (1_767_607_200).to_bytes(4, "little") + (b"" if folder else zlib.crc32(data).to_bytes(4, "little"))
        made += _block(2, body + _number(0) + _number(1) + _number(len(raw)) + raw, flags=2) + data
    return made + _block(5, _number(0))


def read(content: bytes) -> DocumentText:
    return archive.read(io.BytesIO(content), ReadOptions(mime="application/vnd.rar"))


def test_the_entries_of_a_rar_are_listed() -> None:
    text = read(make_rar("notes.txt", "docs/план.pdf"))
    assert text.parts[0].text.splitlines() == [
        "- notes.txt, 5B, 2026-01-05 10:00",
        "- docs/план.pdf, 5B, 2026-01-05 10:00",
    ]
    assert text.notes[0].startswith("2 files, 0 folders")
    assert "folder" in read(make_rar("docs/", folder=True)).parts[0].text
    assert reads("application/vnd.rar")


def test_a_name_that_leads_out_is_marked() -> None:
    assert "leads out of its folder" in read(make_rar("../../etc/passwd")).parts[0].text


@pytest.mark.parametrize("content", [SIGNATURE + b"x" * 40, b"Rar!\x1a\x07\0" + bytes(30)], ids=["new", "old"])
def test_a_broken_rar_says_so(content: bytes) -> None:
    with pytest.raises(CannotRead) as refusal:
        read(content)
    assert refusal.value.unread in (Unread.UNREADABLE, Unread.NO_TEXT)
