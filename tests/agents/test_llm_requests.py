"""The requests of belino's own clients, beside those of the providers' libraries."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agents.llm_room import FETCH, KEY, OTHER_REF, PNG, REF, SYSTEM, WIRES
from belino.agents.llm.anthropic import AnthropicClient
from belino.agents.llm.chat import ChatClient
from belino.agents.llm.failures import Cut, Declined, ModelError, NotAnAnswer, check_whole
from belino.agents.llm.messages import (
    AnswerMessage,
    Asking,
    CallPart,
    Completion,
    Message,
    RequestMessage,
    ResultPart,
    ShownMedia,
    ThoughtPart,
    UserPart,
    WordsPart,
    from_json,
    to_json,
)
from belino.agents.llm.prices import Prices
from belino.testing.files import make_pdf
from belino.testing.models import ModelFailure, ModelRaw, ModelRequest, ModelServer
from belino.testing.models.openai import OpenAIServer

if TYPE_CHECKING:
    from aiohttp import web

TOKENS = 4096
PICTURE = ShownMedia.of(REF, "image/png", PNG)
HISTORY: Sequence[Message] = (
    RequestMessage(parts=(UserPart(items=("what is this?", PICTURE, "and this?")),)),
    AnswerMessage(
        parts=(
            WordsPart(text="Let me look."),
            CallPart(id="c1", tool="fetch_media", arguments='{"ref": "web_x", "as": "auto"}'),
            CallPart(id="c2", tool="fetch_media", arguments=""),
            CallPart(id="c3", tool="fetch_media", arguments='{"ref": '),
        )
    ),
    RequestMessage(
        parts=(
            ResultPart(call="c1", tool="fetch_media", items=("photo.jpg, as asked.", PICTURE)),
            ResultPart(call="c2", tool="fetch_media", items=("it needs a ref",), failed=True),
            ResultPart(call="c3", tool="fetch_media", items=("two words",)),
        )
    ),
    AnswerMessage(parts=(WordsPart(text="A cat."),)),
    RequestMessage(parts=(UserPart(items=("Earlier turns were left out.",)), UserPart(items=("Thank you – ☂",)))),
)


def asking(messages: Sequence[Message] = HISTORY, **more: Any) -> Asking:
    return Asking(messages=messages, system=(SYSTEM, "Be kind."), tools=(FETCH,), **more)


def own(server: ModelServer, name: str) -> ChatClient | AnthropicClient:
    wire = WIRES[name]
    kind = AnthropicClient if name == "anthropic" else ChatClient
    url, (provider, _, model) = server.url + wire.path, wire.model.partition(":")
    return kind(name=model, url=url, key=KEY, max_tokens=TOKENS, prices=Prices(provider, url))


async def sent_by_us(server: ModelServer, name: str, asked: Asking) -> ModelRequest:
    client = own(server, name)
    try:
        parts = [part async for part in client.ask(asked)]
    finally:
        await client.close()
    assert isinstance(parts[-1], Completion)
    return server.asked[-1]


async def sent_by_the_library(server: ModelServer, name: str, asked: Asking) -> ModelRequest:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    from belino.agents.llm.sdk import parameters, sdk_messages

    wire = WIRES[name]
    url, model = server.url + wire.path, wire.model.partition(":")[2]
    settings: Any = {"max_tokens": TOKENS, "max_retries": 0, "cache": True}
    if asked.must_answer:
        settings["tool_choice"] = "none"
    client: Any
    if name == "anthropic":
        client = AnthropicModel(model, provider=AnthropicProvider(api_key=KEY, base_url=url))
    else:
        profile = OpenAIModelProfile(openai_supports_strict_tool_definition=False)
        client = OpenAIChatModel(model, provider=OpenAIProvider(api_key=KEY, base_url=url), profile=profile)
    async with client, client.request_stream(sdk_messages(asked.messages), settings, parameters(asked)) as stream:
        async for _ in stream:
            pass
    return server.asked[-1]


@pytest.mark.parametrize("name", ["chat", "anthropic"])
@pytest.mark.parametrize("must_answer", [False, True])
async def test_the_same_history_makes_the_same_request(name: str, must_answer: bool) -> None:
    async with WIRES[name].server(key=KEY) as server:
        asked = asking(must_answer=must_answer)
        ours, theirs = await sent_by_us(server, name, asked), await sent_by_the_library(server, name, asked)
    assert ours.body == theirs.body
    assert ours.path == theirs.path
    for header in ("authorization", "anthropic-version", "content-type"):
        assert ours.headers.get(header) == theirs.headers.get(header)


@pytest.mark.parametrize("name", ["chat", "anthropic"])
async def test_documents_are_sent_as_the_library_sends_them(name: str) -> None:
    document = ShownMedia.of(OTHER_REF, "application/pdf", make_pdf("one page"))
    async with WIRES[name].server(key=KEY) as server:
        asked = asking([RequestMessage(parts=(UserPart(items=("read this", document)),))])
        ours, theirs = await sent_by_us(server, name, asked), await sent_by_the_library(server, name, asked)
    assert ours.body == theirs.body


def chunks(*lines: dict[str, Any] | str) -> ModelRaw:
    """A stream of these events."""
    data = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return ModelRaw(body="".join(f"data: {each}\r\n\r\n" for each in data).encode(), content_type="text/event-stream")


def delta(finish: str | None = None, **told: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": told, "finish_reason": finish}], "usage": None}


class RawServer(OpenAIServer):
    """Streams exactly the scripted bytes."""

    async def _chat(self, request: "web.Request") -> "web.StreamResponse":
        _, reply = await self.reply_to(request)
        return await self.deliver(request, reply, {})


async def answered(*lines: dict[str, Any] | str) -> list[str | Completion]:
    """What our client makes of a stream."""
    async with RawServer([chunks(*lines)]) as server:
        client = own(server, "chat")
        try:
            return [part async for part in client.ask(asking()) if part]
        finally:
            await client.close()


async def test_what_a_model_thinks_in_tags_is_not_said() -> None:
    pieces = ["\n", "<th", "ink>Hm", "m. </thi", "nk>\n", "\n", "A ", "cat <think> stays."]
    *said, whole = await answered(*(delta(content=piece) for piece in pieces), delta("stop"), "[DONE]")
    assert "".join(str(text) for text in said) == "A cat <think> stays."
    assert isinstance(whole, Completion) and whole.answer.text == "A cat <think> stays."


async def test_a_short_answer_that_only_looks_like_a_tag_is_said() -> None:
    *said, _ = await answered(delta(content="<thi"), delta("stop"))
    assert said == ["<thi"]


async def test_thoughts_in_a_field_are_sent_back_in_it() -> None:
    whole = (await answered(delta(reasoning_content="Hm"), delta(reasoning_content="m."), delta("stop", content="A")))[
        -1
    ]
    assert isinstance(whole, Completion)
    assert whole.answer.parts == (ThoughtPart(text="Hmm.", origin="reasoning_content"), WordsPart(text="A"))
    async with WIRES["chat"].server() as server:
        sent = await sent_by_us(server, "chat", asking([*HISTORY, whole.answer]))
    assert sent.body["messages"][-1] == {"role": "assistant", "content": "A", "reasoning_content": "Hmm."}


async def test_tool_calls_of_servers_that_number_none_or_all_alike_are_told_apart() -> None:
    calls = [
        {"id": "a", "function": {"name": "fetch_media", "arguments": {"ref": "x"}}},
        {"id": "b", "function": {"name": "fetch_media", "arguments": '{"ref":'}},
        {"function": {"arguments": ' "y"}'}},
        {"index": 0, "id": "c", "function": {"name": "fetch_media", "arguments": ""}},
        {"index": 0, "id": "d", "function": {"name": "fetch_media", "arguments": ""}},
    ]
    whole = (await answered(*(delta(tool_calls=[call]) for call in calls), delta("tool_calls")))[-1]
    assert isinstance(whole, Completion)
    assert [(call.id, call.read()) for call in whole.answer.calls] == [
        ("a", {"ref": "x"}), ("b", {"ref": "y"}), ("c", {}), ("d", {}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ((delta(content="A"),), Cut),
        (("no JSON",), NotAnAnswer),
        (({"error": {"message": "busy", "code": 502}},), Declined),
        ((), Cut),
    ],
)
async def test_a_stream_that_is_no_answer_is_an_error(lines: tuple[Any, ...], kind: type[ModelError]) -> None:
    with pytest.raises(kind):
        whole = (await answered(*lines))[-1]
        assert isinstance(whole, Completion)
        check_whole(whole)


async def test_a_refusal_is_the_reason_that_there_is_no_answer() -> None:
    whole = (await answered(delta(refusal="I cannot "), delta("stop", refusal="do that.")))[-1]
    assert isinstance(whole, Completion)
    assert (whole.ends, whole.reason) == ("filter", "I cannot do that.")


async def test_half_a_character_is_replaced() -> None:
    whole = (await answered('{"choices":[{"delta":{"content":"a\\ud83d"},"finish_reason":"stop"}]}'))[-1]
    assert isinstance(whole, Completion) and whole.answer.text == "a?"


async def test_thoughts_of_another_history_are_dropped_on_the_second_attempt_and_from_then_on() -> None:
    thought = ThoughtPart(text="Hmm.", origin="anthropic", signature="s1")
    hidden = ThoughtPart(text="", origin="anthropic", signature="s2", redacted=True)
    history = [*HISTORY, AnswerMessage(parts=(thought, hidden, WordsPart(text="A cat."))), HISTORY[0]]
    stale = ModelFailure(
        status=400,
        kind="invalid_request_error",
        message="messages.5.content.0: The block is bound to a different conversation prefix.",
    )
    async with WIRES["anthropic"].server([stale], key=KEY) as server:
        client = own(server, "anthropic")
        parts = [part async for part in client.ask(asking(history))]
        whole = parts[-1]
        assert isinstance(whole, Completion)
        assert [part async for part in client.ask(asking([*history, whole.answer, HISTORY[0]]))]
        await client.close()
    first, *others = [asked.body for asked in server.asked]
    assert first["messages"][5]["content"][:2] == [
        {"type": "thinking", "thinking": "Hmm.", "signature": "s1"},
        {"type": "redacted_thinking", "data": "s2"},
    ]
    assert "thinking" not in first and len(others) == 2
    for body in others:
        assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert isinstance(from_json(to_json(whole.answer)), AnswerMessage)
    assert from_json(to_json(whole.answer)) == whole.answer
