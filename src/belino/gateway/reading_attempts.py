"""Attempts at reading media, and the texts that were read, as JSON for people and programs."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from belino.domain.media import MediaRef
from belino.domain.reading import AttemptRecord, Reading, ReadingOutcome
from belino.storage.store import Store
from belino.understanding.stored import CAPABILITIES, stored_readings
from belino.understanding.told import told_reading

ATTEMPTS_SHOWN = 100


def attempt_json(number: int, record: AttemptRecord) -> dict[str, object]:
    """One attempt to read a media item: by whom, how it ended, what it cost, and where the media was sent."""
    attempt = record.attempt
    return {
        "id": number,
        "ref": record.ref,
        "channel": str(record.channel),
        "at": _time(record.at),
        "as": str(record.form),
        "provider": attempt.provider,
        "model": attempt.model,
        "outcome": str(attempt.outcome),
        "reason": attempt.reason,
        "milliseconds": attempt.milliseconds,
        "cached": attempt.cached,
        "sent_to": attempt.sent_to,
        "usd": attempt.usd,
        "seconds": record.seconds,
        "pages": record.pages,
        "ahead": record.ahead,
    }


def attempts_json(found: Iterable[tuple[int, AttemptRecord]]) -> list[dict[str, object]]:
    """Several attempts, newest first."""
    return [attempt_json(number, record) for number, record in found]


def sums_json(found: Sequence[tuple[int, AttemptRecord]]) -> dict[str, object]:
    """What these attempts cost together; `usd` is null if some price is unknown."""
    made = [record for _, record in found if not record.attempt.cached]
    paid = [record.attempt.usd for record in made if record.attempt.sent_to]
    return {
        "read": sum(record.attempt.outcome is ReadingOutcome.SUCCESS for _, record in found),
        "failed": sum(record.attempt.outcome is ReadingOutcome.FAILED for _, record in found),
        "seconds": sum(record.seconds for record in made),
        "pages": sum(record.pages for record in made),
        "usd": None if any(usd is None for usd in paid) else sum(usd or 0.0 for usd in paid),
        "sent_to": sorted({record.attempt.sent_to for record in made if record.attempt.sent_to}),
    }


def _time(moment: datetime) -> str:
    return moment.isoformat()


async def readings_of(store: Store, media: Sequence[MediaRef]) -> tuple[Reading, ...]:
    """What was read from the attachments of a message, in the order image, audio, video, document."""
    hashes = [ref.sha256 for ref in media if ref.sha256 is not None]
    texts = await store.texts_of(hashes)
    order = list(CAPABILITIES.values())
    numbered = sorted(enumerate(media), key=lambda each: order.index(CAPABILITIES[each[1].kind]))
    return tuple(
        reading
        for index, ref in numbered
        for reading in (
            *filter(None, [told_reading(ref, index)]),
            *stored_readings(texts.get(ref.sha256 or "", ()), ref.kind, index),
        )
    )


def reading_json(reading: Reading) -> dict[str, object]:
    """A reading of one attachment; its text is untrusted."""
    return {
        "kind": reading.kind,
        "attachment_index": reading.attachment_index,
        "text": reading.text,
        "provider": reading.provider,
        "model": reading.model,
        "uncertain": reading.uncertain,
        "partial": reading.partial,
        "segments": [
            {"start": segment.start, "end": segment.end, "text": segment.text, "speaker": segment.speaker}
            for segment in reading.segments
        ],
    }


async def item_json(store: Store, ref_id: str) -> dict[str, object] | None:
    """One media item with its texts and every attempt to read it; None if there is none of this name."""
    record = await store.find_ref(ref_id)
    if record is None:
        return None
    found = await store.attempts(ref=ref_id, limit=ATTEMPTS_SHOWN)
    ref = record.ref
    return {
        "media": {"ref": ref.id, "kind": ref.kind, "mime": ref.mime, "name": ref.file_name, "outcome": record.outcome},
        "readings": [reading_json(reading) for reading in await readings_of(store, [ref])],
        "attempts": attempts_json(found),
        "sums": sums_json(found),
    }
