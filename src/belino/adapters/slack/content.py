"""Content of messages as text: Slack's markup, blocks, attachments, and events without text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from belino.adapters.slack.authors import Directory, SlackApp, moment, stamp, user_named
from belino.adapters.slack.media import WITHOUT_BYTES, has_bytes, refs_of
from belino.domain.message import Author, Quote, SourceMessage
from belino.net.json_fields import Raw, as_table, count, line, table, tables, words, yes
from belino.net.redact import redact

_TOKEN = re.compile(r"<([^<>]{1,3000})>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))

MOST_BLOCKS = 100
"""Slack accepts fifty in a message; more are not read."""
DEEPEST = 8
# Keys of blocks whose text is not a text object.
_WORDED = frozenset({"title", "subtitle", "text", "body", "label", "description", "caption", "name"})

MOST_ATTACHMENTS = 20
"""Attachments that are read; Slack's clients show no more either."""

_EVENTS = {
    "channel_join": "someone joined",
    "group_join": "someone joined",
    "member_joined_channel": "someone joined",
    "channel_leave": "someone left",
    "group_leave": "someone left",
    "member_left_channel": "someone left",
    "channel_topic": "the channel has a new topic",
    "group_topic": "the channel has a new topic",
    "channel_purpose": "the channel has a new description",
    "group_purpose": "the channel has a new description",
    "channel_name": "the channel has a new name",
    "group_name": "the channel has a new name",
    "channel_rename": "the channel has a new name",
    "channel_archive": "the channel was archived",
    "group_archive": "the channel was archived",
    "channel_unarchive": "the channel is in use again",
    "group_unarchive": "the channel is in use again",
    "channel_convert_to_private": "the channel is private now",
    "channel_posting_permissions": "who may write in the channel has changed",
    "pinned_item": "a message was pinned",
    "unpinned_item": "a message is no longer pinned",
    "reminder_add": "a reminder was set",
    "bot_add": "an app was added",
    "bot_remove": "an app was removed",
    "bot_enable": "an app was enabled",
    "bot_disable": "an app was disabled",
    "huddle_thread": "a huddle, which apps cannot hear",
    "sh_room_created": "a call was started",
    "ekm_access_denied": "a message whose key was withdrawn",
    "tombstone": "a message that was deleted",
    "file_comment": "a comment on a file",
    "file_mention": "a file was mentioned",
    "message_replied": "a thread has a new reply",
    "message_changed": "a change of a message that is not told",
    "message_deleted": "a deletion that names no message",
}
_MOVES = frozenset(name for name, what in _EVENTS.items() if what in ("someone joined", "someone left"))
NAME_CHARS, GIST_CHARS = 100, 200


def readable(text: str, me: SlackApp, directory: Directory) -> str:
    """A text as a person sees it."""
    return plain(_TOKEN.sub(lambda found: _shown(found[1], me, directory), text)).strip("\n")


def plain(text: str) -> str:
    """Slack escapes three characters as entities, and no others."""
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def escaped(text: str) -> str:
    """A text without anything that Slack would read as markup."""
    for entity, character in reversed(_ENTITIES):
        text = text.replace(character, entity)
    return text


def link(url: str, label: str = "") -> str:
    """A link as text, without parts that may be secret."""
    address = redact(plain(url)).removeprefix("mailto:")
    return f"{label} ({address})" if label and label not in (address, url.removeprefix("mailto:")) else address


def user_shown(user: str, me: SlackApp, directory: Directory) -> str:
    return f"@{(me.name if user == me.user else '') or directory.users.get(user) or user}"


def _shown(token: str, me: SlackApp, directory: Directory) -> str:
    target, _, label = token.partition("|")
    match target[:1]:
        case "@":
            # The name in the payload is the one the sender's client knew; ours may be older.
            return (
                f"@{label.removeprefix('@')}"
                if label and target[1:] != me.user
                else user_shown(target[1:], me, directory)
            )
        case "#":
            return f"#{label or directory.channels.get(target[1:]) or target[1:]}"
        case "!":
            return _special(target[1:], label)
        case _:
            return link(target, label)


def _special(name: str, label: str) -> str:
    kind, _, rest = name.partition("^")
    if kind == "date":
        return label or rest
    if kind == "subteam":
        return label if label.startswith("@") else f"@{label or rest}"
    return f"@{label.removeprefix('@') or kind}"


class Blocks:
    """Reads blocks, with known names."""

    def __init__(self, me: SlackApp, directory: Directory) -> None:
        self._me = me
        self._directory = directory

    def text(self, blocks: tuple[Raw, ...]) -> str:
        """All blocks, a line or more each; those without text are left out."""
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
        """The text of a block of an unknown type (cards, plans, containers), wherever it is."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentContent:
    """The parsed attachments of a message."""

    text: str = ""
    forward: Quote | None = None
    """A message that was shared here."""
    quote: Quote | None = None
    """A message whose address was pasted."""
    files: tuple[Raw, ...] = ()
    """The files of all attachments that are given as text."""


class Attachments:
    """Reads attachments, with known names."""

    def __init__(self, me: SlackApp, directory: Directory) -> None:
        self._me = me
        self._directory = directory
        self._blocks = Blocks(me, directory)

    def read(self, attachments: tuple[Raw, ...], source: SourceMessage) -> AttachmentContent:
        """One shared and one quoted message as such; everything else as text."""
        read = AttachmentContent()
        for each in attachments[:MOST_ATTACHMENTS]:
            if _is_share(each) and read.forward is None:
                read = replace(read, forward=self._quote(each, source))
            elif _is_pasted(each) and read.quote is None:
                read = replace(read, quote=self._quote(each, source))
            else:
                said = "\n".join(part for part in (read.text, self._text(each)) if part)
                read = replace(read, text=said, files=(*read.files, *tables(each, "files")))
        return read

    def _quote(self, raw: Raw, source: SourceMessage) -> Quote:
        """Its files belong to the message that shares it; its id is valid only in its own channel."""
        here = words(raw, "channel_id") == source.where.channel
        ts, files = stamp(raw, "ts"), tables(raw, "files")
        message_id = ts if here and ts else None
        own = replace(source, message_id=message_id or source.message_id, caption="")
        said = self._said(raw)
        return Quote(
            author=self._author(raw),
            message_id=message_id,
            text="\n".join(part for part in (said, *wordings_of(files)) if part),
            sent=moment(ts),
            media=refs_of(files, own),
        )

    def _author(self, raw: Raw) -> Author | None:
        user, name = words(raw, "author_id"), line(raw, "author_name") or line(raw, "author_subname")
        if not user:
            return Author(id="unknown", name=name) if name else None
        author = user_named(user, self._me, self._directory)
        return replace(author, name=name) if name and not author.is_agent else author

    def _said(self, raw: Raw) -> str:
        if text := words(raw, "text"):
            return readable(text, self._me, self._directory)
        blocks = tuple(block for each in tables(raw, "message_blocks") for block in _blocks_in(each))
        return self._blocks.text(blocks or tables(raw, "blocks")) or line(raw, "fallback")

    def _text(self, raw: Raw) -> str:
        parts = list(self._parts(raw))
        if not parts and (fallback := words(raw, "fallback")):
            parts = [readable(fallback, self._me, self._directory)]
        return "\n".join(part for part in parts if part)

    def _parts(self, raw: Raw) -> Iterator[str]:
        yield readable(words(raw, "pretext"), self._me, self._directory)
        service, author = line(raw, "service_name"), self._author(raw)
        yield ", ".join(part for part in (service, author.name if author else "") if part)
        title = readable(line(raw, "title"), self._me, self._directory)
        address = words(raw, "title_link") or words(raw, "from_url")
        yield link(address, title) if address else title
        yield readable(words(raw, "text"), self._me, self._directory)
        for each in tables(raw, "fields"):
            name, value = line(each, "title"), readable(words(each, "value"), self._me, self._directory)
            yield ": ".join(part for part in (name, value) if part)
        yield self._blocks.text(tables(raw, "blocks"))
        yield from wordings_of(tables(raw, "files"))
        if words(raw, "image_url") or words(raw, "thumb_url"):
            yield "(with a picture)"
        yield readable(line(raw, "footer"), self._me, self._directory)


def pasted(attachments: tuple[Raw, ...]) -> list[str]:
    """The links of quoted messages; Slack resolves them only after a message was sent."""
    return [words(each, "from_url") or stamp(each, "ts") for each in attachments if _is_pasted(each)]


def _is_share(raw: Raw) -> bool:
    return yes(raw, "is_share")


def _is_pasted(raw: Raw) -> bool:
    return yes(raw, "is_msg_unfurl") or yes(raw, "is_reply_unfurl")


def _blocks_in(raw: Raw) -> tuple[Raw, ...]:
    """`message_blocks` wraps the blocks of the shared message: {team, channel, ts, message: {blocks}}."""
    return tables(table(raw, "message"), "blocks") or ((raw,) if words(raw, "type") else ())


def wordings_of(files: tuple[Raw, ...]) -> Iterator[str]:
    """A line for each file whose bytes are not available."""
    for file in files:
        if has_bytes(file):
            continue
        name = line(file, "title") or line(file, "name")
        if words(file, "mode") == "external" or yes(file, "is_external"):
            address = words(file, "external_url") or words(file, "url_private")
            kept = " ".join(link(address).split())
            yield f"(a file kept elsewhere: {name}{f', {kept}' if kept else ''})"
        else:
            what = WITHOUT_BYTES.get(words(file, "mode")) or WITHOUT_BYTES.get(words(file, "file_access"))
            yield f"({what or 'a file Slack tells nothing of'}{f': {name}' if name else ''})"


def what_it_is(raw: Raw, who: str) -> str:
    """A short description of an event without readable content, whose author is `who`."""
    name = line(raw, "subtype", most=64) or line(raw, "type", most=64)
    if name in _EVENTS:
        event = _EVENTS[name]
        return event.replace("someone", who, 1) if name in _MOVES else ": ".join(filter(None, (event, _told_by(raw))))
    if name in ("message", "app_mention", "bot_message", "file_share", "me_message", "thread_broadcast"):
        return "a message without a word"
    return name.replace("_", " ") or "nothing"


def _told_by(raw: Raw) -> str:
    """The new topic, description or name, or the beginning of the message that was pinned."""
    told = line(raw, "topic", most=GIST_CHARS) or line(raw, "purpose", most=GIST_CHARS)
    channel = table(raw, "channel")
    told = told or line(raw, "name", most=NAME_CHARS) or line(channel, "name", most=NAME_CHARS)
    pinned = (table(table(raw, "item"), "message"), *tables(raw, "attachments"))
    return told or next((said for each in pinned if (said := line(each, "text", most=GIST_CHARS))), "")
