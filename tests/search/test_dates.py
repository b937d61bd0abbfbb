"""Days, months and years that a question names."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.search.dates import named_spans

NOW = datetime(2023, 6, 15, 10, 30, tzinfo=UTC)  # a Thursday


def days(text: str) -> list[tuple[str, int]]:
    """First day and number of days of each span."""
    return [(f"{first:%Y-%m-%d}", (last - first) // timedelta(days=1)) for first, last in named_spans(text, NOW)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what was said on 2023-05-07?", [("2023-05-07", 1)]),
        ("the report of 2023-05", [("2023-05-01", 31)]),
        ("What happened on 7 May 2023?", [("2023-05-07", 1)]),
        ("What happened on May 7th, 2023?", [("2023-05-07", 1)]),
        ("the 7th of May", [("2023-05-07", 1)]),
        ("the meeting on December 24", [("2022-12-24", 1)]),
        ("in May 2023", [("2023-05-01", 31)]),
        ("Where did we go in August?", [("2022-08-01", 31)]),
        ("What did she plan during 2022?", [("2022-01-01", 365)]),
        ("what did you say yesterday", [("2023-06-14", 1)]),
        ("was haben wir gestern gesagt", [("2023-06-14", 1)]),
        ("что было вчера", [("2023-06-14", 1)]),
        ("昨天说了什么", [("2023-06-14", 1)]),
        ("last Tuesday's call", [("2023-06-13", 1)]),
        ("on Thursday", [("2023-06-08", 1)]),
        ("two days ago", [("2023-06-13", 1)]),
        ("3 weeks ago", [("2023-05-22", 7)]),
        ("last week", [("2023-06-05", 7)]),
        ("this week", [("2023-06-12", 7)]),
        ("last weekend", [("2023-06-10", 2)]),
        ("last month", [("2023-05-01", 31)]),
        ("this year", [("2023-01-01", 365)]),
        ("am 7. Mai 2023", [("2023-05-07", 1)]),
        ("el 7 de mayo de 2023", [("2023-05-07", 1)]),
        ("7 мая 2023", [("2023-05-07", 1)]),
        ("2023年5月7日の会議", [("2023-05-07", 1)]),
        ("between 3 May 2023 and 5 May 2023", [("2023-05-03", 1), ("2023-05-05", 1)]),
    ],
)
def test_a_named_time_is_understood(text: str, expected: list[tuple[str, int]]) -> None:
    assert days(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "may I ask?",
        "on 31 February",
        "the 2023 budget",
        "version 2023-99",
        "march on",
        "a second ago",
        "99999-01-01",
        "",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert days(text) == []


@given(
    st.text(alphabet="0123456789-/. mayunlstweok年月日agodthf", max_size=40),
    st.datetimes(min_value=datetime(2000, 1, 1), timezones=st.just(UTC)),
)
def test_any_text_at_any_time_is_harmless(text: str, now: datetime) -> None:
    for first, last in named_spans(text, now):
        assert first < last
