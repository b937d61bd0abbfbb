"""Transcript rows: the windows of a transcript, and the words of voice messages that are put together from them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import orjson

from belino.domain.media import MediaKind
from belino.domain.message import SpokenText
from belino.domain.reading import ReadSegment, TranscriptWindow
from belino.domain.transcript import between, stitched, stretches, whole_text
from belino.storage.database import TableRow, Tx
from belino.storage.dialect import marks

Place = TypeVar("Place")

_TOUCH = 0.001
"""Seconds by which the ends of two windows that meet may differ."""


def packed(window: TranscriptWindow) -> bytes:
    """A window as it is stored."""
    segments = [[each.start, each.end, each.speaker, each.text] for each in window.segments]
    return orjson.dumps([window.start, window.end, window.language, window.uncertain, segments])


def unpacked(told: bytes) -> TranscriptWindow:
    """The window that was packed."""
    start, end, language, uncertain, segments = orjson.loads(told)
    return TranscriptWindow(
        start=start,
        end=end,
        language=language,
        uncertain=uncertain,
        segments=tuple(
            ReadSegment(start=begins, end=ends, speaker=speaker, text=text) for begins, ends, speaker, text in segments
        ),
    )


def find_transcript(tx: Tx, sha256: str, reader: str) -> TranscriptWindow | None:
    """A window of a transcript, as it was stored."""
    row = tx.execute(
        "SELECT t.told FROM transcripts t JOIN readings d ON d.id = t.reading WHERE d.sha256 = ? AND d.reader = ?",
        (sha256, reader),
    ).fetchone()
    return None if row is None else unpacked(row["told"])


def spoken_in(tx: Tx, voices: Mapping[Place, Sequence[str]]) -> Mapping[Place, SpokenText]:
    """The words of voice messages, by the same keys as their hashes; nothing for those that were not read."""
    heard = _heard(tx, {sha256 for own in voices.values() for sha256 in own})
    said = {place: [heard[sha256] for sha256 in own if sha256 in heard] for place, own in voices.items()}
    return {place: _together(texts) for place, texts in said.items() if texts}


def last_spoken(tx: Tx, messages: Sequence[int]) -> Mapping[int, str]:
    """The words of these messages' own voice messages, by row id."""
    rows = tx.execute(
        "SELECT b.message, r.sha256 FROM message_refs b JOIN refs r ON r.seq = b.ref "
        f"WHERE b.message IN ({marks(messages)}) AND b.role = 'own' AND r.kind = ? AND r.sha256 IS NOT NULL "
        "ORDER BY b.message, b.position",
        (*messages, MediaKind.VOICE),
    ).fetchall()
    heard = _heard(tx, {row["sha256"] for row in rows})
    found: dict[int, list[SpokenText]] = {}
    for row in rows:
        if row["sha256"] in heard:
            found.setdefault(row["message"], []).append(heard[row["sha256"]])
    return {message: _together(texts).text for message, texts in found.items()}


def _heard(tx: Tx, sha256s: Iterable[str]) -> Mapping[str, SpokenText]:
    """What is said in these bytes: the newest transcript, if several providers made one."""
    wanted = tuple(sorted(sha256s))
    if not wanted:
        return {}
    rows = tx.execute(
        "SELECT d.sha256, d.reader, d.total, t.told FROM readings d JOIN transcripts t ON t.reading = d.id "
        f"WHERE d.sha256 IN ({marks(wanted)}) ORDER BY d.id",
        wanted,
    )
    by_reader: dict[str, dict[str, list[TableRow]]] = {}
    for row in rows:
        # The last part of a reader's key is the window.
        reader = row["reader"].rpartition(":")[0]
        by_reader.setdefault(row["sha256"], {}).setdefault(reader, []).append(row)
    newest = {sha256: list(found.values())[-1] for sha256, found in by_reader.items()}
    texts = {sha256: _spoken(windows) for sha256, windows in newest.items()}
    return {sha256: text for sha256, text in texts.items() if text.text}


def _spoken(rows: Sequence[TableRow]) -> SpokenText:
    windows = sorted((unpacked(row["told"]) for row in rows), key=lambda window: window.start)
    # The total is the length of the sound in seconds, rounded up.
    partial = (
        windows[0].start > 0
        or any(after.start - before.end > _TOUCH for before, after in pairwise(windows))
        or windows[-1].end <= max(row["total"] for row in rows) - 1
    )
    # The last window has heard a little beyond its end.
    said = between(stitched(windows), windows[0].start, windows[-1].end if partial else None)
    uncertain = any(window.uncertain for window in windows)
    return SpokenText(text=whole_text(stretches(said)), uncertain=uncertain, partial=partial)


def _together(texts: Sequence[SpokenText]) -> SpokenText:
    if len(texts) == 1:
        return texts[0]
    return SpokenText(
        text="\n".join(each.text for each in texts),
        uncertain=any(each.uncertain for each in texts),
        partial=any(each.partial for each in texts),
    )
