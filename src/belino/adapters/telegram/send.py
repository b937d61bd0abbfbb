"""Parcels out: one sendMessage each."""

from dataclasses import replace

from belino.adapters.telegram.calls import Calls, Refused
from belino.adapters.telegram.people import DIRECT_TOPIC
from belino.adapters.telegram.raw import as_table, identity, moment, whole
from belino.domain.errors import AdapterError, Undeliverable
from belino.domain.limits import Markup
from belino.domain.message import ConversationKey
from belino.domain.reply import Parcel, ParcelKind, Receipt


async def send(calls: Calls, parcel: Parcel) -> Receipt:
    """Make one message. A group that became a supergroup is followed to its new id."""
    if parcel.kind not in (ParcelKind.TEXT, ParcelKind.DRAFT) or parcel.files:
        raise Undeliverable("belino sends only text to Telegram so far")
    fields = fields_of(parcel)
    try:
        return await _sent(calls, fields)
    except Refused as error:
        if error.migrate_to is None:
            raise _undeliverable(error) from error
        chat_id = error.migrate_to
    # A message of the old group has another id in the new one: the answer goes without its reply.
    moved = {name: value for name, value in fields.items() if name != "reply_parameters"}
    try:
        receipt = await _sent(calls, moved | {"chat_id": chat_id})
    except Refused as error:
        raise _undeliverable(error) from error
    # The new group counts its messages anew: the bare number may be another message of the old one.
    return replace(receipt, message_id=f"{receipt.message_id}@{chat_id}")


async def _sent(calls: Calls, fields: dict[str, object]) -> Receipt:
    message = as_table(await calls.call("sendMessage", fields))
    message_id = identity(message, "message_id")
    if not message_id:
        raise AdapterError("Telegram took the message and did not say under which id")
    return Receipt(message_id=message_id, sent=moment(message, "date") if whole(message, "date") else calls.now())


def _undeliverable(error: Refused) -> Undeliverable:
    return Undeliverable(f"Telegram will not deliver it: {error.description or error.code}")


def fields_of(parcel: Parcel) -> dict[str, object]:
    """The fields of sendMessage."""
    fields: dict[str, object] = {**_where(parcel.conversation), "text": parcel.text}
    if parcel.markup is Markup.HTML:
        fields["parse_mode"] = "HTML"
    reply_to = whole({"id": _number(parcel.reply_to)}, "id")
    if reply_to is not None:
        # The message may be gone by now; the answer is worth sending all the same.
        fields["reply_parameters"] = {"message_id": reply_to, "allow_sending_without_reply": True}
    return fields


def _where(conversation: ConversationKey) -> dict[str, object]:
    channel, _, business = conversation.channel.partition("@")
    chat_id = _number(channel)
    if chat_id is None:
        raise Undeliverable("this conversation is no chat of Telegram")
    fields: dict[str, object] = {"chat_id": chat_id}
    if business:
        fields["business_connection_id"] = business
    thread = conversation.thread
    if thread is not None and thread.startswith(DIRECT_TOPIC):
        fields["direct_messages_topic_id"] = _number(thread.removeprefix(DIRECT_TOPIC))
    elif thread is not None:
        fields["message_thread_id"] = _number(thread)
    return fields


def _number(text: str | None) -> int | None:
    """An id as Telegram wants it."""
    digits = (text or "").removeprefix("-")
    return int(text or "") if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
