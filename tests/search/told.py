"""Conversations that were told to a store, and what is found in them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Literal, NamedTuple

from belino.context.search import search
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.search import SearchPage
from belino.storage.home import Home
from belino.storage.static_vectors import SearchConfig
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock

CHANNEL = ConversationKey(platform="web", account="default", channel="team")
START = datetime(2026, 10, 1, 9, 0, tzinfo=UTC)
CHATTER = [("Omar", f"nothing much on line {number}") for number in range(30)]


class Conversation(NamedTuple):
    """A channel with messages 1, 2, … a minute apart."""

    store: Store

    async def find(self, intent: str, *, now: datetime = START + timedelta(days=29), **more: Any) -> SearchPage:
        return await search(self.store, CHANNEL, intent, now=now, **more)

    async def ids(self, intent: str, **more: Any) -> list[str]:
        """The ids of what is found, best first."""
        return [one.message_id for one in (await self.find(intent, **more)).results]


@asynccontextmanager
async def told(
    folder: Path,
    lines: Sequence[tuple[Any, ...]],
    *,
    zone: tzinfo = UTC,
    rerank: Literal["off", "static"] = "off",
) -> AsyncIterator[Conversation]:
    """Each line is an author, a text, and maybe when it was sent."""
    store = await open_store(
        Home.at(folder / "state"), clock=FakeClock(), zone=zone, search=SearchConfig(rerank=rerank)
    )
    try:
        await store.take_history(CHANNEL, [_message(number, *line) for number, line in enumerate(lines, 1)])
        yield Conversation(store)
    finally:
        await store.close()


def _message(number: int, author: str | Author, text: str, sent: datetime | None = None) -> Message:
    return Message(
        conversation=CHANNEL,
        id=str(number),
        author=Author(id=f"u-{author.casefold()}", name=author) if isinstance(author, str) else author,
        sent=sent or START + number * timedelta(minutes=1),
        text=text,
    )
