"""What the fake platforms share."""

from belino.testing import FakeClock
from belino.testing.platform_server import LONGEST_SECONDS, SlidingWindow, retry_after


def test_a_call_waits_until_the_oldest_of_the_window_has_left_it() -> None:
    clock = FakeClock()
    window = SlidingWindow(clock)
    window.add("chat")
    clock.shift(4.0)
    window.add("chat")
    assert window.wait("chat", 3, 10.0) == 0.0
    assert window.wait("chat", 2, 10.0) == 6.0
    clock.shift(6.0)
    assert window.wait("chat", 2, 10.0) == 0.0
    assert window.wait("another chat", 1, 10.0) == 0.0


def test_a_key_may_have_a_short_and_a_long_limit() -> None:
    clock = FakeClock()
    window = SlidingWindow(clock)
    window.add("chat", 3)
    clock.shift(2.0)
    assert window.wait("chat", 3, 1.0) == 0.0
    assert window.wait("chat", 3, 60.0) == 58.0


def test_a_refused_call_counts_only_if_the_platform_counts_it() -> None:
    clock = FakeClock()
    window = SlidingWindow(clock)
    window.add("chat")
    assert [window.wait("chat", 1, 10.0) for _ in range(3)] == [10.0, 10.0, 10.0]


def test_the_longest_documented_window_is_kept() -> None:
    clock = FakeClock()
    window = SlidingWindow(clock)
    window.add("refused", 2)
    clock.shift(LONGEST_SECONDS - 1.0)
    window.add("refused")
    assert window.wait("refused", 3, LONGEST_SECONDS) == 1.0


def test_retry_after_is_whole_seconds_and_never_zero() -> None:
    assert [retry_after(wait) for wait in (0.01, 1.0, 1.2)] == [1, 1, 2]
