"""Strangers on the page: seen when they ask, let in by their code, and out again."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from belino.testing import GatewayProcess
from browser.acting import Enter, OpenPage, no_sideways_scroll, no_violation
from browser.telegram import Telegram

pytestmark = pytest.mark.slow

NAME = "<b>Eve</b>"


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with Telegram() as telegram:
        yield telegram


@pytest.fixture
def gateway(tmp_path: Path, telegram: Telegram) -> Iterator[GatewayProcess]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    config = {"adapters": {"telegram": {"token": "env:BELINO_TEST_TOKEN", "api_url": telegram.server.url}}}
    (home / "belino.json").write_text(json.dumps(config))
    with GatewayProcess(home, environment={"BELINO_TEST_TOKEN": telegram.server.token}) as gateway:
        yield gateway


def people(page: Page, title: str) -> Locator:
    return page.get_by_role("dialog").get_by_role("list", name=title, exact=True).get_by_role("listitem")


def test_a_stranger_is_let_in_by_code_and_out_again_by_keyboard_alone(
    page: Page, enter: Enter, telegram: Telegram
) -> None:
    enter(page)
    door = page.get_by_role("button", name=re.compile("^People"))
    expect(door).to_have_accessible_name("People")
    telegram.write(NAME)
    expect(door).to_have_accessible_name("People, 1 waiting")
    expect(page.get_by_text(f"{NAME} asks for access")).to_have_attribute("role", "status")

    door.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Code")).to_be_focused()
    expect(people(page, "Waiting")).to_contain_text([re.compile(rf"{re.escape(NAME)}telegram · \d+.*5 tries left")])
    no_violation(page)
    page.keyboard.type("0000-0000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="There is no request with this code")).to_be_visible()
    expect(people(page, "Waiting")).to_contain_text(["4 tries left"])
    expect(page.get_by_role("textbox", name="Code")).to_be_focused()

    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type(telegram.code().lower())
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"{NAME} is approved and may write to the agent directly.")).to_be_visible()
    expect(page.get_by_text("There are no requests.", exact=True)).to_be_visible()
    expect(people(page, "Approved")).to_contain_text([NAME])
    no_violation(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=f"Revoke: {NAME}")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("No one was approved by code.")).to_be_visible()
    expect(page.get_by_role("heading", name="People and groups")).to_be_focused()
    page.keyboard.press("Escape")
    expect(door).to_be_focused()
    expect(door).to_have_accessible_name("People")


def test_a_refused_stranger_is_not_waited_for(
    page: Page, enter: Enter, gateway: GatewayProcess, telegram: Telegram
) -> None:
    telegram.write("Eve")
    enter(page)
    door = page.get_by_role("button", name="People, 1 waiting")
    door.click()
    page.get_by_role("button", name="Refuse: Eve").click()
    expect(people(page, "Waiting")).to_contain_text(["refused; may ask again at"])
    page.get_by_role("textbox", name="Code").fill(telegram.code())
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert").filter(has_text="There is no request with this code")).to_be_visible()
    assert [one["state"] for one in gateway.call("GET", "/api/pairings")[1]["pairings"]] == ["refused"]
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="People", exact=True)).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_who_waits_is_seen_and_let_in_on_a_screen_of_320_pixels(
    open_page: OpenPage, enter: Enter, telegram: Telegram, scheme: str
) -> None:
    page = enter(open_page(width=320, height=600, scheme=scheme))
    name = "Eve of the Very Long Name Who Goes On And On"
    telegram.write(name)
    page.get_by_role("button", name="Conversations, 1 person waiting").click()
    no_violation(page)
    page.get_by_role("button", name="People, 1 waiting").click()
    expect(people(page, "Waiting")).to_have_count(1)
    no_violation(page)
    no_sideways_scroll(page)
    assert page.get_by_role("dialog").evaluate("sheet => sheet.scrollWidth <= sheet.clientWidth")
    page.get_by_role("textbox", name="Code").fill(telegram.code())
    page.get_by_role("button", name="Approve").click()
    expect(people(page, "Approved")).to_contain_text([name])
    expect(page.get_by_role("button", name=f"Revoke: {name}")).to_be_visible()
