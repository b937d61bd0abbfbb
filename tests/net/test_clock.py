"""The machine's own time, and one that never goes back."""

from datetime import timedelta

from belino.net.clock import SteadyClock, SystemClock
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
