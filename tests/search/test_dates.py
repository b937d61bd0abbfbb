"""Days, weeks, months and years that a question or a message names."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.search.dates import DayRange, asked_days, named_days, span

TODAY = date(2023, 6, 15)  # a Thursday


def days(text: str) -> list[tuple[str, int]]:
    """First day and number of days of each time that a question names."""
    return [(found.first.isoformat(), found.days) for found in asked_days(text, TODAY)]


def named(text: str, language: str = "") -> list[tuple[str, int]]:
    """The same of a message."""
    return [(found.first.isoformat(), found.days) for found in named_days(text, TODAY, language)]


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
        ("what broke on 28.10.2026", [("2026-10-28", 1)]),
        ("what broke on 10/28/2026", [("2026-10-28", 1)]),
        ("what broke on 28/10/2026", [("2026-10-28", 1)]),
        ("on 3/4/2023 or so", [("2023-04-03", 1), ("2023-03-04", 1)]),
        ("der Termin am 7.5.", [("2023-05-07", 1)]),
        ("three days after 2 November 2022", [("2022-11-05", 1)]),
        ("a week before 2023-05-10", [("2023-05-03", 1)]),
        ("la semaine dernière", [("2023-06-05", 7)]),
        ("letzten Freitag", [("2023-06-09", 1)]),
        ("上周五", [("2023-06-09", 1)]),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I went there yesterday", [("2023-06-14", 1)]),
        ("we met last Friday", [("2023-06-09", 1)]),
        ("we meet next Friday", [("2023-06-16", 1), ("2023-06-23", 1)]),
        ("the picnic is on Saturday", [("2023-06-10", 1), ("2023-06-17", 1)]),
        ("I got lost in July", [("2023-07-01", 31)]),
        ("back in March", [("2023-03-01", 31)]),
        ("due on 01.07.2023, or tomorrow", [("2023-07-01", 1), ("2023-06-16", 1)]),
        ("in two weeks", [("2023-06-26", 7)]),
        ("version 1.2.3 listens on 10.0.0.1", []),
        ("it may rain", []),
    ],
)
def test_a_message_names_days_before_and_after_it(text: str, expected: list[tuple[str, int]]) -> None:
    assert named(text) == expected


def test_a_word_that_is_a_day_in_one_language_only_is_none_in_another() -> None:
    assert named("on est allé hier", "french") == [("2023-06-14", 1)]
    assert named("hier ist der Schlüssel", "german") == []


def test_a_day_is_as_long_as_it_is_where_it_is_named() -> None:
    first, end = span(DayRange(date(2026, 10, 25), date(2026, 10, 26)), ZoneInfo("Europe/Berlin"))
    assert first == datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert end == datetime(2026, 10, 25, 23, tzinfo=UTC)  # the clock is set back that day


@given(
    st.text(alphabet="0123456789-/. mayunlstweok年月日agodthf", max_size=40),
    st.dates(),
)
def test_any_text_at_any_time_is_harmless(text: str, today: date) -> None:
    for found in (*asked_days(text, today), *named_days(text, today)):
        assert found.first < found.end


@pytest.mark.parametrize("day", [date.min, date.max])
@pytest.mark.parametrize("text", ["yesterday and tomorrow", "last Friday, next Friday", "three weeks ago", "next year"])
def test_days_before_the_first_and_after_the_last_are_passed_over(text: str, day: date) -> None:
    for found in (*named_days(text, day), *asked_days(text, day)):
        assert found.first < found.end


def test_the_first_day_of_all_has_a_time_in_every_zone() -> None:
    (first,) = asked_days("0001-01-01", TODAY)
    begins, ends = span(first, ZoneInfo("Asia/Tokyo"))
    assert begins < ends


def test_a_long_text_that_counts_days_from_nothing_is_done_with() -> None:
    assert named("three days after " * 6_000) == []
