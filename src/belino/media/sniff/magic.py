"""Magic bytes: types that begin with a signature."""

import re

from belino.media.sniff.hints import Found, Hints

# Longest first where one is a prefix of another.
STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\x8aMNG\r\n\x1a\n", "video/x-mng"),
    (b"\x8bJNG\r\n\x1a\n", "image/x-jng"),
    (b"\xff\xd8\xff\xf7", "image/jls"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\xff\x0a", "image/jxl"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"8BPS", "image/vnd.adobe.photoshop"),
    (b"qoif", "image/x-qoi"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "image/jxl"),
    (b"\xff\x4f\xff\x51", "image/x-jp2-codestream"),
    (b"SIMPLE  =", "image/fits"),
    (b"DDS ", "image/vnd.ms-dds"),
    (b"BLP1", "image/x-blp"),
    (b"BLP2", "image/x-blp"),
    (b"icns", "image/icns"),
    (b"v/1\x01", "image/x-exr"),
    (b"#?RADIANCE\n", "image/vnd.radiance"),
    (b"#?RGBE\n", "image/vnd.radiance"),
    (b"FUJIFILMCCD-RAW", "image/x-fuji-raf"),
    (b"IIU\0", "image/x-panasonic-rw2"),
    (b"IIRO", "image/x-olympus-orf"),
    (b"IIRS", "image/x-olympus-orf"),
    (b"MMOR", "image/x-olympus-orf"),
    (b"II\x1a\0\0\0HEAPCCDR", "image/x-canon-crw"),
    (b"FOVb", "image/x-sigma-x3f"),
    (b"\0MRM", "image/x-minolta-mrw"),
    (b"SDPX", "image/dpx"),
    (b"XPDS", "image/dpx"),
    (b"FLIF", "image/flif"),
    (b"\x59\xa6\x6a\x95", "image/x-cmu-raster"),
    (b"\xd7\xcd\xc6\x9a", "image/wmf"),
    (b"\x01\0\x09\0\0\x01", "image/wmf"),
    (b"\x01\0\x09\0\0\x03", "image/wmf"),
    (b"\x02\0\x09\0\0\x03", "image/wmf"),
    (b"\xb1\x68\xde\x3a", "image/x-dcx"),
    (b"\x80\xe8\0\0", "image/x-pixar"),
    (b"gimp xcf ", "image/x-xcf"),
    (b"II\xbc\x01", "image/jxr"),
    (b"\xabKTX 11\xbb\r\n", "image/ktx"),
    (b"\xabKTX 20\xbb\r\n", "image/ktx2"),
    (b"AC10", "image/vnd.dwg"),
    (b"BPG\xfb", "image/bpg"),
    (b"AT&TFORM", "image/vnd.djvu"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR-WB\n", "audio/amr-wb"),
    (b"#!AMR\n", "audio/amr"),
    (b"\x02#!SILK_V3", "audio/silk"),
    (b"#!SILK_V3", "audio/silk"),
    (b"MThd", "audio/midi"),
    (b"caff\0\x01", "audio/x-caf"),
    (b".snd", "audio/basic"),
    (b"MAC ", "audio/x-ape"),
    (b"wvpk", "audio/x-wavpack"),
    (b"MPCK", "audio/x-musepack"),
    (b"MP+", "audio/x-musepack"),
    (b"DSD ", "audio/x-dsf"),
    (b"FRM8\0\0\0\0", "audio/x-dff"),
    (b".ra\xfd", "audio/x-pn-realaudio"),
    (b"riff\x2e\x91\xcf\x11", "audio/x-w64"),
    (b"TTA1", "audio/x-tta"),
    (b"ADIF", "audio/aac"),
    (b"Creative Voice File\x1a", "audio/x-voc"),
    (b"Extended Module: ", "audio/x-xm"),
    (b"IMPM", "audio/x-it"),
    (b".RMF", "application/vnd.rn-realmedia"),
    (b"FLV\x01", "video/x-flv"),
    (b"\0\0\x01\xba", "video/mpeg"),
    (b"\0\0\x01\xb3", "video/mpeg"),
    (b"\0\0\0\x01\x67", "video/h264"),
    (b"\0\0\0\x01\x09", "video/h264"),
    (b"\0\0\0\x01\x40\x01", "video/h265"),
    (b"DKIF\0\0", "video/x-ivf"),
    (b"YUV4MPEG2 ", "video/x-yuv4mpeg"),
    (b"\x1f\x07\0\x3f", "video/x-dv"),
    (b"\x1f\x07\0\xbf", "video/x-dv"),
    (b"\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02\x01\x01", "application/mxf"),
    (b"%PDF-", "application/pdf"),
    (b"%FDF-", "application/fdf"),
    (b"%!PS", "application/postscript"),
    (b"\x04%!PS", "application/postscript"),
    (b"\xc5\xd0\xd3\xc6", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
    (b"\xdb\xa5\x2d\0", "application/msword"),
    (b"\x31\xbe\0\0", "application/x-mswrite"),
    (b"\x32\xbe\0\0", "application/x-mswrite"),
    (b"\x09\0\x04\0", "application/vnd.ms-excel"),
    (b"\x09\x02\x06\0", "application/vnd.ms-excel"),
    (b"\x09\x04\x06\0", "application/vnd.ms-excel"),
    (b"\xffWPC", "application/vnd.wordperfect"),
    (b"\0\0\x02\0\x06\x04\x06\0", "application/vnd.lotus-1-2-3"),
    (b"\0\0\x02\0\x04\x04", "application/vnd.lotus-1-2-3"),
    (b"\0\0\x1a\0\0\x10\x04\0", "application/vnd.lotus-1-2-3"),
    (b"\0\0\x1a\0\x02\x10\x04\0", "application/vnd.lotus-1-2-3"),
    (b"\0\0\x1a\0\x03\x10\x04\0", "application/vnd.lotus-1-2-3"),
    (b"\0\0\x1a\0\x05\x10\x04\0", "application/vnd.lotus-1-2-3"),
    (b"HWP Document File V", "application/x-hwp"),
    (b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1\x53\x78\xd0\x29\x96\xd3", "application/onenote"),
    (b"\x78\x9f\x3e\x22", "application/vnd.ms-tnef"),
    (b"\0\x01\0\0Standard Jet DB\0", "application/x-msaccess"),
    (b"\0\x01\0\0Standard ACE DB\0", "application/x-msaccess"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\x04\x22\x4d\x18", "application/x-lz4"),
    (b"\x02\x21\x4c\x18", "application/x-lz4"),
    (b"\x5d\0\0\x80\0", "application/x-lzma"),
    (b"LZIP\x01", "application/x-lzip"),
    (b"\x1f\x9d", "application/x-compress"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"RE~^", "application/vnd.rar"),
    (b"StuffIt (c)", "application/x-stuffit"),
    (b"MSWIM\0\0\0", "application/x-ms-wim"),
    (b"QFI\xfb", "application/x-qemu-disk"),
    (b"MSCF\0\0\0\0", "application/vnd.ms-cab-compressed"),
    (b"xar!", "application/x-xar"),
    (b"!<arch>\ndebian", "application/vnd.debian.binary-package"),
    (b"!<arch>\n", "application/x-archive"),
    (b"\xed\xab\xee\xdb", "application/x-rpm"),
    (b"070701", "application/x-cpio"),
    (b"070707", "application/x-cpio"),
    (b"\xc7\x71", "application/x-cpio"),
    (b"\x60\xea", "application/x-arj"),
    (b"Cr24", "application/x-google-chrome-extension"),
    (b"FWS", "application/x-shockwave-flash"),
    (b"CWS", "application/x-shockwave-flash"),
    (b"ZWS", "application/x-shockwave-flash"),
    (b"BLENDER", "application/x-blender"),
    (b"\x06\x06\xed\xf5\xd8\x1d\x46\xe5", "application/x-indesign"),
    (b"ITSF\x03\0\0\0", "application/vnd.ms-htmlhelp"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
    (b"ttcf\0", "font/collection"),
    (b"true\0", "font/ttf"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"\x7fELF", "application/x-elf"),
    (b"\xfe\xed\xfa\xce", "application/x-mach-binary"),
    (b"\xfe\xed\xfa\xcf", "application/x-mach-binary"),
    (b"\xce\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\xca\xfe\xba\xbf\0\0\0", "application/x-mach-binary"),
    (b"\0asm", "application/wasm"),
    (b"dex\n03", "application/vnd.android.dex"),
    (b"dex\n04", "application/vnd.android.dex"),
    (b"JM\x01\0PK\x03\x04", "application/x-java-jmod"),
    (b"\xfe\xed\xfe\xed\0\0\0", "application/x-java-keystore"),
    (b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
    (b"\x0e\x03\x13\x01", "application/x-hdf"),
    (b"CDF\x01", "application/x-netcdf"),
    (b"CDF\x02", "application/x-netcdf"),
    (b"GRIB", "application/x-grib"),
    (b"MATLAB 5.0 MAT-file", "application/x-matlab-data"),
    (b"ORC", "application/vnd.apache.orc"),
    (b"\0\0\x27\x0a\0\0\0\0", "application/vnd.shp"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"ARROW1\0\0", "application/vnd.apache.arrow.file"),
    (b"Obj\x01", "application/vnd.apache.avro"),
    (b"\x93NUMPY", "application/x-npy"),
    (b"glTF\x02\0\0\0", "model/gltf-binary"),
    (b"Kaydara FBX Binary  \0", "application/x-fbx"),
    (b"AutoCAD Binary DXF\r\n\x1a\0", "image/vnd.dxf"),
    (b"\xff\xfe\xff\x0eS\0k\0e\0t\0c\0h\0U\0p\0", "application/vnd.sketchup.skp"),
    (b"\xd4\xc3\xb2\xa1", "application/vnd.tcpdump.pcap"),
    (b"\xa1\xb2\xc3\xd4", "application/vnd.tcpdump.pcap"),
    (b"\x4d\x3c\xb2\xa1", "application/vnd.tcpdump.pcap"),
    (b"bplist00", "application/x-bplist"),
    (b"d8:announce", "application/x-bittorrent"),
    (b"d13:announce-list", "application/x-bittorrent"),
    (b"d7:comment", "application/x-bittorrent"),
    (b"d10:created by", "application/x-bittorrent"),
    (b"d13:creation date", "application/x-bittorrent"),
    (b"d4:infod", "application/x-bittorrent"),
    (b"WARC/1.", "application/warc"),
    (b"ITOLITLS", "application/x-ms-reader"),
    (b"\xde\x12\x04\x95", "application/x-gettext-translation"),
    (b"\x95\x04\x12\xde", "application/x-gettext-translation"),
    (b"\x03\xd9\xa2\x9a\x67\xfb\x4b", "application/x-keepass2"),
    (b"\x4c\0\0\0\x01\x14\x02\0\0\0\0\0\xc0\0\0\0", "application/x-ms-shortcut"),
    (b"!BDN", "application/vnd.ms-outlook-pst"),
)
_BY_FIRST: dict[int, tuple[tuple[bytes, str], ...]] = {
    first: tuple(pair for pair in STARTS if pair[0][0] == first) for first in {start[0] for start, _ in STARTS}
}
# Signatures that a text may begin with; their types are not text.
_WORDS = frozenset(
    start
    for start, mime in STARTS
    if len(start) <= 2 or (re.fullmatch(rb"[ -~]{1,4}", start) and mime != "application/postscript")
)
WORDS_REACH = 512
CONTROL = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")

# The size follows the signature: a list of priorities begins with P1 too.
_PNM = re.compile(
    rb"P(?:([1-6Ff])(?:[ \t\r\n]|#[^\n]{0,200}\n){1,50}+\d{1,9}[ \t\r\n]+\d{1,9}\s"
    rb"|(7)\r?\n(?:#[^\n]{0,200}\n){0,50}+(?:WIDTH|HEIGHT|DEPTH|MAXVAL|TUPLTYPE)\s)"
)
_PNM_TYPES = {
    b"1": "image/x-portable-bitmap", b"4": "image/x-portable-bitmap",
    b"2": "image/x-portable-graymap", b"5": "image/x-portable-graymap",
    b"3": "image/x-portable-pixmap", b"6": "image/x-portable-pixmap",
    b"7": "image/x-portable-arbitrarymap", b"F": "image/x-portable-floatmap", b"f": "image/x-portable-floatmap",
}  # fmt: skip
_TIFF_RAWS = (
    "image/x-adobe-dng", "image/x-nikon-nef", "image/x-sony-arw", "image/x-pentax-pef", "image/x-canon-cr2",
)  # fmt: skip
_MARKS_WITHIN = (
    (2, b"-lh", "application/x-lzh-compressed"),
    (6, b"%!PS-AdobeFont", "application/x-font-type1"),
    (7, b"**ACE**", "application/x-ace-compressed"),
    (8, b"\x4d\x3c\x2b\x1a", "application/x-pcapng"),
    (8, b"\x1a\x2b\x3c\x4d", "application/x-pcapng"),
    (36, b"acsp", "application/vnd.iccprofile"),
    (44, b"SCRM", "audio/x-s3m"),
    (60, b"BOOKMOBI", "application/x-mobipocket-ebook"),
    (128, b"DICM", "application/dicom"),
    (344, b"n+1\0", "image/x.nifti"),
    (512, b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
    (1080, b"M.K.", "audio/x-mod"),
    (32_769, b"CD001", "application/x-iso9660-image"),
    (32_769, b"BEA01", "application/x-iso9660-image"),
)
# A packet capture begins with what would be 3338.
_PYTHONS = frozenset({*range(3000, 3800), 20_121, 50_428, 50_823, 60_202, 60_717, *range(62_011, 62_212)} - {3338})
_EOT_VERSIONS = (b"\0\0\x01\0", b"\x01\0\x02\0", b"\x02\0\x02\0")
_PDF_LATER = re.compile(rb"(?:\A[ \t]{1,100}|[\r\n\0\xff\xbf-])%PDF-\d\.")
_PDF_AFTER_WORDS = re.compile(rb"%PDF-\d\.\d[ \t]{0,9}[\r\n]")
_PDF_OBJECT = re.compile(rb"\bobj\b")
_PDF_NUMBERED = re.compile(rb"[\r\n]\d{1,9} \d{1,5} obj\b")
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1a\x80-\xff]")
_PDF_REACH = 1024


def by_start(head: bytes) -> str | None:
    """The type whose signature the bytes begin with."""
    for start, mime in _BY_FIRST.get(head[0], ()) if head else ():
        if head.startswith(start) and (start not in _WORDS or CONTROL.search(head[:WORDS_REACH])):
            return mime
    return None


def by_shape(head: bytes) -> str | None:
    """Types identified by several fields, where a signature alone would often be wrong."""
    for told in (_bmp, _icon, _pnm, _old_pictures, _font, _program, _skippable, _model, _tar, _further_in):
        if mime := told(head):
            return mime
    return None


def tiff(head: bytes, hints: Hints) -> Found | None:
    """TIFF, and camera raw formats based on it."""
    if head[:4] not in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return None
    if head[8:11] == b"CR\x02":
        return "image/x-canon-cr2", True
    for mime in _TIFF_RAWS:
        if hints.suggests(mime):
            return mime, False
    return "image/tiff", True


def late_pdf(head: bytes) -> bool:
    """Readers accept junk before the header of a PDF; what follows must look like one."""
    found = _PDF_LATER.search(head[:_PDF_REACH])
    if not found:
        return _pdf_after_words(head)
    return bool(_PDF_OBJECT.search(head, found.end(), found.end() + 2048) or not head[: found.start()].isascii())


def _pdf_after_words(head: bytes) -> bool:
    """A server's page may precede the header on the same line; unlike a page about PDF, binary data follows."""
    found = _PDF_AFTER_WORDS.search(head, 0, _PDF_REACH + 16)
    if not found or found.start() >= _PDF_REACH or not _PDF_NUMBERED.search(head, found.end() - 1, found.end() + 4096):
        return False
    return bool(_BINARY.search(head, found.end()))


def _bmp(head: bytes) -> str | None:
    header = int.from_bytes(head[14:18], "little")
    if head[:2] == b"BM" and header in (12, 16, 40, 52, 56, 64, 108, 124):
        return "image/bmp"
    # OS/2 stores icons, pointers and bitmaps in one format, also several of them, each with its own signature.
    inner = head[14:] if head[:2] == b"BA" else head
    if inner[:2] in (b"BM", b"CI", b"IC", b"CP", b"PT") and inner[2:6] in (b"\x1a\0\0\0", b"\x4e\0\0\0"):
        return "image/x-os2-graphics"
    bare = head[:4] == b"\x28\0\0\0" and head[12:14] == b"\x01\0" and head[15:16] == b"\0"
    return "image/bmp" if bare and head[14:15] in (b"\x01", b"\x04", b"\x08", b"\x10", b"\x18", b"\x20") else None


def _icon(head: bytes) -> str | None:
    if head[:4] not in (b"\0\0\x01\0", b"\0\0\x02\0") or len(head) < 22:
        return None
    count, reserved, offset = int.from_bytes(head[4:6], "little"), head[9], int.from_bytes(head[18:22], "little")
    if not 0 < count <= 1000 or reserved not in (0, 255) or offset < 6 + 16 * count or not any(head[14:18]):
        return None
    if head[2] == 1 and (head[10:12] not in (b"\0\0", b"\x01\0") or head[13]):
        return None
    return "image/vnd.microsoft.icon" if head[2] == 1 else "image/x-win-bitmap"


def _pnm(head: bytes) -> str | None:
    found = _PNM.match(head[:1024])
    return _PNM_TYPES[found[1] or found[2]] if found else None


def _old_pictures(head: bytes) -> str | None:
    if head[:2] == b"\x01\xda" and head[2:3] in (b"\0", b"\x01") and head[3:4] in (b"\x01", b"\x02"):
        return "image/x-sgi"
    if (
        head[:1] == b"\x0a"
        and head[1:2] in (b"\0", b"\x02", b"\x03", b"\x04", b"\x05")
        and head[2:3] in (b"\0", b"\x01")
    ):
        return "image/x-pcx" if head[3:4] in (b"\x01", b"\x02", b"\x04", b"\x08") else None
    if head[4:6] in (b"\x11\xaf", b"\x12\xaf") and len(head) >= 128:
        return "video/x-fli"
    if head[:4] == b"\x01\0\0\0" and head[40:44] == b" EMF":
        return "image/emf"
    return None


def _font(head: bytes) -> str | None:
    """By its list of tables: icon caches and other formats begin with the same version number."""
    if head[34:36] == b"LP" and head[8:12] in _EOT_VERSIONS:
        return "application/vnd.ms-fontobject"
    tables, searched = int.from_bytes(head[4:6]), int.from_bytes(head[6:8])
    if head[:4] != b"\0\x01\0\0" or not 0 < tables <= 255:
        return None
    listed = searched == 16 << tables.bit_length() - 1 or re.fullmatch(rb"[A-Za-z0-9/ ]{4}", head[12:16])
    return "font/ttf" if listed else None


def _skippable(head: bytes) -> str | None:
    """Zstandard begins with a skippable frame if several threads compressed it."""
    if head[1:4] != b"\x2a\x4d\x18" or head[0] >> 4 != 5:
        return None
    at = 8 + int.from_bytes(head[4:8], "little")
    return {b"\x28\xb5\x2f\xfd": "application/zstd", b"\x04\x22\x4d\x18": "application/x-lz4"}.get(head[at : at + 4])


def _model(head: bytes) -> str | None:
    """STL: eighty arbitrary bytes, then the number of triangles, each ending with two zero bytes."""
    count = int.from_bytes(head[80:84], "little")
    plain = len(head) >= 184 and 0 < count < 1 << 28 and head[132:134] == head[182:184] == b"\0\0"
    return "model/stl" if plain and not CONTROL.search(head[:80].rstrip(b"\0")) and head[:80].strip(b"\0 ") else None


def _program(head: bytes) -> str | None:
    if head[:2] == b"MZ" and len(head) >= 64:
        at = int.from_bytes(head[60:64], "little")
        known = at + 4 > len(head) or head[at : at + 2] in (b"PE", b"NE", b"LE", b"LX")
        return "application/vnd.microsoft.portable-executable" if known else "application/x-msdos-program"
    if head[2:4] == b"\r\n" and int.from_bytes(head[:2], "little") in _PYTHONS and CONTROL.search(head[4:16]):
        return "application/x-python-code"
    if head[:4] == b"\xca\xfe\xba\xbe" and len(head) >= 8:
        # A Java class has a version of at least 45 where a Mach-O has the number of its architectures.
        return "application/java-vm" if int.from_bytes(head[6:8]) >= 45 else "application/x-mach-binary"
    return None


def _further_in(head: bytes) -> str | None:
    """Types whose signature is further into the file, where a text may have the same letters."""
    for at, mark, mime in _MARKS_WITHIN:
        if head.startswith(mark, at) and CONTROL.search(head[:WORDS_REACH]):
            return mime
    return None


def _tar(head: bytes) -> str | None:
    if len(head) < 512:
        return None
    if head[257:262] == b"ustar" and re.fullmatch(rb"[0-7 \0]{8}", head[148:156]):
        return "application/x-tar"
    written = head[148:156].strip(b" \0")
    if not re.fullmatch(rb"[0-7]{1,7}", written) or not head[0]:
        return None
    return "application/x-tar" if int(written, 8) == sum(head[:148]) + 8 * 32 + sum(head[156:512]) else None
