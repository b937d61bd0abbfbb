"""Operations on a running gateway's accounts: listen, report their health, reload, reconnect, take over, link."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cached_property, partial
from random import Random
from typing import TYPE_CHECKING

from belino.aio.deadline import beside
from belino.cassette.pseudonyms import Secrets
from belino.config import AdapterConfig, Config
from belino.context.history import History
from belino.delivery.connections import Account
from belino.delivery.send import Sender
from belino.delivery.typing import Signs
from belino.domain.linking import LinksDevice
from belino.domain.message import ConversationKey
from belino.domain.outcome import Counters
from belino.domain.places import Moved
from belino.domain.ports import Adapter, Clock
from belino.gateway.access import EVERYBODY, AccountAccess, with_groups, with_moves
from belino.gateway.accounts import Accounts, MadeAccount, take_over
from belino.gateway.cassettes import secrets_of
from belino.gateway.commands import offer_commands
from belino.gateway.events import EventBus
from belino.gateway.health import AdapterHealth, HealthBoard
from belino.gateway.intake import Intake
from belino.gateway.linking import Linking
from belino.gateway.moves import Moves
from belino.gateway.owners import Groups, Owners
from belino.gateway.recorder import Recorder
from belino.gateway.reload import MediaReaders, Reloaded, Reloader
from belino.gateway.supervise import keep_running
from belino.storage.store import Store
from belino.turns.agents import AgentGeneration, Agents
from belino.turns.reply import Replies
from belino.turns.runner import TurnRunner

if TYPE_CHECKING:
    from belino.understanding.speaker import Speaker


class AccountOperations(ABC):
    """The part of a gateway that runs its accounts, and changes them while it runs."""

    config: Config
    clock: Clock
    store: Store
    notices: EventBus
    counters: Counters
    recorder: Recorder
    accounts: Accounts
    agents: Agents
    history: History
    owners: Owners
    groups: Groups
    reloader: Reloader
    speaker: "Speaker | None"
    _access: dict[Account, AccountAccess]
    _health: HealthBoard
    _intake: Intake
    _open: AsyncExitStack
    _readers: MediaReaders
    _replies: Replies
    _rng: Random
    _signs: Signs
    _sender: Sender
    _turns: TurnRunner

    @abstractmethod
    def _make_speaker(self, opening: AsyncExitStack) -> "Speaker | None":
        """The configured voice."""

    @cached_property
    def moves(self) -> Moves:
        """The channels that go on under another id."""
        return Moves(lambda: self.store, names=self._names_channel, people=self._people, settled=self._channel_moved)

    @property
    def adapters(self) -> Mapping[Account, Adapter]:
        """The adapter of every account."""
        return self.accounts.adapters

    @property
    def effective_config(self) -> Config:
        """The configuration with the access rules in force: those of the file, the owners, and allowed groups."""
        rules = {account: each.access for account, each in self._access.items()}
        adapters = (replace(each, access=rules[each.platform, each.account]) for each in self.config.adapters)
        return replace(self.config, adapters=tuple(adapters))

    def health(self) -> Mapping[Account, AdapterHealth]:
        """The health of every account: what works, and what does not."""
        return {
            account: replace(health, can_link=not health.works and isinstance(self.adapters.get(account), LinksDevice))
            for account, health in self._health.all().items()
        }

    @cached_property
    def linking(self) -> Linking:
        """Links devices of accounts that work as one."""
        return Linking(self.adapters, self.clock, self._connect_again)

    async def reload(self, config: Config | None = None, *, reconnect: Collection[Account] = ()) -> Reloaded:
        """Apply the configuration file, or a configuration, without dropping turns; ConfigError if it is rejected."""
        return await self.reloader.reload(config, reconnect=reconnect)

    async def take_over(self, account: Account) -> str:
        """Have a platform hand an account's events to belino, and connect again; returns where they went before."""
        rival = await take_over(self.adapters.get(account), ":".join(account))
        await self._connect_again(account)
        return rival

    async def _connect_again(self, account: Account) -> None:
        for config in self.config.adapters:
            if (config.platform, config.account) == account:
                await self.put_account(self.accounts.make(config))

    async def adopt(self, new: Config, old: Config, agents: AgentGeneration | None) -> None:
        """Give every part its new settings; running turns keep the agent they began with."""
        self.recorder.learn_secrets(Secrets(secrets_of(new)))
        self.owners.config = new.access
        if agents is not None:
            await self.agents.adopt(agents)
        self._sender.reconfigure(new.delivery)
        self._replies.inline_code_lines = new.delivery.inline_code_lines
        self._signs.mode = new.delivery.sign
        self.history.reconfigure(new.pace)
        self._turns.reconfigure(new)
        self._intake.hears_first = new.tools.media.audio_preflight
        if (new.tools, new.profiles, new.agent) != (old.tools, old.profiles, old.agent):
            self._readers.renew(self._turns.drained)
            self.speaker = self._replies.speak_with(self._make_speaker(self._open))

    async def drop_account(self, account: Account) -> None:
        """Stop and forget an account that is no longer configured."""
        self._access.pop(account, None)
        await self.accounts.remove(account)
        self._sender.lines.forget(account)

    async def put_account(self, made: MadeAccount) -> None:
        """Take an account in, or replace its adapter; nothing is sent before it is connected."""
        self._sender.lines.down(made.account)
        await self.accounts.put(made)

    def _account_access(self, config: AdapterConfig) -> AccountAccess:
        account = (config.platform, config.account)
        trusts_senders = bool(getattr(self.adapters[account], "trusts_senders", False))
        access = with_groups(config.access, self.config.access.of(*account), self.groups.of(account))
        access = with_moves(access, self.moves.of(account))
        return AccountAccess(access=access, trusts_senders=trusts_senders)

    def refresh_access(self, account: Account) -> None:
        """Apply what changed about an account's rules: its configuration, or the groups that the owners allowed."""
        for config in self.config.adapters:
            if (config.platform, config.account) == account:
                self._access[account] = self._account_access(config)

    def _names_channel(self, account: Account, channel: str, server: str) -> bool:
        return account in self._access and self._access[account].access.rules(channel, server) is not None

    def _people(self, account: Account) -> tuple[str, ...]:
        senders = self._access[account].access.senders if account in self._access else ()
        return tuple(sender for sender in senders if sender != EVERYBODY)

    async def _channel_moved(self, account: Account, move: Moved) -> None:
        """Apply the rules of a channel that goes on under another id, about which the owners need not be asked."""
        await self.groups.withdraw(ConversationKey(platform=account[0], account=account[1], channel=move.new))
        self.refresh_access(account)

    async def _listen(self, account: Account) -> None:
        adapter = self.adapters[account]
        async with beside(offer_commands(adapter)):
            await keep_running(
                adapter,
                account[1],
                self._intake.for_account(*account),
                inbox=self.store,
                clock=self.clock,
                rng=self._rng,
                report=partial(self._report, account),
                nudged=self.accounts.nudge(account),
            )

    def _report(self, account: Account, health: AdapterHealth) -> None:
        self._health.listening(account, health)
        if health.state == "running":
            self.history.listens(*account)
        if health.state in ("running", "impaired"):
            self._sender.lines.up(account)
        else:
            told = f"{':'.join(account)} is not connected: {health.reason}" if health.reason else ""
            self._sender.lines.down(account, told)
        if health.state not in ("running", "starting"):
            self.counters.adapter_restarts[":".join(account)] += 1

    def _account_works(self, account: Account) -> None:
        """A call of an account succeeded: what waits because of a refusal is tried again sooner."""
        self._sender.lines.succeeded(account)
        self.accounts.works(account)

    def _health_changed(self, account: Account) -> None:
        self.notices.owner()
