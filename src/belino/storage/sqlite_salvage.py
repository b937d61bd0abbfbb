"""Salvage rows from a damaged SQLite file, page by page.

SQLite ends a scan at the first damaged page. This reader follows the same trees and leaves out only what is damaged:
a page, or a row. It reads the write-ahead log as SQLite does, up to the last whole commit, and writes to no file.
The format: https://www.sqlite.org/fileformat2.html
"""

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

PAGE_SIZE = 4096
"""SQLite's default, which belino's databases use; for a file whose header is lost."""
PAYLOAD_AT_MOST = 1 << 30
DEPTH_AT_MOST = 40

_MAGIC = b"SQLite format 3\x00"
_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEADER, _FRAME_HEADER = 32, 24
_LEAST_CELL = 8
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)

Value = int | float | str | bytes | None


class DamagedPage(Exception):
    """A page or cell whose content does not fit its place in the file."""


@dataclass(frozen=True, slots=True)
class SalvagedRow:
    """One row as it is stored: `rowid` is None in a table without rowids."""

    rowid: int | None
    values: tuple[Value, ...]


@dataclass(slots=True)
class Tree:
    """The result of walking one table's tree."""

    root: int
    has_rowid: bool
    bad_pages: int = 0
    bad_rows: int = 0


class DamagedDatabase:
    """The pages of a database file, overlaid with those of its write-ahead log."""

    def __init__(self, database: int | None, wal: int | None) -> None:
        """Takes descriptors, which stay the caller's; None for a file that does not exist."""
        self._database, self._wal = database, wal
        log = _read_log(wal) if wal is not None else _Log()
        self._frames = log.frames
        head = b"" if database is None else os.pread(database, 100, 0)
        self.page_size = log.page_size or (_page_size(head) if head.startswith(_MAGIC) else PAGE_SIZE)
        size = 0 if database is None else os.fstat(database).st_size
        self.pages = log.pages or size // self.page_size
        header = self._header()
        self._usable = self.page_size - (header[20] if header and header[20] <= 32 else 0)
        self._visited: set[int] = set()

    @property
    def version(self) -> int | None:
        """`PRAGMA user_version`; None if the header is lost."""
        header = self._header()
        return int.from_bytes(header[60:64], "big") if header else None

    def schema(self) -> dict[str, tuple[int, str]]:
        """The root page and the SQL of every table, from any page that holds part of the schema."""
        tree = Tree(1, has_rowid=True)
        rows = list(self.rows(tree))
        if tree.bad_pages:  # its leaves can be recognised by their content
            rows += [row for page in range(1, self.pages + 1) for row in self._leaf_rows(page)]
        found: dict[str, tuple[int, str]] = {}
        for row in rows:
            match row.values:
                case ("table", str(name), str(), int(root), str(sql)) if 1 < root <= self.pages:
                    found.setdefault(name, (root, sql))
        return found

    def rows(self, tree: Tree) -> Iterator[SalvagedRow]:
        """Every readable row of a table; the others are counted in its tree."""
        yield from self._walk(tree, tree.root, 0)

    def orphans(self) -> Iterator[SalvagedRow]:
        """Rows of tables with rowids on leaves that no tree led to, because a page above them is lost.

        To be called after all such trees were walked: what is left belongs to those that lost pages. Empty if the free
        pages are unknown: these hold rows that were deleted and must not come back.
        """
        free = self._free_pages()
        if free is None:
            return
        for page in range(2, self.pages + 1):
            if page not in self._visited and page not in free:
                yield from self._leaf_rows(page)

    def _walk(self, tree: Tree, page: int, depth: int) -> Iterator[SalvagedRow]:
        if page in self._visited or depth > DEPTH_AT_MOST:
            tree.bad_pages += 1
            return
        self._visited.add(page)
        kinds = (_TABLE_INTERIOR, _TABLE_LEAF) if tree.has_rowid else (_INDEX_INTERIOR, _INDEX_LEAF)
        try:
            content, kind, cells, last = self._parsed(page)
        except DamagedPage:
            kind = 0
        if kind not in kinds:
            self._visited.discard(page)
            tree.bad_pages += 1
            return
        if kind == kinds[1]:
            yield from self._cells(tree, content, cells)
            return
        for cell in cells:
            if cell + 4 > len(content):
                tree.bad_rows += 1
                continue
            yield from self._walk(tree, int.from_bytes(content[cell : cell + 4], "big"), depth + 1)
            if not tree.has_rowid:  # an index keeps rows on the pages above its leaves, too
                yield from self._cells(tree, content, [cell + 4])
        yield from self._walk(tree, last, depth + 1)

    def _leaf_rows(self, page: int) -> Iterator[SalvagedRow]:
        with suppress(DamagedPage):
            content, kind, cells, _ = self._parsed(page)
            if kind == _TABLE_LEAF:
                yield from self._cells(Tree(page, has_rowid=True), content, cells)

    def _cells(self, tree: Tree, content: bytes, cells: Sequence[int]) -> Iterator[SalvagedRow]:
        before: int | None = None
        for at in cells:
            try:
                if at < _LEAST_CELL:
                    raise DamagedPage("a cell inside the page header")
                row = self._cell(content, at, has_rowid=tree.has_rowid)
                if before is not None and row.rowid is not None and row.rowid <= before:
                    raise DamagedPage("rowids that do not grow")
            except (DamagedPage, IndexError, UnicodeDecodeError, struct.error):
                tree.bad_rows += 1
            else:
                before = row.rowid
                yield row

    def _cell(self, content: bytes, at: int, *, has_rowid: bool) -> SalvagedRow:
        size, at = _varint(content, at)
        rowid = None
        if has_rowid:
            rowid, at = _varint(content, at)
        if size > PAYLOAD_AT_MOST:
            raise DamagedPage("a row larger than any")
        usable = self._usable
        most = usable - 35 if has_rowid else (usable - 12) * 64 // 255 - 23
        local = size
        if size > most:
            least = (usable - 12) * 32 // 255 - 23
            local = least + (size - least) % (usable - 4)
            local = local if local <= most else least
        payload = content[at : at + local]
        if size > local:
            payload += self._overflow(int.from_bytes(content[at + local : at + local + 4], "big"), size - local)
        if len(payload) != size:
            raise DamagedPage("a row that goes beyond its page")
        return SalvagedRow(rowid, _record(payload))

    def _overflow(self, page: int, size: int) -> bytes:
        pieces, seen = [], set[int]()
        while size:
            if page in seen or not 1 < page <= self.pages:
                raise DamagedPage("a row that goes on nowhere")
            seen.add(page)
            content = self._page(page)
            piece = content[4 : 4 + min(size, self._usable - 4)]
            pieces.append(piece)
            size -= len(piece)
            page = int.from_bytes(content[:4], "big")
        return b"".join(pieces)

    def _parsed(self, number: int) -> tuple[bytes, int, list[int], int]:
        """A page's content, its kind, the offsets of its cells, and the page after the last cell."""
        content = self._page(number)
        at = 100 if number == 1 else 0
        kind, count = content[at], int.from_bytes(content[at + 3 : at + 5], "big")
        is_interior = kind in (_INDEX_INTERIOR, _TABLE_INTERIOR)
        first = at + (12 if is_interior else 8)
        if first + 2 * count > self._usable:
            raise DamagedPage("more cells than a page holds")
        cells = list(struct.unpack_from(f">{count}H", content, first))
        return content, kind, cells, int.from_bytes(content[at + 8 : at + 12], "big")

    def _page(self, number: int) -> bytes:
        if not 1 <= number <= self.pages:
            raise DamagedPage("a page that the file does not have")
        content = b""
        if number in self._frames and self._wal is not None:
            content = os.pread(self._wal, self.page_size, self._frames[number])
        elif self._database is not None:
            with suppress(OSError):  # a bad sector
                content = os.pread(self._database, self.page_size, (number - 1) * self.page_size)
        if len(content) != self.page_size:
            raise DamagedPage("a page that cannot be read")
        return content

    def _header(self) -> bytes | None:
        with suppress(DamagedPage):
            content = self._page(1)[:100]
            return content if content.startswith(_MAGIC) else None
        return None

    def _free_pages(self) -> set[int] | None:
        """The pages that no table uses; None if they are unknown."""
        header = self._header()
        if header is None:
            return None
        trunk, count = (int.from_bytes(header[at : at + 4], "big") for at in (32, 36))
        free: set[int] = set()
        with suppress(DamagedPage, struct.error):
            while trunk and trunk not in free:
                content = self._page(trunk)
                following, leaves = struct.unpack_from(">2I", content)
                free |= {trunk, *struct.unpack_from(f">{min(leaves, self._usable // 4)}I", content, 8)}
                trunk = following
        return free if len(free) == count else None


@contextmanager
def open_damaged(database: Path, wal: Path) -> Iterator[DamagedDatabase]:
    """The database in these files; either may be missing."""
    with ExitStack() as opened:
        found: list[int | None] = []
        for path in (database, wal):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                found.append(None)
            else:
                opened.callback(os.close, descriptor)
                found.append(descriptor)
        yield DamagedDatabase(*found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """The content of a write-ahead log, up to its last complete commit."""

    page_size: int = 0
    pages: int = 0
    """The number of pages of the database after that commit; 0 without one."""
    frames: Mapping[int, int] = field(default_factory=dict)
    """The offset in the log at which the content of a page begins."""


def _read_log(wal: int) -> _Log:
    header = os.pread(wal, _WAL_HEADER, 0)
    if len(header) < _WAL_HEADER or int.from_bytes(header[:4], "big") not in _WAL_MAGIC:
        return _Log()
    order = ">" if header[3] & 1 else "<"
    page_size, salts = int.from_bytes(header[8:12], "big"), header[16:24]
    sums = _checksum(header[:24], order, (0, 0))
    if struct.pack(">2I", *sums) != header[24:32] or not 512 <= page_size <= 65536:
        return _Log()
    committed, waiting, pages, at = dict[int, int](), dict[int, int](), 0, _WAL_HEADER
    while len(frame := os.pread(wal, _FRAME_HEADER + page_size, at)) == _FRAME_HEADER + page_size:
        sums = _checksum(frame[_FRAME_HEADER:], order, _checksum(frame[:8], order, sums))
        if frame[8:16] != salts or struct.pack(">2I", *sums) != frame[16:24]:
            break
        page, size = struct.unpack_from(">2I", frame)
        waiting[page] = at + _FRAME_HEADER
        at += len(frame)
        if size:  # a commit
            committed.update(waiting)
            pages = size
            waiting.clear()
    return _Log(page_size=page_size, pages=pages, frames=committed)


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    size = 65536 if size == 1 else size
    return size if size >= 512 and size & (size - 1) == 0 else PAGE_SIZE


def _checksum(content: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for at in range(0, len(words), 2):
        first = (first + words[at] + second) & 0xFFFFFFFF
        second = (second + words[at + 1] + first) & 0xFFFFFFFF
    return first, second


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A signed 64-bit number of one to nine bytes, and where it ends."""
    value = 0
    for index in range(at, at + 8):
        byte = content[index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, index + 1
    value = value << 8 | content[at + 8]
    return value - (1 << 64) if value >= 1 << 63 else value, at + 9


def _record(payload: bytes) -> tuple[Value, ...]:
    end, at = _varint(payload, 0)
    body, values = end, list[Value]()
    while at < end:
        serial, at = _varint(payload, at)
        value, body = _value(payload, serial, body)
        values.append(value)
    if at != end or body != len(payload):
        raise DamagedPage("a row whose parts do not add up")
    return tuple(values)


def _value(payload: bytes, serial: int, at: int) -> tuple[Value, int]:
    if serial == 0:
        return None, at
    if serial in (8, 9):
        return serial - 8, at
    if serial in (10, 11) or serial < 0:
        raise DamagedPage("a value of no type")
    if serial < 7:
        end = at + _INTEGER_BYTES[serial]
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if serial == 7:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    end = at + (serial - 12) // 2
    if end > len(payload):
        raise DamagedPage("a value that goes beyond its row")
    content = payload[at:end]
    return (content.decode() if serial % 2 else content), end
