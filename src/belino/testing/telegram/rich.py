"""Rich messages of the Bot API, as far as their HTML has text: the documented tags and limits.

https://core.telegram.org/bots/api#rich-message-formatting-options
"""

import html
import re
from typing import Any

from belino.testing.platform_server import Json
from belino.testing.telegram.request import TelegramRefusal

CHARS, BLOCKS, COLUMNS, DEPTH = 32_768, 500, 20, 16
_BLOCKS = frozenset(
    {*(f"h{level}" for level in range(1, 7)), "p", "pre", "ul", "ol", "li", "blockquote", "table", "tr"}
)
_EMPTY = frozenset({"br", "hr"})
_TAGS = _BLOCKS | _EMPTY | {"a", "b", "i", "s", "code", "tg-spoiler", "th", "td"}
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[a-z][a-z0-9-]*)(?P<rest>(?:[^<>\"]|\"[^\"]*\")*)>")
_FORMATS = frozenset({"html", "markdown", "blocks"})


def rich_message(given: Any) -> Json:
    """An InputRichMessage as the RichMessage it becomes: one paragraph with everything that people see."""
    if not isinstance(given, dict) or len(_FORMATS & given.keys()) != 1 or not isinstance(given.get("html"), str):
        raise TelegramRefusal(400, "Bad Request: exactly one of html, markdown and blocks must be specified")
    source, opened, seen, at, blocks = given["html"], list[str](), list[str](), 0, 0
    for tag in _TAG.finditer(source):
        seen.append(_text(source[at : tag.start()]))
        at = tag.end()
        _take(tag, opened)
        blocks += tag["name"] in _BLOCKS and not tag["end"]
        seen.append("\n" if tag["name"] in _BLOCKS | _EMPTY else "\t" if tag["name"] in ("th", "td") else "")
    seen.append(_text(source[at:]))
    words = re.sub(r"\s*\n\s*", "\n", "".join(seen)).strip()
    if opened:
        raise _cannot(f'no end tag of "{opened[-1]}"')
    if not words:
        raise TelegramRefusal(400, "Bad Request: message text is empty")
    columns = max(len(re.findall(r"<t[hd][ >]", row)) for row in source.split("<tr"))
    if len(words) > CHARS or blocks > BLOCKS or columns > COLUMNS:
        raise TelegramRefusal(400, "Bad Request: RICH_MESSAGE_TOO_LONG")
    return {"blocks": [{"type": "paragraph", "text": words}], "html": source}


def _take(tag: re.Match[str], opened: list[str]) -> None:
    name = tag["name"]
    if name not in _TAGS:
        raise _cannot(f'unsupported start tag "{name}"')
    if tag["end"]:
        if not opened or opened.pop() != name:
            raise _cannot(f'unmatched end tag "{name}"')
    elif name not in _EMPTY:
        opened.append(name)
    if len(opened) > DEPTH:
        raise TelegramRefusal(400, "Bad Request: RICH_MESSAGE_DEPTH_INVALID")


def _text(piece: str) -> str:
    if "<" in piece or ">" in piece:
        raise _cannot("unclosed start tag")
    return html.unescape(piece)


def _cannot(why: str) -> TelegramRefusal:
    return TelegramRefusal(400, f"Bad Request: can't parse rich message: {why}")
