"""Signal adapter: a signal-cli daemon over HTTP, JSON-RPC for calls and server-sent events for what arrives."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import ClassVar, TypeVar
from urllib.parse import urlsplit

from belino.adapters.signal.auth import accounts, find_account, link_device
from belino.adapters.signal.authors import PLATFORM, ContactBook, SignalAccount, address
from belino.adapters.signal.capabilities import FILE_BYTES, LIMITS, WORKS, limits_of
from belino.adapters.signal.client import SignalClient
from belino.adapters.signal.doctor import START, check_account
from belino.adapters.signal.errors import RECIPIENTS, SAFETY_NUMBER, not_reached
from belino.adapters.signal.media import SignalFile
from belino.adapters.signal.parse import (
    CHANGED_KEY,
    SignalParseContext,
    context_from_json,
    context_to_json,
    edition_of,
    parse,
    timer_of,
)
from belino.adapters.signal.send import SentMessage, delete, mark_read, named, react, send, show_typing
from belino.adapters.signal.socket import EventSocket
from belino.aio.deadline import beside
from belino.aio.retry import backoff
from belino.domain.errors import AdapterError, ConfigError, MediaError, StoreError, Undeliverable, Unfindable, reason_of
from belino.domain.limits import Capabilities, Limits
from belino.domain.linking import LinkCode
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import Finding, MessageOutcome
from belino.domain.ports import Accept, AdapterContext, DraftsShown, Question, Taken, pause_between_drafts
from belino.domain.reply import UNFINISHED, Parcel, Receipt
from belino.net.json_fields import Raw, as_tables, from_json, line, table, words
from belino.net.rest import RateLimits, check_base_url

REF_LETTERS = "sg"
DEFAULT_URL = "http://localhost:8080"
API, STORE = "signal-cli", "store"
DRAFT_PAUSES = 4.0, 8.0
MOST_EDITS = 9
"""Signal's apps edit a message ten times at most; the last edit is the answer."""
MOST_KEPT = 500
QUOTE_CHARS = 300

K = TypeVar("K")
V = TypeVar("V")

SETUP = (
    Question(
        key="url",
        ask="Where does the signal-cli daemon listen?",
        default=DEFAULT_URL,
        tells=f"Start the daemon, from https://github.com/AsamK/signal-cli, on this machine:\n\n  {START}\n\n"
        "If it has no account yet, a QR code follows, which you scan in Signal on the phone: Settings, Linked devices.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one account of a signal-cli daemon."""

    url: str = field(default=DEFAULT_URL, metadata={"says": "The URL at which the signal-cli daemon listens (--http)."})
    number: str = field(
        default="",
        metadata={"says": "The account's phone number (+…), if the daemon serves several; otherwise it is found."},
    )
    shared_folder: Path | None = field(
        default=None,
        metadata={
            "says": "A folder that belino writes and the daemon reads, under the same path: files over 14 MB go "
            "through it, up to 100 MB."
        },
    )
    read_receipts: bool = field(
        default=True, metadata={"says": "Whether the sender sees that a message to the agent was read."}
    )
    drafts: DraftsShown = field(
        default="never",
        metadata={
            "says": "Where draft answers are shown while they stream: in direct messages, everywhere, or nowhere; "
            "Signal shows each change as an edit."
        },
    )

    def __post_init__(self) -> None:
        check_base_url("url", self.url)
        if self.number and not (self.number.startswith("+") and self.number[1:].isdecimal()):
            raise ConfigError("number is a phone number in international form, such as +4915112345678")
        if self.shared_folder is not None and not self.shared_folder.is_absolute():
            raise ConfigError("shared_folder must be a whole path, such as /var/lib/belino-signal")


def hosts(config: Config) -> frozenset[str]:
    """The daemon's host. It is the operator's own, so its port is written out."""
    url = urlsplit(config.url)
    name = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    return frozenset({f"{name}:{url.port or (443 if url.scheme == 'https' else 80)}"})


class Adapter:
    """One account on Signal."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __init__(self, config: Config, context: AdapterContext) -> None:
        self._config = config
        self._context = context
        self._client = SignalClient(
            context.http, context.clock, url=config.url, account=config.number, works=lambda: context.report(API)
        )
        self._limits = RateLimits("Signal", context.clock)
        self._me = SignalAccount(number=config.number)
        self._book = ContactBook()
        self._let_in = asyncio.Event()
        self._aliases: dict[str, str] = {}
        """The first ids of edited messages, by the ids of their editions; kept in the cursor."""
        self._places: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        """Texts that an answer may quote, by channel and message; of messages without a timer."""
        self._edits: dict[str, int] = {}
        self._read: asyncio.Queue[Message] = asyncio.Queue(MOST_KEPT)
        """Messages whose senders are to see that they were read."""
        self._sent: dict[str, Receipt] = {}
        self._synced: dict[tuple[str, str], Receipt] = {}
        """What our other devices report as sent, by channel and text."""
        if config.shared_folder is not None:
            self.limits = limits_of(FILE_BYTES)

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled; the cursor holds the ids of edited messages."""
        self._let_in.clear()
        held = from_json(cursor or "")
        self._aliases = {own: words(held, own) for own in held}
        await self._introduce()
        lines = EventSocket(self._client, self._context.clock, self._let_in.set)
        async with beside(self._tell_read()):
            await lines.listen(lambda event: self._take(event, accept))

    async def connected(self) -> None:
        """Wait until the daemon hands out our events."""
        await self._let_in.wait()

    async def send(self, parcel: Parcel) -> Receipt:
        """Send one message with its files, or an edit."""
        await self._identify()
        channel, files = parcel.conversation.channel, parcel.files
        edits = parcel.edits or ""
        async with AsyncExitStack() as lent:
            paths: list[str] | None = None
            if files and self._config.shared_folder is not None:
                opened = [self._context.lend(self._config.shared_folder, file) for file in files]
                try:
                    paths = [str(await lent.enter_async_context(each)) for each in opened]
                except MediaError as error:
                    raise Undeliverable(f"{files[0].name} cannot be handed to signal-cli: {error}") from error
            work = partial(
                send,
                self._client,
                parcel,
                me=self._me,
                paths=paths,
                quoted=self._texts.get(f"{channel} {parcel.reply_to}", ""),
                timer=self._book.timers.get(channel, 0),
                edits=edits,
            )
            sent = await self._limits.call(channel, work)
        return self._note(parcel, sent)

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Edit a message; a draft that was edited often enough waits for its answer."""
        times = self._edits.get(message_id, 0)
        if times >= MOST_EDITS and parcel.text.endswith(UNFINISHED):
            return Receipt(message_id=message_id, sent=self._context.clock.now())
        _keep(self._edits, message_id, times + 1)
        return await self.send(replace(parcel, edits=message_id, reply_to=None))

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete a message for everyone."""
        await self._limits.call(conversation.channel, lambda: delete(self._client, conversation, message_id, self._me))

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Set our reaction, or remove it."""
        await self._identify()
        work = partial(react, self._client, conversation, message_id, emoji, me=self._me, added=added)
        await self._limits.call(conversation.channel, work)

    async def direct(self, sender: str) -> str:
        """Direct messages have the id of their person."""
        return sender

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        """Slow, because every change is a message to Signal."""
        direct = not conversation.channel.startswith("group.")
        return pause_between_drafts(self._config.drafts, direct=direct, pauses=DRAFT_PAUSES)

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Show typing, which is all that Signal shows."""
        await show_typing(self._client, conversation)

    async def find_sent(self, parcel: Parcel) -> Receipt | None:
        """The message that a parcel became, if we or another device of the account know."""
        place = (parcel.conversation.channel, parcel.plain or parcel.text)
        found = self._sent.get(parcel.key) or (None if parcel.files else self._synced.get(place))
        if found is None or (parcel.created is not None and found.sent < parcel.created):
            raise Unfindable("Signal keeps no messages, and no other device of the account reported it")
        return found

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read the bytes of a ref from the daemon, which holds them."""
        return SignalFile(self._client, self._context.clock, ref).open()

    async def check(self) -> Sequence[Finding]:
        """Daemon, account, safety numbers and clock, for the doctor."""
        return await check_account(self._client, f"{PLATFORM}:{self._context.account}")

    async def needs_link(self) -> bool:
        """Whether the daemon, which could serve several accounts, has none for us."""
        served = await accounts(self._client)
        number = self._config.number
        return served is not None and (number not in served if number else not served)

    def link(self) -> AsyncIterator[LinkCode]:
        """Link the daemon as a device of a person's account."""
        return link_device(self._client)

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded event."""
        return parse(payload, context_from_json(known, self._view(received)))

    async def _identify(self) -> None:
        """Learn who we are where something is sent before the adapter runs."""
        if not self._me.uuid and not self._let_in.is_set():
            await self._introduce()

    async def _introduce(self) -> None:
        self._me = await find_account(self._client)
        self._book.learn_contacts(as_tables(await self._client.look("listContacts", {"allRecipients": True})))
        self._book.learn_groups(as_tables(await self._client.look("listGroups")))

    async def _take(self, event: Raw, accept: Accept) -> None:
        """Commit the arrivals of an event."""
        envelope = table(event, "envelope")
        if not self._me.number:  # a daemon for one account names it only here
            self._me = replace(self._me, number=words(event, "account"))
        self._book.name(address(envelope, "source"), line(envelope, "sourceName"))
        view = self._view()
        if (timer := timer_of(event, view)) is not None:
            self._book.time(*timer)
        if (edition := edition_of(event, view)) is not None:
            _keep(self._aliases, *edition)
        if words(table(event, "exception"), "type") == CHANGED_KEY:
            who = line(envelope, "sourceName") or address(envelope, "source")
            self._context.report(SAFETY_NUMBER, f"the safety number of {who} changed; `belino doctor`", is_note=True)
        arrivals = parse(event, view)
        self._context.parsed(event, lambda: context_to_json(view, event), arrivals)
        for arrival in arrivals:
            taken = await self._stored(accept, arrival, json.dumps(self._aliases) if edition else None)
            if isinstance(arrival, Message):
                self._heard(arrival, will_answer=taken.outcome is MessageOutcome.WAITING)

    async def _stored(self, accept: Accept, arrival: Arrival, cursor: str | None) -> Taken:
        """Store an arrival, however long that takes: the daemon gives none of what it has handed out again."""
        for attempt in count(1):
            try:
                taken = await accept(arrival, cursor=cursor)
            except StoreError as error:
                self._context.report(STORE, f"what arrives cannot be stored: {reason_of(error)}")
                await self._context.clock.sleep(backoff(attempt))
            else:
                self._context.report(STORE)
                return taken
        raise AssertionError("the attempts do not end")

    def _heard(self, message: Message, *, will_answer: bool) -> None:
        """Note what an answer may need, and tell the sender that the agent read it."""
        channel = message.conversation.channel
        if message.expires is None:
            _keep(self._texts, f"{channel} {message.id}", message.text[:QUOTE_CHARS])
        if message.author.is_agent:
            _keep(self._synced, (channel, message.text), Receipt(message_id=message.id, sent=message.sent))
            _keep(self._places, message.id, channel)
        if will_answer and self._config.read_receipts and message.author.id != self._me.id and not self._read.full():
            self._read.put_nowait(message)

    async def _tell_read(self) -> None:
        """Send read receipts, beside the stream: what the daemon has handed out is to be stored first."""
        while True:
            message = await self._read.get()
            try:
                await mark_read(self._client, message.author.id, named(message.id, self._me)[0])
            except AdapterError as error:
                self._context.report("receipts", f"read receipts: {error}", is_note=True)
            else:
                self._context.report("receipts")

    def _note(self, parcel: Parcel, sent: SentMessage) -> Receipt:
        """Note the results of a send; those whom it did not reach are told in the account's health."""
        if sent.results:
            self._context.report(RECIPIENTS, not_reached(sent.results), is_note=True)
        _keep(self._sent, parcel.key, sent.receipt)
        _keep(self._places, sent.receipt.message_id, parcel.conversation.channel)
        return sent.receipt

    def _view(self, received: datetime | None = None) -> SignalParseContext:
        return SignalParseContext(
            account=self._context.account,
            me=self._me,
            received=received or self._context.clock.now(),
            names=self._book.names,
            aliases=self._aliases,
            places=self._places,
        )


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    """Keep the newest of something."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]
