"""The best picture under a limit, never worse than no picture."""

from pathlib import Path

import pytest
from PIL import ImageChops, ImageStat

from belino.domain.errors import MediaRefused
from belino.media.image import images
from media.pictures import PICTURES, Fit, fitter, noise, opened, photo, picture, saved, screen

# Thousands of encodes: too long for `make check`.
pytestmark = pytest.mark.slow

SIX_STEPS = 6


@pytest.fixture
def fitted(tmp_path: Path) -> Fit:
    return fitter(tmp_path)


@pytest.mark.parametrize("size", [(1, 1), (1, 4_000), (4_000, 1), (2, 2), (3, 700)])
def test_odd_shapes_fit_too(size: tuple[int, int], fitted: Fit) -> None:
    answer, made = fitted(saved(noise(*size), "PNG"), max_bytes=1_500, max_side=1_000)
    assert opened(made).size == (answer["width"], answer["height"])
    assert max(answer["width"], answer["height"]) <= 1_000
    assert len(made) <= 1_500


@pytest.mark.parametrize("formats", [images.FORMATS, ("image/jpeg", "image/png"), ("image/png",)], ids=str)
@pytest.mark.parametrize("max_bytes", [2_000, 30_000, 190_000])
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_made_to_fit_in_few_encodes(
    name: str, max_bytes: int, formats: tuple[str, ...], fitted: Fit
) -> None:
    answer, made = fitted(picture(name), max_bytes=max_bytes, formats=list(formats))
    assert len(made) <= max_bytes
    assert answer["bytes"] == len(made)
    assert answer["encodes"] <= 12
    assert opened(made).size == (answer["width"], answer["height"])


@pytest.mark.parametrize("name", PICTURES)
def test_the_limit_is_used(name: str, fitted: Fit) -> None:
    """What is left unused is quality nobody got, unless there is no better quality."""
    answer, made = fitted(picture(name), max_bytes=30_000)
    assert len(made) > 0.8 * 30_000 or answer["quality"] >= 95


@pytest.mark.parametrize("max_bytes", [8_000, 60_000])
@pytest.mark.parametrize("name", PICTURES)
def test_it_never_fails_where_six_steps_of_75_percent_succeed(name: str, max_bytes: int, fitted: Fit) -> None:
    if _six_steps(picture(name), max_bytes):
        assert len(fitted(picture(name), max_bytes=max_bytes)[1]) <= max_bytes


def _six_steps(content: bytes, max_bytes: int) -> bool:
    tried = opened(content)
    format_ = tried.format or "JPEG"
    for _ in range(SIX_STEPS + 1):
        if len(saved(tried, format_)) <= max_bytes:
            return True
        tried = tried.resize((max(1, tried.width * 3 // 4), max(1, tried.height * 3 // 4)))
    return False


@pytest.mark.parametrize("share", [0.9, 0.66])
def test_text_on_a_screen_stays_whole_and_sharp_where_that_fits(share: float, fitted: Fit) -> None:
    content = saved(screen(1200, 900), "PNG")
    answer, made = fitted(content, max_bytes=int(len(content) * share))
    assert answer["quality"] >= 99
    off = ImageStat.Stat(ImageChops.difference(opened(made).convert("RGB"), screen(1200, 900)))
    assert max(off.mean) < 0.5


def test_a_photograph_keeps_its_pixels_as_long_as_quality_can_pay_for_them(fitted: Fit) -> None:
    content = picture("photo")
    whole, _ = fitted(content, max_bytes=len(content) // 2)
    small, _ = fitted(content, max_bytes=len(content) // 30)
    assert (whole["width"], whole["height"]) == opened(content).size
    assert small["width"] < whole["width"]


@pytest.mark.parametrize("size", [(1_200, 900), (900, 1_600), (1_900, 1_400), (2_600, 1_100)], ids=str)
def test_a_photograph_that_fits_as_people_save_it_is_not_made_coarser(size: tuple[int, int], fitted: Fit) -> None:
    taken = saved(photo(*size), "JPEG", quality=97)
    usual = saved(opened(taken), "JPEG", quality=85)
    answer, _ = fitted(taken, max_bytes=len(usual) + 1_000)
    assert answer["quality"] >= 85
    assert (answer["width"], answer["height"]) == size


@pytest.mark.parametrize("name", PICTURES)
def test_the_same_picture_gives_the_same_bytes(name: str, fitted: Fit) -> None:
    assert fitted(picture(name), max_bytes=20_000) == fitted(picture(name), max_bytes=20_000)


def test_sides_and_pixels_stay_under_their_limits_and_the_shape_is_kept(fitted: Fit) -> None:
    for options in ({"max_side": 333}, {"max_pixels": 40_000}, {"max_side": 333, "max_pixels": 40_000}):
        _, made = fitted(picture("photo"), **options)
        width, height = opened(made).size
        assert max(width, height) <= options.get("max_side", 1_200)
        assert width * height <= options.get("max_pixels", 1_200 * 900)
        assert width / height == pytest.approx(4 / 3, rel=0.02)
        assert width * height >= 0.9 * min(333 * 249, options.get("max_pixels", 1_200 * 900))


@pytest.mark.parametrize("name", ["photo", "photo as png", "animated"])
def test_of_a_tiny_limit_the_picture_gets_its_part_not_the_tables_of_its_format(name: str, fitted: Fit) -> None:
    answer, made = fitted(picture(name), max_bytes=300)
    assert len(made) <= 300
    assert min(answer["width"], answer["height"]) >= 12


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (3, 5)], ids=str)
def test_a_small_picture_is_written_with_less_around_it(size: tuple[int, int], fitted: Fit) -> None:
    content = saved(noise(*size), "JPEG")
    assert len(content) > 500
    _, made = fitted(content, max_bytes=500)
    assert len(made) <= 500
    assert opened(made).size == size
    _, made = fitted(content, max_bytes=500, formats=["image/jpeg"])
    assert len(made) <= 500
    assert opened(made).format == "JPEG"


def test_a_limit_that_nothing_meets_is_refused(fitted: Fit) -> None:
    with pytest.raises(MediaRefused, match="40 bytes"):
        fitted(picture("photo"), max_bytes=40)


def test_a_thumb_is_small(fitted: Fit) -> None:
    _, made = fitted(picture("photo"), max_bytes=64 * 1024, max_side=256)
    assert max(opened(made).size) == 256
    assert len(made) <= 64 * 1024
