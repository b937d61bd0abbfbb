"""The demo in a browser, and the README's moving picture of it: `make screenshot` writes docs/demo.webp anew."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from browser.acting import OpenPage, no_sideways_scroll, no_violation

MOVIE = Path(__file__).parents[2] / "docs" / "demo.webp"
MOST_BYTES = 1_500_000
WIDTH, HEIGHT = 960, 640
PACE = "0.08"
WAIT_SECONDS = 90.0
# On a machine so slow that somebody else asks first, it is two more messages and one more picture.
END = re.compile(r"^21[46] messages, 61 media, [12] fetched, ")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where a demo's page is, with a group that talks faster than people do."""
    command = [sys.executable, "-m", "belino", "demo", "--pace", PACE, "--no-browser", "--json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as demo:
        assert demo.stdout is not None
        try:
            yield str(json.loads(demo.stdout.readline())["url"])
            demo.send_signal(signal.SIGINT)
            assert demo.wait(WAIT_SECONDS) == 0
        finally:
            if demo.poll() is None:
                demo.kill()


class Film:
    """Pictures of a page and how long each is shown."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[Image.Image] = []
        self._times: list[int] = []

    def shoot(self, milliseconds: int, *, times: int = 1) -> None:
        for _ in range(times):
            picture = self._page.screenshot(caret="hide")
            self._frames.append(Image.open(io.BytesIO(picture)).convert("RGB"))
            self._times.append(milliseconds)

    def write(self, file: Path) -> None:
        first, *others = self._frames
        first.save(
            file,
            save_all=True,
            append_images=others,
            duration=self._times,
            loop=0,
            quality=72,
            method=4,
            lossless=False,
        )


@pytest.mark.slow
def test_a_visitor_watches_asks_about_a_picture_and_reads_the_bill(
    open_page: OpenPage, address: str, tmp_path: Path
) -> None:
    page = open_page(width=WIDTH, height=HEIGHT)
    film = Film(page)
    page.goto(address)
    expect(page.locator("article.others").first).to_be_visible()
    expect(page.locator("#savings")).to_contain_text("tokens not spent")
    film.shoot(180, times=8)
    ask = page.locator("article.others", has_text="image/jpeg").last.get_by_role("button", name="Ask about it")
    ask.scroll_into_view_if_needed()
    film.shoot(900)
    ask.click()
    question = page.locator("article.mine", has_text="@belino_bot What is this?")
    expect(question).to_be_visible()
    film.shoot(250, times=3)
    expect(page.locator("article.theirs").last).to_contain_text("I was shown")
    question.scroll_into_view_if_needed()
    question.locator(".quote img").evaluate("image => image.decode()")
    film.shoot(300, times=2)
    expect(page.locator("#savings")).not_to_contain_text(re.compile(r"\b0 fetched"))
    film.shoot(2000)
    page.locator("article.others .picture").first.scroll_into_view_if_needed()
    film.shoot(1600)
    page.locator("#log").evaluate("log => log.scrollTo(0, log.scrollHeight)")
    for _ in range(60):
        film.shoot(140)
        if END.search(page.locator("#savings").inner_text()):
            break
        page.wait_for_timeout(150)
    expect(page.locator("#savings")).to_contain_text(END)
    film.shoot(3500)
    film.write(tmp_path / MOVIE.name)
    assert (tmp_path / MOVIE.name).stat().st_size < MOST_BYTES
    if "BELINO_SCREENSHOT" in os.environ:
        MOVIE.write_bytes((tmp_path / MOVIE.name).read_bytes())


@pytest.mark.slow
def test_the_group_is_readable_on_a_small_screen_and_by_everybody(open_page: OpenPage, address: str) -> None:
    page = open_page(width=320, height=640, scheme="dark")
    page.goto(address)
    expect(page.locator("#savings")).to_contain_text("media")
    expect(page.locator(".ask-button").first).to_be_attached()
    no_sideways_scroll(page)
    no_violation(page)
