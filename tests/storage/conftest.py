"""A real store, on every engine, and short ways to say what people say."""

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
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.engines import ENGINES, OF_SQLITE, Engine

MAIN = ConversationKey(platform="web", account="default", channel="main")
ANNA = Author(id="u-anna", name="Anna")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(tmp_path / "state")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of the store runs on each engine, unless it looks into the files of one."""
    chosen = any("engine" in mark.args for mark in metafunc.definition.iter_markers("parametrize"))
    if "engine" in metafunc.fixturenames and not chosen:
        names = ["sqlite"] if metafunc.definition.path.stem in OF_SQLITE else list(ENGINES)
        metafunc.parametrize("engine", names, indirect=True)


@pytest.fixture
def engine(request: pytest.FixtureRequest, home: Home, clock: FakeClock) -> Engine:
    return ENGINES[request.param](home, clock)


@pytest.fixture
async def store(engine: Engine) -> AsyncIterator[Store]:
    store = await engine.open()
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
