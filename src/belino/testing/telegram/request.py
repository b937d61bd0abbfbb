"""Request of the Bot API: its fields, markup, stored file type, rate limit, and refusals."""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.ports import Clock
from belino.media.image.header import image_size
from belino.testing.file_server import FakeUpload, form_parts
from belino.testing.platform_server import Json, SlidingWindow, retry_after

if TYPE_CHECKING:
    from aiohttp import web

_TAGS = frozenset(
    {"a", "b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "span", "code", "pre", "blockquote"}
    | {"tg-spoiler", "tg-emoji"}
)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[^\s>/]*)(?P<rest>(?:[^>\"']|\"[^\"]*\"|'[^']*')*)>")
_CLASS = re.compile(r"\sclass\s*=\s*[\"']?tg-spoiler[\"']?")
# Telegram supports only four named entities; the others stay as they are written.
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#\d+|#x[0-9A-Fa-f]+);")
PHOTO_BYTES = 10 * 1024 * 1024
PHOTO_SIDES = 10_000
PHOTO_RATIO = 20
STICKER_BYTES = {"webp": 512 * 1024, "webm": 256 * 1024, "tgs": 64 * 1024}


class TelegramRefusal(Exception):
    """An error answer of Telegram."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.parameters = parameters


@dataclass(slots=True, kw_only=True)
class TelegramCall:
    """One call of a method: its fields as strings or JSON values, and its files."""

    method: str
    fields: Mapping[str, Any]
    files: Mapping[str, FakeUpload] = field(default_factory=dict)

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        return "" if value is None else str(value)

    def whole(self, name: str, default: int) -> int:
        """A number, perhaps as text; anything else counts as absent, as with Telegram."""
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
            raise TelegramRefusal(400, f"Bad Request: can't parse {name} JSON object") from None


async def read_call(request: "web.Request", folder: Path) -> TelegramCall:
    """Fields from the query, a form, a multipart form or JSON, as Telegram accepts them; files go to the folder."""
    fields: dict[str, Any] = dict(request.query)
    files: dict[str, FakeUpload] = {}
    if request.content_type == "application/json":
        body = await request.read()
        given = json.loads(body) if body else {}
        fields |= given if isinstance(given, dict) else {}
    elif request.content_type.startswith("multipart/"):
        async for name, value in form_parts(request, folder):
            if isinstance(value, FakeUpload):
                files[name] = value
            else:
                fields[name] = value
    elif request.can_read_body:
        fields |= {name: str(value) for name, value in (await request.post()).items()}
    return TelegramCall(method=request.match_info["method"], fields=fields, files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramPace:
    """Sending limits: a chat accepts a short burst and then one a second, a group twenty a minute."""

    chat_burst: int = 5
    chat_per_second: float = 1.0
    group_per_minute: int = 20
    all_per_second: int = 30


class TelegramLimiter:
    """Counts a bot's visible calls, and refuses those above the limit."""

    def __init__(self, clock: Clock, pace: TelegramPace) -> None:
        self._pace = pace
        self._sends = SlidingWindow(clock)

    def keep(self, chat: Json, messages: int = 1) -> None:
        """Count messages, or refuse them with the wait until the next."""
        pace = self._pace
        rules = [
            (chat["id"], pace.chat_burst, pace.chat_burst / pace.chat_per_second),
            (None, pace.all_per_second, 1.0),
        ]
        if chat["type"] != "private":
            rules.append((chat["id"], pace.group_per_minute, 60.0))
        if (wait := max(self._sends.wait(*rule) for rule in rules)) > 0:
            seconds = retry_after(wait)
            raise TelegramRefusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
        for key in (chat["id"], None):
            self._sends.add(key, messages)


def shown(text: str, mode: str) -> str:
    """The text as people see it; TelegramRefusal if the markup is invalid."""
    if not mode:
        return text
    if mode.lower() != "html":
        # The adapter writes HTML only; Telegram refuses unknown modes.
        if mode.lower() in ("markdown", "markdownv2"):
            return text
        raise TelegramRefusal(400, "Bad Request: unsupported parse_mode")
    seen, opened, at = list[str](), list[str](), 0
    while (start := text.find("<", at)) >= 0:
        seen.append(_decoded(text[at:start]))
        found = _TAG.match(text, start)
        if found is None:
            raise _cannot(f"Unclosed start tag at byte offset {_offset(text, start)}")
        _take(found, opened, _offset(text, start))
        at = found.end()
    seen.append(_decoded(text[at:]))
    if opened:
        raise _cannot(f'Can\'t find end tag corresponding to start tag "{opened[-1]}"')
    return "".join(seen)


def _take(tag: re.Match[str], opened: list[str], offset: int) -> None:
    name = tag["name"].lower()
    if tag["end"]:
        if not opened:
            raise _cannot(f"Unexpected end tag at byte offset {offset}")
        if (expected := opened.pop()) != name:
            raise _cannot(f'Unmatched end tag at byte offset {offset}, expected "</{expected}>", found "</{name}>"')
        return
    if name not in _TAGS:
        raise _cannot(f'Unsupported start tag "{name}" at byte offset {offset}')
    if name == "span" and not _CLASS.search(tag["rest"]):
        raise _cannot(f'Tag "span" must have class "tg-spoiler" at byte offset {offset}')
    opened.append(name)


def _decoded(text: str) -> str:
    return _ENTITY.sub(lambda found: html.unescape(found.group()), text)


def _offset(text: str, at: int) -> int:
    return len(text[:at].encode())


def _cannot(why: str) -> TelegramRefusal:
    return TelegramRefusal(400, f"Bad Request: can't parse entities: {why}")


def refuse_photo(upload: FakeUpload) -> None:
    """TelegramRefusal for an invalid photo."""
    if upload.announced > PHOTO_BYTES:
        size = upload.announced
        raise TelegramRefusal(
            400,
            f"Bad Request: file of size {size} bytes is too big for a photo; the maximum size is {PHOTO_BYTES} bytes",
        )
    if not upload.head:
        return  # a file that is already on the platform
    found = image_size(upload.head)
    if found is None:
        raise TelegramRefusal(400, "Bad Request: IMAGE_PROCESS_FAILED")
    _, width, height = found
    if width + height > PHOTO_SIDES or max(width, height) > PHOTO_RATIO * min(width, height):
        raise TelegramRefusal(400, "Bad Request: PHOTO_INVALID_DIMENSIONS")


def kept_form(form: str, upload: FakeUpload, *, detect: bool) -> str:
    """The field of Message for a file: undocumented formats are stored as documents."""
    if not upload.head:
        return form
    kind = _kind(upload.head)
    match form:
        case "voice":
            fits = kind in ("ogg", "mp3", "mp4")
        case "audio":
            fits = kind in ("mp3", "mp4")
        case "video" | "video_note":
            fits = kind == "mp4"
        case "animation":
            fits = kind in ("gif", "mp4")
        case "sticker":
            fits = upload.announced <= STICKER_BYTES.get(kind, -1)
        case "document" if detect:
            return {"gif": "animation", "mp3": "audio", "mp4": "video"}.get(kind, form)
        case _:
            fits = True
    return form if fits else "document"


def _kind(head: bytes) -> str:
    if head[4:8] == b"ftyp":
        return "mp4"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    if head[0] == 0xFF and head[1:2] and head[1] & 0xE0 == 0xE0 and head[1] != 0xD8:
        return "mp3"
    starts = {b"OggS": "ogg", b"ID3": "mp3", b"GIF8": "gif", b"\x1a\x45\xdf\xa3": "webm", b"\x1f\x8b": "tgs"}
    return next((kind for start, kind in starts.items() if head.startswith(start)), "")
