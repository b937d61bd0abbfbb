"""Stream open: open a hostile sound or video in the sandbox as the type of its bytes."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any, TypeVar

from belino.domain.errors import MediaRefused
from belino.media.sniff import HEAD_BYTES, sniff
from belino.media.sniff.archives import TGS
from belino.media.sniff.hints import UNKNOWN
from belino.media.stream_header import LONGEST

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container.input import InputContainer
    from av.video.stream import VideoStream

AnyStream = TypeVar("AnyStream", "AudioStream", "VideoStream")

PLAUSIBLE_BITS = 200_000_000
"""Bits a second. A header that implies more has a false length, as some stickers have."""
PACKETS_AT_MOST = 2_000_000
"""Packets counted where no header has the length; that is ten hours."""
BROKEN_AT_MOST = 1_000
"""Undecodable packets before a stream is given up."""

_BOXES, _MATROSKA, _OGG, _ASF = "mov", "matroska", "ogg", "asf"
_DEMUXERS = {
    "video/mp4": _BOXES, "video/quicktime": _BOXES, "video/x-m4v": _BOXES, "video/x-f4v": _BOXES, "video/3gpp": _BOXES,
    "video/3gpp2": _BOXES, "audio/mp4": _BOXES, "audio/3gpp": _BOXES, "audio/3gpp2": _BOXES,
    "video/webm": _MATROSKA, "audio/webm": _MATROSKA, "video/x-matroska": _MATROSKA, "audio/x-matroska": _MATROSKA,
    "video/ogg": _OGG, "audio/ogg": _OGG, "video/x-ms-wmv": _ASF, "video/x-ms-asf": _ASF, "audio/x-ms-wma": _ASF,
    "video/x-msvideo": "avi", "video/mpeg": "mpeg", "video/mp2t": "mpegts", "video/x-flv": "flv",
    "audio/mpeg": "mp3", "audio/wav": "wav", "audio/flac": "flac", "audio/aac": "aac", "audio/amr": "amr",
    "audio/amr-wb": "amr", "audio/aiff": "aiff", "audio/x-caf": "caf", "audio/basic": "au", "audio/x-wavpack": "wv",
    "audio/ac3": "ac3", "audio/eac3": "eac3", "audio/x-ape": "ape", "audio/x-tta": "tta", "audio/x-w64": "w64",
    "audio/x-dsf": "dsf", "audio/x-dff": "iff", "audio/x-musepack": "mpc",
}  # fmt: skip
"""The demuxer of each type. Playlists and lists of files (HLS, DASH, concat) are not listed, so never opened."""
TYPES = frozenset(_DEMUXERS)
_BY_START = {
    "video/mpeg": ((b"\0\0\x01\xb3", "mpegvideo"),),
    "audio/x-musepack": ((b"MPCK", "mpc8"),),
}
"""The demuxer of a type's other form, by its first bytes."""
_OPTIONS = {"enable_drefs": "0", "use_absolute_path": "0", "protocol_whitelist": "belino"}
"""No track of an MP4 may be in another file, and no protocol is allowed."""


def installed() -> bool:
    """Whether sounds and videos can be decoded here: an extra installs the library."""
    return find_spec("av") is not None


def require() -> None:
    """MediaRefused with the remedy where nothing can be decoded."""
    if not installed():
        raise MediaRefused("belino cannot decode sounds and videos here; install that with `pip install belino[av]`")


# The rest runs in the sandbox's child.


def prepare() -> None:
    """Import what every job needs, if installed; the child cannot import."""
    with suppress(ImportError):
        import av

        # PyAV imports some of its modules with the first stream or frame of their kind.
        for module in walk_packages(av.__path__, "av."):
            if module.name.rpartition(".")[2] not in ("__main__", "datasets"):
                import_module(module.name)


def type_of(source: int, declared: str) -> str:
    """The type of the bytes; the earlier result only helps where they are ambiguous."""
    head = os.pread(source, HEAD_BYTES, 0)
    if not head:
        raise MediaRefused("the file is empty")
    return sniff(head, declared=declared, whole=os.fstat(source).st_size <= len(head)).mime


@contextmanager
def opened(source: int, declared: str) -> Iterator["InputContainer"]:
    """The sound or video, opened by the one demuxer for its type; any fault is MediaRefused."""
    import av
    from av.error import FFmpegError

    mime = type_of(source, declared)
    if mime not in _DEMUXERS:
        raise MediaRefused(_not_ours(mime))
    os.lseek(source, 0, os.SEEK_SET)
    try:
        with (
            os.fdopen(os.dup(source), "rb") as file,
            av.open(
                file,
                "r",
                format=_demuxer(source, mime),
                container_options=_OPTIONS,
                io_open=_refuse,
                metadata_errors="replace",
            ) as found,
        ):
            yield found
    except MemoryError:
        raise
    except FFmpegError as error:
        raise MediaRefused(f"the {mime} is damaged or cut off") from error


def _demuxer(source: int, mime: str) -> str:
    head = os.pread(source, 16, 0)
    return next((name for start, name in _BY_START.get(mime, ()) if head.startswith(start)), _DEMUXERS[mime])


def video_of(container: "InputContainer") -> "VideoStream | None":
    """The first video stream; cover art does not count."""
    from av.stream import Disposition

    still = Disposition.attached_pic | Disposition.timed_thumbnails
    moving = [stream for stream in container.streams.video if not stream.disposition & still]
    return _known(moving, "pictures") if moving else None


def audio_of(container: "InputContainer") -> "AudioStream":
    """The first audio stream."""
    if not container.streams.audio:
        raise MediaRefused("there is no sound in it")
    return _known(container.streams.audio, "sound")


def seconds_of(container: "InputContainer", stream: Any, size: int) -> float | None:
    """The length of a stream: from plausible headers, else by reading its packets to the end."""
    told = stream.duration * stream.time_base if stream.duration and stream.time_base else None
    whole = container.duration / 1_000_000 if container.duration else 0.0
    seconds = float(told) if told else whole
    # An Ogg of several streams may give one the length of another's header.
    if container.format.name == _OGG and seconds < whole / 2:
        seconds = 0.0
    if 0 < seconds < LONGEST and size * 8 / seconds < PLAUSIBLE_BITS:
        return seconds
    return _counted(container, stream)


def begins_at(container: "InputContainer", stream: Any) -> float:
    """The time of the first frame, which need not be zero."""
    if stream.start_time is not None and stream.time_base:
        return float(stream.start_time * stream.time_base)
    return container.start_time / 1_000_000 if container.start_time else 0.0


def frames_of(container: "InputContainer", stream: Any) -> Iterator[Any]:
    """The frames from here on; a broken packet is skipped, and a truncated file ends early."""
    from av.error import FFmpegError

    broken = 0
    try:
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except MemoryError:
                raise
            except FFmpegError:
                broken += 1
                if broken > BROKEN_AT_MOST:
                    return
                continue
            yield from frames
    except MemoryError:
        raise
    except FFmpegError:
        return


def _counted(container: "InputContainer", stream: Any) -> float | None:
    from av.error import FFmpegError

    first: float | None = None
    last = 0.0
    with suppress(FFmpegError):  # truncated: it lasts as long as its packets
        for number, packet in enumerate(container.demux(stream)):
            if packet.pts is not None and packet.time_base:
                begin = float(packet.pts * packet.time_base)
                first = begin if first is None else min(first, begin)
                last = max(last, begin + float((packet.duration or 0) * packet.time_base))
            if number >= PACKETS_AT_MOST:
                return None
    seconds = last - first if first is not None else 0.0
    return seconds if 0 < seconds < LONGEST else None


def _known(streams: "Sequence[AnyStream]", what: str) -> "AnyStream":
    """The first with a decoder; PyAV has no context for others."""
    for stream in streams:
        if stream.codec_context is not None:
            return stream
    raise MediaRefused(f"its {what} cannot be decoded: the codec is unknown")


def _not_ours(mime: str) -> str:
    if mime == UNKNOWN:
        return "the bytes are of no type that is known"
    if mime == TGS:
        return "an animated sticker (TGS) is a drawing in motion that is not played here"
    return f"the bytes are {mime}, which is no sound or video of a type that is decoded"


def _refuse(url: str, flags: int, options: object) -> Any:
    raise PermissionError("nothing but the file itself is opened")
