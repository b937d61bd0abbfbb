"""Marks: a message is found by the day that it names, in the time zone of the people who talk."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from search.told import CHATTER, told

NOW = datetime(2026, 10, 30, 12, 0, tzinfo=UTC)  # a Friday


def at(day: str, hour: int = 12) -> datetime:
    return datetime.fromisoformat(f"{day}T{hour:02}:00:00+00:00")


LINES = [
    ("Mei", "We signed the lease yesterday.", at("2026-07-20")),
    ("Omar", "We got lost in the woods last month.", at("2026-08-10")),
    ("Priya", "The inspection is on 28.10.2026 at nine.", at("2026-09-01")),
    ("Jonas", "Let us meet next Friday.", at("2026-09-09")),
    ("Mei", "And the permit ends 11/05/2026.", at("2026-09-11")),
    *((author, text, at("2026-10-01")) for author, text in CHATTER),
]


@pytest.mark.parametrize(
    ("intent", "found"),
    [
        ("what happened on 19 July 2026", "1"),
        ("what happened on 7/19/2026", "1"),
        ("where were they in July", "2"),
        ("what was on 2026-10-28", "3"),
        ("what is two days ago", "3"),
        ("who met on 18 September 2026", "4"),
        ("what ends on 5 November 2026", "5"),
    ],
)
async def test_a_message_is_found_by_the_day_that_it_names(tmp_path: Path, intent: str, found: str) -> None:
    async with told(tmp_path, LINES) as here:
        first = [one for one in (await here.find(intent, now=NOW)).results if one.message_id == found]
        assert first and first[0].kind == "found"
        assert found in (await here.ids(intent, now=NOW))[:3]


async def test_the_reason_is_the_day(tmp_path: Path) -> None:
    async with told(tmp_path, LINES) as here:
        first = (await here.find("what about 19 July 2026", now=NOW)).results[0]
        assert first.relevance_signal == "date:2026-07-19"


async def test_days_are_those_of_the_configured_time_zone(tmp_path: Path) -> None:
    lines = [("Ann", "The roof leaked yesterday.", at("2026-07-20", hour=23)), *LINES[5:]]
    for number, (zone, day) in enumerate((("UTC", "19 July 2026"), ("Asia/Tokyo", "20 July 2026"))):
        async with told(tmp_path / str(number), lines, zone=ZoneInfo(zone)) as here:
            assert (await here.ids(f"what leaked on {day}", now=NOW))[0] == "1"
            page = await here.find(f"what happened on {day}", now=NOW)
            assert page.results[0].relevance_signal.startswith("date:")


async def test_the_day_of_a_question_is_that_of_who_asks(tmp_path: Path) -> None:
    lines = [("Ann", "first", at("2026-07-20", hour=16)), ("Bo", "second", at("2026-07-20", hour=14)), *CHATTER]
    async with told(tmp_path, lines, zone=ZoneInfo("Asia/Tokyo")) as here:
        asked = at("2026-07-21", hour=16)  # in Tokyo it is the 22nd
        found = [one.message_id for one in (await here.find("yesterday", now=asked)).results if one.kind == "found"]
        assert found == ["1"]


async def test_a_mark_is_no_word(tmp_path: Path) -> None:
    async with told(tmp_path, LINES) as here:
        page = await here.find("d20260719 m202607 nmei", now=NOW)
        assert page.found == 0
