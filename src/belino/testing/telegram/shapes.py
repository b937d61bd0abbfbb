"""The shapes of the Bot API: users, chats, files and messages as Telegram writes them."""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from belino.testing.file_server import FakeUpload, HostedFile
from belino.testing.files import make_jpeg

Json = dict[str, Any]

# The kinds of media: the folder of the file's path, its extension, its MIME type, the beginning of its id.
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
# Telegram keeps a photo in these sizes (the longer side), each only if the original is larger, and the original.
PHOTO_SIDES = (90, 320, 800, 1280)

_ENTITY = re.compile(
    r"(?P<mention>(?<!\w)@[A-Za-z]\w{3,31})|(?P<bot_command>(?<![\w/])/[a-z0-9_]{1,32}(?:@\w+)?)"
    r"|(?P<url>https?://[^\s]+)|(?P<hashtag>(?<!\w)#[^\W\d]\w*)"
)


class TelegramFiles:
    """Every file the platform holds, by id and by path."""

    def __init__(self) -> None:
        self.by_id: dict[str, HostedFile] = {}
        self.by_path: dict[str, HostedFile] = {}

    def put(self, kind: str, upload: FakeUpload, *, size: int | None = None) -> Json:
        """Keep a file; the four fields that name it in a message."""
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
    """The mentions, commands, links and hashtags Telegram marks by itself; offsets count UTF-16 units."""
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
