"""Decode a hostile picture in the sandbox: check its limits, then convert it to upright sRGB."""

import io
import math
import os
import re
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from mmap import PROT_READ, mmap
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.media.image import heif, raw_preview, vector
from belino.media.image.formats import AVIF, DECODERS, HEIC, JXL, PLUGINS, RAW, SVG, TIFF, Decoder, PictureNote, mime_of
from belino.media.image.jpeg_xl import jpeg_xl_size
from belino.media.image.pixels import TURNED, Pixels, held, resized, upright
from belino.media.image.profile import is_srgb
from belino.media.sandbox.walls import MAX_PIXELS_NAME

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 40_000_000
"""That are held at once, unless `media.max_pixels` sets another limit; a picture that is shrunk while it is loaded may
have more."""
MAX_SIDE = 16_384

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
_TIFF_SUBFILE, _TIFF_REDUCED, _TIFF_MASK = 254, 1, 4
TIFF_PICTURES = 10_000
"""That are looked at in one file."""


_TOLD_ONCE = frozenset({"image/jpeg", "image/png", "image/webp"})
"""Types whose orientation the header determines: Pillow would also read it from places other than EXIF."""
_MOVING = frozenset({"image/gif", "image/webp", "image/png", HEIC, AVIF})
_LOSSY = frozenset({"image/jpeg", "image/heic", "image/avif"})


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
    streams: bool = False
    """Whether it is shrunk while it is loaded, so that it is never held whole."""
    begin: int = 0
    """Where it begins in its file: a raw photograph has a preview inside."""
    index: int = 0
    """Which of the pictures of a TIFF it is."""
    note: PictureNote | None = None

    @property
    def upright(self) -> tuple[int, int]:
        return (self.height, self.width) if self.orientation in TURNED else (self.width, self.height)


@cache
def vips() -> Any:
    """The library, limited to our list of loaders, one thread, no cache."""
    import pyvips

    pyvips.block_untrusted_set(True)
    pyvips.operation_block_set("VipsForeignLoad", True)
    for decoder in DECODERS.values():
        if decoder.operation:
            pyvips.operation_block_set(decoder.operation, False)
    pyvips.cache_set_max(0)
    pyvips.vips_lib.vips_concurrency_set(1)
    return pyvips


def prepare() -> None:
    """Import what every job needs, for children forked afterwards."""
    vips()
    import PIL.Image

    PIL.Image.preinit()
    for name in PLUGINS:
        import_module(f"PIL.{name}ImagePlugin")
    _heif()
    _jpeg_xl()
    vector.prepare()


@cache
def _heif() -> bool:
    """Whether HEIC can be opened here: an extra installs the library."""
    try:
        import pillow_heif
    except ImportError:
        return False
    pillow_heif.register_heif_opener()
    return True


@cache
def _jpeg_xl() -> bool:
    """Whether JPEG XL can be opened here: an extra installs the library."""
    try:
        from pillow_jxl import JpegXLImagePlugin
    except ImportError:
        return False
    JpegXLImagePlugin.DECODE_THREADS = 0
    return True


def max_pixels() -> int:
    """The most pixels that are held at once."""
    told = os.environ.get(MAX_PIXELS_NAME, "")
    return int(told) if told.isdecimal() else MAX_PIXELS


def look(source: int, page: int = 1) -> Header:
    """The facts of the picture, or of a page of a TIFF, refused if unsupported or too large; no pixel is decoded."""
    mime = mime_of(os.pread(source, HEAD_BYTES, 0))
    header = _look_page(source, page) if page > 1 else _look_raw(source, mime) or _look_at(source, DECODERS[mime])
    width, height = header.width, header.height
    if max(width, height) > MAX_SIDE:
        raise MediaRefused(f"the picture is {width}×{height}; no side may be over {MAX_SIDE:,} pixels")
    if width * height > max_pixels() and not header.streams:
        raise MediaRefused(_too_many(width, height))
    return header


def page_indices(source: int, mime: str) -> tuple[int, ...]:
    """Which pictures of a file are its pages: those of a TIFF that are neither masks nor smaller copies of others."""
    found: list[int] = []
    if mime == TIFF:
        with suppress(*PILLOW_ERRORS), _open_pillow(source, DECODERS[TIFF]) as image:
            for index in range(TIFF_PICTURES):
                image.seek(index)
                if not int(getattr(image, "tag_v2", {}).get(_TIFF_SUBFILE, 0)) & (_TIFF_REDUCED | _TIFF_MASK):
                    found.append(index)
    return tuple(found) or (0,)


def _look_page(source: int, page: int) -> Header:
    indices = page_indices(source, mime_of(os.pread(source, HEAD_BYTES, 0)))
    if page > len(indices):
        raise MediaRefused(f"the picture has no page {page}, only {len(indices)}")
    index, decoder = indices[page - 1], DECODERS[TIFF]
    return _look_vips(source, decoder, 0, index) or _look_pillow(source, decoder, 0, index)


def _too_many(width: int, height: int) -> str:
    return f"the picture is {width}×{height}; at most {max_pixels():,} pixels are decoded (media.max_pixels)"


def _look_at(source: int, decoder: Decoder, begin: int = 0) -> Header:
    if decoder.mime == SVG:
        return _look_drawing(source)
    if decoder.mime == JXL:
        _check_jpeg_xl(source)
    if decoder.mime == HEIC and (large := _look_tiles(source)) is not None:
        return large
    return _look_vips(source, decoder, begin) or _look_pillow(source, decoder, begin)


def _look_drawing(source: int) -> Header:
    width, height = vector.drawing_size(source)
    return Header(
        mime=SVG,
        width=width,
        height=height,
        frames=1,
        has_alpha=True,
        orientation=1,
        plain=False,
        lossy=False,
        size=os.fstat(source).st_size,
        note=PictureNote.WORDLESS if vector.has_words(source) else None,
    )


def _look_tiles(source: int) -> Header | None:
    """A photograph too large to be decoded whole, if it is stored in tiles and they can be decoded here."""
    grid = heif.grid_of(source)
    if grid is None or grid.width * grid.height <= max_pixels() or find_spec("av") is None:
        return None
    return Header(
        mime=HEIC,
        width=grid.width,
        height=grid.height,
        frames=1,
        has_alpha=False,
        orientation=grid.orientation,
        plain=False,
        lossy=True,
        size=os.fstat(source).st_size,
        streams=True,
    )


def _by_tiles(source: int, header: Header, size: tuple[int, int]) -> Pixels:
    grid = heif.grid_of(source)
    if grid is None:
        raise MediaRefused("the image/heic is damaged: its tiles are not listed")
    image = _for_vips(heif.decode_tiles(source, grid, _shrink(header, size)), grid.profile or None)
    return _finish(image, header.orientation, header, size)


def _shrink(header: Header, size: tuple[int, int]) -> int:
    """By how much a decoder may divide the sides of a picture that is wanted at this size."""
    width, height = header.upright
    least, lowest = SHARP * size[0], SHARP * size[1]
    return max(by for by in (1, 2, 4, 8) if by == 1 or (width / by > least and height / by > lowest))


def _check_jpeg_xl(source: int) -> None:
    """Its library decodes on opening: too large a picture must be refused before."""
    size = jpeg_xl_size(os.pread(source, HEAD_BYTES, 0))
    if size is None:
        raise MediaRefused("the image/jxl cannot be opened: its beginning is damaged")
    if size[0] * size[1] > max_pixels():
        raise MediaRefused(_too_many(*size))


def _look_raw(source: int, mime: str) -> Header | None:
    """The preview of a raw photograph; None if it is none, or has its picture outside."""
    if mime not in (RAW, TIFF):
        return None
    with mmap(source, 0, prot=PROT_READ) as file:
        if mime == TIFF and not raw_preview.is_raw_tiff(file):
            return None
        preview, turned = raw_preview.find_preview(file), raw_preview.orientation_of(file)
    if preview is None:
        raise MediaRefused("the raw photograph has no preview that can be shown, or was cut off before it")
    found = _look_at(source, DECODERS["image/jpeg"], preview.begin)
    orientation = turned if turned is not None else found.orientation
    return replace(found, begin=preview.begin, plain=False, orientation=orientation, note=PictureNote.PREVIEW)


def decode(source: int, header: Header, size: tuple[int, int] | None = None, *, to_write: bool = False) -> Pixels:
    """The first frame in memory: upright, eight bits, grey or sRGB, of this size if one is given.

    A JPEG decoder skips what a smaller size does not need. With `to_write`, Pillow holds the pixels of a photograph,
    because it encodes them fastest; any other work is faster without it.
    """
    width, height = size or header.upright
    error = vips().Error
    if header.mime == HEIC and header.streams:
        return _by_tiles(source, header, (width, height))
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
            if (part := _partly(source, header, (width, height))) is not None:
                return part
            raise MediaRefused(f"the {header.mime} is damaged: {_short(second)}") from first


def _partly(source: int, header: Header, size: tuple[int, int]) -> Pixels | None:
    """A damaged picture as far as it can be decoded; None if nothing of it can."""
    loader = DECODERS[header.mime].loader
    if loader is None or header.width * header.height > max_pixels():
        return None
    with suppress(vips().Error):
        image = _open_vips(source, loader, header.begin, fail_on="none", **_nth(header.index))
        part = _finish(image, header.orientation, header, size)
        if part.varies():
            part.partial = True
            return part
    return None


def is_whole(source: int, header: Header) -> bool:
    """Decode every pixel and keep none: a picture passed on unchanged must be readable to its end.

    libvips stops at the last pixel. Pillow does not, and most other programs use it.
    """
    with suppress(MemoryError, *PILLOW_ERRORS), _open_pillow(source, DECODERS[header.mime], header.begin) as image:
        alike = image.size == (header.width, header.height)
        image.draft("L", (1, 1))
        image.load()
        return alike
    return False


def _look_vips(source: int, decoder: Decoder, begin: int, index: int = 0) -> Header | None:
    if decoder.loader is None:
        return None
    pyvips = vips()
    try:
        image = _open_vips(source, decoder.loader, begin, **_nth(index))
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
        streams=_streams(source, decoder.mime, fields),
        index=index,
    )


def _streams(source: int, mime: str, fields: set[str]) -> bool:
    """Whether a decoder needs only some rows at a time: not where every row comes in several passes."""
    if mime in ("image/png", "image/jpeg"):
        return "interlaced" not in fields
    return mime == TIFF or (mime == "image/webp" and b"VP8L" not in os.pread(source, HEAD_BYTES, 0))


def _open_vips(source: int, loader: str, begin: int = 0, *, fail_on: str = "truncated", **options: object) -> Any:
    opened = vips().Source.new_from_descriptor(source) if not begin else _tail(source, begin)
    named = loader if not begin else loader.replace("_source", "_buffer")
    return getattr(vips().Image, named)(opened, access="sequential", fail_on=fail_on, **options)


def _nth(index: int) -> dict[str, Any]:
    """The option of a loader for another picture than the first."""
    return {"page": index} if index else {}


def _tail(source: int, begin: int) -> bytes:
    return os.pread(source, os.fstat(source).st_size - begin, begin)


def _load_vips(source: int, header: Header, size: tuple[int, int]) -> Any:
    if header.mime == SVG:
        return vips().Image.pngload_buffer(vector.drawn(source, size))
    loader = DECODERS[header.mime].loader
    if loader is None:
        raise vips().Error("libvips does not open this type")
    if header.mime == TIFF and _is_ycc(source, header.index):
        raise vips().Error("libvips takes these colours for red, green and blue")
    pixels = header.width * header.height
    if header.mime == "image/webp" and pixels > LARGE_WEBP:
        return _open_vips(source, loader, scale=min(0.5, math.sqrt(LARGE_WEBP / pixels)))
    if header.mime != "image/jpeg":
        return _open_vips(source, loader, **_nth(header.index))
    return _open_vips(source, loader, header.begin, shrink=_shrink(header, size))


def _is_ycc(source: int, index: int) -> bool:
    """Whether a TIFF stores YCbCr uncompressed, not as JPEG."""
    with suppress(*PILLOW_ERRORS), _open_pillow(source, DECODERS["image/tiff"], index=index) as image:
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


def _look_pillow(source: int, decoder: Decoder, begin: int, index: int = 0) -> Header:
    try:
        with _open_pillow(source, decoder, begin, index) as image:
            width, height = image.size
            turned = decoder.mime == "image/tiff"  # Pillow rotates these itself, and reports the resulting size
            return Header(
                mime=decoder.mime,
                width=width,
                height=height,
                frames=max(1, int(getattr(image, "n_frames", 1))) if decoder.mime in _MOVING else 1,
                has_alpha=image.has_transparency_data,
                orientation=1 if turned else _sane(image.getexif().get(_ORIENTATION_TAG)),
                plain=False,
                lossy=_is_lossy(source, decoder),
                size=os.fstat(source).st_size,
                index=index,
            )
    except PILLOW_ERRORS as error:
        why = heif.why_unopened(source) if decoder.mime in (HEIC, AVIF) else ""
        raise MediaRefused(f"the {decoder.mime} cannot be opened: {why or _short(error)}") from error


def _open_pillow(source: int, decoder: Decoder, begin: int = 0, index: int = 0) -> "Image.Image":
    from PIL import Image

    if decoder.mime == "image/heic" and not _heif():
        raise MediaRefused("HEIC pictures need the extra `belino[heic]`")
    if decoder.mime == JXL and not _jpeg_xl():
        raise MediaRefused("JPEG XL pictures need the extra `belino[jxl]`")
    # Our own limits are checked on the header; Pillow's only warns.
    Image.MAX_IMAGE_PIXELS = None
    os.lseek(source, 0, os.SEEK_SET)
    if begin:
        return Image.open(io.BytesIO(_tail(source, begin)), formats=decoder.pillow)
    image = Image.open(io.FileIO(source, closefd=False), formats=decoder.pillow)
    if index:
        image.seek(index)
    return image


def _by_pillow(source: int, header: Header, size: tuple[int, int]) -> Pixels:
    with _open_pillow(source, DECODERS[header.mime], header.begin, header.index) as image:
        if image.width * image.height > max_pixels():
            image.draft("RGB", size)
        width, height = image.size
        if width * height > max_pixels() or max(width, height) > MAX_SIDE:
            raise MediaRefused(_too_many(width, height))
        image.load()
        profile = image.info.get("icc_profile")
        told = header.mime in _TOLD_ONCE
        orientation = header.orientation if told else _sane(image.getexif().get(_ORIENTATION_TAG))
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
