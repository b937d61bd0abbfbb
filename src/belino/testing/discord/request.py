"""One call of Discord's REST API as it came, and what Discord answers instead of a result."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.testing.discord.shapes import Json
from belino.testing.file_server import PIECE, FakeUpload, form_parts

if TYPE_CHECKING:
    from aiohttp import web

REQUEST_BYTES = 25 * 1024 * 1024
PAYLOAD = "payload_json"
GONE: Json = {}
"""An answer without a body."""

Answered = Json | list[Json]
_FILE = re.compile(r"files\[(\d+)\]")


class DiscordRefusal(Exception):
    """What Discord answers instead of a result: a status, its own code, a sentence, and what is wrong where."""

    def __init__(self, status: int, code: int, message: str, errors: Json | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.errors = errors

    def body(self) -> Json:
        told: Json = {"message": str(self), "code": self.code}
        return told | ({"errors": self.errors} if self.errors else {})


def invalid(path: str, code: str, message: str) -> DiscordRefusal:
    """A form that is wrong at one place, `a.0.b`."""
    errors: Json = {"_errors": [{"code": code, "message": message}]}
    for name in reversed(path.split(".") if path else []):
        errors = {name: errors}
    return DiscordRefusal(400, 50035, "Invalid Form Body", errors)


def too_large() -> DiscordRefusal:
    return DiscordRefusal(413, 40005, "Request entity too large")


@dataclass(slots=True, kw_only=True)
class DiscordCall:
    """One call: its route as documented, the ids in it, the query, the JSON and the files by their number."""

    method: str
    route: str
    ids: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    fields: Json = field(default_factory=dict)
    files: dict[str, FakeUpload] = field(default_factory=dict)
    agent: str = ""
    """The User-Agent, which Discord wants to begin with DiscordBot."""

    @property
    def name(self) -> str:
        """What `fail` and `calls` know it by: `POST /channels/{channel}/messages`."""
        return f"{self.method} {self.route}"


async def read_body(request: "web.Request", call: DiscordCall, folder: Path) -> None:
    """The JSON and the files of a call; files go into the folder as they come."""
    if request.content_length is not None and request.content_length > REQUEST_BYTES:
        await _drain(request)
        raise too_large()
    if request.content_type.startswith("multipart/"):
        await _read_parts(request, call, folder)
    elif request.can_read_body and request.method != "GET":
        written = await request.read()
        if written and request.content_type != "application/json":
            raise invalid(
                "", "CONTENT_TYPE_INVALID", 'Expected "Content-Type" header to be one of {"application/json"}.'
            )
        call.fields = _parsed(written) if written else {}


async def _drain(request: "web.Request") -> None:
    async for _ in request.content.iter_chunked(PIECE):
        pass


def _parsed(written: str | bytes) -> Json:
    try:
        value: Any = json.loads(written)
    except ValueError:
        raise DiscordRefusal(400, 50109, "The request body contains invalid JSON.") from None
    return value if isinstance(value, dict) else {"": value}


async def _read_parts(request: "web.Request", call: DiscordCall, folder: Path) -> None:
    taken = 0
    async for name, value in form_parts(request, folder, text_field=PAYLOAD):
        if isinstance(value, FakeUpload):
            found = _FILE.fullmatch(name)
            taken += value.announced
            call.files[found[1] if found else str(len(call.files))] = value
        elif name == PAYLOAD:
            call.fields |= _parsed(value)
        else:
            call.fields[name] = value
    if taken > REQUEST_BYTES:
        raise too_large()
