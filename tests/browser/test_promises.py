"""A group whose files are only promised: nothing is fetched for a look, and what that saves is told by channel."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from belino.testing import GatewayProcess, make_png
from belino.testing.file_server import FakeUpload
from browser.acting import Enter, OpenPage, card, no_sideways_scroll, no_violation, reader
from browser.telegram import Telegram
from readers.made import line, make_pdf

pytestmark = pytest.mark.slow

REPORT = make_pdf(line("This is what page 1 says"), line("and page 2"))


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with Telegram() as telegram:
        yield telegram


@pytest.fixture
def gateway(tmp_path: Path, telegram: Telegram) -> Iterator[GatewayProcess]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    access = {"channels": {str(telegram.group["id"]): {"senders": ["*"]}}}
    account = {"token": "env:BELINO_TEST_TOKEN", "api_url": telegram.server.url, "access": access}
    (home / "belino.json").write_text(json.dumps({"adapters": {"telegram": account}}))
    with GatewayProcess(home, environment={"BELINO_TEST_TOKEN": telegram.server.token}) as gateway:
        yield gateway


def test_nothing_is_fetched_for_a_look_and_a_click_brings_it(
    page: Page, enter: Enter, gateway: GatewayProcess, telegram: Telegram
) -> None:
    telegram.post(document=FakeUpload(content=REPORT, name="report.pdf", mime="application/pdf"))
    telegram.post(document=FakeUpload(content=b"", size=25 * 1024 * 1024, name="huge.pdf", mime="application/pdf"))
    enter(page)
    page.get_by_role("link", name=re.compile("Harbour")).click()
    expect(card(page, "report.pdf")).to_contain_text("Not fetched yet")
    expect(page.locator("#savings")).to_contain_text("2 media, 0 fetched")
    expect(page.locator(".glance")).to_have_count(0)
    assert [one["outcome"] for one in gateway.call("GET", "/api/media")[1]["media"]] == ["referenced"] * 2

    button = page.get_by_role("button", name="Fetch report.pdf")
    button.focus()
    page.keyboard.press("Enter")
    expect(card(page, "report.pdf")).to_contain_text("This is what page 1 says")
    expect(card(page, "report.pdf").get_by_role("link", name="Download report.pdf")).to_be_focused()
    expect(page.locator("#savings")).to_contain_text("2 media, 1 fetched")

    page.get_by_role("button", name="Fetch huge.pdf").click()
    expect(card(page, "huge.pdf").locator(".file-trouble")).to_contain_text("25")
    expect(page.get_by_role("button", name="Fetch huge.pdf")).to_be_enabled()


def test_the_savings_are_told_by_channel(
    open_page: OpenPage, enter: Enter, gateway: GatewayProcess, telegram: Telegram
) -> None:
    telegram.post(document=FakeUpload(content=make_png(900, 600), name="a.png", mime="image/png"))
    page = enter(open_page(width=320, height=600))
    door = page.get_by_role("button", name=re.compile("1 media, 0 fetched"))
    door.click()
    expect(page.get_by_role("heading", name="What was not spent")).to_be_focused()
    items = reader(page).get_by_role("list", name="By channel").get_by_role("listitem")
    expect(items).to_have_count(1)
    expect(items).to_contain_text("Harbour")
    expect(items).to_contain_text("tokens not spent")
    no_violation(page)
    no_sideways_scroll(page)
    page.keyboard.press("Escape")
    expect(door).to_be_focused()
