"""A real store in a temporary state folder, and short ways to say what people say."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey, Message
from belino.storage.database import Tx
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock

MAIN = ConversationKey(platform="web", account="default", channel="main")
ANNA = Author(id="u-anna", name="Anna")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(tmp_path / "state")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(home: Home, clock: FakeClock) -> AsyncIterator[Store]:
    store = await open_store(home, clock=clock)
    yield store
    await store.close()


@pytest.fixture
def held_up(store: Store) -> Callable[[], AbstractAsyncContextManager[None]]:
    """Inside `async with held_up():` the writer is busy, so that everything offered meanwhile becomes one batch."""

    @asynccontextmanager
    async def hold() -> AsyncIterator[None]:
        busy, go_on = threading.Event(), threading.Event()

        def work(connection: Tx) -> None:
            busy.set()
            assert go_on.wait(60)

        async with asyncio.TaskGroup() as group:
            group.create_task(store._database.write(work))
            assert await asyncio.to_thread(busy.wait, 60)
            try:
                yield
            finally:
                go_on.set()

    return hold


@pytest.fixture
def say(clock: FakeClock) -> Callable[..., Message]:
    """say("1", "hello", album="a") → a message of Anna's in the main channel."""

    def make(id: str, text: str = "hello", **more: Any) -> Message:  # noqa: A002
        return Message(**{"conversation": MAIN, "id": id, "author": ANNA, "sent": clock.now(), "text": text, **more})

    return make


@pytest.fixture
def photo(clock: FakeClock) -> Callable[..., MediaRef]:
    """photo("1", "0", sha256=…) → a ref as an adapter's parse yields it: without an id."""

    def make(message_id: str, item: str = "0", **more: Any) -> MediaRef:
        values: dict[str, Any] = {
            "platform": "web",
            "account": "default",
            "channel_id": "main",
            "message_id": message_id,
            "item": item,
            "kind": MediaKind.IMAGE,
            "mime": "image/png",
            "created": clock.now(),
            "file_name": "photo.png",
        }
        return MediaRef(**{**values, **more})

    return make
