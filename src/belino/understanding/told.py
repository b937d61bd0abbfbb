"""Told transcripts: what platforms themselves have heard in media, as readings without bytes and calls."""

from collections.abc import Mapping
from dataclasses import replace

from belino.domain.reading import (
    KINDS,
    AttachmentRecord,
    Attempt,
    MediaCapability,
    Reading,
    ReadingForm,
    ReadingOutcome,
)
from belino.domain.stored import RefRecord
from belino.understanding.request import MessageReadings
from belino.understanding.stored import CAPABILITIES

BY_PLATFORM = "told by the platform"


def with_told(read: MessageReadings, told: Mapping[int, RefRecord]) -> MessageReadings:
    """The readings of a message, with those that came with it; they need no provider."""
    for index, record in told.items():
        read = _with_one(read, index, record)
    return read


def _with_one(read: MessageReadings, index: int, record: RefRecord) -> MessageReadings:
    ref = record.ref
    capability = CAPABILITIES[ref.kind]
    reading = Reading(
        kind=f"{capability}.{KINDS[ReadingForm.TRANSCRIPT]}",
        text=ref.transcript or "",
        provider=ref.platform,
        model="",
        attachment_index=index,
    )
    attempt = Attempt(provider=ref.platform, model="", outcome=ReadingOutcome.SUCCESS, reason=BY_PLATFORM, cached=True)
    entry = AttachmentRecord(index=index, ref=ref.id, attempts=(attempt,), chosen=0)
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
