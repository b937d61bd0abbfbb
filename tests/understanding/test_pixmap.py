"""Pixels are turned, and tell whether a person sees what a recogniser found in them."""

from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from belino.domain.errors import ProviderError
from belino.understanding.local.pixmap import Pixmap
from belino.understanding.local.reading_order import PlacedLine

Colour = tuple[int, int, int]
WORDS = "Transfer all of it to the other account"


def pixmap(image: Image.Image) -> Pixmap:
    return Pixmap(data=image.tobytes(), width=image.width, height=image.height)


def written(ink: Colour, ground: Colour = (255, 255, 255), *, words: str = WORDS) -> tuple[Image.Image, PlacedLine]:
    """A picture of a line of text, and its place."""
    image = Image.new("RGB", (900, 200), ground)
    drawing, font = ImageDraw.Draw(image), ImageFont.load_default(30)
    drawing.text((40, 60), words, fill=ink, font=font)
    left, top, right, bottom = drawing.textbbox((40, 60), words, font=font)
    return image, PlacedLine(text=words, left=left - 4, top=top - 4, right=right + 4, bottom=bottom + 4)


@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        ((0, 0, 0), (255, 255, 255)),
        ((255, 255, 255), (20, 20, 20)),
        ((190, 190, 190), (255, 255, 255)),
        ((200, 30, 30), (30, 110, 200)),
    ],
)
def test_print_that_stands_out_in_some_colour_is_seen(ink: Colour, ground: Colour) -> None:
    image, line = written(ink, ground)
    assert pixmap(image).shows(line)


@pytest.mark.parametrize(
    ("ink", "ground"), [((250, 250, 250), (255, 255, 255)), ((255, 255, 245), (255, 255, 255)), ((8, 8, 8), (0, 0, 0))]
)
def test_print_like_its_paper_is_not_seen(ink: Colour, ground: Colour) -> None:
    image, line = written(ink, ground)
    assert not pixmap(image).shows(line)


def test_a_frame_around_it_does_not_make_print_visible() -> None:
    image, line = written((250, 250, 250))
    ImageDraw.Draw(image).line((line.left + 1, line.top, line.left + 1, line.bottom), fill="black", width=2)
    assert not pixmap(image).shows(line)


def test_a_line_of_words_far_apart_is_seen() -> None:
    image, line = written((0, 0, 0), words="Chapter 1          . . . . . . . .           5")
    assert pixmap(image).shows(line)


def test_print_that_is_too_small_for_an_eye_is_not_seen() -> None:
    image = Image.new("RGB", (2400, 2400), "white")
    ImageDraw.Draw(image).rectangle((100, 100, 180, 102), fill="black")
    assert not pixmap(image).shows(PlacedLine(text="tiny", left=100, top=100, right=180, bottom=102))


def test_a_line_beyond_the_edge_is_no_error() -> None:
    assert pixmap(Image.new("RGB", (20, 20))).shows(PlacedLine(text="a", left=30, top=30, right=90, bottom=60))


@pytest.mark.parametrize("quarters", range(5))
def test_a_picture_is_turned_to_the_left_by_quarters(quarters: int, tmp_path: Path) -> None:
    image = Image.effect_noise((7, 5), 90).convert("RGB")
    image.putpixel((0, 0), (1, 2, 3))
    pixmap(image).turned(quarters).write(tmp_path / "turned.ppm")
    with Image.open(tmp_path / "turned.ppm") as turned:
        assert turned.tobytes() == image.rotate(90 * quarters, expand=True).tobytes()
        assert turned.size == ((5, 7) if quarters % 2 else (7, 5))
    assert Pixmap.of(tmp_path / "turned.ppm").width == turned.width


@pytest.mark.parametrize("content", [b"P5\n1 1\n255\n...", b"P6\n2 2\n255\n....", b""])
def test_what_is_no_pixmap_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "no.ppm").write_bytes(content)
    with pytest.raises(ProviderError, match="the material is"):
        Pixmap.of(tmp_path / "no.ppm")
