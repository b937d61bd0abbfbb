"""Calls of the Bot API: every method, with the checks and the error texts of Telegram."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from belino.domain.ports import Clock
from belino.testing.file_server import FakeUpload
from belino.testing.platform_server import Json
from belino.testing.telegram.request import (
    TelegramCall,
    TelegramLimiter,
    TelegramPace,
    TelegramRefusal,
    kept_form,
    refuse_photo,
    shown,
)
from belino.testing.telegram.rich import rich_message
from belino.testing.telegram.updates import RESTART, WEBHOOK_SET, GetUpdatesConflict, Webhook
from belino.testing.telegram.world import TelegramWorld, units

DOWNLOAD_BYTES = 20 * 1024 * 1024
POLL_SECONDS = 50
MOST_COMMANDS, COMMAND_CHARS = 100, 256
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_SECRET = re.compile(r"[A-Za-z0-9_-]*")
_ACTIONS = frozenset(
    [
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    ]
)
# The emoji that bots may react with: https://core.telegram.org/bots/api#reactiontypeemoji
REACTIONS = frozenset(
    {
        "👍", "👎", "❤", "🔥", "🥰", "👏", "😁", "🤔", "🤯", "😱", "🤬", "😢", "🎉", "🤩", "🤮", "💩",
        "🙏", "👌", "🕊", "🤡", "🥱", "🥴", "😍", "🐳", "❤‍🔥", "🌚", "🌭", "💯", "🤣", "⚡", "🍌",
        "🏆", "💔", "🤨", "😐", "🍓", "🍾", "💋", "🖕", "😈", "😴", "😭", "🤓", "👻", "👨‍💻", "👀",
        "🎃", "🙈", "😇", "😨", "🤝", "✍", "🤗", "🫡", "🎅", "🎄", "☃", "💅", "🤪", "🗿", "🆒", "💘",
        "🙉", "🦄", "😘", "💊", "🙊", "😎", "👾", "🤷‍♂", "🤷", "🤷‍♀", "😡",
    }
)  # fmt: skip
PRESS_ANSWER_CHARS = 200
CALLBACK_BYTES = 64
DELETE_SECONDS = 48 * 3600
TEXT_CHARS = 4096
CAPTION_CHARS = 1024
UPLOAD_BYTES = 50 * 1024 * 1024
LOCAL_UPLOAD_BYTES = 2000 * 1024 * 1024
ALBUM = range(2, 11)
ALBUM_FORMS = ("photo", "video", "audio", "document")
# Album rules: photos and videos may be mixed, these two types only with their own.
UNMIXED = ("audio", "document")
FORMS = {
    "sendphoto": "photo",
    "sendvideo": "video",
    "sendanimation": "animation",
    "sendaudio": "audio",
    "sendvoice": "voice",
    "sendvideonote": "video_note",
    "senddocument": "document",
    "sendsticker": "sticker",
}
UNCHANGED = (
    "Bad Request: message is not modified: specified new message content and reply markup are exactly "
    "the same as a current content and reply markup of the message"
)


class TelegramCalls:
    """Every method, by its name in lower case."""

    def __init__(
        self,
        world: TelegramWorld,
        clock: Clock,
        *,
        pace: TelegramPace,
        big_files: bool,
        local_folder: Path | None = None,
    ) -> None:
        """`local_folder` is the bot's own folder on the disk of a server with --local."""
        self.world = world
        self._local_folder = local_folder
        self._clock = clock
        self._big_files = big_files
        self._sends = TelegramSends(world, clock, pace=pace, big_files=big_files)
        self._methods: dict[str, Callable[[TelegramCall], Awaitable[Any]]] = {
            "getme": self._get_me,
            "getupdates": self._get_updates,
            "setwebhook": self._set_webhook,
            "deletewebhook": self._delete_webhook,
            "getwebhookinfo": self._webhook_info,
            "getfile": self._get_file,
            "getmycommands": self._get_commands,
            "setmycommands": self._set_commands,
            "getchat": self._get_chat,
            "sendmessage": self._sends.message,
            "sendrichmessage": self._sends.rich,
            "sendmessagedraft": self._sends.draft,
            "sendchataction": self._send_action,
            "editmessagetext": self._sends.edit,
            "deletemessage": self._delete_message,
            "setmessagereaction": self._set_reaction,
            "answercallbackquery": self._answer_press,
            "sendmediagroup": self._sends.album,
            **dict.fromkeys(FORMS, self._sends.media),
        }

    async def answer(self, call: TelegramCall) -> Any:
        """The call's result."""
        method = self._methods.get(call.method.lower())
        if method is None or call.method.lower() in self.world.unknown_methods:
            raise TelegramRefusal(404, "Not Found: method not found")
        return await method(call)

    async def _get_me(self, call: TelegramCall) -> Json:
        return {
            **self.world.bot,
            "can_join_groups": True,
            "can_read_all_group_messages": self.world.hears_all,
            "supports_inline_queries": False,
            "can_connect_to_business": True,
            "has_main_web_app": False,
        }

    async def _get_updates(self, call: TelegramCall) -> list[Json]:
        self._allow(call)
        timeout = min(max(call.whole("timeout", 0), 0), POLL_SECONDS)
        try:
            return await self.world.updates.poll(
                offset=call.whole("offset", 0), limit=min(max(call.whole("limit", 100), 1), 100), timeout=timeout
            )
        except GetUpdatesConflict as error:
            raise TelegramRefusal(500 if str(error) == RESTART else 409, str(error)) from None

    def _allow(self, call: TelegramCall) -> None:
        kinds = call.value("allowed_updates")
        if isinstance(kinds, list):
            self.world.updates.allow([str(kind) for kind in kinds])

    async def _set_webhook(self, call: TelegramCall) -> bool:
        url, secret = call.text("url"), call.text("secret_token")
        parts = urlsplit(url)
        # Telegram accepts https only; a local server (--local) accepts http too, and we are on loopback.
        if url and (parts.scheme not in ("https", "http") or not parts.hostname):
            raise TelegramRefusal(400, "Bad Request: invalid webhook URL specified")
        if url and parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise TelegramRefusal(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        if len(secret) > 256:
            raise TelegramRefusal(400, "Bad Request: secret token is too long")
        if not _SECRET.fullmatch(secret):
            raise TelegramRefusal(400, "Bad Request: secret token contains unallowed characters")
        self._allow(call)
        if url:
            self.world.updates.interrupt(WEBHOOK_SET)
        return self._webhook(
            call, Webhook(url=url, secret_token=secret, max_connections=call.whole("max_connections", 40))
        )

    async def _get_commands(self, call: TelegramCall) -> list[Json]:
        return [dict(command) for command in self.world.commands]

    async def _set_commands(self, call: TelegramCall) -> bool:
        wanted = call.fields.get("commands")
        if not isinstance(wanted, list) or len(wanted) > MOST_COMMANDS:
            raise TelegramRefusal(400, "Bad Request: BOT_COMMANDS_TOO_MUCH")
        for command in wanted:
            if not _COMMAND.fullmatch(str(command.get("command", "")).removeprefix("/")):
                raise TelegramRefusal(400, "Bad Request: BOT_COMMAND_INVALID")
            if not 1 <= len(str(command.get("description", ""))) <= COMMAND_CHARS:
                raise TelegramRefusal(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        self.world.commands = [dict(command) for command in wanted]
        return True

    async def _delete_webhook(self, call: TelegramCall) -> bool:
        return self._webhook(call, Webhook())

    def _webhook(self, call: TelegramCall, webhook: Webhook) -> bool:
        if call.flag("drop_pending_updates"):
            self.world.updates.drop()
        self.world.updates.webhook = webhook
        return True

    async def _webhook_info(self, call: TelegramCall) -> Json:
        updates, hook = self.world.updates, self.world.updates.webhook
        told: Json = {"url": hook.url, "has_custom_certificate": False, "pending_update_count": len(updates.pending)}
        if hook.last_error is not None:
            told |= {"last_error_date": hook.last_error[0], "last_error_message": hook.last_error[1]}
        if hook.url:
            told["max_connections"] = hook.max_connections
        if updates.allowed is not None:
            told["allowed_updates"] = sorted(updates.allowed)
        return told

    async def _get_file(self, call: TelegramCall) -> Json:
        file_id = call.text("file_id")
        if not file_id:
            raise TelegramRefusal(400, "Bad Request: file_id not specified")
        stored = self.world.files.by_id.get(file_id)
        if stored is None:
            raise TelegramRefusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if stored.size > DOWNLOAD_BYTES and not self._big_files:
            raise TelegramRefusal(400, "Bad Request: file is too big")
        stored.opened_at = self._clock.monotonic()
        path = stored.path
        if self._local_folder is not None:
            local = self._local_folder / path
            local.parent.mkdir(parents=True, exist_ok=True)
            content = stored.upload.content
            local.write_bytes(content if isinstance(content, bytes) else content())
            path = str(local)
        return {
            "file_id": stored.file_id,
            "file_unique_id": stored.unique_id,
            "file_size": stored.size,
            "file_path": path,
        }

    async def _get_chat(self, call: TelegramCall) -> Json:
        return self._sends.chat(call)

    async def _send_action(self, call: TelegramCall) -> bool:
        self._sends.chat(call)
        if call.text("action") not in _ACTIONS:
            raise TelegramRefusal(400, "Bad Request: wrong parameter action in request")
        return True

    async def _delete_message(self, call: TelegramCall) -> bool:
        chat = self._sends.chat(call)
        place = chat["id"], call.whole("message_id", 0)
        message = self.world.messages.get(place)
        if message is None:
            raise TelegramRefusal(400, "Bad Request: message to delete not found")
        own = message.get("from", {}).get("id") == self.world.bot["id"]
        old = self._clock.now().timestamp() - message["date"] > DELETE_SECONDS
        if old or not (own or chat["type"] == "private"):
            raise TelegramRefusal(400, "Bad Request: message can't be deleted")
        del self.world.messages[place]
        self.world.deleted.append(message["message_id"])
        return True

    async def _answer_press(self, call: TelegramCall) -> bool:
        own, text = call.text("callback_query_id"), call.text("text")
        if own not in self.world.presses or own in self.world.press_answers:
            raise TelegramRefusal(
                400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
            )
        if len(text) > PRESS_ANSWER_CHARS:
            raise TelegramRefusal(400, "Bad Request: MESSAGE_TOO_LONG")
        self.world.press_answers[own] = text
        return True

    async def _set_reaction(self, call: TelegramCall) -> bool:
        """Set the bot's reactions, of which it has one to a message; no update reports those of bots."""
        chat = self._sends.chat(call)
        place = chat["id"], call.whole("message_id", 0)
        wanted = call.value("reaction") or []
        if not isinstance(wanted, list) or not all(isinstance(one, dict) for one in wanted):
            raise TelegramRefusal(400, "Bad Request: can't parse reaction types JSON object")
        if place not in self.world.messages:
            raise TelegramRefusal(400, "Bad Request: message to react not found")
        if len(wanted) > 1:
            raise TelegramRefusal(400, "Bad Request: REACTIONS_TOO_MANY")
        chosen = [str(one.get("emoji", "")) for one in wanted]
        if any(one.get("type") != "emoji" for one in wanted) or not set(chosen) <= REACTIONS:
            raise TelegramRefusal(400, "Bad Request: REACTION_INVALID")
        self.world.reacted[place] = chosen
        return True


class TelegramSends:
    """The methods with a visible result."""

    def __init__(self, world: TelegramWorld, clock: Clock, *, pace: TelegramPace, big_files: bool) -> None:
        self._world = world
        self._clock = clock
        self._limiter = TelegramLimiter(clock, pace)
        self._most = LOCAL_UPLOAD_BYTES if big_files else UPLOAD_BYTES

    def chat(self, call: TelegramCall) -> Json:
        """The chat a call names."""
        named = call.text("chat_id")
        if not named:
            raise TelegramRefusal(400, "Bad Request: chat_id is empty")
        chats = self._world.chats.values()
        chat = next((c for c in chats if str(c["id"]) == named or (named == f"@{c.get('username')}")), None)
        if chat is None:
            raise TelegramRefusal(400, "Bad Request: chat not found")
        if (new := self._world.migrated.get(chat["id"])) is not None:
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            raise TelegramRefusal(400, text, migrate_to_chat_id=new)
        if (why := self._world.closed.get(chat["id"])) is not None:
            raise TelegramRefusal(403, why)
        return chat

    async def message(self, call: TelegramCall) -> Json:
        """sendMessage."""
        chat = self.chat(call)
        text = _message_text(call)
        where = self._where(call, chat) | _keyboard(call)
        if (previews := call.value("link_preview_options")) is not None:
            where = where | {"link_preview_options": previews}
        self._limiter.keep(chat)
        return self._sent(chat, text, where)

    async def rich(self, call: TelegramCall) -> Json:
        """sendRichMessage."""
        chat = self.chat(call)
        message = rich_message(call.value("rich_message"))
        where = self._where(call, chat) | _keyboard(call)
        self._limiter.keep(chat)
        return self._sent(chat, None, where | {"rich_message": message})

    async def draft(self, call: TelegramCall) -> bool:
        """sendMessageDraft: a preview in a private chat, which is gone after half a minute or with the next message."""
        chat = self.chat(call)
        if chat["type"] != "private":
            raise TelegramRefusal(400, "Bad Request: chat type is not supported")
        if not call.whole("draft_id", 0):
            raise TelegramRefusal(400, "Bad Request: draft_id must be non-zero")
        text = _message_text(call) if call.text("text") else ""
        self._limiter.keep(chat)
        self._world.drafts.append((call.whole("draft_id", 0), text))
        return True

    async def media(self, call: TelegramCall) -> Json:
        """sendPhoto and similar methods."""
        form = FORMS[call.method.lower()]
        chat = self.chat(call)
        fields = self._item(call, chat, form, call.files.get(form), call.text(form), call.fields)
        where = self._where(call, chat)
        self._limiter.keep(chat)
        return self._sent(chat, None, where | fields)

    async def album(self, call: TelegramCall) -> list[Json]:
        """sendMediaGroup."""
        chat = self.chat(call)
        items = call.value("media")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise TelegramRefusal(400, "Bad Request: can't parse media JSON object")
        if len(items) not in ALBUM:
            raise TelegramRefusal(400, "Bad Request: an album must have 2 to 10 items")
        forms = {str(item.get("type")) for item in items}
        for form in sorted(forms):
            if form not in ALBUM_FORMS:
                raise TelegramRefusal(400, f'Bad Request: media type "{form}" can\'t be used in an album')
            if form in UNMIXED and len(forms) > 1:
                raise TelegramRefusal(400, f"Bad Request: {form.title()} can't be mixed with other media types")
        made = [self._album_item(call, chat, item, number) for number, item in enumerate(items, 1)]
        where = self._where(call, chat)
        self._limiter.keep(chat, len(made))
        group = str(13_000_000_000_000_000 + len(self._world.sent))
        return [self._sent(chat, None, where | fields | {"album": group}) for fields in made]

    async def edit(self, call: TelegramCall) -> Json:
        """editMessageText."""
        chat = self.chat(call)
        message = self._world.messages.get((chat["id"], call.whole("message_id", 0)))
        if message is None:
            raise TelegramRefusal(400, "Bad Request: message to edit not found")
        if message.get("from", {}).get("id") != self._world.bot["id"]:
            raise TelegramRefusal(400, "Bad Request: message can't be edited")
        if "text" not in message and "rich_message" not in message:
            raise TelegramRefusal(400, "Bad Request: there is no text in the message to edit")
        new, keyboard = self._new_content(call), _keyboard(call)
        is_same = all(message.get(name) == value for name, value in new.items())
        if is_same and keyboard.get("reply_markup") == message.get("reply_markup"):
            raise TelegramRefusal(400, UNCHANGED)
        self._limiter.keep(chat)
        for name in ("text", "rich_message", "reply_markup"):
            message.pop(name, None)
        text = str(new.get("text") or new["rich_message"]["blocks"][0]["text"])
        message |= {**new, **keyboard, "edit_date": int(self._clock.now().timestamp())}
        self._world.edited.append((message["message_id"], text))
        return message

    def _new_content(self, call: TelegramCall) -> Json:
        """The text or rich message of an edit; a server that is older than rich messages ignores them."""
        if call.fields.get("rich_message") is not None and "sendrichmessage" not in self._world.unknown_methods:
            return {"rich_message": rich_message(call.value("rich_message"))}
        return {"text": _message_text(call)}

    def _album_item(self, call: TelegramCall, chat: Json, item: Json, number: int) -> Json:
        named = str(item.get("media", ""))
        upload = call.files.get(named.removeprefix("attach://")) if named.startswith("attach://") else None
        try:
            return self._item(call, chat, str(item["type"]), upload, named, item)
        except TelegramRefusal as error:
            why = str(error).removeprefix("Bad Request: ")
            text = f'Bad Request: failed to send message #{number} with the error message "{why}"'
            raise TelegramRefusal(error.code, text) from None

    def _item(
        self,
        call: TelegramCall,
        chat: Json,
        form: str,
        upload: FakeUpload | None,
        named: str,
        fields: Mapping[str, Any],
    ) -> Json:
        """A file with its caption, as the fields of the message it becomes."""
        if upload is None:
            if not named:
                raise TelegramRefusal(400, f"Bad Request: there is no {form} in the request")
            stored = self._world.files.by_id.get(named)
            if stored is None:
                raise TelegramRefusal(400, "Bad Request: wrong file identifier/HTTP URL specified")
            upload = stored.upload
        self._check(chat, form, upload)
        caption = shown(str(fields.get("caption") or ""), str(fields.get("parse_mode") or ""))
        if units(caption) > CAPTION_CHARS:
            raise TelegramRefusal(400, "Bad Request: message caption is too long")
        detect = str(fields.get("disable_content_type_detection", "")).lower() not in ("true", "1")
        self._world.received.append(upload)
        told: Json = {n: int(fields[n]) for n in ("width", "height", "duration") if str(fields.get(n)).isdigit()}
        made: Json = {kept_form(form, upload, detect=detect): replace(upload, **told)}
        return made | ({"caption": caption} if caption else {})

    def _check(self, chat: Json, form: str, upload: FakeUpload) -> None:
        if not upload.announced:
            raise TelegramRefusal(400, "Bad Request: file must be non-empty")
        if upload.announced > self._most:
            raise TelegramRefusal(413, "Request Entity Too Large")
        if form == "photo":
            refuse_photo(upload)
        if form in ("voice", "video_note") and chat["id"] in self._world.no_voice:
            raise TelegramRefusal(400, "Bad Request: VOICE_MESSAGES_FORBIDDEN")

    def _where(self, call: TelegramCall, chat: Json) -> Json:
        """The reply and the topic, as fields of the sent message."""
        fields: Json = {}
        reply = call.value("reply_parameters") or {}
        number = reply.get("message_id") or call.whole("reply_to_message_id", 0)
        if number:
            answered = self._world.messages.get((chat["id"], int(number)))
            if answered is None and not (reply.get("allow_sending_without_reply")):
                raise TelegramRefusal(400, "Bad Request: message to be replied not found")
            if answered is not None:
                fields["reply_to"] = answered
        topic = call.whole("message_thread_id", 0)
        if topic:
            messages = self._world.messages.items()
            if not any(m.get("message_thread_id") == topic for (c, _), m in messages if c == chat["id"]):
                raise TelegramRefusal(400, "Bad Request: message thread not found")
            fields["topic"] = topic
        return fields

    def _sent(self, chat: Json, text: str | None, fields: Mapping[str, Any]) -> Json:
        message = self._world.compose(chat, self._world.bot, text, **fields)
        self._world.sent.append(message)
        return message


def _keyboard(call: TelegramCall) -> Json:
    """The inline keyboard of a message: https://core.telegram.org/bots/api#inlinekeyboardbutton."""
    markup = call.value("reply_markup")
    if not markup:
        return {}
    rows = markup.get("inline_keyboard") if isinstance(markup, dict) else None
    if not isinstance(rows, list):
        raise TelegramRefusal(400, "Bad Request: object expected as reply markup")
    for button in [button for row in rows for button in row]:
        if not str(button.get("text", "")).strip():
            raise TelegramRefusal(400, "Bad Request: Text buttons are unallowed in the inline keyboard")
        if not 1 <= len(str(button.get("callback_data", "")).encode()) <= CALLBACK_BYTES:
            raise TelegramRefusal(400, "Bad Request: BUTTON_DATA_INVALID")
    return {"reply_markup": markup}


def _message_text(call: TelegramCall) -> str:
    text = shown(call.text("text"), call.text("parse_mode"))
    if not text.strip():
        raise TelegramRefusal(400, "Bad Request: message text is empty")
    if units(text) > TEXT_CHARS:
        raise TelegramRefusal(400, "Bad Request: message is too long")
    return text
