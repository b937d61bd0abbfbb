"""State written by a released version opens, with everything it held."""

import tarfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.reply import ParcelState
from belino.domain.search import SearchIntent, SearchQuery
from belino.domain.stored import ClaimedParcel, ClaimedTurn
from belino.storage.audit import audit_home
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from blob_files import content_of

SAMPLES = Path(__file__).parent.parent / "samples" / "state"
MAIN, WAITS, RUNS, FAILS = (
    ConversationKey(platform="web", account="default", channel=name) for name in ("main", "waits", "runs", "fails")
)
TEAM = ConversationKey(platform="slack", account="default", channel="C1")
PICTURE = b"\x89PNG picture"
TOKEN = "frAA8x896e_Mdv_q5QyrQiNLwi9T5TxvXr0hRsmQnQI"


@pytest.fixture
def released(tmp_path: Path) -> Iterator[Home]:
    """A state folder that version 0.7.0 made and was killed over: one turn was running."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    with tarfile.open(SAMPLES / "0.7.0.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    yield Home.at(folder)


@pytest.fixture
async def store(released: Home, clock: FakeClock) -> Store:
    clock.shift(60)
    return await open_store(released, clock=clock)


async def test_messages_threads_edits_and_deletions_are_as_they_were(store: Store) -> None:
    history = await store.history(MAIN)
    assert [(message.id, message.text) for message in history] == [
        ("1", "What is in this picture?"),
        ("m-p1", "A **cat**."),
    ]
    team = await store.history(TEAM)
    assert [(message.id, message.text, message.deleted is not None) for message in team] == [
        ("1.1", "The train to Bergen leaves at nine", False),
        ("1.3", "", True),
        ("1.4", "typo here", False),
    ]
    thread = await store.thread(TEAM, "1.1")
    assert thread is not None
    assert [message.text for message in thread.replies] == ["Which platform?"]
    await store.close()


async def test_its_messages_have_short_ids(store: Store) -> None:
    for conversation in (MAIN, TEAM):
        for message in await store.history(conversation):
            named = await store.messages_named(conversation, [message.short_id])
            assert [found.id for found in named[message.short_id]] == [message.id]
    await store.close()


async def test_media_keep_their_bytes_and_their_sealed_keys(store: Store) -> None:
    (ref,) = await store.refs(MAIN)
    assert (ref.outcome, ref.ref.sealed) == (MediaOutcome.HELD, {"media_key": "secret"})
    assert ref.ref.sha256 is not None
    blob = await store.blob(ref.ref.sha256)
    assert blob is not None
    assert await content_of(store, blob) == PICTURE
    await store.close()


async def test_its_turns_go_on_where_they_were(store: Store, clock: FakeClock) -> None:
    assert await store.recover(store.instance) == 1
    running = await store.claim_turn(RUNS, clock.now(), owner=store.instance, alone=True)
    assert isinstance(running, ClaimedTurn)
    assert (running.suspect, running.interruptions, running.fence) == (True, 1, 1)
    waiting = await store.claim_turn(WAITS, clock.now(), owner=store.instance)
    assert isinstance(waiting, ClaimedTurn)
    (failed,) = await store.retry_turn(FAILS, "4")
    assert failed.text == "I fail"
    session = await store.session(MAIN)
    assert (session.memory, session.turns) == (b"remembered", 1)
    await store.close()


async def test_its_parcels_cursors_and_tokens_still_hold(store: Store, clock: FakeClock) -> None:
    (unsent,) = await store.parcels(unsent=True)
    assert (unsent.state, unsent.text) == (ParcelState.READY, "later")
    await store.recover_parcels(clock.now() - timedelta(hours=1), held="too old", uncertain="too old")
    claimed = await store.claim_parcel(MAIN, clock.now(), owner="test")
    assert isinstance(claimed, ClaimedParcel)
    assert [file.name for file in claimed.parcel.files] == ["photo.png"]
    assert await store.cursor("slack", "default") == "cursor-9"
    grant = await store.check(TOKEN)
    assert grant is not None
    assert grant.conversation == MAIN
    await store.close()


async def test_its_messages_are_found(store: Store) -> None:
    hits = await store.search(TEAM, SearchQuery(intents=(SearchIntent(text="train to Bergen"),)))
    assert [hit.message.id for hit in hits.hits][:1] == ["1.1"]
    gone = await store.search(TEAM, SearchQuery(intents=(SearchIntent(text="goes away"),)))
    assert "1.3" not in {hit.message.id for hit in gone.hits}
    await store.close()


async def test_nothing_of_it_is_unaccounted_for(store: Store, released: Home) -> None:
    counts = await store.counts()
    assert counts["turns_answered"] == counts["turns_failed"] == 1
    assert (await store.audit()).is_balanced
    await store.close()
    assert audit_home(released).is_balanced
