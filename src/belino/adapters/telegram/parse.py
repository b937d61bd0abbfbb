"""Parse updates into arrivals: pure, fetches nothing, never fails; what it cannot read it reports as unsupported."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from belino.adapters.telegram.authors import (
    TelegramBot,
    author_of,
    chat_as_author,
    chat_name,
    chat_type,
    conversation,
    forwarded_from,
    language_of,
    origin,
    thread_of,
    user,
)
from belino.adapters.telegram.content import (
    NAMING,
    STORY,
    facts_of,
    is_confidential,
    is_notice,
    item_answered,
    linked,
    passage,
    rich_files,
    rich_names,
    rich_text,
    what_is_in,
    what_it_is,
)
from belino.adapters.telegram.media import FETCH_BYTES, TelegramSource, refs_of
from belino.domain.choice import KEY
from belino.domain.media import MediaRef
from belino.domain.message import (
    UNKNOWN_AUTHOR,
    Arrival,
    ChatType,
    ConversationKey,
    Deletion,
    Edit,
    Message,
    Presence,
    Quote,
    Reaction,
    Unsupported,
    as_edit,
    as_unsupported,
)
from belino.domain.places import Moved
from belino.net.json_fields import Raw, as_table, has, number_id, table, tables, unix_time, whole, words, yes

# Requested by name: by default Telegram omits reactions, and sends updates we would only count.
ALLOWED_UPDATES = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "message_reaction",
    "my_chat_member",
    "callback_query",
)

_INSIDE = frozenset({"creator", "administrator", "member"})
_PRESENCE: Mapping[bool, Mapping[Presence | None, str]] = {
    True: {Presence.ADDED: "the person opened the chat", Presence.REMOVED: "the person blocked the bot"},
    False: {Presence.ADDED: "the bot was added", Presence.REMOVED: "the bot was removed"},
}
"""By whether the chat is a direct one."""
_SAID = ("message", "channel_post", "business_message")
_EDITED = ("edited_message", "edited_channel_post", "edited_business_message")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """What parsing an update needs to know: account, bot, size limit, update number, and when it was received."""

    account: str
    me: TelegramBot
    most: int
    update_id: int
    received: datetime

    def when(self, raw: Raw, key: str) -> datetime:
        """The update's time; without one, the time it was received."""
        return unix_time(raw, key) if whole(raw, key) else self.received


def parse(
    update: object, *, account: str, me: TelegramBot, received: datetime, most: int = FETCH_BYTES
) -> tuple[Arrival, ...]:
    """One update as arrivals, at least one: an unreadable update is Unsupported, with its type.

    `most` is the largest file that the bot may download.
    """
    raw = as_table(update)
    frame = _Frame(account=account, me=me, most=most, update_id=whole(raw, "update_id") or 0, received=received)
    for key in _SAID:
        if message := table(raw, key):
            return (_said(message, frame),)
    for key in _EDITED:
        if message := table(raw, key):
            return (_edited(message, frame),)
    if deleted := table(raw, "deleted_business_messages"):
        return tuple(_deletions(deleted, frame)) or (_unread(raw, frame),)
    if reaction := table(raw, "message_reaction"):
        return tuple(_reactions(reaction, frame)) or (_unread(raw, frame),)
    if member := table(raw, "my_chat_member"):
        return (_membership(member, frame),)
    if pressed := table(raw, "callback_query"):
        return (_press(pressed, frame) or _unread(raw, frame),)
    return (_unread(raw, frame),)


def _said(raw: Raw, frame: _Frame) -> Message | Unsupported:
    where, author, name = _where(raw, frame), author_of(raw, frame.me), chat_name(table(raw, "chat")) or None
    sort, sent, own_id = chat_type(table(raw, "chat")), frame.when(raw, "date"), _message_id(raw, frame)
    source = TelegramSource(where=where, message_id=own_id, sent=sent, caption=_caption(raw), most=frame.most)
    text, refs = _text(raw), _files(raw, source)
    message = Message(
        conversation=where,
        id=own_id,
        author=author,
        sent=sent,
        text=text,
        media=refs,
        chat_type=sort,
        channel_name=name,
        addressed=_is_addressed(raw, frame.me),
        reply_to=number_id(_replied_to(raw), "message_id") or None,
        quote=_quote(raw, where, own_id, frame),
        forward=forwarded_from(raw, frame.me),
        album=words(raw, "media_group_id") or None,
        language=language_of(raw, author),
        mentions_another=any(_names_another(mark, name, frame.me) for mark, name in _names(raw)),
    )
    if is_confidential(raw) or not (text or refs):
        notice = as_unsupported(message, what_it_is(raw), is_notice=is_notice(raw))
        return replace(notice, moved=_move(raw, where))
    return message


def _move(raw: Raw, where: ConversationKey) -> Moved | None:
    """The move that a group's note, or that of its supergroup, reports."""
    if target := number_id(raw, "migrate_to_chat_id"):
        return Moved(old=where.channel, new=target)
    if source := number_id(raw, "migrate_from_chat_id"):
        return Moved(old=source, new=where.channel)
    return None


def _edited(raw: Raw, frame: _Frame) -> Edit | Unsupported:
    said = _said(raw, frame)
    # Two edits may share a second, so the update's number distinguishes them.
    edit_id = f"{said.id}@{number_id(raw, 'edit_date') or '0'}.{frame.update_id}"
    return as_edit(said, edit_id, frame.when(raw, "edit_date"))


def _deletions(raw: Raw, frame: _Frame) -> Iterator[Deletion]:
    """Reported only for business accounts' chats. Telegram does not say when, or who deleted it."""
    where = conversation(frame.account, table(raw, "chat"), business=words(raw, "business_connection_id"))
    ids = raw.get("message_ids")
    for message_id in ids if isinstance(ids, list) else ():
        if type(message_id) is int and (shown := number_id({"id": message_id}, "id")):
            yield Deletion(
                conversation=where,
                id=f"{shown}.{frame.update_id}",
                message_id=shown,
                author=None,
                sent=frame.when(raw, "date"),
                chat_type=chat_type(table(raw, "chat")),
            )


def _reactions(raw: Raw, frame: _Frame) -> Iterator[Reaction]:
    """Added and removed reactions, which Telegram sends as the lists before and after."""
    message_id = number_id(raw, "message_id")
    author = user(table(raw, "user"), frame.me) or chat_as_author(table(raw, "actor_chat")) or UNKNOWN_AUTHOR
    before = [_emoji(reaction) for reaction in tables(raw, "old_reaction")]
    after = [_emoji(reaction) for reaction in tables(raw, "new_reaction")]
    changes = [(emoji, False) for emoji in before if emoji not in after]
    changes += [(emoji, True) for emoji in after if emoji not in before]
    for number, (emoji, added) in enumerate(changes if message_id else ()):
        yield Reaction(
            conversation=conversation(frame.account, table(raw, "chat")),
            id=f"{message_id}.{frame.update_id}.{number}",
            message_id=message_id,
            author=author,
            sent=frame.when(raw, "date"),
            emoji=emoji,
            added=added,
            chat_type=chat_type(table(raw, "chat")),
        )


def _emoji(reaction: Raw) -> str:
    """A reaction as text; a custom emoji has only an id, and a paid one is a star."""
    if custom := words(reaction, "custom_emoji_id"):
        return f"custom:{custom}"
    return words(reaction, "emoji") or ("⭐" if reaction.get("type") == "paid" else words(reaction, "type")[:64] or "?")


def _membership(raw: Raw, frame: _Frame) -> Unsupported:
    """A change of the bot's own membership: https://core.telegram.org/bots/api#chatmemberupdated."""
    chat, was, now = table(raw, "chat"), table(raw, "old_chat_member"), table(raw, "new_chat_member")
    sort, before, after = chat_type(chat), _is_inside(was), _is_inside(now)
    presence = None if before == after else Presence.ADDED if after else Presence.REMOVED
    return Unsupported(
        conversation=conversation(frame.account, chat),
        id=f"update-{frame.update_id}",
        author=user(table(raw, "from"), frame.me) or UNKNOWN_AUTHOR,
        sent=frame.when(raw, "date"),
        what=_PRESENCE[sort is ChatType.DIRECT].get(presence, "the bot's rights were changed"),
        chat_type=sort,
        channel_name=chat_name(chat) or None,
        is_notice=True,
        is_event=True,
        presence=presence,
    )


def _press(raw: Raw, frame: _Frame) -> Message | None:
    """A press of one of our buttons: https://core.telegram.org/bots/api#callbackquery."""
    message, author, key = table(raw, "message"), user(table(raw, "from"), frame.me), words(raw, "data")
    if author is None or not table(message, "chat") or not KEY.fullmatch(key):
        return None
    return Message(
        conversation=_where(message, frame),
        id=f"press-{frame.update_id}",
        author=author,
        sent=frame.received,
        chat_type=chat_type(table(message, "chat")),
        channel_name=chat_name(table(message, "chat")) or None,
        reply_to=number_id(message, "message_id") or None,
        press=key,
    )


def _is_inside(member: Raw) -> bool:
    """Whether a ChatMember is in the chat; a restricted one may have left."""
    status = words(member, "status")
    return status in _INSIDE or (status == "restricted" and yes(member, "is_member"))


def _unread(update: Raw, frame: _Frame) -> Unsupported:
    """An update we did not ask for or do not know, with its name and apparent author."""
    names = sorted(key for key in update if key != "update_id" and has(update, key))
    payload = table(update, names[0]) if names else {}
    chat = table(payload, "chat") or table(table(payload, "message"), "chat")
    author = user(table(payload, "from"), frame.me) or user(table(payload, "user"), frame.me)
    return Unsupported(
        conversation=conversation(frame.account, chat, business=words(payload, "business_connection_id")),
        id=f"update-{frame.update_id}",
        author=author or chat_as_author(chat) or UNKNOWN_AUTHOR,
        sent=frame.when(payload, "date"),
        what=f"an update of the kind {_named(names)}",
        # Without a chat it is not addressed to us: never the start of a direct conversation.
        chat_type=chat_type(chat) if chat else ChatType.CHANNEL,
        channel_name=chat_name(chat) or None,
        is_event=True,
    )


def _named(names: list[str]) -> str:
    known = words({"name": names[0]}, "name") if names else ""
    return known.replace("_", " ")[:64] or "nothing"


def _where(raw: Raw, frame: _Frame) -> ConversationKey:
    business = words(raw, "business_connection_id")
    return conversation(frame.account, table(raw, "chat"), business=business, thread=thread_of(raw))


def _message_id(raw: Raw, frame: _Frame) -> str:
    # Zero is no id: Telegram uses it for everything that only its sender and the bot see.
    return number_id(raw, "message_id") if whole(raw, "message_id") else f"update-{frame.update_id}"


def _text(raw: Raw) -> str:
    """The text of a message: its text or caption, then its facts, a line each."""
    parts = (linked(raw, "text", "entities"), _caption(raw), rich_text(table(raw, "rich_message")), *facts_of(raw))
    return "\n".join(part for part in parts if part)


def _caption(raw: Raw) -> str:
    return linked(raw, "caption", "caption_entities")


def _files(raw: Raw, source: TelegramSource) -> tuple[MediaRef, ...]:
    return refs_of(raw, source) + rich_files(table(raw, "rich_message"), source)


def _replied_to(raw: Raw) -> Raw:
    """The message this one replies to. In a topic, every message replies to its creation notice: that is no reply."""
    reply = table(raw, "reply_to_message")
    return {} if has(reply, "forum_topic_created") or is_confidential(reply) else reply


def _quote(raw: Raw, where: ConversationKey, own_id: str, frame: _Frame) -> Quote | None:
    """The replied-to message with its files: in this chat, or in another one."""
    quoted = linked(table(raw, "quote"), "text", "entities")
    if reply := _replied_to(raw):
        # The files have the same ids as when that message arrived.
        source = TelegramSource(
            where=where,
            message_id=number_id(reply, "message_id") or own_id,
            sent=frame.when(reply, "date"),
            caption=_caption(reply),
            most=frame.most,
        )
        quote = Quote(author=author_of(reply, frame.me), message_id=number_id(reply, "message_id") or None)
        # Telegram sends 0 for a message it no longer shows.
        sent = unix_time(reply, "date") if whole(reply, "date") else None
        files = _files(reply, source)
        return replace(quote, text=quoted or item_answered(raw, reply) or _gist(reply, files), sent=sent, media=files)
    if external := table(raw, "external_reply"):
        # Its id is valid in another chat, so the files belong to the message that brought them here.
        source = TelegramSource(where=where, message_id=own_id, sent=frame.when(raw, "date"), most=frame.most)
        quote = origin(table(external, "origin"), frame.me) or Quote()
        files = _files(external, source)
        return replace(quote, text=quoted or _gist(external, files), media=files)
    if story := table(raw, "reply_to_story"):
        return Quote(author=chat_as_author(table(story, "chat")), text=STORY)
    return Quote(text=quoted) if quoted else None


def _gist(raw: Raw, files: Sequence[MediaRef]) -> str:
    """The text of a replied-to message; a story, a join or a game has none, and is named."""
    return _text(raw) or ("" if files else what_is_in(raw))


def _is_addressed(raw: Raw, me: TelegramBot) -> bool:
    """Whether a message is addressed to this bot: in private, by its name, by a command for it, or as a reply to it."""
    # A business account's chat is between two people; we only read it.
    if chat_type(table(raw, "chat")) is ChatType.DIRECT and not words(raw, "business_connection_id"):
        return True
    if me.id and whole(table(_replied_to(raw), "from"), "id") == me.id:
        return True
    return any(_names_me(mark, name, me) for mark, name in _names(raw))


def _names(raw: Raw) -> Iterator[tuple[Raw, str]]:
    """Every mention and command in a message, with its target."""
    for said, entities in (("text", "entities"), ("caption", "caption_entities")):
        for entity in tables(raw, entities):
            if words(entity, "type") in NAMING:
                yield entity, passage(words(raw, said), entity)
    for node in rich_names(table(raw, "rich_message")):
        yield node, words(node, "username") or words(node, "bot_command")


def _names_me(mark: Raw, name: str, me: TelegramBot) -> bool:
    match words(mark, "type"):
        case "text_mention":
            return me.id != 0 and whole(table(mark, "user"), "id") == me.id
        case "mention":
            return _is_my_name(name.removeprefix("@"), me)
        case "bot_command":
            return _is_my_name(name.partition("@")[2], me)
        case _:
            return False


def _names_another(mark: Raw, name: str, me: TelegramBot) -> bool:
    """Whether a mention is of another; a command without a name is for every bot."""
    is_command = words(mark, "type") == "bot_command"
    return not _names_me(mark, name, me) and (not is_command or bool(name.partition("@")[2]))


def _is_my_name(name: str, me: TelegramBot) -> bool:
    return bool(name) and name.lower() == me.username.lower()
