"""Files of a Slack workspace: private links that need a token, a login page without one, and upload links."""

import json
import mimetypes
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from belino.domain.ports import Clock
from belino.testing.file_server import PIECE, FakeUpload, HostedFile, body_parts, keep_upload, part_chunks
from belino.testing.slack.shapes import DOMAIN, TEAM, Json

if TYPE_CHECKING:
    from aiohttp import web

FILE_BYTES = 1024 * 1024 * 1024
SNIPPET_BYTES = 1024 * 1024
_UNFIT = re.compile(r"[^\w.\-]+")
_PRETTY = {"jpg": "JPEG", "png": "PNG", "gif": "GIF", "pdf": "PDF", "mp3": "MP3", "mp4": "MPEG 4 Video", "zip": "Zip"}
LOGIN_PAGE = (
    b'<!DOCTYPE html><html lang="en-US"><head><title>Login | Slack</title></head>'
    b'<body data-app="signin"><h1>Sign in to your workspace</h1></body></html>'
)
# The fields of a file that the plan's limit hides.
_HIDDEN = ("id", "created", "timestamp", "name", "title", "mimetype", "filetype", "user", "size")


@dataclass(slots=True, kw_only=True)
class SlackFile:
    """A file on Slack's side: its fields without links, and its bytes."""

    shape: Json
    upload: FakeUpload
    link_name: str
    """The last part of its private links; it changes when the file moves."""
    shares: dict[str, list[Json]] = field(default_factory=dict)
    """By channel: the messages it is in."""
    gone: bool = False
    hidden: bool = False

    @property
    def id(self) -> str:
        return str(self.shape["id"])


@dataclass(slots=True, kw_only=True)
class PendingUpload:
    """An announced upload that is not complete."""

    file: str
    name: str
    length: int
    snippet: str = ""
    alt: str = ""
    received: FakeUpload | None = None


class SlackFiles:
    """Every file of a workspace, by id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.url = ""
        self.by_id: dict[str, SlackFile] = {}
        self.pending: dict[str, PendingUpload] = {}
        """By ticket, the last part of the upload link."""

    def put(self, number: str, upload: FakeUpload, user: str, **more: Any) -> SlackFile:
        """Store a file; the given fields have Slack's names."""
        name = upload.name or "file.bin"
        shape = _shape(number, name, upload, user, int(self._clock.now().timestamp()))
        file = SlackFile(shape=shape | dict(upload.extra) | more, upload=upload, link_name=_link_name(name))
        self.by_id[number] = file
        return file

    def payload(self, number: str, *, public: dict[str, bool]) -> Json:
        """The file as Slack currently describes it; `public` says for each channel whether it is public."""
        file = self.by_id[number]
        if file.gone:
            return {"id": number, "mode": "tombstone"}
        if file.hidden:
            return {name: file.shape[name] for name in _HIDDEN} | {"mode": "hidden_by_limit"}
        return {**file.shape, **self._links(file), **_shared(file, public)}

    def find(self, path: str) -> HostedFile | None:
        """The bytes behind a private link's path."""
        for number, file in self.by_id.items():
            if path in self._paths(file) and not file.gone and not file.hidden:
                return HostedFile(
                    file_id=number, unique_id=number, upload=file.upload, path=path, size=file.upload.announced
                )
        return None

    def _links(self, file: SlackFile) -> Json:
        if "external_url" in file.shape:
            return {"url_private": file.shape["external_url"]}
        view, download = self._paths(file)
        user, page = file.shape["user"], f"https://{DOMAIN}.slack.com/files"
        links: Json = {"url_private": self.url + view, "url_private_download": self.url + download}
        links["permalink"] = f"{page}/{user}/{file.id}/{file.link_name}"
        links["permalink_public"] = f"https://slack-files.com/{TEAM}-{file.id}-0123456789"
        if file.shape["mimetype"].startswith("image/"):
            for side in (64, 80, 160, 360):
                links[f"thumb_{side}"] = f"{self.url}/files-tmb/{TEAM}-{file.id}-0123456789/{file.link_name}_{side}.png"
        if file.shape.get("subtype") == "slack_audio":
            links["aac"] = f"{self.url}/files-tmb/{TEAM}-{file.id}-0123456789/{file.link_name}_audio.mp4"
        return links

    def _paths(self, file: SlackFile) -> tuple[str, str]:
        place, name = f"/files-pri/{TEAM}-{file.id}", quote(file.link_name)
        return f"{place}/{name}", f"{place}/download/{name}"


def _link_name(name: str) -> str:
    return _UNFIT.sub("_", name).lower().strip("._") or "file"


def _shape(number: str, name: str, upload: FakeUpload, user: str, now: int) -> Json:
    mime = upload.mime or mimetypes.guess_type(name)[0] or "application/octet-stream"
    kind = name.rpartition(".")[2].lower() if "." in name else "binary"
    shape: Json = {
        "id": number,
        "created": now,
        "timestamp": now,
        "name": name,
        "title": name,
        "mimetype": mime,
        "filetype": {"jpeg": "jpg"}.get(kind, kind),
        "pretty_type": _PRETTY.get(kind, kind.upper()),
        "user": user,
        "user_team": TEAM,
        "editable": False,
        "size": upload.announced,
        "mode": "hosted",
        "is_external": False,
        "external_type": "",
        "is_public": True,
        "public_url_shared": False,
        "display_as_bot": False,
        "username": "",
        "media_display_type": mime.partition("/")[0] if mime.startswith(("audio/", "video/")) else "unknown",
        "is_starred": False,
        "has_rich_preview": False,
        "file_access": "visible",
    }
    if mime.startswith("image/"):
        shape |= {"original_w": upload.width, "original_h": upload.height, "thumb_tiny": "AwAqADDP"}
    return shape


def _shared(file: SlackFile, public: dict[str, bool]) -> Json:
    if not file.shares:
        return {}
    sides: Json = {}
    for channel, places in file.shares.items():
        sides.setdefault("public" if public.get(channel) else "private", {})[channel] = places
    private = list(sides.get("private", {}))
    return {
        "shares": sides,
        "is_public": "public" in sides,
        "channels": list(sides.get("public", {})),
        "groups": [channel for channel in private if not channel.startswith("D")],
        "ims": [channel for channel in private if channel.startswith("D")],
    }


def voice_upload(voice: bytes | FakeUpload) -> tuple[FakeUpload, Json]:
    """A recording of Slack's clients, with the fields only such a file has."""
    given = voice if isinstance(voice, FakeUpload) else FakeUpload(content=voice)
    upload = FakeUpload(
        content=given.content,
        size=given.size,
        name=given.name or "audio_message.m4a",
        mime=given.mime or "audio/mp4",
        duration=given.duration,
        extra=given.extra,
    )
    fields: Json = {
        "subtype": "slack_audio",
        "media_display_type": "audio",
        "duration_ms": given.duration * 1000,
        "audio_wave_samples": [0, 20, 60, 100, 60, 20, 0, 10, 40, 10],
        "transcription": {"status": "processing"},
    }
    return upload, {**fields, **given.extra}


async def receive(request: "web.Request", name: str, folder: Path) -> FakeUpload:
    """Receive a post to an upload link; hashed and stored as it arrives."""
    return await keep_upload(_posted(request), folder, name=name)


async def _posted(request: "web.Request") -> AsyncIterator[bytes]:
    """The file's bytes: posted raw, or as a form."""
    if not request.content_type.startswith("multipart/"):
        async for piece in request.content.iter_chunked(PIECE):
            yield piece
        return
    async for part in body_parts(request):
        if part.filename is not None:
            async for piece in part_chunks(part):
                yield piece


def as_list(value: Any) -> list[Json]:
    """A field that is an array, which a form sends as JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
