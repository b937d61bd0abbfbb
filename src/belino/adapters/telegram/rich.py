"""Rich messages: blocks inside blocks, told as the words in them, a line per block, and the files in them."""

from collections.abc import Iterator

from belino.adapters.telegram.facts import places
from belino.adapters.telegram.files import Bearer, refs_of
from belino.adapters.telegram.links import ADDRESS_CHARS, link
from belino.domain.media import MediaRef
from belino.net.raw import Raw, line, words

# Deeper than anybody writes, and far from what would exhaust the stack.
MOST_DEPTH = 16
NAMING = frozenset({"mention", "text_mention", "bot_command"})

_INLINE = ("text", "expression", "alternative_text", "summary", "label", "credit")
_BLOCKS = ("blocks", "items", "cells")


def rich_text(message: Raw) -> str:
    """The words of a rich message."""
    return "\n".join(told for told in _lines(message, 0) if told)


def rich_files(message: Raw, bearer: Bearer) -> tuple[MediaRef, ...]:
    """The files of a rich message, in order, each once."""
    found: dict[str, MediaRef] = {}
    for block in _tables(message.get("blocks"), 0):
        # Only here Telegram calls a voice message a voice note.
        known = {**block, "voice": block.get("voice_note")} if "voice_note" in block else block
        for ref in refs_of(known, bearer):
            found.setdefault(ref.item, ref)
    return tuple(found.values())


def rich_names(message: Raw) -> Iterator[Raw]:
    """Everything in a rich message that names somebody: mentions and commands."""
    return (node for node in _nodes(message.get("blocks"), 0) if words(node, "type") in NAMING)


def _nodes(value: object, depth: int) -> Iterator[Raw]:
    """Blocks, rich texts and whatever stands in them."""
    for node in _flat(value, depth):
        yield node
        if depth < MOST_DEPTH:
            for key in (*_INLINE, *_BLOCKS, "caption"):
                yield from _nodes(node.get(key), depth + 1)


def _lines(block: Raw, depth: int) -> Iterator[str]:
    yield "".join(_inline(block.get(key), depth) for key in _INLINE)
    yield from places(block)
    if depth < MOST_DEPTH:
        for key in _BLOCKS:
            for inner in _flat(block.get(key), depth):
                yield from _lines(inner, depth + 1)
    yield _inline(block.get("caption"), depth)


def _inline(value: object, depth: int) -> str:
    """Rich text is a string, a list of rich text, or an object around rich text."""
    if isinstance(value, str):
        return words({"text": value}, "text")
    if depth >= MOST_DEPTH:
        return ""
    if isinstance(value, list):
        return "".join(_inline(item, depth + 1) for item in value)
    if isinstance(value, dict):
        inside = "".join(_inline(value.get(key), depth + 1) for key in _INLINE)
        return link(inside, line(value, "url", most=ADDRESS_CHARS)) if value.get("type") == "url" else inside
    return ""


def _flat(value: object, depth: int) -> Iterator[Raw]:
    """The blocks in a list, a list of lists (a table's cells) or alone (a caption)."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list) and depth < MOST_DEPTH:
        for item in value:
            yield from _flat(item, depth + 1)


def _tables(value: object, depth: int) -> Iterator[Raw]:
    for block in _flat(value, depth):
        yield block
        if depth < MOST_DEPTH:
            for key in ("blocks", "items"):
                yield from _tables(block.get(key), depth + 1)
