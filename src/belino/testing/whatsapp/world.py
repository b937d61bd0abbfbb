"""World of a fake WhatsApp: people and groups who write to a business number, and what it makes visible to them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from belino.domain.ports import Clock
from belino.testing.file_server import FakeUpload, HostedFile, upload_of
from belino.testing.whatsapp.events import CloudWebhook
from belino.testing.whatsapp.shapes import NUMBER, Json, envelope, error_shape, file_shape, message_id

WINDOW_SECONDS = 24 * 3600.0
INBOUND_SECONDS, UPLOAD_SECONDS = 7 * 86_400.0, 30 * 86_400.0
"""How long Meta keeps a file: of a person, of the business."""
_KINDS = {"image": "image", "video": "video", "audio": "audio"}


@dataclass(slots=True, kw_only=True)
class CloudFile:
    """A file on Meta's side."""

    hosted: HostedFile
    mime: str
    until: float
    sha256: str


class WhatsAppWorld:
    """People, groups and messages; every change that a business is told is put into its webhook."""

    def __init__(self, clock: Clock, *, number_id: str, hook: CloudWebhook) -> None:
        self.clock = clock
        self.number_id = number_id
        self.hook = hook
        self.people: dict[str, Json] = {}
        self.groups: dict[str, Json] = {}
        self.files: dict[str, CloudFile] = {}
        self.written: dict[str, float] = {}
        """When a person wrote last: the window that is open for 24 hours."""
        self.said: dict[str, Json] = {}
        """Every message, by its id."""
        self.sent: list[Json] = []
        """What the business made visible: `channel`, `id`, `type`, `text`, and the payload as `raw`."""
        self.received: list[FakeUpload] = []
        """The files in it, in order."""
        self.read: list[tuple[str, bool]] = []
        """Messages that were marked as read, and whether typing was shown with it."""
        self.reactions: dict[str, str] = {}
        """The business's reaction to each message."""
        self.templates: dict[str, int] = {}
        """Approved templates, and how many variables each has."""
        self.reports = True
        """Whether statuses of sent messages are told."""
        self._numbers = 0

    def user(self, name: str, number: str = "") -> Json:
        """A person with WhatsApp."""
        own = number or str(16505550100 + len(self.people))
        self.people[own] = {"id": own, "name": name}
        return self.people[own]

    def group(self, subject: str, *people: Json) -> Json:
        """A group that the business made and these people joined."""
        own = f"Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0{len(self.groups):06}"
        self.groups[own] = {"id": own, "subject": subject, "people": [each["id"] for each in people]}
        return self.groups[own]

    def say(self, where: Json, who: Json, text: str = "", *, files: Any = (), reply: Json | None = None) -> Json:
        """A person writes; each file is a message of its own, the first with the text as its caption."""
        uploads = [upload_of(file) for file in files]
        told: Json = {}
        for number, upload in enumerate(uploads):
            told = self.send_file(where, who, upload, text if not number else "", reply=reply)
        return told or self.raw(where, who, {"type": "text", "text": {"body": text}}, reply=reply)

    def send_file(
        self,
        where: Json,
        who: Json,
        upload: FakeUpload,
        caption: str = "",
        *,
        kind: str = "",
        reply: Json | None = None,
    ) -> Json:
        """A person sends a file, as WhatsApp's kind of its type."""
        mime = upload.mime or _mime_of(upload)
        kind = kind or _KINDS.get(mime.partition("/")[0], "document")
        file = self.keep(FakeUpload(**{**_fields(upload), "mime": mime}), seconds=INBOUND_SECONDS)
        content = upload.content if isinstance(upload.content, bytes) else upload.content()
        shape = file_shape(kind, file.hosted.file_id, file.hosted.upload, content, caption)
        return self.raw(where, who, {"type": kind, kind: shape}, reply=reply)

    def voice(self, where: Json, who: Json, content: bytes) -> Json:
        """A person records a voice message."""
        upload = FakeUpload(content=content, mime="audio/ogg; codecs=opus", extra={"voice": True})
        return self.send_file(where, who, upload, kind="audio")

    def react(self, who: Json, message: str, emoji: str) -> Json:
        """A person reacts to a message, or with an empty emoji removes it."""
        reaction = {"message_id": message, **({"emoji": emoji} if emoji else {})}
        return self.raw(who, who, {"type": "reaction", "reaction": reaction})

    def edit(self, who: Json, message: Json, text: str) -> Json:
        """A person edits a text; told where the number is used in the WhatsApp Business app, too."""
        now = {"type": "text", "text": {"body": text}}
        told = {"original_message_id": message["id"], "message": now}
        return self.raw(who, who, {"type": "edit", "edit": told})

    def revoke(self, who: Json, message: Json) -> Json:
        """A person deletes a message for everyone; told as edits are."""
        return self.raw(who, who, {"type": "revoke", "revoke": {"original_message_id": message["id"]}})

    def raw(self, where: Json, who: Json, content: Mapping[str, Any], *, reply: Json | None = None) -> Json:
        """A message with this content."""
        told: Json = {"from": who["id"], "id": self.next_id(), "timestamp": self.stamp(), **content}
        if where["id"] in self.groups:
            told["group_id"] = where["id"]
        else:
            self.written[who["id"]] = self.clock.monotonic()
        if reply is not None:
            told["context"] = {"from": reply.get("from", NUMBER), "id": reply["id"]}
        self.said[told["id"]] = told
        self.tell({"contacts": [self._contact(who)], "messages": [told]})
        return told

    @staticmethod
    def _contact(who: Json) -> Json:
        """A person, by the number and by Meta's id for this business, which every call names since 2026."""
        own = f"US.{int.from_bytes(hashlib.sha256(who['id'].encode()).digest()[:8], 'big')}"
        return {"profile": {"name": who["name"]}, "wa_id": who["id"], "user_id": own}

    def tell(self, value: Json, *, field: str = "messages") -> None:
        """Put a change into the webhook."""
        self.hook.add(envelope(value, number_id=self.number_id, field=field))

    def report(self, channel: str, message: str, status: str, *, code: int = 0, details: str = "") -> None:
        """A status of a message of the business."""
        told: Json = {"id": message, "status": status, "timestamp": self.stamp(), "recipient_id": channel}
        if channel in self.groups:
            told["recipient_type"] = "group"
        if code:
            told["errors"] = [error_shape(code, details)]
        about = {"contacts": [self._contact(self.people[channel])]} if channel in self.people else {}
        self.tell({**about, "statuses": [told]})

    def is_open(self, channel: str) -> bool:
        """Whether the person has written within the last 24 hours."""
        since = self.written.get(channel)
        return channel in self.groups or (since is not None and self.clock.monotonic() - since < WINDOW_SECONDS)

    def keep(self, upload: FakeUpload, *, seconds: float) -> CloudFile:
        """A file on Meta's side, for so long."""
        self._numbers += 1
        own = str(1_000_000_000_000_000 + self._numbers)
        hosted = HostedFile(file_id=own, unique_id=own, upload=upload, path=own, size=upload.announced)
        mime = (upload.mime or "application/octet-stream").partition(";")[0]
        made = upload.sha256
        if not made:
            content = upload.content if isinstance(upload.content, bytes) else upload.content()
            made = hashlib.sha256(content).hexdigest()
        self.files[own] = CloudFile(hosted=hosted, mime=mime, until=self.clock.monotonic() + seconds, sha256=made)
        return self.files[own]

    def next_id(self) -> str:
        self._numbers += 1
        return message_id(self._numbers)

    def stamp(self) -> str:
        return str(int(self.clock.now().timestamp()))


def _fields(upload: FakeUpload) -> Json:
    return {name: getattr(upload, name) for name in ("content", "size", "name", "extra", "sha256", "head")}


def _mime_of(upload: FakeUpload) -> str:
    ending = (upload.name or "").rpartition(".")[2]
    known = {
        "jpg": "image/jpeg",
        "png": "image/png",
        "pdf": "application/pdf",
        "webp": "image/webp",
        "mp4": "video/mp4",
    }
    return known.get(ending, "application/octet-stream")
