"""The people on the far side of a bot: they talk, send media, edit, react, and Telegram writes it down its way."""

from collections.abc import Mapping
from typing import Any

from belino.domain.ports import Clock
from belino.media.image_header import image_size
from belino.testing.file_server import FakeUpload
from belino.testing.telegram.shapes import (
    KINDS,
    Json,
    TelegramFiles,
    entities_of,
    media_field,
    private_chat,
    user_shape,
)
from belino.testing.telegram.updates import Updates

FIRST_USER = 100_001
MEDIA_FIELDS = frozenset(KINDS) - {"thumbnail"}


class TelegramWorld:
    """Users, chats and what was said; every verb returns the message as Telegram tells it, and queues its update."""

    def __init__(self, clock: Clock, *, bot_name: str, bot_id: int) -> None:
        self.bot = user_shape(bot_id, "belino", username=bot_name, is_bot=True)
        self.updates = Updates(clock)
        self.files = TelegramFiles()
        self.chats: dict[int, Json] = {}
        self.messages: dict[tuple[int, int], Json] = {}
        self.sent: list[Json] = []
        """Every message the bot made visible, oldest first."""
        self.received: list[FakeUpload] = []
        """Every file the bot uploaded and Telegram took, with its hash."""
        self.edited: list[tuple[int, str]] = []
        """Every change the bot made, oldest first: message id and text."""
        self.no_voice: set[int] = set()
        """People who take no voice messages."""
        self.closed: dict[int, str] = {}
        """Why the bot may not write to a chat: the error's description."""
        self.migrated: dict[int, int] = {}
        self.hears_all = True
        """False is privacy mode: in groups the bot hears only what is meant for it."""
        self._clock = clock
        self._users = 0
        self._groups = 0
        self._message_ids: dict[int, int] = {}

    def user(self, first_name: str, *, username: str | None = None, **more: Any) -> Json:
        """Somebody new, who has opened a chat with the bot."""
        user = user_shape(FIRST_USER + self._users, first_name, username=username) | more
        self._users += 1
        self.chats[user["id"]] = private_chat(user)
        return user

    def group(self, title: str, *, kind: str = "supergroup", forum: bool = False) -> Json:
        """A supergroup, a basic `group` or a `channel` that the bot is in."""
        self._groups += 1
        number = -self._groups - 4_000 if kind == "group" else -1_001_000_000_000 - self._groups
        chat: Json = {"id": number, "title": title, "type": kind}
        if forum:
            chat["is_forum"] = True
        self.chats[number] = chat
        return chat

    def say(self, chat: Json, user: Json | None, text: str | None = None, /, **fields: Any) -> Json:
        """One message. Media kinds take bytes or an Upload; `caption`, `reply_to`, `topic`, `album` and every other
        field of Message as Telegram names it. A user where a chat is expected means the private chat."""
        place = self.chats[chat["id"]]
        message = self.compose(place, user, text, **fields)
        if self.hears_all or place["type"] in ("private", "channel") or self._meant_for_bot(message):
            self.updates.add("channel_post" if place["type"] == "channel" else "message", message)
        return message

    def compose(self, chat: Json, author: Json | None, text: str | None = None, /, **fields: Any) -> Json:
        """A message as Telegram writes it, kept, but told to nobody."""
        message = self._head(chat, author)
        reply_to, quote = fields.pop("reply_to", None), fields.pop("quote", None)
        if reply_to is not None:
            # Telegram repeats the message that is answered, but not what that one answered.
            message["reply_to_message"] = {k: v for k, v in reply_to.items() if k != "reply_to_message"}
        if quote is not None:
            at = str((reply_to or {}).get("text", "")).find(quote)
            message["quote"] = {"text": quote, "position": max(at, 0), "is_manual": True}
        if (topic := fields.pop("topic", None)) is not None:
            message |= {"message_thread_id": topic, "is_topic_message": True}
        if (album := fields.pop("album", None)) is not None:
            message["media_group_id"] = str(album)
        for name, value in fields.items():
            message |= self._field(name, value)
        if text is not None:
            message["text"] = text
        for words, marks in (("text", "entities"), ("caption", "caption_entities")):
            if words in message and marks not in fields and (found := entities_of(message[words])):
                message[marks] = found
        self.messages[chat["id"], message["message_id"]] = message
        return message

    def edit(self, message: Json, text: str | None = None, **fields: Any) -> Json:
        """The author changes a message."""
        kept = {k: v for k, v in message.items() if k not in ("entities", "caption_entities")}
        edited = {**kept, "edit_date": self._now(), **fields} | ({} if text is None else {"text": text})
        for words, marks in (("text", "entities"), ("caption", "caption_entities")):
            if words in edited and (found := entities_of(edited[words])):
                edited[marks] = found
        self.messages[message["chat"]["id"], message["message_id"]] = edited
        kind = "edited_channel_post" if message["chat"]["type"] == "channel" else "edited_message"
        self.updates.add(kind, edited)
        return edited

    def react(self, message: Json, user: Json, *emoji: str, before: tuple[str, ...] = ()) -> None:
        """A user's reactions to a message are now these."""
        self.updates.add(
            "message_reaction",
            {
                "chat": message["chat"],
                "message_id": message["message_id"],
                "user": user,
                "date": self._now(),
                "old_reaction": [{"type": "emoji", "emoji": one} for one in before],
                "new_reaction": [{"type": "emoji", "emoji": one} for one in emoji],
            },
        )

    def say_business(self, user: Json, text: str | None = None, /, **fields: Any) -> Json:
        """Somebody writes to a business account that the bot helps."""
        message = self.compose(self.chats[user["id"]], user, text, business_connection_id="bc_1", **fields)
        self.updates.add("business_message", message)
        return message

    def delete_business(self, *messages: Json) -> None:
        """Messages of a business account's chat are gone: the one place where the Bot API tells of deletions."""
        chat, ids = messages[0]["chat"], [message["message_id"] for message in messages]
        told = {"business_connection_id": "bc_1", "chat": chat, "message_ids": ids}
        self.updates.add("deleted_business_messages", told)

    def block(self, user: Json) -> None:
        """The user wants nothing more from the bot."""
        self.closed[user["id"]] = "Forbidden: bot was blocked by the user"

    def kick(self, chat: Json) -> None:
        """The bot is no longer in a group or channel."""
        self.closed[chat["id"]] = f"Forbidden: bot was kicked from the {chat['type']} chat"

    def migrate(self, chat: Json) -> Json:
        """A basic group becomes a supergroup under another id."""
        new = self.group(chat["title"])
        self.migrated[chat["id"]] = new["id"]
        self.say(chat, None, migrate_to_chat_id=new["id"])
        self.say(new, None, migrate_from_chat_id=chat["id"])
        return new

    def _head(self, chat: Json, author: Json | None) -> Json:
        number = self._message_ids.get(chat["id"], 0) + 1
        self._message_ids[chat["id"]] = number
        head: Json = {"message_id": number}
        if chat["type"] == "channel":
            head["sender_chat"] = chat
        elif author is not None:
            head["from"] = author
        return head | {"chat": chat, "date": self._now()}

    def _field(self, name: str, value: Any) -> Mapping[str, Any]:
        if name in MEDIA_FIELDS:
            upload = value if isinstance(value, FakeUpload) else _upload(value)
            media = media_field(name, upload, self.files)
            # An animation is sent as a document too, for clients that know no animations.
            return {name: media, "document": media} if name == "animation" else {name: media}
        return {name: value}

    def _meant_for_bot(self, message: Json) -> bool:
        words = message.get("text") or message.get("caption") or ""
        answered = message.get("reply_to_message", {}).get("from", {}).get("id")
        service = not ({"text", "caption"} | MEDIA_FIELDS) & set(message)
        return service or answered == self.bot["id"] or words.startswith("/") or f"@{self.bot['username']}" in words

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def _upload(content: bytes) -> FakeUpload:
    size = image_size(content)
    return FakeUpload(content=content) if size is None else FakeUpload(content=content, width=size[1], height=size[2])
