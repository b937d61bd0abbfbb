"""Any model answers: each wire format, spoken by the real SDKs to a scripted server on loopback."""

import asyncio
import json
import logging
from contextlib import aclosing
from dataclasses import replace

import pytest

from agents.llm_room import (
    BROKEN,
    KEY,
    LOOKS,
    OTHER_PNG,
    OTHER_REF,
    PATIENCE,
    PHOTO,
    PNG,
    REF,
    SEEN,
    SYSTEM,
    WIRES,
    Memory,
    Shelf,
    Wire,
    messages_in,
    picture,
    played,
    turn,
)
from belino.agents.llm import Agent, Config
from belino.agents.llm.messages import CallPart
from belino.agents.llm.providers import choose
from belino.domain.errors import AgentError, ConfigError
from belino.domain.media import FileBlock
from belino.domain.turn import Compacted, Final, Mishap, Refused, ReplyPart, TextDelta, ToolNote, Usage
from belino.net.redact import Secret
from belino.testing.models import (
    ModelAnswer,
    ModelCut,
    ModelFailure,
    ModelHang,
    ModelRequest,
    ModelServer,
    ModelToolCall,
)

# Google's SDK holds a docstring that a new Python warns of while it compiles it.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*invalid escape sequence:DeprecationWarning"),
]

BUSY = ModelFailure(status=429, kind="rate_limit_exceeded", message="Rate limit reached", headers={"Retry-After": "0"})
DOWN = ModelFailure(status=500, kind="server_error", message="The server had an error", headers={"Retry-After": "0"})


def said(parts: list[ReplyPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


def kinds(parts: list[ReplyPart]) -> list[str]:
    """The order of things, a run of the same kind told once."""
    names = [type(part).__name__ for part in parts]
    return [name for name, before in zip(names, ["", *names], strict=False) if name != before]


async def test_words_come_as_they_are_written_and_the_whole_last(wire: Wire, server: ModelServer) -> None:
    server.script = [ModelAnswer(text="Hello from the other side.", input_tokens=50, output_tokens=9)]
    async with wire.agent(server, instructions="Be brief.") as agent:
        parts = await played(agent, turn("hi"))
    assert kinds(parts) == ["Accepted", "TextDelta", "Usage", "Final"]
    assert len([part for part in parts if isinstance(part, TextDelta)]) > 2
    assert said(parts) == "Hello from the other side."
    assert parts[-1] == Final(text="Hello from the other side.")
    (usage,) = (part for part in parts if isinstance(part, Usage))
    assert (usage.input_tokens, usage.output_tokens) == (50, 9)
    asked = json.dumps(server.asked[0].body)
    assert SYSTEM in asked
    assert asked.index(SYSTEM) < asked.index("Be brief.")


async def test_people_may_choose_another_model_of_the_same_provider(wire: Wire, server: ModelServer) -> None:
    server.script = [ModelAnswer(text="one"), ModelAnswer(text="two")]
    memory, provider = Memory(), wire.model.partition(":")[0]
    async with wire.agent(server) as agent:
        assert agent.why_not(wire.model) == ""
        assert "provider" in agent.why_not("unknown")
        other = "groq:some-model" if provider != "groq" else "openai:gpt-5"
        assert "key is for" in agent.why_not(other)
        await played(agent, turn("hi", memory=memory))
        parts = await played(agent, replace(turn("again", memory=memory, number=2), model=f"{wire.model}-other"))
        remembered, most = await agent.measure(memory.held)
    assert any(isinstance(part, Usage) for part in parts)
    asked = f"{server.asked[1].path} {json.dumps(server.asked[1].body)}"
    assert f"{wire.model.partition(':')[2]}-other" in asked
    assert 0 < remembered < most


async def test_a_tool_is_told_about_called_and_its_answer_given_back(wire: Wire, server: ModelServer) -> None:
    server.script = [LOOKS, SEEN]
    shelf = Shelf()
    async with wire.agent(server) as agent:
        parts = await played(agent, turn(PHOTO, toolbox=shelf))
    assert shelf.calls == [{"ref": REF}]
    assert ToolNote(tool="fetch_media", text="looking at photo.jpg") in parts
    assert kinds(parts) == ["Accepted", "TextDelta", "Usage", "ToolNote", "Accepted", "TextDelta", "Usage", "Final"]
    assert parts[-1] == Final(text="I see a cat.")
    assert said(parts) == "Let me look.\n\nI see a cat."
    usages = [part for part in parts if isinstance(part, Usage)]
    assert usages[-1].input_tokens == 2 * usages[0].input_tokens
    first = json.dumps(server.asked[0].body)
    assert '"additionalProperties": false' in first
    assert '"enum": ["auto", "file"]' in first
    assert "photo.jpg, as asked." in json.dumps(server.asked[1].body)


async def test_pictures_of_a_message_and_of_a_tool_arrive_as_their_bytes(wire: Wire, server: ModelServer) -> None:
    server.script = [LOOKS, SEEN]
    async with wire.agent(server) as agent:
        await played(agent, turn("two pictures", picture(OTHER_REF, OTHER_PNG)))
    assert wire.images(server.asked[0].body) == [OTHER_PNG]
    assert wire.images(server.asked[1].body) == [OTHER_PNG, PNG]


async def test_a_tool_that_refuses_tells_the_model_why(wire: Wire, server: ModelServer) -> None:
    server.script = [ModelAnswer(calls=(ModelToolCall(tool="fetch_media", arguments={"ref": "tg_elsewhere"}),)), SEEN]
    async with wire.agent(server) as agent:
        parts = await played(agent, turn("hi"))
    assert "there is no such media in this channel" in json.dumps(server.asked[1].body)
    assert parts[-1] == Final(text="I see a cat.")


async def test_a_busy_provider_is_asked_again(wire: Wire, server: ModelServer) -> None:
    server.script = [BUSY, DOWN, SEEN]
    async with wire.agent(server) as agent:
        parts = await played(agent, turn("hi"))
    assert parts[-1] == Final(text="I see a cat.")
    assert [kind for kind in kinds(parts) if kind == "Accepted"] == ["Accepted"]
    assert len(server.asked) == 3
    assert [part.what for part in parts if isinstance(part, Mishap)] == ["asked again", "asked again"]


@pytest.mark.parametrize("status", [500, 503, 529])
async def test_a_provider_that_stays_down_is_told_in_a_sentence(wire: Wire, server: ModelServer, status: int) -> None:
    server.script = lambda asked: ModelFailure(status=status, kind="server_error", headers={"Retry-After": "0"})
    async with wire.agent(server) as agent:
        with pytest.raises(AgentError, match=f"status {status}"):
            await played(agent, turn("hi"))
    assert 1 < len(server.asked) <= 4


async def test_nobody_waits_beyond_the_turns_deadline(wire: Wire, server: ModelServer) -> None:
    server.script = [ModelFailure(status=429, kind="rate_limit_exceeded", headers={"Retry-After": "30"})]
    async with wire.agent(server) as agent:
        with pytest.raises(AgentError, match="asks to wait"):
            await played(agent, turn("hi", seconds=10))
    assert len(server.asked) == 1


async def test_a_wrong_key_is_told_without_it(wire: Wire, server: ModelServer) -> None:
    server.key = "another-key"
    async with wire.agent(server) as agent:
        with pytest.raises(AgentError, match="refused the API key") as caught:
            await played(agent, turn("hi"))
        (finding,) = await agent.check()
    assert KEY not in repr(caught.value)
    assert "sk-wr" not in str(caught.value)
    if wire.server.__name__ != "MessagesServer":
        assert not finding.ok
        assert "refuses the API key" in finding.says


async def test_a_stream_that_breaks_off_keeps_the_words_that_were_shown_and_marks_them(
    wire: Wire, server: ModelServer
) -> None:
    server.script = [ModelCut(text="I see a c")]
    memory = Memory()
    async with wire.agent(server) as agent:
        parts = await played(agent, turn("hi", memory=memory))
        assert isinstance(parts[-1], Final)
        assert parts[-1].text == said(parts) and parts[-1].text.endswith(
            "(cut here: the connection to the model broke off)"
        )
        assert parts[-1].text.startswith("I see a") and parts[-1].why
        assert len(server.asked) == 1
        server.script = [SEEN]
        assert (await played(agent, turn("go on", memory=memory, number=2)))[-1] == Final(text="I see a cat.")
    assert "I see a" in messages_in(server.asked[-1])[-2]


async def test_a_stream_that_breaks_off_before_a_word_is_tried_once_more(wire: Wire, server: ModelServer) -> None:
    server.script = [ModelCut(), SEEN, *[ModelCut()] * 4]
    async with wire.agent(server) as agent:
        assert (await played(agent, turn("hi")))[-1] == Final(text="I see a cat.")
        assert len(server.asked) == 2
        with pytest.raises(AgentError):
            await played(agent, turn("hi", number=2))
    # Gemini sends nothing at all before its first words: that is a connection that failed.
    assert len(server.asked) == (6 if wire is WIRES["gemini"] else 4)


async def test_whoever_stops_a_turn_stops_the_model(wire: Wire, server: ModelServer) -> None:
    server.script = [ModelHang(text="I am still writ")]
    async with wire.agent(server) as agent, aclosing(agent.run_turn(turn("hi"))) as parts:
        async with asyncio.timeout(PATIENCE):
            async for part in parts:
                if isinstance(part, TextDelta):
                    break
            await parts.aclose()
            await server.gone.wait()


async def test_a_refused_picture_is_left_out_with_a_note_and_the_turn_goes_on(wire: Wire, server: ModelServer) -> None:
    server.script = [wire.refusal, SEEN, SEEN]
    memory = Memory()
    async with wire.agent(server) as agent:
        parts = await played(agent, turn(PHOTO, picture(), memory=memory))
        await played(agent, turn("and now?", memory=memory, number=2))
    (refused,) = (part for part in parts if isinstance(part, Refused))
    assert refused.ref == REF
    assert refused.why
    assert kinds(parts) == ["Refused", "Accepted", "TextDelta", "Usage", "Final"]
    assert [len(wire.images(asked.body)) for asked in server.asked] == [1, 0, 0]
    assert "[Image: photo.jpg, left out: " in json.dumps(server.asked[1].body)
    assert wire.images(server.asked[2].body) == []
    assert b"iVBOR" not in (memory.held or b"")


async def test_a_refused_picture_of_a_tool_does_not_take_the_others_along(wire: Wire, server: ModelServer) -> None:
    server.script = [LOOKS, wire.refusal, SEEN]
    async with wire.agent(server) as agent:
        parts = await played(agent, turn("look", picture(OTHER_REF, OTHER_PNG)))
    assert [part.ref for part in parts if isinstance(part, Refused)] == [REF]
    assert wire.images(server.asked[2].body) == [OTHER_PNG]
    assert not [part for part in parts if isinstance(part, Compacted)]


async def test_a_bad_picture_of_an_earlier_turn_is_dropped_from_memory(wire: Wire, server: ModelServer) -> None:
    memory = Memory()
    server.script = [SEEN, wire.refusal, SEEN]
    async with wire.agent(server) as agent:
        await played(agent, turn(PHOTO, picture(), memory=memory))
        parts = await played(agent, turn("and?", memory=memory, number=2))
        await played(agent, turn("and?", memory=memory, number=3))
    assert Refused(ref=REF, why=next(p.why for p in parts if isinstance(p, Refused))) in parts
    assert Compacted(only=(REF,)) in parts
    assert [len(wire.images(asked.body)) for asked in server.asked] == [1, 1, 0, 0]


async def test_a_provider_that_blames_pictures_that_are_not_there_is_asked_once(
    wire: Wire, server: ModelServer
) -> None:
    server.script = [wire.refusal, SEEN]
    async with wire.agent(server) as agent:
        with pytest.raises(AgentError):
            await played(agent, turn("hi"))
    assert len(server.asked) == 1


async def test_two_conversations_at_once_never_meet(wire: Wire, server: ModelServer) -> None:
    both = asyncio.Barrier(2)

    class Slow(Shelf):
        async def call(self, name: str, arguments: object) -> tuple:  # type: ignore[type-arg]
            await both.wait()
            return await super().call(name, arguments)  # type: ignore[arg-type]

    def answer(asked: ModelRequest) -> ModelAnswer:
        text = json.dumps(asked.body)
        own = "red" if "canary-red" in text else "blue"
        assert "canary-red" not in text or "canary-blue" not in text
        return ModelAnswer(text=f"{own} it is") if len(messages_in(asked)) > 2 else LOOKS

    server.script = answer
    async with wire.agent(server) as agent, asyncio.TaskGroup() as group:
        red, blue = (
            group.create_task(played(agent, turn(f"canary-{own}", channel=own, toolbox=Slow({REF: png}))))
            for own, png in (("red", PNG), ("blue", OTHER_PNG))
        )
    assert red.result()[-1] == Final(text="red it is")
    assert blue.result()[-1] == Final(text="blue it is")


async def test_the_key_stands_in_no_memory_and_no_log(
    wire: Wire, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    memory = Memory()
    server.script = [DOWN, LOOKS, SEEN]
    async with wire.agent(server) as agent:
        parts = await played(agent, turn(PHOTO, memory=memory))
        assert KEY not in repr(agent) + repr(parts) + repr(vars(agent))
    assert memory.held is not None
    assert KEY.encode() not in memory.held
    assert KEY not in caplog.text
    assert any(KEY in value for value in server.asked[0].headers.values())


async def test_the_doctor_is_told_that_all_is_well(wire: Wire, server: ModelServer) -> None:
    async with wire.agent(server) as agent:
        (finding,) = await agent.check()
    assert finding.ok
    assert not server.asked


async def test_the_doctor_is_told_that_nobody_is_there(wire: Wire, server: ModelServer) -> None:
    agent = Agent(wire.config(server, base_url="http://127.0.0.1:1/v1"))
    (finding,) = await agent.check()
    assert not finding.ok
    assert "cannot be reached" in finding.says
    assert "base_url" in finding.cure


async def test_a_model_that_never_stops_calling_must_answer_in_the_end(chat: ModelServer) -> None:
    chat.script = lambda asked: SEEN if asked.body.get("tool_choice") == "none" else LOOKS
    shelf, memory = Shelf(), Memory()
    async with WIRES["chat"].agent(chat, max_steps=3) as agent:
        parts = await played(agent, turn("hi", toolbox=shelf, memory=memory))
        chat.script = [SEEN]
        await played(agent, turn("and?", memory=memory, number=2))
    assert len(shelf.calls) == 3
    assert parts[-1] == Final(text="I see a cat.")
    assert chat.asked[3].body["tools"] == chat.asked[0].body["tools"]


async def test_calls_against_the_rule_poison_no_memory(chat: ModelServer) -> None:
    chat.script = lambda asked: LOOKS
    memory = Memory()
    async with WIRES["chat"].agent(chat, max_steps=1) as agent:
        parts = await played(agent, turn("hi", memory=memory))
        assert isinstance(parts[-1], Final)
        assert parts[-1].text == "Let me look.\n\n(stopped here: it took too many steps)"
        assert "max_steps" in parts[-1].why
        chat.script = [SEEN]
        assert (await played(agent, turn("and?", memory=memory, number=2)))[-1] == Final(text="I see a cat.")


@pytest.mark.parametrize(
    ("written", "read"), [('{"ref": "x"}', {"ref": "x"}), ("", {}), ("[1]", None), ('{"ref": ', None), ("7", None)]
)
def test_only_an_object_is_taken_for_arguments(written: str, read: dict[str, object] | None) -> None:
    assert CallPart(id="c", tool="fetch_media", arguments=written).read() == read


async def test_a_picture_too_large_for_the_provider_is_never_sent(chat: ModelServer) -> None:
    huge = picture(data=PNG + bytes(20_000_000))
    odd = picture(OTHER_REF, BROKEN, mime="image/tiff")
    async with WIRES["chat"].agent(chat) as agent:
        parts = await played(agent, turn(PHOTO, huge, odd))
    assert [part.ref for part in parts if isinstance(part, Refused)] == [REF, OTHER_REF]
    assert "[Image: photo.jpg, left out: it has over 20000000 bytes]" in json.dumps(chat.asked[0].body)
    assert WIRES["chat"].images(chat.asked[0].body) == []


async def test_a_model_that_sees_nothing_is_given_words(chat: ModelServer) -> None:
    async with WIRES["chat"].agent(chat, sees_images=False) as agent:
        assert not agent.sees_images
        parts = await played(agent, turn("hi", picture()))
    assert Refused(ref=REF, why="this model sees no pictures") in parts
    assert WIRES["chat"].images(chat.asked[0].body) == []


async def test_a_file_is_no_path_to_a_model(chat: ModelServer, tmp_path: object) -> None:
    from pathlib import Path

    block = FileBlock(path=Path("/folder/report.pdf"), mime="application/pdf", ref=REF, sha256="s")
    async with WIRES["chat"].agent(chat) as agent:
        await played(agent, turn(block))
    assert f"[A file that you cannot open: application/pdf, ref:{REF}]" in json.dumps(chat.asked[0].body)
    assert "/folder" not in json.dumps(chat.asked[0].body)


@pytest.mark.parametrize("name", ["chat", "responses", pytest.param("gemini", marks=pytest.mark.slow)])
async def test_an_answer_cut_at_its_limit_says_so(name: str) -> None:
    wire, script = WIRES[name], [ModelAnswer(text="Once upon a", output_tokens=10)]
    async with wire.server(script) as server, wire.agent(server, max_tokens=10) as agent:
        parts = await played(agent, turn("a story"))
    text = "Once upon a\n\n(cut here: the answer became too long)"
    assert parts[-1] == Final(text=text, why="the answer reached max_tokens (10)")
    assert said(parts) == text


@pytest.mark.parametrize("name", ["chat", "responses"])
async def test_an_answer_without_a_word_says_why_and_what_it_cost(name: str) -> None:
    wire = WIRES[name]
    script = [ModelAnswer(ends="length", output_tokens=30), ModelAnswer(output_tokens=7)]
    async with wire.server(script) as server, wire.agent(server) as agent:
        thought = await played(agent, turn("a riddle"))
        empty = await played(agent, turn("another", number=2))
    assert thought[-1] == Final(text="", why="the answer reached max_tokens (32000)")
    assert empty[-1] == Final(text="")
    assert [part.output_tokens for part in (*thought, *empty) if isinstance(part, Usage)] == [30, 7]


async def test_a_server_that_ignores_the_order_to_answer_leaves_a_reason_and_the_cost(chat: ModelServer) -> None:
    chat.script = lambda asked: ModelAnswer(calls=LOOKS.calls)
    async with WIRES["chat"].agent(chat, max_steps=2) as agent:
        parts = await played(agent, turn("hi"))
    assert parts[-1] == Final(text="", why="the model called tools 2 times (max_steps) and did not answer")
    assert [part.output_tokens for part in parts if isinstance(part, Usage)] == [20, 40, 60]


@pytest.mark.parametrize(
    ("model", "tokens"), [("openai:gpt-5-mini", 32_000), ("anthropic:claude-opus-4-1", 32_000), ("openai:gpt-4o", 4096)]
)
def test_a_model_that_thinks_may_write_more(model: str, tokens: int) -> None:
    assert choose(model, base_url=None, api="auto").answer_tokens == tokens


@pytest.mark.slow
async def test_a_filter_that_blames_the_picture_leaves_it_out() -> None:
    wire = WIRES["gemini"]
    async with (
        wire.server([ModelFailure(status=200, kind="IMAGE_SAFETY"), SEEN]) as server,
        wire.agent(server) as agent,
    ):
        parts = await played(agent, turn(PHOTO, picture()))
    assert Refused(ref=REF, why="its content") in parts
    assert parts[-1] == Final(text="I see a cat.")


async def test_a_named_picture_is_left_out_alone() -> None:
    wire = WIRES["anthropic"]
    memory = Memory()
    named = (
        "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size"
    )
    async with (
        wire.server([SEEN, ModelFailure(status=400, message=named), SEEN]) as server,
        wire.agent(server) as agent,
    ):
        await played(agent, turn(PHOTO, picture(), memory=memory))
        parts = await played(agent, turn("another", picture(OTHER_REF, OTHER_PNG), memory=memory, number=2))
    assert [part.ref for part in parts if isinstance(part, Refused)] == [REF]
    assert wire.images(server.asked[2].body) == [OTHER_PNG]


async def test_a_second_refusal_leaves_out_every_picture_and_a_third_ends_the_turn(chat: ModelServer) -> None:
    wire, memory = WIRES["chat"], Memory()
    chat.script = [SEEN, wire.refusal, wire.refusal, SEEN]
    async with wire.agent(chat) as agent:
        await played(agent, turn(PHOTO, picture(), memory=memory))
        parts = await played(agent, turn("another", picture(OTHER_REF, OTHER_PNG), memory=memory, number=2))
        chat.script = lambda asked: wire.refusal
        with pytest.raises(AgentError, match="refused the request"):
            await played(agent, turn("more", picture(), memory=memory, number=3))
    assert [part.ref for part in parts if isinstance(part, Refused)] == [OTHER_REF, REF]
    assert parts[-1] == Final(text="I see a cat.")
    assert [len(wire.images(asked.body)) for asked in chat.asked] == [1, 2, 1, 0, 1, 0]


async def test_what_it_cost_is_known_without_asking_anybody(chat: ModelServer) -> None:
    chat.script = [ModelAnswer(text="hi", input_tokens=1_000_000, output_tokens=0), SEEN]
    async with WIRES["chat"].agent(chat) as agent:
        parts = await played(agent, turn("hi"))
    (usage,) = (part for part in parts if isinstance(part, Usage))
    assert usage.model == "gpt-5-mini"
    assert usage.cost_usd == pytest.approx(0.25)
    async with WIRES["chat"].agent(chat, model="openai:my-own-model") as agent:
        parts = await played(agent, turn("hi"))
    assert next(part for part in parts if isinstance(part, Usage)).cost_usd is None


def test_a_key_is_needed_where_the_provider_asks_for_one() -> None:
    with pytest.raises(ConfigError, match="env:OPENAI_API_KEY"):
        Config(model="openai:gpt-5-mini")
    assert not Agent(Config(model="ollama:qwen3")).sees_images


@pytest.mark.parametrize("model", ["gpt-5", "openai:", "mistral:large", ""])
def test_a_model_that_names_no_provider_is_refused(model: str) -> None:
    with pytest.raises(ConfigError, match="known providers: openai"):
        Config(model=model)


@pytest.mark.parametrize("url", ["ftp://host", "host/v1", "https://user:pass@host/v1", "https://host/v1?key=x"])
def test_an_address_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        Config(model="openai:gpt-5", base_url=url)


@pytest.mark.parametrize(
    ("model", "sees"),
    [
        ("openai:gpt-5-mini", True),
        ("openai:gpt-3.5-turbo", False),
        ("openai:o3-mini", False),
        ("anthropic:claude-haiku-5-5", True),
        ("google:gemini-2.5-flash", True),
        ("groq:llama-3.3-70b-versatile", False),
        ("groq:openai/gpt-oss-120b", False),
        ("groq:meta-llama/llama-4-scout-17b-16e-instruct", True),
        ("ollama:qwen3", False),
        ("ollama:qwen2.5vl:7b", True),
        ("ollama:gemma3:12b", True),
    ],
)
def test_names_tell_who_sees_pictures(model: str, sees: bool) -> None:
    from belino.net.redact import Secret

    assert Agent(Config(model=model, api_key=Secret("KEY", KEY))).sees_images is sees


def test_a_missing_package_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from belino.agents.llm import providers

    monkeypatch.setattr(providers, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'belino\[google\]'"):
        Agent(Config(model="google:gemini-2.5-flash", api_key=Secret("KEY", KEY)))


def test_chat_completions_and_messages_need_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from belino.agents.llm import providers

    monkeypatch.setattr(providers, "find_spec", lambda name: None)
    for model in ("ollama:qwen3", "anthropic:claude-haiku-5-5", "groq:llama"):
        Agent(Config(model=model, api_key=Secret("KEY", KEY)))


async def test_no_proxy_of_the_environment_and_no_redirect_hears_a_word(
    wire: Wire, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with wire.server() as elsewhere, wire.agent(server) as agent:
        server.script = [SEEN]
        assert (await played(agent, turn("hi")))[-1] == Final(text="I see a cat.")
        server.script = lambda asked: ModelFailure(status=307, headers={"Location": f"{elsewhere.url}{asked.path}"})
        with pytest.raises(AgentError, match="cannot be reached"):
            await played(agent, turn("hi", seconds=0))
    assert not elsewhere.asked
