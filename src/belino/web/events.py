"""Event fan-out: each notice is encoded once and queued for the sockets that follow its conversation.

Conversations that a page does not show are summarized in an overview: their changes, coalesced, with the last message
of each.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from belino.delivery.send import ParcelNews
from belino.domain.choice import in_short
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.stored import GrantKind, StoredMessage
from belino.gateway.events import EventBus, Notice, NoticeKind, ReadingNotice, TurnNotice
from belino.storage.store import Store
from belino.web.auth import Visitor
from belino.web.responses import encode
from belino.web.wire import Json, message_json, reading_event_json

log = logging.getLogger(__name__)

QUEUED_FRAMES = 1_000
QUEUED_CHARS = 16 * 1024 * 1024

LOST = '{"type":"event","event":"lost"}'
OWNER_NEWS = '{"type":"event","event":"owner"}'
"""For people's pages: accounts, notices or requests changed."""

OVERVIEW_SECONDS = 1.0
# Sending an overview costs per page: with many pages it is sent less often, so that the CPU share stays the same.
SECONDS_PER_PAGE = 0.02
SNIPPET_CHARS = 200
# More changes than this at once are not listed: pages reload their list.
MOST_CHANGES = 200


class Subscription:
    """The subscriptions of one socket, and its queued frames."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._frames: deque[str] = deque()
        self._chars = 0
        self._filled = asyncio.Event()
        self.followed: frozenset[ConversationKey] | None = None
        """None: every conversation the visitor may see."""

    @property
    def channels(self) -> Collection[ConversationKey | None]:
        """The channels with subscriptions; None stands for all."""
        if self.followed is not None:
            return {conversation.whole_channel for conversation in self.followed}
        own = self._visitor.grant.conversation
        return {own.whole_channel if own is not None else None}

    @property
    def is_persons(self) -> bool:
        """Whether its visitor sees everything, unlike a channel's token."""
        return self._visitor.grant.kind is not GrantKind.CHANNEL

    @property
    def has_overview(self) -> bool:
        """Whether it gets the overview of other conversations: it is a person's, and named the ones it follows."""
        return self.followed is not None and self.is_persons

    def follows(self, conversation: ConversationKey) -> bool:
        """Whether it receives the events of a conversation."""
        return self._visitor.may_see(conversation) and (self.followed is None or conversation in self.followed)

    def put(self, frame: str) -> None:
        """Queue a frame; a reader too far behind loses its queue and is asked to catch up from history."""
        if len(self._frames) >= QUEUED_FRAMES or self._chars > QUEUED_CHARS:
            self._frames.clear()
            self._frames.append(LOST)
            self._chars = 0
        self._frames.append(frame)
        self._chars += len(frame)
        self._filled.set()

    async def next(self) -> str:
        """The oldest queued frame, waiting for one."""
        while not self._frames:
            self._filled.clear()
            await self._filled.wait()
        frame = self._frames.popleft()
        self._chars = max(0, self._chars - len(frame))
        return frame


class Events:
    """Index of open sockets by channel, and the two tasks that feed them."""

    def __init__(self, notices: EventBus, store: Store, clock: Clock) -> None:
        self._notices = notices
        self._store = store
        self._by_channel: dict[ConversationKey | None, set[Subscription]] = {}
        self._overviews: set[Subscription] = set()
        self._overview = Overview(store, clock, pages=lambda: len(self._overviews))

    async def run(self) -> None:
        """Feed the sockets until cancelled."""
        async with self._notices.subscribe(self._is_followed) as notices, asyncio.TaskGroup() as group:
            with self._notices.listening(self._listen):
                group.create_task(self._summarize())
                async for notice in notices:
                    await self._forward(notice)

    @contextmanager
    def subscribe(self, visitor: Visitor) -> Iterator[Subscription]:
        """Queue everything the visitor may see for one socket, until the block is left."""
        subscription = Subscription(visitor)
        self._add(subscription)
        try:
            yield subscription
        finally:
            self._remove(subscription)

    def follow(self, subscription: Subscription, conversations: Collection[ConversationKey]) -> None:
        """Limit a socket to these conversations; of the others a person's page gets the overview."""
        self._remove(subscription)
        subscription.followed = frozenset(conversations)
        self._add(subscription)

    def _add(self, subscription: Subscription) -> None:
        for channel in subscription.channels:
            self._by_channel.setdefault(channel, set()).add(subscription)
        if subscription.has_overview:
            self._overviews.add(subscription)

    def _remove(self, subscription: Subscription) -> None:
        for channel in subscription.channels:
            there = self._by_channel.get(channel, set())
            there.discard(subscription)
            if not there:
                self._by_channel.pop(channel, None)
        self._overviews.discard(subscription)

    def _is_followed(self, conversation: ConversationKey | None) -> bool:
        """By channel: an edit may name the channel of a message in one of its threads."""
        if conversation is None:
            return bool(self._by_channel or self._overviews)
        return None in self._by_channel or conversation.whole_channel in self._by_channel

    def _listen(self, notice: Notice) -> None:
        if self._overviews:
            self._overview.note(notice)

    async def _forward(self, notice: Notice) -> None:
        if notice.kind is NoticeKind.OWNER:
            self._put_all(OWNER_NEWS, people_only=True)
            return
        if notice.conversation is None:
            self._put_all(LOST)
            return
        there = (self._by_channel.get(key, set()) for key in (None, notice.conversation.whole_channel))
        followers = [each for found in there for each in found if each.follows(notice.conversation)]
        if not followers:
            return
        try:
            frame = encode(await self._event(notice)).decode()
        except Exception as error:  # noqa: BLE001 - sockets catch up from history; the others still need their events
            log.warning("an event could not be made: %s", type(error).__name__)
            frame = LOST
        for subscription in followers:
            subscription.put(frame)

    async def _event(self, notice: Notice) -> Json:
        event: Json = {"type": "event", "event": notice.kind, "conversation": str(notice.conversation)}
        match notice.payload:
            case StoredMessage() as message:
                event["message"] = await message_json(self._store, message)
            case TurnNotice() as turn:
                event |= {"turn": turn.turn, "state": turn.state, "text": turn.text, "at": turn.at}
            case ParcelNews() as parcel:
                event |= {"key": parcel.key, "state": parcel.state, "reason": parcel.reason}
            case ReadingNotice() as reading:
                event |= reading_event_json(reading)
        return event

    async def _summarize(self) -> None:
        """Send the overview, once for all pages and rate-limited."""
        while True:
            await self._overview.settled()
            try:
                frame = encode(await self._overview.take()).decode()
            except Exception as error:  # noqa: BLE001 - as above
                log.warning("an overview could not be made: %s", type(error).__name__)
                frame = LOST
            for subscription in self._overviews:
                subscription.put(frame)

    def _put_all(self, frame: str, *, people_only: bool = False) -> None:
        for subscription in {each for there in self._by_channel.values() for each in there} | self._overviews:
            if subscription.is_persons or not people_only:
                subscription.put(frame)


@dataclass(slots=True)
class Change:
    """Changes in one conversation since the last overview."""

    said: bool = False
    answered: bool = False
    turns: dict[int, str] = field(default_factory=dict)
    """Latest state by turn, most recent last."""


class Overview:
    """Collects changes from notices, without reading anything until they are taken."""

    def __init__(self, store: Store, clock: Clock, pages: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._pages = pages
        self._changes: dict[ConversationKey, Change] = {}
        self._parcels: dict[str, ParcelNews] = {}
        self._changed = asyncio.Event()

    def note(self, notice: Notice) -> None:
        """Note a change; notes, draft pieces and readings are only for followers."""
        if notice.conversation is None:
            return
        match notice.payload:
            case TurnNotice() as turn:
                if turn.state in ("note", "writing"):
                    return
                turns = self._of(notice.conversation).turns
                turns.pop(turn.turn, None)
                turns[turn.turn] = turn.state
            case ParcelNews() as news:
                self._parcels[news.key] = news
            case ReadingNotice():
                return
            case payload:
                change = self._of(notice.conversation)
                change.said = True
                change.answered |= isinstance(payload, StoredMessage) and payload.author.is_agent
        self._changed.set()

    async def settled(self) -> None:
        """Wait for a change, and then briefly for further ones."""
        await self._changed.wait()
        await self._clock.sleep(max(OVERVIEW_SECONDS, SECONDS_PER_PAGE * self._pages()))

    async def take(self) -> Json:
        """The event with all changes since the last one."""
        changes, parcels = self._changes, self._parcels
        self._changes, self._parcels = {}, {}
        self._changed.clear()
        if len(changes) + len(parcels) > MOST_CHANGES:
            return {"type": "event", "event": "lost"}
        return {
            "type": "event",
            "event": "overview",
            "conversations": [await self._row(key, change) for key, change in changes.items()],
            "parcels": [_parcel_row(news) for news in parcels.values()],
        }

    def _of(self, conversation: ConversationKey) -> Change:
        return self._changes.setdefault(conversation, Change())

    async def _row(self, conversation: ConversationKey, change: Change) -> Json:
        found = await self._store.history(conversation, limit=1) if change.said else ()
        return {
            "conversation": str(conversation),
            **_last_row(found[0] if found else None),
            "answered": change.answered,
            "turns": [{"turn": turn, "state": state} for turn, state in change.turns.items()],
        }


def _last_row(message: StoredMessage | None) -> Json:
    """The last message, as in the list of conversations; empty fields if there is none."""
    if message is None:
        return {"last": None, "last_author": "", "last_text": "", "has_media": False}
    spoken = message.spoken.text if message.spoken is not None else ""
    text = in_short(message.text) or spoken or ", ".join(ref.file_name or ref.kind for ref in message.media)
    return {
        "last": message.sent,
        "last_author": message.author.name,
        "last_text": text[:SNIPPET_CHARS],
        "has_media": bool(message.media),
    }


def _parcel_row(news: ParcelNews) -> Json:
    return {"key": news.key, "conversation": str(news.conversation), "state": news.state, "reason": news.reason}
