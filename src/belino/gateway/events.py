"""Events: an in-process bus, routed by conversation; a subscriber that falls behind catches up from history."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from belino.delivery.send import ParcelNews
from belino.domain.message import ConversationKey
from belino.domain.outcome import TurnState
from belino.domain.stored import StoredMessage

QUEUE = 1_000


class NoticeKind(StrEnum):
    """What a notice is about."""

    MESSAGE = "message"
    """A message is new or has changed."""
    CHANGED = "changed"
    """Messages of a conversation have changed; no subscriber follows it, so none of them was read from the store."""
    TURN = "turn"
    PARCEL = "parcel"
    LOST = "lost"
    """Something was not told: the watcher is to catch up from history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnNotice:
    """Where a turn stands, or a note of what it is doing."""

    turn: int
    """0 while it waits and its number is not known yet."""
    state: TurnState | Literal["note", "writing"]
    text: str = ""
    """A note, a reason, or the next piece of the answer."""
    at: int = 0
    """Where in the answer a piece of it belongs, in UTF-16 units, as pages count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing that has just happened."""

    kind: NoticeKind
    conversation: ConversationKey | None = None
    payload: StoredMessage | TurnNotice | ParcelNews | None = None


Follows = Callable[[ConversationKey | None], bool]
"""Whether a subscriber follows a conversation; asked with None, whether it follows any."""
Listener = Callable[[Notice], None]


class EventBus:
    """Publishes to subscribers without waiting for any of them."""

    def __init__(self) -> None:
        self._queues: dict[asyncio.Queue[Notice], Follows] = {}
        self._listeners: list[Listener] = []

    def watched(self, conversation: ConversationKey | None = None) -> bool:
        """Whether a subscriber follows this conversation, or any: without one, messages are not read from the store."""
        return any(follows(conversation) for follows in self._queues.values())

    def publish(self, notice: Notice) -> None:
        """Queue a notice for the subscribers that follow its conversation; one about none goes to all."""
        for queue, follows in self._queues.items():
            if notice.conversation is not None and not follows(notice.conversation):
                continue
            if queue.full():
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(Notice(kind=NoticeKind.LOST))
            queue.put_nowait(notice)
        for listener in self._listeners:
            listener(notice)

    def message(self, message: StoredMessage) -> None:
        """A message is new or has changed."""
        self.publish(Notice(kind=NoticeKind.MESSAGE, conversation=message.conversation, payload=message))

    def changed(self, conversation: ConversationKey) -> None:
        """Messages of a conversation that no subscriber follows have changed."""
        for listener in self._listeners:
            listener(Notice(kind=NoticeKind.CHANGED, conversation=conversation))

    def turn(
        self,
        conversation: ConversationKey,
        turn: int,
        state: TurnState | Literal["note", "writing"],
        text: str = "",
        *,
        at: int = 0,
    ) -> None:
        """A turn has come further."""
        payload = TurnNotice(turn=turn, state=state, text=text, at=at)
        self.publish(Notice(kind=NoticeKind.TURN, conversation=conversation, payload=payload))

    def parcel(self, news: ParcelNews) -> None:
        """A parcel has come further."""
        self.publish(Notice(kind=NoticeKind.PARCEL, conversation=news.conversation, payload=news))

    def lost(self) -> None:
        """Something happened that could not be read: every subscriber has to read it from history."""
        self.publish(Notice(kind=NoticeKind.LOST))

    @asynccontextmanager
    async def subscribe(self, follows: Follows = lambda _: True) -> AsyncIterator[AsyncIterator[Notice]]:
        """Every notice of the conversations followed, from now on until the block is left."""
        queue: asyncio.Queue[Notice] = asyncio.Queue(QUEUE)
        self._queues[queue] = follows
        try:
            yield _listen(queue)
        finally:
            del self._queues[queue]

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Call `listener` with every notice as it is published; it must not wait, and makes nothing be read for it."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)


async def _listen(queue: asyncio.Queue[Notice]) -> AsyncIterator[Notice]:
    while True:
        yield await queue.get()
