"""Questions with buttons on the page: chosen by mouse or keyboard, once, with their state after a restart."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from belino.testing import GatewayProcess
from browser.acting import MAIN, Enter, bubbles, no_sideways_scroll, no_violation, send
from browser.asking import HOSTILE
from browser.test_turns import TESTS, free_port

pytestmark = pytest.mark.slow


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway whose agent asks with buttons."""
    package = tmp_path / "installed" / "asking-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: asking\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[belino.agents]\nasking = browser.asking\n")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "belino.json").write_text(json.dumps({"agent": {"kind": "asking", "name": "Ada"}}))
    environment = {"PYTHONPATH": f"{package.parent}:{TESTS}"}
    with GatewayProcess(home, arguments=("--port", str(free_port())), environment=environment) as gateway:
        yield gateway


def test_a_choice_is_made_once_with_the_keyboard_and_stays_shown(
    page: Page, enter: Enter, gateway: GatewayProcess, tmp_path: Path
) -> None:
    enter(page)
    send(page, "First")
    asked = bubbles(page, "theirs").first
    yes, no = asked.get_by_role("button", name="Yes", exact=True), asked.get_by_role("button", name=HOSTILE)
    expect(no).to_have_text(HOSTILE)
    no_violation(page)
    page.set_viewport_size({"width": 320, "height": 640})
    no_sideways_scroll(page)
    page.set_viewport_size({"width": 1024, "height": 768})
    page.screenshot(path=tmp_path / "asked.png")
    gateway.kill()  # the question outlives it
    gateway.start()
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
    page.reload()
    yes.focus()
    page.keyboard.press("Tab")
    expect(no).to_be_focused()
    page.keyboard.press("Enter")
    expect(bubbles(page, "mine").last.locator(".words")).to_have_text(HOSTILE)
    expect(asked.locator(".chosen bdi")).to_have_text(HOSTILE)
    expect(asked.locator(".choice")).to_have_count(0)
    assert page.evaluate("document.activeElement !== document.body")
    expect(bubbles(page, "theirs").last.locator(".words")).to_have_text("You chose n.")
    no_violation(page)
    page.screenshot(path=tmp_path / "chosen.png")
    page.reload()
    expect(asked.locator(".chosen bdi")).to_have_text(HOSTILE)
    expect(asked.locator(".words")).to_have_text("First: shall I deploy?")
    expect(asked).not_to_contain_text("edited")
    expect(asked.locator(".choice")).to_have_count(0)
    assert page.locator('img[src="x"]').count() == 0


def test_a_message_that_gets_no_answer_on_purpose_says_so(page: Page, enter: Enter) -> None:
    enter(page)
    send(page, "Stay silent")
    expect(bubbles(page, "mine")).to_contain_text("Chose not to answer")
    expect(page.locator("#turn")).to_be_hidden()
    expect(bubbles(page, "theirs")).to_have_count(0)


def test_a_second_press_and_one_of_another_user_are_answered(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    page.route_web_socket("**/ws", without_choice)
    enter(page)
    send(page, "First")
    asked = bubbles(page, "theirs").first
    yes, no = asked.get_by_role("button", name="Yes", exact=True), asked.get_by_role("button", name=HOSTILE)
    press = {"conversation": MAIN, "press": yes.get_attribute("data-key")}
    _, made = gateway.call("POST", "/api/tokens", {"conversation": MAIN, "note": "robot"})
    _, other = gateway.call("POST", "/api/messages", press, token=made["token"])
    assert (other["outcome"], other["reason"]) == ("denied", "only the person who was asked may choose")
    gateway.call("POST", "/api/messages", press)
    expect(bubbles(page, "theirs").last.locator(".words")).to_have_text("You chose y.")
    no.click()
    expect(asked.get_by_role("status")).to_have_text("Already chosen: Yes.")
    expect(no).to_be_focused()
    no_violation(page)


def without_choice(page: WebSocketRoute) -> None:
    """A connection that loses what shows a choice, as a page behind the others has not heard of it yet."""
    server = page.connect_to_server()
    page.on_message(server.send)
    server.on_message(lambda frame: None if '"chosen":"' in str(frame) else page.send(frame))
