"""One call of the Bot API, however its fields and files are sent."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.testing.telegram.request import TelegramCall
from belino.testing.telegram.shapes import FakeUpload
from belino.testing.upload import received

if TYPE_CHECKING:
    from aiohttp import web


async def read_call(request: "web.Request", folder: Path) -> TelegramCall:
    """Fields from the query, a form, a multipart form or JSON, as Telegram takes them; files into the folder."""
    fields: dict[str, Any] = dict(request.query)
    files: dict[str, FakeUpload] = {}
    if request.content_type == "application/json":
        body = await request.read()
        given = json.loads(body) if body else {}
        fields |= given if isinstance(given, dict) else {}
    elif request.content_type.startswith("multipart/"):
        files = await _read_parts(request, fields, folder)
    elif request.can_read_body:
        fields |= {name: str(value) for name, value in (await request.post()).items()}
    return TelegramCall(method=request.match_info["method"], fields=fields, files=files)


async def _read_parts(request: "web.Request", fields: dict[str, Any], folder: Path) -> dict[str, FakeUpload]:
    from aiohttp import BodyPartReader

    files: dict[str, FakeUpload] = {}
    parts = await request.multipart()
    while (part := await parts.next()) is not None:
        if not isinstance(part, BodyPartReader) or part.name is None:
            continue
        if part.filename is None:
            fields[part.name] = await part.text()
        else:
            files[part.name] = await received(part, folder)
    return files
