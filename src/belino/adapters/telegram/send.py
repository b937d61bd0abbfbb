"""Parcels out: each one visible call, and what Telegram made of it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from belino.adapters.telegram.attach import Call, as_documents, files_call, kept_as
from belino.adapters.telegram.calls import Calls, NoSuchPage, NotFound, Refused
from belino.adapters.telegram.people import DIRECT_TOPIC
from belino.adapters.telegram.raw import identity, moment
from belino.adapters.telegram.refusals import has_nothing_to_edit, is_unchanged, misses_question, refusal, refuses_photo
from belino.domain.errors import NothingToEdit, Unanswered, Undeliverable
from belino.domain.limits import Markup
from belino.domain.message import ConversationKey
from belino.domain.reply import Parcel, ParcelKind, Receipt
from belino.net.form import Form
from belino.net.raw import Raw, as_table, whole

CALLS_AT_MOST = 4
"""A group that moved, a picture that is none and a question that is gone are each answered with another call, once."""


async def send(calls: Calls, parcel: Parcel) -> Receipt:
    """Make one message, album or change. A group that became a supergroup is followed to its new id."""
    if parcel.kind is ParcelKind.EDIT:
        return await edit(calls, parcel.edits or "", parcel)
    moved: int | None = None
    for _ in range(CALLS_AT_MOST):
        call = call_of(parcel) if moved is None else _to(call_of(parcel), moved)
        try:
            return _moved(await _made(calls, call, parcel.key), moved)
        except Refused as error:
            if error.migrate_to is not None and moved is None:
                moved = error.migrate_to
            elif refuses_photo(error, parcel):
                parcel = replace(parcel, files=as_documents(parcel.files))
            elif misses_question(error, parcel):
                parcel = replace(parcel, reply_to=None)
            else:
                raise refusal(error, parcel) from error
    raise Undeliverable("Telegram refused it in every form")


async def edit(calls: Calls, message_id: str, parcel: Parcel) -> Receipt:
    """Change a message's text."""
    number, _, moved = message_id.partition("@")
    fields = {name: value for name, value in where_of(parcel.conversation).items() if name in _EDITED_BY}
    fields |= {"message_id": _number(number), **_text(parcel)}
    if moved:
        fields["chat_id"] = _number(moved)
    try:
        message = as_table(await calls.call("editMessageText", fields))
    except (NoSuchPage, NotFound) as error:  # with the same token the message was sent
        raise NothingToEdit("this server changes no messages") from error
    except Refused as error:
        if is_unchanged(error):
            return Receipt(message_id=message_id, sent=calls.now())
        if has_nothing_to_edit(error):
            raise NothingToEdit("the message that was to be changed is gone") from error
        raise refusal(error, parcel) from error
    return Receipt(message_id=message_id, sent=_when(message, "edit_date", calls))


_EDITED_BY = frozenset({"chat_id", "business_connection_id"})


def call_of(parcel: Parcel) -> Call:
    """The call that a parcel is."""
    where = {**where_of(parcel.conversation), **_reply(parcel)}
    if parcel.files:
        return files_call(where, parcel.files, parcel.markup)
    return Call(method="sendMessage", fields={**where, **_text(parcel)})


async def _made(calls: Calls, call: Call, key: str) -> Receipt:
    if call.files:
        result = await calls.upload(call.method, Form(call.fields, call.files))
    else:
        result = await calls.call(call.method, call.fields)
    messages = [as_table(message) for message in (result if isinstance(result, list) else [result])]
    ids = [identity(message, "message_id") for message in messages]
    # A film for a large chat has the number 0: Telegram shows it later, under a number that it does not tell.
    ids = [f"scheduled-{key}-{number}" if own == "0" else own for number, own in enumerate(ids)]
    if not ids or not all(ids):
        raise Unanswered("Telegram took the message and did not say under which id")
    return Receipt(
        message_id=ids[0],
        sent=_when(messages[0], "date", calls),
        also=tuple(ids[1:]),
        stored=tuple(kept_as(message) for message in messages) if call.files else None,
    )


def _when(message: Raw, key: str, calls: Calls) -> datetime:
    return moment(message, key) if whole(message, key) else calls.now()


def _to(call: Call, chat_id: int) -> Call:
    # A message of the old group has another id in the new one: the answer goes without its reply.
    kept = {name: value for name, value in call.fields.items() if name != "reply_parameters"}
    return replace(call, fields={**kept, "chat_id": chat_id})


def _moved(receipt: Receipt, chat_id: int | None) -> Receipt:
    """The new group counts its messages anew: the bare number may be another message of the old one."""
    if chat_id is None:
        return receipt
    also = tuple(f"{number}@{chat_id}" for number in receipt.also)
    return replace(receipt, message_id=f"{receipt.message_id}@{chat_id}", also=also)


def _text(parcel: Parcel) -> Mapping[str, object]:
    return {"text": parcel.text} | ({"parse_mode": "HTML"} if parcel.markup is Markup.HTML else {})


def _reply(parcel: Parcel) -> Mapping[str, object]:
    reply_to = _number(parcel.reply_to)
    if reply_to is None:
        return {}
    # The message may be gone by now; the answer is worth sending all the same.
    return {"reply_parameters": {"message_id": reply_to, "allow_sending_without_reply": True}}


def where_of(conversation: ConversationKey) -> dict[str, object]:
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
