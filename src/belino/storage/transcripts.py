"""Transcripts: the segments of a reading with their exact times, beside its parts, which are whole seconds.

Their verbs include those of the attempts to read.
"""

import math
from collections.abc import Sequence
from datetime import datetime

import orjson

from belino.domain.media import DocumentText, DocumentUnit, Part, Unread
from belino.domain.message import ConversationKey
from belino.domain.reading import AttemptRecord, ReadSegment, Spent, TranscriptWindow
from belino.storage import reading_attempts
from belino.storage.database import Tx
from belino.storage.readings import ReadingVerbs, keep_reading
from belino.storage.text import sanitized

NO_SPEECH = "no speech"


class TranscriptVerbs(ReadingVerbs):
    """What providers have read, and what was tried."""

    async def transcript(self, sha256: str, reader: str) -> TranscriptWindow | None:
        """A window of the transcript of these bytes, if it was read."""
        return await self._database.read(lambda tx: find_transcript(tx, sha256, reader))

    async def keep_transcript(
        self, sha256: str, reader: str, window: TranscriptWindow, *, seconds: float | None = None
    ) -> bool:
        """Store a window of a transcript, of a sound of this length; False as for `keep_reading`."""
        heard = sanitized(window)
        return await self._database.write(lambda tx: keep_transcript(tx, sha256, reader, heard, seconds))

    async def note_attempts(self, records: Sequence[AttemptRecord]) -> None:
        """Store attempts to read refs, and count their cost toward the channel's daily limits."""
        tried, now = tuple(sanitized(record) for record in records), self._clock.now()
        await self._database.write(lambda tx: reading_attempts.insert_attempts(tx, tried, now))

    async def attempts(
        self,
        channel: ConversationKey | None = None,
        *,
        ref: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[tuple[int, AttemptRecord], ...]:
        """The newest attempts, of one channel or one ref, each with a number; `before` it for the next page."""
        return await self._database.read(
            lambda tx: reading_attempts.find_attempts(tx, channel=channel, ref=ref, before=before, limit=limit)
        )

    async def spent_on_readings(self, channel: ConversationKey, since: datetime) -> Spent:
        """How much of a channel's media providers have read since then."""
        return await self._database.read(lambda tx: reading_attempts.sum_costs(tx, channel, since))


def keep_transcript(tx: Tx, sha256: str, reader: str, window: TranscriptWindow, seconds: float | None) -> bool:
    """Store a window of a transcript; its own stretch can be searched. False if no ref names the bytes any more."""
    if not keep_reading(tx, sha256, reader, in_seconds(window, seconds)):
        return False
    reading = tx.execute("SELECT id FROM readings WHERE sha256 = ? AND reader = ?", (sha256, reader)).fetchone()["id"]
    tx.execute(
        "INSERT INTO transcripts (reading, told) VALUES (?, ?) "
        "ON CONFLICT (reading) DO UPDATE SET told = excluded.told",
        (reading, _packed(window)),
    )
    return True


def find_transcript(tx: Tx, sha256: str, reader: str) -> TranscriptWindow | None:
    """A window of a transcript, as it was stored."""
    row = tx.execute(
        "SELECT t.told FROM transcripts t JOIN readings d ON d.id = t.reading WHERE d.sha256 = ? AND d.reader = ?",
        (sha256, reader),
    ).fetchone()
    return None if row is None else _unpacked(row["told"])


def in_seconds(window: TranscriptWindow, seconds: float | None) -> DocumentText:
    """The stretch of a window as a text whose parts are the seconds in which something begins to be said."""
    own = [segment for segment in window.segments if window.start <= segment.start < window.end]
    parts = seconds_of(own)
    return DocumentText(
        unit=DocumentUnit.SECOND,
        total=max(math.ceil(seconds if seconds is not None else window.end), parts[-1].number if parts else 1),
        parts=parts,
        unread=None if parts else Unread.NO_TEXT,
        reason="" if parts else NO_SPEECH,
    )


def seconds_of(segments: Sequence[ReadSegment]) -> tuple[Part, ...]:
    """The seconds in which segments begin, those of the same second and their speakers joined."""
    joined: dict[int, Part] = {}
    for segment in segments:
        if not segment.text.strip():
            continue
        number = int(segment.start) + 1
        before = joined.get(number)
        text = segment.text.strip() if before is None else f"{before.text} {segment.text.strip()}"
        named = (before.title if before is not None else "", segment.speaker)
        title = ", ".join(dict.fromkeys(name for name in named if name))
        joined[number] = Part(number=number, text=text, title=title)
    return tuple(joined[number] for number in sorted(joined))


def _packed(window: TranscriptWindow) -> bytes:
    segments = [[each.start, each.end, each.speaker, each.text] for each in window.segments]
    return orjson.dumps([window.start, window.end, window.language, window.uncertain, segments])


def _unpacked(told: bytes) -> TranscriptWindow:
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
