"""One function chooses what fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.context.budget import WORTH_A_LINE, NewestFit, newest_that_fit

costs = st.lists(st.integers(1, 200), max_size=30)
budgets = st.integers(0, 1000)


@given(costs, budgets)
def test_whole_messages_never_exceed_the_budget_and_one_more_would(newest_first: list[int], budget: int) -> None:
    told, room = newest_that_fit(newest_first, budget)
    assert room is None and sum(newest_first[:told]) <= budget
    assert told == len(newest_first) or sum(newest_first[: told + 1]) > budget


@given(costs, budgets)
def test_with_cuts_the_last_taken_has_exactly_the_room_that_is_left(newest_first: list[int], budget: int) -> None:
    told, room = newest_that_fit(newest_first, budget, cuts=True)
    if room is None:
        assert sum(newest_first[:told]) <= budget
    else:
        assert sum(newest_first[: told - 1]) + room <= max(budget, room)
        assert room >= WORTH_A_LINE or told == 1
    assert told >= 1 or not newest_first


@pytest.mark.parametrize(
    ("newest_first", "budget", "chosen"),
    [
        ([], 100, NewestFit(0)),
        ([10, 10], 20, NewestFit(2)),
        ([10, 11], 20, NewestFit(1)),
        ([60, 60], 100, NewestFit(2, 40)),
        ([61, 60], 100, NewestFit(1)),
        ([500], 100, NewestFit(1, 100)),
        ([500], 0, NewestFit(1, 0)),
    ],
)
def test_choosing_with_cuts(newest_first: list[int], budget: int, chosen: NewestFit) -> None:
    assert newest_that_fit(newest_first, budget, cuts=True) == chosen


def test_what_cannot_fit_any_more_is_not_even_priced() -> None:
    asked = []

    def prices() -> object:
        for price in (30, 80, 10):
            asked.append(price)
            yield price

    newest_that_fit(prices(), 50)  # type: ignore[arg-type]
    assert asked == [30, 80]
