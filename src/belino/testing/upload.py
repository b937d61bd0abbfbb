"""A file that a bot uploads, read as it comes: hashed, and kept on disk if it is large."""

import hashlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from belino.media.image_header import image_size
from belino.testing.telegram.shapes import FakeUpload

if TYPE_CHECKING:
    from aiohttp import BodyPartReader

IN_MEMORY = 1024 * 1024
HEAD = 64 * 1024
PIECE = 256 * 1024


async def received(part: "BodyPartReader", folder: Path) -> FakeUpload:
    """A file in a form."""
    return await kept(pieces(part), folder, name=part.filename, mime=part.headers.get("Content-Type"))


async def pieces(part: "BodyPartReader") -> AsyncIterator[bytes]:
    while piece := await part.read_chunk(PIECE):
        yield piece


async def kept(content: AsyncIterator[bytes], folder: Path, *, name: str | None, mime: str | None = None) -> FakeUpload:
    """A file that comes in pieces."""
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
