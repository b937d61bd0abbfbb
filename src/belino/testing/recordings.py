"""Films and sounds as people send them, recorded on the spot, and exactly as large as announced."""

import io
import math
import struct
from array import array
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from belino.testing.scenes import hills

FRAMES_A_SECOND = 2
VOICE_RATE = 48_000
VOICE_BITS = 24_000
VOICE_BYTES_A_SECOND = 4_000
"""More than what is recorded takes, so that there is something left to fill up."""
FILM_BYTES_A_SECOND = 250_000
SONG_BYTES_A_SECOND = 16_000

_PIECE = VOICE_RATE // 50
_WAVES = 4
"""Whole ones in a piece, so that none of its ends is heard."""
_LOUDEST = 9_000


def film(size: int, width: int, height: int) -> bytes:
    """An MP4 that looks along the coast; behind it, as far as it is too short, free space."""
    shot = _film(size // FILM_BYTES_A_SECOND, width, height) if _can_record() else _no_film()
    return shot + struct.pack(">I", size - len(shot)) + b"free" + bytes(size - len(shot) - 8)


def voice(size: int) -> bytes:
    """A voice note: somebody hums, now louder, now softer."""
    return (_voice(size // VOICE_BYTES_A_SECOND) if _can_record() else _no_voice()).ljust(size, b"\0")


def song(size: int) -> bytes:
    """Silence as MP3 frames."""
    frame = (b"\xff\xfb\x90\x64" + bytes(413)) * (size // 417 + 1)
    return (b"ID3\x03\x00\x00\x00\x00\x00\x00" + frame)[:size]


def _can_record() -> bool:
    """Without the library nobody looks into films and sounds here, so that a head is enough."""
    return find_spec("av") is not None


@lru_cache(maxsize=16)
def _film(seconds: int, width: int, height: int) -> bytes:
    import av

    view = hills(seconds).resize((width * 5 // 4, height))
    frames = max(1, seconds) * FRAMES_A_SECOND
    written = io.BytesIO()
    with av.open(written, "w", format="mp4") as target:
        stream: Any = target.add_stream("libx264", rate=FRAMES_A_SECOND, options={"preset": "ultrafast", "crf": "30"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(frames):
            left = (view.width - width) * number // frames
            frame: Any = av.VideoFrame.from_image(view.crop((left, 0, left + width, height)))  # type: ignore[no-untyped-call]
            frame.pts, frame.time_base = number, Fraction(1, FRAMES_A_SECOND)
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return written.getvalue()


@lru_cache(maxsize=16)
def _voice(seconds: int) -> bytes:
    import av

    written = io.BytesIO()
    pieces = [_hum(_LOUDEST * loud // 8) for loud in range(1, 9)]
    with av.open(written, "w", format="ogg") as target:
        stream: Any = target.add_stream("libopus", rate=VOICE_RATE, options={"vbr": "off"})
        stream.layout, stream.bit_rate = "mono", VOICE_BITS
        for number in range(max(1, seconds) * 50):
            frame: Any = av.AudioFrame(format="s16", layout="mono", samples=_PIECE)
            frame.planes[0].update(pieces[int(7.99 * abs(math.sin(number / 9) * math.sin(number / 31)))])
            frame.sample_rate, frame.pts, frame.time_base = VOICE_RATE, number * _PIECE, Fraction(1, VOICE_RATE)
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return written.getvalue()


def _hum(loudness: int) -> bytes:
    turns = (math.sin(2 * math.pi * _WAVES * at / _PIECE) for at in range(_PIECE))
    return array("h", (int(loudness * turn) for turn in turns)).tobytes()


def _no_film() -> bytes:
    return struct.pack(">I", 24) + b"ftypisom" + struct.pack(">I", 512) + b"isommp42"


def _no_voice() -> bytes:
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, 312, VOICE_RATE, 0, 0)
    return b"OggS" + struct.pack("<BBqIIIB", 0, 2, 0, 1, 0, 0, 1) + bytes([len(head)]) + head
