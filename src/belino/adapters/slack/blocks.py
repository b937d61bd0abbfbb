"""Blocks as text: what apps lay out, and what Slack's own clients write beside a text."""

from collections.abc import Iterator

from belino.adapters.slack.mrkdwn import link, readable, user_shown
from belino.adapters.slack.people import Directory, Me
from belino.net.raw import Raw, as_table, count, line, table, tables, words

MOST_BLOCKS = 100
"""Slack takes fifty in a message; whoever sends more is not read to the end."""
DEEPEST = 8
# Where blocks keep words that are no text objects.
_WORDED = frozenset({"title", "subtitle", "text", "body", "label", "description", "caption", "name"})


class Blocks:
    """Reads blocks with the names that are known."""

    def __init__(self, me: Me, directory: Directory) -> None:
        self._me = me
        self._directory = directory

    def text(self, blocks: tuple[Raw, ...]) -> str:
        """All of them, a line or more each; what has no words is left out."""
        return "\n".join(part for block in blocks[:MOST_BLOCKS] if (part := self._block(block, 0)))

    def _block(self, block: Raw, depth: int) -> str:
        if depth > DEEPEST:
            return ""
        match words(block, "type"):
            case "section":
                fields = [self._words(each) for each in tables(block, "fields")]
                return _lines(self._words(table(block, "text")), *fields, self._control(table(block, "accessory")))
            case "header" | "markdown" | "alert":
                return self._words(table(block, "text")) or words(block, "text")
            case "image":
                return _picture(block)
            case "video":
                title, address = self._words(table(block, "title")), words(block, "title_url")
                return _lines(link(address, title) if address else title, self._words(table(block, "description")))
            case "context" | "actions" | "context_actions":
                return " ".join(part for each in tables(block, "elements") if (part := self._control(each)))
            case "input":
                return self._words(table(block, "label"))
            case "table" | "data_table":
                return _lines(line(block, "caption"), self._table(block, depth))
            case "rich_text":
                return self._rich(block, depth)
            case _:
                return self._unknown(block, depth)

    def _unknown(self, block: Raw, depth: int) -> str:
        """The words of a block of a newer kind (cards, plans, containers), wherever it keeps them."""
        plain = {name: words(block, name) for name in _WORDED}
        return _lines(*(plain.get(name) or self._inside(block[name], depth + 1) for name in block))

    def _inside(self, value: object, depth: int) -> str:
        if isinstance(value, list):
            within = value[:MOST_BLOCKS] if depth <= DEEPEST else ()
            return _lines(*(self._inside(each, depth + 1) for each in within))
        inner = as_table(value)
        is_text = words(inner, "type") in ("mrkdwn", "plain_text")
        return self._words(inner) if is_text else self._block(inner, depth)

    def _words(self, text: Raw) -> str:
        said = words(text, "text")
        return readable(said, self._me, self._directory) if words(text, "type") != "plain_text" else said

    def _control(self, element: Raw) -> str:
        if words(element, "type") == "image":
            return _picture(element)
        label = self._words(table(element, "text")) or self._words(table(element, "placeholder"))
        if words(element, "type") in ("mrkdwn", "plain_text"):
            return self._words(element)
        return f"[{' '.join(label.split())}]" if label else ""

    def _table(self, block: Raw, depth: int) -> str:
        rows = block.get("rows")
        return "\n".join(
            " | ".join(self._cell(as_table(cell), depth) for cell in row)
            for row in (rows[:MOST_BLOCKS] if isinstance(rows, list) else ())
            if isinstance(row, list)
        )

    def _cell(self, cell: Raw, depth: int) -> str:
        return words(cell, "text") or self._block(cell, depth + 1)

    def _rich(self, element: Raw, depth: int) -> str:
        """Rich text and everything in it: sections, lists, quotes and code."""
        if depth > DEEPEST:
            return ""
        inner = tables(element, "elements")
        match words(element, "type"):
            case "rich_text":
                return "\n".join(self._rich(each, depth + 1) for each in inner)
            case "rich_text_list":
                return "\n".join(self._items(element, inner, depth))
            case "rich_text_quote":
                return f"> {''.join(map(self._inline, inner))}".replace("\n", "\n> ")
            case "rich_text_preformatted":
                return f"```\n{''.join(map(self._inline, inner))}\n```"
            case _:
                return "".join(map(self._inline, inner))

    def _items(self, element: Raw, inner: tuple[Raw, ...], depth: int) -> Iterator[str]:
        space = "  " * min(count(element, "indent") or 0, DEEPEST)
        for number, each in enumerate(inner, 1 + (count(element, "offset") or 0)):
            sign = f"{number}." if words(element, "style") == "ordered" else "•"
            yield f"{space}{sign} {self._rich(each, depth + 1)}"

    def _inline(self, element: Raw) -> str:
        match words(element, "type"):
            case "user":
                return user_shown(words(element, "user_id"), self._me, self._directory)
            case "channel":
                channel = words(element, "channel_id")
                return f"#{self._directory.channels.get(channel) or channel}"
            case "usergroup":
                return f"@{words(element, 'usergroup_id')}"
            case "broadcast":
                return f"@{words(element, 'range')}"
            case "emoji":
                tone = count(element, "skin_tone")
                return f":{words(element, 'name')}:{f':skin-tone-{tone}:' if tone else ''}"
            case "link":
                return link(words(element, "url"), words(element, "text"))
            case "date":
                return words(element, "fallback")
            case "color":
                return words(element, "value")
            case _:
                return words(element, "text")


def _picture(block: Raw) -> str:
    said = line(table(block, "title"), "text") or line(block, "alt_text")
    return f"(a picture: {said})" if said else "(a picture)"


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)
