"""What is happening right now, for whoever watches; one that falls behind catches up from history."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from belino.delivery.send import ParcelNews
from belino.domain.message import ConversationKey
from belino.domain.outcome import TurnState
from belino.domain.record import StoredMessage

QUEUE = 1_000


class NoticeKind(StrEnum):
    """What a notice is about."""

    MESSAGE = "message"
    """A message is new or has changed."""
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


class Notices:
    """Tells every subscriber, waits for none."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[Notice]] = set()

    @property
    def watched(self) -> bool:
        """Whether anybody listens: nothing needs to be read from the store for nobody."""
        return bool(self._queues)

    def publish(self, notice: Notice) -> None:
        """Tell it to everybody who listens now."""
        for queue in self._queues:
            if queue.full():
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(Notice(kind=NoticeKind.LOST))
            queue.put_nowait(notice)

    def message(self, message: StoredMessage) -> None:
        """A message is new or has changed."""
        self.publish(Notice(kind=NoticeKind.MESSAGE, conversation=message.conversation, payload=message))

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
        """Something happened that could not be told: everybody is to read it from history."""
        self.publish(Notice(kind=NoticeKind.LOST))

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[Notice]]:
        """Everything published from now on, until the block is left."""
        queue: asyncio.Queue[Notice] = asyncio.Queue(QUEUE)
        self._queues.add(queue)
        try:
            yield _listen(queue)
        finally:
            self._queues.discard(queue)


async def _listen(queue: asyncio.Queue[Notice]) -> AsyncIterator[Notice]:
    while True:
        yield await queue.get()
