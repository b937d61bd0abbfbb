"""Slack, through an app of one's own: events over Socket Mode or signed HTTP, the Web API for everything else."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from ipaddress import ip_address
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from belino.adapters.slack.calls import Calls
from belino.adapters.slack.catchup import CatchUp
from belino.adapters.slack.check import check_app, check_places
from belino.adapters.slack.cursor import Reached
from belino.adapters.slack.download import Download
from belino.adapters.slack.history import Past, in_conversation
from belino.adapters.slack.hooks import (
    challenge_of,
    is_signed,
    looks_at_certificate,
    may_be_signed,
    may_look_at_certificate,
    read_hook,
)
from belino.adapters.slack.limits import LIMITS
from belino.adapters.slack.manifest import SETUP as SETUP
from belino.adapters.slack.names import Names
from belino.adapters.slack.pacing import Pacing
from belino.adapters.slack.parse import View, is_own_change, own_teams, parse, said, says_nothing_new
from belino.adapters.slack.people import PLATFORM, Me
from belino.adapters.slack.recorded import recalled, remembered
from belino.adapters.slack.send import edit, send
from belino.adapters.slack.socket import SocketMode
from belino.adapters.slack.status import THINKING, UPLOADING, Status
from belino.adapters.slack.works import WORKS
from belino.domain.capabilities import Capabilities
from belino.domain.errors import BelinoError, ConfigError
from belino.domain.limits import Limits, SendAs
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import Finding
from belino.domain.ports import Accept, AdapterContext, Hook, HookAnswer, Incoming, OpensSockets, hand_in
from belino.domain.reply import Parcel, Receipt
from belino.net.guard import host_of
from belino.net.raw import Raw, as_table, line, table, words
from belino.net.redact import Secret

OFFICIAL_URL = "https://slack.com/api/"
# Private links lead to the first; large workspaces send on to the second.
FILE_HOSTS = ("files", "files-origin")
REF_LETTERS = "sl"

DRAFT_PAUSE, CHANNEL_DRAFT_PAUSE = 3.0, 5.0
GAP_SECONDS = 10.0
"""After a longer gap everything is caught up with; after a shorter one, the few places where people were talking."""
LATELY, FEW_PLACES = timedelta(minutes=15), 10
POST = "post"
MISSED = "belino_missed"
"""Stands before a message that was asked for after a gap, where a recording keeps it."""
HELD_BACK = "app_rate_limited"
"""Slack told us too much within a minute, and left out the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One app in one workspace."""

    bot_token: Secret = field(metadata={"says": "The app's bot token (xoxb-…), from OAuth & Permissions."})
    app_token: Secret | None = field(
        default=None, metadata={"says": "The app-level token (xapp-…), from Basic Information; mode socket needs it."}
    )
    signing_secret: Secret | None = field(
        default=None, metadata={"says": "What Slack signs its calls with, from Basic Information; mode http needs it."}
    )
    mode: Literal["socket", "http"] = field(
        default="socket", metadata={"says": "Whether belino opens a line to Slack, or Slack calls with events."}
    )
    api_url: str = field(
        default=OFFICIAL_URL, metadata={"says": "Where the Web API is; another one for a server of your own."}
    )
    files_url: str | None = field(
        default=None, metadata={"says": "Where a server of your own has its files, if that is elsewhere."}
    )
    socket_url: str | None = field(
        default=None, metadata={"says": "Where a server of your own has its sockets, if that is elsewhere."}
    )
    drafts: Literal["direct", "always", "never"] = field(
        default="direct",
        metadata={"says": "Where an answer is shown while it is written: in direct messages, everywhere, or nowhere."},
    )
    reply_in_threads: bool = field(
        default=False, metadata={"says": "Whether what is said to the agent in a channel is answered in a thread."}
    )

    def __post_init__(self) -> None:
        _check_token("bot_token", self.bot_token, "xoxb-")
        if self.mode == "socket":
            if self.app_token is None:
                raise ConfigError("app_token is needed for Socket Mode; Basic Information, App-Level Tokens has it")
            _check_token("app_token", self.app_token, "xapp-")
        elif not (self.signing_secret is not None and self.signing_secret.reveal().strip()):
            raise ConfigError(
                "signing_secret is needed for mode http, or anybody could speak as Slack; Basic Information has it"
            )
        for key, url in (("api_url", self.api_url), ("files_url", self.files_url), ("socket_url", self.socket_url)):
            if url is not None:
                _check_url(key, _as_http(url))


def hosts(config: Config) -> frozenset[str]:
    """Whom the tokens may be told: the API, the hosts of its files, and what the operator names beside it."""
    api = host_of(config.api_url)
    files = () if ":" in api else (f"{name}.{api}" for name in FILE_HOSTS)
    beside = [host_of(_as_http(url)) for url in (config.files_url, config.socket_url) if url is not None]
    # A server on this machine has two names, and may call itself by the other one.
    name, _, port = api.rpartition(":")
    same = [f"{other}:{port}" for other in ("localhost", "127.0.0.1") if name in ("localhost", "127.0.0.1")]
    return frozenset({api, *files, *beside, *same})


class Adapter:
    """One app on Slack."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __init__(self, config: Config, desk: AdapterContext) -> None:
        self._config = config
        self._desk = desk
        self._calls = Calls(
            desk.http, desk.clock, api_url=config.api_url, bot_token=config.bot_token, app_token=config.app_token
        )
        self._pacing = Pacing(desk.clock)
        self._past = Past(self._calls, self._pacing)
        self._names = Names(self._calls, self._pacing)
        self._status = Status(self._calls)
        self._me = Me()
        self._reached = Reached()
        self._accept: Accept | None = None
        self._one_by_one = asyncio.Lock()
        self._let_in = asyncio.Event()
        self._gap = asyncio.Event()
        self._heard = False

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled; the cursor says what was heard last in each channel and thread."""
        self._let_in.clear()
        await self._introduce()
        self._reached, self._heard = Reached.read(cursor), False
        await self._names.learn_channels()
        self._let_in.set()
        failure: BelinoError | None = None
        async with asyncio.TaskGroup() as group:
            catching_up = group.create_task(self._catch_up(accept))
            try:
                await self._listen(accept)
            except BelinoError as error:
                failure = error  # a group would wrap it
            catching_up.cancel()
        if failure is not None:
            raise failure

    async def connected(self) -> None:
        """Wait until Slack has told us who we are."""
        await self._let_in.wait()

    async def send(self, parcel: Parcel) -> Receipt:
        """One message, one upload of files, or a change."""
        self._status.over(parcel.conversation)
        return await self._pacing.call(POST, parcel.conversation.channel, lambda: send(self._calls, parcel))

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Change what a message says."""
        channel = parcel.conversation.channel
        return await self._pacing.call("chat.update", channel, lambda: edit(self._calls, message_id, parcel))

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        """Slack takes some fifty changes a minute from an app."""
        direct = conversation.channel.startswith("D")
        if self._config.drafts == "never" or (self._config.drafts == "direct" and not direct):
            return None
        return DRAFT_PAUSE if direct else CHANNEL_DRAFT_PAUSE

    async def find_sent(self, parcel: Parcel) -> Receipt | None:
        """The message a parcel became, if it did."""
        if not self._me.user:
            await self._introduce()
        return await self._past.find(parcel, self._me.user, self._me.bot)

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """In a thread, what the agent is at; Slack has no such sign elsewhere."""
        await self._status.show(conversation, f"is at work: {note}" if note else THINKING)

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        """In a thread, that a file is being sent."""
        await self._status.show(conversation, UPLOADING)

    @asynccontextmanager
    async def open_media(self, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a ref, by the link that Slack names now."""
        config = self._config
        download = Download(self._calls, ref, api_url=config.api_url, files_url=config.files_url, hosts=hosts(config))
        await download.prepare()
        async with aclosing(download.chunks()) as chunks:
            yield chunks

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        """The newest messages of a channel, by one call; replies in threads are not among them."""
        raws = await self._past.channel(channel.channel, latest=before, limit=limit)
        return await self._messages(channel.channel, raws)

    async def thread(self, conversation: ConversationKey) -> Sequence[Message]:
        """The message a thread began with and its replies, by one call."""
        if conversation.thread is None:
            return ()
        raws = await self._past.thread(conversation.channel, conversation.thread)
        return await self._messages(conversation.channel, [raw for raw in raws if in_conversation(raw, conversation)])

    async def check(self) -> Sequence[Finding]:
        """Tokens, scopes, the way events come, channels and clock, for the doctor."""
        name = f"{PLATFORM}:{self._desk.account}"
        return await check_app(
            self._calls, name=name, try_line=self._try_line if self._config.mode == "socket" else None
        )

    async def check_channels(self, channels: Sequence[str]) -> Sequence[Finding]:
        """Which of them the app is not in, for the doctor."""
        return await check_places(self._calls, channels, name=f"{PLATFORM}:{self._desk.account}")

    def screen_hook(self, hook: Hook) -> HookAnswer | None:
        """Refuse a call that is not signed, or too long ago; the signature itself needs the body."""
        if self._config.mode != "http":
            return HookAnswer(status=404)
        if may_be_signed(hook, self._desk.clock.now()) or may_look_at_certificate(hook):
            return None
        return HookAnswer(status=401)

    async def take_hook(self, hook: Hook) -> HookAnswer:
        """One call of Slack: who it is before what it says, and 200 only after commit."""
        if (refused := self.screen_hook(hook)) is not None:
            return refused
        if looks_at_certificate(hook):
            return HookAnswer(status=200)
        if not is_signed(hook, self._config.signing_secret, self._desk.clock.now()):
            return HookAnswer(status=401)
        payload = read_hook(hook) if hook.method == "POST" else None
        if payload is None:
            return HookAnswer(status=400 if hook.method == "POST" else 405)
        if (challenge := challenge_of(payload)) is not None:
            return HookAnswer(status=200, body=challenge, mime="application/json")
        async with self._one_by_one:
            if self._accept is None:
                return HookAnswer(status=503)
            await self._take(payload, self._accept)
        return HookAnswer(status=200)

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded payload."""
        view = recalled(known, self._view(received))
        told = as_table(payload)
        if words(told, "type") == MISSED:
            event = table(told, "event")
            return (said(event, words(event, "channel"), view),)
        return parse(payload, view)

    async def _introduce(self) -> None:
        told = await self._calls.call("auth.test")
        teams = {words(told, "team_id"), words(told, "enterprise_id")} - {""}
        self._me = Me(
            user=words(told, "user_id"), bot=words(told, "bot_id"), name=line(told, "user"), teams=frozenset(teams)
        )
        self._names.know(self._me.user, self._me.name)

    async def _listen(self, accept: Accept) -> None:
        if self._config.mode == "http":
            self._accept = accept
            self._opened(None)
            try:
                await asyncio.Event().wait()
            finally:
                self._accept = None
        if not isinstance(self._desk.http, OpensSockets):
            raise ConfigError("this HTTP client opens no web sockets, which Socket Mode needs")
        lines = SocketMode(self._calls, self._desk.http, self._desk.clock)
        await lines.listen(lambda envelope: self._take(table(envelope, "payload"), accept), self._opened)

    async def _try_line(self) -> None:
        """Open a line, unless we listen: Slack would tell the second one what is meant for the first."""
        if self._let_in.is_set() or not isinstance(self._desk.http, OpensSockets):
            await self._calls.ask("apps.connections.open", as_app=True)
        else:
            await SocketMode(self._calls, self._desk.http, self._desk.clock).try_out()

    def _opened(self, gap: float | None) -> None:
        """A line is open. What was said before the first one, or while there was none, is asked for only now."""
        now = self._desk.clock.now()
        if not self._heard or (gap is not None and gap >= GAP_SECONDS):
            self._reached.miss(now)
        elif gap is not None:
            self._reached.miss(now, within=LATELY, most=FEW_PLACES)
        self._heard = True
        self._gap.set()

    async def _catch_up(self, accept: Accept) -> None:
        async def take(place: str, raws: Sequence[Raw]) -> None:
            channel = place.partition(" ")[0]
            await self._names.learn(channel, raws)
            view = self._view()
            arrivals = [said(raw, channel, view) for raw in raws]
            for raw, arrival in zip(raws, arrivals, strict=True):
                missed = {"type": MISSED, "event": {**raw, "channel": channel}}
                self._desk.parsed(missed, partial(remembered, view, missed), [arrival])
            for arrival in arrivals:
                self._reached.note(arrival.conversation, arrival.id)
            self._reached.caught_up(place)
            cursors = [*[None] * (len(arrivals) - 1), self._reached.write()]
            await hand_in(accept, list(zip(arrivals, cursors, strict=False)))

        while True:
            await self._gap.wait()
            self._gap.clear()
            await CatchUp(self._past, self._reached, self._desk.clock, take).run()

    async def _take(self, payload: Raw, accept: Accept) -> None:
        """Commit what an event brings; the cursor moves with its messages."""
        if says_nothing_new(payload) or is_own_change(payload, self._me):
            return
        if words(payload, "type") == HELD_BACK:
            self._reached.miss(self._desk.clock.now())
            self._gap.set()
        if not (teams := own_teams(payload)) <= self._me.teams:
            self._me = replace(self._me, teams=self._me.teams | teams)
        event = table(payload, "event")
        await self._names.learn(words(event, "channel") or words(table(event, "item"), "channel"), [event])
        view = self._view()
        arrivals = parse(payload, view)
        self._desk.parsed(payload, lambda: remembered(view, payload), arrivals)
        await hand_in(accept, list(self._incoming(arrivals)))

    def _incoming(self, arrivals: Sequence[Arrival]) -> Iterator[Incoming]:
        for arrival in arrivals:
            if isinstance(arrival, Message):
                self._reached.note(arrival.conversation, arrival.id)
                yield arrival, self._reached.write()
            else:
                yield arrival, None

    async def _messages(self, channel: str, raws: Sequence[Raw]) -> Sequence[Message]:
        await self._names.learn(channel, raws)
        view = self._view()
        return [message for raw in raws if isinstance(message := said(raw, channel, view), Message)]

    def _view(self, received: datetime | None = None) -> View:
        return View(
            account=self._desk.account,
            me=self._me,
            directory=self._names.directory,
            received=received or self._desk.clock.now(),
            in_threads=self._config.reply_in_threads,
        )


def _check_token(key: str, secret: Secret, begins: str) -> None:
    token = secret.reveal()
    if token.startswith("xoxe"):
        raise ConfigError(f"{key} ends within hours: the app rotates its tokens; make one from belino's manifest")
    if not token.startswith(begins) or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{key} is no such token of Slack's; it begins with {begins}")


def _as_http(url: str) -> str:
    """A web socket's address as the one its first request goes to."""
    return f"http{url[2:]}" if url.startswith(("ws://", "wss://")) else url


def _check_url(key: str, text: str) -> None:
    """Refuse an address that would say the tokens in the clear, or hide another one in it."""
    try:
        url = urlsplit(text)
        name, _ = url.hostname or "", url.port
    except ValueError:
        raise ConfigError(f"{key} is not a URL; write https://host/path") from None
    if url.scheme not in ("https", "http") or not name or "@" in url.netloc or url.query or url.fragment:
        raise ConfigError(f"{key} must be https://host[:port]/path, without a login, ? or #")
    if url.scheme == "http" and not _is_at_home(name):
        raise ConfigError(f"{key} must be encrypted; plain http is for a server on this machine or network")


def _is_at_home(name: str) -> bool:
    """Whether a name can only mean a machine nearby: a private address, or a name without a dot."""
    try:
        return not ip_address(name).is_global
    except ValueError:
        return "." not in name or name.endswith((".local", ".localhost", ".internal"))
