"""Content of messages as text: mentions by name, contacts, polls and the like, and what a message without is."""

from collections.abc import Iterator, Mapping

from belino.adapters.signal.authors import address
from belino.net.json_fields import Raw, count, line, one_line, table, tables, texts, words, yes
from belino.net.message_lines import MOST_LINES, contact_line, joined, poll_lines

MOST_MENTIONS = 100
ADDRESS_CHARS = 2_048

VIEW_ONCE = "Media to be viewed once, which belino does not open or keep; ask for it as an ordinary message"
_KINDS = {
    "payment": ("a payment", False),
    "pollVote": ("a vote in a poll", True),
    "pollTerminate": ("a poll was ended", True),
    "pinMessage": ("a message was pinned", True),
    "unpinMessage": ("a message was unpinned", True),
    "giftBadge": ("a gift badge", False),
    "sticker": ("a sticker", False),
    "attachments": ("a file that signal-cli does not hold", False),
    "storyContext": ("an answer to a story without text", False),
}
"""What a message without text and files is, by its key, and whether it only reports a change."""


def text_of(message: Raw, names: Mapping[str, str]) -> str:
    """The text of a message, with mentions by name, then its facts, a line each; senders write their labels."""
    return joined(mentioned(words(message, "message"), message, names), *list(_facts(message))[:MOST_LINES], by="\n")


def mentioned(text: str, message: Raw, names: Mapping[str, str]) -> str:
    """The text with the name of each mention, which Signal sends as a placeholder: units are UTF-16."""
    marks = [mark for mark in tables(message, "mentions")[:MOST_MENTIONS] if count(mark, "start") is not None]
    units = text.encode("utf-16-le", "surrogatepass")
    for mark in sorted(marks, key=lambda mark: count(mark, "start") or 0, reverse=True):
        start = (count(mark, "start") or 0) * 2
        stop = start + (count(mark, "length") or 0) * 2
        name = names.get(address(mark)) or line(mark, "number") or line(mark, "name") or "someone"
        if stop <= len(units):
            units = units[:start] + f"@{name}".encode("utf-16-le", "surrogatepass") + units[stop:]
    return units.decode("utf-16-le", "replace")


def _facts(message: Raw) -> Iterator[str]:
    if yes(message, "viewOnce"):
        yield VIEW_ONCE
    for contact in tables(message, "contacts")[:MOST_LINES]:
        name = table(contact, "name")
        given = joined(line(name, "given"), line(name, "family"), by=" ")
        ways = [line(each, "value") for key in ("phone", "email") for each in tables(contact, key)]
        shown = line(name, "display") or line(name, "nickname") or given
        yield contact_line(shown, line(contact, "organization"), *ways)
    if poll := table(message, "pollCreate"):
        options = (one_line(option) for option in texts(poll, "options")[:MOST_LINES])
        mark = " (several answers)" if yes(poll, "allowMultiple") else ""
        yield from poll_lines(line(poll, "question"), options, mark=mark)
    for preview in tables(message, "previews")[:MOST_LINES]:  # the address itself is in the text
        if told := joined(line(preview, "title"), line(preview, "description"), by=" – "):
            yield f"Preview of {line(preview, 'url', most=ADDRESS_CHARS) or 'a link'}: {told}"


def what_it_is(message: Raw) -> tuple[str, bool]:
    """What a message without text and files is, and whether it only reports a change of the place, or of another."""
    if yes(message, "isExpirationUpdate"):
        return "the timer of disappearing messages was changed", True
    if words(table(message, "groupInfo"), "type") == "UPDATE":
        return "the group was changed", True
    # The apps also send messages without any content, such as one that only brings a profile key.
    return next((what for key, what in _KINDS.items() if message.get(key)), ("an empty message", True))
