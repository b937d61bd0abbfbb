"""What a bot makes visible: messages, files, albums and changes, with the checks Telegram documents."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from belino.domain.ports import Clock
from belino.testing.telegram.markup import shown
from belino.testing.telegram.pace import Gate, Pace
from belino.testing.telegram.request import Call, CallError
from belino.testing.telegram.shapes import Json, Upload, units
from belino.testing.telegram.stored import kept_form, refuse_photo
from belino.testing.telegram.world import Town

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


class Sends:
    """The methods that people see something of."""

    def __init__(self, town: Town, clock: Clock, *, pace: Pace, big_files: bool) -> None:
        self._town = town
        self._clock = clock
        self._gate = Gate(clock, pace)
        self._most = LOCAL_UPLOAD_BYTES if big_files else UPLOAD_BYTES

    def chat(self, call: Call) -> Json:
        """The chat a call names."""
        named = call.text("chat_id")
        if not named:
            raise CallError(400, "Bad Request: chat_id is empty")
        chats = self._town.chats.values()
        chat = next((c for c in chats if str(c["id"]) == named or (named == f"@{c.get('username')}")), None)
        if chat is None:
            raise CallError(400, "Bad Request: chat not found")
        if (new := self._town.migrated.get(chat["id"])) is not None:
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            raise CallError(400, text, migrate_to_chat_id=new)
        if (why := self._town.closed.get(chat["id"])) is not None:
            raise CallError(403, why)
        return chat

    async def message(self, call: Call) -> Json:
        """sendMessage."""
        chat = self.chat(call)
        text = _message_text(call)
        where = self._where(call, chat)
        self._gate.keep(chat)
        return self._sent(chat, text, where)

    async def media(self, call: Call) -> Json:
        """sendPhoto and its like."""
        form = FORMS[call.method.lower()]
        chat = self.chat(call)
        fields = self._item(call, chat, form, call.files.get(form), call.text(form), call.fields)
        where = self._where(call, chat)
        self._gate.keep(chat)
        return self._sent(chat, None, where | fields)

    async def album(self, call: Call) -> list[Json]:
        """sendMediaGroup."""
        chat = self.chat(call)
        items = call.value("media")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise CallError(400, "Bad Request: can't parse media JSON object")
        if len(items) not in ALBUM:
            raise CallError(400, "Bad Request: an album must have 2 to 10 items")
        forms = {str(item.get("type")) for item in items}
        for form in sorted(forms):
            if form not in ALBUM_FORMS:
                raise CallError(400, f'Bad Request: media type "{form}" can\'t be used in an album')
            if form in UNMIXED and len(forms) > 1:
                raise CallError(400, f"Bad Request: {form.title()} can't be mixed with other media types")
        made = [self._album_item(call, chat, item, number) for number, item in enumerate(items, 1)]
        where = self._where(call, chat)
        self._gate.keep(chat, len(made))
        group = str(13_000_000_000_000_000 + len(self._town.sent))
        return [self._sent(chat, None, where | fields | {"album": group}) for fields in made]

    async def edit(self, call: Call) -> Json:
        """editMessageText."""
        chat = self.chat(call)
        message = self._town.messages.get((chat["id"], call.whole("message_id", 0)))
        if message is None:
            raise CallError(400, "Bad Request: message to edit not found")
        if message.get("from", {}).get("id") != self._town.bot["id"]:
            raise CallError(400, "Bad Request: message can't be edited")
        if "text" not in message:
            raise CallError(400, "Bad Request: there is no text in the message to edit")
        text = _message_text(call)
        if text == message["text"]:
            raise CallError(400, UNCHANGED)
        self._gate.keep(chat)
        message |= {"text": text, "edit_date": int(self._clock.now().timestamp())}
        self._town.edited.append((message["message_id"], text))
        return message

    def _album_item(self, call: Call, chat: Json, item: Json, number: int) -> Json:
        named = str(item.get("media", ""))
        upload = call.files.get(named.removeprefix("attach://")) if named.startswith("attach://") else None
        try:
            return self._item(call, chat, str(item["type"]), upload, named, item)
        except CallError as error:
            why = str(error).removeprefix("Bad Request: ")
            text = f'Bad Request: failed to send message #{number} with the error message "{why}"'
            raise CallError(error.code, text) from None

    def _item(
        self, call: Call, chat: Json, form: str, upload: Upload | None, named: str, fields: Mapping[str, Any]
    ) -> Json:
        """A file with its caption, as the fields of the message it becomes."""
        if upload is None:
            if not named:
                raise CallError(400, f"Bad Request: there is no {form} in the request")
            stored = self._town.shelf.by_id.get(named)
            if stored is None:
                raise CallError(400, "Bad Request: wrong file identifier/HTTP URL specified")
            upload = stored.upload
        self._check(chat, form, upload)
        caption = shown(str(fields.get("caption") or ""), str(fields.get("parse_mode") or ""))
        if units(caption) > CAPTION_CHARS:
            raise CallError(400, "Bad Request: message caption is too long")
        detect = str(fields.get("disable_content_type_detection", "")).lower() not in ("true", "1")
        self._town.received.append(upload)
        told: Json = {n: int(fields[n]) for n in ("width", "height", "duration") if str(fields.get(n)).isdigit()}
        made: Json = {kept_form(form, upload, detect=detect): replace(upload, **told)}
        return made | ({"caption": caption} if caption else {})

    def _check(self, chat: Json, form: str, upload: Upload) -> None:
        if not upload.announced:
            raise CallError(400, "Bad Request: file must be non-empty")
        if upload.announced > self._most:
            raise CallError(413, "Request Entity Too Large")
        if form == "photo":
            refuse_photo(upload)
        if form in ("voice", "video_note") and chat["id"] in self._town.no_voice:
            raise CallError(400, "Bad Request: VOICE_MESSAGES_FORBIDDEN")

    def _where(self, call: Call, chat: Json) -> Json:
        """The message that is answered and the topic, as fields of what is sent."""
        fields: Json = {}
        reply = call.value("reply_parameters") or {}
        number = reply.get("message_id") or call.whole("reply_to_message_id", 0)
        if number:
            answered = self._town.messages.get((chat["id"], int(number)))
            if answered is None and not (reply.get("allow_sending_without_reply")):
                raise CallError(400, "Bad Request: message to be replied not found")
            if answered is not None:
                fields["reply_to"] = answered
        topic = call.whole("message_thread_id", 0)
        if topic:
            messages = self._town.messages.items()
            if not any(m.get("message_thread_id") == topic for (c, _), m in messages if c == chat["id"]):
                raise CallError(400, "Bad Request: message thread not found")
            fields["topic"] = topic
        return fields

    def _sent(self, chat: Json, text: str | None, fields: Mapping[str, Any]) -> Json:
        message = self._town.compose(chat, self._town.bot, text, **fields)
        self._town.sent.append(message)
        return message


def _message_text(call: Call) -> str:
    text = shown(call.text("text"), call.text("parse_mode"))
    if not text.strip():
        raise CallError(400, "Bad Request: message text is empty")
    if units(text) > TEXT_CHARS:
        raise CallError(400, "Bad Request: message is too long")
    return text
