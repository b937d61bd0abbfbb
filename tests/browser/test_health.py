"""What needs the owner, on the page: accounts that do not work, groups that ask, the configuration, a test of media."""

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


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with Telegram() as telegram:
        yield telegram


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return home


def configure(home: Path, telegram: Telegram, **more: object) -> None:
    adapters = {"telegram": {"token": "env:BELINO_TEST_TOKEN", "api_url": telegram.server.url}}
    (home / "belino.json").write_text(json.dumps({"adapters": adapters, **more}))


@pytest.fixture
def gateway(home: Path, telegram: Telegram) -> Iterator[GatewayProcess]:
    configure(home, telegram)
    with GatewayProcess(home, environment={"BELINO_TEST_TOKEN": telegram.server.token}) as gateway:
        yield gateway


def items(page: Page, title: str) -> Locator:
    return page.get_by_role("dialog").get_by_role("list", name=title, exact=True).get_by_role("listitem")


def test_an_account_that_does_not_work_is_seen_and_connected_again_and_the_configuration_reloaded(
    page: Page, enter: Enter, telegram: Telegram, home: Path
) -> None:
    enter(page)
    door = page.get_by_role("button", name=re.compile("^Status"))
    expect(door).to_have_accessible_name("Status")
    telegram.refuse("sendMessage")
    telegram.write("Eve")
    expect(door).to_have_accessible_name("Status, 1 to look at")
    expect(page.locator("#health-news")).to_contain_text("telegram:default does not work: sending: Telegram does not")

    door.click()
    expect(items(page, "Accounts").first).to_contain_text(re.compile("telegramunauthorized since .*: sending: "))
    expect(page.get_by_text("Nothing needs you.")).to_be_visible()
    no_violation(page)
    telegram.accept()
    page.get_by_role("button", name="Reconnect: telegram:default").click()
    expect(page.get_by_text("Connected: telegram:default.")).to_be_visible()
    expect(items(page, "Accounts").first).to_contain_text("telegramrunning")
    telegram.code()

    configure(home, telegram, agent={"name": "Bea"}, server={"session_hours": 1})
    page.get_by_role("button", name="Reload configuration").click()
    said = page.get_by_role("dialog").get_by_role("status")
    expect(said).to_have_text("Applied: agent.name. Needs a restart: server.session_hours.")
    expect(page.get_by_text("Some keys need a restart: server.session_hours.")).to_be_visible()
    (home / "belino.json").write_text("{")
    page.get_by_role("button", name="Reload configuration").click()
    expect(page.get_by_role("alert").filter(has_text="it is not valid JSON")).to_be_visible()
    expect(page.get_by_text("the running configuration is in use").first).to_be_visible()
    notice = items(page, "Notices")
    expect(notice).to_contain_text(["The configuration is rejected"])
    no_violation(page)
    page.get_by_role("button", name=re.compile("^Dismiss: The configuration is rejected")).click()
    expect(page.get_by_text("Nothing needs you.")).to_be_visible()
    expect(page.get_by_role("heading", name="Status")).to_be_focused()


def test_a_group_that_the_bot_was_added_to_is_allowed_and_its_media_tested(
    open_page: OpenPage, enter: Enter, telegram: Telegram
) -> None:
    page = enter(open_page(width=320, height=700, scheme="dark"))
    telegram.invite()
    page.get_by_role("button", name=re.compile("^Conversations, .*1 group waiting")).click()
    page.get_by_role("button", name="People, 1 waiting").click()
    expect(items(page, "Groups that ask")).to_contain_text([re.compile("Harbour.*added by Ann")])
    no_violation(page)
    no_sideways_scroll(page)
    page.get_by_role("button", name="Allow: Harbour", exact=True).click()
    expect(page.get_by_text("Harbour is allowed: Ann may command the agent there.")).to_be_visible()
    expect(items(page, "Groups you decided about")).to_contain_text(["Ann and owners may command the agent"])
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    telegram.post(text="@belino_bot hello")
    expect(page.get_by_role("list").filter(has=page.get_by_text("Harbour")).first).to_be_visible()

    page.get_by_role("button", name=re.compile("^Status")).click()
    page.get_by_role("button", name="Test media: telegram:default").click()
    page.get_by_role("combobox", name="Where to send the test of telegram:default").select_option(label="Harbour")
    no_violation(page)
    page.get_by_role("button", name="Send the test: telegram:default").click()
    expect(items(page, "Results of telegram:default")).to_have_count(4)
    expect(items(page, "Results of telegram:default")).to_contain_text([
        re.compile("✓ telegram:default picture: sent as photo and read back"),
        re.compile("✓ telegram:default voice note: sent as voice and read back"),
        re.compile("✓ telegram:default document: sent as document and read back"),
        re.compile("✓ telegram:default album: sent as photo and read back"),
    ])  # fmt: skip
    expect(page.get_by_text("All kinds of media arrive.")).to_be_visible()
    no_sideways_scroll(page)
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_role("button", name="People", exact=True).click()
    page.get_by_role("button", name="Revoke: Harbour").click()
    expect(page.get_by_text("There are none, besides those in the configuration.")).to_be_visible()


def test_taking_over_from_a_webhook_asks_first(page: Page, enter: Enter, telegram: Telegram) -> None:
    enter(page)
    telegram.hook("http://127.0.0.1:9/hook")
    page.get_by_role("button", name=re.compile("^Status, ")).click()
    page.get_by_role("button", name="Take over: telegram:default").click()
    expect(page.get_by_text("The other program then gets no events")).to_be_visible()
    assert telegram.server.updates.webhook.url
    page.get_by_role("button", name="Take over now: telegram:default").click()
    expect(page.get_by_text("telegram:default gets its events now; before, a webhook at 127.0.0.1")).to_be_visible()
    expect(items(page, "Accounts").first).to_contain_text("telegramrunning")
