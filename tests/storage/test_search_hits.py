"""Search through the store: a value in, plain values out, and no error of the database's own."""

from collections.abc import Callable

import pytest

from belino.domain.errors import StoreError
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.search import Coverage, HitKind, SearchHits, SearchIntent, SearchQuery
from belino.domain.stored import Verdict
from belino.storage.store import Store

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")
Say = Callable[..., Message]


async def test_hits_bring_their_message_score_reason_and_thread(store: Store, say: Say) -> None:
    await store.take_in(say("1", "the harbor is closed"), OBSERVE)
    await store.take_in(say("2", "until when?", reply_to="1", author=Author(id="u-bob", name="Bob")), OBSERVE)
    found = await store.search(MAIN, SearchQuery(intents=(SearchIntent(text="harbor"),)))
    first, second = found.hits
    assert (first.message.id, first.reason) == ("1", "keyword:harbor")
    assert first.thread is not None and first.thread.participant_names == ("Bob",)
    assert first.score > second.score > 0
    assert (found.total, found.newest, found.coverage.messages_scanned) == (2, 2, 2)


async def test_a_page_is_what_offset_and_limit_say(store: Store, say: Say) -> None:
    for number in range(1, 10):
        await store.take_in(say(str(number), f"harbor {number}"), OBSERVE)
    whole = await store.search(MAIN, SearchQuery(intents=(SearchIntent(text="harbor"),), limit=50))
    pages = [
        await store.search(MAIN, SearchQuery(intents=(SearchIntent(text="harbor"),), offset=at, limit=3))
        for at in (0, 3, 6, 9)
    ]
    assert [hit for page in pages for hit in page.hits] == list(whole.hits)
    assert {page.total for page in pages} == {9}


async def test_an_unknown_channel_has_no_hits(store: Store) -> None:
    nothing = SearchHits(hits=(), total=0, coverage=Coverage(messages_scanned=0, time_range=None), newest=0)
    assert await store.search(OTHER, SearchQuery(intents=(SearchIntent(text="harbor"),))) == nothing


@pytest.mark.parametrize("table", ["search_stale", "search_segments", "readings"])
async def test_an_error_of_the_database_is_one_of_ours(store: Store, say: Say, table: str) -> None:
    await store.take_in(say("1", "the harbor is closed"), OBSERVE)
    await store._database.write(lambda tx: tx.execute(f"ALTER TABLE {table} RENAME TO elsewhere"))
    with pytest.raises(StoreError):
        await store.search(MAIN, SearchQuery(intents=(SearchIntent(text="harbor"),)))
    with pytest.raises(StoreError):
        await store.index_ahead()


async def test_hits_say_whether_they_were_found_and_by_which_intent(store: Store, say: Say) -> None:
    bob = Author(id="u-bob", name="Bob")
    texts = ["where is the harbor?", "behind the hill", "the ferry is late", "nothing new"]
    for number, text in enumerate(texts, 1):
        await store.take_in(say(str(number), text, author=bob if number == 2 else say("0").author), OBSERVE)
    found = await store.search(MAIN, SearchQuery(intents=(SearchIntent(text="ferry"), SearchIntent(text="harbor"))))
    kinds = {hit.message.id: (hit.kind, hit.intent, hit.reason) for hit in found.hits}
    assert kinds["3"] == (HitKind.FOUND, 0, "keyword:ferry")
    assert kinds["1"] == (HitKind.FOUND, 1, "keyword:harbor")
    assert kinds["2"][0] is HitKind.NEARBY
    assert (found.found, found.total) == (2, 4)


async def test_no_match_is_no_match(store: Store, say: Say) -> None:
    for number in range(1, 8):
        await store.take_in(say(str(number), f"harbor {number}"), OBSERVE)
    nothing = await store.search(MAIN, SearchQuery(intents=(SearchIntent(text="zyzzyva quokka"),)))
    assert (nothing.total, nothing.found, nothing.coverage.messages_scanned) == (0, 0, 7)
    assert [(hit.message.id, hit.kind, hit.reason) for hit in nothing.hits] == [
        (number, HitKind.RECENT, "recent_activity") for number in ("7", "6", "5")
    ]
