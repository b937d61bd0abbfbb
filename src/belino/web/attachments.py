"""Attachments of a client: bytes in the frame or a finished upload, never a path."""

import asyncio
import binascii
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pybase64

from belino.domain.errors import MediaNotFound
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.stored import Upload, UploadLimits
from belino.media.image.header import HEADER_BYTES, image_size
from belino.storage.store import Store
from belino.web.fields import Fields
from belino.web.mimes import normal_mime
from belino.web.responses import Code, Refusal, bad_request, not_found

FILE_NAME_CHARS = 255
ATTACHMENTS = 32
VOICE_SECONDS = 24 * 60 * 60

_IGNORED = ("type", "id", "size", "width", "height")
"""What clients of other servers say about an attachment; it is found in the bytes."""
_UPLOAD_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:([^,;]{0,127})(?:;[^,;]{1,127}){0,8};base64,", re.IGNORECASE)
_WRITE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class InFrame:
    """Undecoded bytes: base64 text or a list of numbers."""

    mime: str
    file_name: str
    content: str | list[int] = field(repr=False)
    start: int = 0
    """The start of the base64, after the head of a `data:` URL."""
    voice: bool = False
    """Whether it is a recorded voice message, not a sound file."""
    duration: float | None = None
    """The length in seconds, as the client measured it."""

    @property
    def size(self) -> int:
        """The decoded size, without decoding."""
        if isinstance(self.content, list):
            return len(self.content)
        padding = 2 if self.content.endswith("==") else int(self.content.endswith("="))
        return max(0, (len(self.content) - self.start) * 3 // 4 - padding)

    def decode(self) -> bytes:
        """The bytes, or a refusal with the reason."""
        try:
            if isinstance(self.content, list):
                return bytes(self.content)
            text = self.content[self.start :] if self.start else self.content
            return pybase64.b64decode(text, validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise Refusal(400, Code.BAD_BASE64, "An attachment's content is neither base64 nor bytes.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """Bytes that were uploaded."""

    upload_id: str
    voice: bool = False
    """As in `InFrame`."""
    duration: float | None = None
    """As in `InFrame`."""


Attachment = InFrame | Uploaded


def parse_attachments(items: Sequence[object], *, limit: int) -> tuple[Attachment, ...]:
    """Read every attachment and refuse empty or oversized ones before any byte is decoded."""
    attachments = tuple(_parse(item) for item in items)
    sizes = [item.size for item in attachments if isinstance(item, InFrame)]
    named = [item.upload_id for item in attachments if isinstance(item, Uploaded)]
    if len(set(named)) != len(named):
        raise bad_request("An upload is attached twice.")
    if any(size == 0 for size in sizes):
        raise Refusal(400, Code.EMPTY, "An attachment is empty.")
    if sum(sizes) > limit:
        raise Refusal(413, Code.TOO_LARGE, f"The attachments are over {limit} bytes; send large files by upload.")
    return attachments


class PendingAttachments:
    """The attachments of one message while it is being sent, dropped if it is not accepted."""

    def __init__(self, store: Store, conversation: ConversationKey, limits: UploadLimits) -> None:
        self._store = store
        self._conversation = conversation
        self._limits = limits
        self._made: list[str] = []
        self._given: list[str] = []

    async def pack(self, attachments: Sequence[Attachment]) -> list[Upload]:
        """Every attachment as a finished upload; uploads of others are unknown here."""
        uploads = {
            item.upload_id: await self._finished(item.upload_id) for item in attachments if isinstance(item, Uploaded)
        }
        packed = []
        for item in attachments:
            packed.append(uploads[item.upload_id] if isinstance(item, Uploaded) else await self._keep(item))
        return packed

    async def release(self, *, taken: bool) -> None:
        """Delete uploads that a message now holds, or that were made for one that was not accepted."""
        for upload_id in self._made + (self._given if taken else []):
            await self._store.drop_upload(upload_id)

    async def _finished(self, upload_id: str) -> Upload:
        upload = await self._store.upload(upload_id)
        if upload is None or upload.conversation != self._conversation:
            message = "An attachment's upload does not exist; a finished upload is kept for an hour. Upload it again."
            raise Refusal(404, Code.NOT_FOUND, message)
        if upload.sha256 is None:
            raise bad_request("An attachment's upload is not finished yet.")
        self._given.append(upload_id)
        return upload

    async def _keep(self, item: InFrame) -> Upload:
        content = await asyncio.to_thread(item.decode)
        if not content:
            raise Refusal(400, Code.EMPTY, "An attachment is empty.")
        upload = await self._store.start_upload(
            self._conversation,
            file_name=item.file_name,
            mime=item.mime,
            size=len(content),
            sha256=None,
            limits=self._limits,
            resumable=False,
        )
        self._made.append(upload.id)
        return await self._store.extend_upload(upload.id, 0, _pieces(content))


async def as_ref(store: Store, upload: Upload, attachment: Attachment, *, message_id: str, clock: Clock) -> MediaRef:
    """A finished upload as a ref whose bytes are already held; a picture has its size at once."""
    assert upload.sha256 is not None
    kind = kind_of(upload.mime)
    if attachment.voice and kind is not MediaKind.AUDIO:
        raise bad_request(f"A voice message must be a sound; this attachment is {upload.mime}.")
    place = upload.conversation
    width, height = await _picture_size(store, upload.sha256)
    return MediaRef(
        platform=place.platform,
        account=place.account,
        channel_id=place.channel,
        message_id=message_id,
        item=upload.id,
        kind=MediaKind.VOICE if attachment.voice else kind,
        mime=upload.mime,
        created=clock.now(),
        file_name=upload.file_name or None,
        size=upload.size,
        duration=attachment.duration,
        width=width,
        height=height,
        sha256=upload.sha256,
    )


async def _picture_size(store: Store, sha256: str) -> tuple[int | None, int | None]:
    try:
        async with store.local(sha256) as path:
            found = image_size(await asyncio.to_thread(_header_of, path))
    except MediaNotFound:
        raise not_found() from None
    return (found[1], found[2]) if found else (None, None)


def _header_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEADER_BYTES)


def _parse(item: object) -> Attachment:
    known = ("mime_type", "file_name", "content", "upload_id", "voice", "duration", *_IGNORED)
    fields = Fields(item, known=known, what="An attachment")
    voice, duration = _flag(fields, "voice"), _seconds(fields, "duration")
    if fields.has("upload_id"):
        upload_id = fields.text("upload_id", most=64)
        if fields.has("content") or not _UPLOAD_ID.fullmatch(upload_id):
            raise bad_request("An attachment has either content or the upload_id of an upload.")
        return Uploaded(upload_id=upload_id, voice=voice, duration=duration)
    content = fields.raw("content")
    if not isinstance(content, str | list):
        raise bad_request("An attachment needs content (base64 or a list of bytes) or an upload_id.")
    mime = fields.text("mime_type", most=1024, default="")
    file_name = fields.text("file_name", most=FILE_NAME_CHARS, default="")
    head = _DATA_URL.match(content) if isinstance(content, str) else None
    return InFrame(
        mime=normal_mime(mime or (head.group(1) if head else "")),
        file_name=file_name,
        content=content,
        start=head.end() if head else 0,
        voice=voice,
        duration=duration,
    )


def _flag(fields: Fields, name: str) -> bool:
    value = fields.raw(name)
    if not isinstance(value, bool | None):
        raise bad_request(f"An attachment: {name} must be true or false.")
    return value is True


def _seconds(fields: Fields, name: str) -> float | None:
    value = fields.raw(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= VOICE_SECONDS:
        raise bad_request(f"An attachment: {name} must be a number of seconds from 0 to {VOICE_SECONDS}.")
    return float(value)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    view = memoryview(content)
    for start in range(0, len(view), _WRITE_BYTES):
        yield bytes(view[start : start + _WRITE_BYTES])
