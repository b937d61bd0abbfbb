"""A whole gateway in a test's hand: real store, a clock that stands still, an agent that follows a script."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from random import Random

from belino.config import AccessConfig, AdapterConfig, AgentConfig, ChannelAccess, Config, SessionsConfig, ToolsConfig
from belino.context.budget import ContextConfig
from belino.domain.errors import StoreError
from belino.domain.limits import Limits, Once
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ChatType, ConversationKey, Message
from belino.domain.ports import Accept, Adapter, AdapterContext, Agent
from belino.domain.reply import Parcel, ParcelState, Receipt
from belino.domain.stored import StoredMessage
from belino.domain.turn import Accepted, ReplyPart, Turn
from belino.gateway.gateway import Gateway
from belino.storage.backup_config import BackupConfig
from belino.storage.home import Home
from belino.testing import FakeClock, FakeContext, MemoryAdapter, ScriptedAgent
from belino.testing.memory import Config as MemoryConfig
from belino.understanding.read import Understanding

ANN, BOB, EVE = (Author(id=name, name=name.title()) for name in ("ann", "bob", "eve"))
ACCESS = AccessConfig(
    senders=("ann",), channels={"team": ChannelAccess(senders=("ann", "bob")), "open": ChannelAccess(senders=("*",))}
)
PATIENCE = 60.0
UNDER_WAY = (ParcelState.READY, ParcelState.SENDING)


class Wire(MemoryAdapter):
    """A platform whose sends a test can refuse or hold up."""

    def __init__(self, config: MemoryConfig, desk: AdapterContext) -> None:
        super().__init__(config, desk)
        self.limits = Limits(text_chars=4096, split_chars=4096, once=Once.KEY)
        self.offered: list[Parcel] = []
        self.seen: list[Parcel] = []
        self.refusals: deque[Exception] = deque()
        self.hung: set[str] = set()
        """Channels where a call is never answered."""
        self.deaths: deque[Exception] = deque()

    async def run(self, accept: Accept, cursor: str | None) -> None:
        if self.deaths:
            raise self.deaths.popleft()
        await super().run(accept, cursor)

    async def send(self, parcel: Parcel) -> Receipt:
        self.offered.append(parcel)
        if parcel.conversation.channel in self.hung:
            await asyncio.Event().wait()
        if self.refusals:
            raise self.refusals.popleft()
        if parcel.key not in {before.key for before in self.seen}:
            self.seen.append(parcel)
        return Receipt(message_id=f"sent-{parcel.key}", sent=self._context.clock.now())

    def texts(self, channel: str | None = None) -> list[str]:
        """What people on the platform see, in order."""
        return [parcel.text for parcel in self.seen if channel in (None, parcel.conversation.channel)]


class HungAgent:
    """Never answers; its hooks tell what was done to it."""

    remembers = True
    sees_images = False

    def __init__(self) -> None:
        self.running = False
        self.cancelled = False

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.running = True
        await turn.memory.save(b"half a thought")
        yield Accepted()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


class House:
    """One state folder and what runs on it, again and again."""

    def __init__(self, path: Path) -> None:
        self.home = Home.at(path)
        self.clock = FakeClock()
        self.agent: Agent = ScriptedAgent()
        self.sessions = SessionsConfig()
        self.context = ContextConfig()
        self.backup = BackupConfig()
        self.tools = ToolsConfig()
        self.understanding: Understanding | None = None
        self.access = ACCESS
        self.accounts: tuple[str, ...] = ("default",)
        self.wires: dict[str, Wire] = {}
        self._ids = count(1)

    @property
    def wire(self) -> Wire:
        return self.wires["default"]

    def config(self) -> Config:
        adapters = tuple(
            AdapterConfig(platform="memory", account=account, access=self.access, options=MemoryConfig())
            for account in self.accounts
        )
        return Config(
            agent=AgentConfig(options=None),
            sessions=self.sessions,
            context=self.context,
            backup=self.backup,
            tools=self.tools,
            adapters=adapters,
        )

    def make_adapter(self, config: AdapterConfig, desk: AdapterContext) -> Adapter:
        # The platform outlives us: a gateway started again finds the same far side.
        wire = self.wires.get(config.account)
        if wire is None:
            wire = self.wires[config.account] = Wire(config.options, desk)
        return wire

    def prepare(self, account: str = "default") -> Wire:
        """The wire of an account before any gateway runs."""
        wire = Wire(MemoryConfig(), FakeContext(account=account, clock=self.clock))
        self.wires[account] = wire
        return wire

    def gateway(self) -> Gateway:
        return Gateway(
            self.config(),
            self.home,
            clock=self.clock,
            agent=self.agent,
            make_adapter=self.make_adapter,
            understanding=None if self.understanding is None else self._made,
            rng=Random(1),
        )

    def _made(self, *_: object) -> Understanding:
        assert self.understanding is not None
        return self.understanding

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Gateway]:
        """A gateway that runs until the block is left, and is then cut off."""
        async with asyncio.timeout(PATIENCE), self.gateway() as gateway, asyncio.TaskGroup() as group:
            task = group.create_task(gateway.run())
            yield gateway
            task.cancel()

    @asynccontextmanager
    async def until_killed(self) -> AsyncIterator[Gateway]:
        """A gateway that runs until the block is left, and leaves its turns behind as a killed process does."""

        async def gone(turn: int) -> None:
            raise StoreError("the process was killed")

        async with self.at_work() as gateway:
            gateway.store.release_turn = gone  # type: ignore[method-assign]
            yield gateway

    async def pass_album(self) -> None:
        """Let the wait for an album's next item pass."""
        seconds = self.sessions.album_window_ms / 1000
        await self.clock.wake(seconds)

    def say(self, text: str = "hello", *, author: Author = ANN, channel: str = "dm", **more: object) -> Message:
        """Something said, under an id of its own; in the channels of the list it is said in a group."""
        number = next(self._ids)
        group = channel in ACCESS.channels or channel.startswith("group")
        message = Message(
            conversation=ConversationKey(platform="memory", account="default", channel=channel),
            id=f"m{number}",
            author=author,
            sent=self.clock.now() + timedelta(milliseconds=number),
            text=text,
            chat_type=ChatType.GROUP if group else ChatType.DIRECT,
        )
        return replace(message, **more)  # type: ignore[arg-type]

    def picture(self, message: Message, *, item: str = "f1", name: str = "photo.png") -> MediaRef:
        where = message.conversation
        return MediaRef(
            platform=where.platform,
            account=where.account,
            channel_id=where.channel,
            message_id=message.id,
            item=item,
            kind=MediaKind.IMAGE,
            mime="image/png",
            created=message.sent,
            file_name=name,
            locator={"file": item},
        )

    async def ask(self, gateway: Gateway, message: Message) -> None:
        """Say something and wait until its turn has ended and the answer, if there is one, is a message too."""
        ended = sum(gateway.counters.turns.values())
        await gateway.accept(message)
        await until(lambda: sum(gateway.counters.turns.values()) > ended)
        async with asyncio.timeout(PATIENCE):
            while any(parcel.state in UNDER_WAY for parcel in await gateway.store.parcels()):
                await asyncio.sleep(0.001)

    async def history(self, gateway: Gateway, channel: str = "dm") -> tuple[StoredMessage, ...]:
        where = ConversationKey(platform="memory", account="default", channel=channel)
        return await gateway.store.history(where, limit=500)


async def until(condition: Callable[[], object]) -> None:
    """Let everything run until it is so. The pause is for the threads of the store, which a spin would starve."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)
