"""The page shows which media the agent was shown, what its memory lost, and what it is given again."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from belino.domain.stored import ManifestEntry
from belino.testing import GatewayProcess
from browser.conftest import OpenPage
from shown_session import show_pictures

pytestmark = pytest.mark.slow

Enter = Callable[[Page], Page]


@pytest.fixture
def shown(tmp_path: Path) -> list[ManifestEntry]:
    with ThreadPoolExecutor(1) as beside:  # the browser's event loop runs in this thread
        return beside.submit(show_pictures, tmp_path / "home", compacted=False).result()


@pytest.fixture
def gateway(shown: list[ManifestEntry], tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


def open_manifest(page: Page) -> Locator:
    page.get_by_role("button", name=re.compile("^Why")).first.click()
    story = page.get_by_role("dialog", name="What happened to this message")
    story.get_by_text("Media shown to the agent (3)").click()
    return story.locator("details", has_text="Media shown to the agent")


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (320, "dark"), (1024, "light")])
def test_why_lists_every_key_of_the_manifest_what_was_lost_and_what_comes_again(
    open_page: OpenPage,
    enter: Enter,
    shown: list[ManifestEntry],
    width: int,
    scheme: Literal["light", "dark"],
) -> None:
    page = enter(open_page(width=width, scheme=scheme))
    manifest = open_manifest(page)
    rows = manifest.get_by_role("listitem")
    expect(rows).to_have_count(3)
    for row, entry in zip((rows.nth(2), rows.nth(1), rows.nth(0)), shown, strict=True):
        expect(row).to_contain_text(entry.display_name)
        expect(row).to_contain_text("in its memory" if entry is shown[-1] else "lost from its memory")
        told = [entry.artifact_id, entry.media_type, str(entry.included_at_turn), entry.source_message_id]
        told += [entry.source_thread_id] if entry.source_thread_id else []
        assert row.locator("dd").all_inner_texts() == [*told, entry.content_hash]
    _, dog, owl = shown
    again = f"attaches again: owl.png ({owl.artifact_id}), dog.png ({dog.artifact_id})."
    expect(manifest).to_contain_text(f"If its memory is shortened, its next turn {again}")
    body = page.locator("#why-body")
    assert body.evaluate("body => body.scrollWidth <= body.clientWidth")
