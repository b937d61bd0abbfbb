"""Videos and animations: their facts, and frames by seeking; decoded only in the sandbox."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob, OpenBlob
from belino.media import sheet as sheets
from belino.media import stream_open, video_frames
from belino.media.image.decode import MAX_SIDE
from belino.media.image.images import MAX_BYTES, Fitted, checked, write_all
from belino.media.stream_header import LONGEST
from belino.media.video_frames import ANIMATIONS, FRAMES_AT_MOST

if TYPE_CHECKING:
    from belino.media.image.images import Runs

FRAME_SIDE, FRAME_BYTES = 1_024, 256 * 1024
"""Of one frame, by default."""
SHEET_SIDE, SHEET_BYTES = 1_568, 1024 * 1024
POSTER_SIDE, POSTER_BYTES = 640, 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFacts:
    """The facts of a video, upright and with square pixels."""

    seconds: float | None
    """None if neither headers nor packets contain it."""
    codec: str
    width: int
    height: int
    rotation: int = 0
    """Clockwise rotation of the stored pixels, in degrees; already applied to the size."""
    fps: float | None = None
    """The average; a phone's video has a variable rate."""
    audio_codec: str = ""
    """Empty if it is silent."""
    subtitles: int = 0
    """Subtitle tracks."""
    seen: float | None = None
    """Seconds from its beginning that can be shown, if not all of a long animation can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame of a video and its time in seconds, which may be slightly before the requested one."""

    at: float
    picture: Fitted


class Videos:
    """Asks the sandbox, and checks every answer. GIF and WebP count as videos without sound."""

    def __init__(self, sandbox: "Runs", scratch: Path, open_blob: OpenBlob) -> None:
        self._sandbox = sandbox
        self._scratch = scratch
        self._open_blob = open_blob

    async def probe(self, blob: Blob) -> VideoFacts:
        """The facts of the video; MediaRefused without a decodable video stream."""
        _require(blob)
        async with self._open_blob(blob.sha256) as path:
            return _facts(await self._sandbox.run("video.probe", path, {"mime": blob.mime}))

    async def frames(
        self,
        blob: Blob,
        *,
        count: int = 6,
        start: float | None = None,
        end: float | None = None,
        max_side: int = FRAME_SIDE,
        max_bytes: int = FRAME_BYTES,
    ) -> tuple[Frame, ...]:
        """At most `count` frames evenly from `start` to `end`, fewer if it has fewer; each within the limits."""
        options = _options(blob, count=count, start=start, end=end, max_side=max_side, max_bytes=max_bytes)
        told, data = await self._made("video.frames", blob, options, count * options["max_bytes"])
        return _frames(told, data, options)

    async def sheet(
        self,
        blob: Blob,
        *,
        count: int = 9,
        start: float | None = None,
        end: float | None = None,
        max_side: int = SHEET_SIDE,
        max_bytes: int = SHEET_BYTES,
    ) -> Fitted:
        """Those frames on one picture, row by row, each with its time."""
        options = _options(blob, count=count, start=start, end=end, max_side=max_side, max_bytes=max_bytes)
        _, data = await self._made("video.sheet", blob, options, options["max_bytes"])
        return checked(data, max_bytes=options["max_bytes"], max_side=options["max_side"])

    async def poster(self, blob: Blob, *, max_side: int = POSTER_SIDE, max_bytes: int = POSTER_BYTES) -> Fitted:
        """One frame for the whole video: a key frame near its beginning, by one seek."""
        options = _options(blob, count=1, start=None, end=None, max_side=max_side, max_bytes=max_bytes)
        told, data = await self._made("video.frames", blob, {**options, "poster": True}, options["max_bytes"])
        return _frames(told, data, options)[0].picture

    async def _made(
        self, job: str, blob: Blob, options: Mapping[str, Any], max_bytes: int
    ) -> tuple[dict[str, Any], bytes]:
        _require(blob)
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        output = self._scratch / f"frames-{os.urandom(8).hex()}"
        try:
            async with self._open_blob(blob.sha256) as path:
                told = await self._sandbox.run(job, path, options, output=output)
            with output.open("rb") as file:
                return told, file.read(max_bytes + 1)
        finally:
            output.unlink(missing_ok=True)


def _require(blob: Blob) -> None:
    """Animated pictures are decoded as pictures, which needs no extra."""
    if blob.mime not in ANIMATIONS:
        stream_open.require()


def _options(
    blob: Blob, *, count: int, start: float | None, end: float | None, max_side: int, max_bytes: int
) -> dict[str, Any]:
    if not 1 <= count <= FRAMES_AT_MOST:
        raise MediaRefused(f"between 1 and {FRAMES_AT_MOST} frames can be taken at a time")
    if (start or 0.0) < 0 or (end is not None and end <= (start or 0.0)):
        raise MediaRefused("the time range ends before it begins")
    return {
        "mime": blob.mime,
        "count": count,
        "start": start,
        "end": end,
        "max_side": min(max_side, MAX_SIDE),
        "max_bytes": min(max_bytes, MAX_BYTES),
    }


def _facts(told: Mapping[str, Any]) -> VideoFacts:
    match told:
        case {
            "seconds": float() | None as seconds,
            "codec": str(codec),
            "width": int(width),
            "height": int(height),
            "rotation": 0 | 90 | 180 | 270 as rotation,
            "fps": float() | None as fps,
            "audio_codec": str(audio_codec),
            "subtitles": int(subtitles),
            "seen": float() | None as looked_at,
        } if _is_name(codec) and (not audio_codec or _is_name(audio_codec)):
            if 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE:
                return VideoFacts(
                    seconds=seconds if seconds is not None and 0 < seconds < LONGEST else None,
                    codec=codec,
                    width=width,
                    height=height,
                    rotation=rotation,
                    fps=fps if fps is not None and 0 < fps <= 1_000 else None,
                    audio_codec=audio_codec,
                    subtitles=min(max(subtitles, 0), 1_000),
                    seen=looked_at if looked_at is not None and 0 < looked_at < LONGEST else None,
                )
    raise MediaRefused("decoding the video gave no proper answer")


def _is_name(codec: str) -> bool:
    return codec.isascii() and codec.replace("_", "").replace("-", "").isalnum() and len(codec) <= 32


def _frames(told: Mapping[str, Any], data: bytes, options: Mapping[str, Any]) -> tuple[Frame, ...]:
    """An attacker may control the child: every picture is checked, and their bytes must be all there are."""
    listed = told.get("frames")
    if not isinstance(listed, list) or not 1 <= len(listed) <= options["count"]:
        raise MediaRefused("decoding the video gave no proper answer")
    found: list[Frame] = []
    begin = 0
    for each in listed:
        match each:
            case {"at": float(at), "bytes": int(size)} if 0 <= at < LONGEST and size > 0:
                picture = checked(
                    data[begin : begin + size], max_bytes=options["max_bytes"], max_side=options["max_side"]
                )
                found.append(Frame(at=at, picture=picture))
                begin += size
            case _:
                raise MediaRefused("decoding the video gave no proper answer")
    if begin != len(data):
        raise MediaRefused("decoding the video gave no proper answer")
    return tuple(found)


# The rest runs in the sandbox's child.


def prepare() -> None:
    """Import what the jobs need; the child cannot import."""
    stream_open.prepare()
    sheets.prepare()


def probe(source: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of the video, with its first frame decoded: only that has the rotation."""
    return video_frames.look(source, options["mime"])


def frames(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write the pictures one after the other to `target`, and return where each ends."""
    listed = []
    for at, picture in _taken(source, options):
        content = sheets.written(picture, max_bytes=options["max_bytes"], max_side=options["max_side"])
        write_all(target, content)
        listed.append({"at": at, "bytes": len(content)})
    return {"frames": listed}


def sheet(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The frames on one picture, each with its time."""
    smaller = {**options, "max_side": sheets.cell_side(options["max_side"], options["count"])}
    taken = _taken(source, smaller)
    cells = list(zip(sheets.stamps([at for at, _ in taken]), (picture for _, picture in taken), strict=True))
    whole = sheets.laid_out(cells, max_side=options["max_side"])
    write_all(target, sheets.written(whole, max_bytes=options["max_bytes"], max_side=options["max_side"]))
    return {"frames": len(cells)}


def _taken(source: int, options: Mapping[str, Any]) -> Sequence[tuple[float, Any]]:
    wish = video_frames.FrameOptions(
        count=options["count"],
        start=options["start"],
        end=options["end"],
        max_side=options["max_side"],
        poster=bool(options.get("poster")),
    )
    return video_frames.taken(source, options["mime"], wish)
