"""Authors and conversations: users, chats and the origins of forwarded messages as domain values."""

from dataclasses import dataclass

from belino.domain.message import UNKNOWN_AUTHOR, UNKNOWN_NAME, Author, ChatType, ConversationKey, Quote, language_tag
from belino.net.json_fields import Raw, line, number_id, table, unix_time, whole, words, yes

PLATFORM = "telegram"

# A channel's direct messages have a topic per person, whose ids are user ids, not message ids.
DIRECT_TOPIC = "direct-"

# Users who hide their account in forwards have a name and no id.
HIDDEN = "hidden"

_CHAT_TYPES = {"private": ChatType.DIRECT, "group": ChatType.GROUP, "supergroup": ChatType.GROUP}


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramBot:
    """The bot's identity, which decides whether a message is addressed to us."""

    id: int = 0
    username: str = ""


def user(raw: Raw, me: TelegramBot) -> Author | None:
    """A User; names may be anything and may change, only the id counts."""
    own = whole(raw, "id")
    if own is None:
        return None
    name = " ".join(part for part in (line(raw, "first_name"), line(raw, "last_name")) if part)
    login = line(raw, "username")
    return Author(
        id=str(own),
        name=name or login or UNKNOWN_NAME,
        is_bot=yes(raw, "is_bot"),
        is_agent=own == me.id != 0,
        other_names=(login,) if name and login else (),
    )


def chat_as_author(raw: Raw, signature: str = "") -> Author | None:
    """A chat as the author: a channel, or a group through an anonymous administrator."""
    own = number_id(raw, "id")
    return Author(id=own, name=signature or chat_name(raw) or UNKNOWN_NAME) if own else None


def author_of(message: Raw, me: TelegramBot) -> Author:
    """The author of a message. Where a chat is the author, `from` is a placeholder."""
    if yes(table(message, "sender_business_bot"), "is_bot"):
        # Sent by a bot on behalf of a business account: the bot is the author.
        return user(table(message, "sender_business_bot"), me) or UNKNOWN_AUTHOR
    signature = line(message, "author_signature")
    speaker = chat_as_author(table(message, "sender_chat"), signature) or user(table(message, "from"), me)
    if speaker is None and words(table(message, "chat"), "type") == "channel":
        speaker = chat_as_author(table(message, "chat"), signature)
    return speaker or UNKNOWN_AUTHOR


def language_of(message: Raw, author: Author) -> str | None:
    """The language of the app of a user who wrote a message, if they are its author."""
    sender = table(message, "from")
    return language_tag(sender.get("language_code")) if number_id(sender, "id") == author.id else None


def chat_name(chat: Raw) -> str:
    """A chat's title, or the name of the person in a private one."""
    person = " ".join(part for part in (line(chat, "first_name"), line(chat, "last_name")) if part)
    return line(chat, "title") or person or line(chat, "username")


def chat_type(chat: Raw) -> ChatType:
    return _CHAT_TYPES.get(words(chat, "type"), ChatType.CHANNEL)


def conversation(account: str, chat: Raw, *, business: str = "", thread: str | None = None) -> ConversationKey:
    """The conversation of a message. A business account's chat is not the bot's own chat with the same person."""
    channel = number_id(chat, "id") or "elsewhere"
    return ConversationKey(
        platform=PLATFORM, account=account, channel=f"{channel}@{business}" if business else channel, thread=thread
    )


def thread_of(message: Raw) -> str | None:
    """The topic of a message. Telegram numbers reply threads of plain groups too; those are no topics."""
    if yes(message, "is_topic_message"):
        return number_id(message, "message_thread_id") or None
    topic = number_id(table(message, "direct_messages_topic"), "topic_id")
    return f"{DIRECT_TOPIC}{topic}" if topic else None


def forwarded_from(message: Raw, me: TelegramBot) -> Quote | None:
    """Where a forwarded message comes from; servers older than Bot API 7.0 spread the origin over the message."""
    if (found := origin(table(message, "forward_origin"), me)) is not None or not whole(message, "forward_date"):
        return found
    author = user(table(message, "forward_from"), me) or chat_as_author(
        table(message, "forward_from_chat"), line(message, "forward_signature")
    )
    hidden = line(message, "forward_sender_name")
    if author is None and hidden:
        author = Author(id=HIDDEN, name=hidden)
    return Quote(author=author, sent=unix_time(message, "forward_date"))


def origin(raw: Raw, me: TelegramBot) -> Quote | None:
    """A MessageOrigin: the original author of a forward or external reply. Its id is valid only there."""
    if not raw:
        return None
    signature = line(raw, "author_signature")
    author: Author | None
    match words(raw, "type"):
        case "user":
            author = user(table(raw, "sender_user"), me)
        case "hidden_user":
            author = Author(id=HIDDEN, name=line(raw, "sender_user_name") or UNKNOWN_NAME)
        case "chat":
            author = chat_as_author(table(raw, "sender_chat"), signature)
        case "channel":
            author = chat_as_author(table(raw, "chat"), signature)
        case _:
            author = None
    return Quote(author=author, sent=unix_time(raw, "date") if whole(raw, "date") else None)
