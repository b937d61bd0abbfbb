"""What people and agents write in Markdown, drawn as they meant it."""

import pytest
from playwright.sync_api import Page, expect

from belino.testing import GatewayProcess
from browser.acting import Enter, OpenPage, answered, bubbles, no_sideways_scroll, no_violation, say

pytestmark = pytest.mark.slow

TABLE = """The biggest:
| City | People |
|:-----|-------:|
| **Oslo** | 709 037 |
| a \\| b | 1 | too much |
| Bergen |

After it."""
LISTS = """1. **First**
   goes on
   - beneath
     - deeper
   - beside

2. Second
   ```
   indented
     more
   ```
3. Third
---
* star"""
DIRECTIONS = """It says:

مرحبا بالعالم

- عنصر

and ends."""


def test_a_table_has_rows_and_columns_and_keeps_every_word(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    enter(page)
    say(gateway, TABLE)
    answered(page)
    words = bubbles(page, "mine").locator(".words")
    rows = words.get_by_role("row")
    assert [row.get_by_role("cell").all_inner_texts() for row in rows.all()[1:]] == [
        ["Oslo", "709 037"],
        ["a | b", "1 | too much"],
        ["Bergen", ""],
    ]
    assert rows.first.get_by_role("columnheader").all_inner_texts() == ["City", "People"]
    expect(words.get_by_role("cell", name="Oslo").locator("strong")).to_be_visible()
    expect(words.get_by_role("cell", name="709 037")).to_have_css("text-align", "end")
    assert words.get_by_role("paragraph").all_inner_texts() == ["The biggest:", "After it."]


def test_lists_stand_beneath_their_items_and_go_on_after_code(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    enter(page)
    say(gateway, LISTS)
    answered(page)
    words = bubbles(page, "mine").locator(".words")
    assert words.locator("> ol > li").all_inner_texts() == [
        "First\ngoes on\nbeneath\ndeeper\nbeside",
        "Second",
        "Third",
    ]
    assert words.locator("ol ul > li").all_inner_texts() == ["beneath\ndeeper", "deeper", "beside"]
    expect(words.locator("ol ul ul > li")).to_have_text("deeper")
    expect(words.locator("> ol").last).to_have_attribute("start", "3")
    expect(words.locator("pre")).to_have_text("indented\n  more")
    expect(words.get_by_role("separator")).to_be_visible()
    expect(words.locator("> ul")).to_have_text("star")


def test_each_paragraph_runs_in_its_own_direction(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    enter(page)
    say(gateway, DIRECTIONS)
    answered(page)
    words = bubbles(page, "mine").locator(".words")
    directions = [block.evaluate("block => getComputedStyle(block).direction") for block in words.locator("> *").all()]
    assert directions == ["ltr", "rtl", "rtl", "ltr"]


def test_everybody_can_use_many_tables_and_code_on_a_screen_of_320_pixels(
    open_page: OpenPage, enter: Enter, gateway: GatewayProcess
) -> None:
    page = enter(open_page(width=320, height=568))
    wide = "|".join(f"column{number}" for number in range(20))
    say(gateway, f"{TABLE}\n\n{wide}\n{'|'.join(['---'] * 20)}\n{wide}\n\n{LISTS}\n\n{LISTS}")
    answered(page)
    no_sideways_scroll(page)
    no_violation(page)


def test_long_code_scrolls_in_its_message_by_the_keyboard_too(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    enter(page)
    say(gateway, "```\n" + "\n".join(f"line {number}" for number in range(300)) + "\n```")
    answered(page)
    code = bubbles(page, "mine").locator("pre")
    box = code.bounding_box()
    assert box is not None and box["height"] < 768
    code.focus()
    page.keyboard.press("End")
    expect(code).to_be_focused()
    page.wait_for_function("code => code.scrollTop > 1000", arg=code.element_handle())
