"""Send parcels as a linked device: each is one of WhatsApp's own messages, as JSON."""

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from belino.adapters.whatsapp.linked.client import LinkedClient
from belino.adapters.whatsapp.linked.content import media_refs
from belino.adapters.whatsapp.linked.media import upload
from belino.adapters.whatsapp.linked.parse import GROUPS, HIDDEN, OWN, PEOPLE, LinkedView, address_of
from belino.domain.emoji import emoji_character
from belino.domain.errors import Unanswered, Undeliverable
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey, SourceMessage
from belino.domain.ports import AdapterContext
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt, StoredFile
from belino.net.json_fields import Raw, count, unix_time, words
from belino.net.rest import OnlyReactions, RateLimits

_PARTS = {
    SendAs.PHOTO: ("imageMessage", "image"),
    SendAs.VIDEO: ("videoMessage", "video"),
    SendAs.AUDIO: ("audioMessage", "audio"),
    SendAs.VOICE: ("audioMessage", "audio"),
    SendAs.STICKER: ("stickerMessage", "image"),
    SendAs.DOCUMENT: ("documentMessage", "document"),
}
WAVEFORM_POINTS = 64


def chat_of(conversation: ConversationKey) -> str:
    """The address of a conversation."""
    chat = address_of(conversation.channel)
    if not chat.endswith((PEOPLE, HIDDEN, GROUPS)):
        raise Undeliverable("this conversation is no chat of WhatsApp")
    return chat


def author_of(message_id: str, chat: str, view: LinkedView) -> str:
    """The address of a message's author, by its id."""
    author = message_id.partition(".")[2]
    if author == OWN:
        return view.me
    return f"{author[1:]}{HIDDEN}" if author.startswith("L") else f"{author}{PEOPLE}" if author else chat


class LinkedSending(ABC):
    """The part of the adapter that sends."""

    _context: AdapterContext
    _limits: RateLimits
    _view: LinkedView
    _media_url: str
    _reactions: OnlyReactions

    @property
    @abstractmethod
    def _connection(self) -> LinkedClient:
        """The connection; Unreached while there is none."""

    async def send(self, parcel: Parcel) -> Receipt:
        """Send a text, a file, or an edit."""
        if parcel.kind is ParcelKind.EDIT:
            return await self.edit(parcel.edits or "", parcel)
        around = {"contextInfo": self._answered(parcel)} if parcel.reply_to else {}
        if not parcel.files:
            text = {"extendedTextMessage": {"text": parcel.text, **around}}
            return await self._sent(parcel.conversation, text if around else {"conversation": parcel.text})
        (file,) = parcel.files
        part, media_type = _PARTS[file.send_as]
        put = partial(upload, self._connection, self._context, file, media_type=media_type, media_url=self._media_url)
        fields = await self._limits.call("", put)
        message = {part: {**_facts(file), **fields, **around}}
        receipt = await self._sent(parcel.conversation, message)
        source = SourceMessage(where=parcel.conversation, message_id=receipt.message_id, sent=receipt.sent)
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
        by = {} if own or not chat.endswith(GROUPS) else {"participant": author_of(message_id, chat, self._view)}
        return {"remoteJID": chat, "fromMe": own, "ID": message_id.partition(".")[0], **by}

    def _answered(self, parcel: Parcel) -> Mapping[str, object]:
        """What makes a message a reply; apps find the quoted one by its id, or show what is given here."""
        own_id = parcel.reply_to or ""
        author = author_of(own_id, chat_of(parcel.conversation), self._view)
        quoted = {"conversation": parcel.quoted}
        return {"stanzaID": own_id.partition(".")[0], "participant": author, "quotedMessage": quoted}

    def _now(self) -> str:
        return str(int(self._context.clock.now().timestamp() * 1000))


def _facts(file: OutgoingFile) -> Mapping[str, object]:
    """What a message says about its file."""
    is_voice = file.send_as is SendAs.VOICE
    if file.send_as is SendAs.DOCUMENT:
        facts: dict[str, object] = {"fileName": file.name, "title": file.name}
    else:
        facts = {"width": file.width, "height": file.height, "seconds": round(file.seconds or 0)}
    facts |= {"mimetype": "audio/ogg; codecs=opus" if is_voice else file.mime, "caption": file.caption, "PTT": is_voice}
    if is_voice and file.waveform:  # from 0 to 100, at 64 points
        points = (file.waveform[at * len(file.waveform) // WAVEFORM_POINTS] for at in range(WAVEFORM_POINTS))
        facts["waveform"] = b64encode(bytes(point * 100 // 255 for point in points)).decode()
    return {name: value for name, value in facts.items() if value}
