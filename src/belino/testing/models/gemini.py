"""Google's Gemini API on loopback, with its documented rules and error texts.

Facts are from Google's public API documentation: `generateContent`, its streaming twin, statuses and finish reasons.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from belino.media.image.header import image_size
from belino.testing.models import (
    ModelAnswer,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ModelServer,
    event,
    pieces,
    stream,
)

if TYPE_CHECKING:
    from aiohttp import web

BAD_IMAGE = "Provided image is not valid."
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


class GeminiServer(ModelServer):
    """`/v1/models/NAME`, `:generateContent` and `:streamGenerateContent`."""

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_post("/{version:v1(?:beta)?}/models/{name}:generateContent", self._whole)
        app.router.add_post("/{version:v1(?:beta)?}/models/{name}:streamGenerateContent", self._streamed)
        app.router.add_get("/{version:v1(?:beta)?}/models/{name}", self._model)

    async def _whole(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        asked, reply = await self.reply_to(request)
        if isinstance(reply, ModelFailure) and reply.status != 200:
            return failed(reply)
        return web.json_response(_last(asked, request, _parts(reply), reply))

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
        return self._unauthorized(request) or broken_rule(body)

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
    return [base64.urlsafe_b64decode(_standard(blob["data"])) for blob in _inline(body)]


def broken_rule(body: Mapping[str, Any]) -> ModelFailure | None:
    """The API's own refusal of an invalid request."""
    for blob in _inline(body):
        try:
            measured = image_size(base64.urlsafe_b64decode(_standard(blob["data"])))
        except binascii.Error:
            measured = None
        if measured is None:
            return ModelFailure(status=400, kind="badRequest", message=BAD_IMAGE)
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


def _standard(data: str) -> str:
    """Base64 in the URL-safe alphabet, which this API accepts as well."""
    return data.replace("+", "-").replace("/", "_")


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
