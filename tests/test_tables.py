"""The tables of what works are what the adapters say, and the adapters say what their limits allow."""

import subprocess
import sys
from pathlib import Path

import pytest

from belino import registry
from belino.domain.limits import Capability, SendAs

ROOT = Path(__file__).parent.parent
FORMS = {
    Capability.PICTURE: SendAs.PHOTO,
    Capability.VIDEO: SendAs.VIDEO,
    Capability.SOUND: SendAs.AUDIO,
    Capability.VOICE: SendAs.VOICE,
    Capability.FILE: SendAs.DOCUMENT,
    Capability.STICKER: SendAs.STICKER,
}
PLATFORMS = registry.built_in("adapters")


def test_the_tables_in_the_docs_are_made_from_the_adapters() -> None:
    script = ROOT / "scripts" / "write-tables"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_claims_to_take_exactly_the_forms_its_limits_know(platform: str) -> None:
    adapter = registry.find("adapters", platform).module.Adapter
    claimed = {each.thing for each in adapter.works if each.goes}
    for thing, form in FORMS.items():
        assert (thing in claimed) == (form in adapter.limits.files), (platform, thing)
    assert (Capability.ALBUM in claimed) == (adapter.limits.album_items > 1)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_a_platform_takes_stands_on_the_page_of_delivery(platform: str) -> None:
    page = (ROOT / "docs" / "delivery.md").read_text(encoding="utf-8")
    limits = registry.find("adapters", platform).module.Adapter.limits
    row = next(line for line in page.splitlines() if line.lower().startswith(f"| {platform} |"))
    assert f" {limits.text_chars:,}".replace(",", " ") in row


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_says_each_thing_once(platform: str) -> None:
    things = [each.thing for each in registry.find("adapters", platform).module.Adapter.works]
    assert len(set(things)) == len(things)
