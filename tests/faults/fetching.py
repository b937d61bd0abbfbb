"""Bytes that come, are deleted and make room in a process that is killed at every step: a program of its own.

`python fetching.py FOLDER SEED KILLS` fetches, deletes and evicts once and counts the steps that takes; then it does so
again and again in one state folder, killed each time, and looks at what was left. A line is printed for what is wrong.
"""

import asyncio
import hashlib
import os
import random
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from belino.domain.errors import MediaError
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey, Deletion, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import RefRecord, Verdict
from belino.media.fetch import Fetcher, MediaConfig
from belino.net.clock import SystemClock
from belino.storage import folder as blob_folder
from belino.storage.database import Tx
from belino.storage.folder import BlobFolder, Partial
from belino.storage.home import Home
from belino.storage.store import Store, open_store

WHERE = ConversationKey(platform="memory", account="default", channel="dm")
ANN = Author(id="ann", name="Ann")
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
FILES = 4
FILE_BYTES = 40_000
ROOM = 3 * FILE_BYTES
"""What other conversations leave of the disk's share."""
LIFE_SECONDS = 60.0


class Steps:
    """Counts what happens, and ends the process when its number comes up."""

    def __init__(self, last: int | None) -> None:
        self.count = 0
        self._last = last

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **more: Any) -> Any:
            self()
            result = act(*given, **more)
            self()
            return result

        return counted


def watch(steps: Steps) -> None:
    """Every touch of the disk is a step; what the database does is between two of them."""
    for owner, name in (
        (Partial, "open"),
        (Partial, "write"),
        (Partial, "close"),
        (BlobFolder, "_take"),
        (BlobFolder, "_unlink"),
        (blob_folder, "sync_folder"),
    ):
        setattr(owner, name, steps.around(getattr(owner, name)))


async def life(folder: Path, generation: int, steps: Steps) -> None:
    """Files of this generation come, the second is deleted again, and only some of the bytes have room."""
    store = await open_store(Home.at(folder), clock=SystemClock())
    if any((folder / "blobs" / "tmp").iterdir()):
        raise AssertionError("temporary files outlived a start")
    watch(steps)
    write = store._database.write

    async def counted(work: Callable[[Tx], Any]) -> Any:
        steps()
        result = await write(work)
        steps()
        return result

    store._database.write = counted  # type: ignore[method-assign]
    try:
        await _work(store, generation)
    finally:
        await store.close()


async def _work(store: Store, generation: int) -> None:
    # Half of the files are those of the generation before: shared bytes come and go, too.
    bodies = {f"{generation - number % 2}-{number}": None for number in range(FILES)}
    fetcher = Fetcher(store, store, open_media, MediaConfig(), SystemClock())
    refs = [await _say(store, generation, item) for item in bodies]
    async with asyncio.TaskGroup() as group:
        for record in refs:
            group.create_task(_fetch(store, fetcher, record))
    first = refs[0].ref.message_id
    await store.take_in(
        Deletion(conversation=WHERE, id=f"d{first}", message_id=first, author=None, sent=datetime.now(UTC)), OBSERVE
    )
    await fetcher.purge()
    await fetcher.sweep()
    await store.tidy()


async def _say(store: Store, generation: int, item: str) -> RefRecord:
    name, now = f"{generation}-{item}-{os.getpid()}", datetime.now(UTC)
    ref = MediaRef(platform="memory", account="default", channel_id="dm", message_id=name, item=item,
                   kind=MediaKind.DOCUMENT, mime="application/octet-stream", created=now)  # fmt: skip
    message = Message(conversation=WHERE, id=name, author=ANN, sent=now, text="", media=(ref,))
    (kept,) = (await store.take_in(message, OBSERVE)).refs
    record = await store.find_ref(kept.id)
    assert record is not None
    return record


async def _fetch(store: Store, fetcher: Fetcher, record: RefRecord) -> None:
    try:
        blob = await fetcher.fetch(record)
        await store.evict(ROOM)
        await fetcher.read(blob, 10)
    except MediaError:
        return  # deleted or evicted meanwhile


@asynccontextmanager
async def open_media(ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
    async def pieces() -> AsyncIterator[bytes]:
        body = random.Random(ref.item).randbytes(FILE_BYTES)
        for start in range(0, len(body), 16_000):
            yield body[start : start + 16_000]

    yield pieces()


def lived(folder: Path, generation: int, last: int | None) -> tuple[int, int]:
    """How a life ended, and how many steps it took if it was whole."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        steps = Steps(last)
        try:
            asyncio.run(asyncio.wait_for(life(folder, generation, steps), LIFE_SECONDS))
        except BaseException as error:  # noqa: BLE001 - told to the parent, which has nothing else of us
            sys.stderr.write(f"{generation}: {error!r}\n")
            sys.stderr.flush()
            os._exit(1)
        os.write(writing, str(steps.count).encode())
        os._exit(0)
    os.close(writing)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(reading, "rb") as told:
        return ended, int(told.read() or 0)


def wrong(folder: Path) -> list[str]:
    """What may never be, whenever somebody looks: bytes under a name that is not theirs."""
    return [
        f"{path.name} is not what it says"
        for path in (folder / "blobs").glob("??/??/*")
        if hashlib.sha256(path.read_bytes()).hexdigest() != path.name
    ]


async def wrong_at_rest(folder: Path) -> list[str]:
    """What may not be after a start and a sweep: refs without their bytes, files and rows that do not agree.

    Strays, which a kill leaves between moving a file in and noting it, are put aside by request.
    """
    store = await open_store(Home.at(folder), clock=SystemClock())
    try:
        await store.purge()
        await store.tidy(all_strays=True)
        held = [one.ref for one in await store.refs(None, limit=100_000) if one.outcome is MediaOutcome.HELD]
        found = [f"the bytes of {ref.id} are not here" for ref in held if await store.blob(ref.sha256 or "") is None]
        left = await store.tidy()
        if left.total:
            found.append(f"left after a sweep: {left}")
    finally:
        await store.close()
    with closing(sqlite3.connect(folder / "belino.db")) as database:
        known = {row[0] for row in database.execute("SELECT sha256 FROM blobs")}
    lying = {path.name for path in (folder / "blobs").glob("??/??/*")}
    return [*found, *(f"{name} is only on one side" for name in known ^ lying)]


def main(folder: Path, seed: int, kills: int) -> None:
    rng = random.Random(seed)
    ended, count = lived(folder, 1, None)
    assert ended == 0
    killed = 0
    for generation in range(2, kills + 2):
        ended, _ = lived(folder, generation, rng.randint(1, count))
        assert ended in (0, -signal.SIGKILL), ended
        killed += ended != 0
        found = wrong(folder)
        if generation % 10 == 0 or generation == kills + 1:
            found += asyncio.run(wrong_at_rest(folder))
        for line in found:
            sys.stdout.write(f"after {generation}: {line}\n")
    sys.stdout.write(f"killed {killed}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
