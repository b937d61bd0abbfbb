"""What was tried and heard is stored beside the ref, goes with it, and a deletion lowers no daily limit."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from belino.domain.media import DocumentText, DocumentUnit, MediaRef, Part
from belino.domain.message import ConversationKey, Deletion, Edit, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.reading import (
    Attempt,
    AttemptRecord,
    ReadingForm,
    ReadingOutcome,
    ReadSegment,
    Spent,
    TranscriptWindow,
)
from belino.domain.search import SearchIntent, SearchQuery
from belino.domain.stored import Verdict
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.engines import Engine

MAIN = ConversationKey(platform="web", account="default", channel="main")
OBSERVE = Verdict(standing=Standing.OBSERVED, answer=False, reason="overheard")
SAID = TranscriptWindow(
    start=60.0,
    end=120.0,
    language="en",
    uncertain=True,
    segments=(
        ReadSegment(text="before", start=59.0, end=60.0),
        ReadSegment(text="The zebra", start=60.25, end=61.0, speaker="A"),
        ReadSegment(text="has stripes.", start=60.75, end=61.5, speaker="B"),
        ReadSegment(text="A gnu has none.", start=118.5, end=121.0),
        ReadSegment(text="after", start=121.0, end=122.0),
    ),
)

TEXT = DocumentText(
    unit=DocumentUnit.SECOND,
    total=131,
    parts=(Part(number=61, text="The zebra has stripes.", title="A, B"), Part(number=119, text="A gnu has none.")),
)


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def sent(store: Store, message: Message, data: bytes = b"OggS") -> tuple[str, str]:
    taken = await store.take_in(message, OBSERVE)
    blob = await store.keep(_chunks(data), mime="audio/ogg", limit=1 << 20)
    await store.end_media(taken.refs[0].id, MediaOutcome.HELD, blob=blob)
    return taken.refs[0].id, blob.sha256


@pytest.fixture
async def voice(store: Store, say: Callable[..., Message], photo: Callable[..., MediaRef]) -> tuple[str, str]:
    return await sent(store, say("1", media=(photo("1"),)))


def tried(ref: str, sha256: str, clock: FakeClock, **facts: object) -> AttemptRecord:
    attempt = Attempt(
        provider="deepgram",
        model="nova-3",
        outcome=ReadingOutcome.SUCCESS,
        milliseconds=812,
        sent_to="api.reader.test",
        usd=0.25,
    )
    record = AttemptRecord(
        ref=ref,
        sha256=sha256,
        channel=MAIN,
        at=clock.now(),
        form=ReadingForm.TRANSCRIPT,
        attempt=attempt,
        seconds=30.0,
        pages=2,
    )
    return replace(record, **facts)  # type: ignore[arg-type]


async def test_a_transcript_is_found_as_it_was_heard(store: Store, voice: tuple[str, str]) -> None:
    _, sha256 = voice
    assert await store.keep_transcript(sha256, "t", SAID, TEXT)
    assert await store.transcript(sha256, "t") == SAID
    assert await store.reading(sha256, "t") == TEXT
    assert await store.transcript(sha256, "other") is None


async def test_a_spoken_word_is_found_with_the_second_in_which_it_is_said(store: Store, voice: tuple[str, str]) -> None:
    ref, sha256 = voice
    await store.keep_transcript(sha256, "t", SAID, TEXT)
    (hit,) = (await store.search(MAIN, SearchQuery(intents=(SearchIntent(text="gnu"),)))).hits
    assert hit.passage is not None
    assert (hit.passage.ref, hit.passage.unit, hit.passage.number) == (ref, DocumentUnit.SECOND, 119)


@pytest.mark.parametrize("how", ["deleted", "edited"])
async def test_a_withdrawn_voice_message_leaves_no_word_and_no_attempt(
    store: Store,
    engine: Engine,
    voice: tuple[str, str],
    photo: Callable[..., MediaRef],
    clock: FakeClock,
    how: str,
) -> None:
    ref, sha256 = voice
    await store.keep_transcript(sha256, "t", SAID, TEXT)
    await store.note_attempts([tried(ref, sha256, clock)])
    await store.index_ahead()
    (message,) = await store.history(MAIN)
    at: dict[str, Any] = {"conversation": MAIN, "id": "x", "message_id": "1", "sent": clock.now()}
    if how == "deleted":
        await store.take_in(Deletion(author=None, **at), OBSERVE)
    else:
        other = photo("1", "another file")
        await store.take_in(Edit(author=message.author, text="look", media=(other,), **at), OBSERVE)
    assert await store.attempts() == ()
    assert await store.transcript(sha256, "t") is None
    dump = await engine.dump()
    for word in ("zebra", "stripes", "nova-3", "api.reader.test"):
        assert word not in dump
    assert not await engine.rows("SELECT * FROM reading_words")


async def test_what_another_message_still_names_stays(
    store: Store, voice: tuple[str, str], say: Callable[..., Message], photo: Callable[..., MediaRef], clock: FakeClock
) -> None:
    ref, sha256 = voice
    other, same = await sent(store, say("2", media=(photo("2"),)))
    assert same == sha256
    await store.keep_transcript(sha256, "t", SAID, TEXT)
    await store.note_attempts([tried(ref, sha256, clock), tried(other, sha256, clock)])
    deletion = Deletion(conversation=MAIN, id="d", message_id="1", author=None, sent=clock.now())
    await store.take_in(deletion, OBSERVE)
    assert [record.ref for _, record in await store.attempts()] == [other]
    assert await store.transcript(sha256, "t") == SAID


async def test_attempts_are_listed_newest_first_by_channel_and_ref_page_by_page(
    store: Store, voice: tuple[str, str], clock: FakeClock
) -> None:
    ref, sha256 = voice
    failed = Attempt(provider="openai", model="whisper-1", outcome=ReadingOutcome.FAILED, reason="it hung")
    records = [tried(ref, sha256, clock, attempt=failed, seconds=0.0, pages=0), tried(ref, sha256, clock)]
    await store.note_attempts(records)
    listed = await store.attempts(MAIN)
    assert [record for _, record in listed] == records[::-1]
    assert [record for _, record in await store.attempts(ref=ref, limit=1)] == records[1:]
    assert [record for _, record in await store.attempts(MAIN, before=listed[0][0])] == records[:1]
    assert await store.attempts(replace(MAIN, channel="side")) == ()
    assert await store.attempts(ref="web_other") == ()


async def test_the_cost_of_a_day_is_the_sum_of_its_attempts_also_of_deleted_messages(
    store: Store, voice: tuple[str, str], clock: FakeClock
) -> None:
    ref, sha256 = voice
    await store.note_attempts([tried(ref, sha256, clock)])
    clock.shift(3600)
    await store.note_attempts([tried(ref, sha256, clock)])
    deletion = Deletion(conversation=MAIN, id="d", message_id="1", author=None, sent=clock.now())
    await store.take_in(deletion, OBSERVE)
    now = clock.now()
    assert await store.spent_on_readings(MAIN, now - timedelta(days=1)) == Spent(seconds=60.0, pages=4, usd=0.5)
    assert await store.spent_on_readings(MAIN, now - timedelta(minutes=1)) == Spent(seconds=30.0, pages=2, usd=0.25)
    assert await store.spent_on_readings(replace(MAIN, channel="side"), now - timedelta(days=1)) == Spent()


async def test_an_attempt_on_a_ref_that_was_withdrawn_meanwhile_is_counted_and_not_stored(
    store: Store, voice: tuple[str, str], clock: FakeClock
) -> None:
    ref, sha256 = voice
    deletion = Deletion(conversation=MAIN, id="d", message_id="1", author=None, sent=clock.now())
    await store.take_in(deletion, OBSERVE)
    await store.note_attempts([tried(ref, sha256, clock)])
    assert not await store.keep_transcript(sha256, "t", SAID, TEXT)
    assert await store.attempts() == ()
    assert (await store.spent_on_readings(MAIN, clock.now() - timedelta(days=1))).usd == 0.25


async def test_costs_are_kept_no_longer_than_a_limit_needs(
    store: Store, engine: Engine, voice: tuple[str, str], clock: FakeClock
) -> None:
    ref, sha256 = voice
    await store.note_attempts([tried(ref, sha256, clock)])
    clock.shift(3 * 86_400)
    await store.note_attempts([tried(ref, sha256, clock)])
    assert await engine.rows("SELECT count(*) FROM reading_costs") == [(1,)]


async def test_half_a_surrogate_pair_and_nul_in_a_transcript_are_stored(store: Store, voice: tuple[str, str]) -> None:
    _, sha256 = voice
    window = replace(SAID, segments=(ReadSegment(text="a\ud800b\0c", start=60.0, end=61.0),))
    await store.keep_transcript(sha256, "t", window, TEXT)
    found = await store.transcript(sha256, "t")
    assert found is not None
    assert found.segments[0].text == "a?b\0c"
