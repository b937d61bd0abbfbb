"""Sizes and durations read as people write them."""

import pytest

from belino.domain.units import format_duration, format_size


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (0, "0B"),
        (512, "512B"),
        (1023, "1023B"),
        (1024, "1KB"),
        (847 * 1024, "847KB"),
        (1024**2 - 1, "1.0MB"),
        (2 * 1024**2, "2.0MB"),
        (int(2.4 * 1024**2), "2.4MB"),
        (1024**3 - 1, "1.0GB"),
        (int(1.2 * 1024**3), "1.2GB"),
    ],
)
def test_sizes_read_as_people_write_them(size: int, told: str) -> None:
    assert format_size(size) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0s"), (0.2, "1s"), (12, "12s"), (59.7, "1m00s"), (75, "1m15s"), (3599.6, "1h00m"), (3725, "1h02m")],
)
def test_durations_read_as_people_say_them(seconds: float, told: str) -> None:
    assert format_duration(seconds) == told
