"""World of a Telegram bot: people, chats, files and messages in the shapes of the Bot API."""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from belino.domain.ports import Clock
from belino.media.image.header import image_size
from belino.testing.file_server import FakeUpload, HostedFile
from belino.testing.files import make_jpeg
from belino.testing.platform_server import Json
from belino.testing.telegram.updates import Updates

# Media types: the folder of the file's path, its extension, its MIME type, the prefix of its id.
KINDS: Mapping[str, tuple[str, str, str, str]] = {
    "photo": ("photos", "jpg", "image/jpeg", "AgACAgIAAxkBAAI"),
    "video": ("videos", "mp4", "video/mp4", "BAACAgIAAxkBAAI"),
    "animation": ("animations", "mp4", "video/mp4", "CgACAgIAAxkBAAI"),
    "audio": ("music", "mp3", "audio/mpeg", "CQACAgIAAxkBAAI"),
    "voice": ("voice", "oga", "audio/ogg", "AwACAgIAAxkBAAI"),
    "video_note": ("video_notes", "mp4", "video/mp4", "DQACAgIAAxkBAAI"),
    "document": ("documents", "bin", "application/octet-stream", "BQACAgIAAxkBAAI"),
    "sticker": ("stickers", "webp", "image/webp", "CAACAgIAAxkBAAI"),
    "thumbnail": ("thumbnails", "jpg", "image/jpeg", "AAMCAgADGQEAAI"),
}
# Telegram stores a photo in these sizes (the longer side), each only if the original is larger, and the original.
PHOTO_SIDES = (90, 320, 800, 1280)

_ENTITY = re.compile(
    r"(?P<mention>(?<!\w)@[A-Za-z]\w{3,31})|(?P<bot_command>(?<![\w/])/[a-z0-9_]{1,32}(?:@\w+)?)"
    r"|(?P<url>https?://[^\s]+)|(?P<hashtag>(?<!\w)#[^\W\d]\w*)"
)
FIRST_USER = 100_001
MEDIA_FIELDS = frozenset(KINDS) - {"thumbnail"}


class TelegramFiles:
    """Every stored file, by id and by path."""

    def __init__(self) -> None:
        self.by_id: dict[str, HostedFile] = {}
        self.by_path: dict[str, HostedFile] = {}

    def put(self, kind: str, upload: FakeUpload, *, size: int | None = None) -> Json:
        """Store a file; the four fields that identify it in a message."""
        number = len(self.by_id) + 1
        folder, extension, _, prefix = KINDS[kind]
        if upload.name and "." in upload.name:
            extension = upload.name.rpartition(".")[2].lower()
        digest = hashlib.sha256(f"{kind}:{number}".encode()).digest()
        stored = HostedFile(
            file_id=prefix + urlsafe_b64encode(digest).decode().rstrip("=")[:44] + "NgQ",
            unique_id="AgAD" + urlsafe_b64encode(digest[::-1]).decode()[:11],
            upload=upload,
            path=f"{folder}/file_{number}.{extension}",
            size=upload.announced if size is None else size,
        )
        self.by_id[stored.file_id] = self.by_path[stored.path] = stored
        return {"file_id": stored.file_id, "file_unique_id": stored.unique_id, "file_size": stored.size}


def media_field(kind: str, upload: FakeUpload, files: TelegramFiles) -> Json | list[Json]:
    """The value of a message's `photo`, `video`, `voice` … field."""
    if kind == "photo":
        return _photo_sizes(upload, files)
    file = files.put(kind, upload)
    described: Json = {"file_name": upload.name} if upload.name else {}
    if kind not in ("sticker", "video_note"):
        described["mime_type"] = upload.mime or KINDS[kind][2]
    if kind in ("video", "animation", "sticker"):
        described |= {"width": upload.width, "height": upload.height}
    if kind == "video_note":
        described["length"] = upload.width
    if kind in ("video", "animation", "audio", "voice", "video_note"):
        described["duration"] = upload.duration
    if kind == "sticker":
        described |= {"type": "regular", "is_animated": False, "is_video": False, "emoji": "🙂", "set_name": "Smiles"}
    if kind in ("video", "animation", "video_note", "sticker") or upload.extra.get("thumbnail"):
        described["thumbnail"] = _thumbnail(upload, files)
    extra = {name: value for name, value in upload.extra.items() if name != "thumbnail"}
    return {**described, **extra, **file}


def _photo_sizes(upload: FakeUpload, files: TelegramFiles) -> list[Json]:
    longest = max(upload.width, upload.height)
    sides = [side for side in PHOTO_SIDES if side < longest] + [min(longest, 2560)]
    sizes = []
    for side in sides:
        share = side / longest
        width, height = max(1, round(upload.width * share)), max(1, round(upload.height * share))
        if side == sides[-1]:
            file = files.put("photo", upload)
        else:
            file = files.put("photo", _scaled(width, height), size=max(800, round(upload.announced * share * share)))
        sizes.append({**file, "width": width, "height": height})
    return sizes


def _thumbnail(upload: FakeUpload, files: TelegramFiles) -> Json:
    share = 320 / max(upload.width, upload.height, 320)
    width, height = max(1, round(upload.width * share)), max(1, round(upload.height * share))
    small = _scaled(width, height)
    return {**files.put("thumbnail", small), "width": width, "height": height}


def _scaled(width: int, height: int) -> FakeUpload:
    return FakeUpload(content=make_jpeg(width, height), width=width, height=height)


def entities_of(text: str) -> list[Json]:
    """The mentions, commands, links and hashtags that Telegram detects; offsets count UTF-16 units."""
    return [
        {"offset": units(text[: found.start()]), "length": units(found.group()), "type": str(found.lastgroup)}
        for found in _ENTITY.finditer(text)
    ]


def units(text: str) -> int:
    """Length in UTF-16 code units, which is how Telegram counts."""
    return len(text.encode("utf-16-le")) // 2


def user_shape(number: int, first_name: str, *, username: str | None = None, is_bot: bool = False) -> Json:
    """A User."""
    user: Json = {"id": number, "is_bot": is_bot, "first_name": first_name}
    if username:
        user["username"] = username
    return user if is_bot else {**user, "language_code": "en"}


def private_chat(user: Mapping[str, Any]) -> Json:
    """The chat of one user with the bot."""
    named = {name: user[name] for name in ("first_name", "last_name", "username") if name in user}
    return {"id": user["id"], **named, "type": "private"}


class TelegramWorld:
    """Users, chats and messages; every method returns the message as Telegram writes it, and queues its update."""

    def __init__(self, clock: Clock, *, bot_name: str, bot_id: int) -> None:
        self.bot = user_shape(bot_id, "belino", username=bot_name, is_bot=True)
        self.updates = Updates(clock)
        self.files = TelegramFiles()
        self.chats: dict[int, Json] = {}
        self.messages: dict[tuple[int, int], Json] = {}
        self.drafts: list[tuple[int, str]] = []
        """Every draft the bot showed, oldest first: its id and text."""
        self.unknown_methods: set[str] = set()
        """Methods, in lower case, that this server is too old for."""
        self.commands: list[Json] = []
        """The bot's menu."""
        self.sent: list[Json] = []
        """Every message the bot sent, oldest first."""
        self.received: list[FakeUpload] = []
        """Every file the bot uploaded successfully, with its hash."""
        self.edited: list[tuple[int, str]] = []
        """Every edit the bot made, oldest first: message id and text."""
        self.deleted: list[int] = []
        """The ids of messages that the bot deleted, oldest first."""
        self.reacted: dict[tuple[int, int], list[str]] = {}
        """The bot's reactions, by chat and message."""
        self.presses: list[str] = []
        """The ids of presses of buttons."""
        self.press_answers: dict[str, str] = {}
        """The bot's answers to presses, by id: the text that is shown, which may be empty."""
        self.no_voice: set[int] = set()
        """People who accept no voice messages."""
        self.closed: dict[int, str] = {}
        """Why the bot may not write to a chat: the error's description."""
        self.migrated: dict[int, int] = {}
        self.hears_all = True
        """False is privacy mode: in groups the bot receives only what is addressed to it."""
        self._clock = clock
        self._users = 0
        self._groups = 0
        self._message_ids: dict[int, int] = {}

    def user(self, first_name: str, *, username: str | None = None, **more: Any) -> Json:
        """A new user with an open chat with the bot."""
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
        """One message. Media kinds take bytes or a FakeUpload; `caption`, `reply_to`, `topic`, `album` and every other
        field of Message as Telegram names it. A user where a chat is expected means the private chat."""
        place = self.chats[chat["id"]]
        message = self.compose(place, user, text, **fields)
        if self.hears_all or place["type"] in ("private", "channel") or self._meant_for_bot(message):
            self.updates.add("channel_post" if place["type"] == "channel" else "message", message)
        return message

    def compose(self, chat: Json, author: Json | None, text: str | None = None, /, **fields: Any) -> Json:
        """A message as Telegram writes it, stored without an update."""
        message = self._head(chat, author)
        reply_to, quote = fields.pop("reply_to", None), fields.pop("quote", None)
        if reply_to is not None:
            # Telegram includes the replied-to message, but not that one's own reply.
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
        """Set a user's reactions to a message."""
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

    def press(self, message: Json, user: Json, label: str) -> str:
        """A user presses a button of a message, by its label; the id of the press."""
        place = message["chat"]["id"], message["message_id"]
        rows = self.messages[place]["reply_markup"]["inline_keyboard"]
        (data,) = (button["callback_data"] for row in rows for button in row if button["text"] == label)
        own = str(4_382_000_000_000_000_000 + len(self.presses))
        self.presses.append(own)
        query = {"id": own, "from": user, "message": self.messages[place], "chat_instance": "-1", "data": data}
        self.updates.add("callback_query", query)
        return own

    def say_business(self, user: Json, text: str | None = None, /, **fields: Any) -> Json:
        """A user writes to a business account that the bot is connected to."""
        message = self.compose(self.chats[user["id"]], user, text, business_connection_id="bc_1", **fields)
        self.updates.add("business_message", message)
        return message

    def delete_business(self, *messages: Json) -> None:
        """Messages of a business account's chat are deleted: the only deletions that the Bot API reports."""
        chat, ids = messages[0]["chat"], [message["message_id"] for message in messages]
        told = {"business_connection_id": "bc_1", "chat": chat, "message_ids": ids}
        self.updates.add("deleted_business_messages", told)

    def invite(self, chat: Json, by: Json, *, status: str = "member") -> None:
        """A user adds the bot to a group or channel, as a member or an administrator."""
        self.closed.pop(chat["id"], None)
        self._change_member(self.chats[chat["id"]], by, "left", status)

    def promote(self, chat: Json, by: Json) -> None:
        """A user makes the bot an administrator."""
        self._change_member(self.chats[chat["id"]], by, "member", "administrator")

    def block(self, user: Json) -> None:
        """The user blocks the bot."""
        self.closed[user["id"]] = "Forbidden: bot was blocked by the user"
        self._change_member(self.chats[user["id"]], user, "member", "kicked")

    def kick(self, chat: Json, by: Json | None = None) -> None:
        """The bot is no longer in a group or channel."""
        self.closed[chat["id"]] = f"Forbidden: bot was kicked from the {chat['type']} chat"
        self._change_member(self.chats[chat["id"]], by or user_shape(FIRST_USER, "Admin"), "member", "kicked")

    def migrate(self, chat: Json) -> Json:
        """A basic group becomes a supergroup under another id."""
        new = self.group(chat["title"])
        self.migrated[chat["id"]] = new["id"]
        self.say(chat, None, migrate_to_chat_id=new["id"])
        self.say(new, None, migrate_from_chat_id=chat["id"])
        return new

    def _change_member(self, chat: Json, by: Json, before: str, after: str) -> None:
        """Report a change of the bot's own membership: https://core.telegram.org/bots/api#chatmemberupdated."""
        told = {"chat": chat, "from": by, "date": self._now()}
        for name, status in (("old_chat_member", before), ("new_chat_member", after)):
            until = {"until_date": 0} if status == "kicked" else {}
            told[name] = {"user": self.bot, "status": status, **until}
        self.updates.add("my_chat_member", told)

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
