"""Telegram's HTML: the few tags it knows, and what it says to all others."""

import html
import re

from belino.testing.telegram.request import TelegramRefusal

_TAGS = frozenset(
    {"a", "b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "span", "code", "pre", "blockquote"}
    | {"tg-spoiler", "tg-emoji"}
)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[^\s>/]*)(?P<rest>(?:[^>\"']|\"[^\"]*\"|'[^']*')*)>")
_CLASS = re.compile(r"\sclass\s*=\s*[\"']?tg-spoiler[\"']?")
# Of the named entities only four are known; the others stay as they are written.
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#\d+|#x[0-9A-Fa-f]+);")


def shown(text: str, mode: str) -> str:
    """The text as people see it; CallError if the markup cannot be read."""
    if not mode:
        return text
    if mode.lower() != "html":
        # Nobody here writes the other two; Telegram refuses what it does not know at all.
        if mode.lower() in ("markdown", "markdownv2"):
            return text
        raise TelegramRefusal(400, "Bad Request: unsupported parse_mode")
    seen, opened, at = list[str](), list[str](), 0
    while (start := text.find("<", at)) >= 0:
        seen.append(_decoded(text[at:start]))
        found = _TAG.match(text, start)
        if found is None:
            raise _cannot(f"Unclosed start tag at byte offset {_offset(text, start)}")
        _take(found, opened, _offset(text, start))
        at = found.end()
    seen.append(_decoded(text[at:]))
    if opened:
        raise _cannot(f'Can\'t find end tag corresponding to start tag "{opened[-1]}"')
    return "".join(seen)


def _take(tag: re.Match[str], opened: list[str], offset: int) -> None:
    name = tag["name"].lower()
    if tag["end"]:
        if not opened:
            raise _cannot(f"Unexpected end tag at byte offset {offset}")
        if (expected := opened.pop()) != name:
            raise _cannot(f'Unmatched end tag at byte offset {offset}, expected "</{expected}>", found "</{name}>"')
        return
    if name not in _TAGS:
        raise _cannot(f'Unsupported start tag "{name}" at byte offset {offset}')
    if name == "span" and not _CLASS.search(tag["rest"]):
        raise _cannot(f'Tag "span" must have class "tg-spoiler" at byte offset {offset}')
    opened.append(name)


def _decoded(text: str) -> str:
    return _ENTITY.sub(lambda found: html.unescape(found.group()), text)


def _offset(text: str, at: int) -> int:
    return len(text[:at].encode())


def _cannot(why: str) -> TelegramRefusal:
    return TelegramRefusal(400, f"Bad Request: can't parse entities: {why}")
