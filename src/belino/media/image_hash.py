"""Image hash: recognise a picture that was sent before, also re-encoded, resized or cropped.

A print is the picture as 64×64 greys, its shape, and coarse hashes of the whole and of windows into it. Hashes find
candidates among many; the greys then show whether one picture may be part of the other, because two pages of text, or
two screens of one program, have similar coarse hashes. Receipts of one shop have even similar greys, so those that are
left are compared up close, from the bytes of both. A picture is compared once, when its bytes are first fetched.
"""

import asyncio
import logging
from array import array
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import count, pairwise, product
from math import sqrt
from operator import mul
from struct import Struct
from typing import Any, NamedTuple, Protocol

from belino.domain.errors import MediaError, StoreError
from belino.domain.media import Blob, Likeness
from belino.domain.message import ConversationKey
from belino.media.image.images import GREYS_SIDE, Runs
from belino.storage.readings import ReadingVerbs

log = logging.getLogger(__name__)

COMPARED = 1_000
"""The newest pictures of a channel that a new one is compared with."""
REMEMBERED = 4_096
LONGEST = 100_000.0
"""The maximum aspect ratio."""

_WORDS = {
    Likeness.SAME: "",
    Likeness.RECOMPRESSED: ", recompressed",
    Likeness.CROPPED: ", cropped",
    Likeness.UNCROPPED: ", with more around it",
}

CELLS = 6
"""A hash compares neighbouring cells of a grid of this size, each way."""
AXIS = (
    (0, 64),
    *((start, 56) for start in (0, 4, 8)),
    *((start, 48) for start in (0, 5, 11, 16)),
    *((start, 40) for start in (0, 6, 12, 18, 24)),
)
"""Start and length of each window, each way; the first is the whole. Smaller crops are not recognised."""
WINDOWS = tuple(product(AXIS, AXIS))
_SHAPE = Struct("<d")
PRINT_BYTES = GREYS_SIDE * GREYS_SIDE + _SHAPE.size + 8 * len(WINDOWS)

# Measured on 352 pictures, each in 14 other forms, and on all pairs of them: photographs, screens, drawings, pages.
NEAR = 12
"""Maximum Hamming distance, of 60 bits, for the same view; 19 of 20 pass, and one in 30 of other pairs."""
SORTED = 64
"""Candidates that are sorted by their greys: of many pictures that look alike, a copy is the nearest."""
TRIED = 8
"""Candidates whose frame is searched."""
CLOSELY = 3
"""Those that agree best are compared up close: each costs a fifth of a second of CPU."""
SAME = 0.9
"""Minimum correlation of grey slopes: 3 of 100,000 pairs of other pictures pass, and nearly every copy."""
SHAPED = 5
"""Minimum of sixteen parts with structure, for a picture to be recognised."""
COARSE, FINE = 16, 32
"""Greys each way that are compared, during the search for a frame and afterwards."""
LEAST = 34.0
"""The smallest frame."""
STRETCHED = 1.25
"""The maximum distortion; it also allows for the frame's inexactness."""
FLAT = 2.0
"""Smaller deviations of slopes are noise."""


class ImagePrint(NamedTuple):
    """The fingerprint of a picture."""

    greys: bytes
    shape: float
    """Width divided by height."""
    hashes: "array[int]"


class PrintFrame(NamedTuple):
    """A rectangle in the greys of a picture."""

    left: float
    top: float
    right: float
    bottom: float


class PrintMatch(NamedTuple):
    """How a picture may be related to another one, and where the smaller view lies in the larger."""

    likeness: Likeness
    frame: PrintFrame


WHOLE = PrintFrame(0.0, 0.0, float(GREYS_SIDE), float(GREYS_SIDE))
_FRAMES = tuple(PrintFrame(left, top, left + across, top + down) for (top, down), (left, across) in WINDOWS)


class Compares(Protocol):
    """Compares two pictures up close; see media/image/agreement.py."""

    async def agree(self, part: Blob, whole: Blob, frame: Sequence[float]) -> bool: ...


class Likenesses:
    """Notes like "same picture as tg_k3v9d0q2m7xa, cropped"; they never raise."""

    def __init__(self, sandbox: Runs, store: ReadingVerbs, closely: Compares) -> None:
        self._sandbox = sandbox
        self._store = store
        self._closely = closely
        from cachebox import LRUCache  # with the first renderer: it costs 60 ms

        self._compared: LRUCache[tuple[ConversationKey, str], None] = LRUCache(REMEMBERED)
        self._turn = asyncio.Lock()
        """One comparison at a time: each costs a tenth of a second of CPU."""

    async def note(self, channel: ConversationKey, ref: str, blob: Blob) -> str:
        """The note about a held picture; empty if it was not seen before."""
        key = (channel.whole_channel, blob.sha256)
        try:
            if key not in self._compared:
                async with self._turn:
                    await self._compare(channel, blob)
                self._compared[key] = None
            return (await self.notes(channel, (ref,))).get(ref, "")
        except (MediaError, StoreError) as error:
            log.info("%s is compared with no other picture: %s", ref, type(error).__name__)
            return ""

    async def notes(self, channel: ConversationKey, refs: Sequence[str]) -> Mapping[str, str]:
        """The same for many refs, from stored results."""
        found = await self._store.likenesses(channel, refs)
        return {ref: f"same picture as {other}{_WORDS[likeness]}" for ref, (other, likeness) in found.items()}

    async def _compare(self, channel: ConversationKey, blob: Blob) -> None:
        others = {printed.sha256: printed.bits for printed in await self._store.prints(channel, limit=COMPARED)}
        bits = others.pop(blob.sha256, None)
        if bits is None or read_print(bits) is None:
            async with self._store.local(blob.sha256) as path:
                greys, shape = _checked(await self._sandbox.run("image.greys", path))
            bits = await asyncio.to_thread(make_print, greys, shape)
            await self._store.keep_print(blob.sha256, bits)
        matches = await asyncio.to_thread(_recognised, bits, others)
        known = {other: match.likeness for other, match in matches.items() if await self._is_copy(blob, other, match)}
        if known:
            await self._store.keep_likenesses(blob.sha256, known)

    async def _is_copy(self, blob: Blob, sha256: str, match: PrintMatch) -> bool:
        """Whether both agree up close; a picture whose bytes are gone cannot be compared, and nothing is said of it."""
        other = await self._store.blob(sha256)
        if other is None:
            return False
        part, whole = (other, blob) if match.likeness is Likeness.UNCROPPED else (blob, other)
        try:
            return await self._closely.agree(part, whole, [side / GREYS_SIDE for side in match.frame])
        except MediaError as error:
            log.info("two pictures cannot be compared up close: %s", type(error).__name__)
            return False


def _recognised(bits: bytes, others: Mapping[str, bytes]) -> Mapping[str, PrintMatch]:
    picture = read_print(bits)
    prints: dict[str, ImagePrint] = {name: found for name, kept in others.items() if (found := read_print(kept))}
    return recognise(picture, prints) if picture is not None and prints else {}


def _checked(told: Mapping[str, Any]) -> tuple[bytes, float]:
    """An attacker may control the child: the exact number of greys and a shape, or nothing."""
    match told:
        case {"greys": str(text), "shape": float(shape)} if (
            len(text) <= 2 * GREYS_SIDE * GREYS_SIDE and 0 < shape < LONGEST
        ):
            try:
                greys = b64decode(text, validate=True)
            except ValueError:
                greys = b""
            if len(greys) == GREYS_SIDE * GREYS_SIDE:
                return greys, shape
    raise MediaError("decoding the picture gave no proper answer")


def make_print(greys: bytes, shape: float) -> bytes:
    """The print of 64×64 greys, serialised."""
    sums = _sums(greys)
    return greys + _SHAPE.pack(shape) + array("Q", [_hash(sums, frame) for frame in _FRAMES]).tobytes()


def read_print(bits: bytes) -> ImagePrint | None:
    """A stored print; None if its format differs."""
    if len(bits) != PRINT_BYTES:
        return None
    hashes = array("Q")
    hashes.frombytes(bits[GREYS_SIDE * GREYS_SIDE + _SHAPE.size :])
    (shape,) = _SHAPE.unpack_from(bits, GREYS_SIDE * GREYS_SIDE)
    return ImagePrint(bits[: GREYS_SIDE * GREYS_SIDE], shape, hashes)


def recognise(picture: ImagePrint, others: Mapping[str, ImagePrint]) -> Mapping[str, PrintMatch]:
    """Those of the others that may be the same picture by their prints, and how they are related."""
    nearest = nsmallest(SORTED, _candidates(picture, others), key=lambda found: found.apart)
    nearest.sort(key=lambda found: _likeness_at(found, picture, others), reverse=True)
    known: dict[str, tuple[float, PrintMatch]] = {}
    for found in nearest[:TRIED]:
        part, whole = _views(found, picture, others)
        seat = _seat(part.greys, whole.greys, found.match.frame)
        agreement = _shaped_agreement(part.greys, whole.greys, seat)
        before = known[found.name][0] if found.name in known else SAME
        if agreement >= before and _fits(part.shape, whole.shape, seat):
            match = PrintMatch(Likeness.RECOMPRESSED, WHOLE) if _is_whole(seat) else found.match._replace(frame=seat)
            known[found.name] = agreement, match
    best = sorted(known, key=lambda name: known[name][0], reverse=True)
    return {name: known[name][1] for name in best[:CLOSELY]}


class _Candidate(NamedTuple):
    """Another picture, and how far its hash is apart in one view."""

    apart: int
    name: str
    match: PrintMatch


def _views(found: _Candidate, picture: ImagePrint, others: Mapping[str, ImagePrint]) -> tuple[ImagePrint, ImagePrint]:
    """The smaller view and the larger."""
    other = others[found.name]
    return (other, picture) if found.match.likeness is Likeness.UNCROPPED else (picture, other)


def _likeness_at(found: _Candidate, picture: ImagePrint, others: Mapping[str, ImagePrint]) -> float:
    """How well the greys agree in the frame where they were found."""
    part, whole = _views(found, picture, others)
    return _agreement(_sampled(part.greys, WHOLE, FINE), _sampled(whole.greys, found.match.frame, FINE))


def _candidates(picture: ImagePrint, others: Mapping[str, ImagePrint]) -> Iterator[_Candidate]:
    """Candidates by hash: whole against whole, and the whole of each against the windows of the other."""
    whole = picture.hashes[0]
    for name, other in others.items():
        apart = (whole ^ other.hashes[0]).bit_count()
        if apart <= NEAR:
            yield _Candidate(apart, name, PrintMatch(Likeness.RECOMPRESSED, WHOLE))
        for likeness, one, windows in (
            (Likeness.CROPPED, whole, other.hashes),
            (Likeness.UNCROPPED, other.hashes[0], picture.hashes),
        ):
            apart_by_window = [(one ^ window).bit_count() for window in windows]
            for apart, at in nsmallest(2, zip(apart_by_window, count())):
                if apart <= NEAR and at:
                    yield _Candidate(apart, name, PrintMatch(likeness, _FRAMES[at]))


def _sums(greys: bytes) -> list[list[int]]:
    """Summed-area table, so that any rectangle takes four look-ups."""
    sums = [[0] * (GREYS_SIDE + 1)]
    for row in range(GREYS_SIDE):
        above, line, total = sums[-1], [0], 0
        for column, grey in enumerate(greys[row * GREYS_SIDE : (row + 1) * GREYS_SIDE], 1):
            total += grey
            line.append(above[column] + total)
        sums.append(line)
    return sums


def _hash(sums: list[list[int]], frame: PrintFrame) -> int:
    columns = [int(frame.left + (frame.right - frame.left) * edge / CELLS) for edge in range(CELLS + 1)]
    rows = [int(frame.top + (frame.bottom - frame.top) * edge / CELLS) for edge in range(CELLS + 1)]
    cells = [
        [
            (sums[low][right] - sums[high][right] - sums[low][left] + sums[high][left]) / (low - high) / (right - left)
            for left, right in pairwise(columns)
        ]
        for high, low in pairwise(rows)
    ]
    bits = 0
    for line in (*cells, *zip(*cells, strict=True)):
        for one, other in pairwise(line):
            bits = bits << 1 | (one < other)
    return bits


def _seat(part: bytes, whole: bytes, frame: PrintFrame) -> PrintFrame:
    """The frame in the whole that matches the part best, near a start: each side is moved while that helps."""
    wanted = _sampled(part, WHOLE, COARSE)
    best, score = frame, _agreement(wanted, _sampled(whole, frame, COARSE))
    for step in (3.0, 1.5, 0.75, 0.4):
        better = True
        while better:
            better = False
            for side, by in product(range(4), (-step, step)):
                moved = _moved(best, side, by)
                found = 0.0 if moved is None else _agreement(wanted, _sampled(whole, moved, COARSE))
                if moved is not None and found > score:
                    best, score, better = moved, found, True
    return best


def _moved(frame: PrintFrame, side: int, by: float) -> PrintFrame | None:
    """The frame with one side moved, if it is still valid."""
    sides = [*frame]
    sides[side] += by
    left, top, right, bottom = sides
    inside = min(left, top) >= -1 and max(right, bottom) <= GREYS_SIDE + 1
    return PrintFrame(left, top, right, bottom) if inside and min(right - left, bottom - top) >= LEAST else None


def _is_whole(frame: PrintFrame) -> bool:
    return all(abs(side - edge) < 1.5 for side, edge in zip(frame, WHOLE, strict=True))


def _fits(part: float, whole: float, frame: PrintFrame) -> bool:
    """Whether the frame has the part's shape, within the allowed distortion."""
    stretch = part / (whole * (frame.right - frame.left) / (frame.bottom - frame.top))
    return 1 / STRETCHED <= stretch <= STRETCHED


def _shaped_agreement(part: bytes, whole: bytes, frame: PrintFrame) -> float:
    """The correlation of the slopes of both; 0 without enough structure."""
    one, other = _slopes(_sampled(part, WHOLE, FINE)), _slopes(_sampled(whole, frame, FINE))
    return _agreement(one, other) if _shaped(one) >= SHAPED else 0.0


def _shaped(slopes: Sequence[float]) -> int:
    """How many of sixteen parts have structure beyond an even slope; horizontal slopes first, then vertical ones."""
    line, quarter = FINE - 1, FINE // 4
    shaped = 0
    for top, left in product(range(0, FINE, quarter), range(0, FINE, quarter)):
        uneven = 0.0
        for first, start in ((top, left), (FINE + left, top)):
            seen: list[float] = []
            for at in range(first, first + quarter):
                seen += slopes[at * line + start : at * line + min(start + quarter, line)]
            uneven += sum(map(mul, seen, seen)) / len(seen) - (sum(seen) / len(seen)) ** 2
        shaped += uneven > 2 * FLAT * FLAT
    return shaped


def _sampled(greys: bytes, frame: PrintFrame, grid: int) -> list[float]:
    """The greys in a frame on a grid, interpolated."""
    across = [_between(frame.left + (frame.right - frame.left) * (at + 0.5) / grid - 0.5) for at in range(grid)]
    down = [_between(frame.top + (frame.bottom - frame.top) * (at + 0.5) / grid - 0.5) for at in range(grid)]
    found: list[float] = []
    for row, low in down:
        upper = greys[row * GREYS_SIDE : (row + 1) * GREYS_SIDE]
        lower = greys[(row + 1) * GREYS_SIDE : (row + 2) * GREYS_SIDE]
        high = 1 - low
        line = [one * high + other * low for one, other in zip(upper, lower, strict=True)]
        found += [line[column] + (line[column + 1] - line[column]) * right for column, right in across]
    return found


def _between(at: float) -> tuple[int, float]:
    """The pixel before a position, and the fraction past it."""
    pixel = min(max(int(at), 0), GREYS_SIDE - 2)
    return pixel, min(max(at - pixel, 0.0), 1.0)


def _slopes(sample: Sequence[float]) -> list[float]:
    """Differences of neighbouring greys, horizontal and then vertical: areas of one grey carry no information."""
    rows = [sample[at : at + FINE] for at in range(0, FINE * FINE, FINE)]
    return [
        after - before
        for lines in (rows, list(zip(*rows, strict=True)))
        for line in lines
        for before, after in pairwise(line)
    ]


def _agreement(one: Sequence[float], other: Sequence[float]) -> float:
    """The correlation of two samples, independent of brightness and contrast: 1 if they are the same."""
    count = len(one)
    mean, others_mean = sum(one) / count, sum(other) / count
    both = sum(map(mul, one, other)) - count * mean * others_mean
    spread = (sum(map(mul, one, one)) - count * mean**2) * (sum(map(mul, other, other)) - count * others_mean**2)
    return both / sqrt(spread) if spread > 1e-9 else 0.0
