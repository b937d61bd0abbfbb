"""A book is read chapter by chapter, in the order of its spine."""

import io

import pytest

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import book
from belino.readers.parts import CannotRead, ReadOptions
from belino.testing.files import make_zip

CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">
<metadata><dc:title>The Lake</dc:title><dc:creator>Ann Poe</dc:creator></metadata>
<manifest><item id="two" href="two.xhtml" media-type="application/xhtml+xml"/>
<item id="css" href="a.css" media-type="text/css"/>
<item id="one" href="text/one%20a.xhtml#x" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="one"/><itemref idref="two"/><itemref idref="missing"/></spine></package>"""
FILES = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OEBPS/book.opf": PACKAGE,
    "OEBPS/two.xhtml": "<html><body><h1>Winter</h1><p>Ice.</p></body></html>",
    "OEBPS/text/one a.xhtml": "<html><body><h1>Summer</h1><p>Warm.</p><p hidden>psst</p></body></html>",
}


def read(files: dict[str, str], **options: int) -> DocumentText:
    return book.read(io.BytesIO(make_zip(files)), ReadOptions(mime="application/epub+zip", **options))  # type: ignore[arg-type]


def test_chapters_come_in_the_order_of_the_spine_after_title_and_author() -> None:
    text = read(FILES)
    assert (text.unit, text.total) == (DocumentUnit.CHAPTER, 2)
    assert [part.title for part in text.parts] == ["Summer", "Winter"]
    assert text.parts[0].text == "The Lake\nAnn Poe\n\n# Summer\n\nWarm.\n\n(hidden text: psst)"
    assert text.notes


def test_one_chapter_can_be_asked_for() -> None:
    (part,) = read(FILES, first=2, last=2).parts
    assert (part.number, part.text) == (2, "# Winter\n\nIce.")


def test_a_missing_chapter_is_told_of() -> None:
    files = {name: content for name, content in FILES.items() if name != "OEBPS/two.xhtml"}
    text = read(files)
    assert text.total == 2 and text.parts[1].text == ""
    assert "a chapter that the book lists is missing" in text.notes


def test_a_book_under_copy_protection_is_told_of() -> None:
    locked = "".join(
        f'<EncryptedData><CipherData><CipherReference URI="{name}"/></CipherData></EncryptedData>'
        for name in ("OEBPS/two.xhtml", "OEBPS/text/one%20a.xhtml")
    )
    with pytest.raises(CannotRead) as error:
        read({**FILES, "META-INF/encryption.xml": f"<encryption>{locked}</encryption>"})
    assert (error.value.unread, error.value.reason) == (Unread.UNREADABLE, "it is under copy protection")


def test_a_zip_without_a_list_of_chapters_is_no_book() -> None:
    with pytest.raises(CannotRead):
        read({"mimetype": "application/epub+zip"})
