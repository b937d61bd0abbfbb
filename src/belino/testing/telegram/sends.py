"""What a bot makes visible: messages, files, albums and changes, with the checks Telegram documents."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from belino.domain.ports import Clock
from belino.testing.file_server import FakeUpload
from belino.testing.telegram.markup import shown
from belino.testing.telegram.pace import TelegramLimiter, TelegramPace
from belino.testing.telegram.request import TelegramCall, TelegramRefusal
from belino.testing.telegram.shapes import Json, units
from belino.testing.telegram.stored import kept_form, refuse_photo
from belino.testing.telegram.world import TelegramWorld

TEXT_CHARS = 4096
CAPTION_CHARS = 1024
UPLOAD_BYTES = 50 * 1024 * 1024
LOCAL_UPLOAD_BYTES = 2000 * 1024 * 1024
ALBUM = range(2, 11)
ALBUM_FORMS = ("photo", "video", "audio", "document")
# What may stand beside what: Telegram groups photos with videos, and these two only with their like.
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


class TelegramSends:
    """The methods that people see something of."""

    def __init__(self, world: TelegramWorld, clock: Clock, *, pace: TelegramPace, big_files: bool) -> None:
        self._world = world
        self._clock = clock
        self._gate = TelegramLimiter(clock, pace)
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
        where = self._where(call, chat)
        self._gate.keep(chat)
        return self._sent(chat, text, where)

    async def media(self, call: TelegramCall) -> Json:
        """sendPhoto and its like."""
        form = FORMS[call.method.lower()]
        chat = self.chat(call)
        fields = self._item(call, chat, form, call.files.get(form), call.text(form), call.fields)
        where = self._where(call, chat)
        self._gate.keep(chat)
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
        self._gate.keep(chat, len(made))
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
        if "text" not in message:
            raise TelegramRefusal(400, "Bad Request: there is no text in the message to edit")
        text = _message_text(call)
        if text == message["text"]:
            raise TelegramRefusal(400, UNCHANGED)
        self._gate.keep(chat)
        message |= {"text": text, "edit_date": int(self._clock.now().timestamp())}
        self._world.edited.append((message["message_id"], text))
        return message

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
        """The message that is answered and the topic, as fields of what is sent."""
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


def _message_text(call: TelegramCall) -> str:
    text = shown(call.text("text"), call.text("parse_mode"))
    if not text.strip():
        raise TelegramRefusal(400, "Bad Request: message text is empty")
    if units(text) > TEXT_CHARS:
        raise TelegramRefusal(400, "Bad Request: message is too long")
    return text
