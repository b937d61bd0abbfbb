"""The machine's own time."""

from datetime import timedelta

from belino.net.clock import SystemClock


async def test_the_real_clock_says_utc_and_never_goes_back() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.now().utcoffset() == timedelta(0)
    assert clock.monotonic() >= before
