"""Calls of the Cloud API and their documented rules: messages, uploads, media, the number itself."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from belino.domain.ports import Clock
from belino.testing.file_server import FakeUpload
from belino.testing.platform_server import SlidingWindow
from belino.testing.whatsapp.shapes import (
    CAPTION_CHARS,
    MOVING_STICKER_BYTES,
    NAME,
    NUMBER,
    SIZES,
    STICKER_BYTES,
    TEXT_CHARS,
    TYPES,
    Json,
    refusal_shape,
)
from belino.testing.whatsapp.world import UPLOAD_SECONDS, CloudFile, WhatsAppWorld

LINK_SECONDS = 300.0
FILE_PATH = "/whatsapp_business/attachments/"
_CAPTIONED = frozenset({"image", "video", "document"})


class CloudRefusal(Exception):
    """An error answer of Meta."""

    def __init__(self, code: int, details: str = "", *, status: int = 400, subcode: int = 0) -> None:
        super().__init__(details)
        self.code = code
        self.status = status
        self.body = refusal_shape(code, details, subcode=subcode)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudPace:
    """Limits: a burst to one person and then one message in six seconds, and messages a second in all."""

    pair_burst: int = 45
    pair_seconds: float = 6.0
    per_second: int = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudCall:
    """One call: its name in the documentation, and its fields."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class CloudCalls:
    """Answers the calls of one phone number."""

    def __init__(self, world: WhatsAppWorld, clock: Clock, pace: CloudPace) -> None:
        self._world = world
        self._clock = clock
        self._pace = pace
        self._messages = SlidingWindow(clock)
        self._links: dict[str, tuple[str, float]] = {}

    def number(self) -> Json:
        """The phone number's own fields."""
        url = self._world.hook.url
        told: Json = {"id": self._world.number_id, "verified_name": NAME, "display_phone_number": f"+{NUMBER}"}
        told |= {"quality_rating": "GREEN", "status": "CONNECTED", "name_status": "APPROVED"}
        return told | ({"webhook_configuration": {"phone_number": url}} if url else {})

    async def configure(self, fields: Mapping[str, Any]) -> Json:
        """Set the number's own callback, once it has answered the handshake."""
        wanted = fields.get("webhook_configuration") or {}
        url, token = str(wanted.get("override_callback_uri", "")), str(wanted.get("verify_token", ""))
        if not url or not token or not await self._world.hook.verify(url, token):
            raise CloudRefusal(2200, "the callback did not repeat the challenge")
        return {"success": True}

    def message(self, fields: Mapping[str, Any]) -> Json:
        """Send a message: what is wrong with the call is refused at once, what happens later is a status."""
        if fields.get("messaging_product") != "whatsapp":
            raise CloudRefusal(100, "The parameter messaging_product is required.")
        if fields.get("status") == "read":
            return self._read(fields)
        channel, kind = self._channel(fields), str(fields.get("type") or "text")
        self._keep_pace(channel)
        content = fields.get(kind)
        if not isinstance(content, Mapping):
            raise CloudRefusal(131008, f"The parameter {kind} is required.")
        if kind == "reaction":
            return self._react(channel, content)
        text, file = self._checked(kind, content)
        return self._shown(channel, kind, text, file, dict(fields))

    def upload(self, fields: Mapping[str, Any], files: Mapping[str, FakeUpload]) -> Json:
        """Keep a file for thirty days."""
        upload = files.get("file")
        if fields.get("messaging_product") != "whatsapp" or upload is None:
            raise CloudRefusal(100, "The parameter file is required.")
        mime = (upload.mime or "").partition(";")[0]
        kind = next((kind for kind, mimes in TYPES.items() if mime in mimes), "")
        if not kind:
            known = ", ".join(sorted(each for mimes in TYPES.values() for each in mimes))
            raise CloudRefusal(100, f"Param file must be a file with one of the following types: {known}.")
        if upload.announced > (MOVING_STICKER_BYTES if kind == "sticker" else SIZES[kind]):
            raise CloudRefusal(131053, f"a file of {upload.announced} bytes is too large for {kind}")
        return {"id": self._world.keep(upload, seconds=UPLOAD_SECONDS).hosted.file_id}

    def media(self, media_id: str, number_id: str, files_url: str) -> Json:
        """A fresh URL of a file, valid for five minutes."""
        file = self._world.files.get(media_id)
        own = number_id in ("", self._world.number_id)
        if file is None or not own or self._clock.monotonic() >= file.until:
            details = f"Object with ID '{media_id}' does not exist"
            raise CloudRefusal(100, details, subcode=33)
        ticket = hashlib.sha256(f"{media_id} {len(self._links)}".encode()).hexdigest()[:24]
        self._links[ticket] = media_id, self._clock.monotonic() + LINK_SECONDS
        return {
            "messaging_product": "whatsapp",
            "url": f"{files_url}{FILE_PATH}?mid={media_id}&ext=1&hash={ticket}",
            "mime_type": file.mime,
            "sha256": file.sha256,
            "file_size": file.hosted.size,
            "id": media_id,
        }

    def linked(self, media_id: str, ticket: str) -> CloudFile | None:
        """The file behind a URL; None once it has expired."""
        known, until = self._links.get(ticket, ("", 0.0))
        return self._world.files.get(media_id) if known == media_id and self._clock.monotonic() < until else None

    def _read(self, fields: Mapping[str, Any]) -> Json:
        message = self._world.said.get(str(fields.get("message_id")))
        if message is None or "group_id" in message:
            raise CloudRefusal(131009, "The message id is unknown.")
        self._world.read.append((message["id"], "typing_indicator" in fields))
        return {"success": True}

    def _channel(self, fields: Mapping[str, Any]) -> str:
        channel = str(fields.get("to") or fields.get("recipient") or "")
        if not channel:
            raise CloudRefusal(131008, "The parameter to is required.")
        if (channel in self._world.groups) != (fields.get("recipient_type") == "group"):
            raise CloudRefusal(131009, "The recipient_type does not fit the recipient.")
        if channel == NUMBER:
            raise CloudRefusal(131021)
        return channel

    def _keep_pace(self, channel: str) -> None:
        pace = self._pace
        if self._messages.wait(None, pace.per_second, 1.0) > 0:
            raise CloudRefusal(130429, "Cloud API message throughput has been reached.")
        if self._messages.wait(channel, pace.pair_burst, pace.pair_burst * pace.pair_seconds) > 0:
            raise CloudRefusal(131056, "Too many messages sent to the same phone number.")
        for key in (channel, None):
            self._messages.add(key)

    def _react(self, channel: str, reaction: Mapping[str, Any]) -> Json:
        emoji, target = str(reaction.get("emoji", "")), str(reaction.get("message_id"))
        if (emoji and emoji.isascii()) or target not in self._world.said:
            raise CloudRefusal(131009, "The reaction is no emoji, or its message is unknown.")
        if emoji:
            self._world.reactions[target] = emoji
        else:
            self._world.reactions.pop(target, None)
        return self._answer(channel, self._world.next_id())

    def _checked(self, kind: str, content: Mapping[str, Any]) -> tuple[str, CloudFile | None]:
        """The text that people see, and the file; CloudRefusal for what Meta does not take."""
        if kind == "text":
            text = str(content.get("body") or "")
            if not 0 < len(text) <= TEXT_CHARS:
                raise CloudRefusal(100, f"Param text['body'] must be at most {TEXT_CHARS} characters long.")
            return text, None
        if kind == "template":
            return self._template(content), None
        if kind not in TYPES:
            raise CloudRefusal(100, f"The type {kind} is unknown.")
        file, caption = self._world.files.get(str(content.get("id"))), str(content.get("caption") or "")
        if file is None or self._clock.monotonic() >= file.until:
            raise CloudRefusal(131009, "The media id is unknown.")
        if caption and (kind not in _CAPTIONED or len(caption) > CAPTION_CHARS):
            raise CloudRefusal(131009, "The caption is not allowed here, or too long.")
        return caption, file

    def _template(self, template: Mapping[str, Any]) -> str:
        name = str(template.get("name"))
        if name not in self._world.templates or not (template.get("language") or {}).get("code"):
            raise CloudRefusal(132001, f"template name ({name}) does not exist", status=404)
        parts = [each.get("parameters", []) for each in template.get("components", []) if each.get("type") == "body"]
        texts = [str(parameter.get("text")) for part in parts for parameter in part]
        if len(texts) != self._world.templates[name]:
            raise CloudRefusal(132000, "the number of parameters does not match")
        if any("\n" in text or "\t" in text or "     " in text or len(text) > 1024 for text in texts):
            raise CloudRefusal(100, "Param text cannot have new-line/tab characters or more than 4 consecutive spaces")
        return " ".join(texts)

    def _shown(self, channel: str, kind: str, text: str, file: CloudFile | None, fields: Json) -> Json:
        world, own = self._world, self._world.next_id()
        if channel not in world.people and channel not in world.groups:
            world.report(channel, own, "failed", code=131026)
        elif kind != "template" and not world.is_open(channel):
            world.report(channel, own, "failed", code=131047, details="more than 24 hours have passed")
        elif file is not None and (why := _misfit(kind, file, fields[kind])):
            world.report(channel, own, "failed", code=131053, details=why)
        else:
            sent: Json = {"channel": channel, "id": own, "type": kind, "text": text, "raw": fields}
            world.said[own] = {"id": own, "from": NUMBER}
            world.sent.append(sent)
            if file is not None:
                world.received.append(file.hosted.upload)
            for status in ("sent", "delivered") if world.reports else ():
                world.report(channel, own, status)
        return self._answer(channel, own)

    @staticmethod
    def _answer(channel: str, own: str) -> Json:
        contact = {"input": channel, "wa_id": channel}
        message = {"id": own, "message_status": "accepted"}
        return {"messaging_product": "whatsapp", "contacts": [contact], "messages": [message]}


def _misfit(kind: str, file: CloudFile, content: Mapping[str, Any]) -> str:
    """Why WhatsApp does not deliver a file in this form; empty if it does."""
    head, size = file.hosted.upload.head, file.hosted.size
    if file.mime not in TYPES[kind]:
        return f"{file.mime} is no {kind}"
    if kind == "sticker" and size > (MOVING_STICKER_BYTES if b"ANIM" in head[:64] else STICKER_BYTES):
        return "the sticker is too large"
    if kind != "sticker" and size > SIZES[kind]:
        return f"the {kind} is too large"
    if (content.get("voice") or file.mime == "audio/ogg") and b"OpusHead" not in head[:512]:
        return "only Opus is supported"
    return ""
