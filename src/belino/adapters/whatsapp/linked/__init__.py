"""WhatsApp as a linked device: the account of a phone; neonize keeps the connection, in a process of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, ClassVar

from belino.adapters.whatsapp.capabilities import LIMITS as CLOUD
from belino.adapters.whatsapp.linked.client import LINK, SESSION, LinkedClient, connection, ended
from belino.adapters.whatsapp.linked.media import LinkedDownload
from belino.adapters.whatsapp.linked.parse import PLATFORM, LinkedView, parse
from belino.adapters.whatsapp.linked.send import LinkedSending, author_of, chat_of
from belino.adapters.whatsapp.linked.socket import VERSION
from belino.domain.errors import AdapterError, Unauthorized, Unreached
from belino.domain.limits import FileLimit, Limits, SendAs
from belino.domain.linking import LinkCode
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message, Unsupported
from belino.domain.outcome import Finding
from belino.domain.ports import Accept, AdapterContext, RecallsHistory, hand_in
from belino.net.json_fields import Raw, as_table, line, table, texts_by_key, words
from belino.net.rest import Latest, OnlyReactions, RateLimits

if TYPE_CHECKING:
    from belino.adapters.whatsapp import Config

# WhatsApp's help names 2 GB for files, and 16 MB for what its apps show.
FILE_BYTES, SHOWN_BYTES = 2000 * 1024 * 1024, 16 * 1024 * 1024
_SHOWN = {
    form: replace(CLOUD.files[form], max_bytes=SHOWN_BYTES) for form in (SendAs.PHOTO, SendAs.VIDEO, SendAs.AUDIO)
}
_VOICE = replace(CLOUD.files[SendAs.VOICE], waveform=True)
LIMITS = replace(
    CLOUD,
    files={**CLOUD.files, **_SHOWN, SendAs.VOICE: _VOICE, SendAs.DOCUMENT: FileLimit(max_bytes=FILE_BYTES)},
    fetch_bytes=FILE_BYTES,
)
CONNECTION = "connection"
MOST_UNREAD = 100
CODE_SECONDS = 120.0
"""Longer than the longest code is valid: none follows after the last one."""
_LINKED, _WHY = "linked", "ended"
"""The files that a linked session has, and with the sentence why it ended, for a doctor that runs by itself."""


class LinkedAdapter(LinkedSending):
    """One account of WhatsApp, as a device that is linked to its phone."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS

    def __init__(self, config: "Config", context: AdapterContext) -> None:
        self._config = config
        self._context = context
        self._media_url = config.media_url
        self._limits = RateLimits("WhatsApp", context.clock)
        self._client: LinkedClient | None = None
        self._view = LinkedView(account=context.account)
        self._let_in = asyncio.Event()
        self._reactions = OnlyReactions()
        self._unread: Latest[str, tuple[str, ...]] = Latest()
        """By chat, messages that are not marked as read yet."""

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled. An event is acknowledged once its arrivals are on disk."""
        self._let_in.clear()
        folder = self._context.folder()
        if await self.needs_link():
            raise Unauthorized(self._why() or f"this device is not linked; {LINK}")
        async with connection(folder, program=self._config.linked_program) as client:
            self._client = client
            try:
                async for event in client.events():
                    await self._take(event, client, accept)
            finally:
                self._client = None
                self._let_in.clear()

    async def _take(self, event: Raw, client: LinkedClient, accept: Accept) -> None:
        name, told, view = words(event, "event"), table(event, "data"), self._view
        if (error := ended(name, told)) is not None:
            raise self._noted(name, error)
        match name:
            case "qr":
                raise self._noted("logged out", Unauthorized(f"this device is not linked; {LINK}"))
            case "connected":
                await self._connected(told, client)
            case "disconnected":
                self._let_in.clear()
                self._context.report(CONNECTION, "WhatsApp ended the connection, and it is opened again")
            case "history" if isinstance(accept, RecallsHistory):
                await accept.recall([each for each in parse(event, view) if isinstance(each, Message)])
            case "message" | "receipt" | "undecryptable" | "group" | "joined":
                arrivals = parse(event, view)
                known = {"me": view.me, "lid": view.lid, "groups": dict(view.groups)}
                self._context.parsed(event, lambda: known, arrivals)
                await hand_in(accept, [(arrival, None) for arrival in arrivals])
                for said in arrivals:
                    if name in ("group", "joined") and isinstance(said, Unsupported) and said.channel_name:
                        named = {**view.groups, said.conversation.channel: said.channel_name}
                        self._view = replace(view, groups=named)
                    if isinstance(said, Message) and not said.author.is_agent:
                        unread = (*self._unread.get(said.conversation.channel, ()), said.id)
                        self._unread.keep(said.conversation.channel, unread[-MOST_UNREAD:])

    async def _connected(self, told: Raw, client: LinkedClient) -> None:
        groups = await client.call("groups", {})
        names = {address: line(groups, address) for address in groups}
        self._view = LinkedView(
            account=self._context.account, me=words(told, "JID"), lid=words(told, "LID"), groups=names
        )
        self._has_linked()
        self._let_in.set()

    def _has_linked(self) -> None:
        (self._context.folder() / _LINKED).touch(mode=0o600)
        (self._context.folder() / _WHY).unlink(missing_ok=True)
        self._context.report(CONNECTION)  # a listener that was refused tries again at once

    def _noted(self, name: str, error: AdapterError) -> AdapterError:
        """Keep the sentence of an end that lasts; the session of a device that was logged out is void."""
        folder = self._context.folder()
        if not isinstance(error, Unreached):
            (folder / _WHY).touch(mode=0o600)
            (folder / _WHY).write_text(str(error), encoding="utf-8")
        if name == "logged out":
            for file in (*folder.glob(f"{SESSION}*"), folder / _LINKED):
                file.unlink(missing_ok=True)
        return error

    def _why(self) -> str:
        file = self._context.folder() / _WHY
        return file.read_text(encoding="utf-8") if file.exists() else ""

    async def connected(self) -> None:
        """Wait until WhatsApp has let the device in."""
        await self._let_in.wait()

    async def needs_link(self) -> bool:
        """Whether no phone has linked this device."""
        return not (self._context.folder() / _LINKED).exists()

    async def link(self) -> AsyncIterator[LinkCode]:
        """The codes to link this device with, until a phone has done so; a QR code is valid for less than a minute."""
        folder, code = self._context.folder(), LinkCode()
        async with connection(folder, program=self._config.linked_program, phone=self._config.phone) as client:
            events = client.events()
            while True:
                try:
                    async with asyncio.timeout(CODE_SECONDS):
                        event = await anext(events)
                except TimeoutError:
                    raise AdapterError("no phone read one of the codes; start again when it is at hand") from None
                name, told = words(event, "event"), table(event, "data")
                if (error := ended(name, told)) is not None:
                    raise error
                if name == "connected":
                    self._has_linked()
                    return
                if name in ("qr", "pairing"):
                    given = words(told, "code")
                    code = replace(code, scan=given) if name == "qr" else replace(code, type_in=given)
                    yield code

    @property
    def _connection(self) -> LinkedClient:
        if self._client is None or not self._let_in.is_set():
            raise Unreached("WhatsApp is not connected")
        return self._client

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Mark what is answered as read, and show typing."""
        chat, client = chat_of(conversation), self._connection
        if not self._config.read_receipts:
            return
        for message_id in self._unread.pop(conversation.channel, ()):
            sender = author_of(message_id, chat, self._view)
            await client.call("read", {"chat": chat, "sender": sender, "ids": [message_id.partition(".")[0]]})
        await client.call("typing", {"chat": chat})

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        """Show that a voice message is recorded, or typing."""
        await self._connection.call("typing", {"chat": chat_of(conversation), "voice": form is SendAs.VOICE})

    async def direct(self, sender: str) -> str:
        """The chat with a person has the person's id."""
        return sender

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Download and decrypt the bytes of a ref."""
        return LinkedDownload(self._client, self._context, ref, media_url=self._media_url).open()

    async def check(self) -> Sequence[Finding]:
        """Session and library, for the doctor; without a connection, which would end that of a running gateway."""
        name, why = f"{PLATFORM}:{self._context.account}", self._why()
        is_linked = not await self.needs_link()
        says = why or ("linked" if is_linked else "not linked")
        device = Finding(name=f"{name} device", ok=is_linked and not why, says=says, cure="" if is_linked else LINK)
        if self._config.linked_program is not None:
            return (device,)
        try:
            held = version("neonize")
        except PackageNotFoundError:
            held = "is not installed"
        cure = "" if held == VERSION else f"`pip install 'belino[whatsapp]'` installs {VERSION}."
        return (device, Finding(name=f"{name} library", ok=not cure, says=f"neonize {held}", cure=cure))

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded event."""
        me, lid, groups = words(known, "me"), words(known, "lid"), texts_by_key(table(known, "groups"))
        view = LinkedView(account=self._context.account, me=me, lid=lid, groups=groups)
        return parse(as_table(payload), view)
