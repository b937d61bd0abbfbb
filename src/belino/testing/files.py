"""Sample files: small real files of every type that sniffing distinguishes, made without a media library."""

import bz2
import gzip
import io
import json
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping

_OFFICE = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."
_MAIN_PARTS = {
    "docx": ("word/document.xml", f"{_OFFICE}wordprocessingml.document"),
    "xlsx": ("xl/workbook.xml", f"{_OFFICE}spreadsheetml.sheet"),
    "pptx": ("ppt/presentation.xml", f"{_OFFICE}presentationml.presentation"),
}
_OLE_STREAMS = {
    "doc": ("WordDocument", "application/msword"),
    "xls": ("Workbook", "application/vnd.ms-excel"),
    "ppt": ("PowerPoint Document", "application/vnd.ms-powerpoint"),
    "msg": ("__properties_version1.0", "application/vnd.ms-outlook"),
}
_LOTTIE = {"tgs": 1, "v": "5.5.2", "fr": 60, "ip": 0, "op": 180, "w": 512, "h": 512, "layers": []}
_PROSE = "The meeting moved to Thursday, says Zoë; bring the 3 reports.\nКто приносит кофе?\n会議は木曜日です。\n" * 3
_MAIL = (
    "Return-Path: <ann@example.org>\r\nReceived: from a by b\r\nFrom: Ann <ann@example.org>\r\nTo: bob@example.org\r\n"
    "Subject: Thursday\r\nDate: Thu, 1 Jan 2026 10:00:00 +0000\r\nMIME-Version: 1.0\r\n\r\nSee you.\r\n"
)


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


def sample_files() -> Mapping[str, tuple[str, bytes]]:
    """By file name: its type, and its bytes."""
    return {**_pictures(), **_sounds(), **_videos(), **_documents(), **_archives(), **_texts(), **_others()}


def make_zip(files: Mapping[str, bytes | str], *, packed: bool = True) -> bytes:
    """A zip with these entries, in this order."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return written.getvalue()


def make_office(suffix: str, *, types_first: bool = True) -> bytes:
    """A docx, xlsx or pptx, in Microsoft's order, or with the list of types last, as others write it."""
    part, mime = _MAIN_PARTS[suffix]
    types = {"[Content_Types].xml": f'<Types><Override PartName="/{part}" ContentType="{mime}.main+xml"/></Types>'}
    rest = {"_rels/.rels": "<Relationships/>", part: "<document/>", "docProps/app.xml": "<Properties/>"}
    return make_zip({**types, **rest} if types_first else {**rest, **types})


def make_mp4(brand: bytes = b"isom", *, tracks: tuple[bytes, ...] = (b"vide", b"soun"), last: bool = False) -> bytes:
    """The boxes of an MP4 (or a picture in one): `last` puts the list of tracks after the content, as cameras do."""
    kinds = b"".join(_box(b"trak", _box(b"mdia", _box(b"hdlr", bytes(8) + kind + bytes(13)))) for kind in tracks)
    listed, content = _box(b"moov", _box(b"mvhd", bytes(100)) + kinds), _box(b"mdat", bytes(range(256)) * 24)
    return _box(b"ftyp", brand + bytes(4) + brand + b"mp41") + (content + listed if last else listed + content)


def make_webm(
    doctype: bytes = b"webm",
    *,
    codecs: tuple[bytes, ...] = (b"V_VP9",),
    size: tuple[int, int] | None = None,
    seconds: float | None = None,
) -> bytes:
    """A Matroska header and its list of tracks; with size and length, if given."""
    head = _element(b"\x1a\x45\xdf\xa3", b"\x42\x86\x81\x01" + _element(b"\x42\x82", doctype))
    shape = b"" if size is None else _element(b"\xe0", struct.pack(">HHHH", 0xB082, size[0], 0xBA82, size[1]))
    told = b"" if seconds is None else _element(b"\x44\x89", struct.pack(">d", seconds * 1000))
    tracks = b"".join(
        _element(b"\xae", b"\x83\x81\x01" + _element(b"\x86", codec) + shape)
        if codec.startswith(b"V")
        else _element(b"\xae", b"\x83\x81\x02" + _element(b"\x86", codec))
        for codec in codecs
    )
    listed = (_element(b"\x15\x49\xa9\x66", told) if told else b"") + _element(b"\x16\x54\xae\x6b", tracks)
    return head + b"\x18\x53\x80\x67\x01" + b"\xff" * 7 + listed + bytes(64)


def make_ogg(codec: bytes = b"OpusHead") -> bytes:
    """The first page of an Ogg stream."""
    body = codec.ljust(30, b"\1")
    return b"OggS\0\x02" + bytes(8) + b"seri" + bytes(4) + b"crc." + bytes([1, len(body)]) + body


def make_mp3(*, tag: bytes = b"") -> bytes:
    """Frames of silence at 128 kbit/s, after an ID3 tag if one is given."""
    head = b"ID3\x04\0\0" + bytes([0, 0, len(tag) >> 7, len(tag) & 0x7F]) + tag if tag else b""
    return head + (b"\xff\xfb\x90\x00" + bytes(413)) * 6


def make_ole(suffix: str) -> bytes:
    """The header of an OLE file and a directory with the stream that identifies its type."""
    stream = _OLE_STREAMS[suffix][0]
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    return (head + bytes(14) + struct.pack("<I", 0)).ljust(512, b"\0") + _entry("Root Entry", 5) + _entry(stream, 2)


def _pictures() -> dict[str, tuple[str, bytes]]:
    svg = (
        b'\xef\xbb\xbf<!-- drawn by hand --><?xml-stylesheet href="a.css"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>'
    )
    icon = b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0" + struct.pack("<II", 40, 22) + bytes(40)
    tiff = b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHII", 256, 3, 1, 1) + bytes(4)
    return {
        "photo.jpg": ("image/jpeg", make_jpeg(40, 30, orientation=6)),
        "drawing.png": ("image/png", make_png(20, 10)),
        "wave.gif": ("image/gif", make_gif(8, 8)),
        "sticker.webp": ("image/webp", make_webp(12, 12)),
        "old.bmp": ("image/bmp", b"BM" + struct.pack("<IHHIIiiHH", 58, 0, 0, 54, 40, 1, 1, 1, 24) + bytes(28)),
        "scan.tiff": ("image/tiff", tiff),
        "phone.heic": ("image/heic", _box(b"ftyp", b"heic" + bytes(4) + b"mif1heic") + bytes(64)),
        "phone.avif": ("image/avif", _box(b"ftyp", b"mif1" + bytes(4) + b"mif1avifmiaf") + bytes(64)),
        "logo.svg": ("image/svg+xml", svg),
        "page.ico": ("image/vnd.microsoft.icon", icon),
        "layers.psd": ("image/vnd.adobe.photoshop", b"8BPS\0\x01" + bytes(20)),
    }  # fmt: skip


def _sounds() -> dict[str, tuple[str, bytes]]:
    adts = b"\xff\xf1\x50\x80\x02\x1f\xfc" + bytes(9)
    return {
        "voice.ogg": ("audio/ogg", make_ogg()),
        "old.oga": ("audio/ogg", make_ogg(b"\x01vorbis")),
        "song.mp3": ("audio/mpeg", make_mp3(tag=b"TIT2\0\0\0\x05\0\0\0song")),
        "bare.mp3": ("audio/mpeg", make_mp3()),
        "memo.m4a": ("audio/mp4", make_mp4(b"M4A ", tracks=(b"soun",))),
        "memo2.m4a": ("audio/mp4", make_mp4(b"mp42", tracks=(b"soun",))),
        "stream.aac": ("audio/aac", adts * 4),
        "take.wav": ("audio/wav", make_wav(0.1)),
        "take.flac": ("audio/flac", b"fLaC\0\0\0\x22" + bytes(34)),
        "take.aiff": ("audio/aiff", b"FORM\0\0\0\x2eAIFFCOMM" + bytes(30)),
        "phone.amr": ("audio/amr", b"#!AMR\n" + b"\x3c" + bytes(31)),
        "ring.mid": ("audio/midi", b"MThd\0\0\0\x06\0\x01\0\x01\0\x60MTrk\0\0\0\0"),
        "page.weba": ("audio/webm", make_webm(codecs=(b"A_OPUS",))),
    }


def _videos() -> dict[str, tuple[str, bytes]]:
    return {
        "clip.mp4": ("video/mp4", make_mp4(last=True)),
        "round.mp4": ("video/mp4", make_mp4(b"mp42")),
        "clip.mov": ("video/quicktime", make_mp4(b"qt  ")),
        "clip.3gp": ("video/3gpp", make_mp4(b"3gp4")),
        "sticker.webm": ("video/webm", make_webm()),
        "film.mkv": ("video/x-matroska", make_webm(b"matroska", codecs=(b"V_MPEG4/ISO/AVC", b"A_AAC"))),
        "old.avi": ("video/x-msvideo", b"RIFF\0\x01\0\0AVI LIST" + bytes(64)),
        "old.ogv": ("video/ogg", make_ogg(b"\x80theora")),
    }


def _documents() -> dict[str, tuple[str, bytes]]:
    odf = {
        suffix: f"{_ODF}{kind}" for suffix, kind in (("odt", "text"), ("ods", "spreadsheet"), ("odp", "presentation"))
    }
    book = {"mimetype": "application/epub+zip", "META-INF/container.xml": "<container/>"}
    return {
        "report.pdf": ("application/pdf", make_pdf()),
        "mailed.pdf": ("application/pdf", b"\r\n\r\njunk from a mail server\n" + make_pdf()),
        **{f"ours.{suffix}": (mime, make_office(suffix)) for suffix, (_, mime) in _MAIN_PARTS.items()},
        **{f"theirs.{s}": (mime, make_office(s, types_first=False)) for s, (_, mime) in _MAIN_PARTS.items()},
        **{name: (mime, make_zip({"mimetype": mime, "a.xml": "<x/>"}, packed=False)) for name, mime in odf.items()},
        **{f"old.{suffix}": (mime, make_ole(suffix)) for suffix, (_, mime) in _OLE_STREAMS.items()},
        "novel.epub": ("application/epub+zip", make_zip(book, packed=False)),
        "letter.rtf": ("application/rtf", b"{\\rtf1\\ansi Dear Ann}"),
        "letter.eml": ("message/rfc822", _MAIL.encode()),
    }  # fmt: skip


def _archives() -> dict[str, tuple[str, bytes]]:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    app = {"AndroidManifest.xml": "\3\0", "classes.dex": "dex"}
    jar: dict[str, str | bytes] = {"META-INF/MANIFEST.MF": "Manifest-Version: 1.0\n", "A.class": b"\xca\xfe\xba\xbe"}
    return {
        "files.zip": ("application/zip", make_zip({"a.txt": "a", "b/inside.docx": make_office("docx")})),
        "empty.zip": ("application/zip", make_zip({})),
        "tool.jar": ("application/java-archive", make_zip(jar)),
        "app.apk": ("application/vnd.android.package-archive", make_zip(app)),
        "files.tar": ("application/x-tar", tar.getvalue()),
        "files.tar.gz": ("application/gzip", gzip.compress(tar.getvalue(), mtime=0)),
        "notes.txt.bz2": ("application/x-bzip2", bz2.compress(b"notes")),
        "notes.txt.xz": ("application/x-xz", lzma.compress(b"notes")),
        "notes.zst": ("application/zstd", b"\x28\xb5\x2f\xfd\x04\0\x29\0\0notes"),
        "files.7z": ("application/x-7z-compressed", b"7z\xbc\xaf\x27\x1c\0\x04" + bytes(24)),
        "files.rar": ("application/vnd.rar", b"Rar!\x1a\x07\x01\0" + bytes(24)),
        "dance.tgs": ("application/x-tgsticker", gzip.compress(json.dumps(_LOTTIE).encode(), mtime=0)),
    }  # fmt: skip


def _texts() -> dict[str, tuple[str, bytes]]:
    table = "name,age,town\r\nZoë,31,Gent\r\n佐藤,30,東京\r\n"
    return {
        "notes.txt": ("text/plain", _PROSE.encode()),
        "windows.txt": ("text/plain", _PROSE.encode("utf-16")),
        "unmarked.txt": ("text/plain", _PROSE[:60].encode("utf-16-be")),
        "smart.txt": ("text/plain", "“It’s fine”, said Zoë – naïvely.\n".encode("cp1252")),
        "readme.md": ("text/markdown", b"# belino\n\nSee the [docs](docs/).\n"),
        "people.csv": ("text/csv", table.encode()),
        "kanji.csv": ("text/csv", "名前,年齢,住所\r\n佐藤太郎,30,東京\r\n三木英子,25,大阪\r\n".encode("cp932")),
        "page.html": ("text/html", b"<!-- saved --><!DOCTYPE html>\n<html><body>hello</body></html>"),
        "piece.html": ("text/html", b"\n  <div class=a>hello</div>"),
        "feed.xml": ("application/xml", b'<?xml version="1.0"?>\n<rss version="2.0"><channel/></rss>'),
        "answer.json": ("application/json", b'{"ok": true, "result": [1, 2.5, null, "x"]}\n'),
        "tool.py": ("text/x-python", b"#!/usr/bin/env python3\nprint('hello')\n"),
        "week.ics": ("text/calendar", b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n"),
        "ann.vcf": ("text/vcard", b"BEGIN:VCARD\r\nFN:Ann\r\nEND:VCARD\r\n"),
    }


def _others() -> dict[str, tuple[str, bytes]]:
    program = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + bytes(32)
    return {
        "type.woff2": ("font/woff2", b"wOF2\0\x01\0\0" + bytes(40)),
        "type.ttf": ("font/ttf", b"\0\x01\0\0\0\x0c\0\x80" + bytes(40)),
        "notes.sqlite": ("application/vnd.sqlite3", b"SQLite format 3\0\x10\0\x01\x01" + bytes(80)),
        "program": ("application/x-elf", b"\x7fELF\x02\x01\x01" + bytes(57)),
        "setup.exe": ("application/vnd.microsoft.portable-executable", program),
        "noise.bin": ("application/octet-stream", bytes((number * 73 + 41) % 256 for number in range(4096))),
    }


def _box(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body) + 8) + name + body


def _element(name: bytes, body: bytes) -> bytes:
    return name + struct.pack(">H", 0x4000 | len(body)) + body


def _entry(name: str, kind: int) -> bytes:
    written = name.encode("utf-16-le")
    return written.ljust(64, b"\0") + struct.pack("<HB", len(written) + 2, kind) + bytes(61)
