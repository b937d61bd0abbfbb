"""Parcels out: each one visible call, and what Slack made of it."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from belino.adapters.slack.calls import Calls, Refused
from belino.adapters.slack.limits import EDIT_CHARS
from belino.adapters.slack.mrkdwn import escaped
from belino.adapters.slack.raw import moment, stamp
from belino.adapters.slack.refusals import has_nothing_to_edit, refusal
from belino.adapters.slack.upload import share
from belino.domain.errors import AdapterError, NothingToEdit
from belino.domain.limits import Markup
from belino.domain.reply import Parcel, ParcelKind, Receipt
from belino.net.raw import Raw, table, words

KEY_EVENT = "belino_parcel"
"""The type of the metadata that carries a parcel's key; people do not see it."""


async def send(calls: Calls, parcel: Parcel) -> Receipt:
    """Make one message, several files in one, or a change."""
    try:
        if parcel.kind is ParcelKind.EDIT:
            return await _finish(calls, parcel.edits or "", parcel)
        if parcel.files:
            return await share(calls, parcel)
        return await _post(calls, parcel)
    except Refused as error:
        raise refusal(error, parcel) from error


async def edit(calls: Calls, ts: str, parcel: Parcel) -> Receipt:
    """Change a message's text."""
    if len(str(_text(parcel)["text"])) > EDIT_CHARS:
        raise NothingToEdit(f"Slack changes messages to {EDIT_CHARS} characters at most")
    fields = {"channel": parcel.conversation.channel, "ts": ts, **_text(parcel)}
    try:
        told = await calls.call("chat.update", fields)
    except Refused as error:
        if has_nothing_to_edit(error):
            raise NothingToEdit("the message that was to be changed is gone, or can no longer be") from error
        raise refusal(error, parcel) from error
    return Receipt(message_id=stamp(told, "ts") or ts, sent=calls.now())


def key_of(message: Raw) -> str:
    """The parcel's key that a message of ours carries."""
    metadata = table(message, "metadata")
    return words(table(metadata, "event_payload"), "key") if words(metadata, "event_type") == KEY_EVENT else ""


async def _finish(calls: Calls, ts: str, parcel: Parcel) -> Receipt:
    """Make an answer of a draft. One that cannot become it is taken away: the answer will be a message of its own."""
    try:
        return await edit(calls, ts, parcel)
    except NothingToEdit:
        with suppress(AdapterError):  # a draft that stays is seen, and the answer below it is whole
            await calls.call("chat.delete", {"channel": parcel.conversation.channel, "ts": ts})
        raise


async def _post(calls: Calls, parcel: Parcel) -> Receipt:
    fields = {
        "channel": parcel.conversation.channel,
        **_text(parcel),
        "thread_ts": parcel.conversation.thread,
        "unfurl_links": False,
        "unfurl_media": False,
        "metadata": {"event_type": KEY_EVENT, "event_payload": {"key": parcel.key}},
    }
    told = await calls.call("chat.postMessage", fields)
    ts = stamp(told, "ts") or stamp(table(told, "message"), "ts")
    # Taken for certain: sent again because it was not said under which id, it would be seen twice.
    return Receipt(message_id=ts or f"untold-{parcel.key}", sent=_when(ts, calls))


def _text(parcel: Parcel) -> Mapping[str, object]:
    if parcel.markup is Markup.MRKDWN:
        return {"text": parcel.text, "mrkdwn": True}
    return {"text": escaped(parcel.text), "mrkdwn": False}


def _when(ts: str, calls: Calls) -> datetime:
    return moment(ts) or calls.now()
