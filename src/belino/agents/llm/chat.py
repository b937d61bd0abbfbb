"""Chat completions of OpenAI, Groq, Ollama and compatible servers: requests and streamed answers.

Facts are from OpenAI's public API reference; the requests are those of its SDK.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from uuid import uuid4

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
    ResultPart,
    ShownMedia,
    ThoughtPart,
    UserPart,
    WordsPart,
    pack,
)
from belino.agents.llm.prices import Prices, SpentTokens
from belino.domain.turn import ToolSpec

ENDS: dict[str, Ends] = {
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "filter",
    "error": "error",
}
THOUGHT_FIELDS = ("reasoning_content", "reasoning")
AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
# Errors inside an answer have a code or type instead of a status.
STATUSES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "insufficient_quota": 429,
    "context_length_exceeded": 400,
    "service_unavailable": 503,
    "service_unavailable_error": 503,
    "server_is_overloaded": 503,
    "overloaded": 503,
    "server_error": 500,
}
OPEN, CLOSE = "<think>", "</think>"


class ChatClient:
    """One model at one address."""

    def __init__(self, *, name: str, url: str, key: str, max_tokens: int, prices: Prices) -> None:
        self.max_tokens = max_tokens
        self._name = name
        self._prices = prices
        self._http = ModelHttp(f"{url}/chat/completions", {"Authorization": f"Bearer {key}"})

    async def ask(self, asking: Asking) -> AsyncGenerator[str | Completion]:
        """The words of an answer as they come, and the whole; an empty text says that it begins."""
        answer = _ChatAnswer(self._name)
        async with aclosing(self._http.events(self.body(asking))) as events:
            async for event in events:
                if error := event.get("error"):
                    raise _declined(error)
                yield answer.take(event)
        if rest := answer.end():
            yield rest
        yield answer.completion(self._prices)

    async def close(self) -> None:
        await self._http.close()

    def body(self, asking: Asking) -> Json:
        """The request."""
        system: list[Json] = [{"role": "system", "content": text} for text in asking.system]
        body: Json = {
            "model": self._name,
            "stream": True,
            "messages": [*system, *(told for message in asking.messages for told in _messages(message))],
            "max_completion_tokens": self.max_tokens,
            "stream_options": {"include_usage": True},
        }
        if asking.tools:
            body["tool_choice"] = "none" if asking.must_answer else "auto"
            body["tools"] = [_tool(spec) for spec in asking.tools]
        return body


def _tool(spec: ToolSpec) -> Json:
    # Never strict: servers require different schemas for it, and the toolbox checks arguments itself.
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.schema)}
    return {"type": "function", "function": function}


def _messages(message: Message) -> Iterator[Json]:
    if isinstance(message, AnswerMessage):
        yield from _assistant(message)
        return
    # A tool's message holds text only: its media follows, after the last of them, as a user's.
    media: list[Json] = []
    for part in message.parts:
        if isinstance(part, ResultPart):
            yield {"role": "tool", "tool_call_id": part.call, "content": _returned(part)}
            media += _returned_media(part)
    if media:
        yield {"role": "user", "content": media}
    for part in message.parts:
        if isinstance(part, UserPart):
            yield {"role": "user", "content": [_item(item) for item in part.items]}


def _assistant(answer: AnswerMessage) -> Iterator[Json]:
    texts = [part.text for part in answer.parts if isinstance(part, WordsPart) and part.text]
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": _arguments(call)}}
        for call in answer.calls
    ]
    if not texts and not calls:
        return
    told: Json = {"role": "assistant", "content": "\n\n".join(texts) or None}
    for field in THOUGHT_FIELDS:
        thoughts = [part.text for part in answer.parts if isinstance(part, ThoughtPart) and part.origin == field]
        if thoughts:
            told[field] = "\n\n".join(thoughts)
    yield {**told, "tool_calls": calls} if calls else told


def _arguments(call: CallPart) -> str:
    read = call.read()
    return pack({"INVALID_JSON": call.arguments} if read is None else read).decode()


def _returned(result: ResultPart) -> str:
    if result.failed:
        return pack({"error": "\n".join(str(item) for item in result.items)}).decode()
    if not any(isinstance(item, ShownMedia) for item in result.items):
        return "\n".join(str(item) for item in result.items)
    listed = [f"See file {item.ref}." if isinstance(item, ShownMedia) else item for item in result.items]
    return pack(listed).decode() if len(listed) > 1 else listed[0]


def _returned_media(result: ResultPart) -> Iterator[Json]:
    for item in result.items:
        if isinstance(item, ShownMedia):
            head = f'<tool_result tool_name="{result.tool}" tool_call_id="{result.call}" file_id="{item.ref}">'
            yield {"type": "text", "text": head}
            yield _item(item)
            yield {"type": "text", "text": "</tool_result>"}


def _item(item: Item) -> Json:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if item.is_image:
        return {"type": "image_url", "image_url": {"url": f"data:{item.mime};base64,{item.base64}"}}
    if item.mime.startswith("audio/"):
        sound = {"data": item.base64, "format": AUDIO_FORMATS.get(item.mime, item.mime.partition("/")[2])}
        return {"type": "input_audio", "input_audio": sound}
    name = f"filename.{item.mime.partition('/')[2]}"
    return {"type": "file", "file": {"file_data": f"data:{item.mime};base64,{item.base64}", "filename": name}}


def _declined(error: object) -> Declined:
    table = error if isinstance(error, dict) else {}
    code, kind = str(table.get("code") or ""), str(table.get("type") or "")
    status = STATUSES.get(code) or STATUSES.get(kind)
    if status is None and code.isdigit() and 400 <= int(code) < 600:
        status = int(code)  # as OpenRouter writes it
    return Declined(status, error, code=code)


class _Thinking:
    """Separates what some models think, in tags before the answer, from their words."""

    def __init__(self) -> None:
        self._held = ""
        self._thinks = False
        self._thought = False
        self._speaks = False

    def take(self, text: str) -> str:
        """The words in the next piece."""
        if self._speaks:
            return text
        self._held += text
        seen = self._held.lstrip()
        if not self._thinks and not self._thought:
            if len(seen) < len(OPEN) and OPEN.startswith(seen):
                return ""
            self._thinks = seen.startswith(OPEN)
        if self._thinks:
            _, closed, rest = seen.partition(CLOSE)
            if not closed:
                return ""
            # Blank lines between the thoughts and the words belong to neither.
            self._thinks, self._thought, self._held, seen = False, True, rest, rest.lstrip()
        if not self._thought:
            return self.end()
        self._held = seen
        return self.end() if seen else ""

    def end(self) -> str:
        """What was held back and turns out to be words."""
        held = "" if self._thinks else self._held
        self._held, self._speaks = "", True
        return held


class _ChatAnswer:
    """An answer, as its chunks come."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._thinking = _Thinking()
        self._words: list[str] = []
        self._thoughts: dict[str, list[str]] = {}
        self._calls: list[Json] = []
        self._refusal = ""
        self._ends: Ends | None = None
        self._usage: object = None

    def take(self, chunk: Json) -> str:
        """The words of a chunk."""
        self._model = str(chunk.get("model") or self._model)
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices") or []
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        if ended := choice.get("finish_reason"):
            self._ends = ENDS.get(str(ended), "stop")
        delta = choice.get("delta") or {}
        for call in delta.get("tool_calls") or ():
            self._call(call)
        self._refusal += _text(delta, "refusal")
        for field in THOUGHT_FIELDS:
            if thought := _text(delta, field):
                self._thoughts.setdefault(field, []).append(thought)
                break
        words = self._thinking.take(text) if (text := _text(delta, "content")) else ""
        self._words.append(words)
        return words

    def end(self) -> str:
        words = self._thinking.end()
        self._words.append(words)
        return words

    def completion(self, prices: Prices) -> Completion:
        """The whole answer."""
        thoughts = [ThoughtPart(text="".join(texts), origin=field) for field, texts in self._thoughts.items()]
        said = [WordsPart(text=words)] if (words := "".join(self._words)) else []
        calls = [
            CallPart(id=call["id"] or f"call_{uuid4().hex}", tool=call["name"], arguments="".join(call["arguments"]))
            for call in self._calls
        ]
        parts: Sequence[AnswerPart] = [*thoughts, *said, *calls]
        return Completion(
            answer=AnswerMessage(parts=tuple(parts)),
            ends="filter" if self._refusal else self._ends,
            reason=self._refusal,
            usage=prices.usage(_spent(self._usage), self._model),
        )

    def _call(self, delta: Json) -> None:
        """A piece of a tool call; not every server numbers them."""
        function = delta.get("function") or {}
        index, id_, name = delta.get("index"), _text(delta, "id"), _text(function, "name")
        known = next((call for call in self._calls if index is not None and call["index"] == index), None)
        if known is None and index is None and not id_ and self._calls:
            known = self._calls[-1]
        if known is None or (id_ and known["id"] and id_ != known["id"] and name):
            known = {"index": index, "id": "", "name": "", "arguments": []}
            self._calls.append(known)
        known["id"] = known["id"] or id_
        known["name"] = known["name"] or name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = pack(arguments).decode()
        known["arguments"].append(arguments or "")


def _text(table: Json, key: str) -> str:
    value = table.get(key)
    return value if isinstance(value, str) else ""


def _spent(usage: object) -> SpentTokens:
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    return SpentTokens(
        input_tokens=count(usage, "prompt_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        cache_read_tokens=count(details, "cached_tokens"),
        is_known=isinstance(usage, dict),
    )
