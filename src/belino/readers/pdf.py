"""PDF: the text layer page by page, with hidden text marked; and a page as a picture."""

import ctypes
import mmap
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import pdfium
from belino.readers.parts import HIDDEN_NOTE, CannotRead, Parts, ReadOptions, hidden, one_line
from belino.readers.pdf_hidden import Scene, scene_of

PAGES_AT_MOST = 200
MAX_DPI = 300
BOOKMARKS_AT_MOST = 2_000
ANNOTATIONS_AT_MOST = 1_000
SCAN_NOTE = "the text of scanned pages was recognised before the file was sent; it may differ from the picture"

SCAN_COVERS = 0.5
"""The share of a page that a scan of it covers at least."""
STAMP_LETTERS, FEW_LETTERS = 100, 16
"""A scan with fewer letters of its own has a stamp or a fax header; a drawn page with fewer, a page number."""
SHAPES = 50
"""So many filled shapes may be letters that are drawn."""
GARBLED_SAMPLES = 200

_DRAWN = frozenset({pdfium.WIDGET, pdfium.FREE_TEXT, pdfium.STAMP})
_HYPHENS = dict.fromkeys((0x02, 0xFFFE), "")
"""PDFium's characters for a hyphen at the end of a line, where it joins the word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PutOn:
    """An annotation of a page, or a form field."""

    kind: int
    hides: bool
    words: str
    name: str
    ticks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageText:
    """The text of a page, and whether the page has pictures, or is one."""

    text: str = ""
    pictured: bool = False
    scanned: bool = False


def prepare() -> None:
    """Load the library before the sandbox forks: its child cannot."""
    pdfium.load()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The text of each page; a page without text is included, and empty."""
    library = pdfium.load()
    with _opened(file) as document:
        total = library.FPDF_GetPageCount(document)
        parts = Parts(options, DocumentUnit.PAGE, at_most=PAGES_AT_MOST)
        _attachments(document, parts)
        titles, pictured = _titles(document), False
        for number in range(options.first, min(options.last or total, total) + 1):
            if not parts.wants(number):
                break
            with _page(document, number) as (page, put_on):
                found = _text(page, parts) if page else _PageText()
                if not page:
                    parts.note(f"page {number} is broken")
            text = "\n\n".join(filter(None, [found.text, *_remarks(put_on, found.text)]))
            pictured = pictured or (found.pictured and not text)
            parts.add(number, text, titles.get(number, ""), scanned=found.scanned)
        return parts.document(total, without_text=Unread.RENDERED if pictured else Unread.NO_TEXT)


def draw(file: BinaryIO, writer: BinaryIO, *, number: int, max_side: int) -> None:
    """Write a page as a PNG whose longer side is at most `max_side`, and no finer than print."""
    library = pdfium.load()
    with _opened(file) as document, _page(document, number) as (page, _):
        size = pdfium.Size()
        library.FPDF_GetPageSizeByIndexF(document, number - 1, ctypes.byref(size))
        if not page or not (size.width > 0 and size.height > 0):
            raise CannotRead(Unread.UNREADABLE, f"there is no page {number} that can be drawn")
        scale = min(max_side / max(size.width, size.height), MAX_DPI / 72)
        width, height = max(1, int(size.width * scale)), max(1, int(size.height * scale))
        pixels = pdfium.drawn(page, width, height)
    _write_png(writer, pixels, width, height)


@contextmanager
def _opened(file: BinaryIO) -> Iterator[int]:
    """The document; the bytes of a file are mapped, not read."""
    library = pdfium.load()
    try:
        mapped = bytearray(file.getvalue()) if isinstance(file, BytesIO) else _mapped(file)
    except ValueError as error:
        raise CannotRead(Unread.UNREADABLE, "the file is empty") from error
    there = (ctypes.c_char * len(mapped)).from_buffer(mapped)
    document = library.FPDF_LoadMemDocument64(there, len(mapped), None)
    if not document:
        locked = library.FPDF_GetLastError() == pdfium.WRONG_PASSWORD
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password" if locked else "the PDF is broken")
    # The child exits after its job: closing the document or the mapping is not worth the time.
    yield document


def _mapped(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


@contextmanager
def _page(document: int, number: int) -> Iterator[tuple[int | None, list[_PutOn]]]:
    """A page with its filled form fields flattened, or None if it cannot be loaded; and its annotations."""
    library = pdfium.load()
    page = library.FPDF_LoadPage(document, number - 1)
    put_on = _annotations(page) if page else []
    if any(each.kind in _DRAWN for each in put_on) and library.FPDFPage_Flatten(page, 0) == 1:
        # Flattened annotations are part of the page now, or gone.
        library.FPDF_ClosePage(page)
        page = library.FPDF_LoadPage(document, number - 1)
    try:
        yield page, put_on
    finally:
        if page:
            library.FPDF_ClosePage(page)


def _text(page: int, parts: Parts) -> _PageText:
    library = pdfium.load()
    scene = scene_of(page)
    layer = library.FPDFText_LoadPage(page)
    if not layer:
        return _PageText(pictured=scene.pictured, scanned=_is_scan(scene, 0))
    count = library.FPDFText_CountChars(layer)
    text, seen = _marked(layer, count, scene) if scene.unseen else (_plain(layer, count),) * 2
    letters = 0 if _is_garbled(layer, count) else sum(letter.isalnum() for letter in seen)
    library.FPDFText_ClosePage(layer)
    if scene.unseen and text:
        parts.note(HIDDEN_NOTE)
    if scene.recognised and text:
        parts.note(SCAN_NOTE)
    return _PageText(text=_tidy(text), pictured=scene.pictured, scanned=_is_scan(scene, letters))


def _is_scan(scene: Scene, letters: int) -> bool:
    """Whether what there is to read on a page is in its picture: it has no more text than a stamp or a page number."""
    if scene.covered >= SCAN_COVERS:
        return letters < (FEW_LETTERS if scene.recognised else STAMP_LETTERS)
    if scene.shapes >= SHAPES:
        return letters < FEW_LETTERS
    return not letters and (scene.pictured or scene.shapes > 0 or bool(scene.seen))


def _is_garbled(layer: int, count: int) -> bool:
    """Whether most characters are mere numbers of shapes in a font, which are unreadable."""
    places = range(0, count, max(1, count // GARBLED_SAMPLES))
    wrong = sum(bool(pdfium.load().FPDFText_HasUnicodeMapError(layer, at)) for at in places)
    return wrong * 2 > len(places)


def _plain(layer: int, count: int) -> str:
    if count <= 0:
        return ""
    buffer = (ctypes.c_ushort * (count + 1))()
    pdfium.load().FPDFText_GetText(layer, 0, count, buffer)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")


def _marked(layer: int, count: int, scene: Scene) -> tuple[str, str]:
    """The text with what is hidden marked, and without it; character by character, as hidden ones may be anywhere."""
    library = pdfium.load()
    text = seen = ""
    for hides, group in groupby(_judged(layer, count, scene), key=itemgetter(0)):
        words = "".join(chr(library.FPDFText_GetUnicode(layer, at)) for _, at in group)
        text += f"{hidden(words.translate(_HYPHENS))}\n" if hides and words.strip() else words
        seen += "" if hides else words
    return text, seen


def _judged(layer: int, count: int, scene: Scene) -> Iterator[tuple[bool, int]]:
    """Whether each character is hidden; spaces inserted by PDFium count like the character before."""
    unseen = False
    for at in range(count):
        if thing := pdfium.load().FPDFText_GetTextObject(layer, at):
            unseen = thing in scene.unseen
        yield unseen, at


def _tidy(text: str) -> str:
    lines = text.translate(_HYPHENS).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _remarks(put_on: list[_PutOn], text: str) -> Iterator[str]:
    """Annotations that are not in the page's text: comments, ticks, and text that is not drawn."""
    drawn = "".join(text.split())
    for each in put_on:
        said = one_line(each.words)
        if not said or (each.kind in _DRAWN and not each.ticks and "".join(said.split()) in drawn):
            continue
        if each.kind == pdfium.WIDGET:
            name = one_line(each.name)
            said = f"ticked: {name or said}" if each.ticks else f"field {name}: {said}"
            yield hidden(said) if each.hides else f"({said})"
        elif each.kind in pdfium.NOTES or each.kind == pdfium.FREE_TEXT:
            yield hidden(said) if each.hides else f"(comment: {said})"


def _annotations(page: int) -> list[_PutOn]:
    library = pdfium.load()
    found = []
    for at in range(min(library.FPDFPage_GetAnnotCount(page), ANNOTATIONS_AT_MOST)):
        if annotation := library.FPDFPage_GetAnnot(page, at):
            found.append(_put_on(annotation))
            library.FPDFPage_CloseAnnot(annotation)
    return found


def _put_on(annotation: int) -> _PutOn:
    library = pdfium.load()

    def told(key: bytes) -> str:
        return pdfium.string(library.FPDFAnnot_GetStringValue, annotation, key)

    kind = library.FPDFAnnot_GetSubtype(annotation)
    flags = library.FPDFAnnot_GetFlags(annotation)
    words, ticks = told(b"Contents"), False
    if kind == pdfium.WIDGET:
        state = told(b"AS")
        ticks = state not in ("", "Off")
        # A field of several boxes stores its type in their parent.
        words = state if ticks else told(b"V") if told(b"FT") in ("Tx", "Ch") else ""
    name = told(b"TU") or told(b"T")
    return _PutOn(kind=kind, hides=bool(flags & pdfium.ANNOTATION_HIDDEN), words=words, name=name, ticks=ticks)


def _attachments(document: int, parts: Parts) -> None:
    library = pdfium.load()
    count = library.FPDFDoc_GetAttachmentCount(document)
    names = [
        one_line(pdfium.string(library.FPDFAttachment_GetName, library.FPDFDoc_GetAttachment(document, at)))
        for at in range(min(count, 10))
    ]
    if names:
        more = f" and {count - 10} more" if count > 10 else ""
        parts.note(f"files are attached, which were left out: {', '.join(names)}{more}")


def _titles(document: int) -> dict[int, str]:
    """The first bookmark of each page. Bookmarks may form a loop."""
    library = pdfium.load()
    found: dict[int, str] = {}
    waiting = [library.FPDFBookmark_GetFirstChild(document, None)]
    seen: set[int] = set()
    while waiting and len(seen) < BOOKMARKS_AT_MOST:
        mark = waiting.pop()
        if not mark or mark in seen:
            continue
        seen.add(mark)
        waiting.append(library.FPDFBookmark_GetNextSibling(document, mark))
        waiting.append(library.FPDFBookmark_GetFirstChild(document, mark))
        if (target := library.FPDFBookmark_GetDest(document, mark)) and (
            title := one_line(pdfium.string(library.FPDFBookmark_GetTitle, mark))
        ):
            found.setdefault(library.FPDFDest_GetDestPageIndex(document, target) + 1, title)
    return found


def _write_png(writer: BinaryIO, pixels: bytearray, width: int, height: int) -> None:
    packer = zlib.compressobj(1)
    packed = bytearray()
    for row in range(height):
        packed += packer.compress(b"\0" + pixels[row * width * 3 : (row + 1) * width * 3])
    packed += packer.flush()
    header = width.to_bytes(4) + height.to_bytes(4) + b"\x08\x02\0\0\0"
    writer.write(b"\x89PNG\r\n\x1a\n")
    for kind, content in ((b"IHDR", header), (b"IDAT", bytes(packed)), (b"IEND", b"")):
        writer.write(len(content).to_bytes(4) + kind + content + zlib.crc32(kind + content).to_bytes(4))
