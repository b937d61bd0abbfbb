"""An archive is opened only as far as it stays small."""

import io
import struct
import zipfile

import pytest

from belino.domain.media import Unread
from belino.readers import package
from belino.readers.package import ZipArchive
from belino.readers.parts import CannotRead
from belino.testing.files import make_zip


def opened(content: bytes) -> ZipArchive:
    return ZipArchive(io.BytesIO(content))


def packed(content: bytes) -> bytes:
    """A zip whose one entry is packed as tightly as it can be."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", content)
    return written.getvalue()


def refusal(content: bytes, name: str = "a") -> CannotRead:
    with pytest.raises(CannotRead) as found:
        opened(content).read(name)
    return found.value


def test_names_are_found_whatever_their_case_and_slashes() -> None:
    archive = opened(make_zip({"Word\\Document.xml": "x"}))
    assert archive.read("word/document.xml") == b"x"
    assert archive.find("word/other.xml") is None


def test_a_bomb_is_told_by_how_tightly_it_is_packed() -> None:
    assert refusal(packed(bytes(package.SMALL_BYTES + 1))).unread is Unread.TOO_LARGE


def test_an_entry_that_lies_about_its_size_is_read_no_further_than_allowed() -> None:
    content = bytearray(packed(bytes(package.SMALL_BYTES + 1)))
    central = content.rfind(b"PK\x01\x02")
    content[central + 24 : central + 28] = struct.pack("<I", 10)
    # zipfile itself stops at the size that was stated, and then the checksum is wrong.
    assert refusal(bytes(content)).unread is Unread.UNREADABLE


def test_all_entries_together_have_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "BYTES_AT_MOST", 25)
    archive = opened(make_zip({"a": b"0123456789", "b": b"0123456789", "c": b"0123456789"}))
    archive.read("a")
    archive.read("b")
    with pytest.raises(CannotRead) as found:
        archive.read("c")
    assert found.value.unread is Unread.TOO_LARGE


def test_more_than_two_thousand_entries_are_too_many() -> None:
    with pytest.raises(CannotRead) as found:
        opened(make_zip({str(at): "" for at in range(2_001)}))
    assert found.value.unread is Unread.TOO_LARGE


def test_an_encrypted_entry_says_so() -> None:
    content = bytearray(make_zip({"a": b"secret"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.rfind(mark) + offset] |= 1
    assert "password" in refusal(bytes(content)).reason


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", make_zip({"a": "x" * 99})[:40]], ids=["empty", "head", "cut"])
def test_what_is_no_whole_archive_is_broken(content: bytes) -> None:
    assert refusal(content).unread is Unread.UNREADABLE


def test_a_damaged_entry_is_broken() -> None:
    content = bytearray(packed(bytes(range(256)) * 8))
    content[60:70] = bytes(10)
    assert refusal(bytes(content)).unread is Unread.UNREADABLE
