"""A gateway at work for people on a platform of our own, whichever it is: from the phone to the agent and back."""

import asyncio
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from belino.config import Config, from_table
from belino.domain.errors import ToolError
from belino.domain.media import Block, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.ports import Agent
from belino.domain.stored import StoredMessage
from belino.domain.turn import Final, ReplyPart, Turn
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import GatewayProcess, ScriptedAgent
from belino.testing.file_server import FakeUpload
from faults import looking

PATIENCE = 180.0
LONG_AGO = 1_000_000_000
KILLS = 5
Parcels = list[dict[str, Any]]


class BusyPlace(ABC):
    """One platform with people on it, one state folder; the gateway may come and go."""

    platform: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.home = Home.at(path)
        self.agent = ScriptedAgent()
        self.more: dict[str, Any] = {}
        """Further tables of belino.toml."""
        self.arguments: tuple[str, ...] = ()
        """Further arguments of `belino serve`."""

    @property
    @abstractmethod
    def environment(self) -> dict[str, str]:
        """The secrets that the table names."""

    @property
    @abstractmethod
    def sent(self) -> Sequence[Mapping[str, Any]]:
        """The messages that the bot made visible."""

    @abstractmethod
    def adapter(self) -> dict[str, Any]:
        """The platform's table in belino.toml."""

    @abstractmethod
    def channel(self) -> ConversationKey:
        """The room that everybody is in."""

    @property
    @abstractmethod
    def private(self) -> ConversationKey:
        """Where Ann and the bot are alone."""

    @abstractmethod
    def write(self, text: str, **more: Any) -> object:
        """Ann writes to the bot alone."""

    def is_heard(self) -> bool:
        """Whether what is said now reaches the gateway at once."""
        return True

    @asynccontextmanager
    async def reachable(self, gateway: Gateway) -> AsyncIterator[None]:
        """What a platform needs that calls the gateway itself."""
        yield

    def table(self) -> dict[str, Any]:
        """What an operator would write into belino.toml."""
        adapters = {self.platform: self.adapter(), "web": {"enabled": False}}
        return {"adapters": adapters, "sessions": {"album_window_ms": 300}, **self.more}

    def config(self) -> Config:
        with pytest.MonkeyPatch.context() as patch:
            for name, secret in self.environment.items():
                patch.setenv(name, secret)
            return from_table(self.table())

    async def open_door(self, gateway: Gateway) -> None:  # noqa: B027 - most platforms do not call us
        """Where the platform calls us, until cancelled."""

    @asynccontextmanager
    async def gateway(self, agent: Agent | None = None) -> AsyncIterator[Gateway]:
        """A gateway at work on this folder, once the platform has let it in."""
        async with (
            Gateway(self.config(), self.home, agent=agent or self.agent) as gateway,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(gateway.run())
            door = group.create_task(self.open_door(gateway))
            try:
                async with self.reachable(gateway):
                    await until(self.is_heard)
                    yield gateway
            finally:
                door.cancel()
                gateway.stop()

    @asynccontextmanager
    async def process(self, agent: Mapping[str, Any] | None = None, **secrets: str) -> AsyncIterator[GatewayProcess]:
        """The same in a process of its own, which may be killed."""
        table = self.table() | ({} if agent is None else {"agent": dict(agent)})
        (self.home.path / "belino.json").write_text(json.dumps(table), encoding="utf-8")
        process = GatewayProcess(self.home.path, arguments=self.arguments, environment=self.environment | secrets)
        await asyncio.to_thread(process.start)
        try:
            yield process
        finally:
            await asyncio.to_thread(process.kill)

    async def stored(self, gateway: Gateway, count: int) -> tuple[StoredMessage, ...]:
        """What the room holds, once it holds so many."""

        async def enough() -> bool:
            return (await gateway.store.counts())["messages"] >= count

        await until(enough)
        return await gateway.store.history(self.channel(), limit=count)

    def offer(self, name: str, content: bytes, where: ConversationKey | None = None) -> Path:
        """A file in a conversation, as an agent or a script leaves it there."""
        place = self.home.outgoing(where or self.private) / name
        place.write_bytes(content)
        os.utime(place, (LONG_AGO, LONG_AGO))
        return place

    async def loaded(self, process: GatewayProcess) -> float:
        """The peak of its memory so far, when everything it needs was loaded; from here on it is counted anew."""
        await until(self.is_heard)
        before = len(self.sent)
        self.write("small, so that everything is loaded", files=[FakeUpload(content=b"x" * 1000)])
        await until(lambda: len(self.sent) > before)
        Path(f"/proc/{process.pid}/clear_refs").write_text("5", encoding="ascii")
        return peak_megabytes(process)

    async def outlives_kills(self) -> tuple[list[str], Parcels]:
        """Ann writes on while the process is killed again and again: what is kept of her, and of every answer."""
        async with self.process() as process:
            await until(self.is_heard)
            for number in range(KILLS * 4):
                self.write(f"message {number}")
                if number == 0:
                    await until(lambda: self.sent)
                if number % 4 == 3:
                    await asyncio.to_thread(process.kill)
                    await asyncio.to_thread(process.start)
            parcels = await asyncio.to_thread(answered_parcels, process, str(self.private), KILLS * 4)
            history = await asyncio.to_thread(looking.history, process, str(self.private))
        return [message["text"] for message in history if not message["author"]["is_agent"]], parcels


class Gated:
    """Answers when it is let."""

    remembers = False
    sees_images = False

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.stopped = 0
        self.gate = asyncio.Event()

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.turns.append(turn)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        yield Final(text=f"answer {len(self.turns)}")


class Curious:
    """Fetches every picture it is told of, and keeps what it got."""

    remembers = False
    sees_images = True

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.turns: list[Turn] = []

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.turns.append(turn)
        for ref in dict.fromkeys(re.findall(r"ref:([a-z]+_\w{12})", told(turn))):
            try:
                self.seen += await turn.toolbox.call("fetch_media", {"ref": ref})
            except ToolError as error:
                self.seen.append(str(error))
        yield Final(text="looked")


async def until(settled: Callable[[], Any]) -> None:
    """Look until it is so."""
    async with asyncio.timeout(PATIENCE):
        while not (answer := settled()) or (asyncio.iscoroutine(answer) and not await answer):
            await asyncio.sleep(0.01)


def settled_parcels(process: GatewayProcess, count: int) -> Parcels:
    """The outbox, once so many parcels are in it and none is on its way."""
    return _outbox_when(process, lambda parcels: len(parcels) >= count)


def answered_parcels(process: GatewayProcess, conversation: str, count: int) -> Parcels:
    """The outbox, once so many messages are answered, alone or with others, and no answer is on its way."""

    def answered(_: Parcels) -> bool:
        said = [message for message in looking.history(process, conversation) if not message["author"]["is_agent"]]
        return len([message for message in said if message["outcome"] == "answered"]) >= count

    return _outbox_when(process, answered)


def _outbox_when(process: GatewayProcess, complete: Callable[[Parcels], bool]) -> Parcels:
    parcels: Parcels = []

    def settled() -> bool:
        nonlocal parcels
        is_complete = complete(parcels)
        _, outbox = process.call("GET", "/api/outbox?limit=200")
        parcels = outbox["parcels"]
        return is_complete and all(p["state"] in {"sent", "uncertain", "dead"} for p in parcels)

    looking.until(settled, "some answer never came to its end")
    return parcels


def peak_megabytes(process: GatewayProcess) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def told(turn: Turn) -> str:
    """Everything a turn tells the agent, as text."""
    return text_of(turn.blocks)


def text_of(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
