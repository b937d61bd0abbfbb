"""WebM header: the facts of its picture, without decoding."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST, WIDEST = 30 * 24 * 3600.0, 65_535
"""Seconds and pixels; larger claims are ignored."""

_SEGMENT, _INFO, _TRACKS, _TRACK = 0x18538067, 0x1549A966, 0x1654AE6B, 0xAE
_SCALE, _DURATION = 0x2AD7B1, 0x4489
_TYPE, _CODEC, _VIDEO, _WIDTH, _HEIGHT = 0x83, 0x86, 0xE0, 0xB0, 0xBA
_SOUND = 2
_NANOSECONDS = 1_000_000
"""The default unit of time, in nanoseconds."""
_CODECS = {b"V_VP8": "vp8", b"V_VP9": "vp9", b"V_AV1": "av1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmFacts:
    """One video track."""

    codec: str
    width: int
    height: int
    seconds: float
    silent: bool


def film_facts(head: bytes) -> FilmFacts | None:
    """The facts, if the beginning of a file contains all of them. Takes any bytes, never raises."""
    try:
        found = dict(_elements(dict(_elements(head))[_SEGMENT]))
        seconds = _seconds(found[_INFO])
        tracks = [dict(_elements(body)) for name, body in _elements(found[_TRACKS]) if name == _TRACK]
        (film,) = [track for track in tracks if _VIDEO in track]
        size = dict(_elements(film[_VIDEO]))
        facts = FilmFacts(
            codec=_CODECS[film[_CODEC]],
            width=int.from_bytes(size[_WIDTH]),
            height=int.from_bytes(size[_HEIGHT]),
            seconds=seconds,
            silent=not any(int.from_bytes(track[_TYPE]) == _SOUND for track in tracks),
        )
    except (KeyError, ValueError, struct.error, OverflowError):
        return None
    believed = 0 < facts.seconds < LONGEST and 0 < facts.width <= WIDEST and 0 < facts.height <= WIDEST
    return facts if believed else None


def _seconds(info: bytes) -> float:
    told = dict(_elements(info))
    scale = int.from_bytes(told[_SCALE]) if _SCALE in told else _NANOSECONDS
    duration = told[_DURATION]
    (length,) = struct.unpack(">f" if len(duration) == 4 else ">d", duration)
    return float(length) * scale / 1e9


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Sibling elements, each with its content; of a truncated one, what there is."""
    at = 0
    while at < len(data):
        name, length = _number(data, at)
        at += length
        size, length = _number(data, at)
        at += length
        unmarked = (1 << 7 * length) - 1
        # All ones: the size was unknown when it was written, and the element extends to the end.
        end = len(data) if size & unmarked == unmarked else at + (size & unmarked)
        yield name, data[at:end]
        at = end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length number, whose first byte marks its length, and that length."""
    length = 9 - int.from_bytes(data[at : at + 1]).bit_length()
    return int.from_bytes(data[at : at + length]), length
