"""Google's Gemini API on loopback, with its documented rules and error texts.

Facts are from Google's public API documentation: `generateContent`, its streaming twin, statuses and finish reasons,
and resumable uploads to the Files API.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belino.media.image.header import image_size
from belino.testing.models import (
    ModelAnswer,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ModelScript,
    ModelServer,
    event,
    pieces,
    read_request,
    stream,
)
from belino.testing.models.files import decoded, is_locked, pdf_pages

if TYPE_CHECKING:
    from aiohttp import web

BAD_IMAGE = "Provided image is not valid."
NO_FILE = "You do not have permission to access the File or it may not exist."
PAYLOAD_BYTES = 20 * 1024 * 1024
PDF_PAGES = 1_000
TOO_MANY_PAGES = f"The document has more than {PDF_PAGES} pages."
MEDIA_MIMES = (
    *("audio/wav", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"),
    *("video/mp4", "video/webm", "video/quicktime"),
)
FILE_NAME = re.compile(r"files/[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
Json = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class GeminiFile:
    """A file that was uploaded."""

    name: str
    mime: str
    size: int
    content: bytes = b""
    polls: int = 0
    """How often its state must still be asked for until it is ready."""


class GeminiServer(ModelServer):
    """`/v1/models/NAME`, `:generateContent`, `:streamGenerateContent`, and the Files API."""

    def __init__(self, script: ModelScript = (), *, key: str = "") -> None:
        super().__init__(script, key=key)
        self.files: dict[str, GeminiFile] = {}
        """What is stored, by name."""
        self.uploads: list[GeminiFile] = []
        """Everything that was ever uploaded."""
        self.deleted: list[str] = []
        self.polls = 0
        """How often the state of the next uploads must be asked for."""
        self.deletion_fails = False
        self.deletion_hangs = False
        self.upload_host = ""
        """Another host for uploads, as only a compromised server would name one."""

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_post("/upload/v1beta/files", self._start_upload)
        app.router.add_post("/upload/v1beta/files/{name}", self._upload)
        app.router.add_get("/v1beta/files/{name}", self._file)
        app.router.add_delete("/v1beta/files/{name}", self._delete)
        app.router.add_post("/{version:v1(?:beta)?}/models/{name}:generateContent", self._whole)
        app.router.add_post("/{version:v1(?:beta)?}/models/{name}:streamGenerateContent", self._streamed)
        app.router.add_get("/{version:v1(?:beta)?}/models/{name}", self._model)

    async def _whole(self, request: "web.Request") -> "web.StreamResponse":
        asked, reply = await self.reply_to(request)
        if isinstance(reply, ModelFailure) and reply.status != 200:
            return failed(reply)
        return await self.deliver(request, reply, _last(asked, request, _parts(reply), reply))

    async def _streamed(self, request: "web.Request") -> "web.StreamResponse":
        asked, reply = await self.reply_to(request)
        if isinstance(reply, ModelFailure) and reply.status != 200:
            return failed(reply)
        said = [event(_chunk(request, [part])) for part in _parts(reply)]
        return await stream(self, request, reply, said, [event(_last(asked, request, [], reply))])

    async def _model(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        if refused := self._unauthorized(request):
            return failed(refused)
        return web.json_response({"name": f"models/{request.match_info['name']}"})

    def refusal(self, request: "web.Request", body: Mapping[str, Any]) -> ModelFailure | None:
        if (request.content_length or 0) > PAYLOAD_BYTES:
            text = f"Request payload size exceeds the limit: {PAYLOAD_BYTES} bytes."
            return ModelFailure(status=400, kind="badRequest", message=text)
        return self._unauthorized(request) or broken_rule(body) or self._missing_file(body)

    def _missing_file(self, body: Mapping[str, Any]) -> ModelFailure | None:
        for content in body.get("contents", ()):
            for part in content.get("parts", ()):
                if "fileData" not in part:
                    continue
                held = self.files.get(part["fileData"]["fileUri"].rpartition("/v1beta/")[2])
                if held is None:
                    return ModelFailure(status=403, kind="forbidden", message=NO_FILE)
                if held.polls:
                    return ModelFailure(status=400, kind="badRequest", message=f"{held.name} is not in an ACTIVE state")
        return None

    async def _start_upload(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        asked = (await read_request(request)).body
        if refused := self._unauthorized(request):
            return failed(refused)
        said = {name: request.headers.get(f"X-Goog-Upload-{name}", "") for name in ("Protocol", "Command")}
        name = asked.get("file", {}).get("name", "")
        if said != {"Protocol": "resumable", "Command": "start"} or not FILE_NAME.fullmatch(name):
            return failed(ModelFailure(status=400, kind="badRequest", message="Invalid upload request."))
        size = int(request.headers["X-Goog-Upload-Header-Content-Length"])
        mime = request.headers["X-Goog-Upload-Header-Content-Type"]
        self.files[name] = GeminiFile(name=name, mime=mime, size=size, polls=self.polls)
        place = f"{self.upload_host or self.url}/upload/v1beta/{name}?upload_id=u1"
        return web.Response(headers={"X-Goog-Upload-URL": place, "X-Goog-Upload-Status": "active"})

    async def _upload(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        file = self.files[f"files/{request.match_info['name']}"]
        file.content = await request.read()
        commands = (request.headers.get("X-Goog-Upload-Command"), request.headers.get("X-Goog-Upload-Offset"))
        if commands != ("upload, finalize", "0") or len(file.content) != file.size:
            return failed(ModelFailure(status=400, kind="badRequest", message="Upload is incomplete."))
        self.uploads.append(file)
        return web.json_response({"file": self._state(file)})

    async def _file(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        file = self.files[f"files/{request.match_info['name']}"]
        file.polls -= 1
        return web.json_response(self._state(file))

    async def _delete(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        name = f"files/{request.match_info['name']}"
        if self.deletion_hangs:
            await self.closing.wait()
        if self.deletion_fails:
            return failed(ModelFailure(status=500, kind="backendError", message="Internal error."))
        if self.files.pop(name, None) is None:
            return failed(ModelFailure(status=403, kind="forbidden", message=NO_FILE))
        self.deleted.append(name)
        return web.json_response({})

    def _state(self, file: GeminiFile) -> Json:
        state = "PROCESSING" if file.polls else "ACTIVE"
        uri = f"{self.url}/v1beta/{file.name}"
        return {"name": file.name, "mimeType": file.mime, "sizeBytes": str(file.size), "uri": uri, "state": state}

    def _unauthorized(self, request: "web.Request") -> ModelFailure | None:
        if self.key and request.headers.get("x-goog-api-key") != self.key:
            return ModelFailure(
                status=400, kind="API_KEY_INVALID", message="API key not valid. Please pass a valid API key."
            )
        return None


def failed(failure: ModelFailure) -> "web.StreamResponse":
    """An error in Google's format; `kind` is the reason in its details."""
    from aiohttp import web

    status = STATUSES.get(failure.status, "UNKNOWN")
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": failure.kind}]
    told = {"code": failure.status, "message": failure.message, "status": status, "details": details}
    return web.json_response({"error": told}, status=failure.status, headers=failure.headers)


def images(body: Mapping[str, Any]) -> list[bytes]:
    """The bytes of every picture in a request, in order."""
    return _of_type("image/", body)


def documents(body: Mapping[str, Any]) -> list[bytes]:
    """The bytes of every document in a request, in order."""
    return _of_type("application/", body)


def sounds(body: Mapping[str, Any]) -> list[bytes]:
    """The bytes of every sound in a request, in order."""
    return _of_type("audio/", body)


def broken_rule(body: Mapping[str, Any]) -> ModelFailure | None:
    """The API's own refusal of an invalid request."""
    for blob in _inline(body):
        if broken := _broken_blob(blob):
            return ModelFailure(status=400, kind="badRequest", message=broken)
    contents = body.get("contents", [])
    for before, after in zip(contents, [*contents[1:], {}], strict=True):
        calls = sum("functionCall" in part for part in before.get("parts", ()))
        if calls and calls != sum("functionResponse" in part for part in after.get("parts", ())):
            text = (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
            return ModelFailure(status=400, kind="badRequest", message=text)
    return None


def _broken_blob(blob: Json) -> str:
    mime, content = _type_of(blob), decoded(blob["data"])
    if mime.startswith("image/"):
        return "" if content is not None and image_size(content) is not None else BAD_IMAGE
    if mime == "application/pdf":
        pages = pdf_pages(content) if content is not None and not is_locked(content) else 0
        return "The document has no pages." if not pages else "" if pages <= PDF_PAGES else TOO_MANY_PAGES
    return "" if mime in MEDIA_MIMES and content else f"Unsupported MIME type: {mime}"


def _of_type(mime: str, body: Mapping[str, Any]) -> list[bytes]:
    return [decoded(blob["data"]) or b"" for blob in _inline(body) if _type_of(blob).startswith(mime)]


def _type_of(blob: Json) -> str:
    """The type of inline data; the API takes field names in both spellings, and the SDK sends the second."""
    return str(blob.get("mimeType") or blob.get("mime_type") or "")


def _inline(body: Mapping[str, Any]) -> Iterator[Json]:
    for content in body.get("contents", ()):
        for part in content.get("parts", ()):
            if "inlineData" in part:
                yield part["inlineData"]
            for inner in part.get("functionResponse", {}).get("parts", ()):
                if "inlineData" in inner:
                    yield inner["inlineData"]


def _parts(reply: ModelReply) -> list[Json]:
    if isinstance(reply, ModelFailure):
        return []
    parts: list[Json] = [{"text": piece} for piece in pieces(reply.text)]
    if isinstance(reply, ModelAnswer):
        parts += [{"functionCall": {"name": call.tool, "args": dict(call.arguments)}} for call in reply.calls]
    return parts


def _chunk(request: "web.Request", parts: list[Json]) -> Json:
    """One piece of an answer."""
    candidate = {"index": 0, "content": {"role": "model", "parts": parts or [{"text": ""}]}}
    return {"modelVersion": request.match_info["name"], "responseId": "r1", "candidates": [candidate]}


def _last(asked: ModelRequest, request: "web.Request", parts: list[Json], reply: ModelReply) -> Json:
    """The last piece: the finish reason and usage, or why there is no answer."""
    told = _chunk(request, parts)
    if isinstance(reply, ModelFailure):
        return {"modelVersion": told["modelVersion"], "responseId": "r1", "promptFeedback": {"blockReason": reply.kind}}
    given, written = (reply.input_tokens, reply.output_tokens) if isinstance(reply, ModelAnswer) else (100, 1)
    most = asked.body.get("generationConfig", {}).get("maxOutputTokens", written + 1)
    told["candidates"][0]["finishReason"] = "MAX_TOKENS" if written >= most else "STOP"
    usage = {"promptTokenCount": given, "candidatesTokenCount": written, "totalTokenCount": given + written}
    return {**told, "usageMetadata": usage}
