"""OpenAI's chat completions, responses and transcriptions on loopback, with their documented rules and error texts.

Facts are from OpenAI's public API documentation: event names and their order, error codes, limits of images, files and
sounds. Groq, Ollama and many others implement the first of them.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from belino.media.image.header import image_size
from belino.testing.models import (
    ModelAnswer,
    ModelFailure,
    ModelReply,
    ModelScript,
    ModelServer,
    event,
    pieces,
    read_form,
    stream,
)
from belino.testing.models.files import decoded, is_locked, pdf_pages, sound_format
from belino.testing.models.speech import broken_form, transcription

if TYPE_CHECKING:
    from aiohttp import web

PDF_PAGES = 100
UNSUPPORTED = (
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
    "['png', 'jpeg', 'gif', 'webp']."
)
Json = dict[str, Any]


class OpenAIServer(ModelServer):
    """`/v1/chat/completions`, `/v1/responses`, `/v1/audio/transcriptions` and `/v1/models/NAME`.

    An SDK's base URL is `url` + `/v1`.
    """

    def __init__(self, script: ModelScript = (), *, key: str = "") -> None:
        super().__init__(script, key=key)
        self._numbers = count(1)

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_post("/v1/audio/transcriptions", self._transcriptions)
        app.router.add_get("/v1/models/{name:.+}", self._model)

    async def _chat(self, request: "web.Request") -> "web.StreamResponse":
        asked, reply = await self.reply_to(request)
        if isinstance(reply, ModelFailure):
            return failed(reply)
        whole = _completion(asked.body, reply, next(self._numbers))
        if not asked.body.get("stream"):
            return await self.deliver(request, reply, whole)
        return await stream(self, request, reply, _chat_said(whole), _chat_ending(whole))

    async def _responses(self, request: "web.Request") -> "web.StreamResponse":
        asked, reply = await self.reply_to(request)
        if isinstance(reply, ModelFailure) and reply.status != 200:
            return failed(reply)
        whole = _response(asked.body, reply, next(self._numbers))
        if not asked.body.get("stream"):
            return await self.deliver(request, reply, whole)
        lines = [event({**line, "sequence_number": at}, named=True) for at, line in enumerate(_response_events(whole))]
        return await stream(self, request, reply, lines[:-1], lines[-1:])

    async def _transcriptions(self, request: "web.Request") -> "web.StreamResponse":
        asked = await read_form(request)
        _, reply = await self.reply_to(request, asked)
        if not isinstance(reply, ModelFailure) and (broken := broken_form(asked)):
            reply = broken
        if isinstance(reply, ModelFailure):
            return failed(reply)
        return await self.deliver(request, reply, transcription(asked, reply))

    async def _model(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        if refused := self._unauthorized(request):
            return failed(refused)
        return web.json_response(
            {"id": request.match_info["name"], "object": "model", "created": 0, "owned_by": "test"}
        )

    def refusal(self, request: "web.Request", body: Mapping[str, Any]) -> ModelFailure | None:
        if request.path.endswith("/transcriptions"):
            return self._unauthorized(request)
        return self._unauthorized(request) or broken_rule(body)

    def _unauthorized(self, request: "web.Request") -> ModelFailure | None:
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return ModelFailure(status=401, kind="invalid_api_key", message="Incorrect API key provided: sk-wr**ng.")
        return None


def failed(failure: ModelFailure) -> "web.StreamResponse":
    """An error in OpenAI's format; `kind` is its code."""
    from aiohttp import web

    kind = "invalid_request_error" if failure.status < 500 else "server_error"
    told = {"message": failure.message, "type": kind, "param": None, "code": failure.kind}
    return web.json_response({"error": told}, status=failure.status, headers=failure.headers)


def images(body: Mapping[str, Any]) -> list[bytes]:
    """The bytes of every picture in a request, in order."""
    return [base64.b64decode(url.partition(",")[2]) for url in _image_urls(body)]


def documents(body: Mapping[str, Any]) -> list[bytes]:
    """The bytes of every file in a request, in order."""
    return [decoded(file.get("file_data", "").partition(",")[2]) or b"" for _, file in _files(body)]


def sounds(body: Mapping[str, Any]) -> list[bytes]:
    """The bytes of every sound in a request, in order."""
    return [decoded(item["input_audio"]["data"]) or b"" for _, item in _items(body) if item["type"] == "input_audio"]


def broken_rule(body: Mapping[str, Any]) -> ModelFailure | None:
    """The API's own refusal of an invalid request."""
    for url in _image_urls(body):
        if not _is_image(url):
            return ModelFailure(status=400, kind="invalid_image_format", message=UNSUPPORTED)
    return _broken_tool_text(body) or _broken_files(body) or _broken_sounds(body) or _unanswered(body)


def _broken_tool_text(body: Mapping[str, Any]) -> ModelFailure | None:
    """A tool's message holds text only; the responses API takes files in outputs."""
    for at, item in _items(body):
        if at.startswith("tool.") and item["type"] != "text":
            text = f"Invalid value: '{item['type']}'. Supported values are: 'text'."
            return ModelFailure(status=400, kind="invalid_value", message=text)
    return None


def _broken_files(body: Mapping[str, Any]) -> ModelFailure | None:
    pages = 0
    for at, file in _files(body):
        head, _, data = str(file.get("file_data", "")).partition(",")
        if not head.startswith("data:application/pdf;base64") or not file.get("filename"):
            text = (
                f"Invalid file data: '{at}.file_data'. Expected a base64-encoded data URL with an application/pdf MIME "
                f"type (e.g. 'data:application/pdf;base64,SGVsbG8='), but got unsupported MIME type '{head[5:60]}'."
            )
            return ModelFailure(status=400, kind="invalid_value", message=text)
        content = decoded(data)
        pages += pdf_pages(content)
        if content is None or not pdf_pages(content) or is_locked(content) or pages > PDF_PAGES:
            return ModelFailure(status=400, kind="invalid_file", message=f"The file in '{at}' could not be processed.")
    return None


def _broken_sounds(body: Mapping[str, Any]) -> ModelFailure | None:
    for _, item in _items(body):
        if item["type"] != "input_audio":
            continue
        sound = item["input_audio"]
        if "input" in body or "audio" not in body["model"]:
            text = "Invalid content type. input_audio is only supported by certain models."
            return ModelFailure(status=400, kind="invalid_value", message=text)
        if sound.get("format") not in ("wav", "mp3"):
            text = f"Invalid value: '{sound.get('format')}'. Supported values are: 'wav' and 'mp3'."
            return ModelFailure(status=400, kind="invalid_value", message=text)
        if sound_format(decoded(sound.get("data"))) != sound["format"]:
            text = "The audio file could not be decoded or its format is not supported."
            return ModelFailure(status=400, kind="invalid_value", message=text)
    return None


def _files(body: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    for at, item in _items(body):
        if item["type"] == "file":
            yield f"{at}.file", item["file"]
        elif item["type"] == "input_file":
            yield at, item


def _items(body: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    """The content items of every message and tool output, with their place."""
    for number, message in enumerate([*body.get("messages", ()), *_input(body)]):
        for key in ("content", "output"):
            content = message.get(key)
            for index, item in enumerate(content if isinstance(content, list) else ()):
                yield f"{message.get('role', 'input')}.messages[{number}].{key}[{index}]", item


def _is_image(url: str) -> bool:
    head, _, data = url.partition(",")
    try:
        return head.startswith("data:image/") and image_size(base64.b64decode(data, validate=True)) is not None
    except binascii.Error:
        return False


def _image_urls(body: Mapping[str, Any]) -> Iterator[str]:
    for _, item in _items(body):
        if item["type"] == "image_url":
            yield item["image_url"]["url"]
        elif item["type"] == "input_image":
            yield item["image_url"]


def _input(body: Mapping[str, Any]) -> list[Json]:
    given = body.get("input", ())
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _unanswered(body: Mapping[str, Any]) -> ModelFailure | None:
    waiting: set[str] = set()
    for message in body.get("messages", ()):
        if message["role"] != "tool" and waiting:
            break
        waiting |= {call["id"] for call in message.get("tool_calls") or ()}
        waiting.discard(message.get("tool_call_id", ""))
    if waiting:
        text = "An assistant message with 'tool_calls' must be followed by tool messages responding to each call."
        return ModelFailure(status=400, kind="invalid_request_error", message=text)
    outputs = {item.get("call_id") for item in _input(body) if item.get("type") == "function_call_output"}
    for item in _input(body):
        if item.get("type") == "function_call" and item["call_id"] not in outputs:
            text = f"No tool output found for function call {item['call_id']}."
            return ModelFailure(status=400, kind="invalid_request_error", message=text)
    return None


def _tokens(reply: ModelReply) -> tuple[int, int]:
    return (reply.input_tokens, reply.output_tokens) if isinstance(reply, ModelAnswer) else (100, 1)


def _ends(reply: ModelReply) -> str:
    return reply.ends if isinstance(reply, ModelAnswer) else ""


def _text(reply: ModelReply) -> str:
    return "" if isinstance(reply, ModelFailure) else reply.text


def _completion(body: Mapping[str, Any], reply: ModelReply, number: int) -> Json:
    calls = [
        {
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(dict(call.arguments))},
        }
        for index, call in enumerate(reply.calls if isinstance(reply, ModelAnswer) else ())
    ]
    message: Json = {"role": "assistant", "content": _text(reply) or None, "refusal": None}
    given, written = _tokens(reply)
    ended = "length" if written >= body.get("max_completion_tokens", written + 1) else "stop"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": {**message, "tool_calls": calls} if calls else message,
                "finish_reason": _ends(reply) or ("tool_calls" if calls else ended),
            }
        ],
        "usage": {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written},
    }


def _chunk(whole: Json, delta: Json, finish: str | None = None) -> bytes:
    head = {key: whole[key] for key in ("id", "created", "model")}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({**head, "object": "chat.completion.chunk", "choices": [choice]})


def _chat_said(whole: Json) -> Iterator[bytes]:
    message = whole["choices"][0]["message"]
    yield _chunk(whole, {"role": "assistant", "content": ""})
    for piece in pieces(message["content"] or ""):
        yield _chunk(whole, {"content": piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        yield _chunk(
            whole, {"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]}
        )
        for piece in pieces(arguments):
            yield _chunk(whole, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


def _chat_ending(whole: Json) -> Iterator[bytes]:
    yield _chunk(whole, {}, whole["choices"][0]["finish_reason"])
    head = {key: whole[key] for key in ("id", "created", "model", "usage")}
    yield event({**head, "object": "chat.completion.chunk", "choices": []})
    yield b"data: [DONE]\n\n"


def _response(body: Mapping[str, Any], reply: ModelReply, number: int) -> Json:
    output: list[Json] = []
    if text := _text(reply):
        content = [{"type": "output_text", "text": text, "annotations": []}]
        output.append(
            {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": content}
        )
    for index, call in enumerate(reply.calls if isinstance(reply, ModelAnswer) else ()):
        output.append(
            {
                "id": f"fc_{number}_{index}",
                "type": "function_call",
                "call_id": f"call_{number}_{index}",
                "name": call.tool,
                "arguments": json.dumps(dict(call.arguments)),
                "status": "completed",
            }
        )
    given, written = _tokens(reply)
    usage = {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + written,
    }
    error = {"code": reply.kind, "message": reply.message} if isinstance(reply, ModelFailure) else None
    short = _ends(reply) == "length" or written >= (body.get("max_output_tokens") or written + 1)
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "failed" if error else "incomplete" if short else "completed",
        "error": error,
        "incomplete_details": {"reason": "max_output_tokens"} if short else None,
        "instructions": None,
        "metadata": {},
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    }


def _response_events(whole: Json) -> Iterator[Json]:
    begun = {**whole, "status": "in_progress", "error": None, "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        yield from _item_events(index, item)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _item_events(index: int, item: Json) -> Iterator[Json]:
    at = {"output_index": index, "item_id": item["id"]}
    empty: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
    yield {
        "type": "response.output_item.added",
        "output_index": index,
        "item": {**item, **empty, "status": "in_progress"},
    }
    if item["type"] == "message":
        part = item["content"][0]
        at["content_index"] = 0
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}
    else:
        for piece in pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
        done = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **at, **done}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}
