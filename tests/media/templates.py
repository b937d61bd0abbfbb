"""Pictures of one template each, by number: they differ in a few words, names and amounts."""

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from PIL import Image, ImageDraw, ImageFont

ITEMS = ("Milk", "Bread", "Butter", "Cheese", "Apples", "Coffee", "Tea", "Rice", "Pasta", "Onions", "Juice", "Soap")
NAMES = ("Anna", "Ben", "Carla", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Kira", "Leo")
WORDS = ("plan", "launch", "budget", "hire", "review", "ship", "design", "test", "deploy", "call", "client", "report",
         "demo", "price", "team", "sprint", "goal", "risk", "owner", "date")  # fmt: skip


class Draws(Protocol):
    def __call__(self, number: int) -> Image.Image: ...


class Paper:
    """A picture that is written on."""

    def __init__(self, size: tuple[int, int], colour: object = "white") -> None:
        self.image = Image.new("RGB", size, colour)  # type: ignore[arg-type]  # a name or three numbers
        self.draw = ImageDraw.Draw(self.image)

    def write(self, place: tuple[int, int], text: str, size: int, colour: object = "black") -> None:
        self.draw.text(place, text, font=ImageFont.load_default(size), fill=colour)  # type: ignore[arg-type]


def receipt(number: int) -> Image.Image:
    chance, paper = random.Random(number), Paper((600, 1000), (250, 249, 245))
    paper.write((140, 40), "CORNER MARKET", 38)
    total = 0
    for row, item in enumerate(ITEMS[:8]):
        price = chance.randrange(99, 2500)
        total += price
        paper.write((50, 160 + 44 * row), item, 28)
        paper.write((440, 160 + 44 * row), f"{price / 100:.2f}", 28)
    paper.write((50, 700), "TOTAL", 36)
    paper.write((400, 700), f"{total / 100:.2f}", 36)
    paper.write((50, 770), f"Served by {chance.choice(NAMES)}", 24)
    for x in range(60, 540, 6):
        if x * x % 7 < 3:
            paper.draw.rectangle((x, 880, x + 3, 940), fill="black")
    return paper.image


def faded(number: int) -> Image.Image:
    """Thermal print that has faded beside a black bar code."""
    chance, paper = random.Random(number), Paper((600, 1000), (250, 249, 245))
    for row, item in enumerate(ITEMS):
        paper.write((50, 80 + 56 * row), item, 30, (200, 200, 200))
        paper.write((400, 80 + 56 * row), f"{chance.randrange(99, 25000) / 100:.2f}", 30, (200, 200, 200))
    for x in range(60, 540, 12):
        paper.draw.rectangle((x, 860, x + 5, 940), fill="black")
    return paper.image


def amount(number: int) -> Image.Image:
    """One amount on the same receipt."""
    picture = receipt(1)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((390, 690, 590, 750), fill=(250, 249, 245))
    draw.text((400, 700), f"{100 + number}.50", font=ImageFont.load_default(36), fill="black")
    return picture


def whiteboard(number: int) -> Image.Image:
    chance, paper = random.Random(number), Paper((1280, 960), (225, 228, 230))
    paper.draw.rectangle((20, 20, 1260, 940), outline=(120, 120, 125), width=14)
    paper.write((60, 50), f"SPRINT {number}", 64, (30, 40, 140))
    for column, title in enumerate(("TODO", "DOING", "DONE")):
        left = 70 + 400 * column
        paper.write((left, 150), title, 48, (160, 30, 30))
        for row in range(5):
            paper.draw.rectangle(
                (left - 10, 240 + 120 * row, left + 300, 335 + 120 * row), outline=(80, 80, 80), width=3
            )
            paper.write((left, 265 + 120 * row), " ".join(chance.sample(WORDS, 2)), 30)
    return paper.image


def slide(number: int) -> Image.Image:
    chance, paper = random.Random(number), Paper((1280, 720))
    paper.draw.rectangle((0, 0, 1280, 110), fill=(20, 60, 120))
    paper.write((40, 28), " ".join(chance.sample(WORDS, 3)).title(), 48, "white")
    paper.draw.ellipse((1180, 15, 1260, 95), fill=(240, 170, 0))
    for row in range(6):
        paper.write((80, 150 + 82 * row), "•  " + " ".join(chance.sample(WORDS, 5)), 34)
    return paper.image


def chat(number: int) -> Image.Image:
    chance, paper = random.Random(number), Paper((720, 1280), (229, 221, 213))
    paper.draw.rectangle((0, 0, 720, 100), fill=(7, 94, 84))
    paper.write((110, 30), chance.choice(NAMES), 36, "white")
    for row in range(9):
        left, top = 20 if row % 2 else 270, 130 + 122 * row
        colour = "white" if row % 2 else (220, 248, 198)
        paper.draw.rounded_rectangle((left, top, left + 430, top + 100), 16, fill=colour)
        for line in range(2):
            paper.write((left + 16, top + 14 + 38 * line), " ".join(chance.sample(WORDS, 3)), 26)
    return paper.image


def form(number: int) -> Image.Image:
    chance, paper = random.Random(number), Paper((1000, 1400))
    paper.write((280, 60), "REGISTRATION FORM", 40)
    for row, label in enumerate(("Name", "Street", "City", "Phone", "Date", "Amount", "Account", "Reference")):
        top = 180 + 110 * row
        paper.write((70, top), f"{label}:", 32)
        paper.draw.rectangle((320, top - 15, 920, top + 60), outline="black", width=3)
        paper.write((340, top), "".join(chance.choice("abcdefghikmnoprstuw 0123456789") for _ in range(14)), 32)
    return paper.image


TEMPLATES: Mapping[str, Draws] = MappingProxyType(
    {
        "receipt": receipt,
        "faded": faded,
        "amount": amount,
        "whiteboard": whiteboard,
        "slide": slide,
        "chat": chat,
        "form": form,
    }
)
