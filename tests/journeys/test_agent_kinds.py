"""The same journey with every kind of agent: it sees, reads, hears, searches, sends, is stopped, killed and resumed."""

import asyncio
import base64
import hashlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from belino.testing import GatewayProcess, make_png, make_wav
from journeys.agent_kinds import KEY, KINDS, MAIN, AgentKind
from journeys.scribe import SAID, Scribe
from tools.papers import line, make_pages

pytestmark = pytest.mark.slow

PATIENCE = 60.0
PICTURE = make_png(40, 30)
SEEN = f"I see image/png {hashlib.sha256(PICTURE).hexdigest()[:8]}"


@asynccontextmanager
async def started(
    path: Path, table: Mapping[str, Any], environment: Mapping[str, str], more: Mapping[str, Any] | None = None
) -> AsyncIterator[GatewayProcess]:
    """A gateway with this agent; it is stopped at the end."""
    home = path / "home"
    home.mkdir(mode=0o700)
    (home / "belino.json").write_text(json.dumps({"agent": table, **(more or {})}))
    gateway = GatewayProcess(home, environment=environment)
    await asyncio.to_thread(gateway.start)
    try:
        yield gateway
    finally:
        await asyncio.to_thread(gateway.stop)


async def say(gateway: GatewayProcess, text: str, *files: tuple[str, str, bytes]) -> None:
    attachments = [
        {
            "mime_type": mime,
            "file_name": name,
            "content": base64.b64encode(content).decode(),
            "voice": mime.startswith("audio/"),
        }
        for name, mime, content in files
    ]
    body = {"conversation": str(MAIN), "message": text, "attachments": attachments}
    status, answer = await asyncio.to_thread(gateway.call, "POST", "/api/messages", body)
    assert status == 200, answer


async def answers(gateway: GatewayProcess, count: int) -> list[dict[str, Any]]:
    """The agent's messages, as soon as there are so many."""
    async with asyncio.timeout(PATIENCE):
        while True:
            _, page = await asyncio.to_thread(gateway.call, "GET", f"/api/messages?conversation={MAIN}")
            said = [message for message in page["messages"] if message["author"]["is_agent"]]
            if len(said) >= count:
                return said
            await asyncio.sleep(0.05)


class Journey:
    """A conversation with one agent; every answer is expected in its order, and no other comes."""

    def __init__(self, gateway: GatewayProcess, agent: AgentKind) -> None:
        self.gateway = gateway
        self.agent = agent
        self.count = 0
        self.said: list[dict[str, Any]] = []

    async def ask(self, text: str, *files: tuple[str, str, bytes], answers_in: int = 1) -> dict[str, Any]:
        await say(self.gateway, text, *files)
        return await self.answered(answers_in)

    async def answered(self, answers_in: int = 1) -> dict[str, Any]:
        self.count += answers_in
        self.said = await answers(self.gateway, self.count)
        assert len(self.said) == self.count, [message["text"] for message in self.said]
        return self.said[-1]

    async def wait(self) -> str:
        """Let the agent work on something; returns the token of its turn, if it has one."""
        self.agent.flag.unlink(missing_ok=True)
        await say(self.gateway, "wait for it")
        async with asyncio.timeout(PATIENCE):
            while not self.agent.flag.exists() or not (token := self.agent.flag.read_text()):
                await asyncio.sleep(0.02)
        return token

    async def opens(self, token: str) -> bool:
        status, _ = await asyncio.to_thread(self.gateway.call, "POST", "/mcp/turn", {}, token=token)
        return status != 401


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_agent_makes_the_same_journey(tmp_path: Path, kind: str) -> None:
    agent, scribe = KINDS[kind](tmp_path), Scribe(tmp_path)
    scribe.says("transcribe", SAID)
    paths = [each["PYTHONPATH"] for each in (agent.environment, scribe.environment) if "PYTHONPATH" in each]
    environment = {**agent.environment, **scribe.environment, "PYTHONPATH": os.pathsep.join(paths)}
    more = {
        "context": {"attach_media": "never"},
        "tools": {
            "media": {
                "audio": {"models": [{"provider": "scribe"}]},
                **{other: {"enabled": False} for other in ("image", "video", "document")},
            }
        },
    }
    async with agent.running(), started(tmp_path, agent.table(), environment, more) as gateway:
        journey = Journey(gateway, agent)
        await say(gateway, "what is in the picture? the boiler is number 4711", ("p.png", "image/png", PICTURE))
        async with agent.connected():
            first = await journey.answered()
            assert first["text"] == SEEN
            assert not agent.counts_usage or (first["usage"]["input_tokens"] > 0 and first["usage"]["model"])
            await sees_and_sends(journey)
            session = await is_stopped(journey)
            token = await journey.wait()
            await asyncio.to_thread(gateway.kill)
        await asyncio.to_thread(gateway.start)
        async with agent.connected():
            assert (await journey.answered())["text"] == "waited"
            assert not await journey.opens(token)
            assert (await journey.ask("and now?"))["text"] == session
        log = await asyncio.to_thread(gateway.log)
        assert "Traceback" not in log and KEY not in log


async def sees_and_sends(journey: Journey) -> None:
    pages = make_pages(line("The first page"), line("Invoice 4711"))
    read = (await journey.ask("read the page", ("p.pdf", "application/pdf", pages)))["text"]
    assert "Invoice 4711" in read and "The first page" not in read
    heard = await journey.ask("the voice note", ("v.wav", "audio/wav", make_wav(1)))
    assert heard["text"] == f"I heard: {SAID}"
    assert "keyword:boiler" in (await journey.ask("find it"))["text"]
    await journey.ask("draw something", answers_in=2)
    assert sorted(message["text"] for message in journey.said[-2:]) == ["", "Here it is."]
    assert [len(message["media"]) for message in journey.said[-2:] if not message["text"]] == [1]


async def is_stopped(journey: Journey) -> str:
    """Stop it while it works; returns what it says next, which ends the wait for the stopped turn."""
    token = await journey.wait()
    assert (await journey.ask("/stop"))["text"] == journey.agent.stopped
    session = str((await journey.ask("which session?"))["text"])
    assert not await journey.opens(token)
    return session


async def given(gateway: GatewayProcess, wait: int) -> list[dict[str, Any]]:
    """What a client of the channel gets that connects now."""
    body = {"conversation": str(MAIN), "wait": wait}
    status, told = await asyncio.to_thread(gateway.call, "POST", "/api/channel/next", body)
    assert status == 200, told
    events: list[dict[str, Any]] = told["events"]
    return events


async def test_a_killed_gateway_gives_a_channel_what_it_has_not_acknowledged(tmp_path: Path) -> None:
    async with started(tmp_path, {"kind": "channel"}, {}) as gateway:
        await say(gateway, "are you there?")
        (first,) = await given(gateway, 30)
        gateway.kill()
        await asyncio.to_thread(gateway.start)
        (again,) = await given(gateway, 30)
        assert again == first and again["message"]["content"] == "are you there?"
        body = {"conversation": str(MAIN), "seq": first["seq"]}
        status, _ = await asyncio.to_thread(gateway.call, "POST", "/api/channel/ack", body)
        assert status == 200
        gateway.kill()
        await asyncio.to_thread(gateway.start)
        assert await given(gateway, 0) == []


async def test_a_killed_gateway_answers_the_requests_that_a_container_wrote_before(tmp_path: Path) -> None:
    async with started(tmp_path, {"kind": "demo", "ipc": True}, {}) as gateway:
        await say(gateway, "look", ("p.png", "image/png", make_png(4, 4)))
        await answers(gateway, 1)
        (folder,) = (tmp_path / "home" / "media").glob("*/ipc")
        gateway.kill()
        request = {"id": "before", "tool": "list_media", "arguments": {}}
        (folder / "requests" / "before.json").write_text(json.dumps(request))
        await asyncio.to_thread(gateway.start)
        response = folder / "responses" / "before.json"
        async with asyncio.timeout(PATIENCE):
            while not response.exists():
                await asyncio.sleep(0.02)
        told = json.loads(response.read_bytes())
        assert told["ok"] and "p.png" in str(told["content"])
