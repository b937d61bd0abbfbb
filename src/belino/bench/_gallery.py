"""Gallery of pictures like those that people send, generated: photographs, screens, pages, drawings."""

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

# Sides of the overlaid noise, coarse to fine, and the weight of each: about as in nature.
_OCTAVES = ((6, 1.0), (24, 0.5), (96, 0.4), (384, 0.25), (1536, 0.12))
_GRAIN, _ORIENTATION = 0.04, 0x0112
_INK, _PAPER, _PANEL, _LINK = "#202124", "#ffffff", "#f1f3f4", "#1a73e8"


def gallery(folder: Path) -> list[Path]:
    """Write the pictures and return their paths."""
    rng = Random(1)  # noqa: S311 - the same pictures every time
    camera = photo(4000, 3000)
    turned = camera.getexif()
    turned[_ORIENTATION] = 6
    camera.save(folder / "camera.jpg", quality=94)
    photo(4032, 3024).save(folder / "turned.jpg", quality=90, exif=turned)
    photo(1600, 1200).save(folder / "shared.jpg", quality=93)
    page(2880, 1800, rng).save(folder / "page.png")
    screen(3840, 2160, rng, camera).save(folder / "screen.png")
    screen(1080, 2340, rng, None).save(folder / "phone.png")
    drawing(2400, 1600, rng).save(folder / "drawing.png")
    diagram(2000, 1400, rng).save(folder / "diagram.png")
    return sorted(folder.iterdir())


def photo(width: int, height: int) -> "Image.Image":
    """Shapes of every size, soft colours, some grain."""
    from PIL import Image

    light = _clouds(width, height)
    light = Image.blend(light, Image.effect_noise((width, height), 64), _GRAIN)
    warm, cold = (_layer(width, height, 5) for _ in range(2))
    return Image.merge("RGB", (Image.blend(light, warm, 0.3), light, Image.blend(light, cold, 0.3)))


def _clouds(width: int, height: int) -> "Image.Image":
    from PIL import Image

    light = _layer(width, height, _OCTAVES[0][0])
    for side, share in _OCTAVES[1:]:
        light = Image.blend(light, _layer(width, height, side), share)
    return light


def _layer(width: int, height: int, side: int) -> "Image.Image":
    from PIL import Image

    noise = Image.effect_noise((side, max(2, side * height // width)), 90)
    return noise.resize((width, height), Image.Resampling.BICUBIC)


def page(width: int, height: int, rng: Random) -> "Image.Image":
    """Only text."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (width, height), "#fafafa")
    pen = ImageDraw.Draw(picture)
    for y in range(20, height - 20, 22):
        pen.text((20, y), _words(rng, width // 48), fill=_INK, font_size=16)
    return picture


def screen(width: int, height: int, rng: Random, picture: "Image.Image | None") -> "Image.Image":
    """Bars, panels, buttons and text, and a picture if one is given."""
    from PIL import Image, ImageDraw

    shown = Image.new("RGB", (width, height), _PAPER)
    pen = ImageDraw.Draw(shown)
    pen.rectangle((0, 0, width, 56), fill=_LINK)
    pen.rectangle((0, 56, width // 4, height), fill=_PANEL)
    for y in range(80, height - 60, 44):
        pen.rounded_rectangle((16, y, 44, y + 28), 8, fill=tuple(rng.randbytes(3)))
        pen.text((56, y), _words(rng, 4)[: width // 48], fill=_INK, font_size=20)
        pen.text((width // 4 + 24, y), _words(rng, width // 90), fill=rng.choice((_INK, _INK, _LINK)), font_size=20)
    if picture is not None:
        shown.paste(picture.resize((width // 3, height // 3)), (width // 2, height // 2))
    return shown


def drawing(width: int, height: int, rng: Random) -> "Image.Image":
    """Coloured shapes with outlines on a soft ground."""
    from PIL import Image, ImageDraw

    ground = Image.radial_gradient("L").resize((width, height)).convert("RGB")
    pen = ImageDraw.Draw(ground)
    for _ in range(400):
        x, y, size = rng.randrange(width), rng.randrange(height), rng.randint(10, 200)
        pen.ellipse((x, y, x + size, y + size), fill=tuple(rng.randbytes(3)), outline="black", width=3)
    return ground


def diagram(width: int, height: int, rng: Random) -> "Image.Image":
    """Labelled boxes and lines between them, each with a shadow, on a transparent ground."""
    from PIL import Image, ImageDraw, ImageFilter

    places = [(rng.randrange(40, width - 260), rng.randrange(40, height - 120)) for _ in range(60)]
    shadow = Image.new("RGBA", (width, height))
    pen = ImageDraw.Draw(shadow)
    for x, y in places:
        pen.rounded_rectangle((x + 6, y + 8, x + 226, y + 88), 12, fill=(0, 0, 0, 110))
    picture = shadow.filter(ImageFilter.GaussianBlur(8))
    pen = ImageDraw.Draw(picture)
    for (x, y), (other_x, other_y) in pairwise(places):
        pen.line((x + 110, y + 40, other_x + 110, other_y + 40), fill="#5f6368", width=3)
    for x, y in places:
        colour = tuple(200 + byte % 56 for byte in rng.randbytes(3))
        pen.rounded_rectangle((x, y, x + 220, y + 80), 12, fill=colour, outline=_INK, width=2)
        pen.text((x + 16, y + 26), _words(rng, 3)[:20], fill=_INK, font_size=20)
    return picture


def _words(rng: Random, count: int) -> str:
    return " ".join("".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(count))
