"""OLE files: old office files, and others with streams in a small file system."""

from collections.abc import Iterator

from belino.media.sniff.hints import SUFFIXES, Found, Hints

OLE = "application/x-ole-storage"
OLE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WORD, _EXCEL, _POWERPOINT, _OUTLOOK = (SUFFIXES[suffix] for suffix in ("doc", "xls", "ppt", "msg"))

# Stream names are case-insensitive.
_STREAMS = (
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
_PROGRAMS = {
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
_CONTENT = (
    (b"\xec\xa5", _WORD),
    (b"\x09\x08\x10\0\0\x06\x05\0", _EXCEL),
    (b"\xa0\x46\x1d\xf0", _POWERPOINT),
    (b"\0\x6e\x1e\xf0", _POWERPOINT),
    (b"\x0f\0\xe8\x03", _POWERPOINT),
)
_HINTS = tuple(SUFFIXES[suffix] for suffix in ("doc", "xls", "ppt", "msg", "vsd", "msi", "pub", "mpp", "hwp"))
_LOCKED_HINTS = tuple(SUFFIXES[suffix] for suffix in ("docx", "xlsx", "pptx", "docm", "xlsm", "pptm", "xlsb"))
_LOCKED = "encryptedpackage"


def ole_type(head: bytes, hints: Hints) -> Found | None:
    """The type of an OLE file, by the program that wrote it, by stream names, or by the first stream."""
    if not head.startswith(OLE_START):
        return None
    sector = 4096 if head[30:32] == b"\x0c\0" else 512
    directory = (int.from_bytes(head[48:52], "little") + 1) * sector
    streams = {name.lower() for name in _streams(head, directory, 8 * sector)}
    told = _told(head, streams, head[directory + 80 : directory + 96].hex())
    if told and _LOCKED not in streams:
        return told, True
    # An encrypted office file has its real type inside; so does one whose directory is out of reach.
    for mime in (*_HINTS, *_LOCKED_HINTS) if not streams or _LOCKED in streams else ():
        if hints.suggests(mime):
            return mime, False
    return OLE, True


def _told(head: bytes, streams: set[str], program: str) -> str | None:
    if streams and program in _PROGRAMS:
        return _PROGRAMS[program]
    for stream, mime in _STREAMS:
        if stream in streams:
            return mime
    if any(name.startswith("__substg1.0_") for name in streams):
        return _OUTLOOK
    if streams:
        return None
    return next((mime for start, mime in _CONTENT if head[512:].startswith(start)), None)


def _streams(head: bytes, begin: int, reach: int) -> Iterator[str]:
    """The names in the directory's first sectors, as far as available."""
    for at in range(begin, min(len(head), begin + reach), 128):
        size = int.from_bytes(head[at + 64 : at + 66], "little")
        if 2 < size <= 64 and head[at + 66 : at + 67] in (b"\x01", b"\x02", b"\x05"):
            yield head[at : at + size - 2].decode("utf-16-le", "replace")
