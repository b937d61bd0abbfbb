"""Request of the daemon: a JSON-RPC call with its parameters, the files in its data URIs, and refusals."""

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from belino.media.image.header import image_size
from belino.testing.file_server import HEAD, FakeUpload
from belino.testing.platform_server import Json

STRING_CHARS = 20_000_000
"""The longest text in JSON that the daemon reads: https://github.com/AsamK/signal-cli/issues/2127."""
USER_ERROR, IO_ERROR, UNTRUSTED_KEY, RATE_LIMIT = -1, -3, -4, -5
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
# As signal-cli's DataURI reads it.
_DATA_URI = re.compile(
    r"data:(?P<type>[^,;]+?/[^,;]+?)?(?P<parameters>;[^,]+?=[^,]+?)?(?P<base64>;base64)?,(?P<data>.+)", re.DOTALL
)
_STYLE = re.compile(r"(\d+):(\d+):(BOLD|ITALIC|SPOILER|STRIKETHROUGH|MONOSPACE)")


class SignalRefusal(Exception):
    """An error answer of the daemon."""

    def __init__(self, code: int, message: str, *, results: list[Json] | None = None, stamp: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.results = results
        self.stamp = stamp

    def error(self) -> Json:
        data = None if self.results is None else {"response": {"timestamp": self.stamp, "results": self.results}}
        return {"code": self.code, "message": str(self), "data": data}


@dataclass(slots=True, kw_only=True)
class SignalCall:
    """One call of a method."""

    method: str
    params: Json
    id: Any = None
    files: list[FakeUpload] = field(default_factory=list)

    def text(self, name: str) -> str:
        value = self.params.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        value = self.params.get(name)
        return value if type(value) is int else None

    def several(self, name: str) -> list[Any]:
        """A parameter with several values: a list or one of them, in the singular or the plural."""
        value = self.params.get(name, self.params.get(f"{name}s"))
        return [] if value is None else value if isinstance(value, list) else [value]


def read_call(body: bytes) -> SignalCall:
    """The call in a request; the daemon fails at a longer text than its JSON library allows."""
    try:
        told = json.loads(body)
    except ValueError:
        raise SignalRefusal(PARSE_ERROR, "Unexpected character") from None
    if not isinstance(told, dict):
        raise SignalRefusal(INVALID_REQUEST, "unexpected type: STRING")
    if told.get("jsonrpc") != "2.0":
        raise SignalRefusal(INVALID_REQUEST, "only jsonrpc version 2.0 is supported")
    if not isinstance(told.get("method"), str):
        raise SignalRefusal(INVALID_REQUEST, "method field must be set")
    params = told.get("params") or {}
    if any(len(text) > STRING_CHARS for text in _texts(params)):
        raise SignalRefusal(INTERNAL, "An internal server error has occurred.")
    return SignalCall(method=told["method"], params=dict(params), id=told.get("id"))


def read_files(call: SignalCall, *, data_folder: Path) -> list[FakeUpload]:
    """The attachments of a call: data URIs, or paths that the daemon may read."""
    return [_upload(str(each), data_folder) for each in call.several("attachment")]


def check_styles(call: SignalCall) -> None:
    text = call.text("message")
    units = len(text.encode("utf-16-le")) // 2
    for style in call.several("textStyle"):
        found = _STYLE.fullmatch(str(style))
        if found is None:
            raise SignalRefusal(USER_ERROR, f"Invalid textStyle syntax ({style}) expected 'start:length:STYLE'")
        if int(found[1]) + int(found[2]) > units:
            raise SignalRefusal(USER_ERROR, "the style ends behind the text")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for each in value for text in _texts(each)] if isinstance(value, list) else []


def _upload(given: str, data_folder: Path) -> FakeUpload:
    if not given.startswith("data:"):
        place = Path(given)
        if place.resolve().is_relative_to(data_folder) or not place.is_file():
            raise SignalRefusal(INTERNAL, f"Failed to send message: {given} (AttachmentInvalidException)")
        return _held(place.read_bytes(), place.name, None)
    found = _DATA_URI.fullmatch(given)
    if found is None or found["base64"] is None:
        raise SignalRefusal(INTERNAL, "Failed to send message: data: (AttachmentInvalidException)")
    try:
        content = base64.b64decode(found["data"], validate=True)
    except binascii.Error:
        raise SignalRefusal(INTERNAL, "Failed to send message: data: (AttachmentInvalidException)") from None
    name = unquote_plus((found["parameters"] or "").partition("filename=")[2])
    return _held(content, name or None, found["type"])


def _held(content: bytes, name: str | None, mime: str | None) -> FakeUpload:
    _, width, height = image_size(content[:HEAD]) or ("", 640, 480)
    return FakeUpload(
        content=content,
        size=len(content),
        name=name,
        mime=mime,
        width=width,
        height=height,
        sha256=hashlib.sha256(content).hexdigest(),
        head=content[:HEAD],
    )
