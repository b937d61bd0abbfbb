"""Send parcels as a linked device: each is one message in the JSON form of WhatsApp's own."""

from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime

from belino.adapters.whatsapp.linked.client import LinkedClient, as_errors
from belino.adapters.whatsapp.linked.media import Uploaded, upload
from belino.adapters.whatsapp.linked.parse import GROUPS, HIDDEN, OWN, PEOPLE, LinkedView, jid, number
from belino.domain.errors import Unanswered, Undeliverable
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock, HttpClient
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt, StoredFile
from belino.net.json_fields import Raw, words

_PARTS = {
    SendAs.PHOTO: ("imageMessage", "image"),
    SendAs.VIDEO: ("videoMessage", "video"),
    SendAs.ANIMATION: ("videoMessage", "video"),
    SendAs.AUDIO: ("audioMessage", "audio"),
    SendAs.VOICE: ("audioMessage", "audio"),
    SendAs.STICKER: ("stickerMessage", "image"),
    SendAs.DOCUMENT: ("documentMessage", "document"),
}
WAVEFORM_POINTS = 64


def chat_of(conversation: ConversationKey) -> str:
    """The address of a conversation."""
    found = jid(conversation.channel)
    if found.server not in (PEOPLE, HIDDEN, GROUPS) or not found.user:
        raise Undeliverable("this conversation is no chat of WhatsApp")
    return str(found)


def author_of(message_id: str, chat: str, view: LinkedView) -> str:
    """The address of the author of a message, by its id."""
    _, _, author = message_id.partition(".")
    if author == OWN:
        return f"{view.me}@{PEOPLE}"
    if not author:
        return chat
    return f"{author[1:]}@{HIDDEN}" if author.startswith("L") else f"{author}@{PEOPLE}"


def key_of(conversation: ConversationKey, message_id: str, view: LinkedView) -> Mapping[str, object]:
    """The key that names a message, as we see it."""
    chat, stanza = chat_of(conversation), message_id.partition(".")[0]
    is_own = message_id.endswith(f".{OWN}")
    key: dict[str, object] = {"remoteJID": chat, "fromMe": is_own, "ID": stanza}
    if chat.endswith(f"@{GROUPS}") and not is_own:
        key["participant"] = author_of(message_id, chat, view)
    return key


class LinkedSending:
    """Sends by a connection."""

    def __init__(self, client: LinkedClient, http: HttpClient, clock: Clock, view: LinkedView, *, media_url: str) -> None:
        self._client, self._http, self._clock, self._view = client, http, clock, view
        self._media_url = media_url

    async def send(self, parcel: Parcel) -> Receipt:
        """Send a text, a file, or an edit."""
        if parcel.kind is ParcelKind.EDIT:
            return await self.edit(parcel.edits or "", parcel)
        around = self._reply(parcel)
        if not parcel.files:
            text = {"text": parcel.text, "contextInfo": around} if around else None
            message: Raw = {"conversation": parcel.text} if text is None else {"extendedTextMessage": text}
            return await self._sent(parcel.conversation, message)
        (file,) = parcel.files
        part, media_type = _PARTS[file.send_as]
        uploaded = await upload(
            self._client, self._http, file, media_type=media_type, media_url=self._media_url
        )
        fields = {**_facts(file), **uploaded.fields, **({"contextInfo": around} if around else {})}
        stored = StoredFile(form=file.send_as, size=uploaded.hashes.size, name=file.name)
        return await self._sent(parcel.conversation, {part: fields}, stored)

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Edit a text, which WhatsApp allows for fifteen minutes."""
        protocol = {
            "key": key_of(parcel.conversation, message_id, self._view),
            "type": "MESSAGE_EDIT",
            "editedMessage": {"conversation": parcel.text},
            "timestampMS": str(self._now_ms()),
        }
        edited = {"editedMessage": {"message": {"protocolMessage": protocol}}}
        receipt = await self._sent(parcel.conversation, edited)
        return Receipt(message_id=message_id, sent=receipt.sent)

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete a message for everyone."""
        protocol = {"key": key_of(conversation, message_id, self._view), "type": "REVOKE"}
        await self._sent(conversation, {"protocolMessage": protocol})

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str) -> None:
        """Set our only reaction to a message; an empty one removes it."""
        key = key_of(conversation, message_id, self._view)
        reaction = {"key": key, "text": emoji, "senderTimestampMS": str(self._now_ms())}
        await self._sent(conversation, {"reactionMessage": reaction})

    async def _sent(self, conversation: ConversationKey, message: Raw, stored: StoredFile | None = None) -> Receipt:
        with as_errors():
            told = await self._client.call("send", {"to": chat_of(conversation), "message": message})
        if not (own := words(told, "id")):
            raise Unanswered("WhatsApp took the message and did not say under which id")
        seconds = number(told, "time")
        sent = datetime.fromtimestamp(seconds, UTC) if seconds else self._clock.now()
        return Receipt(message_id=f"{own}.{OWN}", sent=sent, stored=None if stored is None else (stored,))

    def _reply(self, parcel: Parcel) -> Raw:
        if not parcel.reply_to:
            return {}
        author = author_of(parcel.reply_to, chat_of(parcel.conversation), self._view)
        # Apps show the quote by its id; without any content they show none.
        return {
            "stanzaID": parcel.reply_to.partition(".")[0],
            "participant": author,
            "quotedMessage": {"conversation": ""},
        }

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


def _facts(file: OutgoingFile) -> dict[str, object]:
    """What the message says about a file."""
    mime = "audio/ogg; codecs=opus" if file.send_as is SendAs.VOICE else file.mime
    facts: dict[str, object] = {"mimetype": mime, "caption": file.caption, "width": file.width, "height": file.height}
    facts["seconds"] = None if file.seconds is None else round(file.seconds)
    match file.send_as:
        case SendAs.DOCUMENT:
            facts |= {"fileName": file.name, "title": file.name, "width": None, "height": None, "seconds": None}
        case SendAs.VOICE:
            facts |= {"PTT": True, "waveform": _waveform(file.waveform), "caption": ""}
        case SendAs.ANIMATION:
            facts["gifPlayback"] = True
    return {name: value for name, value in facts.items() if value}


def _waveform(points: bytes) -> str:
    """Loudness from 0 to 100 at 64 points, as apps draw it."""
    steps = [points[at * len(points) // WAVEFORM_POINTS] * 100 // 255 for at in range(WAVEFORM_POINTS)] if points else []
    return b64encode(bytes(steps)).decode()
