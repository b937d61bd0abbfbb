"""Pictures with something on them, by number: like photographs, and like pages."""

import random

from PIL import Image, ImageDraw


def scene(seed: int, size: tuple[int, int] = (640, 480)) -> Image.Image:
    """Something like a photograph: large things, and small ones on them."""
    chance = random.Random(seed)
    width, height = size
    picture = Image.new("RGB", size, tuple(chance.randrange(60, 200) for _ in range(3)))
    draw = ImageDraw.Draw(picture)
    for number in range(60):
        reach = width // (3 + number // 6)
        left, top = chance.randrange(-reach, width), chance.randrange(-reach, height)
        box = (left, top, left + chance.randrange(8, reach + 9), top + chance.randrange(8, reach + 9))
        colour = tuple(chance.randrange(256) for _ in range(3))
        (draw.ellipse if chance.random() < 0.5 else draw.rectangle)(box, fill=colour)
    return picture


def page(seed: int) -> Image.Image:
    """Dark lines on white, as long as words fall."""
    chance = random.Random(seed)
    picture = Image.new("RGB", (480, 640), "white")
    draw = ImageDraw.Draw(picture)
    for top in range(40, 600, 9):
        left = 40
        while left < 420 and chance.random() < 0.97:
            end = left + chance.randrange(6, 40)
            draw.rectangle((left, top, end, top + 4), fill="black")
            left = end + 5
    return picture


def cropped(picture: Image.Image, left: float, top: float, right: float, bottom: float) -> Image.Image:
    width, height = picture.size
    return picture.crop((int(width * left), int(height * top), int(width * (1 - right)), int(height * (1 - bottom))))
