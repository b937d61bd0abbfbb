"""Discord: the gateway's socket in, bytes by fresh links from the message, text and files out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from belino.adapters.discord.calls import Calls
from belino.adapters.discord.check import check_bot, check_places
from belino.adapters.discord.config import Config, hosts, may_resume_at
from belino.adapters.discord.cursor import Cursor
from belino.adapters.discord.download import Download
from belino.adapters.discord.history import channel_history, is_in, missed, place_at, thread_history
from belino.adapters.discord.limits import FETCH_BYTES, LIMITS, MIB, limits_of
from belino.adapters.discord.parse import Known, is_news, parse
from belino.adapters.discord.people import DIRECT, PLATFORM, Me, Place
from belino.adapters.discord.raw import as_identity, identity
from belino.adapters.discord.read_back import find_sent
from belino.adapters.discord.recorded import recalled, remembered
from belino.adapters.discord.send import channel_of, edit, send
from belino.adapters.discord.socket import Listener, Session, session_of
from belino.adapters.discord.town import Town
from belino.adapters.discord.works import WORKS
from belino.domain.capabilities import Capabilities
from belino.domain.errors import AdapterError, ConfigError, RateLimited, Unauthorized
from belino.domain.limits import Limits, SendAs
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Deletion, Message, Unsupported
from belino.domain.outcome import Finding, MessageOutcome
from belino.domain.ports import Accept, AdapterContext, KeepsCursor, OpensSockets, Question, hand_in
from belino.domain.reply import Parcel, Receipt
from belino.net.raw import Raw, as_table, count, line, table, whole, words

__all__ = ["REF_LETTERS", "SETUP", "Adapter", "Config", "hosts"]

log = logging.getLogger(__name__)

REF_LETTERS = "dc"
MOST_WAITING = 1_000
BATCH = 100
APART = frozenset({"READY", "GUILD_CREATE", "INTERACTION_CREATE"})
"""Events that calls are made for before the next one counts."""
DRAFT_PAUSE, GROUP_DRAFT_PAUSE = 1.5, 3.0
CALLBACK = "/interactions/{}/{}/callback"
HEARD = {"content": "I am on it.", "flags": 1 << 6, "allowed_mentions": {"parse": []}}
"""Seen only by who gave the command."""

SETUP = (
    Question(
        key="token",
        ask="Which token does the bot have?",
        secret=True,
        tells="""A bot of your own, once, in a browser:
  1. https://discord.com/developers/applications : New Application, a name, Create.
  2. Bot, Privileged Gateway Intents: switch on Message Content Intent, Save Changes.
  3. Bot, Reset Token, Yes, Copy. That is what is asked for here.
belino tries it, and shows the link that lets the bot into a server.""",
    ),
)


class Adapter:
    """One bot on Discord."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __init__(self, config: Config, desk: AdapterContext) -> None:
        self._config = config
        self._desk = desk
        self._calls = Calls(desk.http, desk.clock, api_url=config.api_url, token=config.token)
        self._let_in = asyncio.Event()
        self._cursor = Cursor(None)
        self._town = Town(Me(), {})
        self._session: Session | None = None
        """The session whose events are being taken in: with their numbers it makes the cursor."""
        if config.upload_mb * MIB != LIMITS.files[SendAs.DOCUMENT].max_bytes:
            self.limits = limits_of(config.upload_mb * MIB)

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled; the cursor holds the session and the newest messages."""
        http = self._desk.http
        if not isinstance(http, OpensSockets):
            raise ConfigError("Discord needs an HTTP client that opens web sockets")
        self._let_in.clear()
        self._cursor = Cursor(cursor)
        known = self._cursor.session
        self._session = None if known is None else self._way_back(known)
        me = as_table(await self._calls.call("GET", "/users/@me"))
        own = Me(id=identity(me, "id"), name=line(me, "username"), roles=self._cursor.roles)
        self._town = Town(own, self._cursor.places)
        heard: asyncio.Queue[Raw] = asyncio.Queue(MOST_WAITING)
        listener = Listener(
            http,
            self._desk.clock,
            token=self._config.token,
            gateway=self._gateway,
            way_back=self._way_back,
            session=self._session,
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(listener.run(heard.put))
                await self._take_all(heard, accept)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors.exceptions[0].__cause__

    async def connected(self) -> None:
        """Wait until the gateway has begun or resumed a session."""
        await self._let_in.wait()

    async def send(self, parcel: Parcel) -> Receipt:
        """One message or change."""
        return await send(self._calls, parcel)

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Change what a message says."""
        return await edit(self._calls, message_id, parcel)

    async def find_sent(self, parcel: Parcel) -> Receipt | None:
        """Look whether a parcel arrived that Discord no longer knows the key of."""
        return await find_sent(self._calls, parcel, bot=self._town.me.id)

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        """Slower in servers, where five messages and changes in five seconds are for everybody."""
        place = self._town.places.get(conversation.channel)
        direct = place is not None and place.kind == DIRECT
        if self._config.drafts == "never" or (self._config.drafts == "direct" and not direct):
            return None
        return DRAFT_PAUSE if direct else GROUP_DRAFT_PAUSE

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Discord shows for ten seconds that somebody is typing, and nothing else."""
        await self._calls.call("POST", "/channels/{}/typing", channel_of(conversation))

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        """A file on its way is shown as typing too."""
        await self.show_typing(conversation)

    @asynccontextmanager
    async def open_media(self, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a ref, by the link that its message has now; it holds for a day."""
        download = Download(
            self._calls,
            self._desk.clock,
            ref,
            limit=self.limits.fetch_bytes or FETCH_BYTES,
            cdn_url=self._config.cdn_url,
            official=self._config.is_official,
        )
        await download.prepare()
        async with aclosing(download.chunks()) as chunks:
            yield chunks

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        """The newest messages of a channel, oldest first."""
        return await channel_history(self._calls, self._known, channel, before=before, limit=limit)

    async def thread(self, conversation: ConversationKey) -> Sequence[Message]:
        """A thread of this channel, and the message it began at; nothing for one of another channel."""
        if not is_in(await self._place(conversation.thread or ""), conversation.channel):
            return ()
        return await thread_history(self._calls, self._known, conversation)

    async def check(self) -> Sequence[Finding]:
        """Token, intents, servers and permissions, for the doctor."""
        return await check_bot(self._calls, name=f"{PLATFORM}:{self._desk.account}")

    async def check_channels(self, channels: Sequence[str]) -> Sequence[Finding]:
        """Which of them the bot does not hear, for the doctor."""
        return await check_places(self._calls, channels, name=f"{PLATFORM}:{self._desk.account}")

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded event."""
        return parse(payload, recalled(known, account=self._desk.account, received=received))

    @property
    def _known(self) -> Known:
        return Known(
            account=self._desk.account,
            me=self._town.me,
            places=self._town.places,
            received=self._desk.clock.now(),
            session="" if self._session is None else self._session.id,
        )

    async def _gateway(self) -> str:
        """Where a new session begins; RateLimited if there were too many today."""
        if self._config.gateway_url is not None:
            return self._config.gateway_url
        told = as_table(await self._calls.call("GET", "/gateway/bot"))
        limit = table(told, "session_start_limit")
        if count(limit, "remaining") == 0:
            wait = (count(limit, "reset_after") or 0) / 1000
            raise RateLimited("this bot began too many sessions today", retry_after=wait)
        url = words(told, "url")
        if not may_resume_at(self._config, url):
            raise AdapterError("Discord named a gateway that belino does not tell its token")
        return url

    def _way_back(self, session: Session) -> Session:
        """A session at a place where the token may be said; where it may not, it is resumed where one would begin."""
        return session if may_resume_at(self._config, session.url) else replace(session, url="")

    async def _take_all(self, heard: asyncio.Queue[Raw], accept: Accept) -> None:
        while True:
            batch = [await heard.get()]
            while len(batch) < BATCH and not heard.empty():
                batch.append(heard.get_nowait())
            arrivals: list[Arrival] = []
            for event in batch:
                if words(event, "t") in APART:
                    # What came before is on disk before the cursor can name this event.
                    await self._hand_in(arrivals, accept, self._session)
                    arrivals = []
                self._follow(event)
                self._town.learn(event)
                arrivals += await self._arrivals(event, accept)
                if words(event, "t") in ("READY", "RESUMED"):
                    self._let_in.set()
            await self._hand_in(arrivals, accept, self._session)

    async def _arrivals(self, event: Raw, accept: Accept) -> Sequence[Arrival]:
        """What an event tells; one that is taken apart from others is taken in here."""
        name = words(event, "t")
        if name == "INTERACTION_CREATE":
            if is_news(event):
                await self._take_command(event, accept)
        elif name in APART:
            await self._catch_up(event, accept)
            if name == "READY" and isinstance(accept, KeepsCursor):
                # A new session is not told what this one would have been: after a crash it must be this one.
                await accept.keep_cursor(self._cursor.written(self._session, self._town.me.roles))
        elif is_news(event):
            return await self._parsed(event)
        return ()

    async def _parsed(self, event: Raw) -> Sequence[Arrival]:
        if channel := self._town.unknown(event):
            await self._place(channel)
        return self._theirs(self._reported(event), table(event, "d"))

    def _reported(self, event: Raw) -> Sequence[Arrival]:
        known = self._known
        arrivals = parse(event, known)
        self._desk.parsed(event, lambda: remembered(known, event), arrivals)
        return arrivals

    def _theirs(self, arrivals: Sequence[Arrival], told: Raw) -> Sequence[Arrival]:
        """What others said; what we said ourselves is stored when its receipt comes."""
        channel, own = identity(told, "channel_id"), identity(told, "id")
        theirs = [arrival for arrival in arrivals if not _is_own(arrival)]
        if channel and own and any(isinstance(arrival, Message | Unsupported) for arrival in theirs):
            self._cursor.heard(channel, own, self._town.places.get(channel))
        return theirs

    async def _hand_in(self, arrivals: Sequence[Arrival], accept: Accept, session: Session | None) -> None:
        """Take arrivals in; the cursor moves with the last, so that none of them can be lost."""
        if arrivals:
            cursor = self._cursor.written(session, self._town.me.roles)
            await hand_in(accept, [*((each, None) for each in arrivals[:-1]), (arrivals[-1], cursor)])

    async def _take_command(self, event: Raw, accept: Accept) -> None:
        """Whoever gave a command that will be answered is told so at once: Discord waits for that three seconds."""
        arrivals = await self._parsed(event)
        cursor = self._cursor.written(self._session, self._town.me.roles)
        outcomes = {(await accept(arrival, cursor=cursor)).outcome for arrival in arrivals}
        if MessageOutcome.WAITING not in outcomes:
            return
        told = table(event, "d")
        try:
            await self._calls.call(
                "POST", CALLBACK, identity(told, "id"), words(told, "token"), fields={"type": 4, "data": HEARD}
            )
        except AdapterError as error:
            log.info("a command could not be acknowledged: %s", type(error).__name__)

    def _follow(self, event: Raw) -> None:
        """Know which session an event belongs to."""
        name, seq = words(event, "t"), whole(event, "s")
        if name == "READY":
            self._session = self._way_back(session_of(event))
        elif self._session is not None and seq is not None:
            self._session = replace(self._session, seq=seq)

    async def _place(self, channel: str) -> Place | None:
        """What sort of place a channel is, asked for once if nobody told."""
        if channel not in self._town.places and as_identity(channel):
            told = await place_at(self._calls, self._desk.clock, channel)
            # What is gone or closed to us is not asked for again; should it be opened, the gateway tells.
            self._town.add({"type": 0, **(told or {}), "id": channel})
        return self._town.places.get(channel)

    async def _catch_up(self, event: Raw, accept: Accept) -> None:
        """A new session is not told what was said since the last one: ask where we listened before.

        Until that is done the cursor names no session: whoever begins again here has to ask again. A channel that
        Discord fails to tell of does not keep it from the others; if it tells of none, that is begun again.
        """
        asked, troubles = self._town.to_ask(event, self._cursor.newest), list[AdapterError]()
        for channel, newest in asked.items():
            try:
                await self._take_missed(channel, newest, accept)
            except (RateLimited, Unauthorized):
                raise
            except AdapterError as error:
                troubles.append(error)
                log.warning("what was missed in channel %s cannot be had: %s", channel, type(error).__name__)
        if troubles and len(troubles) == len(asked):
            raise troubles[0]

    async def _take_missed(self, channel: str, newest: str, accept: Accept) -> None:
        async for page in missed(self._calls, self._desk.clock, channel, newest):
            parsed = [(self._reported({"t": "MESSAGE_CREATE", "d": raw}), raw) for raw in page]
            caught = [arrival for arrivals, raw in parsed for arrival in self._theirs(arrivals, raw)]
            await self._hand_in(caught, accept, None)


def _is_own(arrival: Arrival) -> bool:
    return not isinstance(arrival, Deletion) and arrival.author is not None and arrival.author.is_agent
