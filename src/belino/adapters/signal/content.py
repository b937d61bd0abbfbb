"""Content of messages as text: mentions by name, contacts, polls and the like, and what a message without is."""

from collections.abc import Iterator, Mapping

from belino.adapters.signal.authors import address
from belino.net.json_fields import Raw, count, has, line, table, tables, words, yes

MOST_LINES = 50
MOST_MENTIONS = 100
ADDRESS_CHARS = 2_048

STORY = "a story, which belino does not read"
VIEW_ONCE = "Media to be viewed once, which belino does not open or keep; ask for it as an ordinary message"
TIMER = "the timer of disappearing messages was changed"
_EVENTS = {
    "payment": "a payment",
    "pollVote": "a vote in a poll",
    "pollTerminate": "a poll was ended",
    "pinMessage": "a message was pinned",
    "unpinMessage": "a message was unpinned",
    "giftBadge": "a gift badge",
    "sticker": "a sticker",
    "storyContext": "an answer to a story without text",
}


def text_of(message: Raw, names: Mapping[str, str]) -> str:
    """The text of a message, with mentions by name, then its facts, a line each."""
    parts = (mentioned(words(message, "message"), message, names), *facts_of(message))
    return "\n".join(part for part in parts if part)


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


def facts_of(message: Raw) -> tuple[str, ...]:
    """The content of a message besides its text and files, as lines; senders write their labels."""
    once = (VIEW_ONCE,) if yes(message, "viewOnce") else ()
    found = [*once, *_contacts(message), *_poll(table(message, "pollCreate")), *_previews(message)]
    return tuple(found[:MOST_LINES])


def _contacts(message: Raw) -> Iterator[str]:
    for contact in tables(message, "contacts")[:MOST_LINES]:
        name = table(contact, "name")
        given = " ".join(part for part in (line(name, "given"), line(name, "family")) if part)
        told = [line(name, "display") or line(name, "nickname") or given, line(contact, "organization")]
        told += [line(each, "value") for key in ("phone", "email") for each in tables(contact, key)]
        yield f"Contact: {', '.join(part for part in told if part) or 'empty'}"


def _poll(poll: Raw) -> Iterator[str]:
    if poll:
        several = " (several answers)" if yes(poll, "allowMultiple") else ""
        yield f"Poll{several}: {line(poll, 'question') or 'without a question'}"
        options = poll.get("options")
        for option in options[:MOST_LINES] if isinstance(options, list) else ():
            yield f"- {line({'option': option}, 'option')}"


def _previews(message: Raw) -> Iterator[str]:
    """What the sender's app shows of a link; the address itself is in the text."""
    for preview in tables(message, "previews")[:MOST_LINES]:
        told = " – ".join(part for part in (line(preview, "title"), line(preview, "description")) if part)
        if told:
            yield f"Preview of {line(preview, 'url', most=ADDRESS_CHARS) or 'a link'}: {told}"


def what_it_is(message: Raw) -> str:
    """What a message without text and files is."""
    if yes(message, "isExpirationUpdate"):
        return TIMER
    if words(table(message, "groupInfo"), "type") == "UPDATE":
        return "the group was changed"
    return next((what for key, what in _EVENTS.items() if has(message, key)), "an empty message")


def is_notice(message: Raw) -> bool:
    """Whether it only reports a change of the place, or of another message."""
    changed = words(table(message, "groupInfo"), "type") == "UPDATE" or yes(message, "isExpirationUpdate")
    return changed or any(has(message, key) for key in ("pollVote", "pollTerminate", "pinMessage", "unpinMessage"))
