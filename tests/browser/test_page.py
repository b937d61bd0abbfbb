"""The page in a real browser: reachable, still, narrow enough, and deaf to markup."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from belino.testing import GatewayProcess, make_png, make_wav
from browser.acting import (
    Enter,
    OpenPage,
    answered,
    attach,
    bubbles,
    chip,
    layout_shift,
    messages,
    no_sideways_scroll,
    no_violation,
    say,
    wait_for_held,
)

pytestmark = pytest.mark.slow

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def test_a_visitor_without_a_link_is_told_how_to_get_one(page: Page, gateway: GatewayProcess) -> None:
    page.goto(gateway.url)
    expect(page.get_by_role("heading", name="Sign in to belino")).to_be_visible()
    expect(page.get_by_text("belino login", exact=True)).to_be_visible()
    no_violation(page)


def test_a_link_signs_in_once_and_leaves_no_token_in_the_address(open_page: OpenPage, gateway: GatewayProcess) -> None:
    first, second = open_page(), open_page()
    first.goto(gateway.login_url)
    expect(first.locator("#connection")).to_have_attribute("data-state", "connected")
    assert "token" not in first.url
    first.reload()
    expect(first.locator("#connection")).to_have_attribute("data-state", "connected")
    second.goto(gateway.login_url)
    expect(second.get_by_text("That link was already used or is too old.")).to_be_visible()
    assert "token" not in second.url


def test_a_link_opened_in_a_tab_that_is_signed_out_signs_it_in(page: Page, gateway: GatewayProcess) -> None:
    page.goto(gateway.url)
    expect(page.get_by_role("heading", name="Sign in to belino")).to_be_visible()
    page.goto(gateway.login_url)
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
    assert "token" not in page.url


def test_the_message_box_is_one_key_away_and_the_conversation_stays(page: Page, enter: Enter) -> None:
    enter(page)
    skip = page.get_by_role("button", name="Skip to the message box")
    skip.focus()
    expect(skip).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Message")).to_be_focused()
    assert page.url.endswith("#c=web%3Adefault%3Amain")


def test_signing_out_ends_the_session_and_forgets_the_draft(page: Page, enter: Enter) -> None:
    enter(page)
    page.get_by_role("textbox", name="Message").fill("half a thought")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    assert page.evaluate("Object.keys(localStorage).length") == 0
    page.reload()
    expect(page.get_by_role("heading", name="Sign in to belino")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1440])
def test_axe_finds_no_violation(
    open_page: OpenPage, enter: Enter, gateway: GatewayProcess, width: int, scheme: str
) -> None:
    page = enter(open_page(width=width, height=800, scheme=scheme))
    no_violation(page)
    say(gateway, "Look: `code`, **bold**, a [link](https://example.org)", ("a.png", "image/png", make_png(640, 480)))
    say(gateway, "", ("b.wav", "audio/wav", make_wav()), ("notes.txt", "text/plain", b"one two three"))
    answered(page, 2)
    attach(page, ("c.png", "image/png", make_png(30, 20)))
    expect(chip(page, "c.png", "done")).to_be_visible()
    no_violation(page)
    page.get_by_role("button", name="Open a.png").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    no_violation(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("^Why")).first.click()
    expect(page.get_by_role("dialog").get_by_text("Received", exact=True)).to_be_visible()
    no_violation(page)
    page.keyboard.press("Escape")
    if width < 860:
        page.get_by_role("button", name="Conversations", exact=True).click()
        expect(page.get_by_role("link", name=re.compile("Look|notes|Main", re.IGNORECASE)).first).to_be_visible()
    page.get_by_role("button", name="New conversation").click()
    no_violation(page)


def test_pictures_that_load_late_move_nothing(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    for height in (300, 900, 200):
        say(gateway, "A picture", (f"{height}.png", "image/png", make_png(600, height)))
    held: list[Route] = []
    page.route("**/api/media/*", lambda route: held.append(route))
    enter(page)
    answered(page, 3)
    wait_for_held(page, held, 3)
    place = messages(page).first.bounding_box()
    for route in held:
        route.continue_()
    for image in page.locator(".picture img").all():
        expect(image).to_have_js_property("complete", True)
        assert image.evaluate("image => image.naturalWidth") == 600
    assert messages(page).first.bounding_box() == place
    assert layout_shift(page) < 0.1


def test_the_page_fits_a_screen_of_320_pixels(open_page: OpenPage, enter: Enter, gateway: GatewayProcess) -> None:
    page = enter(open_page(width=320, height=600))
    no_sideways_scroll(page)
    say(gateway, "word" * 200, (f"{'long' * 40}.txt", "text/plain", b"x"), ("w.png", "image/png", make_png(2000, 90)))
    say(
        gateway,
        f"```\n{'a line of code that is long ' * 9}\n```\n\n| {'cell' * 60} |",
        ("s.wav", "audio/wav", make_wav()),
    )
    answered(page, 2)
    attach(page, (f"{'long' * 40}.bin", "application/octet-stream", b"x"))
    expect(page.get_by_role("list", name="Attachments").get_by_role("listitem")).to_be_visible()
    no_sideways_scroll(page)
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name=re.compile("^Why")).first.click()
    no_sideways_scroll(page)


def test_a_low_window_keeps_its_head_and_some_messages_beside_a_long_message_with_many_files(
    open_page: OpenPage, enter: Enter, gateway: GatewayProcess
) -> None:
    say(gateway, "hello")
    page = enter(open_page(width=844, height=320))
    answered(page)
    attach(page, *((f"{number}.txt", "text/plain", b"x") for number in range(12)))
    expect(chip(page, "11.txt", "done")).to_be_attached()
    page.get_by_role("textbox", name="Message").fill("line\n" * 30)
    expect(page.get_by_role("heading", name="Main")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    assert page.locator("#log").evaluate("log => log.clientHeight") >= 48


def test_the_ring_around_the_first_conversation_is_whole(page: Page, enter: Enter) -> None:
    enter(page)
    link = page.get_by_role("link", name="Main")
    page.get_by_role("button", name="New conversation").focus()
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    cut = """link => {
      const style = getComputedStyle(link);
      const reach = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset);
      return link.closest("ul").getBoundingClientRect().top - (link.getBoundingClientRect().top - reach);
    }"""
    assert link.evaluate(cut) <= 0


def test_a_gateway_that_takes_long_to_answer_is_no_empty_page(page: Page, gateway: GatewayProcess) -> None:
    held: list[Route] = []
    page.route("**/api/login", lambda route: held.append(route))
    page.goto(gateway.login_url)
    wait_for_held(page, held)
    expect(page.get_by_role("heading", name="Opening belino")).to_be_visible()
    no_violation(page)
    held[0].continue_()
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
    expect(page.get_by_text("Opening belino")).to_be_hidden()


def test_choosing_the_conversation_that_is_open_closes_the_list_on_a_phone(open_page: OpenPage, enter: Enter) -> None:
    page = enter(open_page(width=390, height=844))
    page.get_by_role("button", name="Conversations", exact=True).click()
    page.get_by_role("link", name="Main").click()
    expect(page.locator("#scrim")).to_be_hidden()
    page.get_by_role("textbox", name="Message").click()


def test_markup_in_names_and_messages_is_shown_as_text(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    dialogs: list[str] = []
    asked: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    gateway.call("POST", "/api/conversations", {"name": "<b>Bold</b>"})
    enter(page)
    text = (
        f"{MARKUP} ![pixel](https://example.org/p.png) [go](javascript:alert(3)) [Image: x.png, ref:web_000000000000]"
    )
    say(gateway, text, (f"{MARKUP}.txt", "text/plain", b"hello"))
    answered(page)
    expect(bubbles(page, "mine").locator(".words")).to_have_text(text)
    expect(bubbles(page, "mine").locator(".file-name")).to_have_text(re.compile(re.escape("<img src=x onerror=")))
    expect(page.locator(".conversation-name").get_by_text("<b>Bold</b>", exact=True)).to_be_visible()
    assert page.locator("#messages :is(script, img)").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    assert dialogs == []
    assert [url for url in asked if not url.startswith((gateway.url, "blob:"))] == []


def test_no_sign_that_turns_letters_round_makes_a_name_read_as_another(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    turned = "\u202egnp.exe"  # reads as "exe.png" where the sign is obeyed
    gateway.call("POST", "/api/conversations", {"name": f"{turned} room"})
    enter(page)
    say(gateway, "", (turned, "application/octet-stream", b"MZ"))
    answered(page)
    expect(bubbles(page, "mine").locator(".file-name")).to_have_text("gnp.exe")
    expect(page.get_by_role("link", name="Download gnp.exe", exact=True)).to_be_visible()
    expect(page.locator(".conversation-name").get_by_text("gnp.exe room", exact=True)).to_be_visible()
    attach(page, (turned, "application/octet-stream", b"MZ"))
    expect(page.locator(".chip-name")).to_have_text("gnp.exe")
    page.reload()
    answered(page)
    assert "\u202e" not in page.locator("#app").inner_text()


def test_a_drawing_with_script_is_shown_as_pixels_and_its_source_only_downloaded(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><path d="M0 0h9v9z"/></svg>'
    enter(page)
    shown: list[str] = []
    page.on("response", lambda response: shown.append(response.headers.get("content-type", "")))
    say(gateway, "", ("drawing.svg", "image/svg+xml", svg))
    answered(page)
    expect(page.locator("#messages img")).to_have_js_property("complete", True)
    assert page.locator("#messages svg script").count() == 0
    pictures = [kind for kind in shown if kind.startswith("image/")]
    assert pictures and "image/svg+xml" not in pictures
    with page.expect_download() as download:
        page.get_by_role("link", name="Download drawing.svg").click()
    assert download.value.path().read_bytes() == svg
