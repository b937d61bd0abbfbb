"""Power cuts: a store at work is recorded, cut off at random events and opened again. A program of its own.

`python power.py FOLDER SEED CUTS [--rounds N | --large] [--copied] [--without WHAT]` prints a line for each broken
promise, and at last how the database was kept and how many events and promises there were. `--without` forgets one kind
of sync, to see that this is noticed; `--copied` keeps the database as where SQLite's own writes cannot be recorded.
"""

import argparse
import asyncio
import hashlib
import os
import pickle
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

from belino.domain.errors import StoreError
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey, Deletion, Message
from belino.domain.outcome import MediaOutcome, Standing, TurnState
from belino.domain.reply import Parcel, ParcelState, Receipt
from belino.domain.stored import ClaimedParcel, ClaimedTurn, GrantKind, TurnEnd, Verdict
from belino.storage import sqlite, sqlite_opening
from belino.storage.disk import MEMORY_BYTES
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from blob_files import content_of
from faults.disk import Copy, Disk, Event, Promise, promises
from faults.recorder import Recorder

ANN = Author(id="ann", name="Ann")
AGENT = Author(id="belino", name="belino", is_agent=True)
ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
CONVERSATIONS = 3
CUT_AT = ("blob", "message", "parcel", "upload")

SYNCS: dict[str, Callable[[str], bool]] = {
    "blob": lambda path: path.startswith("blobs/tmp/keep-"),
    "blob-folder": lambda path: path.startswith("blobs/") and path.count("/") == 2 and "tmp" not in path,
    "fan-out-folder": lambda path: path == "blobs" or (path.startswith("blobs/") and path.count("/") == 1),
    "upload": lambda path: path.startswith("blobs/tmp/upload-"),
    "upload-folder": lambda path: path == "blobs/tmp",
    "key": lambda path: path.startswith("key"),
}
PRAGMAS = {"normal": "PRAGMA synchronous = NORMAL", "off": "PRAGMA synchronous = OFF"}


class Worker:
    """Everything a store promises, asked for in one conversation."""

    def __init__(self, store: Store, recorder: Recorder, number: int, seed: int, clock: FakeClock) -> None:
        self.where = ConversationKey(platform="memory", account="default", channel=f"c{number}")
        self._store = store
        self._recorder = recorder
        self._rng = Random(f"{seed}-{number}")
        self._clock = clock

    async def run(self, rounds: int) -> None:
        for number in range(rounds):
            await self._say(number)
            await self._answer(number)
            await self._upload(number)
            if number % 3 == 2:
                await self._delete(number - 1)

    def _promise(self, kind: str, key: str, value: str | int = "") -> None:
        self._recorder.copy_database()
        self._recorder.promise(kind, key, value)

    async def _say(self, number: int) -> None:
        body = self._rng.randbytes(self._rng.choice((1, 700, 5_000, 70_000)))
        blob = await self._store.keep(pieces(body), mime="application/octet-stream", limit=len(body))
        self._promise("blob", blob.sha256)
        name = f"{self.where.channel}-{number}"
        now = self._clock.now()
        ref = MediaRef(platform="memory", account="default", channel_id=self.where.channel, message_id=name, item="0",
                       kind=MediaKind.DOCUMENT, mime=blob.mime, created=now, sha256=blob.sha256)  # fmt: skip
        message = Message(conversation=self.where, id=name, author=ANN, sent=now, text="", media=(ref,))
        (kept,) = (await self._store.take_in(message, ANSWER)).refs
        self._promise("message", name, kept.id)

    async def _answer(self, number: int) -> None:
        key = f"{self.where.channel}-p{number}"
        turn = await self._store.claim_turn(self.where, self._clock.now())
        assert isinstance(turn, ClaimedTurn)
        parcel = Parcel(key=key, conversation=self.where, text="an answer")
        await self._store.finish_turn(turn.id, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel,)))
        self._promise("parcel", key, ParcelState.READY)
        assert isinstance(await self._store.claim_parcel(self.where, self._clock.now()), ClaimedParcel)
        self._promise("parcel", key, ParcelState.SENDING)
        await self._store.confirm_parcel(key, Receipt(message_id=key, sent=self._clock.now()), AGENT)
        self._promise("parcel", key, ParcelState.SENT)

    async def _upload(self, number: int) -> None:
        body = upload_body(f"{self.where.channel}-{number}")
        begun = await self._store.start_upload(self.where, file_name=f"{self.where.channel}-{number}", mime="a/b",
                                               size=len(body), sha256=hashlib.sha256(body).hexdigest())  # fmt: skip
        self._promise("upload", begun.id, 0)
        for offset in range(0, len(body), len(body) // 3 + 1):
            piece = body[offset : offset + len(body) // 3 + 1]
            if offset + len(piece) == len(body):
                self._promise("finishing", begun.id)  # while it is moved into its place, it may have to come again
            stands = await self._store.extend_upload(begun.id, offset, pieces(piece))
            self._promise("upload", begun.id, stands.offset)
            if number % 4 == 3:
                return  # it is left unfinished
        if number % 2:
            self._promise("dropped", begun.id)  # before: from here on it may be gone
            await self._store.drop_upload(begun.id)

    async def _delete(self, number: int) -> None:
        name = f"{self.where.channel}-{number}"
        self._promise("deleted", name)  # before: from here on it may be gone
        await self._store.take_in(
            Deletion(conversation=self.where, id=f"d{name}", message_id=name, author=None, sent=self._clock.now()),
            ANSWER,
        )
        self._promise("gone", name)
        await self._store.purge()
        await self._store.tidy()


def upload_body(name: str) -> bytes:
    return Random(name).randbytes(9_000)


async def pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 64 * 1024):
        yield body[start : start + 64 * 1024]


def record(folder: Path, args: argparse.Namespace) -> list[Event]:
    """Let a store work in a process of its own, and tell what it did to its disk."""
    log = folder / "events"
    child = os.fork()
    if not child:
        try:
            _record(folder / "recorded", log, args)
        except BaseException as error:  # noqa: BLE001 - told to the parent, which has nothing else of us
            sys.stderr.write(f"recording failed: {error!r}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    events: list[Event] = pickle.loads(log.read_bytes())
    return events


def _record(home: Path, log: Path, args: argparse.Namespace) -> None:
    home.mkdir(mode=0o700)
    recorder = Recorder(home.resolve(), without_sync=SYNCS.get(args.without, lambda path: False))
    if not args.copied:
        recorder.wrap_sqlite()
    recorder.wrap_os()
    if args.without in PRAGMAS:
        connect = sqlite.connect

        def careless(*given: Any, **more: Any) -> Any:
            connection = connect(*given, **more)
            connection.execute(PRAGMAS[args.without])
            return connection

        sqlite_opening.connect = careless  # type: ignore[attr-defined]
    asyncio.run(_work(recorder, args))
    assert recorder.unseen == [], recorder.unseen
    log.write_bytes(pickle.dumps(recorder.events))


async def _work(recorder: Recorder, args: argparse.Namespace) -> None:
    clock = FakeClock()
    store = await open_store(Home.at(recorder.root), clock=clock)
    # As a gateway does before anything arrives: bytes beside a database without any row are taken for a lost database.
    await store.grant(GrantKind.PROGRAM, note="the running gateway")
    recorder.copy_database()
    if args.large:
        body = Random(args.seed).randbytes(MEMORY_BYTES + 5 * 1024 * 1024 + 7)
        blob = await store.keep(pieces(body), mime="a/b", limit=len(body))
        recorder.copy_database()
        recorder.promise("blob", blob.sha256)
    else:
        workers = [Worker(store, recorder, number, args.seed, clock) for number in range(CONVERSATIONS)]
        await asyncio.gather(*(worker.run(args.rounds) for worker in workers))
    await store.close()
    recorder.copy_database()


async def broken(home: Path, made: list[Promise]) -> list[str]:
    """Which of these promises the folder that a cut left does not keep."""
    partial = [
        f"blob {path.name} is not what it says"
        for path in (home / "blobs").glob("??/??/*")
        if hashlib.sha256(path.read_bytes()).hexdigest() != path.name
    ]
    try:
        store = await open_store(Home.at(home), clock=FakeClock())
    except StoreError as error:
        return [*partial, f"the store does not open: {error}"]
    try:
        return [*partial, *await _database(store), *await _held(store), *await _unkept(store, made)]
    except StoreError as error:
        return [*partial, f"the store does not work: {error}"]
    finally:
        await store.close()


async def _database(store: Store) -> list[str]:
    found = await store.check_database()
    return [f"the database is damaged: {found}"] if found else []


async def _held(store: Store) -> list[str]:
    held = [one.ref for one in await store.refs(None, limit=10_000) if one.outcome is MediaOutcome.HELD]
    return [f"the bytes of {ref.id} are not here" for ref in held if await store.blob(ref.sha256 or "") is None]


async def _unkept(store: Store, made: list[Promise]) -> list[str]:
    states = {record.key: record.state for record in await store.parcels(limit=10_000)}
    dropped = {promise.key for promise in made if promise.kind in ("dropped", "deleted")}
    uploads: dict[str, int] = {}
    for promise in made:
        if promise.kind in ("upload", "finishing"):
            uploads[promise.key] = int(promise.value or 0)
    parcels = {promise.key: str(promise.value) for promise in made if promise.kind == "parcel"}
    wrong = [f"upload {key} does not stand at {offset}"
             for key, offset in uploads.items()
             if key not in dropped and not await _stands(store, key, offset)]  # fmt: skip
    order = [ParcelState.READY, ParcelState.SENDING, ParcelState.SENT]
    wrong += [f"parcel {key} is {states.get(key)}, not {state}"
              for key, state in parcels.items()
              if states.get(key) not in order[order.index(ParcelState(state)):]]  # fmt: skip
    known = {ref: promise.key for promise in made if promise.kind == "message" for ref in [str(promise.value)]}
    for ref, name in known.items():
        if name not in dropped and await store.find_ref(ref) is None:
            wrong.append(f"message {name} is not here")
    deleted = {promise.key for promise in made if promise.kind == "gone"}
    wrong += [f"message {name} is here again" for ref, name in known.items()
              if name in deleted and await store.find_ref(ref) is not None]  # fmt: skip
    if not dropped:
        blobs = [promise.key for promise in made if promise.kind == "blob"]
        wrong += [f"blob {sha256} is not here" for sha256 in blobs if await store.blob(sha256) is None]
    return wrong


async def _stands(store: Store, upload_id: str, offset: int) -> bool:
    """Whether an upload has all the bytes it said it had: completed with the rest, it is what was announced."""
    upload = await store.upload(upload_id)
    if upload is None or upload.offset < offset:
        return False
    body = upload_body(upload.file_name)
    try:
        done = await store.extend_upload(upload_id, upload.offset, pieces(body[upload.offset :]))
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - the bytes are not those that were announced
        return False
    blob = await store.blob(done.sha256 or "")
    return blob is not None and await content_of(store, blob) == body


def chosen(events: list[Event], cuts: int, rng: Random) -> list[tuple[int, float]]:
    """After which event to cut, and with how much luck.

    Always after the first and the last promise of each kind, with none, so that what was not synced is surely missing.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, event in enumerate(events, 1):
        if isinstance(event, Promise):
            first.setdefault(event.kind, number)
            last[event.kind] = number
    worst = {(at, 0.0) for kind in CUT_AT if kind in last for at in (first[kind], last[kind])}
    some = [
        (rng.randrange(1, len(events)), rng.choice((0.0, 0.5, 0.9, 1.0, rng.random()))) for _ in range(len(worst), cuts)
    ]
    return sorted([*worst, *some])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("cuts", type=int)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--copied", action="store_true")
    parser.add_argument("--without", choices=(*SYNCS, *PRAGMAS), default="")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    events = record(args.folder, args)
    rng, disk, done = Random(args.seed), Disk(), 0
    for number, (at, luck) in enumerate(chosen(events, args.cuts, rng)):
        for event in events[done:at]:
            disk.take(event)
        done = at
        home = args.folder / f"cut-{number}"
        disk.cut(rng, home, luck)
        for line in asyncio.run(broken(home, list(promises(events[:at])))):
            sys.stdout.write(f"cut {number} after event {at}: {line}\n")
        shutil.rmtree(home)
    kept = "copied" if any(isinstance(event, Copy) for event in events) else "recorded"
    sys.stdout.write(f"{kept} {len(events)} {sum(1 for _ in promises(events))}\n")


if __name__ == "__main__":
    main()
