"""The browser of the tests: an installed Chromium or Chrome, else Playwright's own."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ON_A_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
ELSEWHERE = "belino.test"
# The browser talks to the gateway on loopback and to nobody else.
ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-gpu",
    "--disable-quic",
    # A microphone that beeps twice a second, and a host name of this machine that browsers do not take for localhost.
    "--use-fake-device-for-media-stream",
    f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1",
)


def find_chromium() -> str | None:
    """Any Chromium or Chrome that is installed."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or (str(ON_A_MAC) if ON_A_MAC.exists() else None)


def launch(playwright: Playwright) -> Browser:
    """Start it. Where there is none, the test is skipped with the reason; in CI it fails."""
    path = find_chromium()
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
    try:
        return playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS, *sandbox])
    except Error as error:
        if path is not None:
            raise
        # Playwright draws a frame around its advice.
        said = next((line for line in error.message.splitlines() if line.strip()), "").partition(":")[2].strip()
        reason = f"no Chromium or Chrome is installed, and Playwright's own does not start: {said}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
