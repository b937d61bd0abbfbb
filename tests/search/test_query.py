"""Queries: an intent becomes a value, with what it names."""

from datetime import UTC, datetime, timedelta

import pytest

from belino.domain.search import SearchIntent
from belino.search.query import parse_intent

NOW = datetime(2023, 6, 15, 10, 30, tzinfo=UTC)
DAY = datetime(2023, 6, 14, tzinfo=UTC)


def test_an_intent_is_a_value() -> None:
    intent = parse_intent('"green door" yesterday', now=NOW)
    assert intent == SearchIntent(
        text='"green door" yesterday',
        phrases=("green door",),
        spans=((DAY, DAY + timedelta(days=1)),),
        days=((DAY.date(), DAY.date() + timedelta(days=1)),),
    )
    assert len({intent, parse_intent('"green door" yesterday', now=NOW)}) == 1


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('the "green  door" and “blue”', ("green door", "blue")),
        ("„grüne Tür“ «porte verte» 「緑の扉」", ("grüne Tür", "porte verte", "緑の扉")),
        ('an open "quote', ()),
    ],
)
def test_phrases_are_what_is_quoted(text: str, phrases: tuple[str, ...]) -> None:
    assert parse_intent(text, now=NOW).phrases == phrases


@pytest.mark.parametrize("text", ["the photo of the door", "welche Datei", "файл", "照片"])
def test_a_query_about_media_says_so(text: str) -> None:
    assert parse_intent(text, now=NOW).of_media
    assert not parse_intent("the door", now=NOW).of_media
