"""The machine's own time and time zone, and a time that never goes back."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from belino.net import clock as machine_clock
from belino.net.clock import SteadyClock, SystemClock, time_zone
from belino.testing import FakeClock


async def test_the_real_clock_says_utc_and_never_goes_back() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.now().utcoffset() == timedelta(0)
    assert clock.monotonic() >= before


def test_a_steady_clock_goes_on_when_the_clock_is_turned_back_and_follows_it_forward() -> None:
    clock = FakeClock()
    steady, hour = SteadyClock(clock), timedelta(hours=1)
    start = clock.now()
    clock.turn(-hour)
    clock.shift(5)
    assert steady.now() == start + timedelta(seconds=5)
    clock.turn(3 * hour)
    assert steady.now() == clock.now() == start + 2 * hour + timedelta(seconds=5)
    clock.turn(-hour)
    assert steady.now() == start + 2 * hour + timedelta(seconds=5)


def test_a_time_zone_is_named_as_in_the_iana_database() -> None:
    summer = datetime(2026, 7, 1, tzinfo=UTC)
    assert summer.astimezone(time_zone("Europe/Berlin")).utcoffset() == timedelta(hours=2)
    assert summer.astimezone(time_zone("UTC")).utcoffset() == timedelta(0)


@pytest.mark.parametrize("name", ["Berlin", "../etc/passwd", "Europe", "a\x00b"])
def test_a_name_of_no_time_zone_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(ValueError, match=r"there is no time zone .*Europe/Berlin"):
        time_zone(name)


def test_without_a_name_the_time_zone_is_the_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    summer = datetime(2026, 7, 1, tzinfo=UTC)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert summer.astimezone(time_zone()).utcoffset() == timedelta(hours=9)
    monkeypatch.delenv("TZ")
    (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Pacific/Auckland")
    monkeypatch.setattr(machine_clock, "LOCAL_TIME", tmp_path / "localtime")
    assert summer.astimezone(time_zone()).utcoffset() == timedelta(hours=12)
