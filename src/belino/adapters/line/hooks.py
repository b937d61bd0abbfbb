"""Hooks: webhook calls, whose signature over the raw bytes is checked first, and the reply tokens that they bring."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from belino.adapters.line.authors import channel_of
from belino.domain.ports import Clock
from belino.net.json_fields import Raw, table, tables, unix_time, whole, words, yes
from belino.net.rest import HookSignature, Latest

SIGNATURE = HookSignature(header="x-line-signature", spelled="base64")
EARLY_OR_LATE = timedelta(minutes=5)
REDELIVERED_AT_MOST = timedelta(days=3)
"""LINE delivers again what was not acknowledged, and does not say for how long."""
TOKEN_SECONDS = 50.0
"""LINE takes a reply within a minute: https://developers.line.biz/en/reference/messaging-api/#send-reply-message"""
MOST_TOKENS = 2_000


def events_of(payload: Raw) -> tuple[Raw, ...]:
    """The events of a call; none where LINE only checks that we answer."""
    return tables(payload, "events")


def is_fresh(event: Raw, now: datetime) -> bool:
    """Whether an event is as recent as a delivery is: a call carries no time but that of its events."""
    if whole(event, "timestamp") is None:
        return False
    age = now - sent_at(event, now)
    most = REDELIVERED_AT_MOST if is_redelivered(event) else EARLY_OR_LATE
    return -EARLY_OR_LATE <= age <= most


def is_redelivered(event: Raw) -> bool:
    """Whether LINE delivers it again."""
    return yes(table(event, "deliveryContext"), "isRedelivery")


def sent_at(event: Raw, otherwise: datetime) -> datetime:
    """The time of an event, which LINE gives in milliseconds."""
    milliseconds = whole(event, "timestamp")
    if milliseconds is None or milliseconds < 0:
        return otherwise
    seconds, rest = divmod(milliseconds, 1_000)
    return unix_time({"at": seconds}, "at") + timedelta(milliseconds=rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyToken:
    """A token that one call may reply with, free of charge."""

    token: str = field(repr=False)
    channel: str
    message_id: str
    until: float


class ReplyTokens:
    """The reply tokens that are still valid, and the quote tokens of recent messages; kept in memory alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: list[ReplyToken] = []
        self._quotes: Latest[tuple[str, str], str] = Latest(MOST_TOKENS)

    def note(self, event: Raw) -> None:
        """Keep the tokens of an event; those of one that is delivered again may be used up or too old."""
        channel, message = channel_of(table(event, "source")), table(event, "message")
        self.note_quote(channel, words(message, "id"), words(message, "quoteToken"))
        token = words(event, "replyToken")
        if not token or is_redelivered(event):
            return
        until = self._clock.monotonic() + TOKEN_SECONDS
        self.put_back(ReplyToken(token=token, channel=channel, message_id=words(message, "id"), until=until))

    def note_quote(self, channel: str, message_id: str, token: str) -> None:
        """Keep the token that a message is quoted by; it stays valid."""
        if message_id and token:
            self._quotes.keep((channel, message_id), token)

    def quote(self, channel: str, message_id: str | None) -> str:
        """The token to quote a message by; empty if it is not known."""
        return self._quotes.get((channel, message_id or ""), "")

    def take(self, channel: str, message_id: str | None) -> ReplyToken | None:
        """A valid token of this channel: that of the message which is answered, else the oldest."""
        now = self._clock.monotonic()
        self._open = [each for each in self._open if each.until > now][-MOST_TOKENS:]
        here = [each for each in self._open if each.channel == channel]
        found = next((each for each in here if each.message_id == message_id), next(iter(here), None))
        if found is not None:
            self._open.remove(found)
        return found

    def put_back(self, token: ReplyToken) -> None:
        """Keep a token that was not used after all."""
        self._open.append(token)
