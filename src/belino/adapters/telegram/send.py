"""Send parcels, each by one visible call: text, a file, an album or an edit; and show chat actions before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

from belino.adapters.telegram.authors import DIRECT_TOPIC
from belino.adapters.telegram.client import (
    NoSuchPage,
    NotFound,
    TelegramClient,
    TelegramRefused,
    has_nothing_to_edit,
    is_gone,
    is_unchanged,
    misses_question,
    refusal,
    refuses_photo,
    refuses_reaction,
)
from belino.adapters.telegram.media import TelegramSource, refs_of
from belino.domain.errors import NothingToEdit, Unanswered, Undeliverable
from belino.domain.limits import Markup, SendAs
from belino.domain.message import ConversationKey
from belino.domain.places import Moved, Places, message_at
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt, StoredFile
from belino.net.json_fields import Raw, as_table, count, has, number_id, unix_time, whole, words
from belino.net.rest import Form

METHODS = {
    SendAs.PHOTO: "sendPhoto",
    SendAs.VIDEO: "sendVideo",
    SendAs.AUDIO: "sendAudio",
    SendAs.VOICE: "sendVoice",
    SendAs.ANIMATION: "sendAnimation",
    SendAs.STICKER: "sendSticker",
    SendAs.DOCUMENT: "sendDocument",
}
# An animation is also marked as a document, so it must be checked first.
_KEPT_AS = sorted(SendAs, key=lambda form: form is SendAs.DOCUMENT)
# Telegram re-encodes these: their size and name say nothing about what was sent.
_REMADE = frozenset({SendAs.PHOTO, SendAs.ANIMATION, SendAs.STICKER})

CALLS_AT_MOST = 4
"""A moved group, an invalid picture and a deleted question are each retried with another call, once."""

TYPING = "typing"
UPLOADS = {
    SendAs.PHOTO: "upload_photo",
    SendAs.VIDEO: "upload_video",
    SendAs.AUDIO: "upload_document",
    SendAs.VOICE: "upload_voice",
    SendAs.ANIMATION: "upload_video",
    SendAs.STICKER: "choose_sticker",
    SendAs.DOCUMENT: "upload_document",
}

MOST_DRAFT_ID = 2**31 - 1

_EDITED_BY = frozenset({"chat_id", "business_connection_id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One call that makes something visible."""

    method: str
    fields: Mapping[str, object]
    files: Mapping[str, OutgoingFile] = field(default_factory=dict)


async def send(client: TelegramClient, parcel: Parcel, places: Places, *, previews: bool = True) -> Receipt:
    """Send one message, album or edit. A group that became a supergroup is followed to its new id."""
    if parcel.kind is ParcelKind.EDIT:
        return await edit(client, parcel.edits or "", parcel, previews=previews)
    channel = parcel.conversation.channel
    place = places.now(channel)
    for _ in range(CALLS_AT_MOST):
        call = call_of(parcel, previews=previews)
        call = call if place == channel else _to(call, parcel, place)
        try:
            return _moved(await _made(client, call, parcel), "" if place == channel else place)
        except TelegramRefused as error:
            if error.migrate_to is not None and str(error.migrate_to) != place:
                place = str(error.migrate_to)
                await places.moved(Moved(old=channel, new=place))
            elif refuses_photo(error, parcel):
                parcel = replace(parcel, files=as_documents(parcel.files))
            elif misses_question(error, parcel):
                parcel = replace(parcel, reply_to=None)
            else:
                raise refusal(error, parcel) from error
    raise Undeliverable("Telegram refused it in every form")


async def edit(client: TelegramClient, message_id: str, parcel: Parcel, *, previews: bool = True) -> Receipt:
    """Edit a message's text."""
    number, _, moved = message_id.partition("@")
    fields = {name: value for name, value in where_of(parcel.conversation).items() if name in _EDITED_BY}
    fields |= {"message_id": _number(number), **_text(parcel, previews=previews)}
    if moved:
        fields["chat_id"] = _number(moved)
    try:
        message = as_table(await client.call("editMessageText", fields))
    except (NoSuchPage, NotFound) as error:  # the token is valid: it sent the message
        if parcel.rich:
            raise
        raise NothingToEdit("this server changes no messages") from error
    except TelegramRefused as error:
        if is_unchanged(error):
            return Receipt(message_id=message_id, sent=client.now())
        if has_nothing_to_edit(error):
            raise NothingToEdit("the message that was to be changed is gone") from error
        raise refusal(error, parcel) from error
    return Receipt(message_id=message_id, sent=_when(message, "edit_date", client))


async def delete(client: TelegramClient, conversation: ConversationKey, message_id: str) -> None:
    """Delete a message; after 48 hours Telegram refuses: https://core.telegram.org/bots/api#deletemessage."""
    try:
        await client.call("deleteMessage", _message(conversation, message_id))
    except TelegramRefused as error:
        if not is_gone(error):
            raise Undeliverable(f"Telegram will not delete it: {error.description or error.code}") from error


async def react(client: TelegramClient, conversation: ConversationKey, message_id: str, emoji: str | None) -> None:
    """Set the bot's only reaction to a message: https://core.telegram.org/bots/api#setmessagereaction."""
    reaction = [] if emoji is None else [{"type": "emoji", "emoji": emoji}]
    try:
        await client.call("setMessageReaction", {**_message(conversation, message_id), "reaction": reaction})
    except TelegramRefused as error:
        if emoji is None and (is_unchanged(error) or is_gone(error)):
            return
        if not is_unchanged(error):
            raise Undeliverable(_reaction_refused(error, emoji)) from error


def _reaction_refused(error: TelegramRefused, emoji: str | None) -> str:
    if refuses_reaction(error):
        return f"this chat has no reaction {emoji}; Telegram allows bots some emoji only, such as 👍 👀 🔥 🎉 🤔"
    return f"Telegram will not react: {error.description or error.code}"


def _message(conversation: ConversationKey, message_id: str) -> dict[str, object]:
    """The fields that name a message, which may have moved to a supergroup."""
    number, _, moved = message_id.partition("@")
    if (own := _number(number)) is None:
        raise Undeliverable("this is no message that Telegram knows")
    chat = _number(moved) if moved else where_of(conversation)["chat_id"]
    return {"chat_id": chat, "message_id": own}


async def show_draft(client: TelegramClient, parcel: Parcel) -> None:
    """Show a draft in a private chat for half a minute; one with the same id is changed."""
    where = where_of(parcel.conversation)
    fields = {name: value for name, value in where.items() if name in ("chat_id", "message_thread_id")}
    number = int.from_bytes(sha256(parcel.key.encode()).digest()[:4]) % MOST_DRAFT_ID + 1
    try:
        await client.call("sendMessageDraft", {**fields, "draft_id": number, **_text(parcel, previews=True)})
    except TelegramRefused as error:
        raise refusal(error, parcel) from error


async def show_action(client: TelegramClient, conversation: ConversationKey, action: str) -> None:
    """Show a chat action; it ends after five seconds, or with the next message."""
    fields = {name: value for name, value in where_of(conversation).items() if name != "direct_messages_topic_id"}
    await client.call("sendChatAction", fields | {"action": action})


def call_of(parcel: Parcel, *, previews: bool = True) -> _Call:
    """The call that sends a parcel."""
    where = {**where_of(parcel.conversation), **_reply(parcel.reply_to)}
    if parcel.files:
        return files_call(where, parcel.files, parcel.markup)
    method = "sendRichMessage" if parcel.rich else "sendMessage"
    return _Call(method=method, fields={**where, **_text(parcel, previews=previews)})


def where_of(conversation: ConversationKey) -> dict[str, object]:
    channel, _, business = conversation.channel.partition("@")
    chat_id = _number(channel)
    if chat_id is None:
        raise Undeliverable("this conversation is no chat of Telegram")
    fields: dict[str, object] = {"chat_id": chat_id}
    if business:
        fields["business_connection_id"] = business
    # A topic of a group that moved is named with its place.
    thread = None if conversation.thread is None else conversation.thread.partition("@")[0]
    if thread is not None and thread.startswith(DIRECT_TOPIC):
        fields["direct_messages_topic_id"] = _number(thread.removeprefix(DIRECT_TOPIC))
    elif thread is not None:
        fields["message_thread_id"] = _number(thread)
    return fields


async def _made(client: TelegramClient, call: _Call, parcel: Parcel) -> Receipt:
    if call.files:
        result = await client.upload(call.method, Form(call.fields, call.files))
    else:
        result = await client.call(call.method, call.fields)
    messages = [as_table(message) for message in (result if isinstance(result, list) else [result])]
    ids = [number_id(message, "message_id") for message in messages]
    # A video for a large chat has the id 0: Telegram shows it later, under an id that it does not report.
    ids = [f"scheduled-{parcel.key}-{number}" if own == "0" else own for number, own in enumerate(ids)]
    if not ids or not all(ids):
        raise Unanswered("Telegram took the message and did not say under which id")
    sent = _when(messages[0], "date", client)
    sources = [TelegramSource(where=parcel.conversation, message_id=own, sent=sent) for own in ids]
    stored = tuple(kept_as(message, source) for message, source in zip(messages, sources, strict=True))
    return Receipt(message_id=ids[0], sent=sent, also=tuple(ids[1:]), stored=stored if call.files else None)


def files_call(where: Mapping[str, object], files: Sequence[OutgoingFile], markup: Markup) -> _Call:
    """The call for these files, with their captions; `where` are the fields of the target chat."""
    if len(files) == 1:
        (file,) = files
        fields = {**where, **_caption(file, markup), **_facts(file)}
        return _Call(method=METHODS[file.send_as], fields=fields, files={str(file.send_as): file})
    parts = {f"file{number}": file for number, file in enumerate(files)}
    media = [
        {"type": str(file.send_as), "media": f"attach://{name}", **_caption(file, markup), **_facts(file)}
        for name, file in parts.items()
    ]
    return _Call(method="sendMediaGroup", fields={**where, "media": media}, files=parts)


def as_documents(files: Sequence[OutgoingFile]) -> tuple[OutgoingFile, ...]:
    """The same files as documents, which accept anything; an album of documents holds only documents."""
    return tuple(replace(file, send_as=SendAs.DOCUMENT) for file in files)


def kept_as(message: Raw, source: TelegramSource) -> StoredFile:
    """What Telegram stored for a file."""
    form = next((form for form in _KEPT_AS if has(message, form)), None)
    ref = next(iter(refs_of(message, source)), None)
    if form is None or form in _REMADE:
        return StoredFile(form=form, ref=ref)
    kept = as_table(message[form])
    return StoredFile(form=form, size=count(kept, "file_size"), name=words(kept, "file_name") or None, ref=ref)


def _caption(file: OutgoingFile, markup: Markup) -> Mapping[str, object]:
    if not file.caption:
        return {}
    return {"caption": file.caption} | ({"parse_mode": "HTML"} if markup is Markup.HTML else {})


def _facts(file: OutgoingFile) -> dict[str, object]:
    """Attributes that Telegram shows and would otherwise have to detect."""
    seconds = None if file.seconds is None else round(file.seconds)
    match file.send_as:
        case SendAs.VIDEO | SendAs.ANIMATION:
            facts: dict[str, object | None] = {"width": file.width, "height": file.height, "duration": seconds}
            if file.send_as is SendAs.VIDEO:
                facts["supports_streaming"] = True
        case SendAs.AUDIO | SendAs.VOICE:
            facts = {"duration": seconds}
        case SendAs.DOCUMENT:
            # Already decided to be a document; Telegram would turn some into a video or an animation.
            facts = {"disable_content_type_detection": True}
        case _:
            facts = {}
    return {name: value for name, value in facts.items() if value}


def _when(message: Raw, key: str, client: TelegramClient) -> datetime:
    return unix_time(message, key) if whole(message, key) else client.now()


def _to(call: _Call, parcel: Parcel, place: str) -> _Call:
    # A message of the old group has another id in the new one: the answer to it is sent without its reply.
    kept = {name: value for name, value in call.fields.items() if name != "reply_parameters"}
    number, _, asked_in = (parcel.reply_to or "").partition("@")
    reply = _reply(number) if asked_in == place else {}
    return replace(call, fields={**kept, **reply, "chat_id": _number(place)})


def _moved(receipt: Receipt, place: str) -> Receipt:
    """The new group counts its messages from one: the bare number may be another message of the old one."""
    if not place:
        return receipt
    also = tuple(message_at(number, place) for number in receipt.also)
    return replace(receipt, message_id=message_at(receipt.message_id, place), also=also)


def _text(parcel: Parcel, *, previews: bool) -> Mapping[str, object]:
    # A row each: several in a row are cut on a phone. An edit without a keyboard removes it.
    rows = [[{"text": button.label, "callback_data": button.key}] for button in parcel.buttons]
    keyboard: dict[str, object] = {"reply_markup": {"inline_keyboard": rows}} if rows else {}
    if parcel.rich:
        return {"rich_message": {"html": parcel.rich}, **keyboard}
    fields: dict[str, object] = {"text": parcel.text, **keyboard}
    if parcel.markup is Markup.HTML:
        fields["parse_mode"] = "HTML"
    if not previews:
        fields["link_preview_options"] = {"is_disabled": True}
    return fields


def _reply(message_id: str | None) -> Mapping[str, object]:
    reply_to = _number(message_id)
    if reply_to is None:
        return {}
    # The message may be deleted by now; the answer is sent all the same.
    return {"reply_parameters": {"message_id": reply_to, "allow_sending_without_reply": True}}


def _number(text: str | None) -> int | None:
    """An id in Telegram's form."""
    digits = (text or "").removeprefix("-")
    return int(text or "") if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
