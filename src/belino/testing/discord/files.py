"""Files of the Discord CDN: links are signed whenever a message is sent to the bot, and expire after a day."""

import hashlib
import hmac
import mimetypes
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from belino.domain.ports import Clock
from belino.testing.discord.shapes import Json
from belino.testing.file_server import FakeUpload, HostedFile

LINK_SECONDS = 24 * 3600
_KEY = b"only this server signs its links"
_UNFIT = re.compile(r"[^\w.\-]+")
_LINK = re.compile(r"/attachments/(?P<channel>\d+)/(?P<file>\d+)/(?P<name>[^/?]+)")
_FLAT = bytes([0, 64, 128, 192, 255, 192, 128, 64])
# The sticker formats and their file extensions; APNG uses png too.
STICKER_ENDINGS = {1: "png", 2: "png", 3: "json", 4: "gif"}


class Cdn:
    """Every file, by its path."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.url = ""
        self.link_seconds = LINK_SECONDS
        self.files: dict[str, HostedFile] = {}

    def put(self, channel: str, number: str, upload: FakeUpload, **more: object) -> Json:
        """Store a file; returns its attachment for a message, without links."""
        name = _UNFIT.sub("_", upload.name or "file").strip(".") or "file"
        path = f"/attachments/{channel}/{number}/{quote(name)}"
        self.files[path] = HostedFile(file_id=number, unique_id=number, upload=upload, path=path, size=upload.announced)
        mime = upload.mime or mimetypes.guess_type(name)[0]
        shape: Json = {"id": number, "filename": name, "size": upload.announced}
        if mime:
            shape["content_type"] = mime
        if mime and mime.startswith(("image/", "video/")):
            shape |= {"width": upload.width, "height": upload.height, "placeholder": "3PcNNYSFeXh/d3eld0iHZoZgVwh2"}
            shape["placeholder_version"] = 1
        if upload.name and upload.name != name:
            shape["title"] = upload.name.rpartition(".")[0] or upload.name
        return {**shape, **upload.extra, **more}

    def put_plain(self, path: str, content: bytes) -> None:
        """Store a file under a link that never expires: stickers, emojis."""
        size = len(content)
        upload = FakeUpload(content=content)
        self.files[path] = HostedFile(file_id=path, unique_id=path, upload=upload, path=path, size=size)

    def signed(self, channel: str, attachment: Mapping[str, object]) -> Json:
        """The attachment with fresh links."""
        path = f"/attachments/{channel}/{attachment['id']}/{quote(str(attachment['filename']))}"
        link = f"{self.url}{path}?{self._signature(path)}"
        return {**attachment, "url": link, "proxy_url": link}

    def shown(self, channel: str, message: Json) -> Json:
        """The files of a message, and its cards and components with those that they show by `attachment://name`.

        Files shown there are listed nowhere else.
        """
        files = [self.signed(channel, file) for file in message["attachments"]]
        used: set[str] = set()
        embeds = _resolved(message["embeds"], files, used, named=False)
        components = _resolved(message["components"], files, used, named=True)
        return {
            "embeds": embeds,
            "components": components,
            "attachments": [file for file in files if file["id"] not in used],
        }

    def refreshed(self, link: str) -> str | None:
        """A new signature for an old link; None for anything that is not our attachment."""
        found = _LINK.search(link)
        if found is None or found.group() not in self.files:
            return None
        return f"{self.url}{found.group()}?{self._signature(found.group())}"

    def find(self, path: str, query: Mapping[str, str]) -> HostedFile | None:
        """The file, if its link is signed and has not expired."""
        stored = self.files.get(path)
        if stored is None or not path.startswith("/attachments/"):
            return stored
        expires, issued = query.get("ex", ""), query.get("is", "")
        if not hmac.compare_digest(query.get("hm", ""), _sign(path, expires, issued)):
            return None
        return stored if int(expires, 16) > self._clock.now().timestamp() else None

    def _signature(self, path: str) -> str:
        now = int(self._clock.now().timestamp())
        expires, issued = f"{now + self.link_seconds:x}", f"{now:x}"
        return f"ex={expires}&is={issued}&hm={_sign(path, expires, issued)}&"


def _resolved(part: Any, files: list[Json], used: set[str], *, named: bool) -> Any:
    """Components name the id of the file that they show, cards do not."""
    if isinstance(part, list):
        return [_resolved(each, files, used, named=named) for each in part]
    if not isinstance(part, dict):
        return part
    link = str(part.get("url", ""))
    file = next((each for each in files if link == f"attachment://{each['filename']}"), None)
    if file is None:
        return {name: _resolved(value, files, used, named=named) for name, value in part.items()}
    used.add(file["id"])
    told = {name: file[name] for name in ("url", "proxy_url", "width", "height", "content_type") if name in file}
    return {**part, **told, **({"attachment_id": file["id"]} if named else {})}


def _sign(path: str, expires: str, issued: str) -> str:
    return hmac.new(_KEY, f"{path}?{expires}&{issued}".encode(), hashlib.sha256).hexdigest()


def voice_fields(upload: FakeUpload) -> Json:
    """Fields that only the attachment of a voice message has."""
    return {"duration_secs": float(upload.duration), "waveform": b64encode(_FLAT * 4).decode()}
