"""History: earlier messages, the cursor of the newest ones, and catching up after a gap."""

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from belino.adapters.slack.authors import moment, stamp
from belino.adapters.slack.client import SlackClient, SlackRefused
from belino.adapters.slack.send import comment_of, key_of, may_stream
from belino.domain.errors import BelinoError, RateLimited
from belino.domain.message import ConversationKey
from belino.domain.places import MOST_UNHEARD
from belino.domain.ports import Clock
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt
from belino.net.json_fields import Raw, count, from_json, table, tables, words
from belino.net.rest import RateLimits

log = logging.getLogger(__name__)

MOST_CHANNELS = 128
MOST_THREADS = 32
OLDEST = timedelta(hours=24)
"""Older missed messages are context and are not answered."""

HISTORY, REPLIES = "conversations.history", "conversations.replies"
MOST_MESSAGES = 200
MOST_AT_ONCE = 999
"""The most messages that Slack returns in one answer."""
SKEW = timedelta(minutes=5)
"""The most that Slack's clock may be behind ours."""

_LINK = re.compile(r"<[^<>|]*\|([^<>]*)>")
_EMOJI = re.compile(r":[a-z0-9_+'-]+:")
_NO_SUCH_THREAD = frozenset({"thread_not_found", "message_not_found"})

PAUSE_SECONDS = 1.5
"""Interval between two calls: forty a minute, of the fifty that Slack accepts."""
AGAIN_SECONDS = 60.0
MOST_PAGES = 5

Take = Callable[[str, Sequence[Raw]], Awaitable[None]]
"""(place, messages) → committed; with the last of them, that the place is caught up."""


@dataclass(slots=True, kw_only=True)
class SlackCursor:
    """The newest message received in each channel and thread; beyond the limit the most recent are kept."""

    channels: dict[str, str] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)
    """By channel and first message, separated by a space."""
    missed: dict[str, str] = field(default_factory=dict)
    """Channels and threads with a gap, and its start; stored, so that a restart continues."""
    reached: str = ""
    """Until then nothing is missing in channels that were never heard from; empty at the first start."""

    @classmethod
    def read(cls, cursor: str | None) -> "SlackCursor":
        raw = from_json(cursor or "")
        stamps = {key: _stamps(raw, key) for key in ("channels", "threads", "missed")}
        return cls(**stamps, reached=stamp(raw, "reached"))

    def write(self) -> str:
        told: dict[str, object] = {"channels": self.channels, "threads": self.threads}
        told |= {"missed": self.missed} if self.missed else {}
        return json.dumps(told | ({"reached": self.reached} if self.reached else {}), separators=(",", ":"))

    def reach(self, now: datetime) -> None:
        """Note that nothing is missing until now, besides what is noted as missed."""
        self.reached = f"{(now - SKEW).timestamp():.6f}"

    def miss_unheard(self, places: Mapping[str, float]) -> int:
        """Note channels that were never heard from, the last changed as the first to fetch; returns how many are left.

        They come after those that were heard.
        """
        since = self.reached or max(self.channels.values(), default="", key=float)
        if not since:
            return 0
        unheard = sorted((own for own in places if own not in self.channels), key=lambda own: places[own])
        asked = unheard[-MOST_UNHEARD:]
        self.missed = {own: since for own in asked if own not in self.missed} | self.missed
        return len(unheard) - len(asked)

    def note(self, conversation: ConversationKey, ts: str) -> None:
        """Note a received message."""
        if moment(ts) is None:
            return
        thread = conversation.thread
        if thread is None or thread == ts:
            _move(self.channels, conversation.channel, ts, MOST_CHANNELS)
        else:
            _move(self.threads, f"{conversation.channel} {thread}", ts, MOST_THREADS)

    def miss(self, now: datetime, *, within: timedelta = OLDEST, most: int = MOST_CHANNELS + MOST_THREADS) -> None:
        """Note a gap: messages since then in recently active places are to be fetched.

        In a long gap a channel that was silent for more than a day may have become active, so `within` a day means
        every channel.
        """
        places = sorted((*self.channels.items(), *self.threads.items()), key=lambda heard: float(heard[1]))
        for place, ts in places[-most:]:
            heard = moment(ts)
            if heard is not None and (now - heard < within or (within >= OLDEST and place in self.channels)):
                self.missed.setdefault(place, ts)

    def caught_up(self, place: str) -> None:
        self.missed.pop(place, None)


def since(ts: str, now: datetime) -> str:
    """The start of the fetch: no further back than is worth answering."""
    earliest = f"{(now - OLDEST).timestamp():.6f}"
    return max(ts, earliest, key=float)


def _stamps(raw: Raw, key: str) -> dict[str, str]:
    kept = table(raw, key)
    return {place: ts for place in kept if (ts := stamp(kept, place))}


def _move(kept: dict[str, str], place: str, ts: str, most: int) -> None:
    newest = max(kept.pop(place, ts), ts, key=float)
    while len(kept) >= most:
        kept.pop(next(iter(kept)))
    kept[place] = newest


class SlackHistory:
    """Fetches messages at Slack's pace: some apps are limited to fifteen messages a minute."""

    def __init__(self, client: SlackClient, limits: RateLimits) -> None:
        self._client = client
        self._limits = limits

    async def channel(self, channel: str, *, latest: str | None = None, limit: int = MOST_MESSAGES) -> Sequence[Raw]:
        """The newest messages, oldest first."""
        return _in_order(
            await self._ask(
                HISTORY, {"channel": channel, "latest": latest, "limit": str(max(1, min(limit, MOST_MESSAGES)))}
            )
        )

    async def thread(self, channel: str, thread: str) -> Sequence[Raw]:
        """The first message and the replies, oldest first; nothing if there is no such thread."""
        try:
            told = await self._ask(REPLIES, {"channel": channel, "ts": thread, "limit": str(MOST_AT_ONCE)})
        except SlackRefused as error:
            if error.error in _NO_SUCH_THREAD:
                return ()
            raise
        return _in_order(told)

    async def since(
        self, channel: str, thread: str, oldest: str, cursor: str | None = None
    ) -> tuple[Sequence[Raw], str | None]:
        """A page of messages after `oldest` in a channel, or in one of its threads, and the cursor of the next page."""
        fields: dict[str, object] = {"channel": channel, "oldest": oldest, "cursor": cursor}
        if thread:
            told = await self._ask(REPLIES, {**fields, "ts": thread, "limit": str(MOST_AT_ONCE)})
        else:
            told = await self._ask(HISTORY, {**fields, "limit": str(MOST_MESSAGES)})
        after = [message for message in _in_order(told) if float(stamp(message, "ts")) > float(oldest)]
        return after, words(table(told, "response_metadata"), "next_cursor") or None

    async def find(self, parcel: Parcel, own_user: str, own_bot: str) -> Receipt | None:
        """The message that a parcel became: by its key; files carry none, and are recognised by name and size."""
        fields: dict[str, object] = {
            "channel": parcel.conversation.channel,
            # Only messages since then: a thread is listed from its beginning, and one call may not reach its end.
            "oldest": None if parcel.created is None else f"{(parcel.created - SKEW).timestamp():.6f}",
            "include_all_metadata": "true",
            "limit": str(MOST_AT_ONCE),
        }
        if (thread := parcel.conversation.thread) is None:
            told = await self._ask(HISTORY, fields)
        else:
            told = await self._ask(REPLIES, {**fields, "ts": thread})
        for message in reversed(_in_order(told)):
            ours = words(message, "user") == own_user or bool(own_bot and words(message, "bot_id") == own_bot)
            if ours and _is_parcel(message, parcel):
                ts = stamp(message, "ts")
                return Receipt(message_id=ts, sent=moment(ts) or self._client.now())
        return None

    async def _ask(self, method: str, fields: dict[str, object]) -> Raw:
        return await self._limits.call(method, lambda: self._client.call(method, fields))


def in_conversation(message: Raw, conversation: ConversationKey) -> bool:
    """Whether a message of the answer belongs to the thread: its first message, or a reply."""
    ts, thread = stamp(message, "ts"), stamp(message, "thread_ts")
    return conversation.thread in (ts, thread)


def _is_parcel(message: Raw, parcel: Parcel) -> bool:
    if not parcel.files:
        # A stream has no key before it ends; every other message of ours has one, or files.
        is_stream = parcel.kind is ParcelKind.DRAFT and may_stream(parcel.conversation)
        return (key_of(message) or (parcel.key if is_stream and not message.get("files") else "")) == parcel.key
    kept, wanted = tables(message, "files"), parcel.files
    if len(kept) != len(wanted) or _as_said(words(message, "text")) != _as_said(comment_of(parcel)):
        return False
    return all(_is_file(one, other) for one, other in zip(kept, wanted, strict=True))


def _is_file(kept: Raw, sent: OutgoingFile) -> bool:
    """Slack may change a name, never a title, and strips locations from pictures."""
    size = count(kept, "size") or 0
    fits = 0 < size <= sent.size if sent.mime.startswith("image/") else size == sent.size
    return fits and sent.name in (words(kept, "title"), words(kept, "name"))


def _as_said(text: str) -> str:
    """The letters of a text: Slack turns addresses into links, and emoji into names."""
    text = _EMOJI.sub("", _LINK.sub(r"\1", text))
    return "".join(character for character in text if character.isalnum())


def _in_order(told: Raw) -> list[Raw]:
    messages = [message for message in tables(told, "messages") if stamp(message, "ts")]
    return sorted(messages, key=lambda message: float(stamp(message, "ts")))


class CatchUp:
    """Fetches what the cursor notes as missed; the channel with the latest message first."""

    def __init__(self, history: SlackHistory, cursor: SlackCursor, clock: Clock, take: Take) -> None:
        self._history = history
        self._cursor = cursor
        self._clock = clock
        self._take = take

    async def run(self) -> None:
        """Run until nothing is missing; temporary failures are retried later."""
        while self._cursor.missed:
            place, ts = next(reversed(self._cursor.missed.items()))
            try:
                wait = await self._work_off(place, ts)
            except BelinoError as error:
                self._cursor.missed[place] = ts
                log.warning("what was missed cannot be had now: %s", type(error).__name__)
                wait = error.retry_after if isinstance(error, RateLimited) else AGAIN_SECONDS
            if self._cursor.missed:
                await self._clock.sleep(max(wait, PAUSE_SECONDS))

    async def _work_off(self, place: str, ts: str) -> float:
        try:
            await self._fill(place, since(ts, self._clock.now()))
        except SlackRefused as error:
            log.info("what was missed in one place cannot be had: %s", error.error)
        self._cursor.caught_up(place)
        return PAUSE_SECONDS

    async def _fill(self, place: str, oldest: str) -> None:
        channel, _, thread = place.partition(" ")
        found: dict[str, Raw] = {}
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page, cursor = await self._page(channel, thread, oldest, cursor)
            found |= {stamp(message, "ts"): message for message in page}
            if cursor is None:
                break
            await self._clock.sleep(PAUSE_SECONDS)
        for message in found.values() if not thread else ():
            self._note_thread(channel, message, oldest)
        await self._take(place, [found[ts] for ts in sorted(found, key=float)])

    async def _page(
        self, channel: str, thread: str, oldest: str, cursor: str | None
    ) -> tuple[Sequence[Raw], str | None]:
        """The next page, however long it takes: an app limited to one a minute would never finish otherwise."""
        while True:
            try:
                return await self._history.since(channel, thread, oldest, cursor)
            except RateLimited as error:
                if cursor is None:
                    raise
                await self._clock.sleep(max(error.retry_after, PAUSE_SECONDS))

    def _note_thread(self, channel: str, message: Raw, oldest: str) -> None:
        """Note a thread that began in the gap: the channel's history holds only its first message."""
        latest, ts = stamp(message, "latest_reply"), stamp(message, "ts")
        if latest and float(latest) > float(oldest) and f"{channel} {ts}" not in self._cursor.missed:
            self._cursor.missed = {f"{channel} {ts}": ts, **self._cursor.missed}
