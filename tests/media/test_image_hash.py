"""A picture is known again when it was written anew, resized or cropped, and others are not taken for it."""

from pathlib import Path

import pytest
from PIL import Image

from belino.domain.media import Likeness
from belino.media.image.decode import prepare
from belino.media.image.images import greys
from belino.media.image_hash import PRINT_BYTES, ImagePrint, _checked, make_print, read_print, recognise
from media.pictures import saved
from media.scenery import cropped, page, scene

pytestmark = pytest.mark.slow

prepare()


@pytest.fixture
def seen(tmp_path: Path) -> "Sight":
    return Sight(tmp_path)


class Sight:
    """Prints of pictures, made as the sandbox's child makes them."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "picture"

    def __call__(self, picture: Image.Image, format_: str = "PNG", **options: object) -> ImagePrint:
        self._path.write_bytes(saved(picture, format_, **options))
        with self._path.open("rb") as file:
            found = read_print(make_print(*_checked(greys(file.fileno(), {}))))
        assert found is not None
        return found


@pytest.mark.parametrize("seed", range(3))
def test_a_picture_that_was_written_anew_or_resized_is_the_same(seed: int, seen: Sight) -> None:
    picture = scene(seed)
    others = {"it": seen(picture), "other": seen(scene(99))}
    for copy in (seen(picture, "JPEG", quality=15), seen(picture.resize((200, 150)), "WEBP", quality=60)):
        assert recognise(copy, others) == {"it": Likeness.RECOMPRESSED}


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
    assert recognise(part, {"whole": whole, "other": seen(scene(99))}) == {"whole": Likeness.CROPPED}
    assert recognise(whole, {"part": part, "other": seen(scene(99))}) == {"part": Likeness.UNCROPPED}


def test_other_pictures_and_other_pages_of_one_look_are_not_taken_for_it(seen: Sight) -> None:
    pictures = {f"scene {seed}": seen(scene(seed)) for seed in range(12)}
    pictures |= {f"page {seed}": seen(page(seed)) for seed in range(12)}
    for name, picture in pictures.items():
        others = {other: found for other, found in pictures.items() if other != name}
        assert recognise(picture, others) == {}


@pytest.mark.parametrize("size", [(300, 800), (1500, 200)], ids=["high", "wide"])
def test_a_picture_of_another_shape_is_another_though_all_in_it_lies_alike(size: tuple[int, int], seen: Sight) -> None:
    picture = scene(1)
    assert recognise(seen(picture.resize(size)), {"it": seen(picture)}) == {}


def test_a_page_that_was_photographed_smaller_is_the_same_page(seen: Sight) -> None:
    pages = {str(seed): seen(page(seed)) for seed in range(6)}
    copy = seen(page(3).resize((240, 320)), "JPEG", quality=50)
    assert recognise(copy, pages) == {"3": Likeness.RECOMPRESSED}


def test_pictures_that_show_nothing_are_not_recognised(seen: Sight) -> None:
    plain = seen(Image.new("RGB", (300, 200), "white"))
    gradient = Image.linear_gradient("L").convert("RGB")
    assert recognise(plain, {"white": plain, "black": seen(Image.new("RGB", (300, 200)))}) == {}
    assert recognise(seen(gradient), {"gradient": seen(gradient.resize((90, 400)))}) == {}


def test_a_picture_that_is_turned_by_its_metadata_is_the_same_as_the_one_that_was_turned(seen: Sight) -> None:
    picture = scene(5)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = seen(picture, "JPEG", quality=90, exif=exif)
    assert recognise(turned, {"upright": seen(picture.rotate(-90, expand=True))}) == {"upright": Likeness.RECOMPRESSED}


def test_a_print_of_another_kind_is_no_print() -> None:
    assert read_print(b"12345678") is None
    assert len(make_print(bytes(64 * 64), 1.5)) == PRINT_BYTES
