"""Commands on the page: typing a slash lists them, and belino answers without the agent."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.acting import Enter, answered, bubbles, no_violation, send

pytestmark = pytest.mark.slow


def test_a_slash_lists_the_commands_and_the_keyboard_chooses_one(page: Page, enter: Enter, tmp_path: Path) -> None:
    enter(page)
    box, commands = page.get_by_role("textbox", name="Message"), page.get_by_role("listbox", name="Commands")
    expect(commands).to_be_hidden()
    box.press_sequentially("/")
    expect(commands.get_by_role("option")).to_have_count(7)
    expect(commands.get_by_role("option").first).to_contain_text("/new")
    page.screenshot(path=tmp_path / "commands.png")
    box.press_sequentially("st")
    expect(commands.get_by_role("option")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(commands.get_by_role("option", selected=True)).to_contain_text("/status")
    page.keyboard.press("Enter")
    expect(box).to_have_value("/status")
    expect(commands).to_be_hidden()
    page.keyboard.press("Enter")
    answered(page)
    expect(bubbles(page, "theirs")).to_contain_text("Agent:")
    no_violation(page)


def test_a_click_takes_a_command_and_escape_closes_the_list(page: Page, enter: Enter) -> None:
    enter(page)
    box, commands = page.get_by_role("textbox", name="Message"), page.get_by_role("listbox", name="Commands")
    box.press_sequentially("/")
    page.keyboard.press("Escape")
    expect(commands).to_be_hidden()
    box.press_sequentially("m")
    commands.get_by_role("option").click()
    expect(box).to_have_value("/model ")
    expect(box).to_be_focused()
    box.fill("")
    send(page, "/help")
    answered(page)
    expect(bubbles(page, "theirs")).to_contain_text("List the commands")
