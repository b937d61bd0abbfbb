"""Streams of sound and video: containers that name their content in their first boxes, pages or frames."""

import re
from collections.abc import Iterator

from belino.media.sniff.hints import Found, Hints
from belino.media.sniff.magic import CONTROL, WORDS_REACH, by_start

_BRANDS = {
    b"heic": "image/heic", b"heix": "image/heic", b"heim": "image/heic", b"heis": "image/heic",
    b"hevc": "image/heic", b"hevx": "image/heic", b"hevm": "image/heic", b"hevs": "image/heic",
    b"avif": "image/avif", b"avis": "image/avif", b"crx ": "image/x-canon-cr3",
    b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"M4P ": "audio/mp4", b"F4A ": "audio/mp4", b"F4B ": "audio/mp4",
    b"M4V ": "video/x-m4v", b"M4VH": "video/x-m4v", b"M4VP": "video/x-m4v",
    b"qt  ": "video/quicktime", b"f4v ": "video/x-f4v", b"F4V ": "video/x-f4v",
    b"jp2 ": "image/jp2", b"jpx ": "image/jpx", b"jpm ": "image/jpm", b"mjp2": "video/mj2",
}  # fmt: skip
_PHONE_BRANDS = frozenset({b"3g2a", b"3g2b", b"3g2c", b"KDDI", b"kddi"})
_STILL_BRANDS = frozenset({b"mif1", b"mif2", b"msf1", b"miaf"})
_SMALL_BRAND = b"mif3"
_OLD_QUICKTIME = frozenset({b"moov", b"mdat", b"wide", b"pnot"})
_BOXES_WITHIN = frozenset({b"moov", b"trak", b"mdia"})
_BOXES_AT_MOST = 400

_OGG_CODECS = (
    (b"\x80theora", "video/ogg"), (b"\x01video", "video/ogg"), (b"BBCD\0", "video/ogg"),
    (b"OpusHead", "audio/ogg"), (b"\x01vorbis", "audio/ogg"), (b"\x7fFLAC", "audio/ogg"), (b"Speex   ", "audio/ogg"),
)  # fmt: skip
_ASF = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_ASF_VIDEO = bytes.fromhex("c0ef19bc4d5bcf11a8fd00805f5c442b")
_ASF_AUDIO = bytes.fromhex("409e69f84d5bcf11a8fd00805f5c442b")
_EBML = b"\x1a\x45\xdf\xa3"
_TRACKS = b"\x16\x54\xae\x6b"

_MP3_BITRATES = {
    (3, 1): (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (3, 2): (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (3, 3): (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (2, 1): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (2, 2): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (2, 3): (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
}  # fmt: skip
_MP3_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_MP3_SUMMARIES = (b"Xing", b"Info", b"VBRI")
_TAGS_AT_END = (b"TAG", b"APETAG", b"LYRICS")
_FRAMES_TO_BELIEVE = 3
_FRAMES_BEGIN_BEFORE = 4096
_PACKET_MARK = re.compile(b"\x47")
_FRAMES_REACH = _FRAMES_TO_BELIEVE * 8192


def stream_type(head: bytes, hints: Hints, *, whole: bool) -> Found | None:
    """The type of a sound or a video, or of a picture in the same kind of container."""
    return (
        _riff(head) or _boxed(head, hints, whole=whole) or _matroska(head, hints) or _ogg(head) or _asf(head, hints)
        or _tagged(head, hints) or _framed(head, hints) or _transport(head) or _framed_later(head, hints)
    )  # fmt: skip


def _riff(head: bytes) -> Found | None:
    form, kind = head[:4], head[8:12]
    if form in (b"RIFF", b"RIFX", b"RF64", b"BW64"):
        known = {
            b"WAVE": "audio/wav", b"WEBP": "image/webp", b"AVI ": "video/x-msvideo", b"RMID": "audio/midi",
            b"QLCM": "audio/qcelp", b"ACON": "application/x-navi-animation", b"sfbk": "audio/x-sfbk",
        }.get(kind)  # fmt: skip
        return (known, True) if known else None
    if form == b"FORM" and kind in (b"AIFF", b"AIFC"):
        return "audio/aiff", True
    if form == b"FORM" and kind == b"8SVX":
        return "audio/x-8svx", True
    return ("image/x-ilbm", True) if form == b"FORM" and kind in (b"ILBM", b"PBM ") else None


def _boxed(head: bytes, hints: Hints, *, whole: bool) -> Found | None:
    if head[:12] == b"\0\0\0\x0cjP  \r\n\x87\n":
        return _BRANDS.get(head[20:24], "image/jp2"), True
    if not CONTROL.search(head[:WORDS_REACH]):
        return None  # "The wide sea" begins like one
    if head[4:8] in (b"ftyp", b"styp"):
        return _by_brand(head, hints, whole=whole)
    size = int.from_bytes(head[:4])
    if head[4:8] in _OLD_QUICKTIME and (size in (0, 1) or size >= 8) and head[8:12] != b"":
        return "video/quicktime", True
    if head[4:8] in (b"free", b"skip") and head[size + 4 : size + 8] in _OLD_QUICKTIME:
        return "video/quicktime", True
    return None


def _by_brand(head: bytes, hints: Hints, *, whole: bool) -> Found:
    size = min(max(int.from_bytes(head[:4]), 16), 4096)
    # Some writers pad a short brand with zeros instead of spaces.
    major, others = head[8:12].replace(b"\0", b" "), [head[at : at + 4] for at in range(16, min(size, len(head)), 4)]
    if major == _SMALL_BRAND:
        # A small file names its codec in place of a version.
        return _BRANDS.get(head[12:16], "image/heif"), True
    if major in _STILL_BRANDS:
        inner = next((_BRANDS[brand] for brand in others if _BRANDS.get(brand, "").startswith("image/")), "image/heif")
        return inner, True
    if major in _BRANDS:
        return _BRANDS[major], True
    phone = major in _PHONE_BRANDS or major[:3] in (b"3gp", b"3gr", b"3gs", b"3ge", b"3gg")
    kind = "mp4" if not phone else "3gpp2" if major in _PHONE_BRANDS else "3gpp"
    tracks, complete = _tracks(head, whole=whole)
    if b"vide" in tracks:
        return f"video/{kind}", True
    if b"soun" in tracks and complete:
        return f"audio/{kind}", True
    # The track list is at the end of the file, out of reach: the declared type decides.
    if hints.declared.startswith("audio/") or hints.suggests("audio/mp4"):
        return f"audio/{kind}", False
    return f"video/{kind}", bool(major.strip())


def _tracks(head: bytes, *, whole: bool) -> tuple[set[bytes], bool]:
    """The track types in the available boxes, and whether the box that lists them is complete."""
    kinds: set[bytes] = set()
    complete, steps, at = False, 0, 0
    while at + 8 <= len(head) and steps < _BOXES_AT_MOST:
        steps += 1
        size, name = int.from_bytes(head[at : at + 4]), head[at + 4 : at + 8]
        if size == 1:
            size = int.from_bytes(head[at + 8 : at + 16])
        if size < 8:
            size = len(head) - at if size == 0 and whole else len(head) + 1
        if name == b"moov":
            complete = at + size <= len(head)
        if name == b"hdlr":
            kinds.add(head[at + 16 : at + 20])
        at += 8 if name in _BOXES_WITHIN else size
    return kinds, complete and steps < _BOXES_AT_MOST


def _matroska(head: bytes, hints: Hints) -> Found | None:
    if not head.startswith(_EBML):
        return None
    at = head.find(b"\x42\x82", 4, 128)
    begin, size = _element_size(head, at + 2) if at > 0 else (0, 0)
    webm = head[begin : begin + size].rstrip(b"\0") == b"webm" if size else hints.suggests("video/webm", "audio/webm")
    video, audio = ("video/webm", "audio/webm") if webm else ("video/x-matroska", "audio/x-matroska")
    tracks = head.find(_TRACKS)
    first, length = _element_size(head, tracks + len(_TRACKS)) if tracks >= 0 else (0, 0)
    # Only the list itself: any two bytes occur in the content after it.
    listed = head[first : first + length]
    if b"\x83\x81\x01" in listed or b"V_" in listed:
        return video, True
    if b"A_" in listed:
        return audio, first + length <= len(head)
    spoken = hints.declared.startswith("audio/") or hints.suggests("audio/webm", "audio/x-matroska")
    return (audio, False) if spoken else (video, bool(size))


def _element_size(head: bytes, at: int) -> tuple[int, int]:
    """The start and length of an element's content; leading zero bits give the width of the length."""
    width = 9 - head[at].bit_length() if at < len(head) else 9
    if width > 8:
        return 0, 0
    return at + width, int.from_bytes(head[at : at + width]) & ((1 << 7 * width) - 1)


def _ogg(head: bytes) -> Found | None:
    if not head.startswith(b"OggS"):
        return None
    # Every stream begins with a page of its own, before any content: the first few pages list them all.
    first = head[:1024]
    for codec, mime in _OGG_CODECS:
        if codec in first:
            return mime, True
    return "audio/ogg", False


def _asf(head: bytes, hints: Hints) -> Found | None:
    if not head.startswith(_ASF):
        return None
    if _ASF_VIDEO in head:
        return "video/x-ms-asf" if hints.suggests("video/x-ms-asf") else "video/x-ms-wmv", True
    if _ASF_AUDIO in head:
        return "audio/x-ms-wma", not hints.declared.startswith("video/")
    said = next((mime for mime in ("audio/x-ms-wma", "video/x-ms-wmv") if hints.suggests(mime)), "")
    return (said, False) if said else ("video/x-ms-asf", True)


def _tagged(head: bytes, hints: Hints) -> Found | None:
    """An ID3 tag usually precedes MP3, sometimes AAC or FLAC."""
    if head[:3] != b"ID3" or len(head) < 10 or any(byte & 0x80 for byte in head[6:10]):
        return None
    size = 10 + (head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9])
    after = head[size : size + 4096].lstrip(b"\0")
    if not after:
        return next(
            ((mime, False) for mime in ("audio/flac", "audio/aac") if hints.suggests(mime)), ("audio/mpeg", True)
        )
    if (told := by_start(after)) and told.startswith("audio/"):
        return told, True
    return (_framed(after, hints) if len(after) > 8 else None) or ("audio/mpeg", True)


def _framed(head: bytes, hints: Hints) -> Found | None:
    """MP3 and AAC without a container: consecutive frames at the lengths their headers give."""
    if len(head) < 8 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return _dolby(head)
    mime = "audio/aac" if head[1] & 0xF6 == 0xF0 else "audio/mpeg"
    seen = 0
    for length in _frame_lengths(head, mime):
        if not length:
            return None
        seen += 1
    if seen >= 2 or (seen and any(mark in head[:64] for mark in _MP3_SUMMARIES)):
        return mime, True
    # A single frame header may be a coincidence, such as a byte order mark of UTF-16.
    return (mime, False) if seen and hints.suggests(mime) else None


def _framed_later(head: bytes, hints: Hints) -> Found | None:
    """Frames after padding, another tag or a partial frame: a recording cut out of a longer one."""
    if not hints.suggests("audio/mpeg", "audio/aac"):
        return None
    at = head.find(b"\xff", 1, _FRAMES_BEGIN_BEFORE)
    while at > 0:
        mime = "audio/aac" if head[at + 1 : at + 2] in (b"\xf0", b"\xf1", b"\xf8", b"\xf9") else "audio/mpeg"
        lengths = list(_frame_lengths(head[at : at + _FRAMES_REACH], mime))
        if len(lengths) == _FRAMES_TO_BELIEVE and all(lengths):
            return mime, False
        at = head.find(b"\xff", at + 1, _FRAMES_BEGIN_BEFORE)
    return None


def _dolby(head: bytes) -> Found | None:
    if head[:2] != b"\x0b\x77" or len(head) < 9:
        return None
    version = head[5] >> 3
    if version <= 10:
        return ("audio/ac3", True) if head[4] & 0x3F < 38 and head[4] >> 6 < 3 else None
    return ("audio/eac3", True) if version <= 16 else None


def _frame_lengths(head: bytes, mime: str) -> Iterator[int]:
    at = 0
    for _ in range(_FRAMES_TO_BELIEVE):
        frame = head[at : at + 7]
        if len(frame) < 7 or frame.startswith(_TAGS_AT_END):
            return
        length = _adts_length(frame) if mime == "audio/aac" else _mp3_length(frame)
        yield length
        at += max(length, 1)


def _adts_length(frame: bytes) -> int:
    if frame[0] != 0xFF or frame[1] & 0xF6 != 0xF0 or frame[2] >> 2 & 0xF > 12:
        return 0
    length = (frame[3] & 3) << 11 | frame[4] << 3 | frame[5] >> 5
    return length if length >= 7 else 0


def _mp3_length(frame: bytes) -> int:
    version, layer, rate = frame[1] >> 3 & 3, frame[1] >> 1 & 3, frame[2] >> 2 & 3
    index, padding = frame[2] >> 4, frame[2] >> 1 & 1
    if frame[0] != 0xFF or frame[1] & 0xE0 != 0xE0 or version == 1 or layer == 0 or rate == 3 or not 0 < index < 15:
        return 0
    bits = 1000 * _MP3_BITRATES[3 if version == 3 else 2, layer][index]
    hertz = _MP3_RATES[version][rate]
    if layer == 3:
        return (12 * bits // hertz + padding) * 4
    return (72 if layer == 1 and version != 3 else 144) * bits // hertz + padding


def _transport(head: bytes) -> Found | None:
    """Packets of one size with the same first byte, also where a recording begins within one."""
    if not CONTROL.search(head[:WORDS_REACH]):
        return None
    amid = [(found.start(), 188, 5) for found in _PACKET_MARK.finditer(head, 1, 188)]
    for start, step, least in ((0, 188, 3), (4, 192, 3), *amid):
        marks = head[start : start + 5 * step : step]
        if len(marks) >= least and set(marks) == {0x47}:
            return "video/mp2t", True
    return None
