"""A real Chromium and a real gateway for the tests of the page."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from belino.testing import GatewayProcess
from browser.chromium import launch

PATIENCE_MS = 60_000

OpenPage = Callable[..., Page]


# One browser per module, not per run: while the synchronous API lives, this thread cannot run another event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Open a page in a browser of its own; at the end none may have thrown, nor broken its policy."""
    contexts: list[BrowserContext] = []
    troubles: list[str] = []

    def open_page(
        width: int = 1024, height: int = 768, scheme: Literal["light", "dark"] = "light", scale: float = 1
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            device_scale_factor=scale,
            reduced_motion="reduce",
            locale="en-GB",
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        context.on("weberror", lambda error: troubles.append(str(error.error)))
        context.on("console", lambda message: troubles.extend(_broken_policy(message)))
        return context.new_page()

    yield open_page
    for context in contexts:
        # A page that closes under a handler which still fetches must not fail the test after its end. Handlers are not
        # waited for: a request that a test holds back has none that ends.
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")
        context.close()
    assert troubles == []


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    return open_page()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


@pytest.fixture
def enter(gateway: GatewayProcess) -> Callable[[Page], Page]:
    """Sign a page in with a fresh link and wait until it is connected."""

    def enter(page: Page) -> Page:
        _, answer = gateway.call("POST", "/api/logins", {})
        page.goto(answer["url"])
        expect(page.get_by_role("textbox", name="Message")).to_be_enabled()
        expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
        return page

    return enter


@pytest.fixture
def place(gateway: GatewayProcess, request: pytest.FixtureRequest) -> str:
    """A conversation of the test's own, where several tests share a gateway."""
    _, made = gateway.call("POST", "/api/conversations", {"name": request.node.name.removeprefix("test_")[:60]})
    return str(made["conversation"])


@pytest.fixture
def come(enter: Callable[[Page], Page], place: str) -> Callable[[Page], Page]:
    """Sign a page in and open the test's own conversation."""

    def come(page: Page) -> Page:
        enter(page).evaluate("place => { location.hash = 'c=' + encodeURIComponent(place); }", place)
        expect(page.locator("#log")).not_to_have_attribute("aria-busy", "true")
        expect(page.get_by_role("heading", name="Main", exact=True)).to_be_hidden()
        return page

    return come


def _broken_policy(message: ConsoleMessage) -> list[str]:
    signs = ("Content Security Policy", "TrustedHTML", "TrustedScript", "Permissions policy")
    return [message.text] if any(sign in message.text for sign in signs) else []
