"""Stream header: length, encoding and picture size of a sound or video, without decoding."""

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

HEAD_BYTES = 64 * 1024
TAIL_BYTES = 64 * 1024
"""The largest Ogg page, so the last one begins within this range."""
MOOV_BYTES = 4 * 1024 * 1024
BOXES = 64
WEBM_INFO_BYTES = 512
LONGEST, WIDEST = 30 * 24 * 3600.0, 65_535
"""Seconds and pixels; larger claims are ignored."""

_WEBM_INFO, _WEBM_DURATION, _WEBM_SCALE = b"\x15\x49\xa9\x66", b"\x44\x89", b"\x2a\xd7\xb1"
_OPUS_RATE = 48_000
_MP3_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
_MP3_KBITS = (
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
)

# The ids of WebM elements.
_SEGMENT, _INFO, _TRACKS, _TRACK = 0x18538067, 0x1549A966, 0x1654AE6B, 0xAE
_SCALE, _DURATION = 0x2AD7B1, 0x4489
_TYPE, _CODEC, _VIDEO, _WIDTH, _HEIGHT = 0x83, 0x86, 0xE0, 0xB0, 0xBA
_SOUND = 2
_MP4_CODECS = ((b"mp4a", "aac"), (b"Opus", "opus"), (b"alac", "alac"), (b"samr", "amr"), (b"sawb", "amr"))
_WEBM_NANOSECONDS = 1_000_000
"""The default unit of time, in nanoseconds."""
_VIDEO_CODECS = {b"V_VP8": "vp8", b"V_VP9": "vp9", b"V_AV1": "av1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundFacts:
    """The facts of a sound; empty fields where no plausible header exists."""

    codec: str = ""
    seconds: float | None = None
    rate: int | None = None
    """Samples a second; headers alone do not contain it."""
    channels: int | None = None
    width: int | None = None
    height: int | None = None
    """Of the picture of a video, as it is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmFacts:
    """The facts of a WebM's one video track."""

    codec: str
    width: int
    height: int
    seconds: float
    silent: bool


def sound_facts(file: BinaryIO, mime: str) -> SoundFacts:
    """The facts of a file of this (sniffed) type. Takes any bytes, never raises."""
    reader = _READERS.get(mime)
    if reader is None:
        return SoundFacts()
    head = _read(file, 0, HEAD_BYTES)
    try:
        facts = reader(file, head, file.seek(0, os.SEEK_END))
    except (IndexError, ZeroDivisionError, struct.error):  # a truncated header, or a time scale of zero
        return SoundFacts()
    plausible = facts.seconds is not None and 0 < facts.seconds < LONGEST
    seconds = facts.seconds if plausible else None
    return SoundFacts(codec=facts.codec, seconds=seconds, width=facts.width, height=facts.height)


def film_facts(head: bytes) -> FilmFacts | None:
    """The facts of a WebM, if its beginning contains all of them. Takes any bytes, never raises."""
    try:
        found = dict(_webm_elements(dict(_webm_elements(head))[_SEGMENT]))
        seconds = _webm_seconds(found[_INFO])
        tracks = [dict(_webm_elements(body)) for name, body in _webm_elements(found[_TRACKS]) if name == _TRACK]
        (film,) = [track for track in tracks if _VIDEO in track]
        size = dict(_webm_elements(film[_VIDEO]))
        facts = FilmFacts(
            codec=_VIDEO_CODECS[film[_CODEC]],
            width=int.from_bytes(size[_WIDTH]),
            height=int.from_bytes(size[_HEIGHT]),
            seconds=seconds,
            silent=not any(int.from_bytes(track[_TYPE]) == _SOUND for track in tracks),
        )
    except (KeyError, ValueError, struct.error, OverflowError):
        return None
    plausible = 0 < facts.seconds < LONGEST and 0 < facts.width <= WIDEST and 0 < facts.height <= WIDEST
    return facts if plausible else None


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


def _ogg(file: BinaryIO, head: bytes, size: int) -> SoundFacts:
    first = head[27 + head[26] :]
    if first.startswith(b"OpusHead"):
        codec, rate, skipped = "opus", _OPUS_RATE, int.from_bytes(first[10:12], "little")
    elif first.startswith(b"\x01vorbis"):
        codec, rate, skipped = "vorbis", int.from_bytes(first[12:16], "little"), 0
    elif first.startswith(b"Speex   "):
        codec, rate, skipped = "speex", int.from_bytes(first[36:40], "little"), 0
    else:
        return SoundFacts()
    tail = _read(file, max(0, size - TAIL_BYTES), TAIL_BYTES)
    page = tail.rfind(b"OggS")
    samples = int.from_bytes(tail[page + 6 : page + 14], "little", signed=True) - skipped
    return SoundFacts(codec=codec, seconds=samples / rate if page >= 0 else None)


def _wav(file: BinaryIO, head: bytes, size: int) -> SoundFacts:
    at, rate = 12, 0
    while at + 8 <= len(head):
        name, length = head[at : at + 4], int.from_bytes(head[at + 4 : at + 8], "little")
        if name == b"fmt ":
            rate = int.from_bytes(head[at + 16 : at + 20], "little")
        if name == b"data":
            return SoundFacts(codec="pcm", seconds=min(length, size - at - 8) / rate)
        at += 8 + length + length % 2
    return SoundFacts(codec="pcm")


def _flac(file: BinaryIO, head: bytes, size: int) -> SoundFacts:
    packed = int.from_bytes(head[18:26])
    rate, samples = packed >> 44, packed & (1 << 36) - 1
    return SoundFacts(codec="flac", seconds=samples / rate)


def _mp3(file: BinaryIO, head: bytes, size: int) -> SoundFacts:
    start = 0
    if head.startswith(b"ID3"):
        start = 10 + sum(byte << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))
        head = _read(file, start, HEAD_BYTES)
    at = next((at for at in range(len(head) - 4) if head[at] == 0xFF and head[at + 1] & 0xE6 == 0xE2), None)
    if at is None:
        return SoundFacts(codec="mp3")
    version, bits, rate = head[at + 1] >> 3 & 3, head[at + 2] >> 4, head[at + 2] >> 2 & 3
    hertz = _MP3_RATES[version][rate] if version in _MP3_RATES else 0
    counted = next((place for name in (b"Xing", b"Info") if (place := head.find(name, at, at + 64)) >= 0), None)
    if counted is not None and head[counted + 7] & 1:
        frames = int.from_bytes(head[counted + 8 : counted + 12])
        return SoundFacts(codec="mp3", seconds=frames * (1152 if version == 3 else 576) / hertz)
    kbits = _MP3_KBITS[version != 3][bits]
    return SoundFacts(codec="mp3", seconds=(size - start - at) * 8 / (kbits * 1000))


def _mp4(file: BinaryIO, head: bytes, size: int) -> SoundFacts:
    moov = _moov(file, size)
    codec = next((name for mark, name in _MP4_CODECS if mark in moov), "")
    at = moov.find(b"mvhd")
    if at < 0:
        return SoundFacts(codec=codec)
    long = moov[at + 4] == 1
    scale_at, width = (at + 24, 8) if long else (at + 16, 4)
    scale = int.from_bytes(moov[scale_at : scale_at + 4])
    seconds = int.from_bytes(moov[scale_at + 4 : scale_at + 4 + width]) / scale
    wide, high = _mp4_size(moov)
    return SoundFacts(codec=codec, seconds=seconds, width=wide, height=high)


def _mp4_size(moov: bytes) -> tuple[int | None, int | None]:
    """Width and height of the first track with a picture, turned as its matrix says."""
    at = moov.find(b"tkhd")
    while at >= 0:
        matrix = at + 4 + (52 if moov[at + 4] == 1 else 40)
        size = moov[matrix + 36 : matrix + 44]
        wide, high = int.from_bytes(size[:2]), int.from_bytes(size[4:6])
        if len(size) == 8 and 0 < wide <= WIDEST and 0 < high <= WIDEST:
            turned = moov[matrix : matrix + 4] == b"\0\0\0\0"
            return (high, wide) if turned else (wide, high)
        at = moov.find(b"tkhd", at + 4)
    return None, None


def _moov(file: BinaryIO, size: int) -> bytes:
    """The box that describes the tracks; it may be at either end."""
    at = 0
    for _ in range(BOXES):
        header = _read(file, at, 16)
        length = int.from_bytes(header[:4])
        if length == 1:
            length = int.from_bytes(header[8:16])
        if header[4:8] == b"moov":
            return _read(file, at, min(length, MOOV_BYTES))
        if length < 8 or at + length >= size:
            break
        at += length
    return b""


def _webm(file: BinaryIO, head: bytes, size: int) -> SoundFacts:
    codec = next((name for name in ("opus", "vorbis") if f"A_{name.upper()}".encode() in head), "")
    about = head.find(_WEBM_INFO)
    at = head.find(_WEBM_DURATION, about, about + WEBM_INFO_BYTES) if about >= 0 else -1
    if at < 0:  # A browser that is recording does not know the length yet.
        return SoundFacts(codec=codec)
    width = head[at + 2] & 0x7F
    counted = struct.unpack(">f" if width == 4 else ">d", head[at + 3 : at + 3 + width])[0]
    scale_at = head.find(_WEBM_SCALE, about, about + WEBM_INFO_BYTES)
    told = head[scale_at + 4 : scale_at + 4 + (head[scale_at + 3] & 0x7F)] if scale_at >= 0 else b""
    return SoundFacts(codec=codec, seconds=counted * (int.from_bytes(told) if told else 1_000_000) / 1e9)


def _named(codec: str) -> Callable[[BinaryIO, bytes, int], SoundFacts]:
    """For raw codec files without a container."""
    return lambda file, head, size: SoundFacts(codec=codec)


def _webm_seconds(info: bytes) -> float:
    told = dict(_webm_elements(info))
    scale = int.from_bytes(told[_SCALE]) if _SCALE in told else _WEBM_NANOSECONDS
    duration = told[_DURATION]
    (length,) = struct.unpack(">f" if len(duration) == 4 else ">d", duration)
    return float(length) * scale / 1e9


def _webm_elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Sibling elements, each with its content; of a truncated one, what there is."""
    at = 0
    while at < len(data):
        name, length = _webm_number(data, at)
        at += length
        size, length = _webm_number(data, at)
        at += length
        unmarked = (1 << 7 * length) - 1
        # All ones: the size was unknown when it was written, and the element extends to the end.
        end = len(data) if size & unmarked == unmarked else at + (size & unmarked)
        yield name, data[at:end]
        at = end


def _webm_number(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length number, whose first byte marks its length, and that length."""
    length = 9 - int.from_bytes(data[at : at + 1]).bit_length()
    return int.from_bytes(data[at : at + length]), length


_READERS: dict[str, Callable[[BinaryIO, bytes, int], SoundFacts]] = {
    "audio/ogg": _ogg,
    "audio/wav": _wav,
    "audio/flac": _flac,
    "audio/mpeg": _mp3,
    "audio/mp4": _mp4,
    "video/mp4": _mp4,
    "video/quicktime": _mp4,
    "video/x-m4v": _mp4,
    "video/3gpp": _mp4,
    "video/3gpp2": _mp4,
    "audio/3gpp": _mp4,
    "audio/3gpp2": _mp4,
    "audio/webm": _webm,
    "video/webm": _webm,
    "video/x-matroska": _webm,
    "audio/aac": _named("aac"),
    "audio/amr": _named("amr"),
}
