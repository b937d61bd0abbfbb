"""Telegram adapter: the Bot API by long polling or a webhook, bytes by getFile, text and files out."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from belino.adapters.telegram.authors import PLATFORM, TelegramBot
from belino.adapters.telegram.capabilities import LIMITS, WORKS, local_limits
from belino.adapters.telegram.client import (
    MethodUnknown,
    NoSuchPage,
    NotFound,
    OverlongAnswer,
    PollConflict,
    SendPacing,
    TelegramClient,
    TelegramRefused,
)
from belino.adapters.telegram.doctor import check_bot, local_findings
from belino.adapters.telegram.media import FETCH_BYTES, LocalServerDisk, TelegramDownload
from belino.adapters.telegram.parse import ALLOWED_UPDATES, parse
from belino.adapters.telegram.send import TYPING, UPLOADS, delete, edit, react, send, show_action, show_draft
from belino.domain.commands import CommandSpec
from belino.domain.emoji import emoji_character
from belino.domain.errors import AdapterError, ConfigError, MarkupRefused, Undeliverable
from belino.domain.limits import Capabilities, Limits, SendAs
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey
from belino.domain.outcome import Finding, MessageOutcome
from belino.domain.ports import (
    Accept,
    AdapterContext,
    DraftsShown,
    Hook,
    HookAnswer,
    Incoming,
    Question,
    Taken,
    hand_in,
    pause_between_drafts,
)
from belino.domain.reply import Parcel, Receipt
from belino.net.guard import parse_url
from belino.net.json_fields import Raw, as_table, table, whole, words
from belino.net.redact import Secret, same_secret
from belino.net.rest import HookInbox, OnlyReactions, check_base_url, hook_path
from belino.net.stream import retried

log = logging.getLogger(__name__)

OFFICIAL_URL = "https://api.telegram.org"
REF_LETTERS = "tg"
SITES = frozenset({"telegram.org"})
"""The platform's domains, which an account's proxy serves."""
SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105 - the header's name

POLL_SECONDS = 50
# Telegram holds a poll open; a server that does not, or repeats an answer, must not be polled in a tight loop.
LEAST_PAUSE = 1.0
BATCH = 100
# A broken connection is only reopened: proxies cut long polls, and Telegram's own servers restart.
POLL_TRIES = 5
DRAFT_PAUSES = 1.5, 6.0
STREAM_PAUSE = 1.0
PRESS = "callback_query"
ANSWER_CHARS = 200

_TOKEN = re.compile(r"[A-Za-z0-9:_-]{1,256}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")

SETUP = (
    Question(
        key="token",
        ask="Which token did @BotFather give you? (In Telegram: @BotFather, /newbot; or /mybots, the bot, API Token.)",
        secret=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one bot."""

    token: Secret = field(metadata={"says": "The bot's token, from @BotFather."})
    api_url: str = field(
        default=OFFICIAL_URL, metadata={"says": "The URL of the Bot API; set it for a server of your own."}
    )
    mode: Literal["polling", "webhook"] = field(
        default="polling", metadata={"says": "Whether belino polls for updates, or Telegram sends them to a webhook."}
    )
    webhook_secret: Secret | None = field(
        default=None, metadata={"says": "The secret that Telegram sends with its calls; required for mode webhook."}
    )
    public_url: str | None = field(
        default=None, metadata={"says": "The URL at which Telegram reaches belino; mode webhook registers it."}
    )
    local_files: bool = field(
        default=False,
        metadata={"says": "Whether api_url is a server of your own that runs with `--local`: files up to 2000 MB."},
    )

    local_root: Path | None = field(
        default=None,
        metadata={
            "says": "The folder of a server of your own that runs with `--local`, as this machine sees it: files are "
            "read there, up to 2000 MB."
        },
    )
    rich_messages: bool = field(
        default=True,
        metadata={
            "says": "Whether text with tables or headings is sent as a rich message, which old apps of Telegram do not "
            "show; otherwise tables are code and headings bold."
        },
    )
    link_previews: bool = field(default=True, metadata={"says": "Whether Telegram shows previews of links in answers."})
    drafts: DraftsShown = field(
        default="direct",
        metadata={
            "says": "Where draft answers are shown while they stream: in direct messages, everywhere, or nowhere."
        },
    )

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.token.reveal()):
            raise ConfigError("token is not a bot token; it looks like 123456:ABC-DEF and comes from @BotFather")
        check_base_url("api_url", self.api_url)
        if self.local_root is not None and not self.local_root.is_absolute():
            raise ConfigError("local_root must be a whole path, such as /var/lib/telegram-bot-api")
        if self.local_root is not None and self.api_url.rstrip("/") == OFFICIAL_URL:
            raise ConfigError("local_root is the folder of a server of your own; name that server in api_url")
        if self.public_url is not None:
            check_base_url("public_url", self.public_url, plain_nearby=self.api_url != OFFICIAL_URL)
        if self.mode == "webhook" and not _SECRET.fullmatch(_revealed(self.webhook_secret)):
            raise ConfigError(
                "webhook_secret is needed for a webhook, or anybody could speak as Telegram; "
                "write 1 to 256 characters of A-Z, a-z, 0-9, _ and -, e.g. from `openssl rand -hex 32`"
            )


def hosts(config: Config) -> frozenset[str]:
    """Hosts that may receive the token. A server that the operator names may be private, so its port is written out."""
    url = parse_url(config.api_url)
    return frozenset({url.host if config.api_url.rstrip("/") == OFFICIAL_URL else url.host_port})


class Adapter:
    """One bot on Telegram."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __init__(self, config: Config, context: AdapterContext) -> None:
        self._config = config
        self._context = context
        self._pacing = SendPacing(context.clock)
        self._client = TelegramClient(context, config)
        self._me = TelegramBot()
        self._hooks = HookInbox()
        self._let_in = asyncio.Event()
        self._reactions = OnlyReactions()
        """Our latest reactions, by chat and message."""
        self._has_drafts = True
        self._no_drafts: set[str] = set()
        """Chats in which Telegram refused a draft."""
        self._has_rich = True
        """Whether the server has rich messages, as far as we know; those that are older than the method do not."""
        self.limits = local_limits() if config.local_files or config.local_root is not None else LIMITS
        if not config.rich_messages:
            self.limits = replace(self.limits, rich=None)

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled; the cursor is the number of the next update."""
        self._let_in.clear()
        me = as_table(await self._client.look("getMe"))
        self._me = TelegramBot(id=whole(me, "id") or 0, username=words(me, "username"))
        self._let_in.set()
        if self._config.mode == "polling":
            await self._poll(accept, int(cursor) if cursor and cursor.isdecimal() else None)
        else:
            await self._be_called(accept)

    async def connected(self) -> None:
        """Wait until the bot's identity is known."""
        await self._let_in.wait()

    async def send(self, parcel: Parcel) -> Receipt:
        """Send one message, album or edit, to where its group is now."""
        places, previews = self._context.places, self._config.link_previews
        return await self._written(parcel, lambda form: send(self._client, form, places, previews=previews))

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Edit a message."""
        previews = self._config.link_previews
        return await self._written(parcel, lambda form: edit(self._client, message_id, form, previews=previews))

    async def _written(self, parcel: Parcel, work: Callable[[Parcel], Awaitable[Receipt]]) -> Receipt:
        """Write a parcel; as a rich message as long as the server is not known to lack them."""
        form = parcel if self._has_rich else replace(parcel, rich="")
        try:
            return await self._pacing.call(parcel.conversation.channel, lambda: work(form))
        except (NoSuchPage, NotFound, MethodUnknown) as error:
            if not form.rich:
                raise
            self._has_rich = False
            raise MarkupRefused("this Bot API server has no rich messages") from error

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete a message."""
        await self._pacing.call(conversation.channel, lambda: delete(self._client, conversation, message_id))

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Set our reaction, of which Telegram allows bots one to a message; a later one replaces it."""
        shown = emoji_character(emoji)
        reacting = partial(react, self._client, conversation, message_id, shown if added else None)
        call = partial(self._pacing.call, conversation.channel, reacting)
        await self._reactions.change(conversation, message_id, shown, added=added, call=call)

    async def direct(self, sender: str) -> str:
        """A private chat has the id of its person, who must have opened it once."""
        return sender

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        """Slower in groups, which accept twenty messages and edits a minute from a bot."""
        direct = conversation.channel.isdecimal()  # a group's id is negative, a business chat's has a connection
        return pause_between_drafts(self._config.drafts, direct=direct, pauses=DRAFT_PAUSES)

    def stream_pause(self, conversation: ConversationKey) -> float | None:
        """Previews are for private chats, and for servers that know them."""
        private = conversation.channel.isdecimal() and self._has_drafts
        return STREAM_PAUSE if private and conversation.channel not in self._no_drafts else None

    async def stream_draft(self, parcel: Parcel) -> None:
        """Show a draft without a message: https://core.telegram.org/bots/api#sendmessagedraft."""
        try:
            await self._pacing.call(parcel.conversation.channel, lambda: show_draft(self._client, parcel))
        except (NoSuchPage, NotFound, MethodUnknown) as error:
            self._has_drafts = False
            raise Undeliverable("this Bot API server has no drafts") from error
        except Undeliverable:
            self._no_drafts.add(parcel.conversation.channel)
            raise

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Show typing, which is all that Telegram shows."""
        await show_action(self._client, self._now(conversation), TYPING)

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        """Show that a photo, a video, a voice message or a file is being sent."""
        await show_action(self._client, self._now(conversation), UPLOADS[form])

    def _now(self, conversation: ConversationKey) -> ConversationKey:
        return replace(conversation, channel=self._context.places.now(conversation.channel))

    def own_name(self) -> str:
        """The bot's name, as in `/new@name`."""
        return self._me.username

    def command_aliases(self) -> Mapping[str, str]:
        """A client sends `/start` when a chat is opened: https://core.telegram.org/bots/features#global-commands."""
        return {"start": "help"}

    async def offer_commands(self, commands: Sequence[CommandSpec]) -> None:
        """Set the bot's menu if it is another: https://core.telegram.org/bots/api#setmycommands."""
        wanted = [{"command": spec.name, "description": spec.says} for spec in commands]
        if await self._client.call("getMyCommands", {}) != wanted:
            await self._client.call("setMyCommands", {"commands": wanted})

    async def rival(self) -> str:
        """The host of a webhook that keeps belino from polling; its path may hold a secret."""
        url = await self._webhook() if self._config.mode == "polling" else ""
        return f"a webhook at {urlsplit(url).hostname or 'another address'}" if url else ""

    async def take_over(self) -> None:
        """Remove the webhook; updates that wait for it are kept: https://core.telegram.org/bots/api#deletewebhook."""
        await self._client.call("deleteWebhook", {"drop_pending_updates": False})

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Download the bytes of a ref by a fresh link, which is valid for an hour and is then requested again."""
        clock, token = self._context.clock, self._config.token
        root = self._config.local_root
        disk = None if root is None else LocalServerDisk(root=root, open_below=self._context.open_below)
        return TelegramDownload(self._client, clock, ref, limit=self._most, token=token, disk=disk).open()

    @property
    def _most(self) -> int:
        """The largest file that this bot may download."""
        return self.limits.fetch_bytes or FETCH_BYTES

    async def check(self) -> Sequence[Finding]:
        """Token, privacy mode, webhook and clock, for the doctor."""
        name = f"{PLATFORM}:{self._context.account}"
        found = await check_bot(self._client, self._context.clock, name=name, webhook=self._config.mode == "webhook")
        return (*found, *local_findings(name, self._config.local_root, large=self._most > FETCH_BYTES))

    def screen_hook(self, hook: Hook) -> HookAnswer | None:
        """Refuse a call without our secret, which Telegram sends in a header."""
        if self._config.mode != "webhook":
            return HookAnswer(status=404)
        if not same_secret(hook.headers.get(SECRET_HEADER, ""), _revealed(self._config.webhook_secret)):
            return HookAnswer(status=401)
        return None if hook.method == "POST" else HookAnswer(status=405)

    async def take_hook(self, hook: Hook) -> HookAnswer:
        """Accept one update: its secret is checked before its body, and 200 is answered only after commit."""
        if (refused := self.screen_hook(hook)) is not None:
            return refused
        try:
            update = json.loads(hook.body)
        except (ValueError, RecursionError):
            return HookAnswer(status=400)
        return await self._hooks.take(lambda accept: self._take([as_table(update)], accept))

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded update."""
        told = table(known, "me")
        me = TelegramBot(id=whole(told, "id") or 0, username=words(told, "username"))
        return parse(as_table(payload), account=self._context.account, me=me, received=received, most=self._most)

    async def _webhook(self) -> str:
        return words(as_table(await self._client.look("getWebhookInfo")), "url")

    async def _removed_own_webhook(self) -> bool:
        """Remove a webhook that this account itself had set, before its mode was changed; no other one."""
        own = self._own_webhook()
        if own is None or await self._webhook() != own:
            return False
        log.warning("telegram:%s: the webhook that belino had set is removed", self._context.account)
        await self.take_over()
        return True

    def _own_webhook(self) -> str | None:
        if self._config.public_url is None:
            return None
        return hook_path(PLATFORM, self._context.account, base=self._config.public_url)

    async def _poll(self, accept: Accept, offset: int | None) -> None:
        """Poll getUpdates, one call at a time: an offset confirms that all earlier updates are on our disk."""
        clock = self._context.clock
        while True:
            asked, before = clock.monotonic(), offset
            try:
                updates = await self._updates(offset)
            except PollConflict as error:
                if not error.removable or not await self._removed_own_webhook():
                    raise
                continue
            if updates:
                offset = await self._take(updates, accept)
            if offset == before and (early := LEAST_PAUSE - (clock.monotonic() - asked)) > 0:
                await clock.sleep(early)

    async def _updates(self, offset: int | None) -> Sequence[Raw]:
        try:
            result = await self._asked(offset, limit=BATCH)
        except OverlongAnswer:
            result = await self._asked(offset, limit=1)  # otherwise these updates would block the queue for ever
        if not isinstance(result, list):
            raise AdapterError("Telegram's answer to getUpdates cannot be read")
        updates = [as_table(update) for update in result]
        if any(whole(update, "update_id") is None for update in updates):
            raise AdapterError("Telegram's answer to getUpdates has updates without a number")
        return sorted(updates, key=lambda update: whole(update, "update_id") or 0)

    async def _asked(self, offset: int | None, *, limit: int) -> object:
        fields: dict[str, object] = {
            "timeout": POLL_SECONDS,
            "limit": limit,
            "allowed_updates": list(ALLOWED_UPDATES),
        }
        if offset is not None:
            fields["offset"] = offset
        return await retried(
            lambda: self._client.look("getUpdates", fields, wait=POLL_SECONDS),
            clock=self._context.clock,
            lasting=(PollConflict, OverlongAnswer, TelegramRefused),
            attempts=POLL_TRIES,
        )

    async def _take(self, updates: Sequence[Raw], accept: Accept) -> int:
        """Commit the updates' arrivals and return the next offset."""
        before: list[Incoming] = []
        for update in updates:
            incoming = list(self._incoming(update))
            if not (pressed := table(update, PRESS)):
                before += incoming
                continue
            await hand_in(accept, before)
            before = []
            taken = [await accept(arrival, cursor=cursor) for arrival, cursor in incoming]
            await self._acknowledge(words(pressed, "id"), taken)
        await hand_in(accept, before)
        return _following(updates[-1])

    async def _acknowledge(self, press: str, taken: Sequence[Taken]) -> None:
        """End the waiting sign of a button, and say why a press does not count; it is committed in any case."""
        refused = next((each.reason for each in taken if each.outcome is MessageOutcome.DENIED), "")
        try:
            await self._client.call("answerCallbackQuery", {"callback_query_id": press, "text": refused[:ANSWER_CHARS]})
        except AdapterError as error:
            log.info("a press could not be acknowledged: %s", type(error).__name__)

    def _incoming(self, update: Raw) -> Iterator[Incoming]:
        """An update's arrivals; the cursor moves with the last, so that none of them can be lost."""
        received = self._context.clock.now()
        arrivals = parse(update, account=self._context.account, me=self._me, received=received, most=self._most)
        self._context.parsed(update, lambda: {"me": {"id": self._me.id, "username": self._me.username}}, arrivals)
        for number, arrival in enumerate(arrivals, 1):
            yield arrival, str(_following(update)) if number == len(arrivals) else None

    async def _be_called(self, accept: Accept) -> None:
        if (own := self._own_webhook()) is not None:
            fields = {
                "url": own,
                "secret_token": _revealed(self._config.webhook_secret),
                "allowed_updates": list(ALLOWED_UPDATES),
                "max_connections": 1,  # concurrent calls would be reordered
            }
            await self._client.call("setWebhook", fields)
        await self._hooks.run(accept)


def _following(update: Raw) -> int:
    return (whole(update, "update_id") or 0) + 1


def _revealed(secret: Secret | None) -> str:
    return "" if secret is None else secret.reveal()
