"""LINE adapter: an official account's webhooks in, the Messaging API out; files go out as links that LINE fetches."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import ClassVar

from belino.adapters.line.authors import PLATFORM, LineBot, LineNames
from belino.adapters.line.capabilities import LIMITS, WORKS
from belino.adapters.line.client import LineClient
from belino.adapters.line.cursor import RepliedParcels
from belino.adapters.line.doctor import check_account, check_listed
from belino.adapters.line.hooks import SIGNATURE, ReplyTokens, events_of, is_fresh
from belino.adapters.line.media import LineDownload
from belino.adapters.line.parse import LineParseContext, context_from_json, context_to_json, parse
from belino.adapters.line.send import LineSender, show_loading
from belino.domain.limits import Capabilities, Limits
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey
from belino.domain.outcome import Finding
from belino.domain.ports import Accept, AdapterContext, Hook, HookAnswer, Question, hand_in
from belino.domain.reply import Parcel, Receipt
from belino.net.guard import host_of
from belino.net.json_fields import Raw, as_table, from_json, line, words
from belino.net.redact import Secret
from belino.net.rest import HookInbox, RateLimits, check_base_url, check_secret, hook_path

OFFICIAL_URL, OFFICIAL_DATA_URL = "https://api.line.me", "https://api-data.line.me"
STICKERS_URL = "https://stickershop.line-scdn.net"
REF_LETTERS = "ln"
SITES = frozenset({"line.me", "line-scdn.net"})
"""The platform's domains, which an account's proxy serves."""
ACCOUNT = "account"
OWN_KEPT = 1_000
SUSPENSIONS = {"botSuspended": "LINE suspended the account; see the LINE Official Account Manager", "botResumed": ""}

SETUP = (
    Question(
        key="channel_access_token",
        ask="Which channel access token (long-lived) did you issue?",
        secret=True,
        tells="Make an official account: https://manager.line.biz, then Settings, Messaging API, Enable.\n"
        "https://developers.line.biz/console/, the provider, the channel, Messaging API:\n"
        "issue a channel access token (long-lived), and allow the account to join groups if it shall.",
    ),
    Question(
        key="channel_secret",
        ask="Which channel secret does the channel have?",
        secret=True,
        tells="The same page, Basic settings, Channel secret.\n"
        "Once belino serves behind https, Messaging API, Webhook settings:\n"
        "enter https://YOUR-HOST/hooks/line/default, at the end the account's name if it has another,\n"
        "turn Use webhook and Webhook redelivery on, and press Verify.\n"
        "For pictures and files in answers, set server.public_url to https://YOUR-HOST.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one official account."""

    channel_access_token: Secret = field(
        metadata={"says": "The channel access token (long-lived), from the LINE Developers Console, Messaging API."}
    )
    channel_secret: Secret = field(
        metadata={"says": "The secret that LINE signs its calls with, from the console, Basic settings."}
    )
    api_url: str = field(
        default=OFFICIAL_URL, metadata={"says": "The URL of the Messaging API; set it for a server of your own."}
    )
    data_url: str | None = field(
        default=None, metadata={"says": "The URL of the files of a server of your own, if it differs."}
    )
    stickers_url: str = field(
        default=STICKERS_URL, metadata={"says": "The URL of the pictures of stickers; set it for a server of your own."}
    )

    def __post_init__(self) -> None:
        for key, secret in (
            ("channel_access_token", self.channel_access_token),
            ("channel_secret", self.channel_secret),
        ):
            check_secret(key, secret, "the LINE Developers Console has it")
        urls = (("api_url", self.api_url), ("data_url", self.data_url), ("stickers_url", self.stickers_url))
        for key, url in urls:
            if url is not None:
                check_base_url(key, url)

    @property
    def files_url(self) -> str:
        """Where the bytes of messages are."""
        return self.data_url or (OFFICIAL_DATA_URL if self.api_url == OFFICIAL_URL else self.api_url)


def hosts(config: Config) -> frozenset[str]:
    """Hosts that may receive the token."""
    return frozenset({host_of(config.api_url), host_of(config.files_url)})


class Adapter:
    """One official account on LINE."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __init__(self, config: Config, context: AdapterContext) -> None:
        self._config = config
        self._context = context
        self._client = LineClient(context, config)
        self._limits = RateLimits("LINE", context.clock)
        self._names = LineNames(self._client, self._limits)
        self._tokens = ReplyTokens(context.clock)
        self._replied = RepliedParcels()
        self._sender = LineSender(self._client, context, self._tokens, self._replied)
        self._me = LineBot()
        self._own = deque[str](maxlen=OWN_KEPT)
        """The messages that the account sent lately: a quote of one addresses us."""
        self._hooks = HookInbox()
        self._let_in = asyncio.Event()

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Take webhooks until cancelled; the cursor holds the parcels that were sent without a key."""
        self._let_in.clear()
        told = await self._client.get("info")
        self._me = LineBot(user=words(told, "userId"), name=line(told, "displayName"))
        self._replied.read(cursor, accept)
        self._let_in.set()
        await self._hooks.run(accept)

    async def connected(self) -> None:
        """Wait until the account's identity is known."""
        await self._let_in.wait()

    async def send(self, parcel: Parcel) -> Receipt:
        """Send one call's messages: files, and the text below them."""
        receipt = await self._limits.call(f"send {parcel.conversation.channel}", partial(self._sender.send, parcel))
        self._own.extend((receipt.message_id, *receipt.also))
        return receipt

    def was_unkeyed(self, parcel: Parcel) -> bool:
        """Whether it was sent by a reply token, which carries no key."""
        return parcel.key in self._replied

    def own_name(self) -> str:
        """The account's name, as in a mention."""
        return self._me.name

    async def direct(self, sender: str) -> str:
        """The chat with a person has the person's id; LINE delivers nothing to who has not added the account."""
        return sender

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Show the loading animation."""
        await self._limits.call("loading", lambda: show_loading(self._client, conversation))

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Download the bytes of a ref, once LINE has them ready."""
        return LineDownload(self._client, ref, stickers_url=self._config.stickers_url).open()

    async def check(self) -> Sequence[Finding]:
        """Token, webhook, secret, quota and clock, for the doctor."""
        account = self._context.account
        return await check_account(self._client, name=f"{PLATFORM}:{account}", path=hook_path(PLATFORM, account))

    async def check_channels(self, channels: Sequence[str]) -> Sequence[Finding]:
        """Listed groups that the account is not in, for the doctor."""
        return await check_listed(self._client, channels, name=f"{PLATFORM}:{self._context.account}")

    def screen_hook(self, hook: Hook) -> HookAnswer | None:
        """Refuse a call that is unsigned; verifying the signature needs the body."""
        return None if SIGNATURE.may_be(hook) else HookAnswer(status=401)

    async def take_hook(self, hook: Hook) -> HookAnswer:
        """Accept one call: its signature is checked before its content, and 200 is answered only after commit."""
        if (refused := self.screen_hook(hook)) is not None:
            return refused
        if not SIGNATURE.is_of(hook, self._config.channel_secret):
            return HookAnswer(status=401)
        if hook.method != "POST":
            return HookAnswer(status=405)
        payload = from_json(hook.body)
        if not payload:
            return HookAnswer(status=400)
        events = events_of(payload)
        if not all(is_fresh(event, self._context.clock.now()) for event in events):
            return HookAnswer(status=401)
        return await self._hooks.take(lambda accept: self._take(events, accept))

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded event, whose tokens are those of the recorded calls."""
        self._tokens.note(as_table(payload))
        self._replied.is_kept = True
        return parse(as_table(payload), context_from_json(known, self._context.account, received))

    async def _take(self, events: Sequence[Raw], accept: Accept) -> None:
        """Commit the arrivals of a call."""
        await self._names.learn(events)
        incoming = [(arrival, None) for event in events for arrival in self._arrivals(event)]
        await hand_in(accept, incoming)

    def _arrivals(self, event: Raw) -> tuple[Arrival, ...]:
        kind = words(event, "type")
        if kind in SUSPENSIONS:
            self._context.report(ACCOUNT, SUSPENSIONS[kind])
        self._tokens.note(event)
        view = self._view()
        arrivals = parse(event, view)
        self._context.parsed(event, partial(context_to_json, view, event), arrivals)
        return arrivals

    def _view(self) -> LineParseContext:
        return LineParseContext(
            account=self._context.account,
            me=self._me,
            book=self._names.book,
            own=self._own,
            received=self._context.clock.now(),
        )
