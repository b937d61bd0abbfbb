"""A server of one's own as an agent: the signed turn, the answer, retries and limits."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents.http_server import SECRET, OwnServer, own_server
from belino.agents.http import Agent, Config
from belino.agents.http.wire import turn_body
from belino.context.budget import ContextConfig
from belino.domain.choice import PickedChoice
from belino.domain.errors import AgentError, ConfigError
from belino.domain.media import ImageBlock, MediaKind
from belino.domain.message import Author, Quote
from belino.domain.turn import Accepted, Attachment, Final, ReplyPart, TextDelta, ToolNote, Usage
from belino.net.redact import Secret
from belino.testing import AgentTrial, ScriptedAgent, check_agent
from belino.testing.agent_contract import HeldMemory, make_turn
from belino.testing.files import make_pdf
from belino.turns.prompt import LEFT_OUT
from gateway.house import House


def trial(tmp_path: Path, server: OwnServer, **more: Any) -> AgentTrial:
    config = Config(url=server.url, secret=Secret("SECRET", SECRET), **more)
    return AgentTrial(make=lambda: Agent(config), folder=tmp_path, slow="wait", failing="fail")


async def answered(tried: AgentTrial, text: str = "hello", memory: HeldMemory | None = None) -> list[ReplyPart]:
    agent = tried.make()
    try:
        return [part async for part in agent.run_turn(make_turn(tried, text, memory=memory))]
    finally:
        await agent.close()  # type: ignore[attr-defined]


async def plain(_: web.Request, turn: dict[str, Any]) -> web.StreamResponse:
    words = turn["messages"][-1]["text"]
    if words == "wait":
        await asyncio.Event().wait()
    if words == "fail":
        return web.json_response({"error": "no credit is left"})
    return web.json_response({"text": f"{words}, {turn['session']}", "session": "s1", "usage": {"input_tokens": 3}})


async def test_a_server_keeps_the_contract_of_an_agent(tmp_path: Path) -> None:
    async with own_server(plain) as server:
        checked = await check_agent(trial(tmp_path, server, remembers=True))
        assert len(checked) == 6


async def test_a_turn_is_signed_over_its_time_and_body(tmp_path: Path) -> None:
    async with own_server(plain) as server:
        memory = HeldMemory()
        parts = await answered(trial(tmp_path, server), memory=memory)
        assert parts == [Accepted(), Usage(input_tokens=3), Accepted(), Final(text="hello, None")]
        assert (await answered(trial(tmp_path, server), memory=memory))[-1] == Final(text="hello, s1")
        stamp, body = server.headers[0]["X-Belino-Timestamp"], server.bodies[0]
        expected = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        assert server.headers[0]["X-Belino-Signature"] == f"sha256={expected}"
        asked = server.asked[0]
        assert (asked["version"], asked["id"], asked["mcp"]) == (1, "memory:default:main#1", None)
        assert asked["content"] == [{"type": "text", "text": "hello"}]


async def nothing() -> AsyncIterator[bytes]:
    yield b""


async def test_a_reply_and_a_pressed_button_are_in_the_turn(tmp_path: Path) -> None:
    turn = make_turn(AgentTrial(make=lambda: ScriptedAgent([]), folder=tmp_path), "Production")
    sound = Attachment(
        ref="tg_k3v9d0q2m7xa",
        kind=MediaKind.AUDIO,
        name="note",
        mime="audio/ogg",
        caption="listen",
        duration=12.5,
        chunks=nothing,
    )
    quote = Quote(author=Author(id="bob", name="Bob"), message_id="m0", text="Where to?")
    choice = PickedChoice(question_id="q", value="prod", label="Production")
    said = replace(turn.message, attachments=(sound,), reply_to="m0", quote=quote, choice=choice)
    (message,) = json.loads(turn_body(replace(turn, messages=(said,)), "", None))["messages"]
    assert message["quote"] == {"id": "m0", "author": "Bob", "text": "Where to?"} and message["forward"] is None
    assert message["reply_to"] == "m0"
    assert message["choice"] == {"question_id": "q", "value": "prod", "label": "Production"}
    assert (message["media"][0]["caption"], message["media"][0]["duration"]) == ("listen", 12.5)


async def test_events_stream_as_parts_of_the_reply(tmp_path: Path) -> None:
    async def streams(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await stream.prepare(request)
        await stream.write(b': ping\n\nevent: text\r\ndata: {"text":\r\ndata: "Hal')
        await stream.write(b'lo"}\r\n\r\ndata: {"type": "tool", "tool": "search"}\n\n')
        await stream.write(b'event: final\ndata: {"session": "s"}\n\nevent: text\ndata: {"text": "late"}\n\n')
        return stream

    async with own_server(streams) as server:
        assert await answered(trial(tmp_path, server)) == [
            Accepted(),
            TextDelta(text="Hallo"),
            ToolNote(tool="search", text="using search"),
            Accepted(),
            Final(text="Hallo"),
        ]


async def test_a_busy_server_is_asked_again_with_the_same_id_and_a_new_signature(tmp_path: Path) -> None:
    async def busy(request: web.Request, turn: dict[str, Any]) -> web.StreamResponse:
        if len(server.asked) < 3:
            return web.Response(status=503, headers={"Retry-After": "0"})
        return await plain(request, turn)

    async with own_server(busy) as server:
        assert (await answered(trial(tmp_path, server)))[-1] == Final(text="hello, None")
        assert len({asked["id"] for asked in server.asked}) == 1 and len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "asked", "why"), [(401, 1, "signature"), (500, 1, "status 500"), (503, 3, "status 503")]
)
async def test_a_refusal_is_an_error_for_the_operator(tmp_path: Path, status: int, asked: int, why: str) -> None:
    async def refuses(_: web.Request, __: dict[str, Any]) -> web.StreamResponse:
        return web.Response(status=status, headers={"Retry-After": "0"})

    async with own_server(refuses) as server:
        with pytest.raises(AgentError, match=why) as raised:
            await answered(trial(tmp_path, server))
        assert len(server.asked) == asked and raised.value.says


async def test_a_stream_that_breaks_after_its_first_byte_is_not_repeated(tmp_path: Path) -> None:
    async def breaks(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(b'event: text\ndata: {"text": "half"}\n\n')
        assert request.transport is not None
        request.transport.close()
        return stream

    async with own_server(breaks) as server:
        with pytest.raises(AgentError):
            await answered(trial(tmp_path, server))
        assert len(server.asked) == 1


async def test_turns_beyond_the_limit_wait(tmp_path: Path) -> None:
    release, running = asyncio.Event(), list[int]()

    async def holds(request: web.Request, turn: dict[str, Any]) -> web.StreamResponse:
        running.append(len(running))
        await release.wait()
        return await plain(request, turn)

    async with own_server(holds) as server:
        tried = trial(tmp_path, server, max_running=1)
        agent = tried.make()

        async def one(channel: str) -> list[ReplyPart]:
            return [part async for part in agent.run_turn(make_turn(tried, "hello", channel=channel))]

        async with asyncio.TaskGroup() as group:
            first, second = group.create_task(one("one")), group.create_task(one("two"))
            while not running:
                await asyncio.sleep(0)
            assert len(running) == 1
            release.set()
        assert ToolNote(tool="", text="waiting until another conversation is answered") in second.result()
        assert first.result()[-1] == second.result()[-1]
        await agent.close()  # type: ignore[attr-defined]


async def test_pictures_go_with_the_turn_and_files_come_back(tmp_path: Path) -> None:
    async def draws(_: web.Request, turn: dict[str, Any]) -> web.StreamResponse:
        data = turn["content"][-1]["data"]
        files = [{"name": name, "data": data} for name in ("../../p.png", "p.png", "/.hidden")]
        return web.json_response({"text": "here", "files": files})

    async with own_server(draws) as server:
        tried = trial(tmp_path, server)
        agent, turn = tried.make(), make_turn(tried, "draw")
        picture = ImageBlock(mime="image/png", data=b"PNG", ref="web_000000000000", sha256="0" * 64)
        turn = replace(turn, blocks=(*turn.blocks, picture))
        assert [part async for part in agent.run_turn(turn)][-1] == Final(text="here")
        await agent.close()  # type: ignore[attr-defined]
        assert base64.b64decode(server.asked[0]["content"][-1]["data"]) == b"PNG"
        assert turn.outgoing is not None
        assert sorted(path.name for path in turn.outgoing.iterdir()) == ["hidden", "p-2.png", "p.png"]


@pytest.mark.parametrize("reads", [True, False], ids=["reads", "does-not"])
async def test_a_document_goes_to_a_server_that_takes_it_as_it_is(tmp_path: Path, reads: bool) -> None:
    async with own_server(plain) as server:
        house = House(tmp_path / "home")
        house.context = ContextConfig(attach_media="message")
        secret = Secret("SECRET", SECRET)
        house.agent = Agent(Config(url=server.url, secret=secret, reads_documents=reads, hears_audio=reads))
        house.prepare()._far_side.files["f1"] = make_pdf("Tide table")
        async with house.at_work() as gateway:
            message = house.say("when is high tide?")
            ref = replace(house.picture(message, name="tides.pdf"), kind=MediaKind.DOCUMENT, mime="application/pdf")
            await house.ask(gateway, replace(message, media=(ref,)))
        await house.agent.close()
        sent = [block for block in server.asked[0]["content"] if block["type"] == "media"]
        assert [(block["mime"], base64.b64decode(block["data"])[:5]) for block in sent] == (
            [("application/pdf", b"%PDF-")] if reads else []
        )


async def test_what_left_the_memory_of_a_server_is_attached_again(tmp_path: Path) -> None:
    async def shortens(request: web.Request, turn: dict[str, Any]) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        if turn["turn"] == 2:
            await stream.write(b"event: compacted\ndata: {}\n\n")
        await stream.write(b'event: final\ndata: {"text": "done"}\n\n')
        return stream

    async with own_server(shortens) as server:
        house = House(tmp_path / "home")
        config = Config(url=server.url, secret=Secret("SECRET", SECRET), remembers=True)
        house.agent = Agent(config)
        async with house.at_work() as gateway:
            for question in ("first", "second", "third", "fourth"):
                await house.ask(gateway, house.say(question))
        await house.agent.close()
        prompts = ["".join(block["text"] for block in asked["content"]) for asked in server.asked]
        assert ["<<<channel" in prompt for prompt in prompts] == [True, False, True, False]
        assert [LEFT_OUT in prompt for prompt in prompts] == [False, False, True, False]


async def test_the_doctor_says_whether_the_server_is_reached(tmp_path: Path) -> None:
    async with own_server(plain) as server:
        tried = trial(tmp_path, server)
        agent = tried.make()
        assert [finding.ok for finding in await agent.check()] == [True]  # type: ignore[attr-defined]
    assert [finding.ok for finding in await agent.check()] == [False]  # type: ignore[attr-defined]
    await agent.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "http://example.com/turn", "secret": Secret("S", SECRET)},
        {"url": "https://a:b@example.com/", "secret": Secret("S", SECRET)},
        {"url": "https://example.com/"},
        {"url": "https://example.com/", "secret": Secret("S", "short")},
    ],
    ids=["plain", "password", "no secret", "short secret"],
)
def test_a_wrong_setting_is_refused_at_the_start(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Config(**settings)
