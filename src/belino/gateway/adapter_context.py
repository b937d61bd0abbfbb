"""Adapter context: what the gateway gives to an adapter: its account's name, one HTTP client and the clock."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from belino import registry
from belino.config import AdapterConfig
from belino.domain.errors import AddressRefused, ConfigError
from belino.domain.message import Arrival
from belino.domain.places import NoPlaces, Places
from belino.domain.ports import Clock, Known
from belino.domain.reply import OutgoingFile
from belino.media.jail import lend_below, open_below
from belino.net.client import Client
from belino.net.guard import Guard
from belino.net.rest import FileBody
from belino.net.tap import Closable, Listener, TappedClient
from belino.storage.home import Home


class PayloadWitness(Listener, Protocol):
    """Receives what adapters parse and call."""

    def parsed(self, payload: object, known: Known, arrivals: Sequence[Arrival]) -> None: ...


class Publishes(Protocol):
    """Makes links to files, and to their previews."""

    async def file(self, file: OutgoingFile) -> str: ...

    async def preview(self, file: OutgoingFile) -> str: ...


class ReportsHealth(Protocol):
    """Receives what adapters report about their accounts."""

    def report(
        self, account: tuple[str, str], part: str, problem: str = "", *, is_refusal: bool = False, is_note: bool = False
    ) -> None: ...


class AccountContext:
    """The adapter context of one account."""

    def __init__(
        self,
        config: AdapterConfig,
        clock: Clock,
        guard: Guard,
        witness: PayloadWitness | None = None,
        health: ReportsHealth | None = None,
        *,
        publisher: Publishes | None = None,
        places: Places | None = None,
        home: Home | None = None,
    ) -> None:
        self.account = config.account
        self.clock = clock
        self.client = Client(guard=guard, hosts=own_hosts(config), proxy=config.proxy, sites=_sites(config))
        self.http: Closable = self.client
        if witness is not None:
            self.http = TappedClient(self.client, witness, (config.platform, config.account))
        self._key = (config.platform, config.account)
        self._witness = witness
        self._health = health
        self._publisher = publisher
        self._home = home
        self.places: Places = places or NoPlaces()

    async def publish(self, file: OutgoingFile) -> str:
        """A link under which the platform may fetch a file; ConfigError without a public address, or a gateway."""
        return await self._published(file).file(file)

    async def publish_preview(self, file: OutgoingFile) -> str:
        """The same for a small picture of it."""
        return await self._published(file).preview(file)

    def _published(self, file: OutgoingFile) -> Publishes:
        if self._publisher is None:
            raise ConfigError(f"{file.name} cannot be published: no gateway runs that could serve it")
        return self._publisher

    def open_below(self, folder: Path, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The bytes of a file below a folder of this machine."""
        return open_below(folder, path)

    def folder(self) -> Path:
        """The account's own folder in the state folder."""
        if self._home is None:
            raise ConfigError("this account keeps a session in the state folder, and there is none here")
        return self._home.account(*self._key)

    def lend(self, folder: Path, file: OutgoingFile) -> AbstractAsyncContextManager[Path]:
        """A copy of a file below a folder of this machine, as long as the block lasts."""
        return lend_below(folder, file.name, FileBody(file).chunks())

    def parsed(self, payload: object, known: Known, arrivals: Sequence[Arrival]) -> None:
        """Report a parsed payload to the recorder, if one is set."""
        if self._witness is not None:
            self._witness.parsed(payload, known, arrivals)

    def report(self, part: str, problem: str = "", *, is_refusal: bool = False, is_note: bool = False) -> None:
        """Report a part of the account to its health, if one is kept."""
        if self._health is not None:
            self._health.report(self._key, part, problem, is_refusal=is_refusal, is_note=is_note)


def _sites(config: AdapterConfig) -> tuple[str, ...]:
    """The domains of the platform, which an account's proxy serves: its module's `SITES`."""
    try:
        return tuple(getattr(registry.find("adapters", config.platform).module, "SITES", ()))
    except ConfigError:
        return ()


def own_hosts(config: AdapterConfig) -> tuple[str, ...]:
    """The hosts an adapter's module lists for this account: its `hosts(config)`, if it has one."""
    try:
        module = registry.find("adapters", config.platform).module
    except ConfigError:
        return ()  # the code that makes the adapter reports an unknown platform
    hosts = getattr(module, "hosts", None)
    try:
        return () if hosts is None else tuple(hosts(config.options))
    except AddressRefused:
        raise ConfigError(
            f"adapters.{config.platform} names a URL that belino cannot use; write http(s)://host[:port]"
        ) from None
