"""A database check that cannot be made is retried and says why; only corruption is called damage."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from belino.domain.errors import StoreError
from belino.domain.outcome import Finding
from belino.gateway.gateway import Gateway
from belino.gateway.maintenance import CHECK_TRIES, check_database
from belino.storage.home import Home
from belino.storage.sqlite import quick_check
from belino.storage.store import Store, open_store
from belino.testing import FakeClock
from gateway.house import House, until

# Takes every descriptor that this process may have; the first wait gives them back, or none does.
EXHAUSTED = """
import asyncio, os, resource, sys
from pathlib import Path
from belino.gateway.maintenance import check_database
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing import FakeClock

class Relief(FakeClock):
    async def sleep(self, seconds):
        if sys.argv[2] == "once":
            while taken:
                os.close(taken.pop())

taken = []

async def main():
    store = await open_store(Home.at(Path(sys.argv[1])), clock=FakeClock())
    await store.counts()
    await asyncio.to_thread(int)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    found = await check_database(store, Relief())
    while taken:
        os.close(taken.pop())
    print(found.ok, found.says, found.cure, sep="\\n")
    await store.close()

asyncio.run(main())
"""


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Store]:
    store = await open_store(Home.at(path), clock=FakeClock())
    try:
        yield store
    finally:
        await store.close()


def checked(home: Path, how: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", EXHAUSTED, str(home), how], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_descriptors_for_a_moment_the_check_is_made_again(tmp_path: Path) -> None:
    assert checked(tmp_path / "home", "once")[:2] == ["True", "whole, by quick_check"]


def test_without_descriptors_at_all_the_check_says_so_and_advises_no_restore(tmp_path: Path) -> None:
    ok, says, cure = checked(tmp_path / "home", "never")
    assert (ok, says) == ("False", "could not be checked: unable to open database file: Too many open files")
    assert "says nothing about the data" in cure
    assert "restore" not in cure


class Patient(FakeClock):
    """A clock that notes how long it was asked to wait, and does not."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


class Checked:
    """A store whose checks end as the test says."""

    def __init__(self, *ends: str | StoreError) -> None:
        self._ends = list(ends)

    async def check_database(self) -> str:
        end = self._ends.pop(0)
        if isinstance(end, StoreError):
            raise end
        return end


async def look(clock: FakeClock, *ends: str | StoreError) -> Finding:
    return await check_database(Checked(*ends), clock)  # type: ignore[arg-type]


async def test_a_check_that_fails_is_made_again_after_longer_and_longer_waits() -> None:
    clock = Patient()
    found = await look(clock, *[StoreError("disk I/O error")] * (CHECK_TRIES - 1), "")
    assert (found.ok, found.says) == (True, "whole, by quick_check")
    assert [wait <= 2**at for at, wait in enumerate(clock.waits)] == [True] * (CHECK_TRIES - 1)


async def test_a_check_that_never_succeeds_reports_the_error_itself() -> None:
    found = await look(Patient(), *[StoreError("disk I/O error")] * CHECK_TRIES)
    assert (found.ok, found.says) == (False, "could not be checked: disk I/O error")


async def test_corruption_is_damage_at_once_and_names_the_remedies() -> None:
    clock = Patient()
    found = await look(clock, "row 3 missing from index messages_once")
    assert (found.ok, found.says) == (False, "damaged: row 3 missing from index messages_once")
    assert "belino doctor --repair" in found.cure
    assert "belino restore DIR" in found.cure
    assert clock.waits == []


async def test_a_page_of_garbage_is_damage(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as store:
        await store.counts()
    database = tmp_path / "home" / "belino.db"
    with database.open("r+b") as file:
        file.seek(20 * 4096)
        file.write(b"\xff" * 4096)
    async with opened(tmp_path / "home") as store:
        found = await check_database(store, Patient())
        assert found.says.startswith("damaged: ")


def test_a_page_that_cannot_be_read_now_is_not_damage() -> None:
    class Row:
        def execute(self, query: str) -> "Row":
            return self

        def fetchone(self) -> tuple[str]:
            return ("*** in database main ***\nTree 4 page 4: unable to get the page. error code=10",)

    with pytest.raises(sqlite3.OperationalError, match="error code=10"):
        quick_check(Row())  # type: ignore[arg-type]


async def test_a_gateway_checks_again_with_the_next_sweep_what_it_could_not_check(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.at_work() as gateway:
        await until(lambda: gateway.soundness()[0].says == "whole, by quick_check")

    async def failing(self: Store) -> str:
        raise StoreError("disk I/O error")

    monkeypatch.setattr(Store, "check_database", failing)
    async with house.at_work() as gateway:
        await as_time_goes_by(house, gateway, "could not be checked: disk I/O error")
        monkeypatch.undo()
        await as_time_goes_by(house, gateway, "whole, by quick_check")


async def as_time_goes_by(house: House, gateway: Gateway, says: str) -> None:
    """Until the gateway says so of its database, minute by minute."""
    async with asyncio.timeout(60):
        while gateway.soundness()[0].says != says:
            await house.clock.advance(60)
            await asyncio.sleep(0.001)
