"""Subtitles of a video as its text, each line with its time; read in the sandbox's child."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.domain.units import clock_time
from belino.media import stream_open
from belino.readers.parts import PART_CHARS, CannotRead, Parts, ReadOptions, nothing, one_line
from belino.readers.read import write_document

if TYPE_CHECKING:
    from av.container.input import InputContainer

TYPES = frozenset(mime for mime in stream_open.TYPES if mime.startswith("video/"))
"""The types that may have subtitles."""
TRACKS_AT_MOST = 20
LINE_CHARS = 2_000

_STYLES = re.compile(r"\{[^{}]*+\}")
_BREAKS = re.compile(r"\\[Nnh]|[\r\n]+")
_WORD = re.compile(r"[A-Za-z0-9-]{1,20}")


def read(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write the subtitles of the video in `source` to `target`, in the form of a document."""
    asked = ReadOptions(**options)
    try:
        with stream_open.opened(source, asked.mime) as container:
            found = _document(container, asked)
    except CannotRead as error:
        found = nothing(error.unread, error.reason)
    with os.fdopen(os.dup(target), "wb") as writer:
        write_document(writer, found)
    return {}


def _document(container: "InputContainer", options: ReadOptions) -> DocumentText:
    tracks: Any = container.streams.subtitles
    if not tracks:
        raise CannotRead(Unread.NO_TEXT, "there are no subtitles in it")
    parts = Parts(options, DocumentUnit.PART)
    total = drawn = 0
    for track in tracks[:TRACKS_AT_MOST]:
        lines = list(_lines(container, track))
        drawn += not lines
        for piece in _pieces(lines):
            total += 1
            if parts.wants(total):
                parts.add(
                    total, "\n".join(f"[{clock_time(int(at))}] {line}" for at, line in piece), _title(track, piece)
                )
    if not total:
        raise CannotRead(Unread.NO_TEXT, "its subtitles are pictures, or have no words")
    if drawn:
        parts.note(f"{drawn} of {len(tracks)} subtitle tracks have no text: their words are pictures")
    return parts.document(total)


def _lines(container: "InputContainer", track: Any) -> Iterator[tuple[float, str]]:
    """Time and words of each subtitle of a track."""
    from av.error import FFmpegError

    if track.codec_context is None:
        return
    container.seek(0)
    begin = container.start_time / 1_000_000 if container.start_time else 0.0
    try:
        for packet in container.demux(track):
            if packet.pts is None or packet.time_base is None:
                continue
            try:
                shown = packet.decode()
            except FFmpegError:
                continue
            at = max(0.0, float(packet.pts * packet.time_base) - begin)
            words = one_line(" ".join(_plain(each) for each in shown))[:LINE_CHARS]
            if words:
                yield at, words
    except FFmpegError:  # truncated: what came before it is kept
        return


def _plain(subtitle: Any) -> str:
    """The words of a subtitle without its styles; empty for a picture."""
    raw: bytes = getattr(subtitle, "dialogue", b"") or getattr(subtitle, "text", b"")
    return _BREAKS.sub(" ", _STYLES.sub("", raw.decode("utf-8", "replace")))


def _pieces(lines: list[tuple[float, str]]) -> Iterator[list[tuple[float, str]]]:
    piece: list[tuple[float, str]] = []
    chars = 0
    for at, line in lines:
        if piece and chars + len(line) > PART_CHARS:
            yield piece
            piece, chars = [], 0
        piece.append((at, line))
        chars += len(line) + 10
    if piece:
        yield piece


def _title(track: Any, piece: list[tuple[float, str]]) -> str:
    language = track.metadata.get("language", "")
    spoken = f" ({language})" if _WORD.fullmatch(language) and language != "und" else ""
    return f"subtitles{spoken} from {clock_time(int(piece[0][0]))} to {clock_time(int(piece[-1][0]))}"
