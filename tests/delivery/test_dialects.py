"""Text in each platform's markup."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from belino.delivery.dialects import render
from belino.delivery.markup import parse
from belino.domain.limits import Markup
from delivery.test_markup import MARKDOWN


def test_a_light_dialect_writes_addresses_out_and_escapes_nothing() -> None:
    source = "# Title\n**bold** and *slanted* ~~gone~~ `code` [words](https://example.org) a < b & c\n\n> said"
    shown = render(parse(source), Markup.LIGHT)
    assert "*Title*" in shown and "*bold* and _slanted_ ~gone~ `code`" in shown
    assert "words (https://example.org) a < b & c" in shown and "> said" in shown


TAGS = frozenset({"tg-spoiler", "b", "i", "s", "code", "pre", "a", "blockquote"})


class Strict(HTMLParser):
    """Reads HTML as Telegram does: a tag it does not know, or that is closed out of order, is an error."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        names = [name for name, _ in attrs]
        assert names == {"a": ["href"], "code": ["class"] if names else []}.get(tag, [])
        if tag == "a":
            assert (attrs[0][1] or "").lower().startswith(("http://", "https://", "mailto:", "tel:", "tg:"))
        assert tag not in self.open
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration")


def read_html(html: str) -> str:
    """The text of well-formed HTML."""
    reader = Strict()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader.text


@pytest.mark.parametrize(
    ("source", "html", "discord", "mrkdwn"),
    [
        ("**a *b***", "<b>a <i>b</i></b>", "**a *b***", "*a _b_*"),
        ("~~a~~ `b<`", "<s>a</s> <code>b&lt;</code>", "~~a~~ `b<`", "~a~ `b&lt;`"),
        ("# A\nb", "<b>A</b>\n\nb", "# A\n\nb", "*A*\n\nb"),
        ("#### A", "<b>A</b>", "**A**", "*A*"),
        ("[a](https://b.c/?d&e)", '<a href="https://b.c/?d&amp;e">a</a>', "[a](https://b.c/?d&e)", "<https://b.c/?d&amp;e|a>"),
        ("> a\n> b\n\nc", "<blockquote>a\nb</blockquote>\n\nc", "> a\n> b\n\nc", "> a\n> b\n\nc"),
        ("```py\na\n```", '<pre><code class="language-py">a</code></pre>', "```py\na\n```", "```\na\n```"),
        ("```\na & b\n```", "<pre>a &amp; b</pre>", "```\na & b\n```", "```\na &amp; b\n```"),
        ("1 < 2 & 3", "1 &lt; 2 &amp; 3", "1 \\< 2 & 3", "1 &lt; 2 &amp; 3"),
        (r"a\_b \*c\*", "a_b *c*", r"a\_b \*c\*", "a_b *c*"),
        ("https://a/b_c_d", "https://a/b_c_d", "https://a/b_c_d", "https://a/b_c_d"),
        (r"\# no", "# no", r"\# no", "# no"),
        ("**a `b` c**", "<b>a </b><code>b</code><b> c</b>", "**a `b` c**", "*a `b` c*"),
        ("[`a` b](https://c.d)", '<a href="https://c.d">a b</a>', "[`a` b](https://c.d)", "<https://c.d|`a` b>"),
        ("# A **b** c", "<b>A b c</b>", "# A b c", "*A b c*"),
    ],
    ids=["nested", "code", "heading", "deep", "link", "quote", "fence", "plain fence", "signs", "escaped", "address",
         "hash", "code in bold", "code in a link", "bold in a heading"],
)  # fmt: skip
def test_each_platform_gets_its_own_signs(source: str, html: str, discord: str, mrkdwn: str) -> None:
    styled = parse(source)
    assert render(styled, Markup.HTML) == html
    assert render(styled, Markup.CHAT) == discord
    assert render(styled, Markup.MRKDWN) == mrkdwn
    if "](" not in source:
        assert render(styled, Markup.PLAIN) == styled.text


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("[a](http://localhost:3000/b.c)", "a (http://localhost:3000/b.c)"),
        ("> **[a](http://nas/x)**", "<blockquote><b>a</b> (http://nas/x)</blockquote>"),
        ("# [a](tel:+491) b", "<b>a (tel:+491) b</b>"),
        ("[a](mailto:b@c.org) *d* [e](https://f.org)", 'a (mailto:b@c.org) <i>d</i> <a href="https://f.org">e</a>'),
        ("<b@c.org> [g](http://127.0.0.1/)", 'b@c.org <a href="http://127.0.0.1/">g</a>'),
    ],
    ids=["no dot", "in a quote", "phone", "mail", "address"],
)
def test_an_address_that_telegram_would_drop_stands_behind_its_words(source: str, html: str) -> None:
    assert render(parse(source), Markup.HTML) == html


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("[a](https://b/?c&d), **x**", "a (https://b/?c&d), x"),
        ("<https://b/c> and [https://b/c/](https://b/c)", "https://b/c and https://b/c/"),
        ("<me@b.org>", "me@b.org"),
        ("![a](https://b/c.png) [**d** `e`](https://f)", "a (https://b/c.png) d e (https://f)"),
    ],
    ids=["link", "address", "mail", "picture"],
)
def test_without_markup_the_address_of_a_link_stands_behind_its_words(source: str, plain: str) -> None:
    assert render(parse(source), Markup.PLAIN) == plain


@settings(max_examples=300, deadline=None)
@given(source=st.one_of(MARKDOWN, st.text(max_size=300)), cuts=st.tuples(st.integers(0, 300), st.integers(0, 300)))
def test_whatever_the_text_and_wherever_it_is_cut_the_html_is_well_formed_and_says_the_same(
    source: str, cuts: tuple[int, int]
) -> None:
    styled = parse(source)
    piece = styled.piece(min(cuts), min(max(cuts), len(styled.text)))
    for part in (styled, piece):
        html = render(part, Markup.HTML)
        if "\0" not in html and "\r" not in html:  # HTML has no such characters; its reader replaces them
            assert read_html(html) == part.text


@settings(max_examples=300, deadline=None)
@given(source=MARKDOWN)
@example(source="\\[a](https://b.c)```")
def test_fences_are_closed_on_every_platform_that_has_them(source: str) -> None:
    for markup in (Markup.CHAT, Markup.MRKDWN):
        assert render(parse(source), markup).count("```") % 2 == 0
