"""A disk that is read-only, slow or held by another process: refused with a reason, and recovery without a restart."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from belino.domain import failpoints
from belino.domain.errors import StoreError, StoreReadOnly
from belino.domain.outcome import Finding, TurnState
from belino.domain.turn import ReplyPart, Turn
from belino.gateway.gateway import Gateway
from belino.gateway.maintenance import SLOW_SECONDS
from belino.storage.home import Home
from belino.storage.sqlite import SqliteDatabase
from belino.storage.store import open_store
from belino.testing import FakeClock, GatewayProcess, ScriptedAgent
from belino.web.responses import refusal_of
from blob_files import content_of
from faults.looking import check_state_folder, history, until_idle
from gateway.house import House, until

HOLDER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "home")


@pytest.fixture(autouse=True)
def no_failpoints() -> Iterator[None]:
    yield
    failpoints.disarm()


def make_read_only(gateway: Gateway, wanted: bool) -> None:
    # As on a file system that was mounted read-only after an error: SQLite refuses every write, for root too.
    database = gateway.store._database
    assert isinstance(database, SqliteDatabase)
    database._connection.execute(f"PRAGMA query_only = {int(wanted)}")


def disk(gateway: Gateway) -> Finding | None:
    return next((finding for finding in gateway.soundness() if finding.name == "disk"), None)


async def test_a_read_only_folder_refuses_with_a_reason_and_goes_on_once_it_is_writable(house: House) -> None:
    running, answered = asyncio.Event(), asyncio.Event()

    class Waits(ScriptedAgent):
        async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
            running.set()
            await answered.wait()
            async for part in super().run_turn(turn):
                yield part

    house.agent = Waits("the first answer", "the second answer")
    async with house.at_work() as gateway:
        await gateway.accept(house.say("before"))
        await running.wait()
        make_read_only(gateway, True)
        during = house.say("during")
        for _ in range(3):
            with pytest.raises(StoreReadOnly, match="read-only; nothing was stored, make it writable"):
                await gateway.accept(during)
        found = disk(gateway)
        assert found is not None and not found.ok and "read-only" in found.says
        answered.set()
        await until(gateway.troubles)
        assert [message.text for message in await house.history(gateway)] == ["before"]
        make_read_only(gateway, False)
        await house.clock.advance(60)
        await gateway.accept(during)
        await until(lambda: gateway.counters.turns[TurnState.ANSWERED] == 2)
        await until(lambda: len(house.wire.seen) == 2)
        assert disk(gateway) is None
    assert house.wire.texts() == ["the first answer", "the second answer"]


def test_a_client_of_a_read_only_gateway_is_told_to_come_again() -> None:
    refusal = refusal_of(StoreReadOnly("the state folder is read-only"))
    assert (refusal.status, refusal.code, refusal.headers["Retry-After"]) == (503, "store_read_only", "10")
    assert "Make it writable" in str(refusal)


@pytest.mark.parametrize(
    ("action", "kind", "why"),
    [("EROFS", StoreReadOnly, "the file system is read-only"), ("EIO", StoreError, "Input/output error")],
)
@pytest.mark.parametrize("at", ["blob.created", "blob.sync.before", "blob.rename.before", "blob.rename.after"])
async def test_bytes_that_the_disk_does_not_take_leave_nothing_and_are_taken_later(
    tmp_path: Path, at: str, action: str, kind: type[StoreError], why: str
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"some bytes"

    store = await open_store(Home.at(tmp_path / "home"), clock=FakeClock())
    try:
        failpoints.arm(f"{at}:1:{action}")
        with pytest.raises(kind, match=f"could not be kept: {why}"):
            await store.keep(chunks(), mime="text/plain", limit=100)
        assert not list((tmp_path / "home" / "blobs" / "tmp").iterdir())
        blob = await store.keep(chunks(), mime="text/plain", limit=100)
        assert await content_of(store, blob) == b"some bytes"
    finally:
        await store.close()


async def test_a_slow_disk_keeps_everything_in_order_and_is_told_of(house: House) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        armed = failpoints.arm(f"store.commit.before:1:delay={SLOW_SECONDS * 2}")
        offered = [house.say(f"number {number}", channel="team") for number in range(200)]
        async with asyncio.TaskGroup() as group:
            for message in offered:
                group.create_task(gateway.accept(message))
            await until(lambda: disk(gateway))
            found = disk(gateway)
            assert found is not None and "slow: a write takes" in found.says
        assert armed.passes["store.commit.before"] < 20, "what waits for the disk shares its next commit"
        said = [message.text for message in await house.history(gateway, "team") if not message.author.is_agent]
        assert said == [message.text for message in offered]
        await house.ask(gateway, house.say("after"))
        await until(lambda: disk(gateway) is None)


@pytest.mark.slow
def test_a_database_that_another_process_holds_is_told_as_busy_and_nothing_is_lost(tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = {"conversation": "web:default:main", "message": "hello", "id": "once"}
    with GatewayProcess(home) as gateway:
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(home / "belino.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with holder:
            assert holder.stdout is not None and holder.stdout.readline() == "held\n"
            for _ in range(2):
                status, answer = gateway.call("POST", "/api/messages", said)
                assert (status, answer["error"]["code"]) == (503, "busy"), answer
                assert "Another process holds the database" in answer["error"]["message"]
            assert gateway.call("GET", "/healthz")[0] == 200
            assert holder.stdin is not None
            holder.stdin.close()
        assert gateway.call("POST", "/api/messages", said)[0] == 200
        until_idle(gateway)
        outcomes = [one["outcome"] for one in history(gateway, "web:default:main")]
        assert outcomes == ["answered", "answered"]
        assert gateway.stop() == 0
        assert "Traceback" not in gateway.log()
    check_state_folder(home)
    with sqlite3.connect(home / "belino.db") as database:
        assert database.execute("SELECT count(*) FROM turns").fetchone() == (1,)
