"""The words of documents lie in the store: by keyed hash, once for each reading, and gone with it."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from functools import partial
from hashlib import blake2b

import pytest

from belino.domain.media import DocumentText, DocumentUnit, MediaRef, Part
from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import Verdict
from belino.storage import search_passages
from belino.storage.database import Tx
from belino.storage.deletions import forget_bytes
from belino.storage.search_hits import ChannelView
from belino.storage.store import Store

MAIN = ConversationKey(platform="web", account="default", channel="main")
HEARD = Verdict(standing=Standing.OBSERVED, answer=False, reason="overheard")


@pytest.fixture
async def sha256(store: Store, say: Callable[..., Message], photo: Callable[..., MediaRef]) -> str:
    """A document whose bytes are here."""
    taken = await store.take_in(say("1", media=(photo("1"),)), HEARD)
    blob = await store.keep(_chunks(b"%PDF"), mime="application/pdf", limit=1 << 20)
    await store.end_media(taken.refs[0].id, MediaOutcome.HELD, blob=blob)
    return blob.sha256


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def read(store: Store, sha256: str, *pages: str) -> None:
    parts = tuple(Part(number=number, text=page) for number, page in enumerate(pages, 1))
    assert await store.keep_reading(sha256, "text", DocumentText(unit=DocumentUnit.PAGE, total=9, parts=parts))


def numbers_with(word: str) -> Callable[[ChannelView], list[int]]:
    """The parts that have a word."""
    return lambda view: [part.number for part in view.passages.find([view.postings.number(word)])]


async def rows(store: Store, query: str) -> list[sqlite3.Row]:
    return await store._database.read(lambda connection: connection.execute(query).fetchall())


async def test_a_word_is_found_in_the_parts_that_have_it(store: Store, sha256: str) -> None:
    await read(store, sha256, "zebra", "zebra gnu", "gnu")
    assert await store._index.use(MAIN, numbers_with("gnu")) == [2, 3]
    assert await store._index.use(MAIN, numbers_with("okapi")) == []
    assert await store._index.use(MAIN, lambda view: len(view.passages)) == 3


async def test_the_words_lie_in_the_store_only_as_keyed_hashes(store: Store, sha256: str) -> None:
    await read(store, sha256, "zebra")
    await store.index_ahead()
    (row,) = await rows(store, "SELECT * FROM reading_words")
    number = await store._index.use(MAIN, lambda view: view.postings.number("zebra"))
    assert number is not None
    assert row["term"] in (number, number - (1 << 64))
    unkeyed = blake2b(b"zebra", digest_size=8).digest()
    assert row["term"] != int.from_bytes(unkeyed, "big", signed=True)


async def test_a_word_often_on_a_page_says_more_than_once_on_one_as_long(store: Store, sha256: str) -> None:
    filler = "and so it goes on with other things entirely "
    await read(store, sha256, f"zebra {filler * 9}", f"zebra zebra zebra {filler * 9}")
    found = await store._index.use(
        MAIN, lambda view: [part.impact for part in view.passages.find([view.postings.number("zebra")])]
    )
    assert found is not None
    assert found[0] < found[1]


async def test_a_long_part_is_read_to_its_end_and_no_word_is_cut_in_two(store: Store, sha256: str) -> None:
    text = " ".join(f"w{number}" for number in range(9_000))
    await read(store, sha256, text)
    for word in ("w0", "w700", "w4321", "w8999"):
        assert await store._index.use(MAIN, numbers_with(word)) == [1]
    assert len(await rows(store, "SELECT term FROM reading_words")) == 9_000


async def test_a_reading_that_went_on_while_it_was_indexed_is_indexed_again(store: Store, sha256: str) -> None:
    await read(store, sha256, "zebra")
    number = store._index.number
    old = await store._database.read(partial(search_passages.index_reading, reading=1, number=number))
    assert old is not None
    await read(store, sha256, "gnu")
    await store._database.write(partial(search_passages.store_reading, indexed=old))
    assert await store._index.use(MAIN, numbers_with("zebra")) == []
    assert await store._index.use(MAIN, numbers_with("gnu")) == [1]


async def test_a_reading_that_went_while_it_was_indexed_leaves_no_words(store: Store, sha256: str) -> None:
    await read(store, sha256, "zebra")
    indexed = await store._database.read(partial(search_passages.index_reading, reading=1, number=store._index.number))
    assert indexed is not None

    def forget(connection: Tx) -> None:
        connection.execute("DELETE FROM refs")
        forget_bytes(connection, [sha256])

    await store._database.write(forget)
    await store._database.write(partial(search_passages.store_reading, indexed=indexed))
    assert await rows(store, "SELECT * FROM reading_words") == []
    assert (
        await store._database.read(partial(search_passages.index_reading, reading=1, number=store._index.number))
        is None
    )


async def test_words_of_another_version_are_made_again(
    store: Store, sha256: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await read(store, sha256, "zebra")
    await store.index_ahead()
    monkeypatch.setattr(search_passages, "VERSION", f"{search_passages.VERSION}-next")
    assert await store._database.read(partial(search_passages.unindexed, channel=None)) == [1]
    assert await store._index.use(MAIN, numbers_with("zebra")) == [1]
    assert await store._database.read(partial(search_passages.unindexed, channel=None)) == []


async def test_index_ahead_leaves_nothing_for_the_first_question(store: Store, sha256: str) -> None:
    await read(store, sha256, "zebra")
    await store.index_ahead()
    assert await store._database.read(partial(search_passages.unindexed, channel=None)) == []


async def test_a_full_disk_costs_the_words_of_documents_and_not_the_answer(
    store: Store, sha256: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await read(store, sha256, "zebra")

    def full(connection: Tx, indexed: search_passages.IndexedReading) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(search_passages, "store_reading", full)
    assert await store._index.use(MAIN, lambda view: len(view.postings)) == 1
    assert "could not be stored" in caplog.text
