"""Bursts, duplicates, torn uploads and a full queue at the start: nothing is lost, doubled or reordered."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from belino.domain.errors import UploadError
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import MessageOutcome, Standing, TurnState
from belino.domain.stored import Verdict
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing import START, FakeClock
from faults.looking import SOAK
from gateway.house import House, until

BURST = 10_000 if SOAK else 1_000
EVENTS = 100_000 if SOAK else 1_000
PENDING = 100_000 if SOAK else 2_000
DROPS = 1_000 if SOAK else 25
UPLOAD_BYTES = 400_000
ANN = Author(id="ann", name="Ann")
ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
SEED = 20261117


def said(number: int, channels: int) -> Message:
    where = ConversationKey(platform="memory", account="default", channel=f"c{number % channels}")
    return Message(conversation=where, id=f"m{number}", author=ANN, sent=START + timedelta(milliseconds=number))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(Home.at(tmp_path / "home"), clock=FakeClock())
    yield store
    await store.close()


async def test_a_burst_is_durable_and_in_order_in_every_conversation(store: Store) -> None:
    messages = [said(number, 50) for number in range(BURST)]
    async with asyncio.TaskGroup() as group:
        taken = [group.create_task(store.take_in(message, ANSWER)) for message in messages]
    assert {task.result().outcome for task in taken} == {MessageOutcome.WAITING}
    for channel in range(50):
        where = messages[channel].conversation
        kept = [message.id for message in await store.history(where, limit=BURST)]
        assert kept == [message.id for message in messages if message.conversation == where]


async def test_events_that_come_again_and_out_of_order_are_one_row_and_one_turn_each(store: Store) -> None:
    rng = Random(SEED)
    events = [said(number, 20) for number in range(EVENTS) for _ in range(rng.randint(1, 5))]
    rng.shuffle(events)
    outcomes: Counter[MessageOutcome] = Counter()
    for first in range(0, len(events), 500):
        async with asyncio.TaskGroup() as group:
            taken = [group.create_task(store.take_in(event, ANSWER)) for event in events[first : first + 500]]
        outcomes.update(task.result().outcome for task in taken)
    assert outcomes[MessageOutcome.WAITING] == EVENTS
    assert outcomes[MessageOutcome.DUPLICATE] == len(events) - EVENTS
    counts = await store.counts()
    assert (counts["messages"], counts["turns_waiting"]) == (EVENTS, EVENTS)


async def test_a_gateway_that_starts_with_a_full_queue_takes_new_messages_and_answers_all(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    store = await open_store(house.home, clock=house.clock)
    for first in range(0, PENDING, 500):
        async with asyncio.TaskGroup() as group:
            for number in range(first, min(first + 500, PENDING)):
                group.create_task(store.take_in(said(number, 500), ANSWER))
    await store.close()
    house.sessions = type(house.sessions)(max_waiting=PENDING + 1)
    async with house.at_work() as gateway:
        await gateway.accept(house.say("newest"))
        if not SOAK:
            await until(lambda: gateway.counters.turns[TurnState.ANSWERED] == PENDING + 1)
            return
        await until(lambda: house.wire.texts("dm"))


async def test_an_upload_that_is_torn_at_any_byte_goes_on_where_it_stood(store: Store) -> None:
    rng = Random(SEED)
    content = rng.randbytes(UPLOAD_BYTES)
    where = ConversationKey(platform="web", account="default", channel="main")
    upload = await store.start_upload(
        where, file_name="a.bin", mime="application/octet-stream", size=len(content), sha256=None
    )
    for _ in range(DROPS):
        end = upload.offset + rng.randint(0, 2 * (len(content) - upload.offset) // DROPS + 1)
        with pytest.raises(ConnectionResetError):
            await store.extend_upload(upload.id, upload.offset, torn(content[upload.offset : end], rng))
        found = await store.upload(upload.id)
        assert found is not None and upload.offset <= found.offset <= end
        with pytest.raises(UploadError, match="stands at"):
            await store.extend_upload(upload.id, found.offset + 1, torn(b"", rng))
        upload = found
    upload = await store.extend_upload(upload.id, upload.offset, whole(content[upload.offset :]))
    assert upload.sha256 == hashlib.sha256(content).hexdigest()
    assert (await store.tidy()).total == 0


async def torn(content: bytes, rng: Random) -> AsyncIterator[bytes]:
    place = 0
    while place < len(content):
        size = rng.randint(1, 20_000)
        yield content[place : place + size]
        place += size
    raise ConnectionResetError


async def whole(content: bytes) -> AsyncIterator[bytes]:
    yield content
