"""What a person does on the page and looks for, in the words of the tests."""

import base64
import io
import math
import struct
import threading
import time
import wave
from collections.abc import Callable
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import FilePayload, Locator, Page, Route, expect

from belino.testing import GatewayProcess

MAIN = "web:default:main"
PATIENCE_SECONDS = 60.0

LAYOUT_SHIFT = """() => new Promise((resolve) => {
  let sum = 0;
  const add = (list) => { for (const shift of list) sum += shift.value; };
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  const end = () => { add(observer.takeRecords()); resolve(sum); };
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(end)));
})"""

Enter = Callable[[Page], Page]
OpenPage = Callable[..., Page]


def say(
    gateway: GatewayProcess,
    text: str,
    *files: tuple[str, str, bytes],
    conversation: str = MAIN,
    voice: bool = False,
) -> None:
    attachments = [
        {"file_name": name, "mime_type": mime, "content": base64.b64encode(content).decode(), "voice": voice}
        for name, mime, content in files
    ]
    body = {"conversation": conversation, "message": text, "attachments": attachments}
    status, answer = gateway.call("POST", "/api/messages", body)
    assert status == 200, answer


def messages(page: Page) -> Locator:
    return page.get_by_role("log", name="Messages").get_by_role("article")


def bubbles(page: Page, author: Literal["mine", "theirs"]) -> Locator:
    return page.locator(f"article.{author}")


def send(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message").fill(text)
    page.keyboard.press("Enter")


def answered(page: Page, times: int = 1) -> None:
    expect(bubbles(page, "theirs")).to_have_count(times)
    expect(page.locator("#turn")).to_be_hidden()


def attach(page: Page, *files: tuple[str, str, bytes]) -> None:
    payloads: list[FilePayload] = [{"name": name, "mimeType": mime, "buffer": content} for name, mime, content in files]
    page.locator("#files").set_input_files(payloads)


def chip(page: Page, name: str, state: str) -> Locator:
    return page.locator(f'.chip[data-file="{name}"][data-state="{state}"]')


def no_violation(page: Page) -> None:
    result = Axe().run(page)
    assert result.violations_count == 0, result.generate_report()


def no_sideways_scroll(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("innerWidth")
    assert page.evaluate("document.getElementById('log').scrollWidth <= document.getElementById('log').clientWidth")


def layout_shift(page: Page) -> float:
    """How much moved that nobody asked to move."""
    return float(page.evaluate(LAYOUT_SHIFT))


def card(page: Page, name: str) -> Locator:
    """What the page shows of a file."""
    return page.locator(".file, .player", has_text=name)


def looked_at(page: Page, name: str) -> Locator:
    """The same, brought into view when no answer moves it any more: only what is in view is previewed."""
    answered(page)
    card(page, name).scroll_into_view_if_needed()
    return card(page, name)


def scroll_to_top(page: Page) -> None:
    """Scroll as a reader does, and wait until the page has noticed."""
    page.locator("#log").evaluate(
        """log => new Promise((noticed) => {
          log.scrollTop = 0;
          requestAnimationFrame(() => requestAnimationFrame(() => noticed()));
        })"""
    )


def wait_for_held(page: Page, held: list[Route], count: int = 1) -> None:
    """Wait until so many requests are held back."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(held) < count:
        assert time.monotonic() < deadline, f"{len(held)} of {count} requests were made"
        page.wait_for_timeout(20)


def wait_for_messages(gateway: GatewayProcess, count: int, conversation: str = MAIN) -> None:
    """Wait until a conversation, else the main one, holds so many, answers among them."""
    deadline, pause = time.monotonic() + PATIENCE_SECONDS, threading.Event()
    while len(gateway.call("GET", f"/api/messages?conversation={conversation}&limit=200")[1]["messages"]) < count:
        assert time.monotonic() < deadline, "some answer never came"
        pause.wait(0.05)


def hum(seconds: int = 3) -> bytes:
    """A tone that swells."""
    written = io.BytesIO()
    with wave.open(written, "wb") as target:
        target.setparams((1, 2, 8000, 0, "NONE", ""))
        tone = (int(30_000 * at / (8000 * seconds) * math.sin(at / 4)) for at in range(8000 * seconds))
        target.writeframes(b"".join(struct.pack("<h", sample) for sample in tone))
    return written.getvalue()


def play(sound: Locator) -> None:
    """Play it without a noise, over and over."""
    sound.locator("audio").evaluate("audio => { audio.muted = true; audio.loop = true; return audio.play(); }")


def reader(page: Page) -> Locator:
    return page.get_by_role("dialog")
