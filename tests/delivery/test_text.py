"""A reply's text as messages within a platform's limits, cut at the best places."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.delivery.text import Text, TextPart, caption, chunk, length, texts
from belino.domain.graphemes import is_boundary
from belino.domain.limits import Limits, Markup, Once, Rich, Unit
from belino.testing.telegram.rich import rich_message
from delivery.platforms import PLATFORMS
from delivery.test_dialects import read_html
from delivery.test_markup import MARKDOWN

TELEGRAM = PLATFORMS["telegram"]
ADDRESS = " (https://b.c)"
LONG = MARKDOWN.flatmap(lambda text: st.integers(1, 120).map(lambda times: (text + " word\n") * times))

CLUSTERS = ("e\u0301", "👨\u200d👩\u200d👧", "👍🏽", "🇨🇭", "\u0915\u094d\u0937\u093f", "\u1112\u1161\u11ab", "\r\n")
PIECES = st.sampled_from(
    [
        *CLUSTERS,
        "a",
        "word",
        "Long sentence. ",
        " ",
        "\n",
        "\n\n",
        "。",
        "```\n",
        "```py\n",
        "~~~~\n",
        "\n```\n",
        "....",
        "\t",
    ]
)
FENCE_LINES = re.compile(r"\n?[ ]{0,3}(`{3,}|~{3,})[^\n]*\n?")

TEXTS = st.one_of(st.lists(PIECES, max_size=200).map("".join), st.text(max_size=400))


def small(markup: Markup, chars: int = 60, **more: object) -> Limits:
    return Limits(text_chars=chars, once=Once.KEY, markup=markup, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("platform", sorted(PLATFORMS))
@settings(max_examples=15, deadline=None)
@given(source=LONG)
def test_no_message_is_longer_than_its_platform_takes(platform: str, source: str) -> None:
    limits = PLATFORMS[platform]
    for text in texts(source, limits):
        assert text.text.strip()
        assert 0 < length(text, limits) <= limits.text_chars


@settings(max_examples=80, deadline=None)
@given(source=LONG, chars=st.integers(40, 300))
def test_each_message_in_html_stands_alone_and_its_plain_words_are_the_same(source: str, chars: int) -> None:
    limits = small(Markup.HTML, chars, counts_markup=False, unit=Unit.UTF16)
    for text in texts(source, limits):
        shown, plain = read_html(text.text), text.plain or text.text
        # In a table both write the address out; plain text marks what should be hidden.
        assert shown.replace(ADDRESS, "").replace("||", "") == plain.replace(ADDRESS, "").replace("||", "")


@settings(max_examples=60, deadline=None)
@given(words=st.lists(st.sampled_from(["one", "two.", "👍🏽", "**bold**", "`code`", "\n\n"]), max_size=400))
def test_no_word_is_lost_between_messages(words: list[str]) -> None:
    source = " ".join(words)
    whole = texts(source, small(Markup.PLAIN, 1_000_000))
    parts = texts(source, small(Markup.PLAIN, 80))
    assert "".join(part.text for part in parts).split() or not whole
    assert "".join("".join(p.text for p in parts).split()) == "".join("".join(p.text for p in whole).split())


def test_a_style_that_is_cut_goes_on_in_the_next_message() -> None:
    parts = texts(f"**{'word ' * 30}end**", small(Markup.HTML))
    assert len(parts) > 2
    assert all(part.text.startswith("<b>") and part.text.endswith("</b>") for part in parts)


def test_a_code_block_that_is_cut_is_closed_and_opened_again_with_its_language() -> None:
    code = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(12)) + "```\nDone."
    parts = [part.text for part in texts(code, small(Markup.CHAT, 80))]
    assert len(parts) > 2
    assert all(part.startswith("```python\n") for part in parts)
    assert all(part.count("```") == 2 for part in parts)
    assert parts[-1].endswith("```\n\nDone.")


def test_what_a_platform_does_not_count_leaves_room_for_text() -> None:
    source = "**a** " * 20
    shown = len("a " * 20) - 1
    assert len(texts(source, small(Markup.HTML, shown, counts_markup=False))) == 1
    assert len(texts(source, small(Markup.HTML, shown))) > 1


def test_characters_beyond_the_first_plane_count_twice_where_utf16_is_counted() -> None:
    assert len(texts("😀" * 60, small(Markup.PLAIN, unit=Unit.UTF16))) == 2
    assert len(texts("😀" * 60, small(Markup.PLAIN, unit=Unit.BYTES))) == 4
    assert len(texts("😀" * 60, small(Markup.PLAIN))) == 1
    assert len(texts("é" * 60, small(Markup.MARKDOWN, unit=Unit.BYTES))) >= 2


@pytest.mark.parametrize("platform", sorted(PLATFORMS))
def test_a_text_without_anything_to_see_makes_no_message(platform: str) -> None:
    assert texts(" \n" * 200, PLATFORMS[platform]) == ()


def test_a_thousand_links_are_cut_in_the_time_of_reading_them() -> None:
    parts = texts("[x](https://example.org/1) " * 1_000, TELEGRAM)
    assert sum(part.text.count("</a>") for part in parts) == 1_000


def test_a_million_characters_are_cut_in_the_time_of_reading_them() -> None:
    words = [f"word{number:05}" for number in range(100_000)]
    parts = texts(" ".join(words), TELEGRAM)
    assert [word for part in parts for word in part.text.split()] == words
    assert max(len(part.text) for part in parts) <= 4096


def test_a_caption_is_formatted_and_refused_only_when_a_reader_would_see_too_much() -> None:
    assert caption("a **b**", TELEGRAM) == Text(text="a <b>b</b>", plain="a b")
    assert caption(f"**{'x' * 1024}**", TELEGRAM) is not None
    assert caption("x" * 1025, TELEGRAM) is None
    assert caption("x", PLATFORMS["line"]) is None


def test_a_message_of_many_links_is_cut_where_telegram_would_drop_some_and_loses_none() -> None:
    addresses = [f"https://example.org/page/{number}" for number in range(250)]
    parts = texts(", ".join(f"[{number}]({address})" for number, address in enumerate(addresses)), TELEGRAM)
    assert max(part.text.count("</a>") for part in parts) <= 100
    for address in addresses:
        assert sum(f'"{address}"' in part.text for part in parts) == 1
        assert sum(f"({address})" in part.plain for part in parts) == 1
    assert all(TELEGRAM.unit.length(part.plain) <= TELEGRAM.text_chars for part in parts)


def test_no_style_is_lost_beyond_the_hundred_that_telegram_reads() -> None:
    parts = texts("**word** and " * 250, TELEGRAM)
    assert sum(part.text.count("<b>") for part in parts) == 250
    assert max(part.text.count("<b>") for part in parts) <= 100


@settings(max_examples=60, deadline=None)
@given(source=LONG, chars=st.integers(300, 900))
@pytest.mark.parametrize("rich", list(Rich))
def test_both_formats_of_each_message_fit_and_the_rich_one_is_well_formed(rich: Rich, source: str, chars: int) -> None:
    markup = Markup.MRKDWN if rich is Rich.MARKDOWN else Markup.HTML
    limits = small(markup, chars, rich=rich, rich_chars=2 * chars)
    for text in texts(f"# Title\n\n{source}", limits):
        assert 0 < length(text, limits) <= chars
        if text.rich and rich is Rich.HTML:
            assert rich_message({"html": text.rich})["blocks"]
        assert rich is Rich.HTML or len(text.rich) <= 2 * chars + 100


@pytest.mark.parametrize("platform", ["telegram", "discord", "slack"])
def test_an_address_that_leaves_no_room_for_its_words_is_written_behind_them(platform: str) -> None:
    limits = PLATFORMS[platform]
    address = f"https://example.org/{'a' * (limits.text_chars - 30)}"
    parts = texts(f"Read [all of the report]({address}) now.", limits)
    assert len(parts) <= 3
    assert all(length(part, limits) <= limits.text_chars for part in parts)
    assert f"report ({address}) now." in "".join(part.plain or part.text for part in parts).replace(
        "report(", "report ("
    )


def strings(parts: tuple[TextPart, ...]) -> list[str]:
    return [str(part) for part in parts]


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, limit=st.integers(min_value=1, max_value=120))
def test_the_parts_joined_are_the_text_and_what_was_added_are_fence_lines(text: str, limit: int) -> None:
    parts = chunk(text, limit)
    assert "".join(part.body for part in parts) == text
    for part in parts:
        assert part.body
        assert not part.opening or FENCE_LINES.fullmatch(part.opening)
        assert not part.closing or FENCE_LINES.fullmatch(part.closing)


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, limit=st.integers(min_value=1, max_value=120))
def test_no_part_is_over_the_limit(text: str, limit: int) -> None:
    assert all(len(str(part)) <= limit for part in chunk(text, limit))


@settings(max_examples=400, deadline=None)
@given(text=st.lists(PIECES, max_size=200).map("".join), limit=st.integers(min_value=40, max_value=120))
def test_no_cut_falls_inside_what_a_reader_sees_as_one_character(text: str, limit: int) -> None:
    place = 0
    for part in chunk(text, limit):
        assert is_boundary(text, place)
        place += len(part.body)


@pytest.mark.parametrize("platform", sorted(PLATFORMS))
def test_three_hundred_short_lines_become_full_messages(platform: str) -> None:
    limits = PLATFORMS[platform]
    code = "\n".join(f"    value_{number} = compute({number}, of=table)" for number in range(300))
    made = texts(f"```python\n{code}\n```", limits)
    assert len(made) <= len(code) / limits.text_chars * 1.35 + 1
    assert all(length(text, limits) >= limits.text_chars * 0.8 for text in made[:-1])


def test_a_text_that_fits_is_one_part() -> None:
    assert strings(chunk("Hello.", 100)) == ["Hello."]


def test_an_empty_text_has_no_parts() -> None:
    assert chunk("", 100) == ()


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One here.\nTwo.\n\nThree is a longer line. Four.", "One here.\nTwo.\n\n"),
        ("One here. Two.\nThree is a longer line. Four.", "One here. Two.\n"),
        ("One here it is. Two is quite a bit longer here", "One here it is. "),
        ("one here it is and two is quite a bit longer", "one here it is and two is "),
        ("one" * 20, ("one" * 20)[:28]),
    ],
    ids=["paragraph", "line", "sentence", "word", "character"],
)
def test_the_best_place_to_cut_is_chosen(text: str, first: str) -> None:
    assert str(chunk(text, 28)[0]) == first


def test_a_paragraph_that_would_leave_a_part_nearly_empty_is_not_where_it_is_cut() -> None:
    text = "Hi.\n\n" + "word " * 40
    assert len(str(chunk(text, 100)[0])) > 80


def test_a_code_fence_is_closed_at_the_cut_and_opened_again_with_its_language() -> None:
    code = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(10)) + "```\nDone."
    first, *others = strings(chunk(code, 80))
    assert first.startswith("```python\n")
    assert first.endswith("\n```")
    assert all(part.startswith("```python\n") for part in others)
    assert others[-1].endswith("```\nDone.")
    assert all(part.count("```") == 2 for part in (first, *others))


def test_a_million_dots_are_read_once_and_not_once_per_dot() -> None:
    assert sum(len(part.body) for part in chunk("." * 1_000_000, 4_000)) == 1_000_000
