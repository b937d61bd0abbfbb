"""Small real files without an image library: right headers, real sizes, and any decoder opens them."""

import struct
import zlib
from collections.abc import Iterable


def make_png(width: int, height: int, *, color: tuple[int, int, int] = (40, 120, 200)) -> bytes:
    """A PNG of one colour."""
    row = b"\0" + bytes(color) * width
    return (
        b"\x89PNG\r\n\x1a\n"
        + _png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + _png_chunk(b"IDAT", zlib.compress(row * height))
        + _png_chunk(b"IEND", b"")
    )


def make_jpeg(width: int, height: int, *, orientation: int | None = None) -> bytes:
    """A grey JPEG, with an EXIF orientation (1 to 8) if asked for."""
    # One Huffman code of one bit each: "no change in brightness" and "end of block". A block is the two bits 00.
    table = bytes([1, *[0] * 15, 0])
    blocks = -(-width // 8) * -(-height // 8)
    scan = bytes(blocks * 2 // 8) + (bytes([0xFF >> (blocks * 2 % 8)]) if blocks * 2 % 8 else b"")
    return (
        b"\xff\xd8"
        + (_exif(orientation) if orientation else b"")
        + _jpeg_segment(0xDB, b"\0" + b"\x01" * 64)
        + _jpeg_segment(0xC0, struct.pack(">BHHBBBB", 8, height, width, 1, 1, 0x11, 0))
        + _jpeg_segment(0xC4, b"\x00" + table)
        + _jpeg_segment(0xC4, b"\x10" + table)
        + _jpeg_segment(0xDA, bytes([1, 1, 0, 0, 63, 0]))
        + scan
        + b"\xff\xd9"
    )


def make_gif(width: int, height: int) -> bytes:
    """A black GIF of one frame."""
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02"
    # A clear code every two pixels keeps the decoder's table, and so the code size, at three bits.
    codes = [code for pixel in range(width * height) for code in ((4, 0) if pixel % 2 == 0 else (0,))] + [5]
    bits = _bits((code, 3) for code in codes)
    pieces = b"".join(bytes([len(bits[i : i + 255])]) + bits[i : i + 255] for i in range(0, len(bits), 255))
    return head + frame + pieces + b"\0" + b"\x3b"


def make_webp(width: int, height: int) -> bytes:
    """A black lossless WebP."""
    size = [(width - 1, 14), (height - 1, 14), (0, 1), (0, 3)]
    no_transforms = [(0, 1), (0, 1), (0, 1)]
    # Five prefix codes of a single symbol each (green, red, blue, alpha, distance): a pixel then costs no bit.
    zero, opaque = [(1, 1), (0, 1), (0, 1), (0, 1)], [(1, 1), (0, 1), (1, 1), (255, 8)]
    image = b"\x2f" + _bits([*size, *no_transforms, *zero, *zero, *zero, *opaque, *zero])
    image += b"\0" * (len(image) % 2)
    return b"RIFF" + struct.pack("<I", 12 + len(image)) + b"WEBPVP8L" + struct.pack("<I", len(image)) + image


def make_wav(seconds: float = 1.0, *, rate: int = 8000) -> bytes:
    """Silence, as a WAV of 8-bit samples."""
    samples = b"\x80" * int(seconds * rate)
    form = struct.pack("<HHIIHH", 1, 1, rate, rate, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def make_pdf(text: str = "belino") -> bytes:
    """A PDF of one page with one line of ASCII text."""
    shown = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("ascii", "replace")
    stream = b"BT /F1 24 Tf 40 140 Td (" + shown + b") Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    pdf, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(pdf))
        pdf += b"%d 0 obj%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(pdf)
    pdf += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table
    return pdf + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)


def _png_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _jpeg_segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def _exif(orientation: int) -> bytes:
    tiff = b"MM\0\x2a" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
    return _jpeg_segment(0xE1, b"Exif\0\0" + tiff)


def _bits(values: Iterable[tuple[int, int]]) -> bytes:
    """(value, width) pairs packed from the least significant bit up, as GIF and WebP write them."""
    packed, used, done = 0, 0, bytearray()
    for value, width in values:
        packed |= value << used
        used += width
        while used >= 8:
            done.append(packed & 0xFF)
            packed >>= 8
            used -= 8
    return bytes(done) + (bytes([packed]) if used else b"")
