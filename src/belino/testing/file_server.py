"""File server of a fake platform: uploads read to disk, downloads in ranges, and faulty downloads."""

import asyncio
import hashlib
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.media.image.header import image_size
from belino.testing.faults import Changed, Endless, Fault, NoLength, Trickle, Truncate, WrongLength

if TYPE_CHECKING:
    from aiohttp import BodyPartReader, web

IN_MEMORY = 1024 * 1024
HEAD = 64 * 1024
PIECE = 256 * 1024
CHUNK = 64 * 1024
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeUpload:
    """A file that a person or a bot sends: bytes, or a function that generates them on download."""

    content: bytes | Callable[[], bytes]
    size: int | None = None
    """The size that the platform announces; the length of `content` by default."""
    name: str | None = None
    mime: str | None = None
    width: int = 640
    height: int = 480
    duration: int = 12
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More fields of the media object, such as a sticker's emoji or an audio's title."""
    sha256: str = ""
    """The hash of the bytes, where a bot uploaded them."""
    head: bytes = field(repr=False, default=b"")
    """The first bytes of a bot's upload."""

    @property
    def announced(self) -> int:
        if self.size is not None:
            return self.size
        assert isinstance(self.content, bytes), "bytes made on demand need a size to announce"
        return len(self.content)


@dataclass(slots=True, kw_only=True)
class HostedFile:
    """A file on the platform's side."""

    file_id: str
    unique_id: str
    upload: FakeUpload
    path: str
    size: int
    opened_at: float | None = None
    """When a link was last made, by the server's clock, where links expire."""


def upload_of(content: bytes | FakeUpload) -> FakeUpload:
    """Bytes as a person's upload: named by their type, with their size in pixels."""
    if isinstance(content, FakeUpload):
        return content
    size = image_size(content[:HEAD])
    if size is None:
        return FakeUpload(content=content, name="file.bin")
    ending = size[0].removeprefix("image/").replace("jpeg", "jpg").lower()
    return FakeUpload(content=content, name=f"image.{ending}", width=size[1], height=size[2])


async def form_parts(
    request: "web.Request", folder: Path, *, text_field: str = ""
) -> AsyncIterator[tuple[str, str | FakeUpload]]:
    """The fields and files of a multipart form; `text_field` is text even where it has a file name."""
    async for part in body_parts(request):
        if part.name is None:
            continue
        if part.filename is None or part.name == text_field:
            yield part.name, await part.text()
        else:
            mime = part.headers.get("Content-Type")
            yield part.name, await keep_upload(part_chunks(part), folder, name=part.filename, mime=mime)


async def body_parts(request: "web.Request") -> AsyncIterator["BodyPartReader"]:
    """The parts of a multipart form."""
    from aiohttp import BodyPartReader

    parts = await request.multipart()
    while (part := await parts.next()) is not None:
        if isinstance(part, BodyPartReader):
            yield part


async def part_chunks(part: "BodyPartReader") -> AsyncIterator[bytes]:
    """The bytes of a part, in pieces."""
    while piece := await part.read_chunk(PIECE):
        yield piece


async def keep_upload(
    content: AsyncIterator[bytes], folder: Path, *, name: str | None, mime: str | None = None
) -> FakeUpload:
    """Receive a file in pieces and hash it; a large one stays on disk."""
    place = folder / secrets.token_hex(8)
    digest, head = hashlib.sha256(), b""
    with place.open("wb") as file:
        async for piece in content:
            digest.update(piece)
            head += piece[: HEAD - len(head)]
            file.write(piece)
        size = file.tell()
    _, width, height = image_size(head) or ("", 640, 480)
    return FakeUpload(
        content=place.read_bytes if size > IN_MEMORY else place.read_bytes(),
        size=size,
        name=name,
        mime=mime,
        width=width,
        height=height,
        sha256=digest.hexdigest(),
        head=head,
    )


async def serve_file(
    request: "web.Request",
    stored: HostedFile,
    fault: Fault | None,
    count: Callable[[int], None],
    *,
    mime: str = "application/octet-stream",
) -> "web.StreamResponse":
    """Answer one download; `count` receives the number of bytes sent."""
    content = await _content(stored)
    if isinstance(fault, Changed):
        content = fault.content
    etag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    start, stop = _asked(request, len(content), etag)
    if start is None:
        return _response(request, 416, {"Content-Range": f"bytes */{len(content)}"})
    part = content[start:stop]
    headers = {"Accept-Ranges": "bytes", "ETag": etag, "Content-Type": mime}
    if "Range" in request.headers and (start, stop) != (0, len(content)):
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
    partial = "Content-Range" in headers
    response = _response(request, 206 if partial else 200, headers)
    if isinstance(fault, WrongLength):
        return await _lie(request, part, fault.length, count)
    if not isinstance(fault, NoLength | Endless):
        response.content_length = len(part)
    await response.prepare(request)
    await _write(request, response, part, fault, count)
    return response


async def _content(stored: HostedFile) -> bytes:
    made = stored.upload.content
    return made if isinstance(made, bytes) else await asyncio.to_thread(made)


def _asked(request: "web.Request", size: int, etag: str) -> tuple[int | None, int]:
    """The first byte and the one after the last; None if the range begins past the end."""
    found = _RANGE.fullmatch(request.headers.get("Range", ""))
    if found is None or request.headers.get("If-Range", etag) != etag:
        return 0, size
    start = int(found[1])
    stop = min(int(found[2]) + 1, size) if found[2] else size
    return (None, 0) if start >= size else (start, stop)


def _response(request: "web.Request", status: int, headers: dict[str, str]) -> "web.StreamResponse":
    from aiohttp import web

    return web.StreamResponse(status=status, headers=headers)


async def _write(
    request: "web.Request",
    response: "web.StreamResponse",
    part: bytes,
    fault: Fault | None,
    count: Callable[[int], None],
) -> None:
    stop = fault.at if isinstance(fault, Truncate) else fault.after if isinstance(fault, Trickle) else len(part)
    for at in range(0, min(stop, len(part)), CHUNK):
        piece = part[at : min(at + CHUNK, stop)]
        await response.write(piece)
        count(len(piece))
    if isinstance(fault, Truncate):
        cut(request)
    elif isinstance(fault, Trickle):
        await asyncio.Event().wait()
    while isinstance(fault, Endless):
        await response.write(b"\0" * CHUNK)
        count(CHUNK)
    await response.write_eof()


async def _lie(request: "web.Request", part: bytes, length: int, count: Callable[[int], None]) -> "web.StreamResponse":
    """Written without a library: HTTP libraries refuse to send a wrong length."""
    transport = request.transport
    assert transport is not None
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
    transport.write(head.encode() + part)
    count(len(part))
    transport.close()
    return _response(request, 200, {})


def cut(request: "web.Request") -> None:
    """Break the connection off."""
    if request.transport is not None:
        request.transport.abort()
