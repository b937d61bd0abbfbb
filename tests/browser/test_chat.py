"""Writing, reading and looking on the page: nothing is lost, nothing doubled, the place is kept."""

import re

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from belino.testing import GatewayProcess, make_png
from browser.acting import (
    MAIN,
    Enter,
    OpenPage,
    answered,
    bubbles,
    messages,
    say,
    scroll_to_top,
    send,
    wait_for_held,
    wait_for_messages,
)

pytestmark = pytest.mark.slow


def test_enter_sends_and_shift_enter_starts_a_new_line(page: Page, enter: Enter) -> None:
    enter(page)
    box = page.get_by_role("textbox", name="Message")
    box.press_sequentially("one")
    page.keyboard.press("Shift+Enter")
    box.press_sequentially("two")
    assert box.input_value() == "one\ntwo"
    page.keyboard.press("Enter")
    answered(page)
    expect(bubbles(page, "mine").locator(".words p")).to_have_text(re.compile("^one\\s*two$"))
    expect(box).to_have_value("")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()


def test_nothing_can_be_written_before_there_is_a_conversation_to_write_it_in(
    page: Page, gateway: GatewayProcess
) -> None:
    held: list[Route] = []
    page.route("**/api/conversations", lambda route: held.append(route), times=1)
    page.goto(gateway.login_url)
    expect(page.get_by_role("button", name="New conversation")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_be_disabled()
    expect(page.get_by_role("button", name="Attach files")).to_be_disabled()
    wait_for_held(page, held)
    held.pop().continue_()
    expect(page.get_by_role("textbox", name="Message")).to_be_focused()
    send(page, "hello")
    answered(page)


def test_a_draft_and_the_conversation_survive_a_reload(page: Page, enter: Enter) -> None:
    enter(page)
    page.get_by_role("button", name="New conversation").click()
    page.get_by_role("textbox", name="Name").fill("Garden")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Garden")).to_be_visible()
    page.get_by_role("textbox", name="Message").fill("half a thought")
    page.reload()
    expect(page.get_by_role("heading", name="Garden")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("half a thought")


def test_what_is_written_offline_is_sent_once_when_the_line_is_back(page: Page, enter: Enter) -> None:
    enter(page)
    page.context.set_offline(True)
    expect(page.locator("#connection-text")).to_have_text("Offline, reconnecting")
    send(page, "written in a tunnel")
    send(page, "and another")
    expect(page.locator('article[data-state="sending"]')).to_have_count(2)
    page.context.set_offline(False)
    answered(page, 2)
    expect(bubbles(page, "mine").locator(".words")).to_have_text(["written in a tunnel", "and another"])


def test_a_message_whose_acknowledgement_was_lost_is_sent_again_and_not_doubled(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    swallowed: list[str] = []

    def swallow_the_first_answer(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def from_server(frame: str | bytes) -> None:
            if '"type":"res"' in str(frame) and not swallowed:
                swallowed.append(str(frame))
                socket.close()
                server.close()
            else:
                socket.send(frame)

        server.on_message(from_server)

    page.route_web_socket("**/ws", swallow_the_first_answer)
    enter(page)
    send(page, "only once")
    answered(page)
    expect(page.locator('article[data-state="sending"]')).to_have_count(0)
    assert swallowed
    _, history = gateway.call("GET", f"/api/messages?conversation={MAIN}")
    assert [message["text"] for message in history["messages"]][:-1] == ["only once"]


def test_an_unsent_message_survives_a_reload(page: Page, enter: Enter) -> None:
    blocked = True

    def block(socket: WebSocketRoute) -> None:
        socket.close() if blocked else socket.connect_to_server()

    enter(page)
    page.route_web_socket("**/ws", block)
    page.reload()
    expect(page.locator("#connection-text")).to_have_text("Offline, reconnecting")
    send(page, "do not forget me")
    expect(page.locator('article[data-state="sending"]')).to_have_count(1)
    page.reload()
    expect(page.locator('article[data-state="sending"]')).to_contain_text("do not forget me")
    blocked = False
    answered(page)
    expect(bubbles(page, "mine")).to_have_count(1)


def test_a_refused_message_keeps_its_words_and_says_why(page: Page, enter: Enter) -> None:
    enter(page)
    send(page, "x" * 200_001)
    failed = page.locator('article[data-state="failed"]')
    expect(failed).to_contain_text("Not sent:")
    failed.get_by_role("button", name="Edit").click()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("x" * 200_001)
    expect(messages(page)).to_have_count(0)


def test_the_viewer_follows_the_keyboard_and_gives_the_focus_back(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    enter(page)
    say(gateway, "", *[(f"{name}.png", "image/png", make_png(64, 48)) for name in "abc"])
    answered(page)
    opener = page.get_by_role("button", name="Open b.png")
    opener.focus()
    page.keyboard.press("Enter")
    viewer = page.get_by_role("dialog", name="b.png")
    expect(viewer).to_be_visible()
    expect(viewer).to_contain_text("2 of 3 · 64 × 48")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog", name="c.png")).to_be_visible()
    for _ in range(8):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(opener).to_be_focused()


def test_why_tells_the_way_of_a_message_step_by_step(page: Page, enter: Enter) -> None:
    enter(page)
    send(page, "hello")
    answered(page)
    bubbles(page, "mine").get_by_role("button", name=re.compile("^Why")).click()
    story = page.get_by_role("dialog", name="What happened to this message")
    for stage in ("Received", "Stored", "Access", "Turn", "Reply", "Delivery"):
        expect(story.get_by_text(stage, exact=True).first).to_be_visible()


def test_why_shows_what_the_agent_is_told_and_its_price_when_somebody_wants_to_know(page: Page, enter: Enter) -> None:
    enter(page)
    send(page, "a <b>bold</b> word")
    answered(page)
    bubbles(page, "mine").get_by_role("button", name=re.compile("^Why")).click()
    story = page.get_by_role("dialog", name="What happened to this message")
    story.get_by_text("The agent's context").click()
    expect(
        story.get_by_text(re.compile(r"^A session that begins with this message gets \d+ tokens of context\.$"))
    ).to_be_visible()
    expect(story.locator("pre").last).to_contain_text("a <b>bold</b> word")


def test_older_messages_come_without_moving_what_is_read(
    open_page: OpenPage, enter: Enter, gateway: GatewayProcess
) -> None:
    for number in range(40):
        say(gateway, f"message {number}")
        wait_for_messages(gateway, 2 * number + 2)
    page = enter(open_page(height=500))
    expect(bubbles(page, "theirs").last).to_be_in_viewport()
    expect(page.get_by_text("message 39", exact=True)).to_be_visible()
    expect(page.get_by_text("message 0", exact=True)).to_have_count(0)
    scroll_to_top(page)
    expect(page.get_by_text("message 0", exact=True)).to_have_count(1)
    assert page.locator("#log").evaluate("log => log.scrollTop") > 500


def test_a_reader_who_scrolled_up_is_told_of_new_messages_and_not_moved(
    open_page: OpenPage, enter: Enter, gateway: GatewayProcess
) -> None:
    for number in range(8):
        say(gateway, f"message {number}")
        wait_for_messages(gateway, 2 * number + 2)
    page = enter(open_page(height=500))
    answered(page, 8)
    log = page.locator("#log")
    scroll_to_top(page)
    say(gateway, "something new")
    jump = page.get_by_role("button", name=re.compile("new message"))
    expect(jump).to_be_visible()
    assert log.evaluate("log => log.scrollTop") == 0
    jump.click()
    expect(bubbles(page, "theirs").last).to_be_in_viewport()
    expect(jump).to_be_hidden()


def test_a_scroll_that_nobody_made_does_not_lose_the_newest_message(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    say(gateway, "\n\n".join(f"line {number}" for number in range(60)))
    enter(page)
    answered(page)
    expect(bubbles(page, "theirs").last).to_be_in_viewport()
    # When the box below shrinks the browser moves the log, and tells of it late: the next message is there by then.
    page.evaluate(
        """() => {
          const messages = document.getElementById("messages");
          messages.style.minHeight = `${messages.offsetHeight + 500}px`;
          document.getElementById("log").dispatchEvent(new Event("scroll"));
        }"""
    )
    page.wait_for_function(
        """() => {
          const log = document.getElementById("log");
          return log.scrollHeight - log.scrollTop - log.clientHeight < 2;
        }"""
    )
