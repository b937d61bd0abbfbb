"""A picture is known again when it was written anew, resized or cropped, and others are not taken for it."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from belino.domain.media import Likeness
from belino.media.image import agreement
from belino.media.image.images import greys
from belino.media.image.plain import pixels
from belino.media.image_hash import PRINT_BYTES, ImagePrint, _checked, make_print, read_print, recognise
from media.pictures import saved
from media.scenery import cropped, page, scene
from media.templates import TEMPLATES

pytestmark = pytest.mark.slow

agreement.prepare()


@pytest.fixture
def seen(tmp_path: Path) -> "Sight":
    return Sight(tmp_path)


class Sight:
    """Prints of pictures, made as the sandbox's child makes them."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "picture"
        self._pixels = folder / "pixels"

    def __call__(self, picture: Image.Image, format_: str = "PNG", **options: object) -> "Seen":
        self._path.write_bytes(saved(picture, format_, **options))
        self._pixels.write_bytes(b"")
        with self._path.open("rb") as file, self._pixels.open("r+b") as target:
            found = read_print(make_print(*_checked(greys(file.fileno(), {}))))
            pixels(file.fileno(), target.fileno(), {"max_pixels": agreement.PIXELS})
        assert found is not None
        return Seen(found, self._pixels.read_bytes())

    def known(self, picture: "Seen", others: Mapping[str, "Seen"]) -> Mapping[str, Likeness]:
        """What is said of a picture: by its print, and up close."""
        matches = recognise(picture.print, {name: other.print for name, other in others.items()})
        return {
            name: match.likeness
            for name, match in matches.items()
            if self._agree(*_in_order(picture, others[name], match.likeness), [side / 64 for side in match.frame])
        }

    def _agree(self, part: "Seen", whole: "Seen", frame: list[float]) -> bool:
        self._pixels.write_bytes(part.pixels + whole.pixels)
        places = [(0, len(part.pixels)), (len(part.pixels), len(whole.pixels))]
        with self._pixels.open("rb") as file:
            told = agreement.agree(file.fileno(), {"places": places, "frame": frame})
        return bool(told["strong"] >= agreement.LIKE and told["faint"] >= agreement.FAINTLY_LIKE)


class Seen(NamedTuple):
    """A picture as its print and its pixels."""

    print: ImagePrint
    pixels: bytes


def _in_order(picture: Seen, other: Seen, likeness: Likeness) -> tuple[Seen, Seen]:
    return (other, picture) if likeness is Likeness.UNCROPPED else (picture, other)


@pytest.mark.parametrize("seed", range(3))
def test_a_picture_that_was_written_anew_or_resized_is_the_same(seed: int, seen: Sight) -> None:
    picture = scene(seed)
    others = {"it": seen(picture), "other": seen(scene(99))}
    for copy in (seen(picture, "JPEG", quality=15), seen(picture.resize((200, 150)), "WEBP", quality=60)):
        assert seen.known(copy, others) == {"it": Likeness.RECOMPRESSED}


@pytest.mark.parametrize(
    "crop",
    [(0.1, 0.1, 0.1, 0.1), (0.0, 0.25, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0), (0.05, 0.1, 0.2, 0.15)],
    ids=["all around", "top", "left", "askew"],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_part_of_a_picture_is_known_for_it_and_the_whole_for_what_was_cropped(
    seed: int, crop: tuple[float, float, float, float], seen: Sight
) -> None:
    picture = scene(seed)
    whole, part = seen(picture), seen(cropped(picture, *crop), "JPEG", quality=70)
    assert seen.known(part, {"whole": whole, "other": seen(scene(99))}) == {"whole": Likeness.CROPPED}
    assert seen.known(whole, {"part": part, "other": seen(scene(99))}) == {"part": Likeness.UNCROPPED}


def test_other_pictures_and_other_pages_of_one_look_are_not_taken_for_it(seen: Sight) -> None:
    pictures = {f"scene {seed}": seen(scene(seed)) for seed in range(12)}
    pictures |= {f"page {seed}": seen(page(seed)) for seed in range(12)}
    for name, picture in pictures.items():
        others = {other: found for other, found in pictures.items() if other != name}
        assert seen.known(picture, others) == {}


@pytest.mark.parametrize("template", TEMPLATES)
def test_fifteen_pictures_of_one_template_are_fifteen_pictures(template: str, seen: Sight) -> None:
    pictures = {str(number): seen(TEMPLATES[template](number)) for number in range(15)}
    assert seen.known(pictures.pop("4"), pictures) == {}


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_copy_is_known_among_fifteen_pictures_of_one_template(template: str, seen: Sight) -> None:
    pictures = {str(number): seen(TEMPLATES[template](number)) for number in range(15)}
    picture = TEMPLATES[template](3)
    smaller = picture.resize((picture.width // 2, picture.height // 2))
    assert seen.known(seen(smaller, "JPEG", quality=50), pictures) == {"3": Likeness.RECOMPRESSED}


@pytest.mark.parametrize("size", [(300, 800), (1500, 200)], ids=["high", "wide"])
def test_a_picture_of_another_shape_is_another_though_all_in_it_lies_alike(size: tuple[int, int], seen: Sight) -> None:
    picture = scene(1)
    assert seen.known(seen(picture.resize(size)), {"it": seen(picture)}) == {}


def test_a_page_that_was_photographed_smaller_is_the_same_page(seen: Sight) -> None:
    pages = {str(seed): seen(page(seed)) for seed in range(6)}
    copy = seen(page(3).resize((240, 320)), "JPEG", quality=50)
    assert seen.known(copy, pages) == {"3": Likeness.RECOMPRESSED}


def test_pictures_that_show_nothing_are_not_recognised(seen: Sight) -> None:
    plain = seen(Image.new("RGB", (300, 200), "white"))
    gradient = Image.linear_gradient("L").convert("RGB")
    assert seen.known(plain, {"white": plain, "black": seen(Image.new("RGB", (300, 200)))}) == {}
    assert seen.known(seen(gradient), {"gradient": seen(gradient.resize((90, 400)))}) == {}


def test_a_picture_that_is_turned_by_its_metadata_is_the_same_as_the_one_that_was_turned(seen: Sight) -> None:
    picture = scene(5)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = seen(picture, "JPEG", quality=90, exif=exif)
    assert seen.known(turned, {"upright": seen(picture.rotate(-90, expand=True))}) == {"upright": Likeness.RECOMPRESSED}


def test_a_print_of_another_kind_is_no_print() -> None:
    assert read_print(b"12345678") is None
    assert len(make_print(bytes(64 * 64), 1.5)) == PRINT_BYTES
