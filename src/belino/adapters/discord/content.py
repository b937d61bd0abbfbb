"""Content of messages as text: names instead of ids, polls, embeds, components, and service messages.

Labels in these lines are written by senders: each is on one line, and is as untrusted as the message.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

from belino.adapters.discord.authors import DiscordBot, DiscordChannels, identity, name_of
from belino.adapters.discord.media import RICH, components_in, uploaded
from belino.net.json_fields import NOTHING, Raw, count, line, table, tables, words, yes

MOST_LINES = 50
EMBED_CHARS = 4_096
BUTTON, MENUS = 2, frozenset({3, 5, 6, 7, 8})

_REFERENCE = re.compile(
    r"<(?P<sign>@[!&]?|#|a?:(?P<emoji>\w{1,64}):|t:|/(?P<command>[^<>:\n]{1,100}):)(?P<own>-?\d{1,20})"
)
_END = re.compile(r"(?::[tTdDfFsSR])?>")

SAID = frozenset({0, 19, 20, 23, 46})
"""Message types with readable content: plain, replies, answers to commands, the end of a poll."""

FORWARD = 1
"""The reference type of a forwarded message, which is carried inside."""

_SERVICE = {
    1: "someone was added",
    2: "someone left",
    3: "a call",
    4: "the channel has a new name",
    5: "the channel has a new picture",
    6: "a message was pinned",
    7: "someone joined",
    8: "the server was boosted",
    9: "the server was boosted to level 1",
    10: "the server was boosted to level 2",
    11: "the server was boosted to level 3",
    12: "a channel is followed here",
    14: "the server was taken out of discovery",
    15: "the server is in discovery again",
    16: "a warning about discovery",
    17: "the last warning about discovery",
    18: "a thread was opened",
    21: "a thread was opened at a message",
    22: "a reminder to invite people",
    24: "the automatic moderation did something",
    25: "someone bought a role",
    26: "an offer of an app",
    27: "a stage began",
    28: "a stage ended",
    29: "someone speaks on a stage",
    31: "a stage has a new topic",
    32: "someone subscribed to an app",
    36: "an alarm was raised in the server",
    37: "the alarm in the server is over",
    38: "a raid was reported",
    39: "a report of a raid was false",
    44: "something was bought",
}

# Their content is a name or topic.
_TITLED = frozenset({4, 18, 27, 31})

_USED = {3: "a button or menu of a message was used", 5: "a form was sent"}


def text_of(message: Raw, channels: DiscordChannels, me: DiscordBot) -> str:
    """The readable text of a message."""
    parts = [readable(words(message, "content"), message, channels, me), *_poll(table(message, "poll"))]
    parts += [*_stickers(message), *_embeds(message), *_components(message), *_unnamed_files(message)]
    return "\n".join(part for part in parts if part)


def readable(text: str, message: Raw, channels: DiscordChannels, me: DiscordBot) -> str:
    """A text with names instead of the ids of people, channels, emojis and commands, where known."""
    if "<" not in text:
        return text
    names = {f"@{me.id}": me.name} | {f"@{identity(each, 'id')}": name_of(each) for each in tables(message, "mentions")}
    names |= {f"#{identity(each, 'id')}": line(each, "name", most=100) for each in tables(message, "mention_channels")}
    pieces, at = [], 0
    for found in _REFERENCE.finditer(text):
        end = _END.match(text, found.end())
        shown = _named(found, names, channels, me) if end is not None else None
        if end is not None and shown is not None and found.start() >= at:
            pieces += [text[at : found.start()], shown]
            at = end.end()
    return "".join([*pieces, text[at:]])


def _named(found: re.Match[str], names: Mapping[str, str], channels: DiscordChannels, me: DiscordBot) -> str | None:
    sign, own = found["sign"], found["own"]
    if sign.startswith("@"):
        name = me.role(own) if sign == "@&" else names.get(f"@{own}")
        return f"@{name.removeprefix('@')}" if name else None
    if sign == "#":
        name = (channels[own].name if own in channels else "") or names.get(f"#{own}")
        return f"#{name}" if name else None
    if found["emoji"]:
        return f":{found['emoji']}:"
    if found["command"]:
        return f"/{found['command']}"
    try:
        return f"{datetime.fromtimestamp(int(own), UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return None


def _poll(poll: Raw) -> Iterator[str]:
    if not poll:
        return
    results = table(poll, "results")
    votes = {count(each, "id"): count(each, "count") for each in tables(results, "answer_counts")}
    closed = " (closed)" if yes(results, "is_finalized") else ""
    yield f"Poll{closed}: {line(table(poll, 'question'), 'text') or 'without a question'}"
    for answer in tables(poll, "answers")[:MOST_LINES]:
        shown = table(answer, "poll_media")
        label = " ".join(part for part in (line(table(shown, "emoji"), "name", most=64), line(shown, "text")) if part)
        cast = votes.get(count(answer, "answer_id"))
        yield f"- {label}{f' ({cast} votes)' if cast else ''}"


def _stickers(message: Raw) -> Iterator[str]:
    for sticker in (tables(message, "sticker_items") or tables(message, "stickers"))[:MOST_LINES]:
        yield f"Sticker {line(sticker, 'name', most=64)}".rstrip()


def _unnamed_files(message: Raw) -> Iterator[str]:
    """Files without a valid id, as other servers send them: they cannot be fetched, but are not lost."""
    for file in tables(message, "attachments")[:MOST_LINES]:
        if not identity(file, "id"):
            yield _labelled("file", line(file, "filename", most=255) or "without a name", "")


def _embeds(message: Raw) -> Iterator[str]:
    """Previews and cards, without those that only repeat a link in the text."""
    said = words(message, "content")
    for embed in tables(message, "embeds")[:MOST_LINES]:
        yield "\n".join(part for part in (_poll_result(embed) or _embed(embed, said)) if part)


def _embed(embed: Raw, said: str) -> list[str]:
    title = line(embed, "title") or line(table(embed, "author"), "name") or line(table(embed, "provider"), "name")
    body = words(embed, "description").strip()[:EMBED_CHARS]
    fields = [f"- {line(each, 'name')}: {line(each, 'value', most=1024)}" for each in tables(embed, "fields")[:25]]
    footer = line(table(embed, "footer"), "text")
    link = _plain_link(words(embed, "url"))
    link = "" if link in said else link
    shown = _shown(table(embed, "image")) if words(embed, "type") in RICH else ""
    if not (title or body or fields or footer or shown):
        return [f"Embed: {link}"] if link else []
    first = f"Embed: {title}{f' ({link})' if link else ''}" if title or link else "Embed:"
    return [first, body, *fields, footer, shown]


def _poll_result(embed: Raw) -> list[str]:
    """The result of a poll, which Discord sends as an embed with fields for programs."""
    if words(embed, "type") != "poll_result":
        return []
    told = {line(each, "name"): line(each, "value") for each in tables(embed, "fields")}
    first = f"Poll (closed): {told.get('poll_question_text', '')}"
    if victor := told.get("victor_answer_text"):
        return [first, f"- {victor} ({told.get('victor_answer_votes', '?')} of {told.get('total_votes', '?')} votes)"]
    return [first]


def _plain_link(url: str) -> str:
    """A link without query and fragment, which may hold signatures and tokens."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or any(sign.isspace() for sign in url):
        return ""
    return f"{parts.scheme}://{parts.netloc}{parts.path}"[:300]


def _components(message: Raw) -> Iterator[str]:
    """The texts of a message's components, their choices, and external media."""
    for component in components_in(message):
        kind, label = count(component, "type"), line(component, "label", most=100)
        yield words(component, "content").strip()
        if kind == BUTTON:
            yield _labelled("button", label, _plain_link(words(component, "url")))
        elif kind in MENUS:
            choices = (line(each, "label", most=100) for each in tables(component, "options")[:25])
            yield _labelled("menu", line(component, "placeholder", most=150), ", ".join(filter(None, choices)))
        else:
            yield label
        for item in (component, *tables(component, "items")):
            yield _shown(table(item, "media"), line(item, "description"))


def _shown(media: Raw, description: str = "") -> str:
    """An image or video on another server; an uploaded file has a ref."""
    link = "" if uploaded(media, NOTHING) else _plain_link(words(media, "url"))
    kind = words(media, "content_type").partition("/")[0]
    return _labelled(kind if kind in ("video", "audio") else "image", description, link) if link else ""


def _labelled(kind: str, label: str, more: str) -> str:
    return " ".join(filter(None, (f"- [{kind}]", label, more and f"({more})"))) if label or more else ""


def is_notice(message: Raw) -> bool:
    """Whether Discord itself wrote a message, about the place it is in."""
    return (count(message, "type") or 0) in _SERVICE


def what_it_is(message: Raw) -> str:
    """A short description of a message without readable content."""
    kind = count(message, "type") or 0
    if kind in _SERVICE:
        return _moved(message, kind) or ": ".join(filter(None, (_SERVICE[kind], _told_by(message, kind))))
    if kind not in SAID:
        return f"a message of the type {kind}"
    if count(table(message, "message_reference"), "type") == FORWARD:
        return "a forwarded message, of which Discord shows nothing"
    if table(message, "activity"):
        return f"an invitation to {line(table(message, 'application'), 'name', most=100) or 'an activity'}"
    if table(message, "shared_client_theme"):
        return "a theme for Discord"
    return "a message without anything in it, or one Discord does not show to bots without the message content intent"


def _moved(message: Raw, kind: int) -> str:
    """Who was added, joined or left; empty for anything else, or without a name."""
    author = table(message, "author")
    other = next((each for each in tables(message, "mentions") if identity(each, "id")), author)
    match kind:
        case 1 if other:
            return f"{name_of(other)} was added"
        case 2 if other:
            return f"{name_of(other)} left"
        case 7 if author:
            return f"{line(table(message, 'member'), 'nick', most=64) or name_of(author)} joined"
    return ""


def _told_by(message: Raw, kind: int) -> str:
    """The new name or topic, or the id of the message that was pinned: Discord does not send its text."""
    if kind in _TITLED:
        return line(message, "content", most=100)
    return (
        f"message {own}" if kind == 6 and (own := identity(table(message, "message_reference"), "message_id")) else ""
    )


def kind_of_event(event: Raw) -> str:
    used = count(table(event, "d"), "type") if words(event, "t") == "INTERACTION_CREATE" else None
    if used in _USED:
        return _USED[used]
    name = words(event, "t").lower().replace("_", " ")[:64]
    return f"an event of the kind {name or 'nothing'}"
