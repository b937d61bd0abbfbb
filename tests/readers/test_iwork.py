"""Pages, Numbers and Keynote are read by their previews."""

import io

import pytest

from belino.readers import iwork
from belino.readers.parts import CannotRead, ReadOptions
from belino.readers.read import reads
from belino.testing.documents import document_files
from belino.testing.files import make_zip

PAGES = ReadOptions(mime="application/vnd.apple.pages")


def test_the_text_of_the_preview_is_the_text() -> None:
    pdf = next(content for name, content in document_files(paragraphs=3).items() if name.endswith(".pdf"))
    made = make_zip({"Index/Document.iwa": b"x", "QuickLook/Preview.pdf": pdf})
    text = iwork.read(io.BytesIO(made), PAGES)
    assert text.unit == "page" and text.parts[0].text
    assert all(reads(f"application/vnd.apple.{kind}") for kind in ("pages", "numbers", "keynote"))


def test_without_a_text_preview_it_says_what_there_is() -> None:
    with pytest.raises(CannotRead, match="only a small picture of its first page; exported as PDF"):
        iwork.read(io.BytesIO(make_zip({"Index/Document.iwa": "x", "preview.jpg": "x"})), PAGES)
    with pytest.raises(CannotRead, match="saved with no preview"):
        iwork.read(io.BytesIO(make_zip({"Index/Document.iwa": "x"})), PAGES)
