"""A page is read as people see it; what they do not see is marked."""

import io

import pytest

from belino.domain.media import DocumentText, Unread
from belino.readers import html
from belino.readers.parts import HIDDEN_NOTE, ReadOptions


def read(content: bytes | str) -> DocumentText:
    raw = content.encode() if isinstance(content, str) else content
    return html.read(io.BytesIO(raw), ReadOptions(mime="text/html"))


def shown(content: bytes | str) -> str:
    (part,) = read(content).parts
    return part.text


def test_headings_lists_links_and_pictures() -> None:
    page = (
        "<title>Trip</title><h1>Plan</h1><p>Meet   at <a href='https://example.org/map'>the\nstation</a>.<br>Early.</p>"
        "<ul><li>tickets<li>water<ul><li>two bottles</ul></ul><ol><li>go<li>come back</ol><img alt='a map' src=x>"
        "<a href='#top'>top</a> <a href='javascript:x()'>run</a>"
    )
    assert shown(page) == (
        "Trip\n\n# Plan\n\nMeet at [the station](https://example.org/map).\nEarly.\n\n"
        "- tickets\n- water\n  - two bottles\n\n"
        "1. go\n2. come back\n\n![a map] top run"
    )


def test_tables_of_figures_are_tables_and_tables_that_arrange_a_page_are_not() -> None:
    data = "<table><tr><th>a<th>b</tr><tr><td>1<td>2 <b>x</b></tr></table>"
    assert shown(data) == "| a | b |\n| --- | --- |\n| 1 | 2 x |"
    assert shown(f"<table><tr><td><p>before</p>{data}</td></tr></table>") == (
        "before\n\n| a | b |\n| --- | --- |\n| 1 | 2 x |"
    )


def test_scripts_styles_and_comments_are_left_out() -> None:
    assert (
        shown("<style>p{}</style><script>var p='<p>no</p>'</script><!-- no --><p>yes<template>no</template>") == "yes"
    )


def test_code_keeps_its_lines_and_quotes_their_mark() -> None:
    assert shown("<pre>if x:\n    y()</pre>") == "```\nif x:\n    y()\n```"
    assert shown("<blockquote><p>said</p></blockquote>") == "> said"


HIDDEN = {
    "hidden": "<p hidden>obey</p>",
    "aria": "<p aria-hidden=true>obey</p>",
    "display": "<div style='color:red; DISPLAY : none'>obey</div>",
    "visibility": "<p style='visibility:hidden'>obey</p>",
    "size": "<span style='font-size:0px'>obey</span>",
    "tiny": "<span style='font-size: 0.1pt;'>obey</span>",
    "opacity": "<p style='opacity:0'>obey</p>",
    "indent": "<p style='text-indent:-9999px'>obey</p>",
    "off": "<p style='position:absolute;left:-5000px'>obey</p>",
    "white": "<p style='color:#FFF'>obey</p>",
    "same": "<div style='background-color: rgb(10, 20, 30)'><p style='color:#0a141e'>obey</p></div>",
    "font": "<body bgcolor=black><font color='#000000'>obey</font>",
    "sheet": "<style>/* x */ .a, .gone { display: none }</style><p class='b gone'>obey</p>",
    "id": "<style>#gone{font-size:0}</style><p id=gone>obey</p>",
    "nested": "<div hidden><ul><li><b>obey</b></ul></div>",
}


@pytest.mark.parametrize("page", HIDDEN.values(), ids=list(HIDDEN))
def test_what_nobody_sees_is_marked(page: str) -> None:
    text = read(f"<p>before</p>{page}<p>after</p>")
    assert text.parts[0].text.replace("\n\n", "\n") == "before\n(hidden text: obey)\nafter"
    assert text.notes == (HIDDEN_NOTE,)


SEEN = {
    "dark": "<div style='background:#000'><p style='color:white'>plain</p></div>",
    "classes": "<div class=dark><p style='color:white'>plain</p></div>",
    "print": "<style>@media print { .x { display:none } }</style><p class=x>plain</p>",
    "size": "<p style='font-size:10px'>plain</p>",
    "opacity": "<p style='opacity:0.8'>plain</p>",
    "false": "<p aria-hidden=false>plain</p>",
}


@pytest.mark.parametrize("page", SEEN.values(), ids=list(SEEN))
def test_what_is_seen_is_not_marked(page: str) -> None:
    text = read(page)
    assert text.parts[0].text == "plain"
    assert text.notes == ()


def test_hidden_text_cannot_close_its_mark() -> None:
    assert shown("<p hidden>a) obey (b</p>") == "(hidden text: a] obey [b)"


def test_the_page_says_in_which_set_it_is_written() -> None:
    page = "<meta charset=windows-1251><p>Поезд опаздывает</p>"
    assert shown(page.encode("cp1251")) == "Поезд опаздывает"
    assert shown("<meta charset=utf-16><p>Größe und Länge</p>") == "Größe und Länge"
    assert shown("<meta charset=utf-8><p>Größe und Länge</p>".encode("cp1252")) == "Größe und Länge"


def test_a_page_nested_without_end_is_still_read() -> None:
    text = shown("<p hidden>obey</p>" + "<div>" * 200_000 + "deep")
    assert text == f"{html.FLAT}\n\nobey deep", "who cannot tell hidden text from the rest says so"
    assert read("<p>x" * 20_000 + "wide").parts[-1].text.endswith("xwide")


def test_a_page_without_words_has_no_text() -> None:
    assert read("<html><script>x</script></html>").unread is Unread.NO_TEXT


def test_a_long_page_is_cut_at_its_headings() -> None:
    page = "".join(f"<h2>Section {number}</h2><p>{'words of it ' * 400}</p>" for number in range(6))
    assert [part.title for part in read(page).parts] == [f"Section {number}" for number in range(6)]
