"""Anthropic's Messages API: requests with cache marks, and streamed answers.

Facts are from Anthropic's public API reference; the requests are those of its SDK.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing

from belino.agents.llm.failures import Declined
from belino.agents.llm.http import ModelHttp, count
from belino.agents.llm.messages import (
    AnswerMessage,
    AnswerPart,
    Asking,
    CallPart,
    Completion,
    Ends,
    Item,
    Json,
    Message,
    ThoughtPart,
    UserPart,
    WordsPart,
    pack,
)
from belino.agents.llm.prices import Prices, SpentTokens

VERSION = "2026-10-21"
CACHED: Json = {"type": "ephemeral", "ttl": "5m"}
ENDS: dict[str, Ends] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tools",
    "refusal": "filter",
}
# https://platform.claude.com/docs/en/api/errors
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
STALE = "The block is bound to a different conversation"
"""Models that think refuse thoughts once something before them changed, such as a picture that left the memory."""
DROP: Json = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


class AnthropicClient:
    """One model at one address."""

    def __init__(self, *, name: str, url: str, key: str, max_tokens: int, prices: Prices) -> None:
        self.max_tokens = max_tokens
        self._name = name
        self._prices = prices
        headers = {"Authorization": f"Bearer {key}", "anthropic-version": VERSION}
        self._http = ModelHttp(f"{url}/v1/messages", headers)

    async def ask(self, asking: Asking) -> AsyncGenerator[str | Completion]:
        """The words of an answer as they come, and the whole; an empty text says that it begins."""
        drops = any(isinstance(message, AnswerMessage) and message.drops_thoughts for message in asking.messages)
        while True:
            try:
                async with aclosing(self._ask(asking, drops=drops)) as parts:
                    async for part in parts:
                        yield part
                return
            except Declined as error:
                if drops or error.status != 400 or STALE not in str(error.body):
                    raise
                drops = True

    async def _ask(self, asking: Asking, *, drops: bool) -> AsyncGenerator[str | Completion]:
        answer = _MessageAnswer(self._name)
        async with aclosing(self._http.events(self.body(asking, drops=drops))) as events:
            async for event in events:
                if event.get("type") == "error":
                    raise _declined(event)
                yield answer.take(event)
        yield answer.completion(self._prices, drops=drops)

    async def close(self) -> None:
        await self._http.close()

    def body(self, asking: Asking, *, drops: bool = False) -> Json:
        """The request; with `drops` thoughts that belong to another history are dropped, not refused."""
        body: Json = {
            "max_tokens": self.max_tokens,
            "messages": [told for message in asking.messages for told in _messages(message)],
            "model": self._name,
            "cache_control": CACHED,
            "stream": True,
        }
        if drops:
            body["thinking"] = DROP
        if asking.system:
            body["system"] = _marked([{"type": "text", "text": text} for text in asking.system])
        if asking.tools:
            body["tool_choice"] = {"type": "none" if asking.must_answer else "auto"}
            body["tools"] = _marked(
                [
                    {"name": spec.name, "description": spec.description, "input_schema": dict(spec.schema)}
                    for spec in asking.tools
                ]
            )
        return body


def _marked(listed: list[Json]) -> list[Json]:
    return [*listed[:-1], {**listed[-1], "cache_control": CACHED}]


def _messages(message: Message) -> Iterator[Json]:
    if isinstance(message, AnswerMessage):
        content = [block for part in message.parts if (block := _answered(part))]
        role = "assistant"
    else:
        content = []
        for part in message.parts:
            if isinstance(part, UserPart):
                content += _items(part.items)
            else:
                result = {"tool_use_id": part.call, "type": "tool_result", "content": _items(part.items)}
                content.append({**result, "is_error": part.failed})
        role = "user"
    if content:
        yield {"role": role, "content": content}


def _answered(part: AnswerPart) -> Json | None:
    match part:
        case WordsPart():
            return {"type": "text", "text": part.text} if part.text.strip() else None
        case CallPart():
            arguments = part.read()
            read = {"INVALID_JSON": part.arguments} if arguments is None else arguments
            return {"id": part.id, "type": "tool_use", "name": part.tool, "input": read}
        case ThoughtPart():
            if part.origin != "anthropic" or not part.signature:
                return None
            if part.redacted:
                return {"type": "redacted_thinking", "data": part.signature}
            return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _items(items: Sequence[Item]) -> list[Json]:
    return [_item(item) for item in items if not isinstance(item, str) or item.strip()]


def _item(item: Item) -> Json:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    source = {"type": "base64", "media_type": item.mime, "data": item.base64}
    return {"type": "image" if item.is_image else "document", "source": source}


def _declined(event: Json) -> Declined:
    error = event.get("error")
    kind = str(error.get("type") or "") if isinstance(error, dict) else ""
    return Declined(STATUSES.get(kind), event)


class _MessageAnswer:
    """An answer, as its events come."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks: dict[int, Json] = {}
        self._ends: Ends | None = None
        self._usage: Json = {}

    def take(self, event: Json) -> str:
        """The words of an event."""
        match event.get("type"):
            case "message_start":
                message = event.get("message") or {}
                self._model = str(message.get("model") or self._model)
                self._count(message.get("usage"))
            case "content_block_start":
                block = dict(event.get("content_block") or {})
                self._blocks[count(event, "index")] = {**block, "pieces": []}
                return str(block.get("text") or "")
            case "content_block_delta":
                return self._add(self._blocks.get(count(event, "index"), {"pieces": []}), event.get("delta") or {})
            case "message_delta":
                if ended := (event.get("delta") or {}).get("stop_reason"):
                    self._ends = ENDS.get(str(ended), "stop")
                self._count(event.get("usage"))
            case _:
                pass
        return ""

    def _add(self, block: Json, delta: Json) -> str:
        match delta.get("type"):
            case "text_delta":
                block["pieces"].append(str(delta.get("text") or ""))
                return str(delta.get("text") or "")
            case "thinking_delta":
                block["pieces"].append(str(delta.get("thinking") or ""))
            case "input_json_delta":
                block["pieces"].append(str(delta.get("partial_json") or ""))
            case "signature_delta":
                block["signature"] = str(block.get("signature") or "") + str(delta.get("signature") or "")
            case _:
                pass
        return ""

    def _count(self, usage: object) -> None:
        """Numbers of tokens are totals: a later one replaces an earlier one."""
        if isinstance(usage, dict):
            self._usage |= {key: value for key, value in usage.items() if isinstance(value, int)}

    def completion(self, prices: Prices, *, drops: bool) -> Completion:
        """The whole answer."""
        parts = [part for _, block in sorted(self._blocks.items()) if (part := _part(block))]
        read, written = count(self._usage, "cache_read_input_tokens"), count(self._usage, "cache_creation_input_tokens")
        spent = SpentTokens(
            input_tokens=count(self._usage, "input_tokens") + read + written,
            output_tokens=count(self._usage, "output_tokens"),
            cache_read_tokens=read,
            cache_write_tokens=written,
            is_known=bool(self._usage),
        )
        return Completion(
            answer=AnswerMessage(parts=tuple(parts), drops_thoughts=drops),
            ends=self._ends,
            reason="refusal" if self._ends == "filter" else "",
            usage=prices.usage(spent, self._model),
        )


def _part(block: Json) -> AnswerPart | None:
    written = "".join(block["pieces"])
    match block.get("type"):
        case "text":
            return WordsPart(text=f"{block.get('text') or ''}{written}")
        case "tool_use":
            arguments = written or pack(block.get("input") or {}).decode()
            return CallPart(id=str(block.get("id")), tool=str(block.get("name")), arguments=arguments)
        case "thinking":
            text = f"{block.get('thinking') or ''}{written}"
            return ThoughtPart(text=text, origin="anthropic", signature=str(block.get("signature") or ""))
        case "redacted_thinking":
            return ThoughtPart(text="", origin="anthropic", signature=str(block.get("data") or ""), redacted=True)
        case _:
            return None
