"""Decode a hostile picture in the sandbox: check its limits, then convert it to upright sRGB."""

import io
import os
import re
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.media.image.pixels import TURNED, Pixels, held, resized, upright
from belino.media.image.profile import is_srgb

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 40_000_000
MAX_SIDE = 16_384
MAX_FRAMES = 200
MAX_FRAME_PIXELS = 400_000_000
"""Of all frames together."""

LARGE_WEBP = 20_000_000
"""Above so many pixels the decoder halves rows and columns: it holds several copies of what it decodes."""
HEAD_BYTES = 64 * 1024
SHARP = 1.5
"""A shrinking decoder leaves noise, so a better filter does the last part."""
# What Pillow's plugins raise on broken bytes; more than they document.
PILLOW_ERRORS: tuple[type[Exception], ...] = (
    OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, ArithmeticError, RuntimeError, AttributeError,
    struct.error, zlib.error,
)  # fmt: skip
_CUT_OFF = re.compile(r"truncat|premature|end of (?:file|stream)|not enough", re.IGNORECASE)
_ORIENTATION_TAG = 0x0112
_TIFF_COLOURS, _TIFF_YCC = 262, 6
_TIFF_COMPRESSION, _TIFF_JPEG = 259, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """The decoder of a picture type: a loader of libvips, else Pillow by its format names."""

    mime: str
    loader: str | None
    operation: str | None
    pillow: tuple[str, ...]


_DECODERS = {
    decoder.mime: decoder
    for decoder in (
        Decoder(mime="image/png", loader="pngload_source", operation="VipsForeignLoadPng", pillow=("PNG",)),
        Decoder(mime="image/jpeg", loader="jpegload_source", operation="VipsForeignLoadJpeg", pillow=("JPEG",)),
        Decoder(mime="image/gif", loader="gifload_source", operation="VipsForeignLoadNsgif", pillow=("GIF",)),
        Decoder(mime="image/webp", loader="webpload_source", operation="VipsForeignLoadWebp", pillow=("WEBP",)),
        Decoder(mime="image/avif", loader="heifload_source", operation="VipsForeignLoadHeif", pillow=("AVIF",)),
        Decoder(mime="image/tiff", loader="tiffload_source", operation="VipsForeignLoadTiff", pillow=("TIFF",)),
        Decoder(mime="image/heic", loader=None, operation=None, pillow=("HEIF",)),
        Decoder(mime="image/bmp", loader=None, operation=None, pillow=("BMP",)),
    )
}
"""All other types are refused, whatever the libraries support."""
MIMES = frozenset(_DECODERS)

_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"II[*+]\0|MM\0[*+]"), "image/tiff"),
    (re.compile(rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0", re.DOTALL), "image/bmp"),
)
_TOLD_ONCE = frozenset({"image/jpeg", "image/png", "image/webp"})
"""Types whose orientation the header determines: Pillow would also read it from places other than EXIF."""
_LOSSY = frozenset({"image/jpeg", "image/heic", "image/avif"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The facts of a picture before decoding."""

    mime: str
    width: int
    height: int
    """As stored; `upright` applies the orientation."""
    frames: int
    has_alpha: bool
    orientation: int
    plain: bool
    """Eight bits, grey or RGB, in sRGB."""
    lossy: bool
    """Whether its pixels have been through a lossy encoder."""
    size: int
    """Bytes of the file."""

    @property
    def upright(self) -> tuple[int, int]:
        return (self.height, self.width) if self.orientation in TURNED else (self.width, self.height)


@cache
def vips() -> Any:
    """The library, limited to our list of loaders, one thread, no cache."""
    import pyvips

    pyvips.block_untrusted_set(True)
    pyvips.operation_block_set("VipsForeignLoad", True)
    for decoder in _DECODERS.values():
        if decoder.operation:
            pyvips.operation_block_set(decoder.operation, False)
    pyvips.cache_set_max(0)
    pyvips.vips_lib.vips_concurrency_set(1)
    return pyvips


def prepare() -> None:
    """Import what every job needs, for children forked afterwards."""
    vips()
    import PIL.AvifImagePlugin
    import PIL.MpoImagePlugin
    import PIL.TiffImagePlugin
    import PIL.WebPImagePlugin

    PIL.Image.preinit()
    _heif()


@cache
def _heif() -> bool:
    """Whether HEIC can be opened here: an extra installs the library."""
    try:
        import pillow_heif
    except ImportError:
        return False
    pillow_heif.register_heif_opener()
    return True


def look(source: int) -> Header:
    """The facts of the picture, refused if unsupported or too large; no pixel is decoded."""
    mime = mime_of(os.pread(source, HEAD_BYTES, 0))
    header = _look_vips(source, _DECODERS[mime]) or _look_pillow(source, _DECODERS[mime])
    width, height, frames = header.width, header.height, header.frames
    if max(width, height) > MAX_SIDE:
        raise MediaRefused(f"the picture is {width}×{height}; no side may be over {MAX_SIDE:,} pixels")
    if width * height > MAX_PIXELS:
        raise MediaRefused(f"the picture is {width}×{height}; at most {MAX_PIXELS:,} pixels are decoded")
    if frames > MAX_FRAMES:
        raise MediaRefused(f"the animation has {frames} frames; at most {MAX_FRAMES} are looked at")
    if frames * width * height > MAX_FRAME_PIXELS:
        raise MediaRefused(f"the animation has {frames} frames of {width}×{height}; that is too much")
    return header


def mime_of(head: bytes) -> str:
    """The type of a supported picture, from its first bytes; anything else is refused."""
    if head[4:8] == b"ftyp":
        length = min(int.from_bytes(head[:4]), len(head))
        brands = {head[8:12], *(head[at : at + 4] for at in range(16, length, 4))}
        if brands & _AVIF_BRANDS:
            return "image/avif"
        if brands & _HEIC_BRANDS:
            return "image/heic"
    for signature, mime in _SIGNATURES:
        if signature.match(head):
            return mime
    known = ", ".join(mime.removeprefix("image/").upper() for mime in _DECODERS)
    raise MediaRefused(f"the bytes are not a picture of a type that is decoded ({known})")


def decode(source: int, header: Header, size: tuple[int, int] | None = None, *, to_write: bool = False) -> Pixels:
    """The first frame in memory: upright, eight bits, grey or sRGB, of this size if one is given.

    A JPEG decoder skips what a smaller size does not need. With `to_write`, Pillow holds the pixels of a photograph,
    because it encodes them fastest; any other work is faster without it.
    """
    width, height = size or header.upright
    error = vips().Error
    if to_write and header.mime == "image/jpeg" and header.plain and (width, height) == header.upright:
        with suppress(error, *PILLOW_ERRORS):
            return _by_pillow(source, header, (width, height))
    try:
        return _finish(_load_vips(source, header, (width, height)), header.orientation, header, (width, height))
    except error as first:
        # Pillow tolerates other faults than libvips. What neither reads is broken.
        try:
            return _by_pillow(source, header, (width, height))
        except (error, *PILLOW_ERRORS) as second:
            raise MediaRefused(f"the {header.mime} is damaged: {_short(second)}") from first


def is_whole(source: int, header: Header) -> bool:
    """Decode every pixel and keep none: a picture passed on unchanged must be readable to its end.

    libvips stops at the last pixel. Pillow does not, and most other programs use it.
    """
    with suppress(MemoryError, *PILLOW_ERRORS), _open_pillow(source, _DECODERS[header.mime]) as image:
        alike = image.size == (header.width, header.height)
        image.draft("L", (1, 1))
        image.load()
        return alike
    return False


def _look_vips(source: int, decoder: Decoder) -> Header | None:
    if decoder.loader is None:
        return None
    pyvips = vips()
    try:
        image = _open_vips(source, decoder.loader)
    except pyvips.Error:
        return None
    fields = set(image.get_fields())
    frames = int(image.get("n-pages")) if "n-pages" in fields and decoder.mime != "image/tiff" else 1
    profiled = "icc-profile-data" in fields and not is_srgb(image.get("icc-profile-data"))
    return Header(
        mime=decoder.mime,
        width=image.width,
        height=image.height,
        frames=max(frames, _png_frames(source) if decoder.mime == "image/png" else 1),
        has_alpha=bool(image.hasalpha()),
        orientation=_orientation(image, fields),
        plain=not profiled and image.format == "uchar" and image.interpretation in ("srgb", "b-w"),
        lossy=_is_lossy(source, decoder),
        size=os.fstat(source).st_size,
    )


def _open_vips(source: int, loader: str, **options: object) -> Any:
    opened = vips().Source.new_from_descriptor(source)
    return getattr(vips().Image, loader)(opened, access="sequential", fail_on="truncated", **options)


def _load_vips(source: int, header: Header, size: tuple[int, int]) -> Any:
    loader = _DECODERS[header.mime].loader
    if loader is None:
        raise vips().Error("libvips does not open this type")
    if header.mime == "image/tiff" and _is_ycc(source):
        raise vips().Error("libvips takes these colours for red, green and blue")
    if header.mime == "image/webp" and header.width * header.height > LARGE_WEBP:
        return _open_vips(source, loader, scale=0.5)
    if header.mime != "image/jpeg":
        return _open_vips(source, loader)
    width, height = header.upright
    least, lowest = SHARP * size[0], SHARP * size[1]
    shrink = max(by for by in (1, 2, 4, 8) if by == 1 or (width / by > least and height / by > lowest))
    return _open_vips(source, loader, **({"shrink": shrink} if shrink > 1 else {}))


def _is_ycc(source: int) -> bool:
    """Whether a TIFF stores YCbCr uncompressed, not as JPEG."""
    with suppress(*PILLOW_ERRORS), _open_pillow(source, _DECODERS["image/tiff"]) as image:
        tags = getattr(image, "tag_v2", {})
        return tags.get(_TIFF_COLOURS) == _TIFF_YCC and tags.get(_TIFF_COMPRESSION) != _TIFF_JPEG
    return False


def _orientation(image: Any, fields: set[str]) -> int:
    """The orientation from the metadata, wherever the format stores it; 1 if there is none or it is invalid."""
    if "orientation" in fields:
        return _sane(image.get("orientation"))
    if "exif-data" in fields:
        from PIL.Image import Exif

        exif = Exif()
        try:
            exif.load(bytes(image.get("exif-data")))
            return _sane(exif.get(_ORIENTATION_TAG))
        except PILLOW_ERRORS:
            return 1
    return 1


def _sane(orientation: object) -> int:
    return orientation if isinstance(orientation, int) and 1 <= orientation <= 8 else 1


def _png_frames(source: int) -> int:
    """An APNG declares its number of frames before the first pixels."""
    head = os.pread(source, HEAD_BYTES, 0)
    at = head.find(b"acTL", 0, max(head.find(b"IDAT"), 0))
    return int.from_bytes(head[at + 4 : at + 8]) if at > 0 else 1


def _is_lossy(source: int, decoder: Decoder) -> bool:
    return decoder.mime in _LOSSY or (decoder.mime == "image/webp" and b"VP8L" not in os.pread(source, HEAD_BYTES, 0))


def _look_pillow(source: int, decoder: Decoder) -> Header:
    try:
        with _open_pillow(source, decoder) as image:
            width, height = image.size
            turned = decoder.mime == "image/tiff"  # Pillow rotates these itself, and reports the resulting size
            return Header(
                mime=decoder.mime,
                width=width,
                height=height,
                frames=int(getattr(image, "n_frames", 1)),
                has_alpha=image.has_transparency_data,
                orientation=1 if turned else _sane(image.getexif().get(_ORIENTATION_TAG)),
                plain=False,
                lossy=_is_lossy(source, decoder),
                size=os.fstat(source).st_size,
            )
    except PILLOW_ERRORS as error:
        raise MediaRefused(f"the {decoder.mime} cannot be opened: {_short(error)}") from error


def _open_pillow(source: int, decoder: Decoder) -> "Image.Image":
    from PIL import Image

    if decoder.mime == "image/heic" and not _heif():
        raise MediaRefused("HEIC pictures need the extra `belino[heic]`")
    # Our own limits are checked on the header; Pillow's only warns.
    Image.MAX_IMAGE_PIXELS = None
    os.lseek(source, 0, os.SEEK_SET)
    return Image.open(io.FileIO(source, closefd=False), formats=decoder.pillow)


def _by_pillow(source: int, header: Header, size: tuple[int, int]) -> Pixels:
    with _open_pillow(source, _DECODERS[header.mime]) as image:
        width, height = image.size
        if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE:
            raise MediaRefused(f"the picture is {width}×{height}; that is too much")
        image.load()
        profile = image.info.get("icc_profile")
        orientation = header.orientation if header.mime in _TOLD_ONCE else _sane(image.getexif().get(_ORIENTATION_TAG))
        lying = (size[1], size[0]) if orientation in TURNED else size
        if image.mode in ("L", "RGB") and image.size == lying and (not profile or is_srgb(profile)):
            return upright(image, orientation)
        return _finish(_for_vips(image, profile), orientation, header, size)


def _for_vips(image: "Image.Image", profile: bytes | None) -> Any:
    """The pixels as a libvips image."""
    if image.mode.startswith("I;16"):
        mode, format_ = "I;16", "ushort"
    elif image.mode in ("L", "LA", "RGB", "RGBA", "CMYK"):
        mode, format_ = image.mode, "uchar"
    else:
        mode, format_ = _simple_mode(image), "uchar"
    plain = image if image.mode == mode else image.convert(mode)
    made = vips().Image.new_from_memory(plain.tobytes(), *plain.size, len(plain.getbands()), format_)
    meaning = {"L": "b-w", "LA": "b-w", "I;16": "grey16", "CMYK": "cmyk"}.get(mode, "srgb")
    made = made.copy(interpretation=meaning)
    if profile:
        made.set_type(vips().GValue.blob_type, "icc-profile-data", profile)
    return made


def _simple_mode(image: "Image.Image") -> str:
    if image.has_transparency_data:
        return "RGBA"
    return "L" if image.mode in ("1", "I", "F") else "RGB"


def _finish(image: Any, orientation: int, header: Header, size: tuple[int, int]) -> Pixels:
    """Shrink first, which makes later steps cheaper; rotate last, which needs all rows at once."""
    across, down = (size[1], size[0]) if orientation in TURNED else size
    if (across, down) != (image.width, image.height):
        image = resized(image, across, down, stored=(header.width, header.height))
    return held(_srgb(image), orientation)


def _srgb(image: Any) -> Any:
    """Eight bits of grey or sRGB, with alpha if present; the colour profile is applied and removed."""
    grey = image.bands < 3
    profile = image.get("icc-profile-data") if "icc-profile-data" in image.get_fields() else b""
    meant = b"CMYK" if image.interpretation == "cmyk" else b"GRAY" if grey else b"RGB "
    # A profile that is broken or of another colour space: the pixels are used as they are.
    if profile[16:20] == meant and not is_srgb(profile):
        with suppress(vips().Error):
            image = image.icc_transform("srgb", embedded=True, intent="perceptual")
            image = image[0].copy(interpretation="b-w") if grey and image.bands == 3 else image
    if image.interpretation not in ("srgb", "b-w"):
        image = image.colourspace("b-w" if image.interpretation == "grey16" else "srgb")
    if image.format not in ("uchar", "ushort"):
        image = _stretched(image)
    if image.format != "uchar":
        image = image.cast("uchar", shift=image.format == "ushort")
    return image[:4] if image.bands > 4 else image


def _stretched(image: Any) -> Any:
    """Measurements have a range of their own: fractions of one would all be black, and thousands all white."""
    image = image.copy_memory()
    least, most = image.min(), image.max()
    fits = least >= 0 and 1 < most <= 255
    return image if fits or least == most else (image - least) * (255 / (most - least))


def _short(error: BaseException) -> str:
    """The problem, for a person: a library's own text names internals, and may hold bytes of the file."""
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return "its beginning is damaged"
    return "its end is missing" if _CUT_OFF.search(str(error)) else "it cannot be decoded"
