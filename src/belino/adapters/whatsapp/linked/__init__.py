"""WhatsApp as a linked device: an account of a phone, its events by neonize in a process of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar, Protocol

from belino.adapters.whatsapp.linked.capabilities import LIMITS, WORKS
from belino.adapters.whatsapp.linked.client import LINK, SESSION, LinkedClient, as_errors, connection, ended
from belino.adapters.whatsapp.linked.media import LinkedDownload
from belino.adapters.whatsapp.linked.parse import PLATFORM, LinkedView, parse
from belino.adapters.whatsapp.linked.send import LinkedSending, author_of, chat_of
from belino.adapters.whatsapp.linked.socket import VERSION
from belino.domain.emoji import emoji_character
from belino.domain.errors import AdapterError, Unauthorized, Unreached
from belino.domain.limits import Capabilities, Limits, SendAs
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import Finding
from belino.domain.ports import Accept, AdapterContext, LinkCode, RecallsHistory, hand_in
from belino.domain.reply import Parcel, Receipt
from belino.net.json_fields import Raw, as_table, line, table, words
from belino.net.rest import RateLimits

CONNECTION = "connection"
MOST_UNREAD = 200
_WHY = "ended"
"""The file with the sentence why WhatsApp ended the session."""


class LinkedConfig(Protocol):
    """The settings that this mode reads."""

    media_url: str
    linked_program: Sequence[str] | None
    phone: str | None


class LinkedAdapter:
    """One account of WhatsApp, as a device that is linked to its phone."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS
    works: ClassVar[Sequence[Capabilities]] = WORKS

    def __init__(self, config: LinkedConfig, context: AdapterContext) -> None:
        self._config = config
        self._context = context
        self._limits = RateLimits("WhatsApp", context.clock)
        self._client: LinkedClient | None = None
        self._view = LinkedView(account=context.account)
        self._let_in = asyncio.Event()
        self._unread: dict[str, list[str]] = {}
        """Messages of a chat that were not marked as read yet."""

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled. An event is acknowledged once its arrivals are on disk."""
        self._let_in.clear()
        folder = self._context.folder()
        if not (folder / SESSION).exists():
            raise Unauthorized(self._why() or f"this account is not linked; {LINK}")
        async with connection(folder, program=self._config.linked_program) as client:
            self._client = client
            try:
                async for event in client.events():
                    await self._take(event, client, accept)
            finally:
                self._client = None
                self._let_in.clear()

    async def _take(self, event: Raw, client: LinkedClient, accept: Accept) -> None:
        told = table(event, "data")
        match words(event, "event"):
            case "connected":
                await self._connected(told, client)
            case "disconnected":
                self._let_in.clear()
                self._context.report(CONNECTION, "WhatsApp ended the connection; it is opened again")
            case "ended" if not _comes_back(told):
                raise self._ended(told)
            case "history":
                if isinstance(accept, RecallsHistory):
                    await accept.recall([each for each in parse(event, self._view) if isinstance(each, Message)])
            case _:
                arrivals = parse(event, self._view)
                view = self._view
                self._context.parsed(event, lambda: {"me": view.me, "lid": view.lid, "groups": dict(view.groups)}, arrivals)
                await hand_in(accept, [(arrival, None) for arrival in arrivals])
                self._note_unread(arrivals)

    async def _connected(self, told: Raw, client: LinkedClient) -> None:
        me, lid = words(table(told, "JID"), "User"), words(table(told, "LID"), "User")
        groups = await client.call("groups", {})
        names = {key: line(groups, key) for key in groups}
        self._view = LinkedView(account=self._context.account, me=me, lid=lid, groups=names)
        (self._context.folder() / _WHY).unlink(missing_ok=True)
        self._context.report(CONNECTION)
        self._let_in.set()

    def _ended(self, told: Raw) -> AdapterError:
        """The error that ends this run; its sentence is kept for the doctor, and a session that is void is removed."""
        error = ended(told)
        folder = self._context.folder()
        if not isinstance(error, Unreached):
            (folder / _WHY).write_text(str(error), encoding="utf-8")
        if words(told, "why") == "logged out":
            for file in folder.glob(f"{SESSION}*"):
                file.unlink()
        return error

    def _why(self) -> str:
        file = self._context.folder() / _WHY
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def _note_unread(self, arrivals: Sequence[Arrival]) -> None:
        for arrival in arrivals:
            if isinstance(arrival, Message) and not arrival.author.is_agent:
                waiting = self._unread.setdefault(arrival.conversation.channel, [])
                waiting[:] = [*waiting[1 - MOST_UNREAD :], arrival.id]
        while len(self._unread) > MOST_UNREAD:
            del self._unread[next(iter(self._unread))]

    async def connected(self) -> None:
        """Wait until WhatsApp has let the device in."""
        await self._let_in.wait()

    async def link(self) -> AsyncIterator[LinkCode]:
        """The codes to link this device with, until a phone has done so; a QR code is valid for less than a minute."""
        folder = self._context.folder()
        async with connection(folder, program=self._config.linked_program, phone=self._config.phone) as client:
            async for event in client.events():
                told = table(event, "data")
                match words(event, "event"):
                    case "qr" | "pairing" as kind:
                        yield LinkCode(text=words(told, "code"), is_qr=kind == "qr")
                    case "connected":
                        (folder / _WHY).unlink(missing_ok=True)
                        return
                    case "ended" if not _comes_back(told):
                        raise ended(told)

    @property
    def _connection(self) -> LinkedClient:
        if self._client is None or not self._let_in.is_set():
            raise Unreached("WhatsApp is not connected")
        return self._client

    @property
    def _sending(self) -> LinkedSending:
        context = self._context
        return LinkedSending(
            self._connection, context.http, context.clock, self._view, media_url=self._config.media_url
        )

    async def send(self, parcel: Parcel) -> Receipt:
        """Send one message, or an edit."""
        return await self._limits.call("send", lambda: self._sending.send(parcel))

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Edit a message."""
        return await self._limits.call("send", lambda: self._sending.edit(message_id, parcel))

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete a message for everyone."""
        await self._limits.call("send", lambda: self._sending.delete(conversation, message_id))

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Set or remove our reaction, of which WhatsApp allows one to a message."""
        shown = emoji_character(emoji) if added else ""
        await self._limits.call("send", lambda: self._sending.react(conversation, message_id, shown))

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Mark what is answered as read, and show typing."""
        chat, client = chat_of(conversation), self._connection
        with as_errors():
            for message_id in self._unread.pop(conversation.channel, []):
                sender = author_of(message_id, chat, self._view)
                await client.call("read", {"chat": chat, "sender": sender, "ids": [message_id.partition(".")[0]]})
            await client.call("typing", {"chat": chat})

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        """Show that a voice message is recorded; an upload is shown as typing."""
        with as_errors():
            await self._connection.call("typing", {"chat": chat_of(conversation), "voice": form is SendAs.VOICE})

    async def direct(self, sender: str) -> str:
        """A chat has the id of its person."""
        return sender

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Download and decrypt the bytes of a ref."""
        context = self._context
        return LinkedDownload(
            self._client, context.http, context.clock, ref, media_url=self._config.media_url
        ).open()

    async def check(self) -> Sequence[Finding]:
        """Library, session and connection, for the doctor; it opens no second connection, which would end the first."""
        name, findings = f"{PLATFORM}:{self._context.account}", []
        session, why = (self._context.folder() / SESSION).exists(), self._why()
        says = why or (f"linked as +{self._view.me}" if self._let_in.is_set() else "linked" if session else "not linked")
        findings.append(Finding(name=f"{name} device", ok=session and not why, says=says, cure="" if session else LINK))
        if self._config.linked_program is None:
            try:
                held = version("neonize")
            except PackageNotFoundError:
                held = "not installed"
            cure = "" if held == VERSION else "Install it by `pip install 'belino[whatsapp]'`."
            findings.append(Finding(name=f"{name} library", ok=held == VERSION, says=f"neonize {held}", cure=cure))
        return findings

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded event."""
        groups = {key: words(table(known, "groups"), key) for key in table(known, "groups")}
        view = replace(self._view, me=words(known, "me"), lid=words(known, "lid"), groups=groups)
        return parse(as_table(payload), view)


def _comes_back(told: Raw) -> bool:
    """Whether the library opens the connection again by itself."""
    reason = words(table(told, "told"), "Reason")
    return words(told, "why") == "refused" and reason in ("SERVICE_UNAVAILABLE", "INTERNAL_SERVER_ERROR")
