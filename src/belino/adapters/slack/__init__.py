"""Slack adapter: an app's events over Socket Mode or signed HTTP, the Web API for everything else."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar, Literal

from belino.adapters.slack.authors import PLATFORM, NameCache, SlackApp
from belino.adapters.slack.capabilities import LIMITS, WORKS, manifest
from belino.adapters.slack.client import SlackClient, SlackRefused
from belino.adapters.slack.doctor import check_app, check_listed
from belino.adapters.slack.history import CatchUp, SlackCursor, SlackHistory, in_conversation
from belino.adapters.slack.hooks import (
    SlashAnswers,
    challenge_of,
    is_signed,
    looks_at_certificate,
    may_be_signed,
    may_look_at_certificate,
    read_hook,
)
from belino.adapters.slack.media import SlackDownload
from belino.adapters.slack.parse import (
    ACTIONS,
    SHORTCUT,
    SlackParseContext,
    context_from_json,
    context_to_json,
    is_own_change,
    lost_access,
    own_teams,
    parse,
    said,
    says_nothing_new,
)
from belino.adapters.slack.send import (
    THINKING,
    UPLOADING,
    SlackStreams,
    ThreadStatus,
    delete,
    edit,
    react,
    refusal,
    send,
    tell_apart,
)
from belino.adapters.slack.socket import SocketModeClient
from belino.domain.errors import AdapterError, BelinoError, ConfigError, Undeliverable, Unfindable
from belino.domain.limits import Capabilities, Limits, SendAs
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import Finding, MessageOutcome
from belino.domain.places import CATCH_UP, left_out
from belino.domain.ports import (
    Accept,
    AdapterContext,
    DraftsShown,
    Hook,
    HookAnswer,
    Incoming,
    KeepsCursor,
    OpensSockets,
    Question,
    hand_in,
    pause_between_drafts,
)
from belino.domain.reply import Parcel, ParcelKind, Receipt
from belino.net.guard import as_http, host_of
from belino.net.json_fields import Raw, as_table, line, table, words
from belino.net.redact import Secret
from belino.net.rest import HookInbox, RateLimits, check_base_url

log = logging.getLogger(__name__)

OFFICIAL_URL = "https://slack.com/api/"
# Private links use the first host; large workspaces redirect to the second.
FILE_HOSTS = ("files", "files-origin")
RESPONSES = "hooks"
"""The host that answers to commands are posted to."""
REF_LETTERS = "sl"
API = "Web API"

DRAFT_PAUSES = 1.5, 3.0
GAP_SECONDS = 10.0
"""After a longer gap everything is caught up; after a shorter one, only recently active places."""
LATELY, FEW_PLACES = timedelta(minutes=15), 10
POST = "post"
MISSED = "belino_missed"
"""Marks a message that was fetched after a gap, in recordings."""
HELD_BACK = "app_rate_limited"
"""Slack sent too many events within a minute, and dropped the rest."""


SETUP = (
    Question(
        key="bot_token",
        ask="Which Bot User OAuth Token does the app have? (xoxb-…)",
        secret=True,
        tells="Make the app: https://api.slack.com/apps, Create New App, From a manifest, your workspace, YAML;\n"
        f"paste this, and press Next and Create:\n\n{manifest()}\n"
        "Then Install App, Install to Workspace, Allow. The token stands there afterwards.",
    ),
    Question(
        key="app_token",
        ask="Which app-level token did you generate? (xapp-…)",
        secret=True,
        tells="Basic Information, App-Level Tokens, Generate Token and Scopes: any name, the scope connections:write.",
        when=("mode", "socket"),
    ),
    Question(
        key="signing_secret",
        ask="Which Signing Secret does the app have?",
        secret=True,
        tells="Events come over HTTP: turn Settings, Socket Mode off, and once belino serves, enter under Event\n"
        "Subscriptions https://YOUR-HOST/hooks/slack/default, at the end the account's name if it has another.\n"
        "The secret stands under Basic Information, App Credentials.",
        when=("mode", "http"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one app in one workspace."""

    bot_token: Secret = field(metadata={"says": "The app's bot token (xoxb-…), from OAuth & Permissions."})
    app_token: Secret | None = field(
        default=None,
        metadata={"says": "The app-level token (xapp-…), from Basic Information; required for mode socket."},
    )
    signing_secret: Secret | None = field(
        default=None,
        metadata={
            "says": "The secret that Slack signs its calls with, from Basic Information; required for mode http."
        },
    )
    mode: Literal["socket", "http"] = field(
        default="socket", metadata={"says": "Whether belino opens a socket to Slack, or Slack sends events over HTTP."}
    )
    api_url: str = field(
        default=OFFICIAL_URL, metadata={"says": "The URL of the Web API; set it for a server of your own."}
    )
    files_url: str | None = field(
        default=None, metadata={"says": "The URL of the files of a server of your own, if it differs."}
    )
    socket_url: str | None = field(
        default=None, metadata={"says": "The URL of the sockets of a server of your own, if it differs."}
    )
    link_previews: bool = field(default=False, metadata={"says": "Whether Slack shows previews of links in answers."})
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
                check_base_url(key, as_http(url))


SITES = frozenset({"slack.com", "slack-edge.com", "slack-files.com"})
"""The platform's domains, which an account's proxy serves."""


def hosts(config: Config) -> frozenset[str]:
    """Hosts that may receive the tokens: the API, its file hosts, and others that the configuration names."""
    api = host_of(config.api_url)
    files = () if ":" in api else (f"{name}.{api}" for name in FILE_HOSTS)
    beside = [host_of(as_http(url)) for url in (config.files_url, config.socket_url) if url is not None]
    # A server on this machine has two names, and may call itself by either.
    name, _, port = api.rpartition(":")
    same = [f"{other}:{port}" for other in ("localhost", "127.0.0.1") if name in ("localhost", "127.0.0.1")]
    return frozenset({api, *files, *beside, *same})


def response_hosts(config: Config) -> frozenset[str]:
    """Hosts that answers to commands may be posted to."""
    return hosts(config) | {f"{RESPONSES}.{host_of(config.api_url)}"}


class Adapter:
    """One app on Slack."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __init__(self, config: Config, context: AdapterContext) -> None:
        self._config = config
        self._context = context
        self._client = SlackClient(
            context.http,
            context.clock,
            api_url=config.api_url,
            bot_token=config.bot_token,
            app_token=config.app_token,
            works=lambda: context.report(API),
        )
        self._limits = RateLimits("Slack", context.clock)
        self._history = SlackHistory(self._client, self._limits)
        self._names = NameCache(self._client, self._limits)
        self._status = ThreadStatus(self._client)
        self._streams = SlackStreams(self._client)
        self._answers = SlashAnswers(self._client, response_hosts(config))
        self._me = SlackApp()
        self._workspace = ""
        self._cursor = SlackCursor()
        self._is_behind = True
        """Whether channels that were never heard from have still to be noted as missed."""
        self._hooks = HookInbox()
        self._let_in = asyncio.Event()
        self._gap = asyncio.Event()
        self._heard = False

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled; the cursor holds the newest message of each channel and thread."""
        self._let_in.clear()
        await self._introduce()
        self._cursor, self._heard, self._is_behind = SlackCursor.read(cursor), False, True
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
        """Wait until the app's identity is known."""
        await self._let_in.wait()

    async def send(self, parcel: Parcel) -> Receipt:
        """Send one message, one upload of files, or an edit."""
        self._status.over(parcel.conversation)
        return await self._limits.call(f"{POST} {parcel.conversation.channel}", lambda: self._send(parcel))

    async def _send(self, parcel: Parcel) -> Receipt:
        """Show what answers a slash command itself to its sender only; an agent's answer, where it may not write."""
        if parcel.only_to is not None:
            try:
                told = await self._answers.send(parcel)
            except SlackRefused as error:
                raise refusal(error, parcel) from error
            if told is not None:
                return told
        if (streamed := await self._streams.start(parcel)) is not None:
            return streamed
        if parcel.kind is ParcelKind.EDIT:
            await self._streams.stop(parcel.conversation, parcel.edits or "")
        try:
            return await send(self._client, parcel, previews=self._config.link_previews)
        except Undeliverable:
            if (told := await self._answers.send(parcel)) is None:
                raise
            return told

    def own_name(self) -> str:
        """The app's name, as in a mention."""
        return self._me.name

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Edit a message, or extend a stream."""

        async def change() -> Receipt:
            extended = await self._streams.append(message_id, parcel)
            return extended or await edit(self._client, message_id, parcel)

        return await self._limits.call(f"chat.update {parcel.conversation.channel}", change)

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete a message."""
        await self._streams.stop(conversation, message_id)
        place = f"chat.delete {conversation.channel}"
        await self._limits.call(place, lambda: delete(self._client, conversation, message_id))

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Add or remove our reaction; the sender of a command is told in private, as long as it can be answered."""
        if not self._answers.knows(message_id):
            work = partial(react, self._client, conversation, message_id, emoji, added=added)
            await self._limits.call("reactions", work)
        elif added:
            await self._answers.show_sign(message_id, emoji)

    async def direct(self, sender: str) -> str:
        """Open the direct messages with a person; without the scope for it, texts can be sent to the person's id."""
        try:
            told = await self._client.call("conversations.open", {"users": sender})
        except SlackRefused as error:
            if error.error == "missing_scope":
                return sender
            raise Undeliverable(f"Slack opens no direct messages with {sender}: {error.error}") from error
        return words(table(told, "channel"), "id") or sender

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        """Slack accepts about fifty edits a minute from an app."""
        direct = conversation.channel.startswith("D")
        return pause_between_drafts(self._config.drafts, direct=direct, pauses=DRAFT_PAUSES)

    async def find_sent(self, parcel: Parcel) -> Receipt | None:
        """The message that a parcel became, if it was sent."""
        if parcel.only_to is not None:
            raise Unfindable("Slack does not show private answers to the app afterwards")
        if not self._me.user:
            await self._introduce()
        return await self._history.find(parcel, self._me.user, self._me.bot)

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Show the agent's activity in a thread; Slack shows it nowhere else."""
        await self._status.show(conversation, f"is at work: {note}" if note else THINKING)

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        """Show in a thread that a file is being sent."""
        await self._status.show(conversation, UPLOADING)

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Download the bytes of a ref, by Slack's current link."""
        config = self._config
        download = SlackDownload(
            self._client, ref, api_url=config.api_url, files_url=config.files_url, hosts=hosts(config)
        )
        return download.open()

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        """The newest messages of a channel, by one call; replies in threads are not among them."""
        raws = await self._history.channel(channel.channel, latest=before, limit=limit)
        return await self._messages(channel.channel, raws)

    async def thread(self, conversation: ConversationKey) -> Sequence[Message]:
        """The message a thread began with and its replies, by one call."""
        if conversation.thread is None:
            return ()
        raws = await self._history.thread(conversation.channel, conversation.thread)
        return await self._messages(conversation.channel, [raw for raw in raws if in_conversation(raw, conversation)])

    async def check(self) -> Sequence[Finding]:
        """Tokens, scopes, event delivery, channels and clock, for the doctor."""
        name = f"{PLATFORM}:{self._context.account}"
        return await check_app(
            self._client, name=name, try_line=self._try_line if self._config.mode == "socket" else None
        )

    async def check_channels(self, channels: Sequence[str]) -> Sequence[Finding]:
        """Listed channels that the app is not in, for the doctor."""
        return await check_listed(self._client, channels, name=f"{PLATFORM}:{self._context.account}")

    def screen_hook(self, hook: Hook) -> HookAnswer | None:
        """Refuse a call that is unsigned or too old; verifying the signature needs the body."""
        if self._config.mode != "http":
            return HookAnswer(status=404)
        if may_be_signed(hook, self._context.clock.now()) or may_look_at_certificate(hook):
            return None
        return HookAnswer(status=401)

    async def take_hook(self, hook: Hook) -> HookAnswer:
        """Accept one payload: its signature is checked before its content, and 200 is answered only after commit."""
        if (refused := self.screen_hook(hook)) is not None:
            return refused
        if looks_at_certificate(hook):
            return HookAnswer(status=200)
        if not is_signed(hook, self._config.signing_secret, self._context.clock.now()):
            return HookAnswer(status=401)
        payload = read_hook(hook) if hook.method == "POST" else None
        if payload is None:
            return HookAnswer(status=400 if hook.method == "POST" else 405)
        if (challenge := challenge_of(payload)) is not None:
            return HookAnswer(status=200, body=challenge, mime="application/json")
        return await self._hooks.take(lambda accept: self._take(payload, accept))

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded payload."""
        view = context_from_json(known, self._view(received))
        told = as_table(payload)
        if words(told, "type") == MISSED:
            event = table(told, "event")
            return (said(event, words(event, "channel"), view),)
        return parse(payload, view)

    async def _introduce(self) -> None:
        told = await self._client.call("auth.test")
        teams = {words(told, "team_id"), words(told, "enterprise_id")} - {""}
        self._me = SlackApp(
            user=words(told, "user_id"), bot=words(told, "bot_id"), name=line(told, "user"), teams=frozenset(teams)
        )
        self._workspace = words(told, "team_id")
        self._names.know(self._me.user, self._me.name)

    async def _listen(self, accept: Accept) -> None:
        if self._config.mode == "http":
            self._opened(None)
            await self._hooks.run(accept)
        if not isinstance(self._context.http, OpensSockets):
            raise ConfigError("Socket Mode needs an HTTP client that opens web sockets")
        lines = SocketModeClient(self._client, self._context.http, self._context.clock)
        await lines.listen(lambda envelope: self._take(table(envelope, "payload"), accept), self._opened)

    async def _try_line(self) -> None:
        """Try to open a connection, unless we listen: Slack would send it events meant for the first."""
        if self._let_in.is_set() or not isinstance(self._context.http, OpensSockets):
            await self._client.ask("apps.connections.open", as_app=True)
        else:
            await SocketModeClient(self._client, self._context.http, self._context.clock).try_out()

    def _opened(self, gap: float | None) -> None:
        """A connection is open. Messages from before the first one, or from a gap, are fetched only now."""
        now = self._context.clock.now()
        if not self._heard or (gap is not None and gap >= GAP_SECONDS):
            self._cursor.miss(now)
            self._is_behind = bool(self._cursor.reached or self._cursor.channels)
        elif gap is not None:
            self._cursor.miss(now, within=LATELY, most=FEW_PLACES)
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
                self._context.parsed(missed, partial(context_to_json, view, missed), [arrival])
            for arrival in arrivals:
                self._cursor.note(arrival.conversation, arrival.id)
            self._cursor.caught_up(place)
            cursors = [*[None] * (len(arrivals) - 1), self._written()]
            await hand_in(accept, list(zip(arrivals, cursors, strict=False)))

        while True:
            await self._gap.wait()
            self._gap.clear()
            await self._find_unheard(accept)
            await CatchUp(self._history, self._cursor, self._context.clock, take).run()
            await self._keep(accept)

    async def _find_unheard(self, accept: Accept) -> None:
        """Note channels that were never heard from as missed: those that the access rules name, and direct messages."""
        if self._is_behind:
            named = self._context.places.names
            places = {own: at for own, at in self._names.joined.items() if named(own, self._view().server)}
            if left := self._cursor.miss_unheard({**places, **await self._names.directs()}):
                log.warning("channels that are not asked for what was missed there: %d", left)
                self._context.report(CATCH_UP, left_out(left), is_note=True)
        self._is_behind = False
        await self._keep(accept)

    async def _keep(self, accept: Accept) -> None:
        if isinstance(accept, KeepsCursor):
            await accept.keep_cursor(self._written())

    def _written(self) -> str:
        """The cursor; until channels that were never heard from are noted, it tells since when they are not."""
        if not self._is_behind:
            self._cursor.reach(self._context.clock.now())
        return self._cursor.write()

    async def _take(self, payload: Raw, accept: Accept) -> None:
        """Commit the arrivals of an event; the cursor moves with its messages."""
        if says_nothing_new(payload) or is_own_change(payload, self._me):
            return
        if lost := lost_access(payload, self._me):
            self._context.report(API, lost, is_refusal=True)
            return
        if words(payload, "type") == HELD_BACK:
            self._cursor.miss(self._context.clock.now())
            self._gap.set()
        if not (teams := own_teams(payload)) <= self._me.teams:
            self._me = replace(self._me, teams=self._me.teams | teams)
        event = table(payload, "event")
        await self._names.learn(words(event, "channel") or words(table(event, "item"), "channel"), [event])
        self._streams.met(words(event, "channel"), words(event, "user"), words(event, "team") or self._workspace)
        view, response = self._view(), words(payload, "response_url")
        payload = {name: value for name, value in payload.items() if name != "response_url"}  # a recording has none
        arrivals = parse(payload, view)
        self._context.parsed(payload, lambda: context_to_json(view, payload), arrivals)
        if words(payload, "command") or words(payload, "type") == SHORTCUT:
            for arrival in arrivals:
                self._answers.expect(arrival.id, response)
        if words(payload, "type") == ACTIONS:
            await self._take_press(arrivals, accept)
        else:
            await hand_in(accept, list(self._incoming(arrivals)))

    async def _take_press(self, arrivals: Sequence[Arrival], accept: Accept) -> None:
        """Commit a press, and say in private why it does not count."""
        for arrival in arrivals:
            taken = await accept(arrival)
            if taken.outcome is not MessageOutcome.DENIED or arrival.author is None:
                continue
            try:
                await tell_apart(self._client, arrival.conversation, arrival.author.id, taken.reason)
            except AdapterError as error:
                log.info("a press could not be answered: %s", type(error).__name__)

    def _incoming(self, arrivals: Sequence[Arrival]) -> Iterator[Incoming]:
        for arrival in arrivals:
            if isinstance(arrival, Message):
                self._cursor.note(arrival.conversation, arrival.id)
                yield arrival, self._written()
            else:
                yield arrival, None

    async def _messages(self, channel: str, raws: Sequence[Raw]) -> Sequence[Message]:
        await self._names.learn(channel, raws)
        view = self._view()
        return [message for raw in raws if isinstance(message := said(raw, channel, view), Message)]

    def _view(self, received: datetime | None = None) -> SlackParseContext:
        return SlackParseContext(
            account=self._context.account,
            me=self._me,
            directory=self._names.directory,
            received=received or self._context.clock.now(),
            server=self._workspace,
            in_threads=self._config.reply_in_threads,
        )


def _check_token(key: str, secret: Secret, begins: str) -> None:
    token = secret.reveal()
    if token.startswith("xoxe"):
        raise ConfigError(f"{key} ends within hours: the app rotates its tokens; make one from belino's manifest")
    if not token.startswith(begins) or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{key} is no such token of Slack's; it begins with {begins}")
