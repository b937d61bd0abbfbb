"""Sizes, durations, pages and times read as people write them."""

import pytest

from belino.domain.units import NoRange, clock_time, format_duration, format_size, parse_pages, parse_times, span


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


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("3", (3, 3)),
        ("3-5", (3, 5)),
        (" 3 – 5 ", (3, 5)),
        ("3-", (3, None)),
        ("3 to 5", (3, 5)),
        ("3..5", (3, 5)),
        ("1-1000000", (1, 1_000_000)),
    ],
)
def test_pages_are_a_number_or_a_range(text: str, pages: tuple[int, int | None]) -> None:
    assert parse_pages(text) == pages


@pytest.mark.parametrize("text", ["", "0", "5-3", "-3", "a", "3-5-7", "3,5", "1e3", "99999999", "٣", "3-\n5\x00"])
def test_other_pages_are_refused_with_the_way_to_write_them(text: str) -> None:
    with pytest.raises(NoRange, match="3-5"):
        parse_pages(text)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("0:30-1:10", (30.0, 70.0)),
        ("30-70", (30.0, 70.0)),
        ("30s – 70s", (30.0, 70.0)),
        ("0:30-", (30.0, None)),
        ("0:30", (30.0, None)),
        ("1:02:03-1:02:04.5", (3723.0, 3724.5)),
        ("0-0.5", (0.0, 0.5)),
    ],
)
def test_times_are_two_moments_or_one(text: str, times: tuple[float, float | None]) -> None:
    assert parse_times(text) == times


@pytest.mark.parametrize(
    "text", ["", "1:10-0:30", "5-5", "a-b", "0:30:", "nan", "-5", "9999999-", "1:2:3:4", "inf-inf"]
)
def test_other_times_are_refused_with_the_way_to_write_them(text: str) -> None:
    with pytest.raises(NoRange, match="0:30-1:10"):
        parse_times(text)


def test_a_moment_is_told_as_a_clock_tells_it() -> None:
    assert [clock_time(at) for at in (0, 7, 70, 3725, 1.25, 59.96)] == [
        "0:00",
        "0:07",
        "1:10",
        "1:02:05",
        "0:01.2",
        "1:00",
    ]


def test_numbers_are_told_in_runs() -> None:
    assert [span(numbers) for numbers in ([], [3], [1, 2, 3, 7], [2, 4, 5])] == ["", "3", "1-3, 7", "2, 4-5"]
