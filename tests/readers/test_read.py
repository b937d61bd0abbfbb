"""Every type that is read has a reader; what an OLE container holds decides its own."""

import io

import pytest

from belino.domain.media import DocumentText, Unread
from belino.readers.parts import ReadOptions
from belino.readers.read import READS, _module, _read, prepare, reads
from readers.office97 import make_book97, make_slides97, make_word97, words, words_cell
from readers.outlook import make_msg, make_ole

CONTAINER = "application/x-ole-storage"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def read(content: bytes, mime: str) -> DocumentText:
    return _read(io.BytesIO(content), ReadOptions(mime=mime))


def test_every_type_that_is_read_has_a_reader() -> None:
    prepare()
    assert all(reads(mime) and _module(mime) for mime in READS)
    assert reads("text/x-python")
    assert reads("image/vnd.dxf")  # a drawing, written as text
    assert not reads("image/png")
    assert not reads("application/x-7z-compressed")


@pytest.mark.parametrize("mime", [CONTAINER, DOCX])
@pytest.mark.parametrize(
    "content",
    [
        make_word97([([("Hello\r", b"")], 0, b"")]),
        make_slides97((words("Hello"), "", False)),
        make_book97(words_cell(0, 0, "Hello")),
        make_msg(subject="x", sender=("a", "b"), to="c", body="Hello"),
    ],
    ids=["document", "presentation", "workbook", "message"],
)
def test_what_an_ole_container_holds_is_read_as_what_it_is(content: bytes, mime: str) -> None:
    assert "Hello" in read(content, mime).parts[0].text


def test_a_locked_office_file_and_an_unknown_container_say_so() -> None:
    locked = make_ole({"EncryptedPackage": b"x" * 8, "EncryptionInfo": b"x" * 8})
    assert read(locked, DOCX).reason == "it is protected by a password"
    other = read(make_ole({"Contents": b"x" * 8}), CONTAINER)
    assert (other.unread, other.reason) == (Unread.UNSUPPORTED, "belino finds no text in this kind of office file")
