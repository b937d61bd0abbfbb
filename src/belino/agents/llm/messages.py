"""Messages of a conversation with a model, in no provider's format, and as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
import pybase64

from belino.domain.turn import ToolSpec, Usage

Json = dict[str, Any]
Ends = Literal["stop", "length", "tools", "filter", "error"]

_URL_SAFE = str.maketrans("-_", "+/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMedia:
    """A picture, sound or document, kept as requests and memory have it: in base64."""

    ref: str
    mime: str
    base64: str

    @classmethod
    def of(cls, ref: str, mime: str, data: bytes) -> "ShownMedia":
        return cls(ref=ref, mime=mime, base64=pybase64.b64encode_as_string(data))

    @property
    def data(self) -> bytes:
        return pybase64.b64decode(self.base64)

    @property
    def size(self) -> int:
        """Its bytes, before base64."""
        return len(self.base64) // 4 * 3 - self.base64[-2:].count("=")

    @property
    def is_image(self) -> bool:
        return self.mime.startswith("image/")


Item = str | ShownMedia


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPart:
    """What a person says."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPart:
    """What a tool returned."""

    call: str
    """The id of the call."""
    tool: str
    items: tuple[Item, ...]
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMessage:
    """What the model is told."""

    parts: tuple[UserPart | ResultPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsPart:
    """Words of the model."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtPart:
    """What a model thought before it answered, where the provider wants it back."""

    text: str
    origin: str
    """`anthropic`, or the field of a chat message."""
    signature: str = ""
    redacted: bool = False
    """Only the signature can be sent back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPart:
    """A tool call; the arguments are JSON as the model wrote it."""

    id: str
    tool: str
    arguments: str

    def read(self) -> dict[str, object] | None:
        """The arguments; None if the model did not write an object."""
        try:
            found = unpack(self.arguments or "{}")
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


AnswerPart = WordsPart | ThoughtPart | CallPart


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMessage:
    """What the model answered."""

    parts: tuple[AnswerPart, ...]
    native: Json | None = None
    """The same in the form of pydantic-ai, with what only its provider understands."""
    drops_thoughts: bool = False
    """The provider dropped thoughts that belong to another history, and wants to be asked for that again."""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, WordsPart))

    @property
    def calls(self) -> list[CallPart]:
        return [part for part in self.parts if isinstance(part, CallPart)]

    def without_calls(self) -> "AnswerMessage":
        """The answer without tool calls that were never run: every provider would refuse them in the history."""
        if not self.calls:
            return self
        parts = tuple(part for part in self.parts if not isinstance(part, CallPart))
        return AnswerMessage(parts=parts or (WordsPart(text="(nothing)"),), drops_thoughts=self.drops_thoughts)


Message = RequestMessage | AnswerMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One request to a model."""

    messages: Sequence[Message]
    system: Sequence[str]
    tools: Sequence[ToolSpec]
    must_answer: bool = False
    """The model may call no tool. They stay in the request: without them caches miss, and Anthropic refuses a history
    that used them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A whole answer, and how it ended."""

    answer: AnswerMessage
    ends: Ends | None
    """None if the stream broke off."""
    usage: Usage
    reason: str = ""
    """Why a filter blocked it."""


def pack(value: object) -> bytes:
    """A value as compact JSON; half a character is replaced."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def unpack(text: bytes | str) -> Any:
    """The value of JSON; ValueError if it is none."""
    try:
        return orjson.loads(text)
    except ValueError:
        # What orjson refuses and others accept: half a character, a huge number.
        return json.loads(json.dumps(json.loads(text), ensure_ascii=False).encode(errors="replace"))


def to_json(message: Message) -> Json:
    """A message as it is remembered."""
    if isinstance(message, RequestMessage):
        return {"told": [_told_json(part) for part in message.parts]}
    told: Json = {"answer": [_answer_json(part) for part in message.parts]}
    if message.native is not None:
        told["native"] = message.native
    return {**told, "drops_thoughts": True} if message.drops_thoughts else told


def from_json(told: Mapping[str, Any]) -> Message:
    """A message that was remembered; ValueError, LookupError, TypeError or AttributeError if it is none."""
    if "kind" in told:
        return _from_pydantic(told)
    if "told" in told:
        return RequestMessage(parts=tuple(_told_part(part) for part in told["told"]))
    return AnswerMessage(
        parts=tuple(_answer_part(part) for part in told["answer"]),
        native=told.get("native"),
        drops_thoughts=bool(told.get("drops_thoughts")),
    )


def _told_json(part: UserPart | ResultPart) -> Json:
    items = [
        item if isinstance(item, str) else {"ref": item.ref, "mime": item.mime, "data": item.base64}
        for item in part.items
    ]
    if isinstance(part, UserPart):
        return {"asked": items}
    return {"result": items, "call": part.call, "tool": part.tool, "failed": part.failed}


def _told_part(told: Mapping[str, Any]) -> UserPart | ResultPart:
    if "asked" in told:
        return UserPart(items=_items(told["asked"]))
    return ResultPart(
        call=str(told["call"]), tool=str(told["tool"]), items=_items(told["result"]), failed=bool(told["failed"])
    )


def _items(told: Sequence[Any]) -> tuple[Item, ...]:
    return tuple(
        item if isinstance(item, str) else ShownMedia(ref=item["ref"], mime=item["mime"], base64=item["data"])
        for item in told
    )


def _answer_json(part: AnswerPart) -> Json:
    match part:
        case WordsPart():
            return {"text": part.text}
        case CallPart():
            return {"call": part.id, "tool": part.tool, "arguments": part.arguments}
        case ThoughtPart():
            told: Json = {"thought": part.text, "origin": part.origin, "signature": part.signature}
            return {**told, "redacted": True} if part.redacted else told


def _answer_part(told: Mapping[str, Any]) -> AnswerPart:
    if "text" in told:
        return WordsPart(text=told["text"])
    if "call" in told:
        return CallPart(id=told["call"], tool=told["tool"], arguments=told["arguments"])
    return ThoughtPart(
        text=told["thought"], origin=told["origin"], signature=told["signature"], redacted=bool(told.get("redacted"))
    )


def _from_pydantic(told: Mapping[str, Any]) -> Message:
    """A message of a memory that versions before 0.10 wrote, or of an answer that came through pydantic-ai."""
    if told["kind"] == "request":
        found = [_pydantic_told(part) for part in told["parts"]]
        return RequestMessage(parts=tuple(part for part in found if part is not None))
    if told["kind"] != "response":
        raise ValueError("no message")
    return answer_of_native(dict(told))


def answer_of_native(native: Json) -> AnswerMessage:
    """An answer in the form of pydantic-ai."""
    found = [_pydantic_answer(part) for part in native["parts"]]
    return AnswerMessage(parts=tuple(part for part in found if part is not None), native=native)


def _pydantic_told(part: Mapping[str, Any]) -> UserPart | ResultPart | None:
    content: Any = part.get("content")
    listed: list[Any] = content if isinstance(content, list) else [content]
    items = tuple(
        item
        if isinstance(item, str)
        # pydantic writes base64 for URLs.
        else ShownMedia(ref=item["identifier"], mime=item["media_type"], base64=item["data"].translate(_URL_SAFE))
        for item in listed
        if isinstance(item, str) or item.get("kind") == "binary"
    )
    match part["part_kind"]:
        case "user-prompt":
            return UserPart(items=items)
        case "tool-return":
            failed = part.get("outcome") == "failed"
            return ResultPart(call=part["tool_call_id"], tool=part["tool_name"], items=items, failed=failed)
        case _:
            return None


def _pydantic_answer(part: Mapping[str, Any]) -> AnswerPart | None:
    match part["part_kind"]:
        case "text":
            return WordsPart(text=part["content"])
        case "tool-call":
            arguments = part.get("args")
            written = arguments if isinstance(arguments, str) else pack(arguments or {}).decode()
            return CallPart(id=part["tool_call_id"], tool=part["tool_name"], arguments=written)
        case "thinking":
            anthropic = part.get("provider_name") == "anthropic"
            return ThoughtPart(
                text=part.get("content") or "",
                origin="anthropic" if anthropic else str(part.get("id") or ""),
                signature=part.get("signature") or "",
                redacted=anthropic and part.get("id") == "redacted_thinking",
            )
        case _:
            return None
