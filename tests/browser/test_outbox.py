"""Answers that did not arrive, on the page: seen where they belong, sent or dropped; and what files arrive as."""

import asyncio
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from belino.domain.message import ConversationKey
from belino.domain.reply import Doubt, Parcel, ParcelState
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing import GatewayProcess, make_pdf, make_png, make_wav
from browser.acting import Enter, OpenPage, bubbles, no_sideways_scroll, no_violation, wait_for_held

pytestmark = pytest.mark.slow

MAIN = ConversationKey(platform="web", account="default", channel="main")
GONE = ConversationKey(platform="memory", account="closed", channel="far-away")
LONG = "A very long answer with averyveryveryveryverylongwordthatgoesonandon " * 4


async def leave_behind(home: Path) -> None:
    """One answer that was held, one that may have arrived, one that was given up, and one whose account is gone."""
    store = await open_store(Home.at(home), clock=SystemClock())
    ends = (
        ("held", ParcelState.HELD, "it had waited for more than 15 minutes when belino started"),
        ("lost", ParcelState.UNCERTAIN, "the platform did not answer within 60 seconds; it may have arrived"),
        ("dead", ParcelState.DEAD, "<b>the person has blocked us</b>"),
    )
    try:
        for key, state, reason in ends:
            await store.put_parcels([Parcel(key=key, conversation=MAIN, text=f"The {key} one. {LONG}", trace="t")])
            await store.end_parcel(key, state, reason, doubt=Doubt.UNANSWERED if key == "lost" else None)
        await store.put_parcels([Parcel(key="gone", conversation=GONE, text="The stranded one.", trace="t")])
    finally:
        await store.close()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    home = tmp_path / "home"
    # In a thread, because the browser's own event loop keeps this one busy.
    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, leave_behind(home)).result()
    with GatewayProcess(home) as gateway:
        yield gateway


def parcels(page: Page, title: str) -> Locator:
    return page.get_by_role("dialog").get_by_role("list", name=title, exact=True).get_by_role("listitem")


def test_what_was_not_sent_stands_in_its_conversation_and_is_sent_or_dropped_there(page: Page, enter: Enter) -> None:
    enter(page)
    answers = bubbles(page, "theirs")
    expect(answers).to_have_count(3)
    expect(answers.nth(0)).to_contain_text("Held: it had waited for more than 15 minutes")
    expect(answers.nth(1)).to_contain_text(
        "Uncertain: the platform did not answer within 60 seconds; it may have arrived"
    )
    expect(answers.nth(2)).to_contain_text("Not sent: <b>the person has blocked us</b>")
    no_violation(page)
    answers.nth(2).get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("article.theirs[data-state=stored]")).to_contain_text("The dead one.")
    answers.filter(has_text="The held one.").get_by_role("button", name="Drop").click()
    expect(answers).to_have_count(2)
    answers.filter(has_text="The lost one.").get_by_role("button", name="Send again").click()
    expect(page.locator("article.theirs[data-state=stored]")).to_have_count(2)
    expect(page.get_by_role("button", name="Outbox", exact=True)).to_be_visible()


def test_the_outbox_is_worked_off_by_keyboard_alone(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    enter(page)
    door = page.get_by_role("button", name="Outbox, 3 not sent")
    door.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Answers that are not sent")).to_be_focused()
    expect(parcels(page, "Waiting for your decision")).to_have_count(3)
    expect(parcels(page, "Being sent")).to_contain_text(
        [re.compile("The stranded one.*Not sent yet: no adapter for this account is configured. Next try at")]
    )
    no_violation(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=re.compile("^Send: The dead one"))).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("It is sent now.")).to_have_attribute("role", "status")
    expect(parcels(page, "Waiting for your decision")).to_have_count(2)
    expect(page.get_by_role("heading", name="Answers that are not sent")).to_be_focused()
    page.get_by_role("button", name=re.compile("^Drop: The lost one")).press("Enter")
    page.get_by_role("button", name=re.compile("^Drop: The held one")).press("Enter")
    expect(page.get_by_text("Nothing was held or given up.")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Drop: The stranded one")).press("Enter")
    expect(page.get_by_text("Everything else was sent.")).to_be_visible()
    no_violation(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Outbox", exact=True)).to_be_focused()
    left = gateway.call("GET", "/api/outbox")[1]["parcels"]
    assert {one["key"]: (one["state"], one["dropped"]) for one in left} == {
        "dead": ("sent", False),
        "lost": ("dead", True),
        "held": ("dead", True),
        "gone": ("dead", True),
    }


def test_who_has_moved_on_is_not_called_back_when_the_last_decision_is_done(page: Page, enter: Enter) -> None:
    enter(page)
    page.get_by_role("button", name="Outbox, 3 not sent").click()
    held: list[Route] = []
    page.route("**/api/outbox/lost", lambda route: held.append(route), times=1)
    page.get_by_role("button", name=re.compile("^Drop: The lost one")).press("Enter")
    next_one = page.get_by_role("button", name=re.compile("^Drop: The held one"))
    next_one.focus()
    next_one.evaluate("button => { button.same = true; }")
    wait_for_held(page, held)
    held.pop().continue_()
    expect(parcels(page, "Waiting for your decision")).to_have_count(2)
    expect(page.get_by_text("It will not be sent.")).to_be_visible()
    expect(next_one).to_be_focused()
    assert next_one.evaluate("button => button.same === true")


def test_what_another_decides_is_seen_at_once(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    enter(page)
    expect(bubbles(page, "theirs")).to_have_count(3)
    assert gateway.call("DELETE", "/api/outbox/held")[0] == 200
    expect(bubbles(page, "theirs")).to_have_count(2)
    expect(page.get_by_role("button", name="Outbox, 2 not sent")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_outbox_fits_a_screen_of_320_pixels(open_page: OpenPage, enter: Enter, scheme: str) -> None:
    page = enter(open_page(width=320, height=600, scheme=scheme))
    no_sideways_scroll(page)
    page.get_by_role("button", name="Conversations, 3 answers not sent").click()
    no_violation(page)
    page.get_by_role("button", name="Outbox, 3 not sent").click()
    expect(parcels(page, "Waiting for your decision")).to_have_count(3)
    no_violation(page)
    no_sideways_scroll(page)
    assert page.get_by_role("dialog").evaluate("sheet => sheet.scrollWidth <= sheet.clientWidth")


def test_pictures_sounds_and_papers_of_the_agent_are_shown_as_what_they_are(
    page: Page, enter: Enter, gateway: GatewayProcess
) -> None:
    enter(page)
    pending = Home.at(gateway.home).outgoing(MAIN) / "pending"
    files = {"1-chart.png": make_png(40, 30), "2-voice.wav": make_wav(0.2), "3-report.pdf": make_pdf("Report")}
    for name, content in files.items():
        (pending / name).write_bytes(content)
        os.utime(pending / name, (1_700_000_000, 1_700_000_000))
    assert gateway.call("POST", "/api/outbox/flush", {"conversation": str(MAIN)})[0] == 200
    stored = page.locator("article.theirs[data-state=stored]")
    picture = stored.get_by_role("button", name="Open 1-chart.png")
    expect(picture.locator("img")).to_have_js_property("naturalWidth", 40)
    expect(stored.locator("audio")).to_have_attribute("aria-label", "2-voice.wav")
    expect(stored.get_by_role("link", name="Download 3-report.pdf")).to_be_visible()
    no_violation(page)
    picture.click()
    expect(page.get_by_role("dialog")).to_contain_text("1-chart.png")
