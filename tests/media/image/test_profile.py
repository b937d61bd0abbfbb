"""A colour profile counts as sRGB by what it does, not by its name."""

import io
import struct
from pathlib import Path
from typing import Literal

import pytest
from PIL import Image, ImageChops, ImageCms, ImageStat

from belino.media.image.profile import is_srgb
from media.pictures import Fit, fitter, opened, quarters, saved

SRGB = ((0.4361, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141))
P3 = ((0.5151, 0.2412, -0.0011), (0.2920, 0.6922, 0.0419), (0.1571, 0.0666, 0.7841))


def fractions(*parts: float) -> bytes:
    return b"".join(struct.pack(">i", round(part * 65536)) for part in parts)


def formula(kind: int, *parts: float) -> bytes:
    return b"para\0\0\0\0" + struct.pack(">HH", kind, 0) + fractions(*parts)


def table(*entries: int) -> bytes:
    return b"curv\0\0\0\0" + struct.pack(f">I{len(entries)}H", len(entries), *entries)


def light(number: float) -> float:
    return number / 12.92 if number <= 0.04045 else ((number + 0.055) / 1.055) ** 2.4


USUAL = formula(3, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)
LONG = table(*(round(65535 * light(entry / 4095)) for entry in range(4096)))
SHORT = table(*(round(65535 * light(entry / 25)) for entry in range(26)))


def profile(colours: tuple[tuple[float, ...], ...], curve: bytes, name: str, space: bytes = b"RGB ") -> bytes:
    """A profile as programs write them: name, curves, colours."""
    white = b"XYZ \0\0\0\0" + fractions(0.9642, 1, 0.8249)
    tags = [(b"desc", b"desc\0\0\0\0" + struct.pack(">I", len(name) + 1) + name.encode() + bytes(79)), (b"wtpt", white)]
    if space == b"GRAY":
        tags += [(b"kTRC", curve)]
    else:
        tags += [(tag, curve) for tag in (b"rTRC", b"gTRC", b"bTRC")]
        mixed = zip((b"rXYZ", b"gXYZ", b"bXYZ"), colours, strict=True)
        tags += [(tag, b"XYZ \0\0\0\0" + fractions(*colour)) for tag, colour in mixed]
    listed, body = struct.pack(">I", len(tags)), b""
    for tag, content in tags:
        listed += tag + struct.pack(">II", 132 + 12 * len(tags) + len(body), len(content))
        body += content + bytes(-len(content) % 4)
    head = struct.pack(">I", 128 + len(listed) + len(body)) + b"none\x02\x10\0\0mntr" + space + b"XYZ " + bytes(12)
    head += b"acsp" + bytes(28) + fractions(0.9642, 1, 0.8249)
    return head.ljust(128, b"\0") + listed + body


@pytest.mark.parametrize(
    "curve", [USUAL, LONG, SHORT, formula(0, 2.2), table(563)], ids=["usual", "long", "short", "power", "byte"]
)
@pytest.mark.parametrize("name", ["sRGB", "c2"])
def test_srgb_is_known_however_it_is_told(name: str, curve: bytes) -> None:
    assert is_srgb(profile(SRGB, curve, name))


def test_the_profile_that_a_colour_library_makes_is_known() -> None:
    assert is_srgb(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())


OTHERS = {
    "linear": profile(SRGB, table(), "sRGB"),
    "linear by a formula": profile(SRGB, formula(0, 1.0), "sRGB"),
    "bright": profile(SRGB, table(461), "sRGB"),
    "wide": profile(P3, USUAL, "sRGB"),
    "wide behind a long curve": profile(P3, LONG, "sRGB"),
    "wide with another name inside": profile(P3, USUAL, "not sRGB"),
    "linear grey": profile((), table(), "sRGB", b"GRAY"),
}


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["JPEG", "PNG"])
@pytest.mark.parametrize("name", OTHERS)
def test_what_only_calls_itself_srgb_is_applied(name: str, format_: str, tmp_path: Path) -> None:
    fitted: Fit = fitter(tmp_path)
    picture = quarters((640, 400)).convert("L" if "grey" in name else "RGB")
    expected = ImageCms.profileToProfile(
        picture,
        ImageCms.ImageCmsProfile(io.BytesIO(OTHERS[name])),
        ImageCms.createProfile("sRGB"),
        outputMode="RGB",
    )
    assert isinstance(expected, Image.Image)
    _, made = fitted(saved(picture, format_, icc_profile=OTHERS[name]))
    assert "icc_profile" not in opened(made).info
    difference = ImageChops.difference(opened(made).convert("RGB"), expected)
    assert max(ImageStat.Stat(difference).mean) < 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LAB", "XYZ"])
@pytest.mark.parametrize("format_", ["JPEG", "PNG"])
def test_a_profile_of_another_kind_of_picture_changes_nothing(
    format_: str, kind: Literal["LAB", "XYZ"], tmp_path: Path
) -> None:
    foreign = ImageCms.ImageCmsProfile(ImageCms.createProfile(kind)).tobytes()
    _, made = fitter(tmp_path)(saved(quarters((640, 400)), format_, icc_profile=foreign))
    assert "icc_profile" not in opened(made).info
    difference = ImageChops.difference(opened(made).convert("RGB"), quarters((640, 400)))
    assert max(ImageStat.Stat(difference).mean) < 3


def test_half_a_profile_is_none() -> None:
    whole = profile(SRGB, USUAL, "sRGB")
    assert is_srgb(whole)
    assert not any(is_srgb(whole[:end]) for end in range(len(whole)))


@pytest.mark.parametrize(
    "curve",
    [
        formula(0, -32768),
        formula(0, 32767),
        formula(3, 9, -9, -9, 0, 0),
        formula(1, 2.4, 1, 0),
        b"curv\0\0\0\0" + b"\xff" * 4,
        b"",
    ],
    ids=["least", "most", "negative", "other", "long", "none"],
)
def test_a_curve_that_nobody_draws_is_not_the_one_of_srgb(curve: bytes) -> None:
    assert not is_srgb(profile(SRGB, curve, "sRGB"))
