"""Scheduled backups are made when they are due, whoever made the last one, and are told about when they are not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from belino.domain.errors import ConfigError
from belino.gateway.maintenance import Backups, check_backups
from belino.storage.audit import audit_home
from belino.storage.backup_check import verify_backup
from belino.storage.backup_config import BackupConfig
from belino.storage.backup_schedule import made_backups
from belino.storage.home import Home
from belino.storage.restore import restore
from belino.storage.store import open_store
from belino.testing import FakeClock
from blob_files import path_of
from gateway.house import House, until

DAILY = BackupConfig(every="24h", keep=2, to=Path("../backups"))


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "home")
    await (await open_store(home, clock=FakeClock())).close()
    return home


def names(home: Home) -> list[str]:
    folder = home.path.parent / "backups"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@asynccontextmanager
async def running(backups: Backups, clock: FakeClock) -> AsyncIterator[None]:
    """Until it waits for the clock; and stopped again."""
    task = asyncio.create_task(backups.run())
    try:
        await until(lambda: clock.sleeping > 0 or task.done())
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def days_later(clock: FakeClock, days: float = 1.0) -> None:
    """An hour at a time, because each is made in a thread that the clock cannot wait for."""
    for _ in range(round(days * 24)):
        await clock.advance(3_600)
        await until(lambda: clock.sleeping > 0)


async def test_one_is_made_at_once_and_then_every_day_and_the_newest_are_kept(home: Home) -> None:
    clock = FakeClock(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    backups = Backups(DAILY, home, clock)
    async with running(backups, clock):
        assert names(home) == ["belino-20260102T030405Z"]
        await days_later(clock, 0.5)
        assert len(names(home)) == 1
        await days_later(clock, 2.6)
    assert names(home) == ["belino-20260104T030405Z", "belino-20260105T030405Z"]
    assert all(verify_backup(path).is_whole for path in made_backups(home.path.parent / "backups").values())
    (told,) = backups.finding()
    assert told.ok
    assert "the last one is of 2026-01-05 03:04 UTC" in told.says


async def test_a_restart_neither_repeats_nor_puts_off_the_next_one(home: Home) -> None:
    clock = FakeClock()
    async with running(Backups(DAILY, home, clock), clock):
        await days_later(clock, 0.5)
    first = names(home)
    async with running(Backups(DAILY, home, clock), clock):
        assert names(home) == first
        await days_later(clock, 0.6)
        assert len(names(home)) == 2


async def test_one_that_fails_deletes_nothing_is_told_and_is_tried_again(home: Home) -> None:
    clock = FakeClock()
    backups = Backups(DAILY, home, clock)
    async with running(backups, clock):
        first = names(home)
        home.key_file.rename(home.path / "elsewhere")
        await days_later(clock, 1.5)
        assert names(home) == first
        (told,) = backups.finding()
        assert not told.ok
        assert told.says.startswith("the last attempt failed: No such file or directory (")
        (home.path / "elsewhere").rename(home.key_file)
        await days_later(clock, 0.1)
        assert len(names(home)) == 2
        assert backups.finding()[0].ok


async def test_one_that_is_not_whole_deletes_no_older_one_and_only_the_last_such_is_kept(home: Home) -> None:
    clock = FakeClock()
    config = BackupConfig(every="24h", keep=1, to=Path("../backups"))
    backups = Backups(config, home, clock)
    async with running(backups, clock):
        store = await open_store(home, clock=clock)
        blob = await store.keep(_once(b"bytes"), mime="a/b", limit=10)
        await store.close()
        path_of(store, blob).write_bytes(b"rot")
        whole = names(home)
        for _ in range(2):
            await days_later(clock, 1.1)
            assert names(home)[:1] == whole
            assert [name.endswith("Z.damaged") for name in names(home)] == [False, True]
        assert blob.sha256 in backups.finding()[0].says


async def test_what_a_killed_one_left_goes_with_the_next(home: Home) -> None:
    clock = FakeClock()
    left = home.path.parent / "backups" / ".belino-20200101T000000Z.part-00"
    left.mkdir(parents=True)
    (left / "half").write_bytes(b"half")
    (left.parent / "letters").mkdir()
    async with running(Backups(DAILY, home, clock), clock):
        made, letters = names(home)
    assert (made.startswith("belino-"), letters) == (True, "letters")


async def test_a_clock_that_is_set_back_does_not_put_the_next_one_off(home: Home) -> None:
    clock = FakeClock()
    backups = Backups(BackupConfig(every="24h", keep=1, to=Path("../backups")), home, clock)
    async with running(backups, clock):
        (future,) = names(home)
        clock.turn(timedelta(days=-300))
        await days_later(clock, 0.1)
        (made,) = names(home)
        assert made < future
        await days_later(clock, 0.5)
        assert names(home) == [made]


async def test_none_is_written_into_the_state_folder(home: Home) -> None:
    clock = FakeClock()
    backups = Backups(BackupConfig(every="24h", to=Path("blobs/backups")), home, clock)
    async with running(backups, clock):
        assert "inside the state folder" in backups.finding()[0].says
    assert not (home.blobs / "backups").exists()


async def test_one_that_is_long_overdue_is_told_without_a_gateway_and_none_that_is_not_wanted(home: Home) -> None:
    clock = FakeClock()
    async with running(Backups(DAILY, home, clock), clock):
        now = clock.now()
    assert check_backups(DAILY, home, now + timedelta(hours=30))[0].ok
    assert "overdue" in check_backups(DAILY, home, now + timedelta(days=3))[0].says
    assert check_backups(BackupConfig(), home, now) == ()
    await Backups(BackupConfig(), home, clock).run()


@pytest.mark.parametrize("every", ["daily", "-1h", "0h", "24", "1s"])
def test_an_interval_that_is_none_is_refused_in_a_sentence(every: str) -> None:
    with pytest.raises(ConfigError, match="every"):
        BackupConfig(every=every, to=Path("x"))
    with pytest.raises(ConfigError, match="to is missing"):
        BackupConfig(every="24h")


async def test_a_gateway_makes_one_that_can_be_restored(house: House, tmp_path: Path) -> None:
    house.backup = BackupConfig(every="24h", to=tmp_path / "backups")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("remember this"))
        await until(lambda: bool(made_backups(tmp_path / "backups")))
        assert {finding.name for finding in gateway.soundness()} >= {"backup"}
    (made,) = made_backups(tmp_path / "backups").values()
    there = Home.at(tmp_path / "new")
    restore(there, made, now=datetime.now(UTC))
    assert audit_home(there).is_balanced


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
