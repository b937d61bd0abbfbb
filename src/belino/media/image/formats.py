"""Formats of pictures that are decoded: how each is recognised, and which library opens it."""

import re
from dataclasses import dataclass
from enum import StrEnum

from belino.domain.errors import MediaRefused

SVG, JXL, HEIC, AVIF, TIFF = "image/svg+xml", "image/jxl", "image/heic", "image/avif", "image/tiff"
RAW = "image/x-raw"
"""A camera's raw photograph of any maker: its preview is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """The decoder of a picture type: a loader of libvips, else Pillow by its format names."""

    mime: str
    loader: str | None = None
    operation: str | None = None
    pillow: tuple[str, ...] = ()


DECODERS = {
    decoder.mime: decoder
    for decoder in (
        Decoder(mime="image/png", loader="pngload_source", operation="VipsForeignLoadPng", pillow=("PNG",)),
        Decoder(mime="image/jpeg", loader="jpegload_source", operation="VipsForeignLoadJpeg", pillow=("JPEG",)),
        Decoder(mime="image/gif", loader="gifload_source", operation="VipsForeignLoadNsgif", pillow=("GIF",)),
        Decoder(mime="image/webp", loader="webpload_source", operation="VipsForeignLoadWebp", pillow=("WEBP",)),
        Decoder(mime=AVIF, loader="heifload_source", operation="VipsForeignLoadHeif", pillow=("AVIF",)),
        Decoder(mime=TIFF, loader="tiffload_source", operation="VipsForeignLoadTiff", pillow=("TIFF",)),
        Decoder(mime=HEIC, pillow=("HEIF",)),
        Decoder(mime="image/bmp", pillow=("BMP",)),
        Decoder(mime="image/jp2", pillow=("JPEG2000",)),
        Decoder(mime="image/vnd.adobe.photoshop", pillow=("PSD",)),
        Decoder(mime="image/vnd.microsoft.icon", pillow=("ICO",)),
        Decoder(mime="image/x-win-bitmap", pillow=("CUR",)),
        Decoder(mime="image/icns", pillow=("ICNS",)),
        Decoder(mime="image/x-tga", pillow=("TGA",)),
        Decoder(mime="image/x-portable-anymap", pillow=("PPM",)),
        Decoder(mime="image/x-qoi", pillow=("QOI",)),
        Decoder(mime="image/x-pcx", pillow=("PCX",)),
        Decoder(mime="image/x-sgi", pillow=("SGI",)),
        Decoder(mime="image/vnd.ms-dds", pillow=("DDS",)),
        Decoder(mime=JXL, pillow=("JXL",)),
        Decoder(mime=SVG),
    )
}
"""All other types are refused, whatever the libraries support."""
MIMES = frozenset(DECODERS)
PLUGINS = (
    "Avif",
    "Mpo",
    "Tiff",
    "WebP",
    "Jpeg2K",
    "Psd",
    "Ico",
    "Cur",
    "Icns",
    "Tga",
    "Ppm",
    "Qoi",
    "Pcx",
    "Sgi",
    "Dds",
)
"""The modules of Pillow that open them."""

_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"II[*+]\0|MM\0[*+]"), TIFF),
    (re.compile(rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0", re.DOTALL), "image/bmp"),
    (re.compile(rb"\xff\x0a|\0\0\0\x0cJXL \r\n\x87\n"), JXL),
    (re.compile(rb"\0\0\0\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51"), "image/jp2"),
    (re.compile(rb"8BPS\0\x01"), "image/vnd.adobe.photoshop"),
    (re.compile(rb"\0\0\x01\0[^\0]"), "image/vnd.microsoft.icon"),
    (re.compile(rb"\0\0\x02\0[^\0]\0.{3}\0", re.DOTALL), "image/x-win-bitmap"),
    (re.compile(rb"icns"), "image/icns"),
    (re.compile(rb"P[1-6Ff][ \t\r\n#]"), "image/x-portable-anymap"),
    (re.compile(rb"qoif"), "image/x-qoi"),
    (re.compile(rb"\x0a[\0\x02-\x05][\0\x01][\x01\x02\x04\x08]"), "image/x-pcx"),
    (re.compile(rb"\x01\xda[\0\x01][\x01\x02]"), "image/x-sgi"),
    (re.compile(rb"DDS \x7c"), "image/vnd.ms-dds"),
    (re.compile(rb"FUJIFILMCCD-RAW|IIU\0|IIR[OS]|MMOR|II\x1a\0\0\0HEAPCCDR|FOVb|\0MRM|.{4}ftypcrx ", re.DOTALL), RAW),
    (re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|!--|!DOCTYPE svg|(?:\w{1,20}:)?svg[\s>])", re.IGNORECASE), SVG),
    # Without a signature: no id, a type of pixels and of colour table that go together, and a usual depth.
    (
        re.compile(
            rb".(?:\0[\x02\x03\x0a\x0b].{5}|\x01[\x01\x09].{4}[\x0f\x10\x18\x20]).{8}[\x08\x0f\x10\x18\x20][\0-\x3f]",
            re.DOTALL,
        ),
        "image/x-tga",
    ),
)  # fmt: skip
_SMALL_FORM = b"mif3"
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"})
_SVG_ROOT = re.compile(rb"<(?:\w{1,20}:)?svg[\s>]")


def mime_of(head: bytes) -> str:
    """The type of a supported picture, from its first bytes; anything else is refused."""
    if head[4:8] == b"ftyp":
        length = min(int.from_bytes(head[:4]), len(head))
        brands = {head[8:12], *(head[at : at + 4] for at in range(16, length, 4))}
        brands |= {head[12:16]} if head[8:12] == _SMALL_FORM else set()
        if brands & _AVIF_BRANDS:
            return AVIF
        if brands & _HEIC_BRANDS:
            return HEIC
    for signature, mime in _SIGNATURES:
        if signature.match(head) and (mime != SVG or _SVG_ROOT.search(head)):
            return mime
    known = ", ".join(mime.removeprefix("image/").upper() for mime in ("image/jpeg", "image/png", "image/heic", TIFF))
    raise MediaRefused(f"the bytes are not a picture of a type that is decoded ({known} and {len(DECODERS)} more)")


class PictureNote(StrEnum):
    """What a person or a model should know about a picture that is shown."""

    PREVIEW = "preview"
    WORDLESS = "wordless"
    PARTIAL = "partial"

    @property
    def words(self) -> str:
        """The note as a sentence."""
        return {
            PictureNote.PREVIEW: "It is a raw photograph: you see the camera's preview of it.",
            PictureNote.WORDLESS: "Words in the drawing are not drawn; as=text gives them.",
            PictureNote.PARTIAL: "It is damaged: you see it as far as it can be decoded.",
        }[self]
