"""Books (EPUB): the chapters in the order of the spine, each as its pages show it."""

import posixpath
from typing import BinaryIO
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import html
from belino.readers.package import ZipArchive, local, tree
from belino.readers.parts import HIDDEN_NOTE, CannotRead, Parts, ReadOptions, one_line

CHAPTERS_AT_MOST = 2_000
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document", "")


def prepare() -> None:
    """Import the parser before the sandbox forks: its child cannot."""
    html.prepare()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The requested chapters; the first includes the book's title and author."""
    book = ZipArchive(file)
    package, folder = _package(book)
    chapters = _spine(package, folder)
    locked = _locked(book)
    parts = Parts(options, DocumentUnit.CHAPTER)
    for number, name in enumerate(chapters, 1):
        if not parts.wants(number):
            continue
        if name in locked:
            parts.note("chapters under copy protection cannot be read")
            parts.add(number, "")
            continue
        shown = _chapter(book, name, parts)
        about = _about(package) if number == 1 else ""
        parts.add(number, f"{about}\n\n{shown.text}" if about else shown.text, _title(shown))
    found = parts.document(len(chapters))
    if found.unread and locked.intersection(chapters):
        raise CannotRead(Unread.UNREADABLE, "it is under copy protection")
    return found


def _package(book: ZipArchive) -> tuple[Element, str]:
    """The package document, which lists the files of the book, and its folder."""
    container = book.find(_CONTAINER)
    roots = (
        [each.get("full-path", "") for each in tree(container).iter() if local(each.tag) == "rootfile"]
        if container
        else []
    )
    roots += [name for name in book.names if name.endswith(".opf")]
    for path in roots:
        if path in book:
            return tree(book.read(path)), posixpath.dirname(path)
    raise CannotRead(Unread.UNREADABLE, "the list of the book's chapters is missing")


def _spine(package: Element, folder: str) -> list[str]:
    """The paths of the chapters, in reading order."""
    items = {each.get("id", ""): each for each in package.iter() if local(each.tag) == "item"}
    order = [each.get("idref", "") for each in package.iter() if local(each.tag) == "itemref"]
    listed = [items[each] for each in order if each in items] or list(items.values())
    found = [_place(folder, item.get("href", "")) for item in listed if item.get("media-type", "").lower() in _PAGES]
    return found[:CHAPTERS_AT_MOST]


def _place(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0]))).lstrip("/")


def _locked(book: ZipArchive) -> set[str]:
    """Entries under DRM."""
    listed = book.find(_ENCRYPTION)
    if listed is None:
        return set()
    return {
        unquote(each.get("URI", "")).lstrip("/") for each in tree(listed).iter() if local(each.tag) == "CipherReference"
    }


def _chapter(book: ZipArchive, name: str, parts: Parts) -> html.PageText:
    content = book.find(name)
    if content is None:
        parts.note("a chapter that the book lists is missing")
        return html.PageText("", "", False)
    shown = html.show(html.decoded(content))
    if shown.hides:
        parts.note(HIDDEN_NOTE)
    return shown


def _title(shown: html.PageText) -> str:
    heading = next((line.lstrip("# ") for line in shown.text[:2000].split("\n") if line.startswith("#")), "")
    return heading or shown.title


def _about(package: Element) -> str:
    """Title, authors and language, from the metadata."""
    told: dict[str, list[str]] = {}
    metadata = next((each for each in package if local(each.tag) == "metadata"), package)
    for each in metadata.iter():
        if (text := one_line(each.text or "")) and local(each.tag) in (
            "title",
            "creator",
            "publisher",
            "date",
            "language",
        ):
            told.setdefault(local(each.tag), []).append(text)
    description = next((each.text or "" for each in metadata.iter() if local(each.tag) == "description"), "")
    lines = [
        " · ".join(told.get("title", ())[:1]),
        ", ".join(told.get("creator", ())[:10]),
        " · ".join(each for name in ("publisher", "date", "language") for each in told.get(name, ())[:1]),
        one_line(html.show(description).text) if description.strip() else "",
    ]
    return "\n".join(line for line in lines if line)
