"""Intake of an arrival: check its size and sender, drop duplicates, store it, publish it, wake its session."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from belino.config import SessionsConfig
from belino.domain.choice import chosen_number
from belino.domain.commands import ChatCommand
from belino.domain.errors import ScopeError, StoreError
from belino.domain.failpoints import failpoint
from belino.domain.media import MediaRef
from belino.domain.message import (
    Arrival,
    ChatType,
    ConversationKey,
    Deletion,
    DeliveryState,
    DeliveryStatus,
    Edit,
    Message,
    Quote,
    Unsupported,
)
from belino.domain.outcome import Counters, MessageOutcome, Standing, TurnState
from belino.domain.ports import Accept, Clock, Incoming, Taken
from belino.domain.stored import ScreenedArrival, StoredMessage, Verdict
from belino.gateway.access import (
    AccountAccess,
    channel_facts,
    decide,
    is_leaving,
    may_ask,
    may_pair,
    offer_pairing,
    to_hear,
)
from belino.gateway.events import EventBus
from belino.gateway.joining import Joiner
from belino.gateway.moves import Moves
from belino.gateway.sessions import Sessions
from belino.storage.store import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeCallbacks:
    """The calls that intake makes once arrivals are screened and stored."""

    arrived: Callable[[Arrival, Taken], None] = lambda _arrival, _taken: None
    """With every arrival, stored or denied."""
    deleted: Callable[[], None] = lambda: None
    """When a deletion may have to be carried out."""
    to_send: Callable[[ConversationKey], None] = lambda _conversation: None
    """With a conversation whose outbox got a parcel to send, such as a pairing message for a stranger."""
    heard: Callable[[tuple[str, str]], None] = lambda _account: None
    """With the account of every arrival."""


class AsksOwners(Protocol):
    """The part of the owners' decisions that intake needs; see gateway/owners.py."""

    async def asked(self, arrival: Arrival) -> None: ...
    async def left(self, arrival: Arrival) -> None: ...
    async def obey(self, message: Message) -> str | None: ...


class CarriesOut(Protocol):
    """The part of the commands that intake needs; see gateway/commands.py."""

    def find(self, arrival: Arrival) -> ChatCommand | None: ...
    async def screen(self, judged: ScreenedArrival) -> ScreenedArrival: ...
    async def done(self, judged: ScreenedArrival, taken: Taken) -> None: ...


class Intake:
    """Screens and stores every arrival of every platform."""

    def __init__(
        self,
        store: Store,
        accounts: Mapping[tuple[str, str], AccountAccess],
        sessions: Sessions,
        *,
        config: SessionsConfig,
        clock: Clock,
        notices: EventBus,
        counters: Counters,
        callbacks: IntakeCallbacks,
        commands: CarriesOut | None = None,
        groups: AsksOwners | None = None,
        moves: Moves | None = None,
        joiner: Joiner,
        hears_first: bool = False,
    ) -> None:
        """`hears_first`: voice messages are read before it is known whether they address the agent."""
        self._store = store
        self._accounts = accounts
        self._sessions = sessions
        self._config = config
        self._clock = clock
        self._notices = notices
        self._counters = counters
        self._callbacks = callbacks
        self._commands = commands
        self._groups = groups
        self._moves = moves
        self._joiner = joiner
        self.hears_first = hears_first

    def for_account(self, platform: str, account: str) -> Accept:
        """The function an adapter gets: it accepts only arrivals of its own account."""
        return _AccountIntake(self, platform, account)

    def heard(self, account: tuple[str, str]) -> None:
        """Note that the platform of an account reported something."""
        self._callbacks.heard(account)

    async def accept(self, arrival: Arrival, *, cursor: str | None = None) -> Taken:
        """Accept one arrival; when this returns, arrival and cursor are on disk."""
        return (await self.accept_all([(arrival, cursor)]))[0]

    async def accept_all(self, incoming: Sequence[Incoming]) -> tuple[Taken, ...]:
        """Accept arrivals in order and with few commits. If one fails, no cursor is past it."""
        taken: list[Taken] = []
        run: list[ScreenedArrival] = []
        for told, cursor in incoming:
            arrival = told if self._moves is None else await self._moves.follow(told)
            # Access to a change is decided by the message as it is stored, and a command by all that came before it.
            if _is_about_any(arrival, run) or (self._commands is not None and self._commands.find(arrival)):
                taken += await self._take(run)
                run = []
            judged = await self._judged(arrival, cursor)
            failpoint("intake.screened")
            if judged.verdict.answer:
                if not self._sessions.has_room(beside=len(run)):  # store the earlier arrivals before waiting
                    taken += await self._take(run)
                    run = []
                await self._sessions.room()
            run.append(judged)
        return (*taken, *await self._take(run))

    async def keep_cursor(self, platform: str, account: str, cursor: str) -> None:
        """Store how far an account's adapter has read, without an arrival."""
        await self._store.keep_cursor(platform, account, cursor)

    async def recall(self, messages: Sequence[Message]) -> None:
        """Store messages from before, without those that the access rules deny; no turn begins with them."""
        by_channel: dict[ConversationKey, list[Message]] = {}
        commanders: set[str] = set()
        for message in messages:
            standing = Standing.DENIED if self._too_long(message) else (await self._judge(message)).standing
            if standing is not Standing.DENIED:
                by_channel.setdefault(message.conversation.whole_channel, []).append(message)
            if standing is Standing.MAY_COMMAND:
                commanders.add(message.author.id)
        for channel, own in by_channel.items():
            await self._store.take_history(channel, own, commanders=commanders)

    async def reopen(self, conversation: ConversationKey) -> None:
        """Send what waited for the person to write."""
        for where in await self._store.reopen_parcels(conversation):
            self._callbacks.to_send(where)

    async def may_command(self, message: Message) -> bool:
        """Whether the author of a message may command the agent where it was written, by one that addresses it."""
        verdict = await self._judge(replace(message, addressed=True))
        return verdict.standing is Standing.MAY_COMMAND

    async def _judged(self, arrival: Arrival, cursor: str | None) -> ScreenedArrival:
        verdict = self._too_long(arrival)
        if verdict is None:
            arrival, chosen = await self._chosen(arrival)
            verdict = chosen or await self._obeyed(arrival) or await self._judge(arrival)
            if verdict.standing is Standing.DENIED:
                await self._offer_pairing(arrival)
                await self._ask_owners(arrival)
        ready = None
        if isinstance(arrival, Message) and arrival.album is not None:
            # Every item extends the wait, also one without a mention: in a group only the first item has it.
            ready = self._clock.now() + timedelta(milliseconds=self._config.album_window_ms)
        joining = self._joiner.joining(arrival, verdict)
        judged = ScreenedArrival(arrival=arrival, verdict=verdict, cursor=cursor, ready=ready, joining=joining)
        return judged if self._commands is None else await self._commands.screen(judged)

    async def _chosen(self, arrival: Arrival) -> tuple[Arrival, Verdict | None]:
        """A press, or the number of a choice, as the message that it is; with a verdict if the choice is refused."""
        if not isinstance(arrival, Message):
            return arrival, None
        where, sender, key = arrival.conversation, arrival.author.id, arrival.press
        if key is None and (number := chosen_number(arrival.text)) is not None and not arrival.media:
            key = await self._store.numbered_choice(where, sender, number)
        if key is None:
            return arrival, None
        asked = replace(arrival, addressed=True)
        if (verdict := await self._judge(asked)).standing is not Standing.MAY_COMMAND:
            return arrival, verdict if arrival.press is None else replace(verdict, standing=Standing.DENIED)
        chosen = await self._store.choose(key, where, sender=sender, message_id=arrival.id)
        if not chosen.refused:
            self._callbacks.to_send(where)  # the edit of the question is in the outbox
            return replace(asked, text=chosen.text), None
        return arrival, Verdict(standing=Standing.DENIED, reason=chosen.refused) if arrival.press else None

    async def _take(self, run: Sequence[ScreenedArrival]) -> tuple[Taken, ...]:
        """Store screened arrivals in one commit; if that fails, one by one up to the one that fails, which raises."""
        if not run:
            return ()
        failpoint("intake.store.before")
        try:
            with self._sessions.storing():
                taken = await self._store.take_in_all(run, album_wait=timedelta(milliseconds=self._config.album_max_ms))
                self._sessions.queued(sum(one.queued for one in taken))
        except (StoreError, ValueError, TypeError, ArithmeticError):
            if len(run) == 1:
                raise
            return tuple([one for judged in run for one in await self._take([judged])])
        failpoint("intake.store.after")
        await self._tell_all(run, taken)
        return taken

    async def _tell_all(self, run: Sequence[ScreenedArrival], taken: Sequence[Taken]) -> None:
        for judged, one in zip(run, taken, strict=True):
            self._counters.arrivals[one.outcome] += 1
            arrival = judged.arrival
            self._callbacks.arrived(arrival, one)
            log.info("%s in %s: %s (trace %s)", arrival.kind, arrival.conversation, one.outcome, one.trace or "none")
            if isinstance(arrival, DeliveryStatus) and arrival.state is DeliveryState.AGAIN:
                self._callbacks.to_send(arrival.conversation)
        if any(_may_take_back(judged.arrival) for judged in run):
            self._callbacks.deleted()
        try:
            for judged, one in zip(run, taken, strict=True):
                if one.completes or one.outcome not in (MessageOutcome.DENIED, MessageOutcome.DUPLICATE):
                    await self._tell(judged.arrival, waits=one.turn is not None)
                if self._commands is not None:
                    await self._commands.done(judged, one)
        finally:
            for judged, one in zip(run, taken, strict=True):
                if one.turn is not None:
                    self._joiner.settle(judged, one)
                    self._sessions.wake(judged.arrival.conversation)

    def _too_long(self, arrival: Arrival) -> Verdict | None:
        """Why an arrival is refused by its size, before its sender is checked."""
        most = self._config.max_text_chars
        if sum(len(text) for text in _texts(arrival)) > most:
            return Verdict(standing=Standing.DENIED, reason=f"the text is over {most} characters; send it as a file")
        return None

    async def _judge(self, arrival: Arrival) -> Verdict:
        account = self._accounts.get((arrival.conversation.platform, arrival.conversation.account))
        if account is None:
            raise ScopeError("there is no such account here")
        about, heard = None, False
        if not isinstance(arrival, Message | Unsupported):
            about = await self._kept(arrival.conversation, arrival.message_id)
            heard = about is not None or bool(await self._store.history(arrival.conversation.whole_channel, limit=1))
        paired = self._may_pair(arrival) and await self._is_paired(arrival)
        facts = await channel_facts(self._store, arrival, account)
        verdict = decide(
            arrival,
            account.access,
            trusts_senders=account.trusts_senders,
            about=about,
            heard=heard,
            paired=paired,
            facts=facts,
        )
        if self.hears_first and to_hear(arrival, account.access, verdict, facts):
            # A turn reads it first, and goes on only if it names the agent.
            return replace(verdict, answer=True)
        return verdict

    def _may_pair(self, arrival: Arrival) -> bool:
        account = self._accounts[arrival.conversation.platform, arrival.conversation.account]
        return not account.trusts_senders and may_pair(arrival, account.access)

    async def _is_paired(self, arrival: Arrival) -> bool:
        where, author = arrival.conversation, arrival.author
        return author is not None and await self._store.is_paired(where.platform, where.account, author.id)

    async def _obeyed(self, arrival: Arrival) -> Verdict | None:
        """The verdict on an owner's decision, which is carried out here; None for any other arrival."""
        if self._groups is None or not isinstance(arrival, Message) or arrival.chat_type is not ChatType.DIRECT:
            return None
        done = await self._groups.obey(arrival)
        return None if done is None else Verdict(standing=Standing.OBSERVED, reason=f"an owner's decision: {done}")

    async def _ask_owners(self, arrival: Arrival) -> None:
        """Ask the owners about a group that is not listed, before the cursor moves; withdraw it if the agent left."""
        where = arrival.conversation
        if self._groups is None:
            return
        if is_leaving(arrival):
            await self._groups.left(arrival)
        elif may_ask(arrival, self._accounts[where.platform, where.account].access):
            await self._groups.asked(arrival)

    async def _offer_pairing(self, arrival: Arrival) -> None:
        """Send a stranger their pairing code."""
        if not isinstance(arrival, Message) or not self._may_pair(arrival):
            return
        # Before the cursor moves: after a crash in between, the arrival comes again and gets no second code.
        if await offer_pairing(self._store, arrival):
            self._callbacks.to_send(arrival.conversation)

    async def _kept(self, conversation: ConversationKey, message_id: str) -> StoredMessage | None:
        return next(iter(await self._store.messages(conversation.whole_channel, [message_id])), None)

    async def _tell(self, arrival: Arrival, *, waits: bool) -> None:
        if self._notices.watched(arrival.conversation):
            await self._tell_message(arrival)
        else:
            self._notices.changed(arrival.conversation)
        if waits:
            self._notices.turn(arrival.conversation, 0, TurnState.WAITING)

    async def _tell_message(self, arrival: Arrival) -> None:
        message_id = arrival.id if isinstance(arrival, Message | Unsupported) else arrival.message_id
        try:
            stored = await self._kept(arrival.conversation, message_id)
        except StoreError:
            # The arrival is on disk: a failed notification of pages is no reason to refuse it.
            self._notices.lost()
            return
        if stored is not None:
            self._notices.message(stored)


class _AccountIntake:
    """Intake for the arrivals of one account."""

    def __init__(self, intake: Intake, platform: str, account: str) -> None:
        self._intake = intake
        self._account = (platform, account)

    async def __call__(self, arrival: Arrival, *, cursor: str | None = None) -> Taken:
        return (await self.many([(arrival, cursor)]))[0]

    async def keep_cursor(self, cursor: str) -> None:
        await self._intake.keep_cursor(*self._account, cursor)

    async def recall(self, messages: Sequence[Message]) -> None:
        self._check([message.conversation for message in messages])
        self._intake.heard(self._account)
        await self._intake.recall(messages)

    async def reopen(self, conversation: ConversationKey) -> None:
        self._check([conversation])
        await self._intake.reopen(conversation)

    async def many(self, incoming: Sequence[Incoming]) -> tuple[Taken, ...]:
        self._check([arrival.conversation for arrival, _ in incoming])
        failpoint("adapter.events.received")
        self._intake.heard(self._account)
        taken = await self._intake.accept_all(incoming)
        failpoint("adapter.events.stored")
        return taken

    def _check(self, places: Sequence[ConversationKey]) -> None:
        for where in places:
            if (where.platform, where.account) != self._account:
                own = ":".join(self._account)
                raise ScopeError(f"{own} passed an arrival of {where.platform}:{where.account}")


def _is_about_any(arrival: Arrival, run: Sequence[ScreenedArrival]) -> bool:
    """Whether an arrival changes a message that is screened and not stored yet, or is a bot's, which are counted."""
    if isinstance(arrival, Message | Unsupported):
        return arrival.author.is_bot and not arrival.author.is_agent and bool(run)
    about = (arrival.conversation.whole_channel, arrival.message_id)
    return any((judged.arrival.conversation.whole_channel, judged.arrival.id) == about for judged in run)


def _may_take_back(arrival: Arrival) -> bool:
    """Whether something may be deleted: an edit may remove a picture, a message may have a timer or come late."""
    if isinstance(arrival, Message):
        return arrival.expires is not None or any(ref.sha256 is not None for ref in arrival.media)
    return isinstance(arrival, Deletion | Edit)


def _texts(arrival: Arrival) -> Iterator[str]:
    """Every text in an arrival that its sender wrote."""
    if arrival.author is not None:
        yield arrival.author.name
    if isinstance(arrival, Message | Edit):
        yield arrival.text
        yield from _media_texts(arrival.media)
    if isinstance(arrival, Message):
        yield arrival.channel_name or ""
        for quote in (arrival.quote, arrival.forward):
            yield from _quote_texts(quote)


def _quote_texts(quote: Quote | None) -> Iterator[str]:
    if quote is not None:
        yield quote.text
        yield quote.author.name if quote.author is not None else ""
        yield from _media_texts(quote.media)


def _media_texts(media: tuple[MediaRef, ...]) -> Iterator[str]:
    for ref in media:
        yield ref.file_name or ""
        yield ref.caption or ""
