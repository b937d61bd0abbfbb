"""What a bot uploads, read as it comes: hashed, and kept on disk if it is large."""

import hashlib
import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.media.image_header import image_size
from belino.testing.telegram_request import Call
from belino.testing.telegram_shapes import Upload

if TYPE_CHECKING:
    from aiohttp import BodyPartReader, web

IN_MEMORY = 1024 * 1024
HEAD = 64 * 1024
PIECE = 256 * 1024


async def read_call(request: "web.Request", folder: Path) -> Call:
    """Fields from the query, a form, a multipart form or JSON, as Telegram takes them; files into the folder."""
    fields: dict[str, Any] = dict(request.query)
    files: dict[str, Upload] = {}
    if request.content_type == "application/json":
        body = await request.read()
        given = json.loads(body) if body else {}
        fields |= given if isinstance(given, dict) else {}
    elif request.content_type.startswith("multipart/"):
        files = await _read_parts(request, fields, folder)
    elif request.can_read_body:
        fields |= {name: str(value) for name, value in (await request.post()).items()}
    return Call(method=request.match_info["method"], fields=fields, files=files)


async def _read_parts(request: "web.Request", fields: dict[str, Any], folder: Path) -> dict[str, Upload]:
    from aiohttp import BodyPartReader

    files: dict[str, Upload] = {}
    parts = await request.multipart()
    while (part := await parts.next()) is not None:
        if not isinstance(part, BodyPartReader) or part.name is None:
            continue
        if part.filename is None:
            fields[part.name] = await part.text()
        else:
            files[part.name] = await _received(part, folder)
    return files


async def _received(part: "BodyPartReader", folder: Path) -> Upload:
    place = folder / secrets.token_hex(8)
    digest, head = hashlib.sha256(), b""
    with place.open("wb") as kept:
        while piece := await part.read_chunk(PIECE):
            digest.update(piece)
            head += piece[: HEAD - len(head)]
            kept.write(piece)
        size = kept.tell()
    _, width, height = image_size(head) or ("", 640, 480)
    return Upload(
        content=place.read_bytes if size > IN_MEMORY else place.read_bytes(),
        size=size,
        name=part.filename,
        mime=part.headers.get("Content-Type"),
        width=width,
        height=height,
        sha256=digest.hexdigest(),
        head=head,
    )
