"""OpenDocument texts, presentations and drawings."""

from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.document import DocumentText, Unit
from belino.media.document.opendocument_text import Words, content_of
from belino.media.document.parts import Block, CannotRead, Cutting, Parts, Wish, one_line
from belino.media.document.slides import HIDDEN_SLIDE
from belino.media.document.xml import children, find, local, named, tree, value
from belino.media.document.zips import Archive

_STYLES = frozenset({"automatic-styles", "styles"})


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """A text cut at its headings, or the slides of a presentation."""
    archive, content = content_of(file)
    if "presentation" in wish.mime or "impress" in wish.mime or "graphics" in wish.mime:
        return _slides(content, wish)
    return _text(archive, content, wish)


def _text(archive: Archive, content: bytes, wish: Wish) -> DocumentText:
    parts = Parts(wish, Unit.PART)
    cutting, words = Cutting(parts), Words(parts.note)
    header, footer = _margins(archive, words)
    cutting.add(f"Header: {header}" if header else "")
    try:
        cutting.take(_blocks(content, words))
    except CannotRead as error:
        parts.broke(error)
    for note in words.notes:
        cutting.add(note)
    cutting.add(f"Footer: {footer}" if footer else "")
    return cutting.document()


def _blocks(content: bytes, words: Words) -> Iterator[Block]:
    for element in children(content, _STYLES | {"body", "text"}):
        if local(element.tag) in ("style", "list-style"):
            words.learn(element)
        else:
            yield from words.blocks(element)


def _margins(archive: Archive, words: Words) -> tuple[str, str]:
    """What stands above and below every page, each text once."""
    try:
        content = archive.find("styles.xml")
        styles = tree(content) if content else None
    except CannotRead:
        return "", ""
    if styles is None:
        return "", ""
    for style in named(styles, "style", "list-style"):
        words.learn(style)
    found = []
    for name in ("header", "footer"):
        texts = ("\n".join(b.text for b in words.blocks(each) if b.text) for each in named(styles, name))
        found.append("\n".join(dict.fromkeys(filter(None, texts))))
    return found[0], found[1]


def _slides(content: bytes, wish: Wish) -> DocumentText:
    parts = Parts(wish, Unit.SLIDE if "graphics" not in wish.mime else Unit.PAGE)
    words = Words(parts.note)
    hiding: set[str] = set()
    number = 0
    try:
        for element in children(content, _STYLES | {"body", "presentation", "drawing"}):
            if local(element.tag) in ("style", "list-style"):
                words.learn(element)
                if value(find(element, "drawing-page-properties"), "visibility") == "hidden":
                    hiding.add(value(element, "name"))
            elif local(element.tag) == "page":
                number += 1
                if parts.wants(number):
                    _slide(element, number, parts, words, hides=value(element, "style-name") in hiding)
    except CannotRead as error:
        parts.broke(error)
    return parts.document(number)


def _slide(page: Element, number: int, parts: Parts, words: Words, *, hides: bool) -> None:
    title, blocks, notes = "", [], []
    for shape in page:
        if local(shape.tag) == "notes":
            notes += [block.text for each in shape for block in words.blocks(each) if block.text]
            continue
        text = "\n".join(block.text for block in words.blocks(shape) if block.text)
        if value(shape, "class") == "title" and text and not title:
            title = one_line(text)
        else:
            blocks.append(text)
    if hides:
        parts.note("hidden slides are marked")
    head = [f"# {title}" if title else "", HIDDEN_SLIDE if hides else ""]
    foot = ["Notes: " + "\n".join(notes)] if notes else []
    parts.add(number, "\n\n".join(filter(None, [*head, *blocks, *foot])), title)
