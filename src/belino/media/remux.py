"""Remux a video: the same pictures and sound in a new file without metadata, in the sandbox."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob, OpenBlob
from belino.domain.units import format_size
from belino.media import stream_open

if TYPE_CHECKING:
    from belino.media.image.images import Runs

_MP4, _WEBM = "video/mp4", "video/webm"
_IN_WEBM = frozenset({"vp8", "vp9", "av1", "opus", "vorbis"})
_IN_MP4 = frozenset({"h264", "hevc", "av1", "mpeg4", "vp9", "aac", "mp3", "opus", "ac3", "eac3", "flac"})


class Remuxer:
    """Asks the sandbox, and checks every answer."""

    def __init__(self, sandbox: "Runs", scratch: Path, open_blob: OpenBlob) -> None:
        self._sandbox = sandbox
        self._scratch = scratch
        self._open_blob = open_blob

    @asynccontextmanager
    async def remuxed(self, blob: Blob, *, max_bytes: int) -> AsyncIterator[tuple[Path, str]]:
        """The video without metadata, and its type, in a file that exists as long as the context."""
        stream_open.require()
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        output = self._scratch / f"video-{os.urandom(8).hex()}"
        try:
            async with self._open_blob(blob.sha256) as path:
                options = {"mime": blob.mime, "max_bytes": max_bytes}
                told = await self._sandbox.run("video.remux", path, options, output=output)
            yield output, _checked(told, output, max_bytes)
        finally:
            output.unlink(missing_ok=True)


def _checked(told: Mapping[str, Any], output: Path, max_bytes: int) -> str:
    """An attacker may control the child: the file must be of the type that it names."""
    with output.open("rb") as file:
        head = file.read(12)
    match told.get("mime"):
        case "video/mp4" if head[4:8] == b"ftyp":
            mime = _MP4
        case "video/webm" if head.startswith(b"\x1a\x45\xdf\xa3"):
            mime = _WEBM
        case _:
            raise MediaRefused("copying the video gave no video")
    if output.stat().st_size > max_bytes:
        raise MediaRefused(f"the video is over {format_size(max_bytes)}")
    return mime


# The rest runs in the sandbox's child.


def prepare() -> None:
    """Import what the job needs; the child cannot import."""
    stream_open.prepare()


def remux(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The first pictures and the first sound of `source`, copied without decoding them."""
    import av

    with stream_open.opened(source, options["mime"]) as video:
        pictures = stream_open.video_of(video)
        if pictures is None:
            raise MediaRefused("there are no pictures in it")
        streams: list[Any] = [pictures]
        if video.streams.audio:
            streams.append(stream_open.audio_of(video))
        codecs = {stream.codec_context.name for stream in streams}
        mime = _WEBM if codecs <= _IN_WEBM else _MP4
        if not codecs <= (_IN_WEBM if mime == _WEBM else _IN_MP4):
            raise MediaRefused(f"a video of {', '.join(sorted(codecs))} cannot be copied without its metadata")
        with (
            os.fdopen(os.dup(target), "r+b") as writer,
            av.open(writer, "w", format=mime.partition("/")[2]) as made,
        ):
            copies = {stream.index: made.add_stream_from_template(stream) for stream in streams}
            for copy in copies.values():
                copy.metadata.clear()
            _copy(video.demux(streams), copies, made, target, options["max_bytes"])
    return {"mime": mime}


def _copy(packets: Any, copies: Mapping[int, Any], made: Any, target: int, max_bytes: int) -> None:
    for packet in packets:
        if packet.dts is None:
            continue
        packet.stream = copies[packet.stream.index]
        made.mux(packet)
        if os.fstat(target).st_size > max_bytes:
            raise MediaRefused(f"the video is over {format_size(max_bytes)}")
