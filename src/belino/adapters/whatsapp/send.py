"""Send parcels, each by one visible message: text, a file that was uploaded before, a template; and mark as read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from belino.adapters.whatsapp.capabilities import LIMITS, TEMPLATE_CHARS, TYPES, UPLOADS
from belino.adapters.whatsapp.client import CloudClient
from belino.adapters.whatsapp.errors import WINDOW_CLOSED, WORDS
from belino.domain.errors import AdapterError, NothingToEdit, Unanswered, Undeliverable, WindowClosed
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey, SourceMessage
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt, StoredFile
from belino.net.json_fields import Raw, tables, words
from belino.net.rest import Form, Latest

PRODUCT = {"messaging_product": "whatsapp"}
UPLOAD_SECONDS = 29 * 86_400.0  # Meta keeps an upload for thirty days
MOST_UPLOADS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An approved template with one variable, which takes an answer once the person's last message is a day old."""

    name: str
    language: str

    def fields(self, text: str) -> Mapping[str, object]:
        """The message with this text; WindowClosed if it does not fit."""
        said = " ".join(text.split())  # variables take no line breaks
        if not said or len(said) > TEMPLATE_CHARS:
            most = f"the template takes a text of up to {TEMPLATE_CHARS} characters"
            raise WindowClosed(f"{WORDS[WINDOW_CLOSED]}, and {most}; it can be sent once they write again")
        body = {"type": "body", "parameters": [{"type": "text", "text": said}]}
        language = {"code": self.language}
        return {"type": "template", "template": {"name": self.name, "language": language, "components": [body]}}


class Uploads:
    """Files that Meta has already: a message that is refused for its pace does not upload its file again."""

    def __init__(self, client: CloudClient) -> None:
        self._client = client
        self._kept: Latest[tuple[str, str], tuple[str, float]] = Latest(MOST_UPLOADS)

    async def put(self, file: OutgoingFile) -> str:
        """Meta's id of a file, which is uploaded in pieces unless it is there."""
        kind = "text/plain" if file.send_as is SendAs.DOCUMENT and file.mime not in UPLOADS else file.mime
        key, now = (file.sha256, kind), self._client.clock.monotonic()
        if (kept := self._kept.get(key)) is not None and now - kept[1] < UPLOAD_SECONDS:
            return kept[0]
        form = Form({**PRODUCT, "type": kind}, {"file": replace(file, mime=kind)})
        told = await self._client.upload(form)
        if not (media_id := words(told, "id")):
            raise AdapterError("Meta took the file and did not say under which id")
        self._kept.keep(key, (media_id, now))
        return media_id

    def forget(self, files: Sequence[OutgoingFile]) -> None:
        """Meta refused a message with these files: the next one uploads them again."""
        for key in [key for key in self._kept if key[0] in {file.sha256 for file in files}]:
            del self._kept[key]


async def send(
    client: CloudClient, uploads: Uploads, parcel: Parcel, *, previews: bool, template: Template | None = None
) -> Receipt:
    """Send one message; as the template, if one is given."""
    if parcel.kind is ParcelKind.EDIT:
        raise NothingToEdit("WhatsApp lets businesses edit no messages")
    if len(parcel.files) > 1:
        raise Undeliverable("WhatsApp takes one file to a message")
    fields = {**PRODUCT, **recipient(parcel.conversation)}
    if parcel.reply_to:
        fields["context"] = {"message_id": parcel.reply_to}
    media_id = ""
    if template is not None:
        fields |= template.fields("" if parcel.files else parcel.plain or parcel.text)
    for file in parcel.files:
        media_id = await uploads.put(file)
        fields |= _media(file, media_id)
    if template is None and not parcel.files:
        fields |= {"type": "text", "text": {"body": parcel.text, "preview_url": previews}}
    try:
        told = await client.post("messages", fields)
    except Undeliverable:
        uploads.forget(parcel.files)
        raise
    return _receipt(client, told, parcel, media_id)


async def react(client: CloudClient, conversation: ConversationKey, message_id: str, emoji: str) -> None:
    """Set our only reaction to a message; an empty one removes it."""
    reaction = {"message_id": message_id, "emoji": emoji}
    fields = {**PRODUCT, **recipient(conversation), "type": "reaction", "reaction": reaction}
    await client.post("messages", fields)


async def mark_read(client: CloudClient, message_id: str, *, typing: bool) -> None:
    """Mark a message and those before it as read, and show typing for 25 seconds."""
    shown = {"typing_indicator": {"type": "text"}} if typing else {}
    await client.post("messages", {**PRODUCT, "status": "read", "message_id": message_id, **shown})


def recipient(conversation: ConversationKey) -> Mapping[str, object]:
    """The fields that name a person by number or by Meta's id, or a group."""
    channel = conversation.channel
    if is_group(conversation):
        return {"recipient_type": "group", "to": channel}
    return {"recipient_type": "individual", "to" if channel.isdecimal() else "recipient": channel}


def is_group(conversation: ConversationKey) -> bool:
    """Whether it is a group: a person's id has only digits, or a country and a dot before letters and digits."""
    return not conversation.channel.isdecimal() and "." not in conversation.channel


def _media(file: OutgoingFile, media_id: str) -> Mapping[str, object]:
    kind, told = TYPES[file.send_as], dict[str, object](id=media_id)
    if file.caption and LIMITS.files[file.send_as].caption:
        told["caption"] = file.caption
    if file.send_as is SendAs.DOCUMENT:
        told["filename"] = file.name
    if file.send_as is SendAs.VOICE:
        told["voice"] = True
    return {"type": kind, kind: told}


def _receipt(client: CloudClient, told: Raw, parcel: Parcel, media_id: str = "") -> Receipt:
    own_id = next((words(message, "id") for message in tables(told, "messages")), "")
    if not own_id:
        raise Unanswered("Meta took the message and did not say under which id")
    source = SourceMessage(where=parcel.conversation, message_id=own_id, sent=client.clock.now())
    at = {"media": media_id}
    refs = ((each, source.ref(item=media_id, kind=each.kind, mime=each.mime, locator=at)) for each in parcel.files)
    stored = tuple(StoredFile(form=file.send_as, ref=ref) for file, ref in refs)
    return Receipt(message_id=own_id, sent=source.sent, stored=stored or None)
