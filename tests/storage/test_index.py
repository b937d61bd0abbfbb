"""The word index: caught up on use, stored in stretches, true to every change, and one channel's own."""

import random
import sqlite3
import tracemalloc
from array import array
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from itertools import pairwise

import pytest

from belino.domain.concordance import Concordance
from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Deletion, Edit, Message
from belino.domain.outcome import Standing
from belino.domain.stored import StoredMessage, Verdict
from belino.storage import index
from belino.storage.concordance import ChannelConcordance
from belino.storage.home import Home
from belino.storage.segment import Entry, build, merge, unpack
from belino.storage.sqlite import SqliteStore, open_store
from belino.testing.clock import FakeClock

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")
ANNA = Author(id="u-anna", name="Anna")
WORDS = ("apple", "bridge", "candle", "dragon", "engine", "forest", "garden", "harbor", "island", "jacket")

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def seqs_with(store: SqliteStore, term: str, channel: ConversationKey = MAIN) -> list[int] | None:
    """The seqs of the messages that the index has under a term."""

    def look(concordance: Concordance) -> list[int]:
        found = [base + place for base, places, _ in concordance.postings(concordance.number(term)) for place in places]
        return sorted(concordance.seqs[place] for place in found)

    return await store.consult(channel, look)


def numbered(seq: int) -> Callable[[Concordance], tuple[StoredMessage, ...]]:
    """Asks for the message of a seq."""
    return lambda index: index.records.numbered([seq])


async def talk(store: SqliteStore, say: Say, count: int, channel: ConversationKey = MAIN, start: int = 1) -> None:
    """Messages 1, 2, …, each with one of the words, and a number of its own."""
    texts = [f"{WORDS[number % len(WORDS)]} n{number}x" for number in range(start, start + count)]
    messages = [say(str(number), text, conversation=channel) for number, text in enumerate(texts, start)]
    await store.take_history(channel, messages)


def stretches(home: Home) -> list[tuple[int, int]]:
    with closing(sqlite3.connect(home.database)) as connection:
        return connection.execute("SELECT first, last FROM search_segments ORDER BY channel, first").fetchall()


def notes(home: Home) -> int:
    with closing(sqlite3.connect(home.database)) as connection:
        return int(connection.execute("SELECT count(*) FROM search_stale").fetchone()[0])


def edit(message_id: str, text: str, clock: FakeClock, author: Author = ANNA) -> Edit:
    clock.shift(1)
    return Edit(
        conversation=MAIN,
        id=f"{message_id}@{clock.now()}",
        message_id=message_id,
        author=author,
        sent=clock.now(),
        text=text,
    )


def deletion(message_id: str, clock: FakeClock) -> Deletion:
    return Deletion(conversation=MAIN, id=f"-{message_id}", message_id=message_id, author=ANNA, sent=clock.now())


async def test_a_message_is_found_as_soon_as_it_is_stored(store: SqliteStore, say: Say) -> None:
    await store.take_in(say("1", "the harbor is closed"), OBSERVE)
    assert await seqs_with(store, "harbor") == [1]
    await store.take_in(say("2", "which harbor?"), OBSERVE)
    assert await seqs_with(store, "harbor") == [1, 2]


async def test_an_unknown_channel_has_no_index(store: SqliteStore) -> None:
    assert await store.consult(OTHER, len) is None


async def test_arrivals_write_nothing_to_the_index(store: SqliteStore, home: Home, say: Say) -> None:
    for number in range(5):
        await store.take_in(say(str(number), "quiet"), OBSERVE)
    assert stretches(home) == []
    assert notes(home) == 0


async def test_enough_messages_are_stored_as_stretches_and_few_stretches_as_one(
    store: SqliteStore, home: Home, say: Say
) -> None:
    for start in range(0, 4 * index.STRETCH, index.STRETCH):
        await talk(store, say, index.STRETCH, start=start + 1)
        assert await store.index_ahead() == 1
    assert stretches(home) == [(1, 4 * index.STRETCH)]
    assert await store.index_ahead() == 0


async def test_what_is_stored_and_what_is_not_yet_are_one_index(
    home: Home, clock: FakeClock, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it was put together, a channel's index says the same."""

    def everything(concordance: Concordance) -> Sequence[object]:
        places = range(len(concordance))
        terms = [list(concordance.terms(place)) for place in places]
        by_term = {
            number: sorted(
                (base + place, impact)
                for base, found, impacts in concordance.postings(number)
                for place, impact in zip(found, impacts, strict=True)
            )
            for number in {number for place in terms for number in place}
        }
        columns = (concordance.seqs, concordance.sents, concordance.authors, concordance.flags, concordance.groups)
        return [*(list(column) for column in (*columns, concordance.before, concordance.after)), terms, by_term]

    store = await open_store(home, clock=clock)
    await talk(store, say, 700)
    hot = await store.consult(MAIN, everything)
    await store.index_ahead()
    assert await store.consult(MAIN, everything) == hot
    await talk(store, say, 300, start=701)
    hot = await store.consult(MAIN, everything)
    await store.close()
    store = await open_store(home, clock=clock)
    assert await store.consult(MAIN, everything) == hot
    await store.close()
    monkeypatch.setattr(index, "VERSION", "made by a belino that reads words otherwise")
    store = await open_store(home, clock=clock)
    assert await store.consult(MAIN, everything) == hot
    await store.close()


async def test_a_new_version_of_the_words_makes_the_index_again(
    home: Home, clock: FakeClock, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(home, clock=clock)
    await talk(store, say, 600)
    await store.index_ahead()
    await store.close()
    monkeypatch.setattr(index, "VERSION", "newer")
    store = await open_store(home, clock=clock)
    await store.consult(MAIN, len)
    await talk(store, say, 300, start=601)
    await store.index_ahead()
    assert await seqs_with(store, "n3x") == [3]
    await store.close()
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("SELECT DISTINCT version FROM search_segments").fetchall() == [("newer",)]
    assert stretches(home)[0][0] == 1
    assert stretches(home)[-1][1] == 900


@pytest.mark.parametrize("stored", [False, True], ids=["tail", "stored"])
async def test_an_edited_message_is_found_by_its_new_words_only(
    store: SqliteStore, say: Say, clock: FakeClock, stored: bool
) -> None:
    await talk(store, say, 300)
    if stored:
        await store.index_ahead()
    assert await seqs_with(store, "n7x") == [7]
    await store.take_in(edit("7", "zeppelin over the bay", clock), OBSERVE)
    assert await seqs_with(store, "n7x") == []
    assert await seqs_with(store, "zeppelin") == [7]
    await store.take_in(edit("7", "balloon over the bay", clock), OBSERVE)
    assert await seqs_with(store, "zeppelin") == []
    assert await seqs_with(store, "balloon") == [7]


async def test_an_edit_that_is_refused_changes_nothing(store: SqliteStore, say: Say, clock: FakeClock) -> None:
    await talk(store, say, 10)
    await store.take_in(edit("7", "zeppelin", clock, author=Author(id="u-eve", name="Eve")), OBSERVE)
    assert await seqs_with(store, "zeppelin") == []
    assert await seqs_with(store, "n7x") == [7]


@pytest.mark.parametrize("stored", [False, True], ids=["tail", "stored"])
async def test_a_deleted_message_is_under_no_word_any_more(
    store: SqliteStore, home: Home, say: Say, clock: FakeClock, stored: bool
) -> None:
    await talk(store, say, 300)
    if stored:
        await store.index_ahead()
    await store.consult(MAIN, len)
    await store.take_in(deletion("7", clock), OBSERVE)
    assert await seqs_with(store, "n7x") == []
    await store.index_ahead()
    assert notes(home) == 0
    assert await seqs_with(store, "n7x") == []
    await store.close()
    again = await open_store(home, clock=clock)
    try:
        assert await seqs_with(again, "n7x") == []
        assert await seqs_with(again, "n8x") == [8]
    finally:
        await again.close()


async def test_what_was_deleted_leaves_the_stored_index_too(
    store: SqliteStore, home: Home, say: Say, clock: FakeClock
) -> None:
    await talk(store, say, 300)
    await store.index_ahead()
    number = await store.consult(MAIN, lambda concordance: concordance.number("n7x"))
    assert number is not None
    await store.take_in(deletion("7", clock), OBSERVE)
    await store.index_ahead()
    with closing(sqlite3.connect(home.database)) as connection:
        contents = [row[0] for row in connection.execute("SELECT content FROM search_segments")]
    assert contents
    for content in contents:
        segment = unpack(content)
        assert segment is not None
        assert segment.local(number) < 0


async def test_no_word_can_be_read_in_the_stored_index(store: SqliteStore, home: Home, say: Say) -> None:
    await talk(store, say, 300)
    await store.index_ahead()
    with closing(sqlite3.connect(home.database)) as connection:
        content = b"".join(row[0] for row in connection.execute("SELECT content FROM search_segments"))
    assert content
    assert not any(word.encode() in content for word in WORDS)


async def test_aged_messages_leave_the_index(store: SqliteStore, home: Home, say: Say, clock: FakeClock) -> None:
    await talk(store, say, 1_100)
    await store.index_ahead()
    clock.shift(timedelta(days=2).total_seconds())
    await talk(store, say, 300, start=1_101)
    await store.index_ahead()
    await store.expire_messages(clock.now() - timedelta(days=1))
    assert await seqs_with(store, "n7x") == []
    assert await seqs_with(store, "n1200x") == [1_200]
    await store.index_ahead()
    assert await seqs_with(store, "n7x") == []
    assert await seqs_with(store, "n1200x") == [1_200]
    assert stretches(home)[0][0] > 1_000
    assert notes(home) == 0


async def test_many_changes_are_written_into_the_stretches_by_a_search(
    store: SqliteStore, home: Home, say: Say, clock: FakeClock
) -> None:
    await talk(store, say, 300)
    await store.index_ahead()
    for number in range(1, index.PATCHES + 2):
        await store.take_in(edit(str(number), f"zeppelin z{number}z", clock), OBSERVE)
    assert len(await seqs_with(store, "zeppelin") or ()) == index.PATCHES + 1
    assert notes(home) == 0
    assert await seqs_with(store, "z9z") == [9]


async def test_captions_and_file_names_are_words_of_their_message(store: SqliteStore, say: Say, photo: Photo) -> None:
    ref = photo("1", caption="a lighthouse at dawn", file_name="quarterly-report.pdf")
    await store.take_in(say("1", "look", media=(ref,)), OBSERVE)
    assert await seqs_with(store, "lighthous") == [1]
    assert await seqs_with(store, "quarter") == [1]


async def test_what_is_asked_for_rarely_leaves_the_memory(
    store: SqliteStore, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "HOT_BYTES", 50_000)
    for number in range(8):
        channel = ConversationKey(platform="web", account="default", channel=f"c{number}")
        await talk(store, say, 200, channel=channel)
        assert await seqs_with(store, "n7x", channel) == [7]
    assert len(store._index._hot) == 1
    first = ConversationKey(platform="web", account="default", channel="c0")
    assert await seqs_with(store, "n7x", first) == [7]


async def test_random_changes_leave_the_index_as_if_made_at_once(home: Home, clock: FakeClock, say: Say) -> None:
    chance = random.Random(7)
    store = await open_store(home, clock=clock)
    await talk(store, say, 500)
    now = {number: f"{WORDS[number % len(WORDS)]} n{number}x" for number in range(1, 501)}
    for _ in range(150):
        number = chance.randint(1, 500)
        if number not in now:
            continue
        match chance.randrange(4):
            case 0:
                await store.take_in(deletion(str(number), clock), OBSERVE)
                del now[number]
            case 1:
                await store.index_ahead()
            case 2:
                await store.consult(MAIN, len)
            case _:
                now[number] = f"{chance.choice(WORDS)} n{number}x"
                await store.take_in(edit(str(number), now[number], clock), OBSERVE)
    for word, stem in (("apple", "appl"), ("bridge", "bridg"), ("harbor", "harbor")):
        expected = [number for number, text in now.items() if word in text]
        assert await seqs_with(store, stem) == expected
    await store.close()
    store = await open_store(home, clock=clock)
    assert await seqs_with(store, "harbor") == [number for number, text in now.items() if "harbor" in text]
    await store.close()


async def test_a_segment_is_the_same_after_packing() -> None:
    from array import array

    entries = [
        Entry(3, 5, "u", "Ü", 0, 1, array("Q", [7, 8, 7]), 1, "english"),
        Entry(4, 6, "v", "V", 3, 0, array("Q"), 0, "german"),
    ]
    again = unpack(build(entries).pack())
    assert again is not None
    assert list(again.entries()) == entries


async def test_a_thousand_guesses_reach_no_other_channel(store: SqliteStore, say: Say) -> None:
    await talk(store, say, 50)
    await talk(store, say, 50, channel=OTHER)
    chance = random.Random(9)
    for _ in range(1_000):
        guess = chance.choice([chance.randint(-5, 120), chance.getrandbits(40), chance.getrandbits(63)])
        for message in await store.consult(OTHER, numbered(guess)) or ():
            assert message.conversation == OTHER
            assert message.seq == guess


async def test_a_thread_is_summed_up_by_its_living_replies(store: SqliteStore, say: Say, clock: FakeClock) -> None:
    bob = Author(id="u-bob", name="Bob")
    await store.take_in(say("1", "root"), OBSERVE)
    await store.take_in(say("2", "a", reply_to="1", author=bob), OBSERVE)
    await store.take_in(say("3", "b", reply_to="1"), OBSERVE)
    await store.take_in(say("4", "c", reply_to="1", author=bob), OBSERVE)
    await store.take_in(say("5", "d", reply_to="1"), OBSERVE)
    await store.take_in(deletion("5", clock), OBSERVE)
    summaries = await store.consult(MAIN, lambda index: index.records.thread_summaries(["1", "2", "1"]))
    assert summaries is not None
    assert list(summaries) == ["1"]
    assert summaries["1"].reply_count == 3
    assert summaries["1"].participant_names == ("Bob", "Anna")


@pytest.mark.parametrize("distinct", [4, 100_000])
def test_an_index_says_about_how_much_memory_its_newest_messages_take(distinct: int) -> None:
    rng = random.Random(1)
    numbers = [rng.getrandbits(64) for _ in range(distinct)]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        concordance = ChannelConcordance(lambda term: 0)
        for seq in range(1_000, 2_000):
            terms = array("Q", (rng.choice(numbers) for _ in range(10)))
            concordance.add(Entry(seq, seq << 20, "anna", "Anna", 0, 0, terms, 0, "english"))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.7 * taken < concordance.bytes_held < 1.4 * taken


def test_segments_that_are_merged_are_the_same_as_one_built_of_all_their_messages() -> None:
    rng = random.Random(1)
    entries = [
        Entry(
            seq, seq << 20, rng.choice("abc"), rng.choice("AB"), rng.randrange(seq), rng.randrange(256),
            array("Q", rng.choices([1, 2, 3, 2**63, *range(100, 400)], k=rng.randrange(12))),
            rng.randrange(2), rng.choice(["english", "german", "finnish"]),
        )
        for seq in range(1, 700)
    ]  # fmt: skip
    cuts = [0, 1, 256, 256, 300, len(entries)]
    segments = [build(entries[begin:end]) for begin, end in pairwise(cuts)]
    assert merge(segments).pack() == build(entries).pack()
