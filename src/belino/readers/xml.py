"""The elements of an XML file one after the other, without its entities and without holding all of it in memory."""

import io
from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from belino.domain.document import Unread
from belino.readers.parts import CannotRead

DEPTH_AT_MOST = 200
"""Deeper than any document that people write; text boxes in tables in text boxes reach sixty."""


class _Root(Exception):
    """The prolog has been passed."""


def children(
    content: bytes, parents: Container[str], opened: Callable[[Element], None] | None = None
) -> Iterator[Element]:
    """Every complete element inside those with these names, as it ends; yielded elements are freed.

    What is inside such an element belongs to it. An element with one of these names is never yielded itself; `opened`
    is called when it begins, with its attributes and nothing else.
    """
    _refuse_entities(content)
    above: list[Element] = []
    whole = 0
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(content), events=("start", "end")):  # noqa: S314
            if event == "start":
                inside = not whole and bool(above) and local(above[-1].tag) in parents
                above.append(element)
                if inside and local(element.tag) not in parents:
                    whole = len(above)
                elif opened is not None and not whole and local(element.tag) in parents:
                    opened(element)
                if len(above) > DEPTH_AT_MOST:
                    raise CannotRead(Unread.UNREADABLE, "its elements are nested too deeply")
                continue
            if len(above) == whole:
                yield element
                whole = 0
                above[-2].clear()
            above.pop()
    except ElementTree.ParseError as error:
        raise CannotRead(Unread.UNREADABLE, "its XML is broken") from error


def tree(content: bytes) -> Element:
    """A small file as one tree."""
    _refuse_entities(content)
    root: Element | None = None
    depth = 0
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(content), events=("start", "end")):  # noqa: S314
            root = element if root is None else root
            depth += 1 if event == "start" else -1
            if depth > DEPTH_AT_MOST:
                raise CannotRead(Unread.UNREADABLE, "its elements are nested too deeply")
    except ElementTree.ParseError as error:
        raise CannotRead(Unread.UNREADABLE, "its XML is broken") from error
    if root is None:
        raise CannotRead(Unread.UNREADABLE, "its XML is broken")
    return root


@lru_cache(maxsize=2048)
def local(tag: str) -> str:
    """A name without its namespace: strict and transitional office files differ in nothing else."""
    return tag[tag.rfind("}") + 1 :]


def find(element: Element | None, *path: str) -> Element | None:
    """The first child with that name, and of that the first, and so on."""
    for name in path:
        if element is None:
            return None
        element = next((child for child in element if local(child.tag) == name), None)
    return element


def inside(element: Element | None, *path: str) -> list[Element]:
    """The children of what `find` finds; empty if it finds nothing."""
    found = find(element, *path)
    return list(found) if found is not None else []


def named(element: Element, *names: str) -> Iterator[Element]:
    """Every element inside, at any depth, that has one of these names."""
    return (inner for inner in element.iter() if local(inner.tag) in names)


def value(element: Element | None, name: str, default: str = "") -> str:
    """An attribute, in any namespace."""
    if element is None:
        return default
    for key, found in element.attrib.items():
        if local(key) == name:
            return found
    return default


def _refuse_entities(content: bytes) -> None:
    """Declared entities allow bombs and access to other files; no office program writes any."""
    parser = expat.ParserCreate()
    parser.StartElementHandler = _at_root
    parser.EntityDeclHandler = _at_entity
    try:
        parser.Parse(content, True)
    except _Root:
        return
    except expat.ExpatError as error:
        raise CannotRead(Unread.UNREADABLE, "its XML is broken") from error


def _at_root(*_: object) -> None:
    raise _Root


def _at_entity(*_: object) -> None:
    raise CannotRead(Unread.UNREADABLE, "its XML declares entities, which are not followed")
