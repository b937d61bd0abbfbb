"""Anthropic's Messages API on loopback, with its documented rules and error texts.

Facts are from Anthropic's public API documentation: event names and their order, error types, limits of images and
PDFs. The texts of refusals are from public reports.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from belino.media.image.header import image_size
from belino.testing.models import (
    ModelAnswer,
    ModelCut,
    ModelFailure,
    ModelHang,
    ModelReply,
    ModelRequest,
    ModelScript,
    ModelServer,
    read_request,
)
from belino.testing.models.files import decoded, is_locked, pdf_pages

if TYPE_CHECKING:
    from aiohttp import web

IMAGE_MIMES = ("image/jpeg", "image/png", "image/gif", "image/webp")
IMAGE_BASE64_BYTES = 5 * 1024 * 1024
IMAGE_SIDE = 8000
MANY_IMAGES = 20
MANY_IMAGES_SIDE = 2000
REQUEST_IMAGES = 100
REQUEST_BYTES = 32_000_000
PDF_PAGES = 100
PIECE = 7


class MessagesServer(ModelServer):
    """`/v1/messages`, streamed or whole, `/v1/messages/count_tokens` and `/v1/models`."""

    def __init__(self, script: ModelScript = (), *, key: str = "") -> None:
        super().__init__(script, key=key)
        self._numbers = count(1)

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        app.router.add_get("/v1/models", self._models)
        app.router.add_route("*", "/{rest:.*}", self._unknown)

    async def _messages(self, request: "web.Request") -> "web.StreamResponse":
        asked, reply = await self.reply_to(request)
        if isinstance(reply, ModelFailure):
            return _failure(reply)
        number = next(self._numbers)
        if asked.body.get("stream"):
            return await self._stream(request, asked, reply, number)
        return await self._whole(request, asked, reply, number)

    async def _count_tokens(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        asked = await read_request(request)
        refused = self.refusal(request, asked.body)
        return _failure(refused) if refused else web.json_response({"input_tokens": len(asked.raw) // 4})

    async def _models(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        if refused := self._unauthorized(request):
            return _failure(refused)
        model = {"type": "model", "id": "claude-test", "display_name": "Test", "created_at": "2026-01-01T00:00:00Z"}
        answer = {"data": [model], "has_more": False, "first_id": "claude-test", "last_id": "claude-test"}
        return web.json_response(answer)

    async def _unknown(self, request: "web.Request") -> "web.StreamResponse":
        return _failure(ModelFailure(status=404, kind="not_found_error", message="Not found"))

    def refusal(self, request: "web.Request", body: Mapping[str, Any]) -> ModelFailure | None:
        if "anthropic-version" not in request.headers:
            return _invalid("anthropic-version: header is required")
        if request.path.endswith("/messages") and type(body.get("max_tokens")) is not int:
            return _invalid("max_tokens: Field required")
        if (request.content_length or 0) > REQUEST_BYTES:
            return ModelFailure(status=413, kind="request_too_large", message="Request exceeds the maximum size")
        return self._unauthorized(request) or broken_rule(body)

    def _unauthorized(self, request: "web.Request") -> ModelFailure | None:
        given = request.headers.get("x-api-key") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.key and given != self.key:
            return ModelFailure(status=401, kind="authentication_error", message="invalid x-api-key")
        return None

    async def _stream(
        self, request: "web.Request", asked: ModelRequest, reply: ModelReply, number: int
    ) -> "web.StreamResponse":
        from aiohttp import web

        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "request-id": f"req_{number}"})
        await response.prepare(request)
        try:
            async for event in self._events(asked, reply, number):
                await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        except (ConnectionError, asyncio.CancelledError):
            self.gone.set()
            raise
        if isinstance(reply, ModelCut) and request.transport is not None:
            request.transport.abort()
        return response

    async def _events(self, asked: ModelRequest, reply: ModelReply, number: int) -> AsyncIterator[Mapping[str, Any]]:
        message = _message(asked, reply, number)
        started = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
        yield {"type": "message_start", "message": started}
        yield {"type": "ping"}
        for index, block in enumerate(message["content"]):
            for event in _block_events(index, block):
                yield event
        if isinstance(reply, ModelCut):
            return
        if isinstance(reply, ModelHang):
            await self.closing.wait()
            return
        ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": message["usage"]["output_tokens"]}
        yield {"type": "message_delta", "delta": ended, "usage": usage}
        yield {"type": "message_stop"}

    async def _whole(
        self, request: "web.Request", asked: ModelRequest, reply: ModelReply, number: int
    ) -> "web.StreamResponse":
        return await self.deliver(request, reply, _message(asked, reply, number))


def images(body: Mapping[str, Any]) -> list[bytes]:
    """The bytes of every picture in a request, in order, including those in tool results."""
    return [base64.b64decode(block["source"]["data"]) for _, block in _of_type("image", body)]


def documents(body: Mapping[str, Any]) -> list[bytes]:
    """The bytes of every document in a request, in order, including those in tool results."""
    return [decoded(block["source"]["data"]) or b"" for _, block in _of_type("document", body)]


def texts(body: Mapping[str, Any]) -> str:
    """The text of a request's messages."""
    return "\n".join(str(block["text"]) for _, block in _blocks(body) if block.get("type") == "text")


def broken_rule(body: Mapping[str, Any]) -> ModelFailure | None:
    """The API's own refusal of an invalid request."""
    return next(chain(_broken_roles(body), _broken_images(body), _broken_documents(body)), None)


def _broken_roles(body: Mapping[str, Any]) -> Iterator[ModelFailure]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield _invalid("messages: at least one message is required")
        return
    if not isinstance(body.get("model"), str):
        yield _invalid("model: Field required")
    if messages[0].get("role") != "user":
        yield _invalid('messages: first message must use the "user" role')
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        if message.get("role") == "system":
            continue  # the effort, as newer models take it; it may be empty
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if not content:
            yield _invalid(f"messages.{index}: all messages must have non-empty content")
        results = {block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"}
        if open_calls - results:
            missing = ", ".join(sorted(open_calls - results))
            yield _invalid(
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{missing}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        if results - open_calls:
            yield _invalid(
                f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{', '.join(sorted(results - open_calls))}. Each `tool_result` block must have a corresponding "
                "`tool_use` block in the previous message."
            )
        open_calls = {block["id"] for block in blocks if block.get("type") == "tool_use"}


def _broken_images(body: Mapping[str, Any]) -> Iterator[ModelFailure]:
    found = list(_of_type("image", body))
    if len(found) > REQUEST_IMAGES:
        yield _invalid(f"messages: too many images: {len(found)} > {REQUEST_IMAGES} images per request")
    most = MANY_IMAGES_SIDE if len(found) > MANY_IMAGES else IMAGE_SIDE
    for path, block in found:
        source = block["source"]
        at = f"{path}.image.source.base64"
        if source.get("media_type") not in IMAGE_MIMES:
            yield _invalid(f"{at}.media_type: Input should be {', '.join(map(repr, IMAGE_MIMES))}")
            continue
        size = len(source["data"])
        if size > IMAGE_BASE64_BYTES:
            yield _invalid(f"{at}: image exceeds 5 MB maximum: {size} bytes > {IMAGE_BASE64_BYTES} bytes")
            continue
        try:
            measured = image_size(base64.b64decode(source["data"], validate=True))
        except binascii.Error:
            measured = None
        if measured is None:
            yield _invalid("Could not process image")
        elif max(measured[1:]) > most:
            many = " for many-image requests" if most == MANY_IMAGES_SIDE else ""
            yield _invalid(
                f"{at}.data: At least one of the image dimensions exceed max allowed size{many}: {most} pixels"
            )


def _broken_documents(body: Mapping[str, Any]) -> Iterator[ModelFailure]:
    pages = 0
    for path, block in _of_type("document", body):
        source, at = block["source"], f"{path}.pdf.source.base64"
        if source.get("type") != "base64" or source.get("media_type") != "application/pdf":
            yield _invalid(f"{path}.document.source.base64.media_type: Input should be 'application/pdf'")
            continue
        content = decoded(source.get("data"))
        pages += pdf_pages(content)
        if content is None or not pdf_pages(content):
            yield _invalid(f"{at}.data: The PDF specified was not valid.")
        elif is_locked(content):
            yield _invalid(f"{at}.data: The PDF specified is password protected.")
        elif pages > PDF_PAGES:
            yield _invalid(f"{at}.data: A maximum of {PDF_PAGES} PDF pages may be provided.")


def _blocks(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, message in enumerate(body.get("messages", ())):
        content = message.get("content")
        listed = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
        for index, block in enumerate(listed):
            path = f"messages.{number}.content.{index}"
            yield path, block
            inner = block.get("content") if block.get("type") == "tool_result" else None
            if isinstance(inner, str):
                yield path, {"type": "text", "text": inner}
            elif inner:
                yield from ((f"{path}.tool_result.content.{at}", each) for at, each in enumerate(inner))


def _of_type(kind: str, body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((path, block) for path, block in _blocks(body) if block.get("type") == kind)


def _message(asked: ModelRequest, reply: ModelReply, number: int) -> dict[str, Any]:
    text = "" if isinstance(reply, ModelFailure) else reply.text
    calls = reply.calls if isinstance(reply, ModelAnswer) else ()
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": call.tool, "input": dict(call.arguments)}
        for index, call in enumerate(calls)
    ]
    tokens = (reply.input_tokens, reply.output_tokens) if isinstance(reply, ModelAnswer) else (100, 1)
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": content,
        "stop_reason": (isinstance(reply, ModelAnswer) and reply.ends) or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens[0],
            "output_tokens": tokens[1],
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _block_events(index: int, block: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A content block in pieces, the arguments of a tool call as partial JSON."""
    if block["type"] == "text":
        begun, kind, key, whole = {**block, "text": ""}, "text_delta", "text", block["text"]
    else:
        begun, kind, key, whole = {**block, "input": {}}, "input_json_delta", "partial_json", json.dumps(block["input"])
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    for start in range(0, len(whole), PIECE):
        piece = {"type": kind, key: whole[start : start + PIECE]}
        yield {"type": "content_block_delta", "index": index, "delta": piece}
    yield {"type": "content_block_stop", "index": index}


def _invalid(message: str) -> ModelFailure:
    return ModelFailure(status=400, kind="invalid_request_error", message=message)


def _failure(failure: ModelFailure) -> "web.StreamResponse":
    from aiohttp import web

    told = {"type": "error", "error": {"type": failure.kind, "message": failure.message}, "request_id": "req_0"}
    return web.json_response(told, status=failure.status, headers=failure.headers)
