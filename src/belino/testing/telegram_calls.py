"""The methods of the Bot API that a bot may call, with the checks and the error texts Telegram answers with."""

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

from belino.domain.ports import Clock
from belino.testing.telegram_shapes import Json, Upload, units
from belino.testing.telegram_town import Town
from belino.testing.telegram_updates import RESTART, WEBHOOK_SET, Conflict, Webhook

TEXT_CHARS = 4096
CAPTION_CHARS = 1024
DOWNLOAD_BYTES = 20 * 1024 * 1024
UPLOAD_BYTES = 50 * 1024 * 1024
PHOTO_BYTES = 10 * 1024 * 1024
POLL_SECONDS = 50
SENDS = {
    "sendphoto": "photo",
    "sendvideo": "video",
    "sendanimation": "animation",
    "sendaudio": "audio",
    "sendvoice": "voice",
    "sendvideonote": "video_note",
    "senddocument": "document",
    "sendsticker": "sticker",
}
_TAGS = frozenset(
    {"a", "b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "span", "code", "pre", "blockquote"}
    | {"tg-spoiler", "tg-emoji"}
)
_SECRET = re.compile(r"[A-Za-z0-9_-]*")


class CallError(Exception):
    """What Telegram answers instead of a result."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.parameters = parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How much a bot may send: a chat takes a short burst and then one a second, a group twenty a minute."""

    chat_burst: int = 5
    chat_per_second: float = 1.0
    group_per_minute: int = 20
    all_per_second: int = 30


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of a method: its fields as strings or JSON values, and the files that came with it."""

    method: str
    fields: Mapping[str, Any]
    files: Mapping[str, Upload] = field(default_factory=dict)

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        return "" if value is None else str(value)

    def whole(self, name: str, default: int) -> int:
        """A number that may come as text; one that is none counts as not given, as with Telegram."""
        try:
            return int(str(self.fields.get(name, default)))
        except ValueError:
            return default

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "yes", "1")

    def value(self, name: str) -> Any:
        """A field that holds JSON, which a form sends as text."""
        raw = self.fields.get(name)
        if not isinstance(raw, str):
            return raw
        try:
            return json.loads(raw)
        except ValueError:
            raise CallError(400, f"Bad Request: can't parse {name} JSON object") from None


class Calls:
    """Every method, by its name in lower case."""

    def __init__(self, town: Town, clock: Clock, *, pace: Pace, big_files: bool) -> None:
        self.town = town
        self._clock = clock
        self._pace = pace
        self._big_files = big_files
        self._sends: dict[int | None, list[float]] = {}
        self._methods: dict[str, Callable[[Call], Awaitable[Any]]] = {
            "getme": self._get_me,
            "getupdates": self._get_updates,
            "setwebhook": self._set_webhook,
            "deletewebhook": self._delete_webhook,
            "getwebhookinfo": self._webhook_info,
            "getfile": self._get_file,
            "getchat": self._get_chat,
            "sendmessage": self._send_message,
            "sendchataction": self._send_action,
            "editmessagetext": self._edit_text,
            "deletemessage": self._delete_message,
            **dict.fromkeys(SENDS, self._send_media),
        }

    async def answer(self, call: Call) -> Any:
        """The call's result."""
        method = self._methods.get(call.method.lower())
        if method is None:
            raise CallError(404, "Not Found: method not found")
        return await method(call)

    async def _get_me(self, call: Call) -> Json:
        return {
            **self.town.bot,
            "can_join_groups": True,
            "can_read_all_group_messages": self.town.hears_all,
            "supports_inline_queries": False,
            "can_connect_to_business": True,
            "has_main_web_app": False,
        }

    async def _get_updates(self, call: Call) -> list[Json]:
        self._allow(call)
        timeout = min(max(call.whole("timeout", 0), 0), POLL_SECONDS)
        try:
            return await self.town.updates.poll(
                offset=call.whole("offset", 0), limit=min(max(call.whole("limit", 100), 1), 100), timeout=timeout
            )
        except Conflict as error:
            raise CallError(500 if str(error) == RESTART else 409, str(error)) from None

    def _allow(self, call: Call) -> None:
        kinds = call.value("allowed_updates")
        if isinstance(kinds, list):
            self.town.updates.allow([str(kind) for kind in kinds])

    async def _set_webhook(self, call: Call) -> bool:
        url, secret = call.text("url"), call.text("secret_token")
        parts = urlsplit(url)
        # Telegram takes https only; its server for one's own machine (--local) takes http too, and we are on loopback.
        if url and (parts.scheme not in ("https", "http") or not parts.hostname):
            raise CallError(400, "Bad Request: invalid webhook URL specified")
        if url and parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise CallError(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        if len(secret) > 256:
            raise CallError(400, "Bad Request: secret token is too long")
        if not _SECRET.fullmatch(secret):
            raise CallError(400, "Bad Request: secret token contains unallowed characters")
        self._allow(call)
        if url:
            self.town.updates.interrupt(WEBHOOK_SET)
        return self._webhook(
            call, Webhook(url=url, secret_token=secret, max_connections=call.whole("max_connections", 40))
        )

    async def _delete_webhook(self, call: Call) -> bool:
        return self._webhook(call, Webhook())

    def _webhook(self, call: Call, webhook: Webhook) -> bool:
        if call.flag("drop_pending_updates"):
            self.town.updates.drop()
        self.town.updates.webhook = webhook
        return True

    async def _webhook_info(self, call: Call) -> Json:
        updates, hook = self.town.updates, self.town.updates.webhook
        told: Json = {"url": hook.url, "has_custom_certificate": False, "pending_update_count": len(updates.pending)}
        if hook.last_error is not None:
            told |= {"last_error_date": hook.last_error[0], "last_error_message": hook.last_error[1]}
        if hook.url:
            told["max_connections"] = hook.max_connections
        if updates.allowed is not None:
            told["allowed_updates"] = sorted(updates.allowed)
        return told

    async def _get_file(self, call: Call) -> Json:
        file_id = call.text("file_id")
        if not file_id:
            raise CallError(400, "Bad Request: file_id not specified")
        stored = self.town.shelf.by_id.get(file_id)
        if stored is None:
            raise CallError(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if stored.size > DOWNLOAD_BYTES and not self._big_files:
            raise CallError(400, "Bad Request: file is too big")
        stored.opened_at = self._clock.monotonic()
        return {
            "file_id": stored.file_id,
            "file_unique_id": stored.unique_id,
            "file_size": stored.size,
            "file_path": stored.path,
        }

    async def _get_chat(self, call: Call) -> Json:
        return self._chat(call)

    async def _send_message(self, call: Call) -> Json:
        chat = self._chat(call)
        text = call.text("text")
        shown = _parsed(text, call.text("parse_mode"))
        if not shown.strip():
            raise CallError(400, "Bad Request: message text is empty")
        if units(shown) > TEXT_CHARS:
            raise CallError(400, "Bad Request: message is too long")
        return self._sent(call, chat, shown)

    async def _send_media(self, call: Call) -> Json:
        kind = SENDS[call.method.lower()]
        chat = self._chat(call)
        upload = call.files.get(kind)
        if upload is None and (stored := self.town.shelf.by_id.get(call.text(kind))):
            upload = stored.upload
        if upload is None:
            raise CallError(400, f"Bad Request: there is no {kind} in the request")
        if upload.announced > (PHOTO_BYTES if kind == "photo" else UPLOAD_BYTES):
            raise CallError(413, "Request Entity Too Large")
        caption = _parsed(call.text("caption"), call.text("parse_mode"))
        if units(caption) > CAPTION_CHARS:
            raise CallError(400, "Bad Request: message caption is too long")
        fields: Json = {kind: upload} | ({"caption": caption} if caption else {})
        return self._sent(call, chat, None, **fields)

    async def _send_action(self, call: Call) -> bool:
        self._chat(call)
        return True

    async def _edit_text(self, call: Call) -> Json:
        chat = self._chat(call)
        message = self.town.messages.get((chat["id"], call.whole("message_id", 0)))
        if message is None:
            raise CallError(400, "Bad Request: message to edit not found")
        if message.get("from", {}).get("id") != self.town.bot["id"]:
            raise CallError(400, "Bad Request: message can't be edited")
        text = _parsed(call.text("text"), call.text("parse_mode"))
        if text == message.get("text"):
            raise CallError(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly "
                "the same as a current content and reply markup of the message",
            )
        message |= {"text": text, "edit_date": int(self._clock.now().timestamp())}
        return message

    async def _delete_message(self, call: Call) -> bool:
        chat = self._chat(call)
        if self.town.messages.pop((chat["id"], call.whole("message_id", 0)), None) is None:
            raise CallError(400, "Bad Request: message to delete not found")
        return True

    def _chat(self, call: Call) -> Json:
        named = call.text("chat_id")
        if not named:
            raise CallError(400, "Bad Request: chat_id is empty")
        chats = self.town.chats.values()
        chat = next((c for c in chats if str(c["id"]) == named or (named == f"@{c.get('username')}")), None)
        if chat is None:
            raise CallError(400, "Bad Request: chat not found")
        if (new := self.town.migrated.get(chat["id"])) is not None:
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            raise CallError(400, text, migrate_to_chat_id=new)
        if (why := self.town.closed.get(chat["id"])) is not None:
            raise CallError(403, why)
        return chat

    def _sent(self, call: Call, chat: Json, text: str | None, /, **fields: Any) -> Json:
        reply = call.value("reply_parameters") or {}
        number = reply.get("message_id") or call.whole("reply_to_message_id", 0)
        if number:
            answered = self.town.messages.get((chat["id"], int(number)))
            if answered is None and not (reply.get("allow_sending_without_reply")):
                raise CallError(400, "Bad Request: message to be replied not found")
            if answered is not None:
                fields["reply_to"] = answered
        topic = call.whole("message_thread_id", 0)
        if topic:
            if not any(
                m.get("message_thread_id") == topic for (c, _), m in self.town.messages.items() if c == chat["id"]
            ):
                raise CallError(400, "Bad Request: message thread not found")
            fields["topic"] = topic
        self._keep_pace(chat)
        message = self.town.compose(chat, self.town.bot, text, **fields)
        self.town.sent.append(message)
        return message

    def _keep_pace(self, chat: Json) -> None:
        """Note a send, or say how long to wait for the next."""
        now, pace = self._clock.monotonic(), self._pace
        rules = [
            (chat["id"], pace.chat_burst, pace.chat_burst / pace.chat_per_second),
            (None, pace.all_per_second, 1.0),
        ]
        if chat["type"] != "private":
            rules.append((chat["id"], pace.group_per_minute, 60.0))
        waits = [self._wait(key, most, seconds, now) for key, most, seconds in rules]
        if (wait := max(waits)) > 0:
            seconds = max(1, math.ceil(wait))
            raise CallError(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
        for key in (chat["id"], None):
            self._sends.setdefault(key, []).append(now)

    def _wait(self, key: int | None, most: int, seconds: float, now: float) -> float:
        lately = [at for at in self._sends.get(key, []) if at > now - seconds]
        return lately[-most] + seconds - now if len(lately) >= most else 0.0


class _Markup(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.shown: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            raise CallError(400, f'Bad Request: can\'t parse entities: Unsupported start tag "{tag}" at byte offset 0')
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise CallError(400, f'Bad Request: can\'t parse entities: Unexpected end tag "{tag}" at byte offset 0')

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


def _parsed(text: str, mode: str) -> str:
    """The text without its markup; Telegram refuses HTML that is not well formed."""
    if mode.lower() != "html":
        return text
    markup = _Markup()
    markup.feed(text)
    markup.close()
    if markup.open:
        tag = markup.open[-1]
        raise CallError(
            400, f"Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"{tag}\""
        )
    return "".join(markup.shown)
