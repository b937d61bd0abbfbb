"""Told transcripts: what platforms themselves have heard in media, as readings without bytes and calls."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from belino.domain.errors import StoreError
from belino.domain.media import DocumentText, DocumentUnit, MediaRef, Part
from belino.domain.message import ConversationKey
from belino.domain.reading import (
    KINDS,
    AttachmentRecord,
    Attempt,
    AttemptRecord,
    MediaCapability,
    Reading,
    ReadingForm,
    ReadingOutcome,
)
from belino.domain.stored import RefRecord
from belino.storage.transcripts import TranscriptVerbs
from belino.understanding.request import ItemReading, MessageReadings
from belino.understanding.stored import CAPABILITIES

BY_PLATFORM = "told by the platform"
BEGINNING = "told by the platform, its beginning only"


def told_reading(ref: MediaRef, index: int = 0) -> Reading | None:
    """What the platform itself has heard in a media item; None if it told nothing."""
    if not ref.transcript:
        return None
    return Reading(
        kind=f"{CAPABILITIES[ref.kind]}.{KINDS[ReadingForm.TRANSCRIPT]}",
        text=ref.transcript,
        provider=ref.platform,
        model="",
        attachment_index=index,
        partial=ref.is_transcript_partial,
    )


def told_item(ref: MediaRef) -> ItemReading | None:
    """The platform's transcript as a reading on request; None if it told nothing, or only the beginning."""
    if not ref.transcript or ref.is_transcript_partial:
        return None
    part = Part(number=1, text=ref.transcript)
    return ItemReading(
        form=ReadingForm.TRANSCRIPT,
        capability=CAPABILITIES[ref.kind],
        text=ref.transcript,
        document=DocumentText(unit=DocumentUnit.PART, total=1, parts=(part,)),
        provider=ref.platform,
        model="",
        cached=True,
    )


def told_attempt(ref: MediaRef) -> Attempt:
    """The platform's transcript as an attempt that cost nothing."""
    reason = BEGINNING if ref.is_transcript_partial else BY_PLATFORM
    return Attempt(provider=ref.platform, model="", outcome=ReadingOutcome.SUCCESS, reason=reason, cached=True)


async def note_told(
    store: TranscriptVerbs, conversation: ConversationKey, told: Iterable[RefRecord], now: datetime
) -> None:
    """Store that these were read; a reading matters more than its record."""
    records = [
        AttemptRecord(
            ref=record.ref.id,
            sha256=record.ref.sha256 or "",
            channel=conversation.whole_channel,
            at=now,
            form=ReadingForm.TRANSCRIPT,
            attempt=told_attempt(record.ref),
        )
        for record in told
    ]
    if records:
        with suppress(StoreError):
            await store.note_attempts(records)


def with_told(read: MessageReadings, told: Mapping[int, RefRecord]) -> MessageReadings:
    """The readings of a message, with those that came with it; they need no provider."""
    for index, record in told.items():
        read = _with_one(read, index, record)
    return read


def _with_one(read: MessageReadings, index: int, record: RefRecord) -> MessageReadings:
    ref = record.ref
    capability = CAPABILITIES[ref.kind]
    reading = told_reading(ref, index)
    assert reading is not None
    entry = AttachmentRecord(index=index, ref=ref.id, attempts=(told_attempt(ref),), chosen=0)
    decisions = tuple(
        replace(each, outcome=ReadingOutcome.SUCCESS, reason="", attachments=(*each.attachments, entry))
        if each.capability is capability
        else each
        for each in read.decisions
    )
    order = list(MediaCapability)
    readings = sorted(
        (*read.readings, reading),
        key=lambda each: (order.index(MediaCapability(each.kind.partition(".")[0])), each.attachment_index),
    )
    return replace(read, decisions=decisions, readings=tuple(readings))
