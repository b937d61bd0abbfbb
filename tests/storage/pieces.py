"""Bytes that come piece by piece, whole or not; and what was read from some of them."""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace

from belino.domain.media import Blob, DocumentText, DocumentUnit, MediaRef, Part
from belino.domain.message import ConversationKey
from belino.domain.reading import Attempt, AttemptRecord, ReadingForm, ReadingOutcome, TranscriptWindow
from belino.storage.sqlite import SqliteDatabase
from belino.storage.store import Store


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def breaking(*pieces: bytes) -> AsyncIterator[bytes]:
    """These, and then no more."""
    for piece in pieces:
        yield piece
    raise ConnectionError("the line went dead")


async def keep(store: Store, body: bytes) -> Blob:
    return await store.keep(chunks(body), mime="a/b", limit=1000)


async def read_aloud(store: Store, ref: MediaRef) -> None:
    """One of everything that is stored of a reading: a transcript of a ref, two attempts, their cost, and a speech."""
    assert ref.sha256 is not None
    text = DocumentText(unit=DocumentUnit.SECOND, total=1, parts=(Part(number=1, text="hello"),))
    window = TranscriptWindow(start=0.0, end=1.0)
    assert await store.keep_transcript(ref.sha256, "transcript.1:ear:m:0:w", window, text)
    tried = (
        Attempt(provider="ear", model="m", outcome=ReadingOutcome.FAILED, reason="deaf"),
        Attempt(provider="ear", model="m", outcome=ReadingOutcome.SUCCESS, usd=0.5),
    )
    record = AttemptRecord(
        ref=ref.id,
        sha256=ref.sha256,
        channel=ConversationKey(platform=ref.platform, account=ref.account, channel=ref.channel_id),
        at=ref.created,
        form=ReadingForm.TRANSCRIPT,
        attempt=tried[0],
        seconds=1.0,
    )
    await store.note_attempts([replace(record, attempt=attempt) for attempt in tried])
    blob = await store.blob(ref.sha256)
    assert blob is not None
    await store.keep_speech("a keyed hash", blob)


def raw(store: Store) -> sqlite3.Connection:
    """The writer's connection."""
    database = store._database
    assert isinstance(database, SqliteDatabase)
    return database._connection
