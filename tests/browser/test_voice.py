"""A voice message is recorded in the page: with a level and a length, sent or discarded, and refused with a reason."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from belino.testing import GatewayProcess
from browser.acting import (
    Enter,
    OpenPage,
    answered,
    attach,
    bubbles,
    chip,
    no_sideways_scroll,
    no_violation,
)
from browser.chromium import ELSEWHERE

pytestmark = pytest.mark.slow

BROKEN = "Object.defineProperty(navigator.mediaDevices, 'getUserMedia', { value: async () => { throw %s; } })"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway for all tests here, under two names; each test has a conversation of its own."""
    home = tmp_path_factory.mktemp("voice") / "home"
    home.mkdir(mode=0o700)
    (home / "belino.toml").write_text(f'[server]\nallowed_hosts = ["{ELSEWHERE}"]\n', encoding="utf-8")
    with GatewayProcess(home) as gateway:
        yield gateway


@pytest.fixture
def speaker(page: Page, come: Enter) -> Page:
    """A page whose browser lends it the microphone."""
    page.context.grant_permissions(["microphone"])
    return come(page)


def record(page: Page) -> Locator:
    """Begin a recording, and wait until something is heard."""
    page.get_by_role("button", name="Record a voice message").click()
    expect(page.get_by_role("timer")).to_have_text(re.compile(r"0:0[1-9]"))
    return page.get_by_role("group", name="Voice message")


def test_a_recording_shows_its_level_and_length_and_arrives_as_a_voice_message_that_plays(
    speaker: Page, gateway: GatewayProcess, place: str
) -> None:
    bar = record(speaker)
    expect(bar.get_by_role("button", name="Send the recording")).to_be_focused()
    expect(speaker.get_by_role("status").filter(has_text="Recording")).to_be_attached()
    speaker.wait_for_function(
        "[...document.querySelectorAll('#recording-level i')].some((bar) => parseFloat(bar.style.height) > 20)"
    )
    no_violation(speaker)
    speaker.keyboard.press("Enter")
    answered(speaker)
    expect(bar).to_be_hidden()
    expect(speaker.get_by_role("textbox", name="Message")).to_be_focused()
    mine = bubbles(speaker, "mine")
    expect(mine.locator(".file-name")).to_have_text("Voice message")
    expect(mine.locator(".file-facts")).to_have_text(re.compile(r"^0:0\d · .*B · audio/webm$"))
    (sent, _) = gateway.call("GET", f"/api/messages?conversation={place}")[1]["messages"]
    (media,) = sent["media"]
    assert (media["kind"], media["mime"], media["preview"]) == ("voice", "audio/webm", "waveform")
    assert 1 <= media["duration"] < 30
    expect(mine.get_by_role("img", name=re.compile(r"^Waveform, 0:0"))).to_be_visible()
    speaker.locator("audio").evaluate("audio => { audio.muted = true; return audio.play(); }")
    expect(speaker.locator(".glance")).to_have_attribute("style", re.compile("--played: [1-9]"))


def test_a_discarded_recording_leaves_nothing_and_the_focus_on_its_button(
    speaker: Page, gateway: GatewayProcess, place: str
) -> None:
    speaker.get_by_role("textbox", name="Message").fill("half a thought")
    bar = record(speaker)
    speaker.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    expect(speaker.get_by_role("button", name="Record a voice message")).to_be_focused()
    expect(speaker.get_by_role("textbox", name="Message")).to_have_value("half a thought")
    record(speaker).get_by_role("button", name="Discard the recording").click()
    expect(bar).to_be_hidden()
    expect(speaker.locator(".chip")).to_have_count(0)
    assert gateway.call("GET", f"/api/messages?conversation={place}")[1]["messages"] == []


def test_a_recording_leaves_with_what_is_written_and_attached(
    speaker: Page, gateway: GatewayProcess, place: str
) -> None:
    attach(speaker, ("notes.txt", "text/plain", b"one two three"))
    expect(chip(speaker, "notes.txt", "done")).to_be_visible()
    speaker.get_by_role("textbox", name="Message").fill("These are my notes")
    record(speaker).get_by_role("button", name="Send the recording").click()
    answered(speaker)
    sent = gateway.call("GET", f"/api/messages?conversation={place}")[1]["messages"][0]
    assert sent["text"] == "These are my notes"
    assert [media["kind"] for media in sent["media"]] == ["document", "voice"]


def test_a_recording_interrupted_by_another_conversation_is_kept_where_it_began(
    speaker: Page, gateway: GatewayProcess, place: str
) -> None:
    record(speaker)
    speaker.get_by_role("link", name=re.compile("^Main")).click()
    expect(speaker.get_by_role("heading", name="Main")).to_be_visible()
    expect(speaker.get_by_role("button", name="Record a voice message")).to_be_visible()
    expect(speaker.locator(".chip")).to_have_count(0)
    speaker.go_back()
    expect(speaker.locator('.chip[data-state="done"]')).to_contain_text("Voice message, 0:0")
    speaker.reload()
    kept = speaker.locator('.chip[data-state="done"]')
    expect(kept).to_contain_text("Voice message, 0:0")
    speaker.get_by_role("button", name="Send", exact=True).click()
    answered(speaker)
    assert gateway.call("GET", f"/api/messages?conversation={place}")[1]["messages"][0]["media"][0]["kind"] == "voice"


def test_a_recording_ends_at_its_limit_and_waits_for_a_decision(speaker: Page) -> None:
    speaker.clock.install()
    speaker.get_by_role("button", name="Record a voice message").click()
    bar = speaker.get_by_role("group", name="Voice message")
    expect(bar).to_be_visible()
    speaker.clock.fast_forward("09:30")
    expect(speaker.get_by_text("less than a minute is left")).to_be_visible()
    speaker.clock.fast_forward("00:31")
    expect(speaker.get_by_text("The limit of 10:00 is reached. Send the recording or discard it.")).to_be_visible()
    expect(speaker.get_by_role("timer")).to_have_text("10:00")
    no_violation(speaker)
    bar.get_by_role("button", name="Discard the recording").click()
    expect(bar).to_be_hidden()


def test_a_refused_microphone_is_explained_and_everything_else_works(page: Page, come: Enter) -> None:
    come(page)
    page.get_by_role("button", name="Record a voice message").click()
    expect(page.get_by_text("The microphone is not allowed here: allow it for this page")).to_be_visible()
    no_violation(page)
    page.get_by_role("textbox", name="Message").fill("then I write")
    page.keyboard.press("Enter")
    answered(page)
    expect(page.get_by_text("The microphone is not allowed here")).to_be_hidden()


def test_a_missing_or_broken_microphone_is_explained(open_page: OpenPage, come: Enter) -> None:
    troubles = {
        "new DOMException('no', 'NotFoundError')": "There is no microphone: connect one",
        "new DOMException('busy', 'NotReadableError')": "another program may be using it",
        "new DOMException('odd <b>thing</b>', 'OddError')": "The microphone cannot be used: odd <b>thing</b>",
    }
    for thrown, told in troubles.items():
        page = open_page()
        page.add_init_script(BROKEN % thrown)
        come(page)
        page.get_by_role("button", name="Record a voice message").click()
        expect(page.get_by_text(told)).to_be_visible()


def test_a_microphone_that_hears_nothing_from_the_beginning_is_told_so(page: Page, come: Enter) -> None:
    silent = "async () => new AudioContext().createMediaStreamDestination().stream"
    page.add_init_script(f"Object.defineProperty(navigator.mediaDevices, 'getUserMedia', {{ value: {silent} }})")
    come(page).get_by_role("button", name="Record a voice message").click()
    expect(page.get_by_text("The microphone is silent: check that it is on")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("The microphone is silent")).to_be_hidden()


def test_a_disconnected_microphone_keeps_what_was_recorded(speaker: Page) -> None:
    speaker.evaluate(
        """() => { const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
        navigator.mediaDevices.getUserMedia = async (wanted) => (window.lent = await ask(wanted)); }"""
    )
    bar = record(speaker)
    speaker.evaluate(
        "() => { const [track] = lent.getTracks(); track.stop(); track.dispatchEvent(new Event('ended')); }"
    )
    expect(speaker.get_by_text("The microphone was disconnected. Send the recording or discard it.")).to_be_visible()
    bar.get_by_role("button", name="Send the recording").click()
    answered(speaker)
    expect(bubbles(speaker, "mine").locator(".file-name")).to_have_text("Voice message")


def test_a_page_without_tls_on_another_host_says_why_it_cannot_record(page: Page, gateway: GatewayProcess) -> None:
    _, login = gateway.call("POST", "/api/logins", {})
    page.goto(login["url"].replace("127.0.0.1", ELSEWHERE))
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
    assert page.evaluate("isSecureContext") is False
    page.get_by_role("button", name="Record a voice message").click()
    expect(page.get_by_text("Browsers lend the microphone only to pages of this machine or with https")).to_be_visible()


def test_a_recording_fits_a_narrow_screen_in_the_dark(open_page: OpenPage, come: Enter) -> None:
    page = open_page(width=320, height=640, scheme="dark")
    page.context.grant_permissions(["microphone"])
    bar = record(come(page))
    no_sideways_scroll(page)
    for part in ("Discard the recording", "Send the recording"):
        expect(bar.get_by_role("button", name=part)).to_be_in_viewport(ratio=1)
    no_violation(page)
