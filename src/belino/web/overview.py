"""Overview of conversations a page does not show: their changes, coalesced, with the last message of each."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from belino.delivery.send import ParcelNews
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.stored import StoredMessage
from belino.gateway.events import Notice, TurnNotice
from belino.storage.store import Store
from belino.web.wire import Json

EVERY_SECONDS = 1.0
# Sending one costs per page: with many pages it is sent less often, so that the CPU share stays the same.
SECONDS_PER_PAGE = 0.02
SNIPPET_CHARS = 200
# More changes than this at once are not listed: pages reload their list.
MOST_CHANGES = 200


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
        """Note a change; notes and draft pieces are only for followers."""
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
            case payload:
                change = self._of(notice.conversation)
                change.said = True
                change.answered |= isinstance(payload, StoredMessage) and payload.author.is_agent
        self._changed.set()

    async def settled(self) -> None:
        """Wait for a change, and then briefly for further ones."""
        await self._changed.wait()
        await self._clock.sleep(max(EVERY_SECONDS, SECONDS_PER_PAGE * self._pages()))

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
    text = message.text or ", ".join(ref.file_name or ref.kind for ref in message.media)
    return {
        "last": message.sent,
        "last_author": message.author.name,
        "last_text": text[:SNIPPET_CHARS],
        "has_media": bool(message.media),
    }


def _parcel_row(news: ParcelNews) -> Json:
    return {"key": news.key, "conversation": str(news.conversation), "state": news.state, "reason": news.reason}
