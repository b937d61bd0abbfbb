"""Streams: an answer shown while it is written, by Slack's own API, in threads of direct messages.

In a channel Slack shows a growing message to one person only, so drafts there are messages that are edited.
https://docs.slack.dev/reference/methods/chat.startStream
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeVar

from belino.adapters.slack.authors import moment, stamp
from belino.adapters.slack.client import SlackClient, SlackRefused
from belino.adapters.slack.send import metadata
from belino.domain.message import ConversationKey
from belino.domain.reply import UNFINISHED, Parcel, ParcelKind, Receipt

T = TypeVar("T")
START, APPEND, STOP = "chat.startStream", "chat.appendStream", "chat.stopStream"
MARKDOWN_CHARS = 12_000
"""The most that one call may add."""
PEOPLE_KEPT, STREAMS_KEPT = 1_000, 1_000
REFUSED_SECONDS = 3_600.0


class SlackStreams:
    """The streams of one app. What was streamed is kept in memory alone: after a restart the answer ends the stream."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._people: OrderedDict[str, Mapping[str, str]] = OrderedDict()
        """The recipient in each channel of direct messages."""
        self._shown: OrderedDict[str, str] = OrderedDict()
        """The text of each stream so far, by its ts."""
        self._refused_until = 0.0

    def met(self, channel: str, user: str, team: str) -> None:
        """Note the person of direct messages."""
        if channel.startswith("D") and user and team:
            self._people[channel] = {"recipient_user_id": user, "recipient_team_id": team}
            self._people.move_to_end(channel)
            _forget(self._people, PEOPLE_KEPT)

    async def start(self, parcel: Parcel) -> Receipt | None:
        """Begin a stream with a draft; None if Slack streams nothing here."""
        where, text = parcel.conversation, _streamed(parcel)
        recipient = self._people.get(where.channel)
        is_refused = self._client.clock.monotonic() < self._refused_until
        if parcel.kind is not ParcelKind.DRAFT or not may_stream(where) or recipient is None or is_refused:
            return None
        if not 0 < len(text) <= MARKDOWN_CHARS:
            return None
        fields = {"channel": where.channel, "thread_ts": where.thread, **recipient, "markdown_text": text}
        try:
            told = await self._client.call(START, fields)
        except SlackRefused:
            self._refused_until = self._client.clock.monotonic() + REFUSED_SECONDS
            return None
        ts = stamp(told, "ts")
        self._shown[ts] = text
        _forget(self._shown, STREAMS_KEPT)
        # Treated as sent: retried because its id is missing, it would appear twice.
        return Receipt(message_id=ts or f"untold-{parcel.key}", sent=moment(ts) or self._client.now())

    async def append(self, ts: str, parcel: Parcel) -> Receipt | None:
        """Add what a draft has more than before; None if the message is no stream."""
        shown, text = self._shown.get(ts), _streamed(parcel)
        if shown is None:
            return None
        rest = text.removeprefix(shown)[:MARKDOWN_CHARS] if text.startswith(shown) else ""
        if rest:  # a text that began differently is corrected by the answer
            fields = {"channel": parcel.conversation.channel, "ts": ts, "markdown_text": rest}
            try:
                await self._client.call(APPEND, fields)
            except SlackRefused:  # Slack ends a stream by itself after some minutes
                del self._shown[ts]
                return None
            self._shown[ts] = shown + rest
        return Receipt(message_id=ts, sent=self._client.now())

    async def stop(self, parcel: Parcel) -> None:
        """End the stream that the answer replaces, if it is one: only then can it be edited.

        Its key is no parcel's, so that it is neither taken for the answer nor for a later draft.
        """
        ts = parcel.edits or ""
        if parcel.kind is not ParcelKind.EDIT or not (ts in self._shown or may_stream(parcel.conversation)):
            return
        self._shown.pop(ts, None)
        fields = {"channel": parcel.conversation.channel, "ts": ts, "metadata": metadata(f"stream-{ts}")}
        try:
            await self._client.call(STOP, fields)
        except SlackRefused:
            return  # it was none, or has ended


def may_stream(where: ConversationKey) -> bool:
    """Whether Slack streams messages there to all who are in it."""
    return where.thread is not None and where.channel.startswith("D")


def _streamed(parcel: Parcel) -> str:
    return parcel.rich.removesuffix(UNFINISHED)


def _forget(kept: OrderedDict[str, T], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
