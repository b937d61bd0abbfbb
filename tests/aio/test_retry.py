"""Back-off waits longer after each attempt, with full jitter."""

from random import Random

import pytest

from belino.aio.retry import backoff


@pytest.mark.parametrize(
    ("attempt", "ceiling"), [(0, 0.5), (1, 0.5), (2, 1.0), (3, 2.0), (7, 32.0), (8, 60.0), (10_000, 60.0)]
)
def test_the_wait_lies_anywhere_under_a_ceiling_that_doubles_up_to_a_minute(attempt: int, ceiling: float) -> None:
    waits = [backoff(attempt, rng=Random(seed)) for seed in range(500)]
    assert 0 <= min(waits) < ceiling * 0.05
    assert ceiling * 0.95 < max(waits) <= ceiling


def test_the_same_dice_give_the_same_wait() -> None:
    assert backoff(3, first=1, most=9, rng=Random(7)) == backoff(3, first=1, most=9, rng=Random(7))
