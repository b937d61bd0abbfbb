"""Reload the configuration: apply what changed without dropping turns, and say what needs a restart."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from belino.config import AdapterConfig, Config, keep_good, load
from belino.delivery.connections import Account
from belino.domain.errors import BelinoError, ConfigError, StoreError
from belino.gateway.accounts import MadeAccount
from belino.storage.home import Home
from belino.turns.agents import AgentGeneration

if TYPE_CHECKING:
    from belino.gateway.gateway import Gateway
    from belino.gateway.readings import BackgroundReadings
    from belino.understanding.read import Understanding

log = logging.getLogger(__name__)

APPLIED = ("access", "agent", "adapters", "tools", "profiles", "delivery", "context", "pace")
"""The tables that apply without a restart."""
NOTICE = "config"
"""The kind of the notices about the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """Where a gateway's configuration comes from."""

    load: Callable[[], Config]
    """Reads it again; ConfigError if it is rejected."""
    keep: Callable[[], None] = lambda: None
    """Keeps a copy of it, once it works."""
    file: str = ""
    rejected: str = ""
    """Why the file was not used at the start, if the copy that worked last is used instead."""


def file_source(
    home: Home,
    path: Path | None = None,
    *,
    rejected: str = "",
    change: Callable[[Config], Config] = lambda config: config,
) -> ConfigSource:
    """The configuration file of a state folder, or another one; `change` is applied to what is read from it.

    A file that was there and is gone is rejected: the defaults would remove every account.
    """
    existed = (path or home.config_file).exists()

    def read() -> Config:
        nonlocal existed
        file = path or home.config_file
        if existed and not file.exists():
            raise ConfigError(f"{file} is gone; put it back, or restart belino without it")
        existed = existed or file.exists()
        return change(load(home, path))

    return ConfigSource(
        load=read,
        keep=lambda: keep_good(home, path),
        file=str(path or home.config_file),
        rejected=rejected,
    )


def no_source() -> Config:
    """The source of a configuration that a program made: only the program can change it."""
    raise ConfigError("the configuration was made by a program, and only that can change it: gateway.reload(config)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigState:
    """How the running configuration relates to its file."""

    file: str = ""
    rejected: str = ""
    """Why the file as it is now is not used; empty if it is."""
    is_last_good: bool = False
    """Whether a copy runs that worked before, because the file was rejected at the start."""
    restart: tuple[str, ...] = ()
    """Keys of the file that apply only after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """What a reload did."""

    applied: tuple[str, ...] = ()
    """The keys that changed and apply now."""
    restart: tuple[str, ...] = ()
    """The keys that changed and apply only after a restart."""
    reconnected: tuple[str, ...] = ()
    """The accounts that were connected again, or for the first time."""
    removed: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Prepared:
    """New parts, made before anything is replaced."""

    accounts: list[MadeAccount] = field(default_factory=list)
    agents: AgentGeneration | None = None


class Reloader:
    """Replaces the configuration of a running gateway, one reload at a time."""

    def __init__(self, gateway: "Gateway", source: ConfigSource) -> None:
        self._gateway = gateway
        self._source = source
        self._one_by_one = asyncio.Lock()
        self._asked = asyncio.Event()
        self.state = ConfigState(file=source.file, rejected=source.rejected, is_last_good=bool(source.rejected))

    def ask(self) -> None:
        """Ask for a reload from outside the loop's tasks, such as a signal."""
        self._asked.set()

    async def run(self) -> None:
        """Tell the owners about a rejected file, and reload whenever it is asked for, until cancelled."""
        if self._source.rejected:
            await self._gateway.owners.tell(NOTICE, _told_at_start(self._source.rejected))
        else:
            with suppress(StoreError):
                await self._gateway.owners.close(NOTICE)  # of an earlier run
        while True:
            await self._asked.wait()
            self._asked.clear()
            try:
                done = await self.reload()
            except BelinoError as error:
                log.error("the configuration is not reloaded: %s", error)
            else:
                log.info("the configuration is reloaded: %s", as_text(done))

    async def reload(self, config: Config | None = None, *, reconnect: Collection[Account] = ()) -> Reloaded:
        """Apply the configuration file, or a configuration. ConfigError, and nothing changes, if it is rejected.

        Accounts in `reconnect` are connected again even if nothing changed.
        """
        async with self._one_by_one:
            try:
                wanted = await asyncio.to_thread(self._source.load) if config is None else config
                done = await self._apply(wanted, reconnect)
            except ConfigError as error:
                self.state = replace(self.state, rejected=str(error))
                text = f"The configuration is rejected, and the running one stays in use: {error}"
                await self._gateway.owners.tell(NOTICE, text)
                raise
            self.state = replace(self.state, rejected="", is_last_good=False, restart=done.restart)
            if config is None:
                self._keep()
            if not await self._gateway.owners.close(NOTICE):
                self._gateway.notices.owner()
            return done

    def _keep(self) -> None:
        try:
            self._source.keep()
        except ConfigError as error:
            log.warning("%s", error)

    async def _apply(self, wanted: Config, reconnect: Collection[Account]) -> Reloaded:
        gateway, old = self._gateway, self._gateway.config
        new = applicable(old, wanted)
        before, after = _by_account(old), _by_account(new)
        if unknown := [account for account in reconnect if account not in after]:
            raise ConfigError(f"there is no account {':'.join(unknown[0])}; `belino status` lists the accounts")
        changed = [
            account
            for account, config in after.items()
            if account not in before
            or account in reconnect
            or (before[account].options, before[account].proxy) != (config.options, config.proxy)
        ]
        prepared = await self._prepare(new, [after[account] for account in changed])
        gateway.config = new
        await gateway.adopt(new, old, prepared.agents)
        removed = [account for account in before if account not in after]
        for account in removed:
            await gateway.drop_account(account)
        for made in prepared.accounts:
            await gateway.put_account(made)
        for account in after:
            gateway.refresh_access(account)
        return Reloaded(
            applied=tuple(differences(old, new)),
            restart=tuple(differences(new, wanted)),
            reconnected=tuple(":".join(account) for account in changed),
            removed=tuple(":".join(account) for account in removed),
        )

    async def _prepare(self, config: Config, accounts: Collection[AdapterConfig]) -> _Prepared:
        """Make everything that can be refused, before anything is replaced."""
        prepared, gateway = _Prepared(), self._gateway
        async with AsyncExitStack() as undo:
            if config.agent != gateway.config.agent:
                prepared.agents = gateway.agents.prepare(config.agent)
                undo.push_async_callback(gateway.agents.discard, prepared.agents)
            for account in accounts:
                made = gateway.accounts.make(account)
                undo.push_async_callback(made.context.http.close)
                prepared.accounts.append(made)
            undo.pop_all()
        return prepared


class MediaReaders:
    """What reads media as text, and reads ahead: made on first use, and made again when its settings change."""

    def __init__(
        self,
        make: "Callable[[], Understanding]",
        make_ahead: "Callable[[], BackgroundReadings]",
        *,
        ahead: Callable[[], bool],
    ) -> None:
        """`ahead`: whether media is read between turns."""
        self._make = make
        self._make_ahead = make_ahead
        self._is_ahead = ahead
        self._understanding: Understanding | None = None
        self._ahead: BackgroundReadings | None = None
        self._group: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def understanding(self) -> "Understanding":
        """Made with the first media, as providers cost start-up time."""
        if self._understanding is None:
            self._understanding = self._make()
        return self._understanding

    @property
    def read_ahead(self) -> "BackgroundReadings":
        if self._ahead is None:
            self._ahead = self._make_ahead()
        return self._ahead

    def start(self, group: asyncio.TaskGroup) -> None:
        """Read ahead, if that is configured, by a task of this group."""
        self._group = group
        if self._is_ahead():
            self._task = group.create_task(self.read_ahead.run())

    def stop(self) -> None:
        """Stop reading ahead."""
        self._group = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def renew(self, drained: Callable[[], Awaitable[None]]) -> None:
        """Make them again; the old ones are closed when `drained` returns: no turn uses them any more."""
        group, old = self._group, self._understanding
        self.stop()
        self._understanding = self._ahead = None
        if group is not None:
            if old is not None:
                group.create_task(_close_after(old, drained))
            self.start(group)

    async def close(self) -> None:
        if self._understanding is not None:
            await self._understanding.close()


async def _close_after(understanding: "Understanding", drained: Callable[[], Awaitable[None]]) -> None:
    await drained()
    await understanding.close()


def applicable(running: Config, wanted: Config) -> Config:
    """The wanted configuration as far as it applies without a restart."""
    kept = {each.name: getattr(running, each.name) for each in fields(Config) if each.name not in APPLIED}
    # The store knows the days of messages by the time zone it was opened with.
    context = replace(wanted.context, timezone=running.context.timezone)
    return replace(wanted, **kept, context=context)


def differences(old: object, new: object, path: str = "") -> Iterator[str]:
    """The keys of two configurations that differ, as they are written in the file."""
    if is_dataclass(old) and type(old) is type(new):
        for each in fields(old):
            inner = path if each.name == "options" else f"{path}.{each.name}" if path else each.name
            yield from differences(getattr(old, each.name), getattr(new, each.name), inner)
    elif path == "adapters":
        yield from _account_differences(old, new)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            yield from differences(old.get(name), new.get(name), f"{path}.{name}")
    elif old != new:
        yield path


def _account_differences(old: object, new: object) -> Iterator[str]:
    before, after = _named(old), _named(new)
    for name in dict.fromkeys((*before, *after)):
        if name in before and name in after:
            yield from differences(before[name].access, after[name].access, f"{name}.access")
            yield from differences(before[name].proxy, after[name].proxy, name)
            yield from differences(before[name].options, after[name].options, name)
        else:
            yield name


def _named(adapters: object) -> dict[str, AdapterConfig]:
    """Accounts by their table in the file."""
    assert isinstance(adapters, tuple)
    tables = {"default": ""}
    return {
        f"adapters.{each.platform}{tables.get(each.account, f'.accounts.{each.account}')}": each for each in adapters
    }


def _by_account(config: Config) -> dict[Account, AdapterConfig]:
    return {(each.platform, each.account): each for each in config.adapters}


def as_text(done: Reloaded) -> str:
    """A reload in one line."""
    parts = [f"applied {', '.join(done.applied)}"] if done.applied else ["nothing changed"]
    parts += [f"connected again {', '.join(done.reconnected)}"] if done.reconnected else []
    parts += [f"removed {', '.join(done.removed)}"] if done.removed else []
    parts += [f"needs a restart: {', '.join(done.restart)}"] if done.restart else []
    return "; ".join(parts)


def _told_at_start(why: str) -> str:
    return f"The configuration file is rejected, and the copy that worked last is in use: {why}"
