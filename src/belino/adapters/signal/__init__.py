"""Signal adapter: a signal-cli daemon over HTTP, JSON-RPC for calls and server-sent events for what arrives."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import ClassVar

from belino.adapters.signal.auth import accounts, find_account, link_device
from belino.adapters.signal.authors import GROUP, PLATFORM, SignalAccount, SignalParseContext, address, known_places
from belino.adapters.signal.capabilities import FILE_BYTES, LIMITS, WORKS, limits_of
from belino.adapters.signal.client import SignalClient
from belino.adapters.signal.doctor import START, check_account
from belino.adapters.signal.errors import RECIPIENTS, SAFETY_NUMBER, not_reached
from belino.adapters.signal.media import open_file
from belino.adapters.signal.parse import CHANGED_KEY, context_from_json, context_to_json, parse, timer_of
from belino.adapters.signal.send import act, named, send
from belino.adapters.signal.socket import listen
from belino.aio.deadline import beside
from belino.aio.retry import Retry
from belino.domain.errors import AdapterError, ConfigError, MediaError, Undeliverable, Unfindable
from belino.domain.limits import Capabilities, Limits
from belino.domain.linking import LinkCode
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Edit, Message
from belino.domain.outcome import Finding, MessageOutcome
from belino.domain.ports import Accept, AdapterContext, DraftsShown, Question, pause_between_drafts
from belino.domain.reply import UNFINISHED, OutgoingFile, Parcel, Receipt
from belino.net.guard import parse_url
from belino.net.json_fields import Raw, as_tables, from_json, line, table, texts_by_key, words
from belino.net.rest import Latest, OnlyReactions, RateLimits, check_base_url

REF_LETTERS = "sg"
DEFAULT_URL = "http://localhost:8080"
STORE = "store"
DRAFT_PAUSES = 4.0, 8.0
MOST_EDITS = 9
"""Signal's apps edit a message ten times at most; the last edit is the answer."""
MOST_NAMES, MOST_UNREAD = 5_000, 500

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
    return frozenset({parse_url(config.url).host_port})


class Adapter:
    """One account on Signal."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __init__(self, config: Config, context: AdapterContext) -> None:
        self._config = config
        self._context = context
        self._client = SignalClient(context, url=config.url, account=config.number)
        self._limits = RateLimits("Signal", context.clock)
        self._insist = Retry(context.clock, tries=inf, report=lambda why: context.report(STORE, why))
        self._me = SignalAccount(number=config.number)
        self._let_in = asyncio.Event()
        self._names: Latest[str, str] = Latest(MOST_NAMES)
        """By person or channel."""
        self._timers: Latest[str, int] = Latest(MOST_NAMES)
        """Seconds after which messages of a channel vanish; 0 if they do not."""
        self._aliases: Latest[str, str] = Latest()
        """The first ids of edited messages, by the ids of their editions; kept in the cursor."""
        self._reactions = OnlyReactions()
        self._places: Latest[str, str] = Latest()
        self._edits: Latest[str, int] = Latest()
        self._read: asyncio.Queue[Message] = asyncio.Queue(MOST_UNREAD)
        """Messages whose senders are to see that they were read."""
        self._sent: Latest[str, Receipt] = Latest()
        """What we sent, by key, and what our other devices report as sent, by channel and text."""
        if config.shared_folder is not None:
            self.limits = limits_of(FILE_BYTES)

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled; the cursor holds the ids of edited messages."""
        self._let_in.clear()
        self._aliases.update(texts_by_key(from_json(cursor or "")))
        await self._introduce()
        async with beside(self._tell_read()):
            await listen(self._client, self._let_in.set, lambda event: self._take(event, accept))

    async def connected(self) -> None:
        """Wait until the daemon hands out our events."""
        await self._let_in.wait()

    async def send(self, parcel: Parcel) -> Receipt:
        """Send one message with its files, or an edit."""
        await self._identify()
        channel = parcel.conversation.channel
        async with self._lent(parcel.files) as paths:
            timer = self._timers.get(channel, 0)
            work = partial(send, self._client, parcel, me=self._me, paths=paths, timer=timer)
            receipt, results = await self._limits.call(channel, work)
        if results:
            self._context.report(RECIPIENTS, not_reached(results), is_note=True)
        self._sent.keep(parcel.key, receipt)
        self._places.keep(receipt.message_id, channel)
        return receipt

    @asynccontextmanager
    async def _lent(self, files: Sequence[OutgoingFile]) -> AsyncIterator[list[str] | None]:
        """The paths of copies in the shared folder; None without one."""
        folder = self._config.shared_folder
        async with AsyncExitStack() as lent:
            try:
                opened = [self._context.lend(folder, file) for file in files] if folder else []
                paths = [str(await lent.enter_async_context(each)) for each in opened]
            except MediaError as error:
                raise Undeliverable(f"{files[0].name} cannot be handed to signal-cli: {error}") from error
            yield paths if folder else None

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Edit a message; a draft that was edited often enough waits for its answer."""
        times = self._edits.get(message_id, 0)
        if times >= MOST_EDITS and parcel.text.endswith(UNFINISHED):
            return Receipt(message_id=message_id, sent=self._context.clock.now())
        self._edits.keep(message_id, times + 1)
        return await self.send(replace(parcel, edits=message_id, reply_to=None))

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete a message for everyone."""
        await self._act("remoteDelete", conversation, targetTimestamp=named(message_id, self._me)[0])

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Set or remove our reaction, of which Signal shows one to a message."""
        await self._identify()
        stamp, author = named(message_id, self._me)
        if not stamp:
            raise Undeliverable("this is no message that Signal knows")
        told = {"emoji": emoji, "targetAuthor": author, "targetTimestamp": stamp, "remove": not added}
        call = partial(self._act, "sendReaction", conversation, **told)
        await self._reactions.change(conversation, message_id, emoji, added=added, call=call)

    async def _act(self, method: str, conversation: ConversationKey, **params: object) -> None:
        work = partial(act, self._client, method, conversation, **params)
        await self._limits.call(conversation.channel, work)

    async def direct(self, sender: str) -> str:
        """Direct messages have the id of their person."""
        return sender

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        """Slow, because every change is a message to Signal."""
        direct = not conversation.channel.startswith(GROUP)
        return pause_between_drafts(self._config.drafts, direct=direct, pauses=DRAFT_PAUSES)

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Show typing, which is all that Signal shows; it ends after 15 seconds or with the message."""
        await act(self._client, "sendTyping", conversation)

    async def find_sent(self, parcel: Parcel) -> Receipt | None:
        """The message that a parcel became, if we or another device of the account know."""
        said = f"{parcel.conversation.channel} {parcel.plain or parcel.text}"
        found = self._sent.get(parcel.key) or (None if parcel.files else self._sent.get(said))
        if found is None or (parcel.created is not None and found.sent < parcel.created):
            raise Unfindable("Signal keeps no messages, and no other device of the account reported it")
        return found

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read the bytes of a ref from the daemon, which holds them."""
        return open_file(self._client, ref)

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
        number = await find_account(self._client)
        contacts = as_tables(await self._client.look("listContacts", {"allRecipients": True}))
        self._me = SignalAccount.among(contacts, number)
        for own, name, timer in known_places(contacts, as_tables(await self._client.look("listGroups"))):
            self._timers.keep(own, timer)
            if name:
                self._names.keep(own, name)

    async def _take(self, event: Raw, accept: Accept) -> None:
        """Commit the arrivals of an event, however long that takes: the daemon does not hand it out again."""
        envelope = table(event, "envelope")
        if not self._me.number:  # a daemon for one account names it only here
            self._me = replace(self._me, number=words(event, "account"))
        who, name = address(envelope, "source"), line(envelope, "sourceName")
        if who and name:
            self._names.keep(who, name)
        view = self._view()
        if (timer := timer_of(event, view)) is not None:
            self._timers.keep(*timer)
        if words(table(event, "exception"), "type") == CHANGED_KEY:
            says = f"the safety number of {name or who} changed; `belino doctor`"
            self._context.report(SAFETY_NUMBER, says, is_note=True)
        arrivals = parse(event, view)
        self._context.parsed(event, lambda: context_to_json(view, event), arrivals)
        for arrival in arrivals:
            cursor = None
            if isinstance(arrival, Edit):
                self._aliases.keep(arrival.id, arrival.message_id)
                cursor = json.dumps(self._aliases)
            taken = await self._insist("what arrives", partial(accept, arrival, cursor=cursor))
            if isinstance(arrival, Message):
                self._heard(arrival, will_answer=taken.outcome is MessageOutcome.WAITING)

    def _heard(self, message: Message, *, will_answer: bool) -> None:
        """Note what may be asked for later, and have the sender told that the agent read it."""
        if message.author.is_agent:
            channel = message.conversation.channel
            self._sent.keep(f"{channel} {message.text}", Receipt(message_id=message.id, sent=message.sent))
            self._places.keep(message.id, channel)
        if will_answer and self._config.read_receipts and message.author.id != self._me.id and not self._read.full():
            self._read.put_nowait(message)

    async def _tell_read(self) -> None:
        """Send read receipts, beside the stream: what the daemon has handed out is to be stored first."""
        while True:
            message = await self._read.get()
            writer = replace(message.conversation, channel=message.author.id)
            stamp = named(message.id, self._me)[0]
            try:
                await act(self._client, "sendReceipt", writer, targetTimestamp=stamp, type="read")
            except AdapterError as error:
                self._context.report("receipts", f"read receipts: {error}", is_note=True)
            else:
                self._context.report("receipts")

    def _view(self, received: datetime | None = None) -> SignalParseContext:
        return SignalParseContext(
            account=self._context.account,
            me=self._me,
            received=received or self._context.clock.now(),
            names=self._names,
            aliases=self._aliases,
            places=self._places,
        )
