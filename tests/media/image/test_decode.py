"""A hostile picture is opened within limits, turned upright, and means the same afterwards."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pillow_heif
import pytest
from PIL import Image, ImageChops, ImageCms, ImageDraw, ImageOps, ImageStat
from PIL.PngImagePlugin import PngInfo

from belino.domain.errors import MediaRefused
from belino.media.image import decode, images
from belino.media.sandbox.walls import MAX_PIXELS_NAME
from belino.testing import make_gif, make_jpeg, make_png
from media.pictures import (
    FOREIGN,
    FORMATS,
    FURTHER,
    GENEROUS,
    Fit,
    animation,
    corners,
    drawing,
    exif,
    fitter,
    opened,
    photo,
    probed,
    quarters,
    raw,
    saved,
    with_hole,
)

# Thousands of encodes: too long for `make check`.
pytestmark = pytest.mark.slow


@pytest.fixture
def fitted(tmp_path: Path) -> Fit:
    return fitter(tmp_path)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format_", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_a_picture_is_turned_as_its_metadata_says(format_: str, orientation: int, fitted: Fit, tmp_path: Path) -> None:
    content = saved(quarters(), format_, exif=exif(orientation))
    expected = ImageOps.exif_transpose(opened(saved(quarters(), "JPEG", exif=exif(orientation))))
    answer, made = fitted(content)
    picture = opened(made)
    assert corners(picture) == corners(expected)
    assert picture.size == expected.size == (answer["width"], answer["height"])
    facts = probed(content, tmp_path)
    assert (facts["width"], facts["height"]) == expected.size
    assert ImageOps.exif_transpose(picture).size == picture.size


@pytest.mark.parametrize("max_bytes", [GENEROUS, 60_000, 20_000])
@pytest.mark.parametrize("format_", ["JPEG", "PNG", "WEBP"])
def test_a_turn_that_only_other_metadata_tells_changes_nothing(format_: str, max_bytes: int, fitted: Fit) -> None:
    xmp = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    picture, words = Image.blend(photo(640, 400), quarters((640, 400)), 0.6), PngInfo()
    words.add_itxt("XML:com.adobe.xmp", xmp)
    content = saved(picture, format_, quality=96, **({"pnginfo": words} if format_ == "PNG" else {"xmp": xmp.encode()}))
    assert opened(content).getexif()[0x0112] == 6
    _, made = fitted(content, max_bytes=max_bytes)
    assert corners(opened(made)) == corners(picture)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_tiff_that_only_pillow_opens_is_turned_once(orientation: int, fitted: Fit, tmp_path: Path) -> None:
    light, plain = Image.linear_gradient("L").resize((64, 32)), Image.new("L", (64, 32), 128)
    content = saved(Image.merge("LAB", (light, plain, plain)), "TIFF", exif=exif(orientation))
    expected = ImageOps.exif_transpose(opened(saved(light, "JPEG", exif=exif(orientation))))
    picture = opened(fitted(content)[1]).convert("L")
    assert picture.size == expected.size
    assert max(ImageStat.Stat(ImageChops.difference(picture, expected)).mean) < 12
    facts = probed(content, tmp_path)
    assert (facts["width"], facts["height"]) == expected.size


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_avif_that_its_container_turns_is_turned_once(orientation: int, fitted: Fit) -> None:
    turned = ImageOps.exif_transpose(opened(saved(quarters(), "JPEG", exif=exif(orientation))))
    _, made = fitted(saved(quarters(), "AVIF", exif=exif(orientation), quality=90))
    assert corners(opened(made)) == corners(turned)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_heic_is_turned_as_its_container_says_whatever_its_exif_says(orientation: int, fitted: Fit) -> None:
    content = saved(quarters(), "HEIF", exif=exif(orientation), quality=90)
    _, made = fitted(content)
    assert corners(opened(made)) == corners(opened(content))


MODES = {
    "1-bit": quarters().convert("1"),
    "grey": quarters().convert("L"),
    "grey with alpha": with_hole(quarters()).convert("LA"),
    "palette": quarters().quantize(8),
    "rgb": quarters(),
    "rgba": with_hole(quarters()),
    "16-bit grey": Image.frombytes(
        "I;16", (64, 32), b"".join((x * 1000).to_bytes(2, "little") for x in range(64)) * 32
    ),
    "cmyk": quarters().convert("CMYK"),
    "ycc": quarters().convert("YCbCr"),
}
MODE_FORMATS = [
    *((mode, "PNG") for mode in MODES if mode not in ("cmyk", "ycc")),
    *((mode, "TIFF") for mode in MODES),
    *((mode, "JPEG") for mode in ("grey", "rgb", "cmyk")),
    *((mode, "WEBP") for mode in ("rgb", "rgba")),
    *((mode, "GIF") for mode in ("1-bit", "grey", "palette", "rgb", "rgba")),
    *((mode, "BMP") for mode in ("1-bit", "grey", "palette", "rgb")),
    *((mode, "HEIF") for mode in ("grey", "rgb", "rgba")),
    *((mode, "AVIF") for mode in ("grey", "rgb", "rgba")),
]


@pytest.mark.parametrize(
    "formats", [images.TAKEN, images.FORMATS, ("image/jpeg",), ("image/png",), ("image/webp",)], ids=str
)
@pytest.mark.parametrize(("mode", "format_"), MODE_FORMATS)
def test_every_kind_of_pixels_looks_the_same_afterwards(
    mode: str, format_: str, formats: tuple[str, ...], fitted: Fit
) -> None:
    content = saved(MODES[mode], format_)
    answer, made = fitted(content, formats=list(formats))
    picture = opened(made)
    assert answer["mime"] in formats
    assert Image.MIME[picture.format or ""] == answer["mime"]
    assert picture.size == (64, 32)
    expected = opened(content)
    if expected.mode.startswith("I"):
        expected = MODES["grey"].point(lambda _: 0)
        expected.putdata([x * 1000 // 256 for x in range(64)] * 32)
    before, after = (_on_white(each) for each in (expected, picture))
    difference = ImageChops.difference(before, after).convert("L")
    # Without a profile CMYK has no colours of its own: print is duller than the naive formula.
    allowed = 60 if mode == "cmyk" else 12
    assert sum(value * count for value, count in enumerate(difference.histogram())) / (64 * 32) < allowed


def _on_white(picture: Image.Image) -> Image.Image:
    whole = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", whole.size, (255, 255, 255)), whole).convert("RGB")


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "packbits", "jpeg"])
def test_a_tiff_has_its_colours_however_they_are_packed(compression: str | None, fitted: Fit) -> None:
    options = {"compression": compression} if compression else {}
    _, made = fitted(saved(quarters().convert("YCbCr"), "TIFF", **options))
    assert corners(opened(made)) == corners(quarters())


@pytest.mark.parametrize(("least", "most"), [(0.0, 1.0), (0.0, 255.0), (-40.0, 3_000.0)])
def test_measurements_are_seen_from_black_to_white_whatever_their_range(least: float, most: float, fitted: Fit) -> None:
    measured = Image.linear_gradient("L").convert("F").point(lambda value: value * ((most - least) / 255) + least)
    _, made = fitted(saved(measured, "TIFF"))
    assert opened(made).convert("L").getextrema() == (0, 255)


@pytest.mark.parametrize("format_", ["PNG", "WEBP", "TIFF"])
def test_alpha_that_hides_something_is_kept_and_alpha_that_hides_nothing_is_not(format_: str, fitted: Fit) -> None:
    idle = photo(600, 400).convert("RGBA")
    _, made = fitted(saved(idle, format_), max_bytes=20_000)
    assert not opened(made).has_transparency_data
    _, made = fitted(saved(with_hole(idle), format_), max_bytes=20_000)
    assert opened(made).getchannel("A").getextrema() == pytest.approx((0, 255), abs=6)


def test_hidden_colour_does_not_bleed_into_what_is_seen(fitted: Fit) -> None:
    picture = Image.new("RGBA", (400, 400), (255, 0, 0, 0))
    ImageDraw.Draw(picture).rectangle((100, 100, 299, 299), fill=(0, 0, 255, 255))
    _, made = fitted(saved(picture, "PNG"), max_side=90)
    red, _, _, alpha = opened(made).convert("RGBA").split()
    seen = alpha.point(lambda value: 255 if value > 128 else 0)
    assert max(ImageChops.multiply(red, seen).tobytes()) < 40


@pytest.mark.parametrize("name", ["test", "sRGB"])
def test_a_colour_profile_is_applied_and_gone_whatever_it_calls_itself(name: str, fitted: Fit) -> None:
    # A profile under which the stored red and blue mean each other: nobody may ignore it.
    swapped = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    for tag in (b"rXYZ", b"bXYZ"):
        assert tag in swapped
    swapped = bytearray(bytes(swapped).replace(b"rXYZ", b"tmpX").replace(b"bXYZ", b"rXYZ").replace(b"tmpX", b"bXYZ"))
    named = bytes(swapped).replace(b"s\0R\0G\0B", "\0".join(name).encode()).replace(b"sRGB", name.encode())
    picture = Image.new("RGB", (40, 40), (250, 10, 10))
    _, made = fitted(saved(picture, "PNG", icc_profile=named))
    red, _, blue = opened(made).convert("RGB").getpixel((20, 20))  # type: ignore[misc]
    assert blue > 200
    assert red < 60
    assert b"iCCP" not in made


@pytest.mark.parametrize("format_", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_of_an_animation_is_shown(format_: str, fitted: Fit, tmp_path: Path) -> None:
    content = animation(format_, 12)
    assert probed(content, tmp_path)["frames"] == 12
    _, made = fitted(content)
    still = opened(made)
    assert corners(still) == ["red", "green", "blue", "white"]
    assert getattr(still, "n_frames", 1) == 1
    assert len(made) < len(content)


@pytest.mark.parametrize("format_", ["GIF", "WEBP", "PNG"])
def test_a_long_animation_shows_its_first_frame(format_: str, fitted: Fit, tmp_path: Path) -> None:
    content = animation(format_, 250, (40, 20))
    assert probed(content, tmp_path)["frames"] == 250
    assert corners(opened(fitted(content)[1])) == ["red", "green", "blue", "white"]


def test_few_large_frames_are_no_reason_to_show_none(fitted: Fit, tmp_path: Path) -> None:
    first = make_gif(6_000, 4_000)
    frame = first[19:-1]
    content = first[:-1] + frame * 19 + b";"
    assert probed(content, tmp_path)["frames"] == 20
    assert opened(fitted(content, max_side=60)[1]).size == (60, 40)


def _gif_that_claims(side: int) -> bytes:
    """A small GIF whose screen and frame say they are large: nothing is decoded to find out."""
    claimed = struct.pack("<HH", side, side)
    gif = make_gif(2, 2)
    frame = gif.index(b",\0\0\0\0") + 5
    return gif[:6] + claimed + gif[10:frame] + claimed + gif[frame + 4 :]


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_png(16_385, 1),
        lambda: _gif_that_claims(7_000),
        lambda: saved(Image.new("1", (7_000, 7_000)), "BMP"),
        lambda: b"\xff\x0a" + (7_999 << 3 | 1 << 1 | 1 << 16).to_bytes(12, "little"),
    ],
    ids=["long png", "gif", "bmp", "jxl"],
)
def test_too_many_pixels_are_refused_before_any_is_decoded(
    make: Callable[[], bytes], fitted: Fit, tmp_path: Path
) -> None:
    content = make()
    with pytest.raises(MediaRefused, match="pixels"):
        probed(content, tmp_path)
    with pytest.raises(MediaRefused, match="pixels"):
        fitted(content)


@pytest.mark.parametrize("name", FOREIGN)
def test_only_the_formats_on_the_list_are_decoded(name: str, fitted: Fit, tmp_path: Path) -> None:
    with pytest.raises(MediaRefused, match="type that is decoded"):
        probed(FOREIGN[name](), tmp_path)
    with pytest.raises(MediaRefused):
        fitted(FOREIGN[name]())


@pytest.mark.parametrize("loader", ["svgload_buffer", "csvload_source", "matrixload_source", "vipsload_source"])
def test_the_library_itself_refuses_other_loaders(loader: str) -> None:
    pyvips = decode.vips()
    with pytest.raises(pyvips.Error):
        source = drawing() if loader.endswith("buffer") else pyvips.Source.new_from_memory(b"1 1\n1")
        getattr(pyvips.Image, loader)(source)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_picture_cut_short_is_refused_or_shown_never_half_believed(format_: str, fitted: Fit) -> None:
    content = saved(photo(320, 200), format_)
    for share in (0.02, 0.3, 0.6, 0.9):
        try:
            _, made = fitted(content[: int(len(content) * share)])
        except MediaRefused:
            continue
        assert opened(made).size == (320, 200), share


def test_a_picture_nobody_recognises_is_refused_in_words_for_a_person(fitted: Fit) -> None:
    with pytest.raises(MediaRefused, match=r"^the image/heic cannot be opened: its beginning is damaged$"):
        fitted(b"\0\0\0\x18ftypheic" + bytes(60))


@pytest.mark.parametrize("format_", ["JPEG", "PNG"])
@pytest.mark.parametrize("max_bytes", [GENEROUS, 4_000])
def test_half_a_picture_is_shown_as_far_as_it_goes_and_said_to_be_half(
    format_: str, max_bytes: int, fitted: Fit
) -> None:
    whole = photo(320, 200)
    content = saved(whole, format_)
    answer, made = fitted(content[: len(content) // 2], max_bytes=max_bytes)
    assert answer["note"] == "partial"
    upper = (0, 0, 320, 80)
    shown = opened(made).convert("RGB").resize(whole.size)
    assert max(ImageStat.Stat(ImageChops.difference(shown.crop(upper), whole.crop(upper))).mean) < 12
    assert fitted(content, max_bytes=max_bytes)[0].get("note") is None
    with pytest.raises(MediaRefused):
        fitted(content[: len(content) // 50], max_bytes=max_bytes)


def test_a_jpeg_without_its_last_two_bytes_is_shown(fitted: Fit) -> None:
    _, made = fitted(saved(quarters((320, 200)), "JPEG")[:-2], max_side=100)
    assert corners(opened(made)) == ["red", "green", "blue", "white"]


@pytest.mark.parametrize(
    "make",
    [lambda: make_png(8_000, 8_000), lambda: make_jpeg(8_064, 6_048), lambda: make_jpeg(16_320, 12_240)],
    ids=["64 megapixels of png", "48 megapixels of jpeg", "200 megapixels of jpeg"],
)
def test_a_large_picture_is_shrunk_while_it_is_loaded(make: Callable[[], bytes], fitted: Fit, tmp_path: Path) -> None:
    content = make()
    facts = probed(content, tmp_path)
    assert facts["width"] * facts["height"] > decode.MAX_PIXELS
    _, made = fitted(content, max_side=320)
    assert max(opened(made).size) == 320


def test_the_limit_of_pixels_is_set_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = saved(Image.new("1", (200, 100)), "BMP")
    assert probed(content, tmp_path)["width"] == 200
    monkeypatch.setenv(MAX_PIXELS_NAME, "19999")
    with pytest.raises(MediaRefused, match=r"at most 19,999 pixels are decoded \(media.max_pixels\)"):
        probed(content, tmp_path)


@pytest.mark.parametrize("name", FURTHER)
def test_rarer_types_are_shown(name: str, fitted: Fit, tmp_path: Path) -> None:
    content = FURTHER[name]()
    facts, (_, made) = probed(content, tmp_path), fitted(content)
    picture = opened(made)
    assert corners(picture) == ["red", "green", "blue", "white"]
    assert picture.size == (facts["width"], facts["height"])


def test_a_drawing_reaches_nothing_and_says_that_its_words_are_missing(fitted: Fit, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(make_png(9, 9, color=(0, 0, 0)))
    inside = (
        f'<image href="{secret}" width="64" height="32"/><image href="file://{secret}" width="64" height="32"/>'
        '<image href="http://127.0.0.1:9/x.png" width="64" height="32"/>'
        f'<style>@import url("{secret}");</style><script>document.documentElement.innerHTML = ""</script>'
        "<text>hello</text>"
    )
    answer, made = fitted(drawing(inside.encode()))
    assert corners(opened(made)) == ["red", "green", "blue", "white"]
    assert answer["note"] == "wordless"
    assert fitted(drawing())[0]["note"] is None


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (b'width="24" height="12"', (768, 384)),
        (b'viewBox="0 0 200 100"', (768, 384)),
        (b'width="10cm" viewBox="0 0 200 100"', (768, 384)),
        (b'width="100%" height="100%"', (768, 384)),
        (b'width="9000" height="4500"', (4_096, 2_048)),
    ],
)
def test_a_drawing_is_as_large_as_it_is_useful(size: bytes, shown: tuple[int, int], tmp_path: Path) -> None:
    facts = probed(b'<svg xmlns="http://www.w3.org/2000/svg" %s><rect width="9" height="9"/></svg>' % size, tmp_path)
    assert (facts["width"], facts["height"]) == shown


@pytest.mark.parametrize("orientation", [1, 6, 8])
def test_a_raw_photograph_is_shown_by_its_preview_as_the_camera_was_held(orientation: int, fitted: Fit) -> None:
    picture = quarters((128, 64))
    turned = ImageOps.exif_transpose(opened(saved(picture, "JPEG", exif=exif(orientation))))
    answer, made = fitted(raw(picture, orientation=orientation))
    assert corners(opened(made)) == corners(turned)
    assert answer["note"] == "preview"


def test_a_raw_photograph_without_its_preview_is_refused_never_black(fitted: Fit) -> None:
    with pytest.raises(MediaRefused, match="no preview"):
        fitted(raw(quarters((128, 64)))[:300])
    assert opened(fitted(raw(quarters((128, 64)), sensor=False))[1]).size == (8, 8)


def test_an_early_raw_photograph_of_another_build_has_its_preview_found(fitted: Fit) -> None:
    preview = saved(quarters((128, 64)), "JPEG", quality=95, exif=exif(8))
    _, made = fitted(b"FUJIFILMCCD-RAW 0201" + bytes(300) + preview + bytes(range(256)) * 9)
    assert opened(made).size == (64, 128)


def test_a_large_heic_is_decoded_tile_by_tile(fitted: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pillow_heif.options, "GRID_TILE_SIZE", 256)
    content = saved(quarters((1_000, 600)), "HEIF", quality=90)
    monkeypatch.setenv(MAX_PIXELS_NAME, "200000")
    facts, (_, made) = probed(content, tmp_path), fitted(content, max_side=250)
    assert (facts["width"], facts["height"]) == (1_000, 600)
    assert opened(made).size == (250, 150)
    assert corners(opened(made)) == ["red", "green", "blue", "white"]


@pytest.mark.parametrize(("cut", "why"), [(300, "its end is missing")])
def test_a_heic_says_what_is_wrong_with_it(cut: int, why: str, fitted: Fit) -> None:
    with pytest.raises(MediaRefused, match=why):
        fitted(saved(photo(320, 200), "HEIF")[:cut])
    strange = saved(photo(64, 48), "HEIF").replace(b"hvc1", b"unci").replace(b"hvcC", b"uncC")
    with pytest.raises(MediaRefused, match=r"its encoding \(unci\) is not decoded here"):
        fitted(strange)


@pytest.mark.parametrize(
    ("format_", "fault"),
    [("JPEG", b"\xff\xda\0\2"), ("GIF", b"\1")],
    ids=["scan in a scan", "code that is not known yet"],
)
def test_what_is_handed_on_as_it_came_is_read_by_others_to_its_end(format_: str, fault: bytes, fitted: Fit) -> None:
    whole = saved(photo(90, 70).convert("L"), format_)
    for at in range(len(whole) // 2, len(whole) - 8, 5):
        try:
            _, made = fitted(whole[:at] + fault + whole[at + len(fault) :])
        except MediaRefused:
            continue
        assert opened(made).size == (90, 70), at


def test_a_gif_whose_screen_is_larger_than_its_frame_has_the_size_it_was_told(fitted: Fit) -> None:
    gif = saved(photo(90, 70), "GIF")
    answer, made = fitted(gif[:6] + struct.pack("<HH", 90, 65_410) + gif[10:])
    assert opened(made).size == (answer["width"], answer["height"])


@pytest.mark.parametrize("format_", FORMATS)
def test_flipped_bytes_give_a_picture_or_a_refusal(format_: str, fitted: Fit) -> None:
    whole, rng = saved(photo(64, 48), format_), random.Random(format_)
    for _ in range(25):
        content = bytearray(whole)
        for _ in range(rng.randint(1, 12)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        try:
            answer, made = fitted(bytes(content), max_bytes=3_000)
        except MediaRefused:
            continue
        assert opened(made).size == (answer["width"], answer["height"])
        assert len(made) <= 3_000


def test_heic_without_its_extra_says_what_is_missing(fitted: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_heif", lambda: False)
    with pytest.raises(MediaRefused, match=r"belino\[heic\]"):
        fitted(saved(quarters(), "HEIF"))
