"""Small documents and presentations as Office wrote them until 2003, made by hand."""

import struct
from collections.abc import Sequence

from readers.outlook import make_ole

VANISH, DELETED = b"\x3c\x08\x01", b"\x00\x08\x01"
IN_TABLE, ROW_ENDS, LISTED = b"\x16\x24\x01", b"\x17\x24\x01", b"\x0b\x46\x01\x00"
WHITE = b"\x70\x68\xff\xff\xff\x00"

Run = tuple[str, bytes]
"""Characters, and what is said of them."""
_TEXT_AT, _CHARACTERS_AT, _PARAGRAPHS_AT = 0x800, 0x400, 0x600


def make_word97(
    paragraphs: Sequence[tuple[Sequence[Run], int, bytes]], *, notes: str = "", locked: bool = False, wide: bool = True
) -> bytes:
    """A document of paragraphs (each of runs that end with its mark, its style, what is said of it), then footnotes."""
    width, codec = (2, "utf-16-le") if wide else (1, "cp1252")
    text = "".join(words for runs, _, _ in paragraphs for words, _ in runs)
    raw = (text + notes).encode(codec)
    runs = [run for each, _, _ in paragraphs for run in each]
    said = [(sum(len(words) for words, _ in each), struct.pack("<H", style) + told) for each, style, told in paragraphs]
    pieces = struct.pack("<BIII", 2, 16, 0, len(text + notes))
    pieces += struct.pack("<HIH", 0, _TEXT_AT if wide else (2 * _TEXT_AT) | 0x4000_0000, 0)
    lists = struct.pack("<III", _TEXT_AT, _TEXT_AT + len(raw), _CHARACTERS_AT // 512)
    lists += struct.pack("<III", _TEXT_AT, _TEXT_AT + len(raw), _PARAGRAPHS_AT // 512)
    head = bytearray(_CHARACTERS_AT)
    struct.pack_into("<HHHHHH", head, 0, 0xA5EC, 0xC1, 0, 0, 0, 0x0200 | (0x0100 if locked else 0))
    struct.pack_into("<II", head, 0x4C, len(text), len(notes))
    struct.pack_into("<II", head, 0x1A2, 0, len(pieces))
    struct.pack_into("<IIII", head, 0xFA, len(pieces), 12, len(pieces) + 12, 12)
    characters = _page([(len(words), bytes([len(told)]) + told if told else b"") for words, told in runs], width, 1)
    pages = characters + _page([(size, _counted(told)) for size, told in said], width, 13)
    main = bytes(head) + pages + raw
    return make_ole({"WordDocument": main.ljust(4096, b"\0"), "1Table": pieces + lists})


def _counted(told: bytes) -> bytes:
    """Its length in pairs of bytes, which the length itself fills up."""
    return bytes([len(told) // 2 + 1]) + told if len(told) % 2 else b"\0" + bytes([len(told) // 2]) + told


def _page(runs: Sequence[tuple[int, bytes]], width: int, entry: int) -> bytes:
    """A page of runs: where they begin, where what is said of them stands, and that, from the end."""
    starts, places, told, at, end = [_TEXT_AT], b"", b"", _TEXT_AT, 510
    for size, each in runs:
        at += size * width
        starts.append(at)
        if each:
            end -= len(each) + len(each) % 2
            told = each.ljust(len(each) + len(each) % 2, b"\0") + told
        places += bytes([end // 2 if each else 0]).ljust(entry, b"\0")
    front = struct.pack(f"<{len(starts)}I", *starts) + places
    return (front.ljust(end, b"\0") + told).ljust(511, b"\0") + bytes([len(runs)])


def early_word(text: str, codec: str) -> bytes:
    """A document of Word 6 or 95: no tables, one byte for a character."""
    raw, head = text.encode(codec), bytearray(0x300)
    struct.pack_into("<HH", head, 0, 0xA5EC, 0x65)
    struct.pack_into("<I", head, 0x18, len(head))
    struct.pack_into("<I", head, 0x34, len(raw))
    return make_ole({"WordDocument": (bytes(head) + raw).ljust(4096, b"\0")})


def make_book97(cells: bytes, *formats: str, locked: bool = False) -> bytes:
    """A workbook of one sheet with these records; style 0 has no format, style 1 the first of these, and so on."""
    begin, end = struct.pack("<HHIII", 0x600, 5, 0, 0, 0x600), _biff(0x0A, b"")
    codes = [struct.pack("<HHB", 164 + at, len(code), 0) + code.encode() for at, code in enumerate(formats)]
    head = _biff(0x809, begin) + (_biff(0x2F, bytes(6)) if locked else b"")
    head += b"".join(_biff(0x41E, code) for code in codes)
    head += b"".join(_biff(0xE0, struct.pack("<HH16x", 0, form)) for form in (0, *range(164, 164 + len(formats))))
    place = len(head) + 4 + 13 + len(end)
    head += _biff(0x85, struct.pack("<IBBBB", place, 0, 0, 5, 0) + b"Sheet") + end
    sheet = _biff(0x809, struct.pack("<HHIII", 0x600, 0x10, 0, 0, 0x600)) + cells + end
    return make_ole({"Workbook": (head + sheet).ljust(4096, b"\0")})


def number_cell(row: int, column: int, style: int, value: float) -> bytes:
    return _biff(0x203, struct.pack("<HHHd", row, column, style, value))


def packed_cells(row: int, column: int, *cells: tuple[int, int]) -> bytes:
    """Styles and packed numbers of a row."""
    inside = b"".join(struct.pack("<HI", style, value) for style, value in cells)
    return _biff(0xBD, struct.pack("<HH", row, column) + inside + struct.pack("<H", column + len(cells) - 1))


def words_cell(row: int, column: int, text: str) -> bytes:
    return _biff(0x204, struct.pack("<HHHHB", row, column, 0, len(text), 0) + text.encode("latin-1"))


def hidden_row(row: int) -> bytes:
    return _biff(0x208, struct.pack("<HHHHIHH", row, 0, 5, 300, 0, 0x20, 0))


def hidden_columns(first: int, last: int) -> bytes:
    return _biff(0x7D, struct.pack("<HHHHHH", first, last, 2_000, 0, 1, 0))


def chart(cells: bytes) -> bytes:
    """A chart on a sheet, with numbers of its own."""
    return _biff(0x809, struct.pack("<HHIII", 0x600, 0x20, 0, 0, 0x600)) + cells + _biff(0x0A, b"")


def _biff(kind: int, content: bytes) -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def record(kind: int, content: bytes, *, inside: bool = False, instance: int = 0) -> bytes:
    """One record of a presentation."""
    return struct.pack("<HHI", instance << 4 | (0xF if inside else 0), kind, len(content)) + content


def words(text: str, kind: int = 4) -> bytes:
    """A text of a shape; 0 is a title, 2 what the speaker says."""
    return record(3999, struct.pack("<I", kind)) + record(4000, text.encode("utf-16-le"))


def make_slides97(
    *slides: tuple[bytes, str, bool], outline: bytes = b"", locked: bool = False, lost: bool = False
) -> bytes:
    """A presentation of slides: texts, notes, and whether it is hidden; `outline` is what the first refers to."""
    content, places = bytearray(), {}
    for at, (texts, notes, hides) in enumerate(slides):
        box = record(0xF00D, (record(3998, struct.pack("<I", 0)) if outline and not at else b"") + texts, inside=True)
        about = record(1007, bytes(16) + struct.pack("<IHH", 500 + at if notes else 0, 0, 0))
        showing = record(1017, bytes(10) + struct.pack("<HI", 4 if hides else 0, 0))
        places[10 + at] = len(content)
        content += record(
            1006, about + showing + record(1036, record(0xF002, box, inside=True), inside=True), inside=True
        )
        places[50 + at] = len(content)
        content += record(1008, words(notes, 2) + words("7"), inside=True)
    listed = [record(1011, struct.pack("<IIIII", 10 + at, 0, 0, 256 + at, 0)) for at in range(len(slides))]
    listed[0] += outline
    noted = [record(1011, struct.pack("<IIIII", 50 + at, 0, 0, 500 + at, 0)) for at in range(len(slides))]
    lists = record(4080, b"".join(listed), inside=True) + record(4080, b"".join(noted), inside=True, instance=2)
    places[1] = len(content)
    content += record(1000, lists, inside=True)
    persists = len(content)
    content += record(6002, b"".join(struct.pack("<II", 1 << 20 | key, place) for key, place in places.items()))
    edit = len(content)
    content += record(4085, struct.pack("<IIIIIII", 0, 0, 0, persists, 1, 0, 0) + (bytes(4) if locked else b""))
    user = record(0xFF6, struct.pack("<III", 0x14, 0xE391C05F, 0 if lost else edit))
    return make_ole({"Current User": user, "PowerPoint Document": bytes(content).ljust(4096, b"\0")})
