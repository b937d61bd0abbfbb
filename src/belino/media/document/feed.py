"""RSS and Atom: what a feed tells, entry by entry."""

import re
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.document import DocumentText
from belino.media.document import markup
from belino.media.document.cutting import cut_document
from belino.media.document.parts import CannotRead, Wish, one_line
from belino.media.document.xml import local, tree

BYTES_AT_MOST = 20 * 1024 * 1024
_ROOT = re.compile(rb"<(?:rss|feed|(?:\w{1,10}:)?RDF)[\s>]")
_ENTRIES = ("item", "entry")
_BODIES = ("encoded", "content", "description", "summary")
_DATES = ("pubDate", "updated", "published", "date")


def prepare() -> None:
    """Import the parsers; in the child it would be too late."""
    markup.prepare()


def is_feed(head: bytes) -> bool:
    """Whether XML that begins so is a feed."""
    return bool(_ROOT.search(head[:4096]))


def read(file: BinaryIO, wish: Wish) -> DocumentText | None:
    """The feed's own words, then each entry under its title; None if its XML is broken."""
    try:
        root = tree(file.read(BYTES_AT_MOST))
    except CannotRead:
        file.seek(0)
        return None
    hides: list[bool] = []
    channel = next((each for each in root if local(each.tag) == "channel"), root)
    entries = [each for each in root.iter() if local(each.tag) in _ENTRIES]
    blocks = ["\n".join(_about(channel, hides, level="#")), *("\n".join(_about(each, hides)) for each in entries)]
    return cut_document("\n\n".join(blocks), wish, hides=any(hides))


def _about(element: Element, hides: list[bool], *, level: str = "##") -> Iterator[str]:
    fields: dict[str, Element] = {}
    for child in element:
        fields.setdefault(local(child.tag), child)
    if (title := _shown(fields.get("title"), hides)) != "":
        yield f"{level} {one_line(title)}"
    told = [_plain(fields.get(name)) for name in _DATES if name in fields][:1]
    told += [_plain(fields[name]) for name in ("author", "creator") if name in fields][:1]
    link = fields.get("link")
    told += [_plain(link) or link.get("href", "")] if link is not None else []
    if line := " · ".join(one_line(each) for each in told if each):
        yield line
    for name in _BODIES:
        if (body := _shown(fields.get(name), hides)) != "":
            yield body
            return


def _plain(element: Element | None) -> str:
    return "" if element is None else one_line(" ".join(element.itertext()))


def _shown(element: Element | None, hides: list[bool]) -> str:
    """Feeds hold HTML as text."""
    if element is None:
        return ""
    shown = markup.show("".join(element.itertext()))
    hides.append(shown.hides)
    return shown.text
