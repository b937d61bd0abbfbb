"""The first minutes of a new user, in a real browser."""

import base64

import pytest
from playwright.sync_api import Page, expect

from belino.testing import GatewayProcess, make_jpeg
from browser.acting import Enter, answered, bubbles, chip, send

pytestmark = pytest.mark.slow

TRANSFER = """([name, type, content]) => {
  const transfer = new DataTransfer();
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  transfer.items.add(new File([bytes], name, { type }));
  return transfer;
}"""


def test_from_the_printed_address_to_an_answer_that_is_still_there_after_a_restart(
    page: Page, gateway: GatewayProcess
) -> None:
    page.goto(gateway.login_url)
    send(page, "Good morning to you all")
    answered(page)
    expect(bubbles(page, "theirs")).to_contain_text("5 words")
    gateway.stop()
    gateway.start()
    page.goto(gateway.login_url)
    expect(bubbles(page, "mine").locator(".words")).to_have_text(["Good morning to you all"])
    answered(page)


def test_a_picture_dropped_on_the_page_is_named_with_its_real_dimensions(page: Page, enter: Enter) -> None:
    enter(page)
    # Declared as a PNG under a name without a meaning: only the bytes say what it is.
    content = base64.b64encode(make_jpeg(321, 123)).decode()
    transfer = page.evaluate_handle(TRANSFER, ["holiday.png", "image/png", content])
    page.dispatch_event("#main", "drop", {"dataTransfer": transfer})
    expect(chip(page, "holiday.png", "done")).to_be_visible()
    send(page, "")
    answered(page)
    expect(bubbles(page, "theirs")).to_contain_text("image/jpeg")
    expect(bubbles(page, "theirs")).to_contain_text("321×123")
