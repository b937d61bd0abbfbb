"""A page of results says what was found, where, and how to go on, at its price."""

from datetime import UTC, datetime

import pytest

from belino.context import search
from belino.context.search import results_json, results_lines
from belino.domain.message import Author
from belino.domain.safe_text import one_line
from belino.domain.search import Coverage, Found, SearchPage
from belino.domain.tokens import estimate_tokens

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
COVERAGE = Coverage(messages_scanned=1200, time_range=(NOW, NOW))


def page(count: int, text: str = "word " * 200, *, cursor: str | None = None) -> SearchPage:
    found = [
        Found(
            message_id=str(number),
            thread_id=None,
            ts=NOW,
            author=Author(id="7", name="Ana"),
            text=text,
            thread_summary=None,
            relevance_signal="keyword:word",
        )
        for number in range(count)
    ]
    return SearchPage(results=tuple(found), coverage=COVERAGE, next_cursor=cursor, total=57)


def test_nothing_found_says_where_it_was_looked_for() -> None:
    empty = SearchPage(results=(), coverage=COVERAGE)
    assert results_lines(empty, "word", now=NOW) == (
        "Nothing found. 0 of 0 found in 1200 messages since 2026-03-04. Other words, or fewer, may find it."
    )
    nowhere = SearchPage(results=(), coverage=Coverage(messages_scanned=0, time_range=None))
    assert results_json(nowhere)["coverage"] == {"messages_scanned": 0, "time_range": None}


def test_few_results_are_told_at_length_and_many_in_proportion() -> None:
    one, eight, sixteen = (results_lines(page(count), "word", now=NOW) for count in (1, 8, 16))
    assert len(one.splitlines()[1]) > len(eight.splitlines()[1]) > 60
    assert estimate_tokens(eight) <= 390 and estimate_tokens(sixteen) <= 780


def test_a_result_of_another_year_says_so() -> None:
    old = page(1, "word")
    assert results_lines(old, "word", now=datetime(2027, 1, 1, tzinfo=UTC)).splitlines()[1].startswith("0|2026-03-04")


def test_the_last_line_tells_how_to_go_on() -> None:
    last = results_lines(page(8, cursor="abc"), "word", now=NOW).splitlines()[-1]
    assert last == ("8 of 57 found in 1200 messages since 2026-03-04. More: cursor=abc. In full: channel_messages.")


def test_the_same_page_gives_the_same_words() -> None:
    assert results_lines(page(8), "word", now=NOW) == results_lines(page(8), "word", now=NOW)


def test_however_long_its_excerpts_may_be_a_text_is_cleaned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[str] = []

    def clean(text: str) -> str:
        cleaned.append(text)
        return one_line(text)

    monkeypatch.setattr(search, "one_line", clean)
    lines = results_lines(page(8, "[Image: word " * 1_000), "word", now=NOW).splitlines()
    assert all("word" in line for line in lines[1:9]) and len(cleaned) == 8
