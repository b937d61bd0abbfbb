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
from belino.domain.reading import MediaCapability, ReadingForm
from belino.domain.stored import StoredMessage
from belino.understanding.request import ReadingNews

QUEUE = 1_000
USUAL_FORMS = {
    MediaCapability.IMAGE: ReadingForm.DESCRIPTION,
    MediaCapability.AUDIO: ReadingForm.TRANSCRIPT,
    MediaCapability.VIDEO: ReadingForm.DESCRIPTION,
    MediaCapability.DOCUMENT: ReadingForm.TEXT,
}
"""The form in which media is read at a turn."""


class NoticeKind(StrEnum):
    """The kinds of notice."""

    MESSAGE = "message"
    """A message is new or has changed."""
    CHANGED = "changed"
    """Messages of a conversation have changed; no subscriber follows it, so none of them was read from the store."""
    TURN = "turn"
    PARCEL = "parcel"
    READING = "reading"
    """Media is being read as text, or was."""
    OWNER = "owner"
    """Something that concerns the operator changed: the health of an account, a notice, a request for access."""
    LOST = "lost"
    """Notices were dropped: the subscriber must catch up from history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnNotice:
    """A turn's state, or a note about what it is doing."""

    turn: int
    """0 while the turn is queued and its number is not known yet."""
    state: TurnState | Literal["note", "writing"]
    text: str = ""
    """A note, a reason, or the next piece of the answer."""
    at: int = 0
    """The position of a piece in the answer, in UTF-16 units, as pages count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingNotice:
    """Media of a message is being read, or was."""

    message_id: str
    attachment_index: int
    form: ReadingForm
    news: ReadingNews


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One event."""

    kind: NoticeKind
    conversation: ConversationKey | None = None
    payload: StoredMessage | TurnNotice | ParcelNews | ReadingNotice | None = None


Follows = Callable[[ConversationKey | None], bool]
"""Whether a subscriber follows a conversation; asked with None, whether it follows any."""
Listener = Callable[[Notice], None]


class EventBus:
    """Publishes to subscribers without waiting for any of them."""

    def __init__(self) -> None:
        self._queues: dict[asyncio.Queue[Notice], Follows] = {}
        self._listeners: list[Listener] = []

    def watched(self, conversation: ConversationKey | None = None) -> bool:
        """Whether a subscriber follows this conversation, or any; if not, messages are not read from the store."""
        return any(follows(conversation) for follows in self._queues.values())

    def publish(self, notice: Notice) -> None:
        """Queue a notice for the subscribers that follow its conversation; one without a conversation goes to all."""
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
        """Publish a new or changed message."""
        self.publish(Notice(kind=NoticeKind.MESSAGE, conversation=message.conversation, payload=message))

    def changed(self, conversation: ConversationKey) -> None:
        """Notify listeners that messages of a conversation without subscribers have changed."""
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
        """Publish a turn's progress."""
        payload = TurnNotice(turn=turn, state=state, text=text, at=at)
        self.publish(Notice(kind=NoticeKind.TURN, conversation=conversation, payload=payload))

    def parcel(self, news: ParcelNews) -> None:
        """Publish a parcel's progress."""
        self.publish(Notice(kind=NoticeKind.PARCEL, conversation=news.conversation, payload=news))

    def reading(self, conversation: ConversationKey, message_id: str, index: int, news: ReadingNews) -> None:
        """Publish the progress of a reading at a turn."""
        self.read(conversation, message_id, index, USUAL_FORMS[news.capability], news)

    def read(
        self, conversation: ConversationKey, message_id: str, index: int, form: ReadingForm, news: ReadingNews
    ) -> None:
        """Publish the progress of a reading in a form that a person asked for."""
        notice = ReadingNotice(message_id=message_id, attachment_index=index, form=form, news=news)
        self.publish(Notice(kind=NoticeKind.READING, conversation=conversation, payload=notice))

    def owner(self) -> None:
        """Tell people's pages that the state of accounts, notices or requests changed."""
        self.publish(Notice(kind=NoticeKind.OWNER))

    def lost(self) -> None:
        """Tell every subscriber to catch up from history, because an event could not be read."""
        self.publish(Notice(kind=NoticeKind.LOST))

    @asynccontextmanager
    async def subscribe(self, follows: Follows = lambda _: True) -> AsyncIterator[AsyncIterator[Notice]]:
        """Every notice of the followed conversations, from now until the block is left."""
        queue: asyncio.Queue[Notice] = asyncio.Queue(QUEUE)
        self._queues[queue] = follows
        try:
            yield _listen(queue)
        finally:
            del self._queues[queue]

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Call `listener` with every notice as it is published; it must not block, and does not cause store reads."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)


async def _listen(queue: asyncio.Queue[Notice]) -> AsyncIterator[Notice]:
    while True:
        yield await queue.get()
