"""Where a link in a message leads can be read before it is followed."""

import pytest
from playwright.sync_api import Page, expect

from belino.testing import GatewayProcess
from browser.acting import Enter, OpenPage, answered, bubbles, no_sideways_scroll, no_violation, say

pytestmark = pytest.mark.slow

# What is written, where the link leads, and the host that is shown beside it; none where the words name it themselves.
HOSTILE = [
    ("[https://bank.example](http://elsewhere.test/)", "http://elsewhere.test/", "elsewhere.test"),
    ("[bank.example](http://elsewhere.test/)", "http://elsewhere.test/", "elsewhere.test"),
    ("[HTTPS://BANK.EXAMPLE/](http://elsewhere.test/)", "http://elsewhere.test/", "elsewhere.test"),
    ("[https://bank.example.](http://bank.example.elsewhere.test/)", None, "bank.example.elsewhere.test"),
    ("[https://bank.example](http://bank.example.elsewhere.test/)", None, "bank.example.elsewhere.test"),
    ("[https://elsewhere.testing](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[https:bank.example](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[//bank.example](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[click here](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[https://bank.example (bank.example)](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[**https://bank.example**](http://elsewhere.test/)", None, "elsewhere.test"),
    ("**[https://bank.example](http://elsewhere.test/)**", None, "elsewhere.test"),
    ("[`https://bank.example`](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[https://bank\uff0eexample](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[https://bank\u3002example](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[\u200bhttps://bank.example\u2060](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[\u202etset.erehwesle//:sptth](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[https://elsewhere.test/\u202eelpmaxe.knab](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[https://elsewhere.test/\u05d0](http://elsewhere.test/)", None, "elsewhere.test"),
    ("[\u200b](http://elsewhere.test/)", None, "elsewhere.test"),
    ("http://bank.example@elsewhere.test/", "http://elsewhere.test/", "elsewhere.test"),
    ("http://u:p@elsewhere.test/a?b", "http://elsewhere.test/a?b", "elsewhere.test"),
    ("[http://u:p@elsewhere.test/](http://u:p@elsewhere.test/)", "http://elsewhere.test/", "elsewhere.test"),
    ("http://elsewhere.test\\@bank.example/", None, "elsewhere.test"),
    ("https://b\u0430nk.example/", None, "xn--bnk-6cd.example"),
    ("https://bank\uff0eexample/", None, "bank.example"),
    ("https:///bank.example", None, "bank.example"),
    ("http://2130706433/", None, "127.0.0.1"),
]
PLAIN = [
    "https://bank.example",
    "https://bank.example/a?b#c",
    "HTTPS://Bank.Example/",
    "http://bank.example:8080/x",
    "https://bank.example/K\u00f6ln",
    "[bank.example/help](https://bank.example/help)",
    "[https://bank.example](https://bank.example/long/way)",
]


def test_a_link_whose_words_do_not_name_its_host_shows_it(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    enter(page)
    say(gateway, "\n\n".join(written for written, _, _ in HOSTILE))
    answered(page)
    paragraphs = bubbles(page, "mine").locator(".words > p")
    expect(paragraphs).to_have_count(len(HOSTILE))
    for paragraph, (written, leads, host) in zip(paragraphs.all(), HOSTILE, strict=True):
        link = paragraph.get_by_role("link")
        expect(link.locator(".host"), written).to_have_text(f"({host})")
        assert link.evaluate("link => link.lastElementChild.className") == "host", written
        # It stands by itself, whatever turns the letters before it round.
        expect(link.locator(".host"), written).to_have_css("unicode-bidi", "isolate")
        assert link.evaluate("link => link.host") == host, written
        assert link.evaluate("link => link.username + link.password") == "", written
        if leads is not None:
            assert link.evaluate("link => link.href") == leads, written


def test_a_link_that_says_where_it_leads_is_shown_as_written(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    enter(page)
    say(gateway, "\n\n".join(PLAIN))
    answered(page)
    words = bubbles(page, "mine").locator(".words")
    expect(words.get_by_role("link")).to_have_count(len(PLAIN))
    expect(words.locator(".host")).to_have_count(0)


@pytest.mark.parametrize("written", ["[x](javascript:alert(1))", "[x](data:text/html,x)", "[x](//bank.example/)"])
def test_what_is_no_web_address_is_no_link(page: Page, enter: Enter, gateway: GatewayProcess, written: str) -> None:
    enter(page)
    say(gateway, written)
    answered(page)
    expect(bubbles(page, "mine").locator(".words").get_by_role("link")).to_have_count(0)


def test_hosts_beside_links_can_be_read_on_a_screen_of_320_pixels(
    open_page: OpenPage, enter: Enter, gateway: GatewayProcess
) -> None:
    page = enter(open_page(width=320, height=568))
    long_host = ".".join(["bank-example"] * 18)
    say(gateway, f"[https://bank.example](http://{long_host}.test/) and [here](http://elsewhere.test/)")
    answered(page)
    no_sideways_scroll(page)
    no_violation(page)
