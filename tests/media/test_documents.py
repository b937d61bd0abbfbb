"""The gateway's side of documents: what it asks the sandbox, and what it believes."""

import json
from pathlib import Path

import pytest

from belino.domain.errors import MediaError, MediaRefused
from belino.domain.media import Blob, DocumentText, DocumentUnit, Unread
from belino.media.documents import MAX_CHARS, Documents, scanned_pages
from belino.media.sandbox.sandbox import Sandbox
from media.local_files import local_blob, open_local
from media.videos import Here, Lying
from readers.made import SCANNED, line, make_pdf, make_word, words

PDF, TEXT = "application/pdf", "text/plain"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def blob(folder: Path, content: bytes) -> Blob:
    path = folder / "source"
    path.write_bytes(content)
    return local_blob(path, mime=PDF)


def told(head: object, *parts: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in (head, *parts))


HEAD = {"unit": "page", "total": 3, "unread": None, "reason": "", "notes": []}


async def believed(folder: Path, content: bytes, max_chars: int = MAX_CHARS) -> DocumentText:
    documents = Documents(Lying({}, content), folder / "scratch", open_local)
    return await documents.read(blob(folder, b"x"), mime=PDF, max_chars=max_chars)


async def test_pages_are_read_and_those_without_text_are_told(tmp_path: Path) -> None:
    documents = Documents(Here(), tmp_path / "scratch", open_local)
    text = await documents.read(blob(tmp_path, make_pdf(line("one"), SCANNED, line("three"))), mime=PDF, parts=(1, 2))
    assert (text.unit, text.total, [part.text for part in text.parts]) == (DocumentUnit.PAGE, 3, ["one", ""])
    assert scanned_pages(text) == (2,)
    assert not list((tmp_path / "scratch").iterdir())


async def test_a_type_without_a_reader_is_unsupported_and_nothing_is_asked(tmp_path: Path) -> None:
    text = await Documents(Lying({}), tmp_path, open_local).read(blob(tmp_path, b"x"), mime="application/x-hwp")
    assert (text.unread, text.total) == (Unread.UNSUPPORTED, 0)


async def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    text = await Documents(Here(), tmp_path, open_local).read(blob(tmp_path, b"PK\x03\x04"), mime=DOCX)
    assert text.unread is Unread.UNREADABLE
    assert "broken" in text.reason


async def test_an_office_file_in_an_old_container_is_not_taken_for_a_broken_archive(tmp_path: Path) -> None:
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    text = await Documents(Here(), tmp_path, open_local).read(blob(tmp_path, old), mime=DOCX)
    assert (text.unread, text.reason) == (Unread.UNREADABLE, "the file is broken")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        told(HEAD | {"unit": "galaxy"}),
        told(HEAD | {"total": -1}),
        told(HEAD | {"total": 1e400}),
        told(HEAD | {"unread": "because"}),
        told(HEAD | {"notes": [{}]}),
        told(HEAD | {"notes": ["n"] * 99}),
        told(HEAD, [1, "", "", False], [1, "", "", False]),
        told(HEAD, [4, "", "", False]),
        told(HEAD, [0, "", "", False]),
        told(HEAD, [1, "", [[]] * 1_000, False]),
        told(HEAD, [1, "", "", 7]),
        told(HEAD, {"number": 1}),
        told(HEAD, [1, "", "a" * 11, False]),
        told(HEAD, [1, "", "a" * 5, False], [2, "", "a" * 6, False]),
        told(HEAD) + b'[1, "", "\xff", false]\n',
        told(HEAD) + b'[1, "", "never ends',
    ],
    ids=[str(at) for at in range(19)],
)
async def test_an_answer_that_is_not_proper_is_not_believed(tmp_path: Path, content: bytes) -> None:
    text = await believed(tmp_path, content, max_chars=10)
    assert (text.unread, text.parts) == (Unread.UNREADABLE, ())
    assert "proper answer" in text.reason


async def test_what_no_text_may_hold_is_replaced_and_long_titles_are_cut(tmp_path: Path) -> None:
    head = HEAD | {"notes": ["a\x00b"], "reason": "r" * 5_000}
    text = await believed(tmp_path, told(head, [1, "t" * 500, "x\x07\ud800y\tz\n", False]))
    assert text.parts[0].text == "x\ufffd\ufffdy\tz\n"
    assert (len(text.parts[0].title), len(text.reason), text.notes) == (200, 300, ("a\ufffdb",))


async def test_a_document_with_text_is_never_called_unread(tmp_path: Path) -> None:
    text = await believed(tmp_path, told(HEAD | {"unread": "no text"}, [1, "", "words", False]))
    assert text.unread is None


async def test_a_sandbox_that_fails_is_an_error_not_a_document(tmp_path: Path) -> None:
    class Gone(Here):
        async def run(self, *_: object, **__: object) -> dict[str, object]:
            raise MediaError("the sandbox died twice")

    with pytest.raises(MediaError, match="died"):
        await Documents(Gone(), tmp_path, open_local).read(blob(tmp_path, b"x"), mime=PDF)


async def test_a_page_becomes_a_picture_within_the_limits(tmp_path: Path) -> None:
    documents = Documents(Here(), tmp_path / "scratch", open_local)
    source = blob(tmp_path, make_pdf(line("one"), line("two")))
    picture = await documents.page(source, 2, max_bytes=20_000, max_side=200)
    assert max(picture.width, picture.height) == 200
    assert len(picture.data) <= 20_000
    assert not list((tmp_path / "scratch").iterdir())
    with pytest.raises(MediaRefused, match="no page 3"):
        await documents.page(source, 3, max_bytes=20_000, max_side=200)


@pytest.mark.slow
async def test_documents_are_read_behind_real_walls(tmp_path: Path) -> None:
    async with Sandbox() as sandbox:
        documents = Documents(sandbox, tmp_path / "scratch", open_local)
        text = await documents.read(blob(tmp_path, make_word(words("Hello"))), mime=DOCX)
        assert text.parts[0].text == "Hello"
        scan = blob(tmp_path, make_pdf(SCANNED))
        assert (await documents.read(scan, mime=PDF)).unread is Unread.RENDERED
        assert (await documents.page(scan, 1, max_bytes=50_000, max_side=100)).width == 100
