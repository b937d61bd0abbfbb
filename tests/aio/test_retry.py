"""Back-off waits longer after each attempt, with full jitter."""

from math import inf
from random import Random

import pytest

from belino.aio.retry import TRIES, Retry, backoff
from belino.domain.errors import StoreError
from belino.testing import FakeClock


@pytest.mark.parametrize(
    ("attempt", "ceiling"), [(0, 0.5), (1, 0.5), (2, 1.0), (3, 2.0), (7, 32.0), (8, 60.0), (10_000, 60.0)]
)
def test_the_wait_lies_anywhere_under_a_ceiling_that_doubles_up_to_a_minute(attempt: int, ceiling: float) -> None:
    waits = [backoff(attempt, rng=Random(seed)) for seed in range(500)]
    assert 0 <= min(waits) < ceiling * 0.05
    assert ceiling * 0.95 < max(waits) <= ceiling


def test_the_same_dice_give_the_same_wait() -> None:
    assert backoff(3, first=1, most=9, rng=Random(7)) == backoff(3, first=1, most=9, rng=Random(7))


async def test_a_call_to_the_store_is_repeated_and_reported_until_it_succeeds() -> None:
    told, failures = list[str](), iter(range(TRIES))

    class HastyClock(FakeClock):
        async def sleep(self, seconds: float) -> None:
            self.shift(seconds)

    async def store() -> str:
        if next(failures, None) is not None:
            raise StoreError("the index is broken")
        return "stored"

    assert await Retry(HastyClock(), tries=inf, report=told.append)("what arrives", store) == "stored"
    assert told == ["what arrives cannot be stored: the index is broken"] * TRIES + [""]
