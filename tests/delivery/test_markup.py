"""Markdown, read once, as text with styles."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.delivery.markup import PARSED_CHARS, Style, as_code, literal, parse

MARKDOWN = st.lists(
    st.sampled_from(
        [
            "**", "*", "_", "~~", "`", "```", "```py\n", "\n", "\n\n", "> ", "- ", "1. ", "# ", "[a](https://b.c)",
            "[", "](", ")", "![x](y)", "<b>", "&amp;", "&", "<", ">", "|a|b|\n|-|-|\n|1|2|\n", "---\n", "    ", "word",
            "javascript:alert(1)", "\\", "||", "|| ", "\\(", "👍🏽", "é", "\t", "[a]: b\n", '"',
        ]
    ),
    max_size=40,
).map("".join)  # fmt: skip


def styles(source: str) -> list[tuple[str, str, str]]:
    styled = parse(source)
    return [(span.style, styled.text[span.start : span.end], span.detail) for span in styled.spans]


@pytest.mark.parametrize(
    ("source", "text", "spans"),
    [
        ("a **b *c* d**", "a b c d", [(Style.ITALIC, "c", ""), (Style.BOLD, "b c d", "")]),
        ("~~no~~ `<x>`", "no <x>", [(Style.STRIKE, "no", ""), (Style.CODE, "<x>", "")]),
        ("## Title\ntext", "Title\n\ntext", [(Style.HEADING, "Title", "2")]),
        ("[a](https://b.c/?d=e&f)", "a", [(Style.LINK, "a", "https://b.c/?d=e&f")]),
        ("> a\n> > b\n\nc", "a\n\nb\n\nc", [(Style.QUOTE, "a\n\nb", "")]),
        ("```py x\n a\n\nb\n```\nc", " a\n\nb\n\nc", [(Style.PRE, " a\n\nb", "py")]),
        ("- a\n- b\n  - c\n\nd", "• a\n• b\n  • c\n\nd", []),
        ("3. a\n4. b", "3. a\n4. b", []),
        ("- a\n\n  b", "• a\n\nb", []),
        ("a\nb  \nc", "a\nb\nc", []),
        ("|a|bb|\n|-|-|\n|ccc|*d*|", "a    bb\n───  ──\nccc  d", [(Style.PRE, "a    bb\n───  ──\nccc  d", "")]),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        ("<b>&amp;</b>", "<b>&</b>", []),
        ("![alt](https://x/y.png)", "alt", [(Style.LINK, "alt", "https://x/y.png")]),
    ],
    ids=["nested", "code", "heading", "link", "quote", "fence", "list", "numbers", "loose", "breaks", "table", "rule",
         "html", "picture"],
)  # fmt: skip
def test_markdown_becomes_what_a_reader_sees(source: str, text: str, spans: list[tuple[str, str, str]]) -> None:
    assert parse(source).text == text
    assert styles(source) == spans


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("2*3*4", "2*3*4"),
        ("(a+b)*c*(d)", "(a+b)*c*(d)"),
        ("`2*3*4`", "2*3*4"),
        ("    2*3*4", "2*3*4"),
        (r"\(x_1\) and \[y = 2\]", r"\(x_1\) and \[y = 2\]"),
        ("a || b || c", "a || b || c"),
        ("x||y||z", "x||y||z"),
    ],
)
def test_signs_of_formulas_and_code_stay_as_they_are(source: str, text: str) -> None:
    assert parse(source).text == text
    assert {span.style for span in parse(source).spans} <= {Style.CODE, Style.PRE}


def test_emphasis_within_a_word_stays_emphasis() -> None:
    assert styles("*un*believable 中**粗**文") == [(Style.ITALIC, "un", ""), (Style.BOLD, "粗", "")]


def test_text_between_bars_is_hidden() -> None:
    assert styles("the ||end **is** near|| ok, ||b||") == [
        (Style.BOLD, "is", ""),
        (Style.SPOILER, "end is near", ""),
        (Style.SPOILER, "b", ""),
    ]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x"])
@pytest.mark.parametrize(
    "form", ["[a]({})", "![a]({})", "<{}>", "[a][b]\n\n[b]: {}"], ids=["link", "img", "auto", "ref"]
)
def test_an_address_that_could_do_harm_is_only_text(address: str, form: str) -> None:
    assert not parse(form.format(address)).spans


def test_an_address_in_a_table_is_told_behind_its_words() -> None:
    assert "the map (https://b.c/d)" in parse("|where|\n|-|\n|[the **map**](https://b.c/d)|").text


def test_an_address_that_leads_nowhere_is_told_behind_its_words() -> None:
    assert parse("see [the report](report.pdf)").text == "see the report (report.pdf)"
    assert parse("![](chart.png) ![chart.png](chart.png)").text == "chart.png chart.png"
    assert not parse("[a](report.pdf)").spans


@pytest.mark.parametrize(
    "source", ["> " * 30 + "deep", "[a]: https://b.c", "**x** " * PARSED_CHARS, "- " * 25 + "x"],
    ids=["quotes", "definition", "long", "lists"],
)  # fmt: skip
def test_what_cannot_be_read_well_is_shown_as_it_was_written(source: str) -> None:
    assert parse(source).text == source


@settings(max_examples=400, deadline=None)
@given(source=st.one_of(MARKDOWN, st.text(max_size=200)))
def test_no_text_makes_the_reader_stumble_and_every_span_lies_in_the_text(source: str) -> None:
    styled = parse(source)
    assert bool(styled.text.strip()) == bool(source.strip()) or not styled.text.strip()
    for span in styled.spans:
        assert 0 <= span.start < span.end <= len(styled.text)
    assert "".join(run.text for run in styled.runs()) == styled.text


@settings(max_examples=300, deadline=None)
@given(words=st.text(alphabet="ab*_`[]()<>&~|\\#-+.!1 ", min_size=1, max_size=30))
def test_a_name_as_code_reads_as_that_name(words: str) -> None:
    name = " ".join(words.split())
    shown = parse(f"x {as_code(words)}")
    assert shown.text == f"x {name}".rstrip()


@settings(max_examples=300, deadline=None)
@given(words=st.text(alphabet="ab*_`[]()<>&~|\\:/.1", min_size=1, max_size=30))
def test_a_reason_made_literal_reads_as_that_reason(words: str) -> None:
    assert parse(f"x {literal(words)}").text == f"x {words}"
