"""The picture of the web chat, made by the page itself: `make screenshot` writes docs/screenshot.png anew."""

import math
import os
import struct
import zlib
from pathlib import Path

import pytest
from playwright.sync_api import expect

from belino.testing import GatewayProcess
from browser.acting import Enter, OpenPage, answered, attach, chip, say, send

SCREENSHOT = Path(__file__).parents[2] / "docs" / "screenshot.png"
MOST_BYTES = 400_000

OTHERS = {"Recipes": "How many words has this?", "Trip to the coast": "What do you see?"}

Color = tuple[int, int, int]

SKY = ((96, 136, 178), (250, 196, 150))
SUN, FAR_HILL, NEAR_HILL = (255, 238, 200), (58, 112, 98), (30, 70, 60)


@pytest.mark.slow
def test_the_screenshot_shows_a_picture_and_its_answer(
    open_page: OpenPage, enter: Enter, gateway: GatewayProcess, tmp_path: Path
) -> None:
    file = SCREENSHOT if "BELINO_SCREENSHOT" in os.environ else tmp_path / SCREENSHOT.name
    for name, text in OTHERS.items():
        _, made = gateway.call("POST", "/api/conversations", {"name": name})
        say(gateway, text, conversation=made["conversation"])
    page = enter(open_page(width=1280, height=800, scale=2))
    attach(page, ("evening-walk.png", "image/png", landscape(960, 540)))
    expect(chip(page, "evening-walk.png", "done")).to_be_visible()
    send(page, "I took this on my walk. What can you tell me about it?")
    answered(page)
    expect(page.get_by_role("button", name="Open evening-walk.png").locator("img")).to_have_js_property(
        "complete", True
    )
    page.mouse.move(0, 0)
    page.screenshot(path=file, caret="hide")
    assert file.stat().st_size < MOST_BYTES


def landscape(width: int, height: int) -> bytes:
    """Hills and an evening sun, as a PNG."""
    rows = b"".join(b"\0" + b"".join(bytes(color(x / width, y / height)) for x in range(width)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def color(x: float, y: float) -> Color:
    """What is seen at a place of the landscape; both coordinates run from 0 to 1."""
    if y > 0.78 + 0.06 * math.sin(3 * x + 2):
        return NEAR_HILL
    if y > 0.66 + 0.1 * math.sin(5 * x) + 0.02 * math.sin(17 * x):
        return FAR_HILL
    if math.hypot(1.78 * (x - 0.7), y - 0.4) < 0.1:
        return SUN
    # Whole steps, so that the picture stays small.
    share = min(1.0, round(y / 0.76, 2))
    red, green, blue = (round(top + (low - top) * share) for top, low in zip(*SKY, strict=True))
    return red, green, blue


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
