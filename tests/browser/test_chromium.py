"""Where there is no browser, the tests of the page say so."""

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from browser import chromium

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_a_test_without_a_browser_is_skipped_with_the_reason_and_in_ci_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(chromium, "ON_A_MAC", tmp_path / "none")
    with sync_playwright() as playwright, pytest.raises(outcome, match=r"Playwright's own does not start: .*exist"):
        chromium.launch(playwright)
