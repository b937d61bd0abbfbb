"""Somebody with a key: the gateway as a user starts it, its agent on a model API that lives on this machine."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from belino.testing import GatewayProcess, make_png
from belino.testing.models import ModelAnswer, ModelHang, ModelReply, ModelRequest, ModelServer, ModelToolCall
from belino.testing.models.anthropic import MessagesServer
from belino.testing.models.openai import OpenAIServer

pytestmark = pytest.mark.slow

KEY = "sk-test-0123456789abcdef"
MAIN = "web:default:main"
PATIENCE = 90.0


def settings(kind: str, server: ModelServer) -> dict[str, Any]:
    """What such a person writes into their configuration."""
    named = {"llm": {"model": "openai:gpt-5-mini", "api": "chat"}, "claude": {"model": "sonnet"}}
    base = f"{server.url}/v1" if kind == "llm" else server.url
    return {"agent": {"kind": kind, "api_key": "env:MODEL_KEY", "base_url": base, **named[kind]}}


@asynccontextmanager
async def started(path: Path, table: Mapping[str, Any]) -> AsyncIterator[GatewayProcess]:
    home = path / "home"
    home.mkdir(mode=0o700)
    (home / "belino.json").write_text(json.dumps(table))
    gateway = GatewayProcess(home, environment={"MODEL_KEY": KEY})
    await asyncio.to_thread(gateway.start)
    try:
        yield gateway
    finally:
        await asyncio.to_thread(gateway.stop)


async def say(gateway: GatewayProcess, text: str, **more: object) -> None:
    body = {"conversation": MAIN, "message": text, **more}
    status, answer = await asyncio.to_thread(gateway.call, "POST", "/api/messages", body)
    assert status == 200, answer


async def answers(gateway: GatewayProcess, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(PATIENCE):
        while True:
            _, page = await asyncio.to_thread(gateway.call, "GET", f"/api/messages?conversation={MAIN}")
            said = [message for message in page["messages"] if message["author"]["is_agent"]]
            if len(said) >= count:
                return said
            await asyncio.sleep(0.05)


def server_of(kind: str) -> ModelServer:
    return OpenAIServer(key=KEY) if kind == "llm" else MessagesServer(key=KEY)


@pytest.mark.parametrize("kind", ["llm", "claude"])
async def test_a_gateway_killed_in_the_middle_of_an_answer_answers_once(tmp_path: Path, kind: str) -> None:
    async with server_of(kind) as server, started(tmp_path, settings(kind, server)) as gateway:
        server.script = lambda _: ModelHang(text="Let me think")
        await say(gateway, "what is it?", id="m1")
        async with asyncio.timeout(PATIENCE):
            while not server.asked:
                await asyncio.sleep(0.02)
        gateway.kill()
        server.script = lambda _: ModelAnswer(text="A whole answer.")
        await asyncio.to_thread(gateway.start)
        said = await answers(gateway, 1)
        await say(gateway, "and now?", id="m2")
        said = await answers(gateway, 2)
        assert [message["text"] for message in said] == ["A whole answer.", "A whole answer."]
        assert said[-1]["usage"]["input_tokens"] > 0 and said[-1]["usage"]["model"]
        assert KEY not in await asyncio.to_thread(gateway.log)


@pytest.mark.parametrize("kind", ["llm", "claude"])
async def test_a_model_sees_the_picture_it_asks_for_and_searches_what_was_said(tmp_path: Path, kind: str) -> None:
    photo = base64.b64encode(make_png(40, 30))
    prefix = "" if kind == "llm" else "mcp__belino__"

    def looks(asked: ModelRequest) -> ModelReply:
        ref = asked.raw.decode().split("image/png, ref:")[1][:16]
        server.script = lambda _: ModelAnswer(text="I see it.")
        return ModelAnswer(calls=(ModelToolCall(tool=f"{prefix}fetch_media", arguments={"ref": ref}),))

    def searches(_: ModelRequest) -> ModelReply:
        server.script = lambda _: ModelAnswer(text="I found it.")
        return ModelAnswer(calls=(ModelToolCall(tool=f"{prefix}channel_context", arguments={"intent": "boiler"}),))

    async with server_of(kind) as server, started(tmp_path, settings(kind, server)) as gateway:
        server.script = looks
        attachment = {"mime_type": "image/png", "file_name": "p.png", "content": photo.decode()}
        await say(gateway, "the boiler is number 4711", attachments=[attachment])
        await answers(gateway, 1)
        assert photo in server.asked[-1].raw
        server.script = searches
        await say(gateway, "find it")
        said = await answers(gateway, 2)
        assert [message["text"] for message in said] == ["I see it.", "I found it."]
        assert "keyword:boiler" in server.asked[-1].raw.decode()
