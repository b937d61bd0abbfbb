"""Parcels out: each one visible call, and what Slack made of it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from belino.adapters.slack.calls import Calls, Refused
from belino.adapters.slack.limits import EDIT_CHARS
from belino.adapters.slack.mrkdwn import escaped
from belino.adapters.slack.raw import Raw, moment, stamp, table, words
from belino.adapters.slack.refusals import has_nothing_to_edit, refusal
from belino.adapters.slack.upload import share
from belino.domain.errors import AdapterError
from belino.domain.limits import Markup
from belino.domain.reply import Parcel, ParcelKind, Receipt

KEY_EVENT = "belino_parcel"
"""The type of the metadata that carries a parcel's key; people do not see it."""


async def send(calls: Calls, parcel: Parcel, *, thread: str | None) -> Receipt:
    """Make one message, several files in one, or a change."""
    if parcel.kind is ParcelKind.EDIT and parcel.edits:
        try:
            return await edit(calls, parcel.edits, parcel)
        except Refused as error:
            if not has_nothing_to_edit(error):
                raise refusal(error, parcel) from error
        # Said anew: the text is worth more than its place.
        parcel = replace(parcel, kind=ParcelKind.TEXT, edits=None)
    try:
        if parcel.files:
            return await share(calls, parcel, thread=thread)
        return await _post(calls, parcel, thread)
    except Refused as error:
        raise refusal(error, parcel) from error


async def edit(calls: Calls, ts: str, parcel: Parcel) -> Receipt:
    """Change a message's text; Refused if it cannot be."""
    fields = {"channel": parcel.conversation.channel, "ts": ts, **_text(parcel)}
    told = await calls.call("chat.update", fields)
    return Receipt(message_id=stamp(told, "ts") or ts, sent=calls.now())


async def replace_long(calls: Calls, parcel: Parcel, *, thread: str | None) -> Receipt:
    """A final text longer than a change may be: said as a message of its own, and the draft taken away."""
    receipt = await send(calls, replace(parcel, kind=ParcelKind.TEXT, edits=None), thread=thread)
    with suppress(AdapterError):  # a draft that stays is seen, and the answer below it is whole
        await calls.call("chat.delete", {"channel": parcel.conversation.channel, "ts": parcel.edits})
    return receipt


def is_too_long_to_edit(parcel: Parcel) -> bool:
    return len(str(_text(parcel)["text"])) > EDIT_CHARS


def key_of(message: Raw) -> str:
    """The parcel's key that a message of ours carries."""
    metadata = table(message, "metadata")
    return words(table(metadata, "event_payload"), "key") if words(metadata, "event_type") == KEY_EVENT else ""


async def _post(calls: Calls, parcel: Parcel, thread: str | None) -> Receipt:
    fields = {
        "channel": parcel.conversation.channel,
        **_text(parcel),
        "thread_ts": thread,
        "unfurl_links": False,
        "unfurl_media": False,
        "metadata": {"event_type": KEY_EVENT, "event_payload": {"key": parcel.key}},
    }
    told = await calls.call("chat.postMessage", fields)
    ts = stamp(told, "ts") or stamp(table(told, "message"), "ts")
    if not ts:
        raise AdapterError("Slack took the message and did not say under which id")
    return Receipt(message_id=ts, sent=_when(ts, calls))


def _text(parcel: Parcel) -> Mapping[str, object]:
    if parcel.markup is Markup.MRKDWN:
        return {"text": parcel.text, "mrkdwn": True}
    return {"text": escaped(parcel.text), "mrkdwn": False}


def _when(ts: str, calls: Calls) -> datetime:
    return moment(ts) or calls.now()
