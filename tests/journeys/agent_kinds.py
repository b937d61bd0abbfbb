"""Every kind of agent with the same brain: what an operator configures, and what runs beside the gateway."""

import asyncio
import base64
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from mcp import Client
from mcp.client import ClientExtension
from mcp.client.extension import NotificationBinding
from mcp.client.stdio import StdioServerParameters
from pydantic import BaseModel

from agents.http_server import SECRET, own_server
from belino.domain.message import ConversationKey
from belino.gateway.commands import TAKEN_BACK
from belino.storage.home import Home
from belino.testing.models import ModelAnswer, ModelHang, ModelReply, ModelRequest, ModelServer, ModelToolCall
from belino.testing.models.anthropic import MessagesServer
from belino.testing.models.openai import OpenAIServer
from journeys import brain
from journeys.brain import DRAWING, Call, Content, Said, Steps, Wait, answer, call_tool

TESTS = Path(__file__).parents[1]
MAIN = ConversationKey(platform="web", account="default", channel="main")
KEY = "sk-test-0123456789abcdef"


class AgentKind(ABC):
    """One kind; `flag` is set while it waits, with the token of its turn if it has one."""

    counts_usage = False
    stopped = "Stopped."
    """What people read then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = path / "home"
        self.flag = path / "waits"
        self.environment: dict[str, str] = {}

    @abstractmethod
    def table(self) -> dict[str, Any]:
        """Its table `[agent]`."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """What runs beside the gateway, also while that is down."""
        yield

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """What is connected to a running gateway, and ends with it."""
        yield

    def wait(self, token: str = "") -> None:
        self.flag.write_text(token or "no token")


async def taken(
    steps: Steps, call: Callable[[Call], Awaitable[Content]], wait: Callable[[], Awaitable[Content]]
) -> Said:
    """Take all steps, one after the other."""
    try:
        step = next(steps)
        while True:
            step = steps.send(await (wait() if isinstance(step, Wait) else call(step)))
    except StopIteration as end:
        said: Said = end.value
        return said


class Command(AgentKind):
    """A program: one process for each turn, the tools over HTTP."""

    def table(self) -> dict[str, Any]:
        return {"kind": "command", "command": [sys.executable, brain.__file__, str(self.flag), "{session}"]}


class Plugin(AgentKind):
    """A class of another package, in the gateway's own process."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        about = path / "plugin" / "thinker-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: thinker\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[belino.agents]\nthinker = journeys.thinker\n")
        self.environment = {"PYTHONPATH": os.pathsep.join((str(about.parent), str(TESTS)))}

    def table(self) -> dict[str, Any]:
        return {"kind": "thinker", "flag": str(self.flag)}


class Http(AgentKind):
    """A server of one's own, with the tools at the address of the turn."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.environment = {"TURN_SECRET": SECRET}
        self._url = ""

    def table(self) -> dict[str, Any]:
        return {"kind": "http", "url": self._url, "secret": "env:TURN_SECRET", "remembers": True}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with own_server(self._take) as server:
            self._url = server.url
            yield

    async def _take(self, _: web.Request, turn: dict[str, Any]) -> web.StreamResponse:
        prompt = "\n".join(part["text"] for part in turn["content"] if part["type"] == "text")
        session = turn["session"] or turn["id"]
        token = turn["mcp"]["token"]

        async def wait() -> Content:
            self.wait(token)
            await asyncio.Event().wait()
            return ()

        said = await taken(answer(prompt, session, self.flag), lambda call: self._call(turn, call), wait)
        files = await self._drawn() if said.draws else []
        return web.json_response({"text": said.text, "session": session, "files": files})

    async def _call(self, turn: Mapping[str, Any], call: Call) -> Content:
        return await asyncio.to_thread(call_tool, turn["mcp"]["url"], turn["mcp"]["token"], call)

    async def _drawn(self) -> Sequence[Mapping[str, str]]:
        return [{"name": "drawing.png", "data": base64.b64encode(DRAWING).decode()}]


class Container(Http):
    """A process without network, whose tools are files in a folder; its runner gets the turns."""

    def table(self) -> dict[str, Any]:
        return {**super().table(), "ipc": True}

    @property
    def _folder(self) -> Path:
        return Home(path=self.home).bridged(MAIN) / "ipc"

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        inside = ["-rn", sys.executable, "-m", "belino", "mcp", "--ipc", str(self._folder)]
        async with Client(StdioServerParameters(command="unshare", args=inside), mode="legacy") as client:
            yield client

    async def _call(self, turn: Mapping[str, Any], call: Call) -> Content:
        async with self._client() as client:
            return await called(client, call)

    async def _drawn(self) -> Sequence[Mapping[str, str]]:
        (self._folder / "media" / "drawing.png").write_bytes(DRAWING)
        async with self._client() as client:
            await called(client, Call("send_media", {"path": f"{self._folder}/media/drawing.png"}))
        return []


async def called(client: Client, call: Call) -> Content:
    """The content of a tool's result."""
    result = await client.call_tool(call.tool, dict(call.arguments))
    assert not result.is_error, result
    return [block.model_dump(by_alias=True, mode="json") for block in result.content]


class ChannelParams(BaseModel):
    """What a channel's client is told."""

    content: str
    meta: dict[str, str]


class ChannelMessages(ClientExtension):
    """The notifications of a channel, in a queue."""

    identifier = "test.belino/channel"

    def __init__(self) -> None:
        self.queue: asyncio.Queue[ChannelParams] = asyncio.Queue()

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        binding = NotificationBinding(
            method="notifications/claude/channel", params_type=ChannelParams, handler=self.queue.put
        )
        return [binding]


class Channel(AgentKind):
    """A client at a desk, which is told of messages and answers with tools."""

    stopped = TAKEN_BACK

    def table(self) -> dict[str, Any]:
        return {"kind": "channel"}

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        serving = asyncio.create_task(self._serve())
        try:
            yield
        finally:
            serving.cancel()
            await asyncio.wait({serving})

    async def _serve(self) -> None:
        own = ["-m", "belino", "mcp", "--channel", "--conversation", str(MAIN), "--home", str(self.home)]
        messages = ChannelMessages()
        server = StdioServerParameters(command=sys.executable, args=own)
        async with (
            Client(server, mode="legacy", extensions=[messages]) as client,
            asyncio.TaskGroup() as group,
        ):
            while True:
                group.create_task(self._answer(client, await messages.queue.get()))

    async def _answer(self, client: Client, message: ChannelParams) -> None:
        async def wait() -> Content:
            self.wait()
            await asyncio.Event().wait()
            return ()

        said = await taken(answer(message.content, "desk", self.flag), lambda call: called(client, call), wait)
        files = []
        if said.draws:
            file = Home(path=self.home).outgoing(MAIN) / "drawing.png"
            file.write_bytes(DRAWING)
            files.append(str(file))
        about = message.meta["message_id"]
        await called(client, Call("reply", {"text": said.text, "reply_to": about, "files": files}))


class Model(AgentKind):
    """A model behind an API on this machine."""

    counts_usage = True
    tool_prefix = ""
    server: ModelServer

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.environment = {"MODEL_KEY": KEY}
        self._steps: Steps | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.server.script = self._reply
        async with self.server:
            yield

    @abstractmethod
    def result(self, said: Sequence[Mapping[str, Any]]) -> Content | None:
        """The results of tools at the end of a request; None if it ends with a question."""

    def _reply(self, asked: ModelRequest) -> ModelReply:
        said = asked.body["messages"]
        content = self.result(said)
        try:
            if content is None or self._steps is None:
                is_resumed = any(each["role"] == "assistant" and "I see" in str(each["content"]) for each in said)
                session = "resumed" if is_resumed else "new"
                self._steps = answer(_question(said), session, self.flag, has_hands=False)
                step = next(self._steps)
            else:
                step = self._steps.send(content)
        except StopIteration as end:
            return ModelAnswer(text=end.value.text)
        if isinstance(step, Wait):
            self.wait()
            return ModelHang(text="Let me think")
        tool = f"{self.tool_prefix}{step.tool}"
        return ModelAnswer(calls=(ModelToolCall(tool=tool, arguments=step.arguments),))


class Claude(Model):
    """Anthropic's models through the real SDK and its program."""

    tool_prefix = "mcp__belino__"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.server = MessagesServer(key=KEY)

    def table(self) -> dict[str, Any]:
        return {"kind": "claude", "model": "sonnet", "api_key": "env:MODEL_KEY", "base_url": self.server.url}

    def result(self, said: Sequence[Mapping[str, Any]]) -> Content | None:
        items = _items(said[-1])
        results = [item for item in items if item["type"] == "tool_result"]
        if not results:
            return None
        found = []
        for item in (each for result in results for each in _items(result)):
            if item["type"] == "image":
                source = item["source"]
                item = {"type": "image", "mimeType": source["media_type"], "data": source["data"]}
            found.append(item)
        return found


class Llm(Model):
    """A model that speaks OpenAI's chat completions."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.server = OpenAIServer(key=KEY)

    def table(self) -> dict[str, Any]:
        base = {"kind": "llm", "model": "openai:gpt-5-mini", "api": "chat"}
        return {**base, "api_key": "env:MODEL_KEY", "base_url": f"{self.server.url}/v1"}

    def result(self, said: Sequence[Mapping[str, Any]]) -> Content | None:
        last = max((at for at, each in enumerate(said) if each["role"] == "assistant"), default=-1)
        if not any(each["role"] == "tool" for each in said[last + 1 :]):
            return None
        found = []
        for item in (item for each in said[last + 1 :] for item in _items(each)):
            if item["type"] == "image_url":
                head, _, data = item["image_url"]["url"].partition(";base64,")
                item = {"type": "image", "mimeType": head.removeprefix("data:"), "data": data}
            found.append(item)
        return found


def _items(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _question(said: Sequence[Mapping[str, Any]]) -> str:
    """The text of the last message of a person."""
    last = next(each for each in reversed(said) if each["role"] == "user")
    return "\n".join(item["text"] for item in _items(last) if item["type"] == "text")


KINDS: Mapping[str, type[AgentKind]] = {
    "claude": Claude,
    "llm": Llm,
    "command": Command,
    "http": Http,
    "container": Container,
    "channel": Channel,
    "plugin": Plugin,
}
