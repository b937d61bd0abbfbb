"""WhatsApp as a linked device: the account of a phone; neonize keeps the connection, in a process of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from belino.adapters.whatsapp.capabilities import LIMITS as CLOUD
from belino.adapters.whatsapp.linked.client import LINK, SESSION, LinkedClient, connection, ended
from belino.adapters.whatsapp.linked.content import media_refs
from belino.adapters.whatsapp.linked.media import LinkedDownload, upload
from belino.adapters.whatsapp.linked.parse import GROUPS, OWN, PLATFORM, LinkedView, chat_of, parse
from belino.adapters.whatsapp.linked.socket import VERSION, version_problem
from belino.aio.companion import CompanionSession
from belino.domain.emoji import emoji_character
from belino.domain.errors import AdapterError, Unanswered, Unauthorized, Unreached
from belino.domain.limits import FileLimit, Limits, SendAs
from belino.domain.linking import LinkCode
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Message, SourceMessage, Unsupported
from belino.domain.outcome import Finding
from belino.domain.ports import Accept, AdapterContext, RecallsHistory, hand_in
from belino.domain.reply import Parcel, ParcelKind, Receipt, StoredFile
from belino.net.json_fields import Raw, as_table, count, line, table, texts_by_key, unix_time, words
from belino.net.rest import Latest, OnlyReactions, RateLimits

if TYPE_CHECKING:
    from belino.adapters.whatsapp import Config

FILE_BYTES = 2000 * 1024 * 1024  # WhatsApp's help names 2 GB for files, and 16 MB for what its apps show
_OWN_FILES = {
    SendAs.PHOTO: replace(CLOUD.files[SendAs.PHOTO], max_bytes=CLOUD.files[SendAs.VIDEO].max_bytes),
    SendAs.VOICE: replace(CLOUD.files[SendAs.VOICE], waveform=True),
    SendAs.DOCUMENT: FileLimit(max_bytes=FILE_BYTES),
}
LIMITS = replace(CLOUD, files={**CLOUD.files, **_OWN_FILES}, fetch_bytes=FILE_BYTES)
CONNECTION = "connection"
MOST_UNREAD = 100
CODE_SECONDS = 120.0  # longer than the longest code is valid: none follows after the last one


class LinkedAdapter:
    """One account of WhatsApp, as a device that is linked to its phone."""

    platform: ClassVar[str] = PLATFORM
    limits: Limits = LIMITS

    def __init__(self, config: "Config", context: AdapterContext) -> None:
        self._config, self._context = config, context
        self._limits = RateLimits("WhatsApp", context.clock)
        self._client: LinkedClient | None = None
        self._view = LinkedView(account=context.account)
        self._let_in = asyncio.Event()
        self._reactions = OnlyReactions()
        self._unread: Latest[str, tuple[str, ...]] = Latest()  # by chat, messages that are not marked as read yet

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled. An event is acknowledged once its arrivals are on disk."""
        self._let_in.clear()
        if await self.needs_link():
            raise Unauthorized(self._session.why or f"this device is not linked; {LINK}")
        async with connection(self._context.folder(), program=self._config.linked_program) as client:
            self._client = client
            try:
                async for event in client.events():
                    await self._take(event, client, accept)
            finally:
                self._client = None
                self._let_in.clear()

    async def _take(self, event: Raw, client: LinkedClient, accept: Accept) -> None:
        name, told, view = words(event, "event"), table(event, "data"), self._view
        error = Unauthorized(f"this device is not linked; {LINK}") if name == "qr" else ended(name, told)
        if error is not None:
            if not isinstance(error, Unreached):
                self._session.end(str(error), is_void=name in ("logged out", "qr"))
            raise error
        match name:
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
                        self._view = replace(view, groups={**view.groups, said.conversation.channel: said.channel_name})
                    if isinstance(said, Message) and not said.author.is_agent:
                        unread = (*self._unread.get(said.conversation.channel, ()), said.id)
                        self._unread.keep(said.conversation.channel, unread[-MOST_UNREAD:])

    async def _connected(self, told: Raw, client: LinkedClient) -> None:
        groups = await client.call("groups", {})
        names = {address: line(groups, address) for address in groups}
        self._view = replace(self._view, me=words(told, "JID"), lid=words(told, "LID"), groups=names)
        self._has_linked()
        self._let_in.set()

    def _has_linked(self) -> None:
        self._session.begin()
        self._context.report(CONNECTION)  # a listener that was refused tries again at once

    @property
    def _session(self) -> CompanionSession:
        return CompanionSession(self._context.folder(), SESSION)

    async def connected(self) -> None:
        """Wait until WhatsApp has let the device in."""
        await self._let_in.wait()

    async def needs_link(self) -> bool:
        """Whether no phone has linked this device."""
        return not self._session.is_linked

    async def link(self) -> AsyncIterator[LinkCode]:
        """The codes to link this device with, until a phone has done so; a QR code is valid for less than a minute."""
        folder, code = self._context.folder(), LinkCode()
        async with connection(folder, program=self._config.linked_program, phone=self._config.phone) as client:
            try:
                async for event in client.events(seconds=CODE_SECONDS):
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
            except TimeoutError:
                raise AdapterError("no phone read one of the codes; start again when it is at hand") from None

    @property
    def _connection(self) -> LinkedClient:
        if self._client is None or not self._let_in.is_set():
            raise Unreached("WhatsApp is not connected")
        return self._client

    async def send(self, parcel: Parcel) -> Receipt:
        """Send a text, a file, or an edit."""
        where = parcel.conversation
        if parcel.kind is ParcelKind.EDIT:
            return await self.edit(parcel.edits or "", parcel)
        around = {"contextInfo": self._answered(parcel)} if parcel.reply_to else {}
        if not parcel.files:
            text = {"extendedTextMessage": {"text": parcel.text, **around}}
            return await self._sent(where, text if around else {"conversation": parcel.text})
        (file,) = parcel.files
        put = partial(upload, self._connection, self._context, file, media_url=self._config.media_url)
        part, fields = await self._limits.call("", put)
        message = {part: {**fields, **around}}
        receipt = await self._sent(where, message)
        source = SourceMessage(where=where, message_id=receipt.message_id, sent=receipt.sent)
        (ref,) = media_refs(message, source, once=False)
        return replace(receipt, stored=(StoredFile(form=file.send_as, size=file.size, name=file.name, ref=ref),))

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Edit a text, which WhatsApp allows for fifteen minutes."""
        edited = {"type": "MESSAGE_EDIT", "editedMessage": {"conversation": parcel.text}, "timestampMS": self._now()}
        protocol = {"protocolMessage": {"key": self._key(parcel.conversation, message_id), **edited}}
        receipt = await self._sent(parcel.conversation, {"editedMessage": {"message": protocol}})
        return replace(receipt, message_id=message_id)

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete a message for everyone."""
        protocol = {"key": self._key(conversation, message_id), "type": "REVOKE"}
        await self._sent(conversation, {"protocolMessage": protocol})

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Set or remove our reaction, of which WhatsApp allows one to a message."""
        shown, key = emoji_character(emoji), self._key(conversation, message_id)
        reaction = {"key": key, "text": shown if added else "", "senderTimestampMS": self._now()}
        call = partial(self._sent, conversation, {"reactionMessage": reaction})
        await self._reactions.change(conversation, message_id, shown, added=added, call=call)

    async def _sent(self, conversation: ConversationKey, message: Raw) -> Receipt:
        arguments, client = {"to": chat_of(conversation), "message": message}, self._connection
        told = await self._limits.call("", lambda: client.call("send", arguments))
        if not (own := words(told, "id")):
            raise Unanswered("WhatsApp took the message and did not say under which id")
        sent = unix_time(told, "time") if count(told, "time") else self._context.clock.now()
        return Receipt(message_id=f"{own}.{OWN}", sent=sent)

    def _key(self, conversation: ConversationKey, message_id: str) -> Mapping[str, object]:
        """The key that names a message, as we see it."""
        chat, own = chat_of(conversation), message_id.endswith(f".{OWN}")
        by = {} if own or not chat.endswith(GROUPS) else {"participant": self._view.author_of(message_id, chat)}
        return {"remoteJID": chat, "fromMe": own, "ID": message_id.partition(".")[0], **by}

    def _answered(self, parcel: Parcel) -> Mapping[str, object]:
        """What makes a message a reply; apps find the quoted one by its id, or show what is given here."""
        own_id = parcel.reply_to or ""
        author, quoted = self._view.author_of(own_id, chat_of(parcel.conversation)), {"conversation": parcel.quoted}
        return {"stanzaID": own_id.partition(".")[0], "participant": author, "quotedMessage": quoted}

    def _now(self) -> str:
        return str(int(self._context.clock.now().timestamp() * 1000))

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Mark what is answered as read, and show typing."""
        chat, client = chat_of(conversation), self._connection
        if not self._config.read_receipts:
            return
        for message_id in self._unread.pop(conversation.channel, ()):
            sender = self._view.author_of(message_id, chat)
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
        return LinkedDownload(self._client, self._context, ref, media_url=self._config.media_url).open()

    async def check(self) -> Sequence[Finding]:
        """Session and library, for the doctor; without a connection, which would end that of a running gateway."""
        name, session = f"{PLATFORM}:{self._context.account}", self._session
        says = session.why or ("linked" if session.is_linked else "not linked")
        device = Finding(name=f"{name} device", ok=says == "linked", says=says, cure="" if session.is_linked else LINK)
        if self._config.linked_program is not None:
            return (device,)
        problem = version_problem()
        return (device, Finding(name=f"{name} library", ok=not problem, says=problem or f"neonize {VERSION}"))

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The arrivals of a recorded event."""
        me, lid, groups = words(known, "me"), words(known, "lid"), texts_by_key(table(known, "groups"))
        return parse(as_table(payload), replace(self._view, me=me, lid=lid, groups=groups))
