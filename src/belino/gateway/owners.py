"""Owners: what the people who run belino are told and asked, on the page, in the log and in direct messages."""

import hashlib
import logging
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta

from belino.aio.deadline import deadline
from belino.config import OwnersConfig
from belino.delivery.connections import Account
from belino.domain.errors import AdapterError, StoreError
from belino.domain.message import Arrival, Author, ChatType, ConversationKey, Message, Unsupported
from belino.domain.owner import GroupAccess, GroupState, OwnerNotice
from belino.domain.ports import Adapter, Clock, OpensDirects
from belino.domain.reply import Parcel
from belino.domain.safe_text import clean_name
from belino.gateway.events import EventBus
from belino.gateway.health import AdapterHealth, HealthBoard
from belino.storage.store import Store

log = logging.getLogger(__name__)

DOWN_TOLD_AFTER = timedelta(seconds=60)
"""How long an account has not worked when the owner is told: after the first rechecks."""
NAME_CHARS = 64
DIRECT_SECONDS = 15.0
_DECISION = re.compile(r"(/?)(allow|refuse)\s+([A-Za-z2-7]{4,12})(\s+everyone)?", re.IGNORECASE)


class Owners:
    """Tells the owners what needs them, at most once an hour for each kind."""

    def __init__(
        self,
        store: Store,
        adapters: Mapping[Account, Adapter],
        health: HealthBoard,
        *,
        config: OwnersConfig,
        clock: Clock,
        events: EventBus,
        wake: Callable[[ConversationKey], None],
    ) -> None:
        """`wake` is called with each conversation that has a parcel for an owner."""
        self._store = store
        self._adapters = adapters
        self._health = health
        self.config = config
        self._clock = clock
        self._events = events
        self._wake = wake
        self._down: set[Account] = set()
        """Accounts whose failure was told."""

    def are(self, author: Author, conversation: ConversationKey) -> bool:
        """Whether a sender on this account is an owner."""
        return author.id in self.config.of(conversation.platform, conversation.account)

    async def tell(self, kind: str, text: str, *, logged: str = "", how: str = "") -> None:
        """Tell the owners something. `logged` replaces the text in the log, if it has names in it.

        `how` says in a direct message how to answer there.
        """
        try:
            notice = await self._store.notice(kind, text)
        except StoreError as error:
            log.warning("a notice to the owner cannot be stored (%s): %s", type(error).__name__, logged or text)
            return
        self._events.owner()
        if notice is not None:
            log.warning("for the owner, %s: %s", kind, logged or text)
            await self.write("\n".join(part for part in (text, how) if part))

    async def close(self, kind: str) -> bool:
        """End a notice: it was read, or its reason has gone."""
        closed = await self._store.close_notice(kind)
        if closed:
            self._events.owner()
        return closed

    async def notices(self) -> tuple[OwnerNotice, ...]:
        """Every open notice, newest first."""
        return await self._store.owner_notices()

    async def write(self, text: str) -> bool:
        """Write to the first owner whose account works; False if there is none."""
        for platform, account, sender in self.config.senders():
            where = await self._direct(platform, account, sender)
            if where is not None:
                await self.answer(where, text, key=secrets.token_hex(8))
                return True
        return False

    async def direct_on(self, account: Account) -> ConversationKey | None:
        """The direct messages with the first owner on an account, if it has one and works."""
        for sender in self.config.of(*account):
            if (where := await self._direct(*account, sender)) is not None:
                return where
        return None

    async def answer(self, where: ConversationKey, text: str, *, key: str) -> None:
        """Put a message to an owner into the outbox, once under its key."""
        parcel = Parcel(key=f"owner-{key}", conversation=where, text=text, trace=f"owner-{key}")
        try:
            await self._store.put_parcels([parcel])
        except StoreError as error:
            log.warning("a message to the owner cannot be stored: %s", type(error).__name__)
            return
        self._wake(where)

    async def watch(self) -> None:
        """Tell the owners of accounts that stop working, until cancelled."""
        while True:
            self._health.news.clear()
            wait = await self._look()
            if wait is None:
                await self._health.news.wait()
                continue
            with suppress(TimeoutError):
                async with deadline(self._clock, wait):
                    await self._health.news.wait()

    async def _look(self) -> float | None:
        """Tell what is due; returns the seconds until the next is, if there is one."""
        now, wait, accounts = self._clock.now(), list[float](), self._health.all()
        for account, health in accounts.items():
            if health.works:
                await self._works_again(account)
            elif (left := health.since + DOWN_TOLD_AFTER - now) > timedelta():
                wait.append(left.total_seconds())
            else:
                await self._tell_down(account, health)
        return min(wait, default=None)

    async def _tell_down(self, account: Account, health: AdapterHealth) -> None:
        if account not in self._down:
            self._down.add(account)
            name = ":".join(account)
            await self.tell(f"account {name}", f"{name} does not work ({health.state}): {health.reason}")

    async def _works_again(self, account: Account) -> None:
        if account in self._down:
            self._down.discard(account)
            with suppress(StoreError):
                await self.close(f"account {':'.join(account)}")

    async def _direct(self, platform: str, account: str, sender: str) -> ConversationKey | None:
        """The direct messages with a person; None while their account does not work."""
        health, adapter = self._health.all().get((platform, account)), self._adapters.get((platform, account))
        if health is None or adapter is None or not health.works:
            return None
        try:
            if (known := await self._store.direct_channel(platform, account, sender)) is not None:
                return known
            if isinstance(adapter, OpensDirects):
                async with deadline(self._clock, DIRECT_SECONDS):
                    channel = await adapter.direct(sender)
                return ConversationKey(platform=platform, account=account, channel=channel)
        except (AdapterError, StoreError, TimeoutError) as error:
            log.warning("%s:%s: an owner cannot be written to: %s", platform, account, type(error).__name__)
        return None


class Groups:
    """Groups that ask for access: the owners decide on the page, on the command line or in direct messages."""

    def __init__(self, store: Store, owners: Owners, *, changed: Callable[[Account], None]) -> None:
        """`changed` is called with an account whose allowed groups changed."""
        self._store = store
        self._owners = owners
        self._changed = changed
        self._known: dict[ConversationKey, GroupAccess] = {}
        """In memory, because every arrival is decided by it."""

    async def load(self) -> None:
        """Read all decisions, once at the start."""
        self._known = {group.channel: group for group in await self._store.groups()}

    def of(self, account: Account) -> Iterable[GroupAccess]:
        """The groups of an account."""
        return (group for group in self._known.values() if (group.channel.platform, group.channel.account) == account)

    async def all(self) -> tuple[GroupAccess, ...]:
        """Every group that asked, oldest first."""
        return await self._store.groups()

    async def asked(self, arrival: Arrival) -> None:
        """Ask the owners about the group of an arrival, once; nothing else of the arrival is kept."""
        channel, author = arrival.conversation.whole_channel, arrival.author
        if channel in self._known:
            return
        shown = arrival.channel_name if isinstance(arrival, Message | Unsupported) else None
        name = clean_name(shown or "", limit=NAME_CHARS)
        group = await self._store.ask_group(channel, name, _inviter(author))
        if group is not None:
            self._known[channel] = group
            text = question(group, added=isinstance(arrival, Unsupported))
            await self._owners.tell(_kind(channel), text, logged="a group asks for access", how=answers_to(group))

    async def left(self, arrival: Arrival) -> None:
        """The agent was removed from a group: an open request is withdrawn; a decision stays."""
        await self.withdraw(arrival.conversation.whole_channel)

    async def withdraw(self, channel: ConversationKey) -> None:
        """Withdraw the open request of a group, if there is one."""
        group = self._known.get(channel)
        if group is not None and group.state is GroupState.WAITING:
            await self.forget(channel)

    async def decide(self, channel: ConversationKey, *, allow: bool, everyone: bool = False) -> GroupAccess | None:
        """Allow or refuse a group; None if it did not ask."""
        state = GroupState.ALLOWED if allow else GroupState.REFUSED
        group = await self._store.decide_group(channel.whole_channel, state, everyone=everyone)
        if group is not None:
            self._known[group.channel] = group
            await self._settled(group.channel)
        return group

    async def forget(self, channel: ConversationKey) -> bool:
        """Take a decision or a request back: the group may ask again; False if there is none."""
        gone = await self._store.forget_group(channel.whole_channel)
        self._known.pop(channel.whole_channel, None)
        if gone:
            await self._settled(channel.whole_channel)
        return gone

    async def obey(self, message: Message) -> str | None:
        """Carry out an owner's decision in a direct message; None if the message is none. Returns what was done."""
        found = _DECISION.fullmatch(message.text.strip()) if message.chat_type is ChatType.DIRECT else None
        if found is None or not self._owners.are(message.author, message.conversation):
            return None
        allow, code, everyone = found[2].lower() == "allow", found[3].upper(), bool(found[4])
        asking = next((group for group in self._known.values() if group.code == code), None)
        if asking is None and not found[1]:
            return None  # two ordinary words, such as "allow it"
        decided = None if asking is None else await self.decide(asking.channel, allow=allow, everyone=everyone)
        told = f"There is no group with the code {code}." if decided is None else answer_to(decided, asking)
        key = hashlib.sha256(f"{message.conversation} {message.id}".encode()).hexdigest()[:16]
        await self._owners.answer(message.conversation, told, key=key)
        return "no group has this code" if decided is None else f"{decided.channel} is {decided.state}"

    async def _settled(self, channel: ConversationKey) -> None:
        self._changed((channel.platform, channel.account))
        with suppress(StoreError):
            await self._owners.close(_kind(channel))


def _kind(channel: ConversationKey) -> str:
    return f"group {channel}"


def _inviter(author: Author | None) -> Author | None:
    """Who added the agent, if the platform says it and it is a person."""
    if author is None or author.is_bot or author.is_agent or author.id == "unknown":
        return None
    return Author(id=author.id, name=clean_name(author.name, limit=NAME_CHARS))


def question(group: GroupAccess, *, added: bool) -> str:
    """The question about a group, for a direct message and the page."""
    who = f"{group.inviter_name or group.inviter_id}" if group.inviter_id else "an unknown person"
    did = f"I was added to {group_name(group)} by {who}." if added else f"{who} addressed me in {group_name(group)}."
    return f"{did} Allow it? Nothing that is said there is kept until you do."


def answers_to(group: GroupAccess) -> str:
    """The answers to the question, for a direct message."""
    who = f"{group.inviter_name or group.inviter_id} and you" if group.inviter_id else "only you"
    return (
        f"/allow {group.code} ({who} may command me there, when I am addressed)\n"
        f"/allow {group.code} everyone\n"
        f"/refuse {group.code}"
    )


def answer_to(group: GroupAccess, asked: GroupAccess | None) -> str:
    """What an owner is told after a decision."""
    name = group_name(asked or group)
    if group.state is GroupState.REFUSED:
        return f"Refused: {name}. I do not ask about it again."
    who = "Everyone there" if group.everyone else f"{group.inviter_name or 'Who added me'} and you"
    return f"Allowed: {name}. {who} may command me there, when I am addressed."


def group_name(group: GroupAccess) -> str:
    """A group as a person knows it."""
    return f"“{group.name}” ({group.channel})" if group.name else str(group.channel)
