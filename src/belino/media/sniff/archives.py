"""Archives: types inside a container, such as office files in ZIP or OLE and stickers in gzip."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from belino.media.sniff.hints import SUFFIXES, Found, Hints

ENTRIES_AT_MOST = 2_000
INFLATED_AT_MOST = 64 * 1024
_WALK_INFLATED_AT_MOST = 1024 * 1024
_MARKS_AT_MOST = 100

ZIP, GZIP = "application/zip", "application/gzip"
TGS = "application/x-tgsticker"
_DOCX, _XLSX, _PPTX = SUFFIXES["docx"], SUFFIXES["xlsx"], SUFFIXES["pptx"]

# The main part's type in `[Content_Types].xml`; a theme contains an empty presentation.
_MAIN_PARTS = (
    (b"openxmlformats-officedocument.themeManager+xml", SUFFIXES["thmx"]),
    (b"wordprocessingml.document.main+xml", _DOCX),
    (b"spreadsheetml.sheet.main+xml", _XLSX),
    (b"presentationml.presentation.main+xml", _PPTX),
    (b"presentationml.slideshow.main+xml", "application/vnd.openxmlformats-officedocument.presentationml.slideshow"),
    (b"wordprocessingml.template.main+xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.template"),
    (b"spreadsheetml.template.main+xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.template"),
    (b"presentationml.template.main+xml", "application/vnd.openxmlformats-officedocument.presentationml.template"),
    (b"ms-word.document.macroEnabled.main+xml", SUFFIXES["docm"]),
    (b"ms-excel.sheet.macroEnabled.main+xml", SUFFIXES["xlsm"]),
    (b"ms-powerpoint.presentation.macroEnabled.main+xml", SUFFIXES["pptm"]),
    (b"ms-word.template.macroEnabledTemplate.main+xml", "application/vnd.ms-word.template.macroenabled.12"),
    (b"ms-excel.template.macroEnabled.main+xml", "application/vnd.ms-excel.template.macroenabled.12"),
    (b"ms-excel.addin.macroEnabled.main+xml", "application/vnd.ms-excel.addin.macroenabled.12"),
    (b"ms-powerpoint.template.macroEnabled.main+xml", "application/vnd.ms-powerpoint.template.macroenabled.12"),
    (b"ms-powerpoint.slideshow.macroEnabled.main+xml", "application/vnd.ms-powerpoint.slideshow.macroenabled.12"),
    (b"ms-excel.sheet.binary.macroEnabled.main", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    (b"ms-powerpoint.addin.macroEnabled.main+xml", SUFFIXES["ppam"]),
    (b"ms-visio.drawing.main+xml", "application/vnd.ms-visio.drawing"),
    (b"ms-visio.drawing.macroEnabled.main+xml", "application/vnd.ms-visio.drawing.macroenabled.12"),
    (b"ms-visio.stencil.main+xml", "application/vnd.ms-visio.stencil"),
    (b"ms-visio.stencil.macroEnabled.main+xml", "application/vnd.ms-visio.stencil.macroenabled.12"),
    (b"ms-visio.template.main+xml", "application/vnd.ms-visio.template"),
    (b"ms-visio.template.macroEnabled.main+xml", "application/vnd.ms-visio.template.macroenabled.12"),
    (b"ms-package.xps-fixeddocumentsequence+xml", SUFFIXES["xps"]),
    (b"openxps-fixeddocumentsequence+xml", SUFFIXES["oxps"]),
    (b"ms-package.3dmanufacturing-3dmodel+xml", "model/3mf"),
)
_TOLD_BY_NAME = (
    ("word/document", _DOCX),
    ("xl/workbook.bin", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    ("xl/workbook", _XLSX),
    ("ppt/presentation", _PPTX),
    ("visio/document", "application/vnd.ms-visio.drawing"),
    ("3D/3dmodel", "model/3mf"),
    ("AndroidManifest.xml", SUFFIXES["apk"]),
    ("FixedDocSeq.fdseq", SUFFIXES["xps"]),
    ("FixedDocumentSequence.fdseq", SUFFIXES["xps"]),
    ("doc.kml", SUFFIXES["kmz"]),
)
_OFFICE_PARTS = ("[Content_Types].xml", "[content_types].xml", "_rels/", "docProps/", "docMetadata/", "customXml/")
_OFFICE_FOLDERS = (("word/", _DOCX), ("xl/", _XLSX), ("ppt/", _PPTX))
_OFFICE_HINTS = tuple(
    SUFFIXES[suffix]
    for suffix in (
        *("docx", "xlsx", "pptx", "docm", "xlsm", "pptm", "dotx", "xltx", "potx", "ppsx"),
        *("dotm", "xltm", "potm", "ppsm", "xlsb", "vsdx"),
    )
)
_RELATED = {
    _DOCX: tuple(SUFFIXES[suffix] for suffix in ("docm", "dotx", "dotm")),
    _XLSX: tuple(SUFFIXES[suffix] for suffix in ("xlsm", "xltx", "xltm")),
    _PPTX: tuple(SUFFIXES[suffix] for suffix in ("pptm", "potx", "potm", "ppsx", "ppsm")),
    SUFFIXES["jar"]: (SUFFIXES["apk"],),
}
_FAR_HINTS = tuple(SUFFIXES[suffix] for suffix in ("epub", "mxl", "xps", "oxps", "3mf"))
# ZIP types without a signature: only the name identifies them.
_ZIP_HINTS = tuple(
    SUFFIXES[suffix]
    for suffix in ("jar", "apk", "kmz", "pages", "numbers", "key", "xpi", "cbz", "usdz", "ipa", "lottie")
)
_ODF = re.compile(r"application/vnd\.(?:oasis\.opendocument|sun\.xml)\.[a-z.-]{1,40}")
_ODF_ROOT = re.compile(rf'media-type="({_ODF.pattern})"[^<>]{{0,200}}full-path="/"')
_WRITTEN_IN = frozenset({
    "application/epub+zip", "image/openraster", "application/x-krita", "application/hwp+zip", SUFFIXES["idml"],
    SUFFIXES["mxl"], "application/vnd.etsi.asic-e+zip", "application/vnd.etsi.asic-s+zip",
})  # fmt: skip
_TYPES, _MANIFEST = "[Content_Types].xml", "META-INF/manifest.xml"
_TELLING_PARTS = frozenset({"mimetype", _TYPES.lower(), _MANIFEST.lower()})

OLE = "application/x-ole-storage"
OLE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WORD, _EXCEL, _POWERPOINT, _OUTLOOK = (SUFFIXES[suffix] for suffix in ("doc", "xls", "ppt", "msg"))

# Stream names are case-insensitive.
_OLE_STREAMS = (
    ("worddocument", _WORD),
    ("workbook", _EXCEL),
    ("book", _EXCEL),
    ("powerpoint document", _POWERPOINT),
    ("pp40", _POWERPOINT),
    ("__properties_version1.0", _OUTLOOK),
    ("__nameid_version1.0", _OUTLOOK),
    ("visiodocument", "application/vnd.visio"),
    ("fileheader", "application/x-hwp"),
    ("quill", "application/x-mspublisher"),
    ("matost", "application/vnd.ms-works"),
    ("starwriterdocument", "application/vnd.stardivision.writer"),
    ("starcalcdocument", "application/vnd.stardivision.calc"),
    ("stardrawdocument3", "application/vnd.stardivision.draw"),
    ("1table", _WORD),
    ("0table", _WORD),
)
# The root names the program that wrote it; the streams may be of embedded objects, or further on.
_OLE_PROGRAMS = {
    "0009020000000000c000000000000046": _WORD,
    "0609020000000000c000000000000046": _WORD,
    "2008020000000000c000000000000046": _EXCEL,
    "1008020000000000c000000000000046": _EXCEL,
    "108d81649b4fcf1186ea00aa00b929e8": _POWERPOINT,
    "0b0d020000000000c000000000000046": _OUTLOOK,
    "84100c0000000000c000000000000046": "application/x-msi",
    "86100c0000000000c000000000000046": "application/x-msi",
    "3a8fb774c8c8d111be1100c04fb6faf1": "application/vnd.ms-project",
    "2033fd72059acf1185a400a0c904de5f": "application/vnd.ms-project",
    "b25aa40e0a9ed111a40700c04fb932ba": "application/vnd.ms-works",
}
# The first stream usually follows the header: if the directory is out of reach, its first bytes decide.
_OLE_CONTENT = (
    (b"\xec\xa5", _WORD),
    (b"\x09\x08\x10\0\0\x06\x05\0", _EXCEL),
    (b"\xa0\x46\x1d\xf0", _POWERPOINT),
    (b"\0\x6e\x1e\xf0", _POWERPOINT),
    (b"\x0f\0\xe8\x03", _POWERPOINT),
)
_OLE_HINTS = tuple(SUFFIXES[suffix] for suffix in ("doc", "xls", "ppt", "msg", "vsd", "msi", "pub", "mpp", "hwp"))
_OLE_LOCKED_HINTS = tuple(SUFFIXES[suffix] for suffix in ("docx", "xlsx", "pptx", "docm", "xlsm", "pptm", "xlsb"))
_OLE_LOCKED = "encryptedpackage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file of a ZIP: its name, and the beginning of its content where that is cheap."""

    name: str
    content: bytes = b""


def archive_type(head: bytes, hints: Hints, *, whole: bool) -> Found | None:
    """The type of a file that is an archive, or is inside one."""
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08", b"PK\x01\x02", b"PK00"):
        return _zip(head, hints, whole=whole)
    return _gzip(head) if head[:3] == b"\x1f\x8b\x08" else ole_type(head, hints)


def _zip(head: bytes, hints: Hints, *, whole: bool) -> Found:
    names: list[str] = []
    for entry in _local_entries(head):
        if told := _by_content(entry):
            return told, True
        names.append(entry.name)
    names += _central_names(head) if whole or b"PK\x05\x06" in head[-65_557:] else []
    told = _by_names(names)
    if told and not whole:
        # The list of types is further on: the name may distinguish related types.
        closer = next((mime for mime in _RELATED.get(told, ()) if hints.suggests(mime)), None)
        return closer or told, closer is None
    if told:
        return told, True
    suggested = _by_hints(names, hints, whole=whole)
    return (suggested, False) if suggested else (ZIP, True)


def _by_hints(names: list[str], hints: Hints, *, whole: bool) -> str | None:
    """The type where the deciding entry is further on, or missing."""
    office = any(name.startswith(_OFFICE_PARTS) for name in names)
    if not office and not whole:
        office = not names or any(name.startswith(folder) for name in names for folder, _ in _OFFICE_FOLDERS)
    far = not whole or "META-INF/container.xml" in names
    room = (*(_OFFICE_HINTS if office else ()), *(_FAR_HINTS if far else ()), *_ZIP_HINTS)
    return next((mime for mime in room if hints.suggests(mime)), None)


def _by_content(entry: Entry) -> str | None:
    if entry.name == "mimetype":
        written = entry.content[:100].decode("ascii", "replace").strip()
        return written if written in _WRITTEN_IN or _ODF.fullmatch(written) else None
    if entry.name == _MANIFEST:
        found = _ODF_ROOT.search(entry.content.decode("utf-8", "replace"))
        return found[1] if found else None
    if entry.name.lower() == _TYPES.lower():
        return next((mime for part, mime in _MAIN_PARTS if part in entry.content), None)
    return None


def _by_names(names: list[str]) -> str | None:
    for name in names:
        for told, mime in _TOLD_BY_NAME:
            if name == told or (name.startswith(told) and "/" in told and "." not in told):
                return mime
    if any(name.startswith(_OFFICE_PARTS) for name in names):
        for folder, mime in _OFFICE_FOLDERS:
            if any(name.startswith(folder) for name in names):
                return mime
    if "META-INF/container.xml" in names and any(name.endswith(".opf") for name in names):
        return SUFFIXES["epub"]
    if "META-INF/MANIFEST.MF" in names:
        return SUFFIXES["apk"] if "classes.dex" in names else SUFFIXES["jar"]
    return None


def _local_entries(head: bytes) -> Iterator[Entry]:
    """The entries in file order, as far as the head reaches."""
    at = 4 if head[:4] in (b"PK00", b"PK\x07\x08") else 0
    allowance = _WALK_INFLATED_AT_MOST
    for _ in range(ENTRIES_AT_MOST):
        if head[at : at + 4] != b"PK\x03\x04" or at + 30 > len(head):
            return
        flags, method = head[at + 6] | head[at + 7] << 8, head[at + 8] | head[at + 9] << 8
        packed = int.from_bytes(head[at + 18 : at + 22], "little")
        name_size, extra = (int.from_bytes(head[at + p : at + p + 2], "little") for p in (26, 28))
        begin = at + 30 + name_size + extra
        name = _name(head[at + 30 : at + 30 + name_size])
        streamed = bool(flags & 8) and packed == 0
        content, end, cost = b"", begin + packed, 0
        if streamed or name.lower() in _TELLING_PARTS:
            content, end, cost = _content(head, begin, method, None if streamed else packed, allowance)
        allowance -= cost
        yield Entry(name=name, content=content)
        if not begin <= end <= len(head) or allowance <= 0:
            return
        at = _next(head, end) if streamed else end


def _content(head: bytes, begin: int, method: int, packed: int | None, most: int) -> tuple[bytes, int, int]:
    """The beginning of an entry's content, the entry's end, and how many bytes were inflated."""
    if method != 8:
        end = begin + packed if packed is not None else _stored_end(head, begin)
        return head[begin : min(end, begin + INFLATED_AT_MOST)] if end >= 0 else b"", end, 0
    inflater = zlib.decompressobj(-15)
    kept, cost, rest = b"", 0, head[begin : begin + packed if packed is not None else len(head)]
    try:
        while rest and not inflater.eof and cost < most:
            piece = inflater.decompress(rest, INFLATED_AT_MOST)
            kept, cost, rest = kept or piece, cost + len(piece), inflater.unconsumed_tail
    except zlib.error:
        return kept, -1, cost
    end = len(head) - len(inflater.unused_data) if inflater.eof else len(head) + 1
    return kept, begin + packed if packed is not None else end, cost


def _stored_end(head: bytes, begin: int) -> int:
    """The end of an entry that is stored without a size: a nested archive has such markers of its own."""
    end = begin - 1
    for _ in range(_MARKS_AT_MOST):
        end = head.find(b"PK\x07\x08", end + 1)
        if end < 0 or int.from_bytes(head[end + 8 : end + 12], "little") == end - begin:
            return end
    return -1


def _name(raw: bytes) -> str:
    """A name with forward slashes: some writers use backslashes."""
    return raw.decode("utf-8", "replace").replace("\\", "/").lstrip("/")


def _next(head: bytes, end: int) -> int:
    """Skip the descriptor after an entry whose sizes were unknown when it began."""
    for size in (16, 12, 24, 20):
        if head[end + size : end + size + 2] == b"PK":
            return end + size
    return end


def _central_names(head: bytes) -> list[str]:
    end = head.rfind(b"PK\x05\x06")
    at = int.from_bytes(head[end + 16 : end + 20], "little") if end >= 0 else len(head)
    names: list[str] = []
    while head[at : at + 4] == b"PK\x01\x02" and len(names) < ENTRIES_AT_MOST:
        name, extra, comment = (int.from_bytes(head[at + p : at + p + 2], "little") for p in (28, 30, 32))
        names.append(_name(head[at + 46 : at + 46 + name]))
        at += 46 + name + extra + comment
    return names


def _gzip(head: bytes) -> Found:
    """Animated stickers are gzipped Lottie; anything else is plain gzip."""
    try:
        begun = zlib.decompressobj(31).decompress(head, 4096)
    except zlib.error:
        return GZIP, True
    text = begun.lstrip()
    if not text.startswith(b"{"):
        return GZIP, True
    lottie = b'"tgs"' in text or sum(key in text for key in (b'"v"', b'"fr"', b'"ip"', b'"op"', b'"layers"')) >= 4
    return (TGS, True) if lottie else (GZIP, True)


def ole_type(head: bytes, hints: Hints) -> Found | None:
    """The type of an OLE file, by the program that wrote it, by stream names, or by the first stream."""
    if not head.startswith(OLE_START):
        return None
    sector = 4096 if head[30:32] == b"\x0c\0" else 512
    directory = (int.from_bytes(head[48:52], "little") + 1) * sector
    streams = {name.lower() for name in _ole_streams(head, directory, 8 * sector)}
    told = _ole_told(head, streams, head[directory + 80 : directory + 96].hex())
    if told and _OLE_LOCKED not in streams:
        return told, True
    # An encrypted office file has its real type inside; so does one whose directory is out of reach.
    for mime in (*_OLE_HINTS, *_OLE_LOCKED_HINTS) if not streams or _OLE_LOCKED in streams else ():
        if hints.suggests(mime):
            return mime, False
    return OLE, True


def _ole_told(head: bytes, streams: set[str], program: str) -> str | None:
    if streams and program in _OLE_PROGRAMS:
        return _OLE_PROGRAMS[program]
    for stream, mime in _OLE_STREAMS:
        if stream in streams:
            return mime
    if any(name.startswith("__substg1.0_") for name in streams):
        return _OUTLOOK
    if streams:
        return None
    return next((mime for start, mime in _OLE_CONTENT if head[512:].startswith(start)), None)


def _ole_streams(head: bytes, begin: int, reach: int) -> Iterator[str]:
    """The names in the directory's first sectors, as far as available."""
    for at in range(begin, min(len(head), begin + reach), 128):
        size = int.from_bytes(head[at + 64 : at + 66], "little")
        if 2 < size <= 64 and head[at + 66 : at + 67] in (b"\x01", b"\x02", b"\x05"):
            yield head[at : at + size - 2].decode("utf-16-le", "replace")
