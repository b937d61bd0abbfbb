"""WhatsApp adapter: a business phone number over Meta's Cloud API, with signed webhooks in and calls out.

With mode `linked` it is a device that is linked to a phone instead: the sub-folder `linked`.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import ClassVar, Literal

from belino.adapters.whatsapp.capabilities import LIMITS, WORKS
from belino.adapters.whatsapp.client import SIGNATURE, CloudClient
from belino.adapters.whatsapp.doctor import check_number
from belino.adapters.whatsapp.errors import WINDOW_CLOSED, WORDS
from belino.adapters.whatsapp.linked import LinkedAdapter
from belino.adapters.whatsapp.linked.media import MEDIA_URL
from belino.adapters.whatsapp.media import FILES_HOST, CloudDownload
from belino.adapters.whatsapp.parse import PLATFORM, CloudNumber, CloudParseContext, notes, parse
from belino.adapters.whatsapp.send import Template, Uploads, is_group, mark_read, react, send
from belino.aio.retry import backoff
from belino.domain.emoji import emoji_character
from belino.domain.errors import AdapterError, ConfigError, Undeliverable, WindowClosed
from belino.domain.limits import Capabilities, Limits
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, DeliveryState, DeliveryStatus, Message, Unsupported
from belino.domain.outcome import Finding
from belino.domain.ports import Accept, AdapterContext, Hook, HookAnswer, Question, ReopensWindows, hand_in
from belino.domain.reply import Parcel, ParcelKind, Receipt
from belino.net.guard import host_of
from belino.net.json_fields import Raw, from_json, line, texts, words
from belino.net.redact import Secret
from belino.net.rest import HookInbox, Latest, OnlyReactions, RateLimits, check_base_url, check_secret, hook_path
from belino.net.stream import retried
from belino.net.tap import on_behalf

log = logging.getLogger(__name__)

OFFICIAL_URL = "https://graph.facebook.com/v26.0"
REF_LETTERS = "wa"
SITES = frozenset({"facebook.com", "fbsbx.com", "whatsapp.net"})  # the domains that an account's proxy serves
API, EVENTS = "Cloud API", "webhook"
TYPING_SECONDS = 20.0  # WhatsApp shows typing for 25 seconds
STALE = timedelta(days=8)  # Meta repeats a call for seven days; what is older was not sent by it now
_NUMBER_ID = re.compile(r"[0-9]{5,32}")
_TEMPLATE = re.compile(r"[a-z0-9_]{1,512}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(_[A-Z]{2,3})?")

_ask = partial(Question, when=("mode", "cloud"))
SETUP = (
    _ask(
        key="phone_number_id",
        ask="Which id does the phone number have? (digits; it is not the phone number)",
        tells="Make the app: https://developers.facebook.com/apps, Create App, use case Connect with customers\n"
        "through WhatsApp. The id stands under WhatsApp, API Setup, below the number.",
    ),
    _ask(
        key="token",
        ask="Which access token does the system user have?",
        secret=True,
        tells="Meta Business Suite, Settings, System users, Add; assign the app and the WhatsApp account to it;\n"
        "Generate token, never expires, with whatsapp_business_messaging and whatsapp_business_management.",
    ),
    _ask(
        key="app_secret",
        ask="Which App Secret does the app have?",
        secret=True,
        tells="App Dashboard, App settings, Basic, App secret, Show. Meta signs its calls with it.",
    ),
    _ask(
        key="verify_token",
        ask="Which verify token shall Meta show when it first calls? (any long word that you choose)",
        secret=True,
        tells="Set public_url to the https:// address at which Meta reaches belino, which then registers itself; or\n"
        "enter https://YOUR-HOST/hooks/whatsapp/default and this word under WhatsApp, Configuration, Webhook.\n"
        "In either case subscribe there to the field messages.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one phone number."""

    mode: Literal["cloud", "linked"] = field(
        default="cloud",
        metadata={"says": "`cloud` is Meta's API, `linked` a device that is linked to a phone."},
    )
    token: Secret | None = field(default=None, metadata={"says": "The access token of a system user."})
    phone_number_id: str = field(default="", metadata={"says": "Meta's id of the phone number, from API Setup."})
    app_secret: Secret | None = field(default=None, metadata={"says": "The secret that Meta signs its calls with."})
    verify_token: Secret | None = field(default=None, metadata={"says": "Your own word; Meta shows it when it asks."})
    public_url: str | None = field(
        default=None, metadata={"says": "The URL at which Meta reaches belino, which registers it for this number."}
    )
    api_url: str = field(default=OFFICIAL_URL, metadata={"says": "The URL of the Cloud API with its version."})
    files_url: str | None = field(default=None, metadata={"says": "The URL of the files of a server of your own."})
    link_previews: bool = field(default=True, metadata={"says": "Whether WhatsApp shows previews of links in answers."})
    read_receipts: bool = field(
        default=True,
        metadata={"says": "Whether people see typing, and that their message is read, while a turn runs."},
    )
    template: str | None = field(
        default=None,
        metadata={"says": "An approved template with one variable, for answers after the 24 hours."},
    )
    template_language: str = field(default="en", metadata={"says": "The language code of the template."})
    phone: str | None = field(
        default=None, metadata={"says": "The phone's number, for a code to type when mode linked links the device."}
    )
    media_url: str = field(default=MEDIA_URL, metadata={"says": "The URL of encrypted files, with mode linked."})
    linked_program: tuple[str, ...] | None = field(
        default=None, metadata={"says": "A program of your own that connects mode linked, in place of neonize."}
    )

    def __post_init__(self) -> None:
        if self.mode == "linked":
            check_base_url("media_url", self.media_url)
            if self.phone is not None and not _NUMBER_ID.fullmatch(self.phone):
                raise ConfigError("phone must be digits: the country code and the number, without + and 00")
            return
        check_secret("token", self.token, "it comes from System users")
        check_secret("app_secret", self.app_secret, "it is in App settings, Basic, and keeps others from calling us")
        check_secret("verify_token", self.verify_token, "choose it, for example by `openssl rand -hex 16`")
        if not _NUMBER_ID.fullmatch(self.phone_number_id):
            raise ConfigError("phone_number_id must be digits, from WhatsApp, API Setup; it is not the phone number")
        if self.template is not None and not _TEMPLATE.fullmatch(self.template):
            raise ConfigError("template must be a template's name: lower-case letters, digits and _")
        if not _LANGUAGE.fullmatch(self.template_language):
            raise ConfigError("template_language must be a code such as en or pt_BR")
        check_base_url("api_url", self.api_url)
        check_base_url("files_url", self.files_url or self.api_url)
        if self.public_url is not None:
            check_base_url("public_url", self.public_url, plain_nearby=self.files_host != FILES_HOST)

    @property
    def files_host(self) -> str:
        """The only host that gets the token to download files."""
        own = host_of(self.files_url or self.api_url)
        return FILES_HOST if own == host_of(OFFICIAL_URL) else own


def hosts(config: Config) -> frozenset[str]:
    """Hosts that may receive the token: those of the API and of its files."""
    is_cloud = config.mode == "cloud"
    return frozenset({host_of(config.api_url), config.files_host} if is_cloud else {host_of(config.media_url)})


class Adapter:
    """One business phone number on WhatsApp."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __new__(cls, config: Config, context: AdapterContext) -> "Adapter | LinkedAdapter":  # type: ignore[misc]
        """The adapter of the mode."""
        return super().__new__(cls) if config.mode == "cloud" else LinkedAdapter(config, context)

    def __init__(self, config: Config, context: AdapterContext) -> None:
        assert config.token is not None, "a configuration without a token is refused"
        self._config, self._context = config, context
        http, clock, works = context.http, context.clock, partial(context.report, API)
        self._client = CloudClient(
            http, clock, api_url=config.api_url, token=config.token, number=config.phone_number_id, works=works
        )
        self._template = Template(name=config.template, language=config.template_language) if config.template else None
        self._limits = RateLimits("WhatsApp", context.clock, growth=4.0)
        self._uploads = Uploads(self._client)
        self._me = CloudNumber(id=config.phone_number_id)
        self._hooks = HookInbox()
        self._let_in = asyncio.Event()
        self._last: Latest[str, str] = Latest()  # by person, their newest message that is not marked as read
        self._typing: Latest[str, tuple[str, float]] = Latest()  # by person, the message it was shown at, and when
        self._wrote: Latest[str, datetime] = Latest()  # when people wrote last: earlier reports are out of date
        self._closed: Latest[str, None] = Latest()  # people to whom only a template can be sent, as Meta told
        self._texts: Latest[str, None] = Latest()  # our latest messages that a template can replace, by id
        self._reactions = OnlyReactions()

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Take webhooks until cancelled; Meta repeats for a week what was not acknowledged."""
        self._let_in.clear()
        introduce = partial(self._client.look, self._client.number, fields="verified_name,display_phone_number")
        told = (await retried(introduce, clock=self._context.clock)).told
        digits = "".join(filter(str.isdigit, words(told, "display_phone_number")))
        self._me = CloudNumber(id=self._config.phone_number_id, digits=digits, name=line(told, "verified_name"))
        self._let_in.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._register())
            await self._hooks.run(accept)

    async def connected(self) -> None:
        """Wait until Meta has accepted the token."""
        await self._let_in.wait()

    async def send(self, parcel: Parcel) -> Receipt:
        """Send one message: outside the 24 hours after the person's last one as the template, or not at all."""
        channel = parcel.conversation.channel
        await self._read(channel)
        receipt = await self._limits.call(channel, lambda: self._sent(parcel))
        self._typing.pop(channel, None)
        return receipt

    async def _sent(self, parcel: Parcel) -> Receipt:
        channel, previews = parcel.conversation.channel, self._config.link_previews
        freely = () if channel in self._closed else (None,)
        for template in (*freely, *filter(None, (self._template,))):
            try:
                receipt = await send(self._client, self._uploads, parcel, previews=previews, template=template)
            except WindowClosed:
                self._closed.keep(channel, None)
                if template is not None:
                    raise
            else:
                if template is None and self._template is not None and parcel.kind is ParcelKind.TEXT:
                    self._texts.keep(receipt.message_id, None)
                return receipt
        cure = f"name one in adapters.{PLATFORM}.template, or it is sent once they have written"
        raise WindowClosed(f"{WORDS[WINDOW_CLOSED]}, and WhatsApp then accepts only a template; {cure}")

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Set or remove our reaction, of which WhatsApp shows one to a message."""
        shown = emoji_character(emoji)
        reacting = partial(react, self._client, conversation, message_id, shown if added else "")
        call = partial(self._limits.call, conversation.channel, reacting)
        await self._reactions.change(conversation, message_id, shown, added=added, call=call)

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Show typing at the person's last message, which marks it as read."""
        channel, now = conversation.channel, self._context.clock.monotonic()
        if is_group(conversation) or not self._config.read_receipts:
            raise Undeliverable("WhatsApp shows no typing here")
        shown, since = self._typing.get(channel, ("", 0.0))
        last = self._last.get(channel, shown)
        if not last:
            raise Undeliverable("WhatsApp shows typing only at a message of the last hours")
        if last != shown or now - since >= TYPING_SECONDS:
            await mark_read(self._client, last, typing=True)
            self._last.pop(channel, None)
            self._typing.keep(channel, (last, now))

    async def _read(self, channel: str) -> None:
        """Mark the person's last message as read, if typing has not done so."""
        last = self._last.pop(channel, "")
        if last and self._config.read_receipts:
            try:
                await mark_read(self._client, last, typing=False)
            except AdapterError as error:
                log.info("a message could not be marked as read: %s", type(error).__name__)

    async def direct(self, sender: str) -> str:
        """A direct chat has the id of its person."""
        return sender

    def own_name(self) -> str:
        """The number's verified name."""
        return self._me.name

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Download the bytes of a ref by a fresh URL."""
        return CloudDownload(self._client, ref, files_host=self._config.files_host).open()

    async def check(self) -> Sequence[Finding]:
        """Token, number, webhook and clock, for the doctor."""
        account = self._context.account
        return await check_number(self._client, name=f"{PLATFORM}:{account}", hook=hook_path(PLATFORM, account))

    def screen_hook(self, hook: Hook) -> HookAnswer | None:
        """Answer a handshake, and refuse a call that is not signed; verifying the signature needs the body."""
        if hook.method == "GET":
            return self._hooks.handshake(hook, self._config.verify_token)
        if hook.method != "POST":
            return HookAnswer(status=405)
        return None if SIGNATURE.may_be(hook) else HookAnswer(status=401)

    async def take_hook(self, hook: Hook) -> HookAnswer:
        """Accept one call: its signature is verified before its content, and 200 is answered only after commit."""
        if (answer := self.screen_hook(hook)) is not None:
            return answer
        if not SIGNATURE.is_of(hook, self._config.app_secret):
            return HookAnswer(status=401)
        if self._hooks.has_taken(SIGNATURE.of(hook)):
            return HookAnswer(status=200)
        payload, view = from_json(hook.body), self._view()
        arrivals = parse(payload, view)
        if max(arrival.sent for arrival in arrivals) < view.received - STALE:
            return HookAnswer(status=403)
        take = partial(self._take, payload, arrivals, view)
        return await self._hooks.take(take, signature=SIGNATURE.of(hook))

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded call."""
        me = CloudNumber(id=words(known, "id"), digits=words(known, "digits"), name=words(known, "name"))
        return parse(payload, replace(self._view(), me=me, received=received, texts=frozenset(texts(known, "texts"))))

    async def _register(self) -> None:
        """Have Meta send the number's events to our address: several numbers of one app then have one each."""
        if self._config.public_url is None or self._config.verify_token is None:
            return
        where = {
            "override_callback_uri": hook_path(PLATFORM, self._context.account, base=self._config.public_url),
            "verify_token": self._config.verify_token.reveal(),
        }
        for attempt in count(1):  # Meta calls us first, which may not work at once
            try:
                with on_behalf(None):  # a call that holds a secret is not recorded
                    await self._client.post("", {"webhook_configuration": where})
            except AdapterError as error:
                self._context.report(EVENTS, f"Meta does not send events to public_url: {error}")
                await self._context.clock.sleep(backoff(attempt))
            else:
                self._context.report(EVENTS)
                break

    async def _take(self, payload: Raw, arrivals: Sequence[Arrival], view: CloudParseContext, accept: Accept) -> None:
        for subject, says in notes(payload, self._me):
            self._context.report(subject, says, is_note=True)
        self._context.parsed(payload, lambda: {**asdict(view.me), "texts": sorted(view.texts)}, arrivals)
        reopened = {arrival.conversation for arrival in arrivals if self._reopens(arrival)}
        await hand_in(accept, [(arrival, None) for arrival in arrivals])
        if isinstance(accept, ReopensWindows):
            for where in reopened:
                await accept.reopen(where)

    def _reopens(self, arrival: Arrival) -> bool:
        """Note what sending needs to know. Returns whether what was held until the person writes may be sent."""
        channel = arrival.conversation.channel
        match arrival:
            case Message() | Unsupported(is_event=False) if arrival.author.id == channel:
                self._last.keep(channel, arrival.id)
                self._wrote.keep(channel, arrival.sent)
                self._closed.pop(channel, None)
                return True
            case DeliveryStatus(state=DeliveryState.AGAIN) if arrival.message_id not in self._texts:
                self._limits.slow_down(channel)
            case DeliveryStatus(state=DeliveryState.AGAIN | DeliveryState.HELD | DeliveryState.WINDOW_CLOSED):
                if arrival.sent < self._wrote.get(channel, arrival.sent):
                    return True
                self._closed.keep(channel, None)
        return False

    def _view(self) -> CloudParseContext:
        return CloudParseContext(
            account=self._context.account, me=self._me, received=self._context.clock.now(), texts=frozenset(self._texts)
        )
