"""Pictures made on the spot, and the job run on them as the sandbox's child does."""

import io
import random
import struct
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from belino.media.image import decode
from belino.media.image.images import fit, probe

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 180, 40), (30, 40, 210), (240, 240, 240)
GENEROUS = 1_000_000
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="64" height="32">%s</svg>'
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "HEIF", "AVIF")

Fit = Callable[..., tuple[dict[str, Any], bytes]]

decode.prepare()


def fitter(folder: Path) -> Fit:
    """Runs the job on descriptors."""

    def run(content: bytes, *, max_bytes: int = GENEROUS, **options: object) -> tuple[dict[str, Any], bytes]:
        source, target = folder / "source", folder / "target"
        source.write_bytes(content)
        target.write_bytes(b"")
        with source.open("rb") as reading, target.open("r+b") as writing:
            answer = fit(reading.fileno(), writing.fileno(), {"max_bytes": max_bytes, **options})
        return answer, target.read_bytes()

    return run


def probed(content: bytes, folder: Path) -> dict[str, Any]:
    path = folder / "probed"
    path.write_bytes(content)
    with path.open("rb") as file:
        return probe(file.fileno(), {})


def opened(content: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(content))
    picture.load()
    return picture


def saved(picture: Image.Image, format_: str, **options: Any) -> bytes:
    content = io.BytesIO()
    picture.save(content, format_, **options)
    return content.getvalue()


def quarters(size: tuple[int, int] = (64, 32)) -> Image.Image:
    """Four colours, so that any turn or flip shows."""
    picture = Image.new("RGB", size, WHITE)
    draw, (width, height) = ImageDraw.Draw(picture), size
    draw.rectangle((0, 0, width // 2 - 1, height // 2 - 1), fill=RED)
    draw.rectangle((width // 2, 0, width, height // 2 - 1), fill=GREEN)
    draw.rectangle((0, height // 2, width // 2 - 1, height), fill=BLUE)
    return picture


def corners(picture: Image.Image) -> list[str]:
    names = {"red": RED, "green": GREEN, "blue": BLUE, "white": WHITE}
    plain = picture.convert("RGB")
    width, height = plain.size
    places = [(x, y) for y in (height // 4, 3 * height // 4) for x in (width // 4, 3 * width // 4)]
    return [min(names, key=lambda name: _distance(names[name], plain.getpixel(place))) for place in places]


def _distance(one: Sequence[int], other: Any) -> int:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(1).randbytes(width * height * 3))


def photo(width: int, height: int) -> Image.Image:
    """Soft shapes with grain: compresses like a photograph."""
    soft = noise(width // 40, height // 40).resize((width, height), Image.Resampling.BICUBIC)
    return Image.blend(soft, noise(width, height), 0.1)


def screen(width: int, height: int) -> Image.Image:
    """Lines of small text on white."""
    picture = Image.new("RGB", (width, height), (255, 255, 255))
    draw, rng = ImageDraw.Draw(picture), random.Random(2)
    for row in range(0, height, 14):
        words = " ".join("".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(width // 40))
        draw.text((4, row), words, fill=(20, 20, 30 + row % 120))
    return picture


def with_hole(picture: Image.Image) -> Image.Image:
    """From invisible at the top to opaque at the bottom."""
    made = picture.convert("RGBA")
    made.putalpha(Image.linear_gradient("L").resize(picture.size))
    return made


def animation(format_: str, frames: int, size: tuple[int, int] = (40, 20)) -> bytes:
    """The four colours, then plain ones."""
    pictures = [Image.new("RGB", size, (index % 256, 7, 99)) for index in range(frames)]
    pictures[0] = quarters(size)
    options: dict[str, Any] = {"lossless": True} if format_ == "WEBP" else {}
    return saved(pictures[0], format_, save_all=True, append_images=pictures[1:], duration=40, **options)


def exif(orientation: int = 1) -> Image.Exif:
    made = Image.Exif()
    made[0x0112] = orientation
    return made


FOREIGN: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "one byte": lambda: b"\x89",
    "text": lambda: b"hello",
    "html": lambda: b"<!doctype html><img src=x>",
    "pdf": lambda: saved(quarters(), "PDF"),
    "eps": lambda: saved(quarters(), "EPS"),
    "mp4": lambda: b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(64),
}
"""Files no decoder of ours may touch."""


def psd(picture: Image.Image) -> bytes:
    """A PSD of one layer, uncompressed."""
    width, height = picture.size
    head = b"8BPS\0\x01" + bytes(6) + (3).to_bytes(2) + height.to_bytes(4) + width.to_bytes(4) + b"\0\x08\0\x03"
    return head + bytes(12) + b"\0\0" + b"".join(band.tobytes() for band in picture.split())


def raw(picture: Image.Image, *, orientation: int = 1, sensor: bool = True) -> bytes:
    """A raw photograph built like a TIFF, with a preview after its sensor's pixels."""
    tags = [
        (0x0100, 4, 1, 8), (0x0101, 4, 1, 8), (0x0102, 3, 1, 8), (0x0103, 3, 1, 1),
        (0x0106, 3, 1, 32_803 if sensor else 1), (0x0111, 4, 1, 200), (0x0112, 3, 1, orientation), (0x0115, 3, 1, 1),
        (0x0116, 4, 1, 8), (0x0117, 4, 1, 64),
    ]  # fmt: skip
    ifd = len(tags).to_bytes(2, "little") + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4)
    return (
        (b"II*\0" + (8).to_bytes(4, "little") + ifd).ljust(200, b"\0") + bytes(64) + saved(picture, "JPEG", quality=95)
    )


def drawing(inside: bytes = b"", **_: object) -> bytes:
    """The four colours as an SVG."""
    parts = zip((RED, GREEN, BLUE, WHITE), ((0, 0), (32, 0), (0, 16), (32, 16)), strict=True)
    shapes = "".join(
        f'<rect x="{x}" y="{y}" width="32" height="16" fill="rgb{colour}"/>' for colour, (x, y) in parts
    ).replace(" ", " ")
    return SVG % (shapes.encode() + inside)


FURTHER: dict[str, Callable[[], bytes]] = {
    "svg": drawing,
    "psd": lambda: psd(quarters()),
    "raw": lambda: raw(quarters((128, 64))),
    "ico": lambda: saved(quarters((64, 64)), "ICO"),
    "icns": lambda: saved(quarters((64, 64)), "ICNS"),
    "jxl": lambda: saved(quarters(), "JXL", lossless=True),
    **{
        name.lower(): lambda name=name: saved(quarters(), name)  # type: ignore[misc]
        for name in ("PPM", "TGA", "PCX", "JPEG2000", "DDS", "SGI", "QOI")
    },
}
"""Rarer types that are decoded too."""


@cache
def picture(name: str) -> bytes:
    """One of PICTURES."""
    return PICTURES[name]()


PICTURES: dict[str, Callable[[], bytes]] = {
    "photo": lambda: saved(photo(1200, 900), "JPEG", quality=92),
    "photo as png": lambda: saved(photo(640, 480), "PNG"),
    "screen": lambda: saved(screen(1200, 900), "PNG"),
    "screen as jpeg": lambda: saved(screen(1200, 900), "JPEG", quality=92),
    "noise": lambda: saved(noise(400, 300), "PNG"),
    "one colour": lambda: saved(Image.new("RGB", (2_000, 1_000), RED), "BMP"),
    "transparent": lambda: saved(with_hole(photo(640, 480)), "PNG"),
    "animated": lambda: animation("GIF", 30, (300, 200)),
}
