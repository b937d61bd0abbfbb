"""Accounts: the adapter of each, with its HTTP client, its listening task and its health; each can be replaced."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from belino import registry
from belino.aio.deadline import deadline
from belino.config import AdapterConfig
from belino.delivery.connections import Account
from belino.domain.errors import ConfigError
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey, Message
from belino.domain.ports import Adapter, AdapterContext, Clock, Taken, TakesOver
from belino.gateway.adapter_context import AccountContext, PayloadWitness
from belino.gateway.health import HealthBoard
from belino.gateway.moves import Moves
from belino.gateway.publisher import Publisher
from belino.net.guard import Guard
from belino.net.tap import has_behalf, on_behalf
from belino.storage.home import Home

STOP_SECONDS = 10.0

MakeAdapter = Callable[[AdapterConfig, AdapterContext], Adapter]
Listen = Callable[[Account], Coroutine[object, object, None]]


@runtime_checkable
class TakesPosts(Protocol):
    """An adapter that accepts messages from our own pages."""

    async def post(self, message: Message) -> Taken: ...


def from_registry(config: AdapterConfig, context: AdapterContext) -> Adapter:
    """The adapter of this platform, built in or from an installed package."""
    adapter = registry.find("adapters", config.platform).make(config.options, context)
    if not isinstance(adapter, Adapter):
        raise ConfigError(f"the adapter {config.platform!r} lacks a method every adapter must have")
    return adapter


async def take_over(adapter: object, name: str) -> str:
    """Take the events of an account over from another program; ConfigError if there is none to take over from."""
    rival = await adapter.rival() if isinstance(adapter, TakesOver) else ""
    if not rival or not isinstance(adapter, TakesOver):
        raise ConfigError(f"no other program gets the events of {name}; `belino status` shows what is wrong")
    await adapter.take_over()
    return rival


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeAccount:
    """An adapter that does not listen yet."""

    config: AdapterConfig
    adapter: Adapter
    context: AccountContext

    @property
    def account(self) -> Account:
        return self.config.platform, self.config.account


class Accounts:
    """The adapters of all accounts; a running one can be replaced or removed without affecting the others."""

    def __init__(
        self,
        make: MakeAdapter,
        *,
        clock: Clock,
        guard: Guard,
        witness: PayloadWitness,
        health: HealthBoard,
        publisher: Publisher,
        moves: Moves,
        home: Home,
    ) -> None:
        self.adapters: dict[Account, Adapter] = {}
        """Shared with everything that sends, fetches or reads history."""
        self._make = make
        self._clock = clock
        self._guard = guard
        self._witness = witness
        self._health = health
        self._publisher = publisher
        self._moves = moves
        self._home = home
        self._contexts: dict[Account, AccountContext] = {}
        self._made: list[AccountContext] = []
        self._nudges: dict[Account, asyncio.Event] = {}
        self._tasks: dict[Account, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._listen: Listen | None = None

    def make(self, config: AdapterConfig) -> MadeAccount:
        """Make the adapter of an account; ConfigError if it cannot be made."""
        context = AccountContext(
            config,
            self._clock,
            self._guard,
            self._witness,
            self._health,
            publisher=self._publisher,
            places=self._moves.places((config.platform, config.account)),
            home=self._home,
        )
        self._made.append(context)
        return MadeAccount(config=config, adapter=self._make(config, context), context=context)

    def add(self, made: MadeAccount) -> None:
        """Take a new account in; it listens if the others do."""
        self.adapters[made.account] = made.adapter
        self._contexts[made.account] = made.context
        self._nudges[made.account] = asyncio.Event()
        self._health.add(made.account)
        self._start(made.account)

    async def put(self, made: MadeAccount) -> None:
        """Take an account in, or replace its adapter: the old one ends first, and its calls under way end normally."""
        await self._stop(made.account)
        self._retire(made.account)
        self.add(made)

    async def remove(self, account: Account) -> None:
        """Stop listening to an account. Its calls that are under way end normally."""
        await self._stop(account)
        self._retire(account)
        self.adapters.pop(account, None)
        self._nudges.pop(account, None)
        self._health.remove(account)

    def start(self, group: asyncio.TaskGroup, listen: Listen) -> None:
        """Listen to every account, by tasks of this group."""
        self._group, self._listen = group, listen
        for account in self.adapters:
            self._start(account)

    def stop(self) -> None:
        """Stop listening to all of them."""
        self._listen = self._group = None
        for task in self._tasks.values():
            task.cancel()

    def works(self, account: Account) -> None:
        """Another call of the account succeeded: an adapter that was refused once is tried again at once."""
        if (nudge := self._nudges.get(account)) is not None:
            nudge.set()

    def nudge(self, account: Account) -> asyncio.Event:
        """Set whenever a call of the account succeeds."""
        return self._nudges[account]

    async def close(self) -> None:
        """Close every HTTP client, also those of accounts that were replaced."""
        for context in self._made:
            await context.http.close()

    def _retire(self, account: Account) -> None:
        """Close the HTTP client of an account that is replaced or removed, once its requests have ended."""
        if (context := self._contexts.pop(account, None)) is not None and self._group is not None:
            self._group.create_task(context.client.retire())

    def _start(self, account: Account) -> None:
        if self._group is not None and self._listen is not None:
            self._tasks[account] = self._group.create_task(self._listen(account))

    async def _stop(self, account: Account) -> None:
        if (task := self._tasks.pop(account, None)) is not None:
            task.cancel()
            with suppress(TimeoutError):  # one that ignores its cancellation must not hold the others up
                async with deadline(self._clock, STOP_SECONDS):
                    await asyncio.wait({task})


@asynccontextmanager
async def open_on_behalf(adapter: Adapter, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
    """The bytes of a ref, fetched on behalf of the current conversation, or of the ref's channel if there is none."""
    channel = ConversationKey(platform=ref.platform, account=ref.account, channel=ref.channel_id)
    with nullcontext() if has_behalf() else on_behalf(channel):
        async with adapter.open_media(ref) as chunks:
            yield chunks
