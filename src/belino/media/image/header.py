"""Header of a picture: type, size and metadata from its first bytes, without decoding."""

from collections.abc import Iterator

HEADER_BYTES = 256 * 1024
"""Enough to pass the colour profile and thumbnail that cameras put before the size."""

BLOCK_MIMES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Picture types that models accept."""
PHOTO_MIMES = BLOCK_MIMES | {"image/heic", "image/heif", "image/avif", "image/tiff", "image/bmp"}
"""Types that people send as pictures; others are sent as files."""
RAW_MIMES = frozenset({
    "image/x-adobe-dng", "image/x-nikon-nef", "image/x-sony-arw", "image/x-pentax-pef", "image/x-canon-cr2",
    "image/x-canon-cr3", "image/x-canon-crw", "image/x-fuji-raf", "image/x-panasonic-rw2", "image/x-olympus-orf",
    "image/x-sigma-x3f", "image/x-minolta-mrw",
})  # fmt: skip
"""Raw photographs, of which the camera's preview is shown."""
DRAWN_MIMES = PHOTO_MIMES | RAW_MIMES | {
    "image/svg+xml", "image/jxl", "image/jp2", "image/jpx", "image/x-jp2-codestream", "image/vnd.adobe.photoshop",
    "image/vnd.microsoft.icon", "image/x-win-bitmap", "image/icns", "image/x-tga", "image/x-portable-bitmap",
    "image/x-portable-graymap", "image/x-portable-pixmap", "image/x-portable-floatmap", "image/x-qoi", "image/x-pcx",
    "image/x-sgi", "image/vnd.ms-dds",
}  # fmt: skip
"""Types that we can decode, and so convert for models."""

_SIDEWAYS = frozenset({5, 6, 7, 8})
_PNG_WORDS = frozenset({b"eXIf", b"iTXt", b"zTXt", b"tEXt"})
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_size(header: bytes) -> tuple[str, int, int] | None:
    """The real MIME type, upright width and height of a picture, from its first bytes."""
    found = _png(header) or _gif(header) or _webp(header) or _bmp(header) or _jpeg(header)
    return found if found and found[1] > 0 and found[2] > 0 else None


def carries_metadata(picture: bytes) -> bool:
    """Whether a picture that models accept has metadata: place and time, or an orientation."""
    if picture.startswith(b"\x89PNG"):
        return any(name in _PNG_WORDS for name in _png_chunks(picture))
    if picture.startswith(b"\xff\xd8"):
        return any(marker in (0xE1, 0xED) for marker in _jpeg_markers(picture))
    if picture.startswith(b"GIF8"):
        return b"XMP DataXMP" in picture
    flags = picture[20:21] if picture[12:16] == b"VP8X" else b"\0"
    return bool(flags) and bool(flags[0] & 0x0C)


def _png_chunks(picture: bytes) -> Iterator[bytes]:
    at = 8
    while at + 8 <= len(picture):
        yield picture[at + 4 : at + 8]
        at += 12 + int.from_bytes(picture[at : at + 4])


def _jpeg_markers(picture: bytes) -> Iterator[int]:
    """The markers of the segments before the image data."""
    at = 2
    while at + 4 <= len(picture) and picture[at] == 0xFF:
        marker = picture[at + 1]
        if marker in (0xD9, 0xDA):
            return
        yield marker
        bare = marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD7
        at += (1 if marker == 0xFF else 2) if bare else 2 + int.from_bytes(picture[at + 2 : at + 4])


def _png(header: bytes) -> tuple[str, int, int] | None:
    if len(header) < 24 or not header.startswith(b"\x89PNG\r\n\x1a\n") or header[12:16] != b"IHDR":
        return None
    return "image/png", int.from_bytes(header[16:20]), int.from_bytes(header[20:24])


def _gif(header: bytes) -> tuple[str, int, int] | None:
    if len(header) < 10 or header[:6] not in (b"GIF87a", b"GIF89a"):
        return None
    return "image/gif", int.from_bytes(header[6:8], "little"), int.from_bytes(header[8:10], "little")


def _bmp(header: bytes) -> tuple[str, int, int] | None:
    if len(header) < 26 or not header.startswith(b"BM"):
        return None
    size = int.from_bytes(header[14:18], "little")
    if size == 12:
        return "image/bmp", int.from_bytes(header[18:20], "little"), int.from_bytes(header[20:22], "little")
    if not 40 <= size <= 124:
        return None
    width = int.from_bytes(header[18:22], "little", signed=True)
    return "image/bmp", width, abs(int.from_bytes(header[22:26], "little", signed=True))


def _webp(header: bytes) -> tuple[str, int, int] | None:
    if len(header) < 30 or header[:4] != b"RIFF" or header[8:12] != b"WEBP":
        return None
    match header[12:16]:
        case b"VP8X":
            width, height = int.from_bytes(header[24:27], "little") + 1, int.from_bytes(header[27:30], "little") + 1
        case b"VP8L" if header[20] == 0x2F:
            bits = int.from_bytes(header[21:25], "little")
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if header[23:26] == b"\x9d\x01\x2a":
            width = int.from_bytes(header[26:28], "little") & 0x3FFF
            height = int.from_bytes(header[28:30], "little") & 0x3FFF
        case _:
            return None
    return "image/webp", width, height


def _jpeg(header: bytes) -> tuple[str, int, int] | None:
    if not header.startswith(b"\xff\xd8\xff"):
        return None
    at, sideways = 2, False
    while at + 9 <= len(header):
        if header[at] != 0xFF:
            return None
        marker = header[at + 1]
        if marker == 0xFF:  # fill bytes may precede a marker
            at += 1
            continue
        if marker == 0x01 or 0xD0 <= marker <= 0xD7:  # markers without a body
            at += 2
            continue
        length = int.from_bytes(header[at + 2 : at + 4])
        if marker in _FRAMES:
            height, width = int.from_bytes(header[at + 5 : at + 7]), int.from_bytes(header[at + 7 : at + 9])
            return ("image/jpeg", height, width) if sideways else ("image/jpeg", width, height)
        if marker in (0xD9, 0xDA) or length < 2:
            return None
        if marker == 0xE1 and header[at + 4 : at + 10] == b"Exif\0\0":
            sideways = _exif_orientation(header[at + 10 : at + 2 + length]) in _SIDEWAYS
        at += 2 + length
    return None


def _exif_orientation(tiff: bytes) -> int:
    order: dict[bytes, str] = {b"II": "little", b"MM": "big"}
    byteorder = order.get(tiff[:2])
    if byteorder is None or len(tiff) < 10:
        return 1
    endian = "little" if byteorder == "little" else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(tiff[at : at + size], endian)  # type: ignore[arg-type]

    first = number(4, 4)
    for entry in range(min(number(first, 2), 64)):
        at = first + 2 + 12 * entry
        if number(at, 2) == 0x0112:
            return number(at + 8, 2)
    return 1
