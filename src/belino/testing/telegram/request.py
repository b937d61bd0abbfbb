"""One call of the Bot API as it came, and what Telegram answers instead of a result."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.testing.file_server import FakeUpload, form_parts

if TYPE_CHECKING:
    from aiohttp import web


class TelegramRefusal(Exception):
    """What Telegram answers instead of a result."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.parameters = parameters


@dataclass(slots=True, kw_only=True)
class TelegramCall:
    """One call of a method: its fields as strings or JSON values, and the files that came with it."""

    method: str
    fields: Mapping[str, Any]
    files: Mapping[str, FakeUpload] = field(default_factory=dict)

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        return "" if value is None else str(value)

    def whole(self, name: str, default: int) -> int:
        """A number that may come as text; one that is none counts as not given, as with Telegram."""
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
    """Fields from the query, a form, a multipart form or JSON, as Telegram takes them; files go to the folder."""
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
