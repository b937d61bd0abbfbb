"""Discord adapter: events over the gateway socket, files by fresh links from their message, text and files out."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import ClassVar
from urllib.parse import urlsplit

from belino.adapters.discord.authors import (
    DIRECT,
    FORUMS,
    PLATFORM,
    DiscordBot,
    DiscordChannel,
    GuildCache,
    as_identity,
    identity,
)
from belino.adapters.discord.capabilities import FETCH_BYTES, LIMITS, MIB, WORKS, limits_of
from belino.adapters.discord.client import DiscordClient, DiscordRefused, refusal
from belino.adapters.discord.doctor import check_bot, check_listed
from belino.adapters.discord.history import (
    DiscordCursor,
    UnheardChannels,
    channel_history,
    fetch_channel,
    find_sent,
    is_in,
    missed,
    thread_history,
)
from belino.adapters.discord.media import DiscordDownload
from belino.adapters.discord.parse import (
    COMPONENT,
    DiscordParseContext,
    context_from_json,
    context_to_json,
    is_membership,
    is_news,
    parse,
)
from belino.adapters.discord.send import (
    CommandAnswers,
    ThreadStarter,
    channel_of,
    delete,
    edit,
    react,
    register_commands,
    send,
)
from belino.adapters.discord.socket import GatewayListener, GatewaySession, session_of
from belino.domain.commands import CommandSpec
from belino.domain.emoji import emoji_character
from belino.domain.errors import AdapterError, ConfigError, PlaceClosed, RateLimited, Unauthorized, Undeliverable
from belino.domain.limits import Capabilities, Limits, SendAs
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Deletion, Message, Unsupported
from belino.domain.outcome import Finding, MessageOutcome
from belino.domain.ports import (
    Accept,
    AdapterContext,
    DraftsShown,
    KeepsCursor,
    OpensSockets,
    Question,
    hand_in,
    pause_between_drafts,
)
from belino.domain.reply import Parcel, Receipt
from belino.net.guard import as_http, host_of
from belino.net.json_fields import Raw, as_table, count, line, table, whole, words
from belino.net.redact import Secret
from belino.net.rest import check_base_url

log = logging.getLogger(__name__)

OFFICIAL_HOST = "discord.com"
OFFICIAL_URL = f"https://{OFFICIAL_HOST}/api/v10"
CDN_URL = "https://cdn.discordapp.com"
GATEWAY_HOST = "gateway.discord.gg"
GATEWAY_ENDING = ".discord.gg"
REF_LETTERS = "dc"
API = "API"
MOST_WAITING = 1_000
BATCH = 100
APART = frozenset({"READY", "GUILD_CREATE", "GUILD_DELETE", "INTERACTION_CREATE"})
"""Events that need API calls before the next one counts."""
REACTION_PAUSE = 1.0
DRAFT_PAUSES = 1.5, 3.0
HEARD, NOT_HERE = "I am on it.", "This cannot be done here."

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

_TOKEN = re.compile(r"[\w.+/=-]{1,256}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one bot."""

    token: Secret = field(metadata={"says": "The bot's token, from the developer portal, page Bot."})
    api_url: str = field(
        default=OFFICIAL_URL, metadata={"says": "The URL of the API; set it for a server of your own."}
    )
    gateway_url: str | None = field(
        default=None, metadata={"says": "The URL of the gateway; if unset, the API is asked for it."}
    )
    cdn_url: str = field(default=CDN_URL, metadata={"says": "The URL of the files; set it for a server of your own."})
    upload_mb: int = field(
        default=10,
        metadata={
            "says": "The largest file that is sent, in MB: 10, or more if all its servers are boosted.",
            "least": 1,
            "most": 500,
        },
    )
    link_previews: bool = field(default=True, metadata={"says": "Whether Discord shows previews of links in answers."})
    drafts: DraftsShown = field(
        default="direct",
        metadata={
            "says": "Where draft answers are shown while they stream: in direct messages, everywhere, or nowhere."
        },
    )
    reply_in_threads: bool = field(
        default=False, metadata={"says": "Whether the agent answers in a thread when it is addressed in a channel."}
    )

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.token.reveal()):
            raise ConfigError(
                "token is not a bot token; it has three parts with dots between, and comes from the developer portal"
            )
        check_base_url("api_url", self.api_url)
        check_base_url("cdn_url", self.cdn_url)
        if self.gateway_url is not None:
            check_base_url("gateway_url", as_http(self.gateway_url))

    @property
    def is_official(self) -> bool:
        """Whether the API is Discord's own: then its files and gateways are on known hosts."""
        name = (urlsplit(self.api_url).hostname or "").lower()
        return name == OFFICIAL_HOST or name.endswith(f".{OFFICIAL_HOST}")


SITES = frozenset({"discord.com", "discord.gg", "discordapp.com", "discordapp.net"})
"""The platform's domains, which an account's proxy serves."""


def hosts(config: Config) -> frozenset[str]:
    """Hosts that may receive credentials; a server that the operator names may be a private one."""
    named = {host_of(config.api_url)}
    if config.gateway_url is not None:
        named.add(host_of(as_http(config.gateway_url)))
    if config.cdn_url.rstrip("/") != CDN_URL:
        named.add(host_of(config.cdn_url))
    return frozenset(named)


def may_resume_at(config: Config, url: str) -> bool:
    """Whether the token may be sent to a resume URL: one of Discord's own, or one that the configuration names."""
    try:
        parts = urlsplit(url)
        name = (parts.hostname or "").lower()
        if parts.scheme not in ("ws", "wss") or not name or "@" in parts.netloc:
            return False
        if not config.is_official or parts.netloc == urlsplit(config.gateway_url or "").netloc:
            return True
        ours = name == GATEWAY_HOST or name.endswith(GATEWAY_ENDING)
        return parts.scheme == "wss" and ours and parts.port in (None, 443)
    except ValueError:
        return False


class Adapter:
    """One bot on Discord."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __init__(self, config: Config, context: AdapterContext) -> None:
        self._config = config
        self._context = context
        self._cursor = DiscordCursor(None)
        self._unheard = UnheardChannels(context)
        self._guilds = GuildCache(DiscordBot(), {})
        self._session: GatewaySession | None = None
        self._let_in = asyncio.Event()
        self._client = DiscordClient(
            context.http,
            context.clock,
            api_url=config.api_url,
            token=config.token,
            works=lambda: context.report(API),
        )
        self._answers = CommandAnswers(self._client, context.clock)
        self._threads = ThreadStarter(self._client)
        self._application_id = ""
        """The session whose events are being processed; the cursor is made of it and its sequence numbers."""
        if config.upload_mb * MIB != LIMITS.files[SendAs.DOCUMENT].max_bytes:
            self.limits = limits_of(config.upload_mb * MIB)

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled; the cursor holds the session and the newest messages."""
        http = self._context.http
        if not isinstance(http, OpensSockets):
            raise ConfigError("Discord needs an HTTP client that opens web sockets")
        self._let_in.clear()
        self._cursor = DiscordCursor(cursor)
        known = self._cursor.session
        self._session = None if known is None else self._way_back(known)
        me = as_table(await self._client.call("GET", "/users/@me"))
        own = DiscordBot(id=identity(me, "id"), name=line(me, "username"), roles=self._cursor.roles)
        self._guilds = GuildCache(own, self._cursor.channels)
        heard: asyncio.Queue[Raw] = asyncio.Queue(MOST_WAITING)
        listener = GatewayListener(
            http,
            self._context.clock,
            token=self._config.token,
            gateway=self._gateway,
            way_back=self._way_back,
            report=self._context.report,
            session=self._session,
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(listener.run(partial(self._hear, heard, group)))
                await self._take_all(heard, accept)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors.exceptions[0].__cause__

    async def connected(self) -> None:
        """Wait until the gateway has begun or resumed a session."""
        await self._let_in.wait()

    async def send(self, parcel: Parcel) -> Receipt:
        """Send one message or edit; what answers a command itself is shown to its sender only.

        An agent's answer is, too, where the bot has no right to write: a person may use its commands anywhere.
        """
        if parcel.only_to is not None and self._answers.knows(parcel):
            told = await self._answers.send(parcel, await self._application())
            return told or await self._send(parcel)
        try:
            return await self._send(parcel)
        except Undeliverable:
            private = self._answers.knows(parcel)
            told = await self._answers.send(parcel, await self._application()) if private else None
            if told is None:
                raise
            return told

    async def _send(self, parcel: Parcel) -> Receipt:
        await self._open_thread(parcel.conversation)
        if self._holder(parcel.conversation, parcel.reply_to or "") != parcel.conversation:
            parcel = replace(parcel, reply_to=None)  # it is above the thread, and shown there
        return await send(self._client, parcel, previews=self._config.link_previews)

    async def _open_thread(self, conversation: ConversationKey) -> None:
        """Open the thread in which a message of a channel is answered, once."""
        thread = conversation.thread
        if not self._config.reply_in_threads or thread is None or thread in self._threads.opened:
            return
        expected = self._threads.expects(thread)
        place = self._guilds.channels.get(thread) if expected else await self._channel(thread)
        if place is None or not place.is_thread:
            opened = await self._threads.open(conversation)
            self._guilds.add({"type": 11, **opened, "id": thread, "parent_id": conversation.channel})

    def _holder(self, conversation: ConversationKey, message_id: str) -> ConversationKey:
        """Where a message is: the message that a thread began at is in the channel, unless that is a forum."""
        parent = self._guilds.channels.get(conversation.channel)
        in_forum = parent is not None and parent.kind in FORUMS
        above = message_id == conversation.thread and not in_forum
        return replace(conversation, thread=None) if above else conversation

    def own_name(self) -> str:
        """The bot's name, as in a mention."""
        return self._guilds.me.name

    async def offer_commands(self, commands: Sequence[CommandSpec]) -> None:
        """Register commands with the application, if they changed."""
        await register_commands(self._client, await self._application(), commands)

    async def _application(self) -> str:
        if not self._application_id:
            self._application_id = identity(as_table(await self._client.call("GET", "/applications/@me")), "id")
        return self._application_id

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Edit a message."""
        return await edit(self._client, message_id, parcel)

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete a message."""
        await delete(self._client, conversation, message_id)

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Add or remove our reaction; a channel takes one in a quarter of a second, which is waited for."""
        holder = self._holder(conversation, message_id)
        work = partial(react, self._client, holder, message_id, emoji_character(emoji), added=added)
        try:
            await work()
        except RateLimited as error:
            if error.retry_after > REACTION_PAUSE:
                raise
            await self._context.clock.sleep(error.retry_after)
            await work()

    async def direct(self, sender: str) -> str:
        """Open the direct messages with a person."""
        try:
            told = as_table(await self._client.call("POST", "/users/@me/channels", fields={"recipient_id": sender}))
        except DiscordRefused as error:
            raise refusal(error) from error
        if not (channel := identity(told, "id")):
            raise AdapterError("Discord opened direct messages and did not say under which id")
        return channel

    async def find_sent(self, parcel: Parcel) -> Receipt | None:
        """Find the message of a parcel whose nonce Discord no longer knows."""
        if parcel.only_to is not None:
            return await self._answers.find(parcel, await self._application())
        return await find_sent(self._client, parcel, bot=self._guilds.me.id)

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        """Slower in servers, where a channel is limited to five messages and edits in five seconds."""
        place = self._guilds.channels.get(conversation.channel)
        direct = place is not None and place.kind == DIRECT
        return pause_between_drafts(self._config.drafts, direct=direct, pauses=DRAFT_PAUSES)

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Show typing for ten seconds, which is all that Discord shows."""
        try:
            await self._open_thread(conversation)
        except PlaceClosed:
            conversation = replace(conversation, thread=None)
        await self._client.call("POST", "/channels/{}/typing", channel_of(conversation))

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        """Show an upload as typing."""
        await self.show_typing(conversation)

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Download the bytes of a ref, by the current link in its message; a link is valid for a day."""
        download = DiscordDownload(
            self._client,
            self._context.clock,
            ref,
            limit=self.limits.fetch_bytes or FETCH_BYTES,
            cdn_url=self._config.cdn_url,
            official=self._config.is_official,
        )
        return download.open()

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        """The newest messages of a channel, oldest first."""
        return await channel_history(self._client, self._known, channel, before=before, limit=limit)

    async def thread(self, conversation: ConversationKey) -> Sequence[Message]:
        """A thread of this channel, and the message it began at; nothing for one of another channel."""
        if not is_in(await self._channel(conversation.thread or ""), conversation.channel):
            return ()
        return await thread_history(self._client, self._known, conversation)

    async def check(self) -> Sequence[Finding]:
        """Token, intents, servers and permissions, for the doctor."""
        name = f"{PLATFORM}:{self._context.account}"
        return await check_bot(self._client, name=name, in_threads=self._config.reply_in_threads)

    async def check_channels(self, channels: Sequence[str]) -> Sequence[Finding]:
        """Listed channels that the bot cannot read, for the doctor."""
        return await check_listed(self._client, channels, name=f"{PLATFORM}:{self._context.account}")

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded event."""
        view = context_from_json(known, account=self._context.account, received=received)
        return parse(payload, replace(view, in_threads=self._config.reply_in_threads))

    @property
    def _known(self) -> DiscordParseContext:
        return DiscordParseContext(
            account=self._context.account,
            me=self._guilds.me,
            channels=self._guilds.channels,
            received=self._context.clock.now(),
            session="" if self._session is None else self._session.id,
            in_threads=self._config.reply_in_threads,
        )

    async def _gateway(self) -> str:
        """The URL for a new session; RateLimited if too many were started today."""
        if self._config.gateway_url is not None:
            return self._config.gateway_url
        told = as_table(await self._client.call("GET", "/gateway/bot"))
        limit = table(told, "session_start_limit")
        if count(limit, "remaining") == 0:
            wait = (count(limit, "reset_after") or 0) / 1000
            raise RateLimited("this bot began too many sessions today", retry_after=wait)
        url = words(told, "url")
        if not may_resume_at(self._config, url):
            raise AdapterError("Discord named a gateway that must not receive the token")
        return url

    def _way_back(self, session: GatewaySession) -> GatewaySession:
        """A session without its resume URL, unless the token may be sent there; it then resumes at the default URL."""
        return session if may_resume_at(self._config, session.url) else replace(session, url="")

    async def _take_all(self, heard: asyncio.Queue[Raw], accept: Accept) -> None:
        while True:
            batch = [await heard.get()]
            while len(batch) < BATCH and not heard.empty():
                batch.append(heard.get_nowait())
            arrivals: list[Arrival] = []
            for event in batch:
                if words(event, "t") in APART:
                    # Earlier events are on disk before the cursor can name this event.
                    await self._hand_in(arrivals, accept, self._session)
                    arrivals = []
                self._follow(event)
                self._guilds.learn(event)
                arrivals += await self._arrivals(event, accept)
                if words(event, "t") in ("READY", "RESUMED"):
                    self._let_in.set()
                if words(event, "t") == "RESUMED":
                    self._cursor.is_behind = False  # Discord has sent everything
            await self._hand_in(arrivals, accept, self._session)

    async def _arrivals(self, event: Raw, accept: Accept) -> Sequence[Arrival]:
        """The arrivals of an event; those of an event in APART are committed here."""
        name = words(event, "t")
        if name == "INTERACTION_CREATE":
            if is_news(event):
                await self._take_command(event, accept)
        elif name in APART:
            await self._catch_up(event, accept)
            if name == "READY" and isinstance(accept, KeepsCursor):
                # A new session does not receive this one's missed events: after a crash this session must be resumed.
                await accept.keep_cursor(self._written(self._session))
        elif is_news(event):
            return await self._parsed(event)
        return self._reported(event) if is_membership(event, self._context.clock.now()) else ()

    async def _parsed(self, event: Raw) -> Sequence[Arrival]:
        if channel := self._guilds.unknown(event):
            await self._channel(channel)
        return self._theirs(self._reported(event), table(event, "d"))

    def _reported(self, event: Raw) -> Sequence[Arrival]:
        known = self._known
        arrivals = parse(event, known)
        self._context.parsed(event, lambda: context_to_json(known, event), arrivals)
        return arrivals

    def _theirs(self, arrivals: Sequence[Arrival], told: Raw) -> Sequence[Arrival]:
        """Arrivals from others; our own messages are stored with their receipts."""
        channel, own = identity(told, "channel_id"), identity(told, "id")
        theirs = [arrival for arrival in arrivals if not _is_own(arrival)]
        for arrival in theirs:
            if isinstance(arrival, Message) and arrival.conversation.thread == arrival.id:
                self._threads.expect(arrival.id, arrival.text.replace(f"@{self._guilds.me.name}", ""))
        if channel and own and any(isinstance(arrival, Message | Unsupported) for arrival in theirs):
            author = identity(table(told, "author"), "id")
            self._cursor.heard(channel, own, self._guilds.channels.get(channel), author)
        return theirs

    def _written(self, session: GatewaySession | None) -> str:
        return self._cursor.written(session, self._guilds.me.roles, self._context.clock.now())

    async def _hand_in(self, arrivals: Sequence[Arrival], accept: Accept, session: GatewaySession | None) -> None:
        """Commit arrivals; the cursor moves with the last, so that none of them can be lost."""
        if arrivals:
            # Until every server has come, the session's beginning is needed again after a restart.
            cursor = self._written(None if self._unheard.awaited else session)
            await hand_in(accept, [*((each, None) for each in arrivals[:-1]), (arrivals[-1], cursor)])

    async def _hear(self, heard: asyncio.Queue[Raw], group: asyncio.TaskGroup, event: Raw) -> None:
        """Queue an event; an interaction is acknowledged beside those before it, which may take long."""
        if words(event, "t") == "INTERACTION_CREATE":
            group.create_task(self._answers.acknowledge(table(event, "d")))
        await heard.put(event)

    async def _take_command(self, event: Raw, accept: Accept) -> None:
        """Commit an interaction, and tell its sender in private what becomes of it, unless an answer does."""
        told = {name: value for name, value in table(event, "d").items() if name != "token"}  # a recording has none
        arrivals = await self._parsed({**event, "d": told})
        cursor = self._written(None if self._unheard.awaited else self._session)
        taken = [await accept(arrival, cursor=cursor) for arrival in arrivals]
        own, outcomes = identity(told, "id"), {each.outcome for each in taken}
        if count(told, "type") == COMPONENT:
            if refused := next((each.reason for each in taken if each.outcome is MessageOutcome.DENIED), ""):
                await self._answers.tell(own, refused, await self._application(), below=True)
        elif MessageOutcome.WAITING in outcomes:
            await self._answers.tell(own, HEARD, await self._application())
        elif not any(isinstance(arrival, Message) for arrival in arrivals):
            await self._answers.tell(own, NOT_HERE, await self._application())

    def _follow(self, event: Raw) -> None:
        """Keep the session and its sequence number up to date."""
        name, seq = words(event, "t"), whole(event, "s")
        if name == "READY":
            self._session = self._way_back(session_of(event))
        elif self._session is not None and seq is not None:
            self._session = replace(self._session, seq=seq)

    async def _channel(self, channel: str) -> DiscordChannel | None:
        """The channel with this id, fetched once if the gateway did not send it."""
        if channel not in self._guilds.channels and as_identity(channel):
            told = await fetch_channel(self._client, self._context.clock, channel)
            # A channel that is gone or closed to us is not fetched again; if it is opened, the gateway sends it.
            self._guilds.add({"type": 0, **(told or {}), "id": channel})
        return self._guilds.channels.get(channel)

    async def _catch_up(self, event: Raw, accept: Accept) -> None:
        """Fetch messages since the last session in known channels: Discord does not send them to a new one.

        Until that is done the cursor names no session, so that a restart fetches them again. A channel that fails does
        not delay the others; if all fail, so does the session.
        """
        self._unheard.learn(event, self._cursor, self._guilds.channels)
        asked, troubles = self._guilds.to_ask(event, self._cursor.newest), list[AdapterError]()
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
        if not self._unheard.awaited:
            await self._unheard.ask(self._client, self._cursor, partial(self._take_unheard, accept))

    async def _take_unheard(self, accept: Accept, channel: str, since: str) -> None:
        self._guilds.channels.setdefault(channel, DiscordChannel(kind=DIRECT))
        await self._take_missed(channel, since, accept, most=1)

    async def _take_missed(self, channel: str, newest: str, accept: Accept, most: int | None = None) -> None:
        async for page in missed(self._client, self._context.clock, channel, newest, most):
            parsed = [(self._reported({"t": "MESSAGE_CREATE", "d": raw}), raw) for raw in page]
            caught = [arrival for arrivals, raw in parsed for arrival in self._theirs(arrivals, raw)]
            await self._hand_in(caught, accept, None)


def _is_own(arrival: Arrival) -> bool:
    return not isinstance(arrival, Deletion) and arrival.author is not None and arrival.author.is_agent
