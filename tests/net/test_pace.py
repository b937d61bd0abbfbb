"""Waiting: back-off with full jitter, and what platforms ask for."""

from datetime import UTC, datetime
from random import Random

import pytest

from belino.net.pace import LONGEST_WAIT, backoff, retry_after

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("attempt", "ceiling"), [(0, 0.5), (1, 0.5), (2, 1.0), (3, 2.0), (7, 32.0), (8, 60.0), (10_000, 60.0)]
)
def test_the_wait_lies_anywhere_under_a_ceiling_that_doubles_up_to_a_minute(attempt: int, ceiling: float) -> None:
    waits = [backoff(attempt, rng=Random(seed)) for seed in range(500)]
    assert 0 <= min(waits) < ceiling * 0.05
    assert ceiling * 0.95 < max(waits) <= ceiling


def test_the_same_dice_give_the_same_wait() -> None:
    assert backoff(3, first=1, most=9, rng=Random(7)) == backoff(3, first=1, most=9, rng=Random(7))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("-3", 0.0),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("99999999", LONGEST_WAIT),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-AFTER": value}, now=NOW) == seconds


def test_a_missing_header_asks_for_nothing() -> None:
    assert retry_after({"Date": "7"}, now=NOW) is None
