"""HEIF containers of photographs: their boxes, and large ones decoded tile by tile, in the sandbox."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused

if TYPE_CHECKING:
    from PIL import Image

META_BYTES = 4 * 1024 * 1024
BOXES_AT_MOST, ITEMS_AT_MOST = 1_000, 5_000
TILES_AT_MOST = 2_000

_KNOWN = frozenset({"hvc1", "av01", "grid", "iden", "iovl", "avc1", "jpeg"})
_TURNS = {0: 1, 1: 8, 2: 3, 3: 6}
"""EXIF orientation by quarter turns to the left."""
_MIRRORS = {0: 2, 1: 4}
_FULL_RANGE, _LIMITED_RANGE = 2, 1
_MATRICES = {1: "ITU709", 5: "ITU601", 6: "ITU601"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TileGrid:
    """A photograph that is stored as tiles of one size."""

    width: int
    height: int
    columns: int
    tiles: tuple[tuple[int, int], ...]
    """Offset and length of each, row by row."""
    settings: bytes = field(repr=False)
    """What the decoder needs to know before any tile."""
    orientation: int
    profile: bytes = field(default=b"", repr=False)
    full_range: bool = True
    matrix: int = 6


class _Heif:
    """The items of a HEIF file, as far as its first megabytes list them."""

    def __init__(self, source: int) -> None:
        self._source = source
        self.size = os.fstat(source).st_size
        self.cut_off = False
        self.primary = 0
        self.types: dict[int, str] = {}
        self.places: dict[int, tuple[int, int, int]] = {}
        """How each item is stored, its offset and its length."""
        self.parts: dict[int, list[int]] = {}
        self.properties: dict[int, list[tuple[bytes, bytes]]] = {}
        self._data = 0
        meta, self._meta_at = self._find_meta()
        for name, at, body in _boxes(meta, 4):
            match name:
                case b"pitm":
                    self.primary = int.from_bytes(body[4 : 8 if body[0] else 6])
                case b"iinf":
                    self._read_types(body)
                case b"iref":
                    self._read_parts(body)
                case b"iloc":
                    self._read_places(body)
                case b"idat":
                    self._data = self._meta_at + at
                case b"iprp":
                    self._read_properties(body)

    def content(self, item: int) -> tuple[int, int] | None:
        """Offset and length of an item in the file."""
        if item not in self.places:
            return None
        how, offset, length = self.places[item]
        begin = offset + (self._data if how == 1 else 0)
        return (begin, length) if how in (0, 1) and begin + length <= self.size else None

    def _find_meta(self) -> tuple[bytes, int]:
        at = 0
        found = (b"", 0)
        for _ in range(BOXES_AT_MOST):
            head = os.pread(self._source, 16, at)
            if len(head) < 8:
                break
            size, begin = int.from_bytes(head[:4]), 8
            if size == 1:
                size, begin = int.from_bytes(head[8:16]), 16
            size = self.size - at if size == 0 else size
            if size < begin:
                break
            self.cut_off = self.cut_off or at + size > self.size
            if head[4:8] == b"meta":
                found = os.pread(self._source, min(size - begin, META_BYTES), at + begin), at + begin
            at += size
        return found

    def _read_types(self, body: bytes) -> None:
        for name, _, entry in _boxes(body, 6 if body[0] == 0 else 8):
            if name == b"infe" and entry[0] >= 2 and len(self.types) < ITEMS_AT_MOST:
                wide = 4 if entry[0] >= 3 else 2
                number = int.from_bytes(entry[4 : 4 + wide])
                self.types[number] = entry[6 + wide : 10 + wide].decode("latin-1")

    def _read_parts(self, body: bytes) -> None:
        wide = 4 if body[0] else 2
        for name, _, entry in _boxes(body, 4):
            if name == b"dimg":
                count = int.from_bytes(entry[wide : wide + 2])
                listed = [
                    int.from_bytes(entry[at : at + wide]) for at in range(wide + 2, wide + 2 + wide * count, wide)
                ]
                self.parts[int.from_bytes(entry[:wide])] = listed[:TILES_AT_MOST]

    def _read_places(self, body: bytes) -> None:
        version, (offset_size, length_size) = body[0], (body[4] >> 4, body[4] & 15)
        base_size, index_size = body[5] >> 4, body[5] & 15 if version else 0
        wide = 4 if version == 2 else 2
        reader = _Reader(body, 6)
        for _ in range(min(reader.take(wide), ITEMS_AT_MOST)):
            item = reader.take(wide)
            how = reader.take(2) & 15 if version else 0
            reader.take(2)
            base, count = reader.take(base_size), reader.take(2)
            for number in range(min(count, ITEMS_AT_MOST)):
                reader.take(index_size)
                offset, length = reader.take(offset_size), reader.take(length_size)
                # Several pieces of one item are not put together.
                self.places[item] = (how, base + offset, length) if count == 1 else (-1, number, 0)

    def _read_properties(self, body: bytes) -> None:
        listed: list[tuple[bytes, bytes]] = []
        for name, _, inner in _boxes(body, 0):
            if name == b"ipco":
                listed = [(kind, content) for kind, _, content in _boxes(inner, 0)]
            elif name == b"ipma":
                self._read_uses(inner, listed)

    def _read_uses(self, body: bytes, listed: list[tuple[bytes, bytes]]) -> None:
        wide, large = (4 if body[0] else 2), body[3] & 1
        reader = _Reader(body, 4)
        for _ in range(min(reader.take(4), ITEMS_AT_MOST)):
            item = reader.take(wide)
            used = [reader.take(2) & 0x7FFF if large else reader.take(1) & 0x7F for _ in range(reader.take(1))]
            self.properties[item] = [listed[number - 1] for number in used if 0 < number <= len(listed)]


class _Reader:
    """Big-endian numbers one after the other; zeros beyond the end."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content, self._at = content, at

    def take(self, size: int) -> int:
        self._at += size
        return int.from_bytes(self._content[self._at - size : self._at])


def _boxes(content: bytes, at: int) -> Iterator[tuple[bytes, int, bytes]]:
    """Name, place and body of each box."""
    for _ in range(BOXES_AT_MOST):
        if at + 8 > len(content):
            return
        size = int.from_bytes(content[at : at + 4]) or len(content) - at
        if size < 12:
            at += max(size, 8)
            continue
        yield content[at + 4 : at + 8], at + 8, content[at + 8 : at + size]
        at += size


def why_unopened(source: int) -> str:
    """Why a library does not open the file, as far as its boxes tell; else empty."""
    try:
        heif = _Heif(source)
    except IndexError:
        return ""
    if heif.cut_off:
        return "its end is missing"
    kind = heif.types.get(heif.primary, "hvc1")
    return f"its encoding ({kind}) is not decoded here" if kind not in _KNOWN and kind.isalnum() else ""


def grid_of(source: int) -> TileGrid | None:
    """The tiles of a photograph; None if it is stored whole, or in another way."""
    try:
        heif = _Heif(source)
        place, tiles = heif.content(heif.primary), heif.parts.get(heif.primary, [])
        if heif.types.get(heif.primary) != "grid" or place is None or not tiles:
            return None
        return _grid(heif, os.pread(source, min(place[1], 16), place[0]), tiles)
    except IndexError:
        return None


def _grid(heif: _Heif, told: bytes, tiles: list[int]) -> TileGrid | None:
    wide, rows, columns = (4 if told[1] & 1 else 2), told[2] + 1, told[3] + 1
    width, height = int.from_bytes(told[4 : 4 + wide]), int.from_bytes(told[4 + wide : 4 + 2 * wide])
    places = [place for tile in tiles if heif.types.get(tile) == "hvc1" and (place := heif.content(tile)) is not None]
    settings = {body for tile in tiles for name, body in heif.properties.get(tile, ()) if name == b"hvcC"}
    used = heif.properties.get(heif.primary, [])
    turned = [_TURNS[body[0] & 3] if name == b"irot" else _MIRRORS[body[0] & 1] for name, body in used
              if name in (b"irot", b"imir")]  # fmt: skip
    if len(places) != rows * columns or len(settings) != 1 or not (width and height) or len(turned) > 1:
        return None
    colours = [body for name, body in used + heif.properties.get(tiles[0], []) if name == b"colr"]
    told_range = next((body for body in colours if body[:4] == b"nclx"), b"")
    return TileGrid(
        width=width,
        height=height,
        columns=columns,
        tiles=tuple(places),
        settings=settings.pop(),
        orientation=turned[0] if turned else 1,
        profile=next((body[4:] for body in colours if body[:4] in (b"prof", b"rICC")), b""),
        full_range=bool(told_range[10] & 0x80) if len(told_range) > 10 else True,
        matrix=int.from_bytes(told_range[8:10]) if len(told_range) > 10 else 6,
    )


def decode_tiles(source: int, grid: TileGrid, shrink: int) -> "Image.Image":
    """The photograph as stored, with its sides divided by `shrink`; only one tile is held at its full size."""
    from PIL import Image

    canvas = Image.new("RGB", (-(-grid.width // shrink), -(-grid.height // shrink)))
    across = down = 0
    for number, (offset, length) in enumerate(grid.tiles):
        tile = _tile(grid, os.pread(source, length, offset), shrink)
        across, down = across or tile.width, down or tile.height
        if tile.size != (across, down):
            raise MediaRefused("the image/heic is damaged: its tiles differ in size")
        canvas.paste(tile, (number % grid.columns * across, number // grid.columns * down))
    return canvas


def _tile(grid: TileGrid, content: bytes, shrink: int) -> "Image.Image":
    import av
    from av.error import FFmpegError
    from av.video.reformatter import Colorspace
    from PIL import Image

    decoder: Any = av.CodecContext.create("hevc", "r")
    decoder.extradata, decoder.thread_count = grid.settings, 1
    try:
        frames = [*decoder.decode(av.Packet(content)), *decoder.decode(None)]
    except FFmpegError as error:
        raise MediaRefused("the image/heic is damaged: it cannot be decoded") from error
    if not frames:
        raise MediaRefused("the image/heic is damaged: a tile is missing")
    frame = frames[0]
    plain = frame.reformat(
        width=max(1, frame.width // shrink),
        height=max(1, frame.height // shrink),
        format="rgb24",
        src_colorspace=getattr(Colorspace, _MATRICES.get(grid.matrix, "DEFAULT")),
        src_color_range=_FULL_RANGE if grid.full_range else _LIMITED_RANGE,
        interpolation="AREA",
    )
    made: Image.Image = plain.to_image()
    return made
