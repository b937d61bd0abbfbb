"""The word index: caught up on use, stored in stretches, true to every change, and one channel's own."""

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, timedelta

import pytest

from belino.domain.errors import StoreError
from belino.domain.media import MediaRef
from belino.domain.message import Author, ConversationKey, Deletion, Edit, Message, Quote
from belino.domain.outcome import Standing
from belino.domain.reply import Parcel, ParcelKind, Receipt
from belino.domain.stored import StoredMessage, Verdict
from belino.storage import search_rows, search_segments
from belino.storage.search_hits import ChannelView
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.engines import Engine

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")
ANNA = Author(id="u-anna", name="Anna")
WORDS = ("apple", "bridge", "candle", "dragon", "engine", "forest", "garden", "harbor", "island", "jacket")

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def seqs_with(store: Store, term: str, channel: ConversationKey = MAIN) -> list[int] | None:
    """The seqs of the messages that the index has under a term."""

    def look(view: ChannelView) -> list[int]:
        index = view.postings
        found = [base + place for base, places, _ in index.postings(index.number(term)) for place in places]
        return sorted(map(index.seq, found))

    return await store._index.use(channel, look)


def numbered(seq: int) -> Callable[[ChannelView], tuple[StoredMessage, ...]]:
    """Asks for the message of a seq."""
    return lambda view: view.records.numbered([seq])


def size(view: ChannelView) -> int:
    return len(view.postings)


async def talk(store: Store, say: Say, count: int, channel: ConversationKey = MAIN, start: int = 1) -> None:
    """Messages 1, 2, …, each with one of the words, and a number of its own."""
    texts = [f"{WORDS[number % len(WORDS)]} n{number}x" for number in range(start, start + count)]
    messages = [say(str(number), text, conversation=channel) for number, text in enumerate(texts, start)]
    await store.take_history(channel, messages)


async def stretches(engine: Engine) -> list[tuple[int, int]]:
    return await engine.rows("SELECT first, last FROM search_segments ORDER BY channel, first")


async def stored_index(engine: Engine) -> bytes:
    """All that is stored of the index."""
    heads = await engine.rows("SELECT head FROM search_segments")
    blocks = await engine.rows("SELECT content FROM search_blocks")
    return b"".join(content for (content,) in (*heads, *blocks))


async def notes(engine: Engine) -> int:
    ((count,),) = await engine.rows("SELECT count(*) FROM search_stale")
    return int(count)


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


async def test_a_message_is_found_as_soon_as_it_is_stored(store: Store, say: Say) -> None:
    await store.take_in(say("1", "the harbor is closed"), OBSERVE)
    assert await seqs_with(store, "harbor") == [1]
    await store.take_in(say("2", "which harbor?"), OBSERVE)
    assert await seqs_with(store, "harbor") == [1, 2]


async def test_an_unknown_channel_has_no_index(store: Store) -> None:
    assert await store._index.use(OTHER, size) is None


async def test_arrivals_write_nothing_to_the_index(store: Store, engine: Engine, say: Say) -> None:
    for number in range(5):
        await store.take_in(say(str(number), "quiet"), OBSERVE)
    assert await stretches(engine) == []
    assert await notes(engine) == 0


async def test_enough_messages_are_stored_as_stretches_and_few_stretches_as_one(
    store: Store, engine: Engine, say: Say
) -> None:
    for start in range(0, 4 * search_rows.STRETCH, search_rows.STRETCH):
        await talk(store, say, search_rows.STRETCH, start=start + 1)
        assert await store.index_ahead() == 1
    assert await stretches(engine) == [(1, 4 * search_rows.STRETCH)]
    assert await store.index_ahead() == 0


async def test_what_is_stored_and_what_is_not_yet_are_one_index(
    engine: Engine, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it was put together, a channel's index says the same."""

    def everything(view: ChannelView) -> Sequence[object]:
        index = view.postings
        places = range(len(index))
        terms = [list(index.terms(place)) for place in places]
        by_term = {
            number: sorted(
                (base + place, impact)
                for base, found, impacts in index.postings(number)
                for place, impact in zip(found, impacts, strict=True)
            )
            for number in {number for place in terms for number in place}
        }
        rows = [index.rows[place]._replace(size=0, began=0) for place in places]  # what its segment knows of it
        return [rows, terms, by_term]

    store = await engine.open()
    await talk(store, say, 700)
    hot = await store._index.use(MAIN, everything)
    await store.index_ahead()
    assert await store._index.use(MAIN, everything) == hot
    await talk(store, say, 300, start=701)
    hot = await store._index.use(MAIN, everything)
    await store.close()
    store = await engine.open()
    assert await store._index.use(MAIN, everything) == hot
    await store.close()
    monkeypatch.setattr(search_segments, "VERSION", "made by a belino that reads words otherwise")
    store = await engine.open()
    assert await store._index.use(MAIN, everything) == hot
    await store.close()


async def test_a_new_version_of_the_words_makes_the_index_again(
    engine: Engine, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await engine.open()
    await talk(store, say, 600)
    await store.index_ahead()
    await store.close()
    monkeypatch.setattr(search_segments, "VERSION", "newer")
    store = await engine.open()
    await store._index.use(MAIN, size)
    await talk(store, say, 300, start=601)
    await store.index_ahead()
    assert await seqs_with(store, "n3x") == [3]
    await store.close()
    assert await engine.rows("SELECT DISTINCT version FROM search_segments") == [("newer",)]
    assert (await stretches(engine))[0][0] == 1
    assert (await stretches(engine))[-1][1] == 900


@pytest.mark.parametrize("stored", [False, True], ids=["tail", "stored"])
async def test_an_edited_message_is_found_by_its_new_words_only(
    store: Store, say: Say, clock: FakeClock, stored: bool
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


async def test_an_edit_that_is_refused_changes_nothing(store: Store, say: Say, clock: FakeClock) -> None:
    await talk(store, say, 10)
    await store.take_in(edit("7", "zeppelin", clock, author=Author(id="u-eve", name="Eve")), OBSERVE)
    assert await seqs_with(store, "zeppelin") == []
    assert await seqs_with(store, "n7x") == [7]


@pytest.mark.parametrize("stored", [False, True], ids=["tail", "stored"])
async def test_a_deleted_message_is_under_no_word_any_more(
    store: Store, engine: Engine, say: Say, clock: FakeClock, stored: bool
) -> None:
    await talk(store, say, 300)
    if stored:
        await store.index_ahead()
    await store._index.use(MAIN, size)
    await store.take_in(deletion("7", clock), OBSERVE)
    assert await seqs_with(store, "n7x") == []
    await store.index_ahead()
    assert await notes(engine) == 0
    assert await seqs_with(store, "n7x") == []
    await store.close()
    again = await engine.open()
    try:
        assert await seqs_with(again, "n7x") == []
        assert await seqs_with(again, "n8x") == [8]
    finally:
        await again.close()


async def test_what_was_deleted_leaves_the_stored_index_too(
    store: Store, engine: Engine, say: Say, clock: FakeClock
) -> None:
    await talk(store, say, 300)
    await store.index_ahead()
    number = await store._index.use(MAIN, lambda view: view.postings.number("n7x"))
    assert number is not None
    await store.take_in(deletion("7", clock), OBSERVE)
    await store.index_ahead()
    content = await stored_index(engine)
    assert content
    assert number.to_bytes(8, sys.byteorder) not in content


async def similar_to(store: Store, word: str) -> list[int] | None:
    """The seqs of the messages with words that are spelled like one."""

    def look(view: ChannelView) -> list[int]:
        index = view.postings
        similar = [found.term for found in index.similar(index.spelling(word))]
        lists = [(base, places) for term in similar for base, places, _ in index.postings(term)]
        return sorted(index.seq(base + place) for base, places in lists for place in places)

    return await store._index.use(MAIN, look)


@pytest.mark.parametrize("stored", [False, True], ids=["tail", "stored"])
async def test_a_misspelt_word_leads_to_the_words_that_the_channel_has(
    store: Store, engine: Engine, say: Say, clock: FakeClock, stored: bool
) -> None:
    await talk(store, say, 300)
    await store.take_in(say("w", "the Warehouse is locked"), OBSERVE)
    if stored:
        await store.index_ahead()
    assert await similar_to(store, "warehos") == [301]
    await store.take_in(deletion("w", clock), OBSERVE)
    assert await similar_to(store, "warehos") == []
    await store.index_ahead()
    await store.close()
    again = await engine.open()
    try:
        assert await similar_to(again, "warehos") == []
        assert await similar_to(again, "harbr") == [number for number in range(1, 301) if number % 10 == 7]
    finally:
        await again.close()


async def test_no_word_can_be_read_in_the_stored_index(store: Store, engine: Engine, say: Say) -> None:
    await talk(store, say, 300)
    await store.index_ahead()
    content = await stored_index(engine)
    assert content
    assert not any(word.encode() in content for word in WORDS)


async def test_aged_messages_leave_the_index(store: Store, engine: Engine, say: Say, clock: FakeClock) -> None:
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
    assert (await stretches(engine))[0][0] > 1_000
    assert await notes(engine) == 0


async def test_a_search_that_finds_many_changes_writes_them_into_the_segments(
    store: Store, engine: Engine, say: Say, clock: FakeClock
) -> None:
    many = search_rows.LAZY * search_rows.STRETCH + 1
    await talk(store, say, many)
    await store.index_ahead()
    for number in range(1, many + 1):
        await store.take_in(edit(str(number), f"zeppelin z{number}z", clock), OBSERVE)
    assert len(await seqs_with(store, "zeppelin") or ()) == many
    assert await notes(engine) == 0
    assert await seqs_with(store, "z9z") == [9]


async def test_a_search_loads_the_part_of_the_index_that_it_needs(engine: Engine, say: Say) -> None:
    store = await engine.open()
    await talk(store, say, 6_000)
    await store.index_ahead()
    await store.close()
    store = await engine.open()
    assert await seqs_with(store, "n4321x") == [4_321]
    loaded = store.cache_sizes()["word_blocks"].bytes
    await store.close()
    assert 0 < loaded < len(await stored_index(engine)) / 10


async def test_searches_of_channels_in_turn_load_nothing_twice(
    store: Store, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_rows, "HOT_BYTES", 0)  # no channel but the one that is searched stays hot
    for channel in (MAIN, OTHER):
        await talk(store, say, 600, channel=channel)
    await store.index_ahead()
    for channel in (MAIN, OTHER):
        await seqs_with(store, "n7x", channel)
    loaded = len(store._index._blocks)
    for channel in (MAIN, OTHER, MAIN):
        assert await seqs_with(store, "n7x", channel) == [7]
    assert len(store._index._blocks) == loaded


async def test_a_search_writes_nothing_while_little_is_to_be_indexed(
    store: Store, say: Say, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(store, say, 2 * search_rows.STRETCH)
    await store.index_ahead()
    await talk(store, say, search_rows.STRETCH, start=2 * search_rows.STRETCH + 1)
    await store.take_in(edit("7", "zeppelin", clock), OBSERVE)
    writes: list[object] = []
    monkeypatch.setattr(store._index, "_write", writes.append)
    assert await seqs_with(store, "zeppelin") == [7]
    assert await seqs_with(store, "n700x") == [700]
    assert not writes


async def test_an_edit_replaces_only_the_blocks_that_hold_the_message(
    store: Store, engine: Engine, say: Say, clock: FakeClock
) -> None:
    await talk(store, say, 6_000)
    await store.index_ahead()
    before = set(await engine.rows("SELECT id FROM search_blocks"))
    await store.take_in(edit("3000", "zeppelin over the bay", clock), OBSERVE)
    await store.index_ahead()
    after = set(await engine.rows("SELECT id FROM search_blocks"))
    assert 0 < len(after - before) < 12 < len(after) / 5
    assert await seqs_with(store, "zeppelin") == [3_000]
    assert await seqs_with(store, "n3000x") == []


async def test_an_index_follows_what_another_process_stores(store: Store, say: Say, clock: FakeClock) -> None:
    """Two processes share one database; each has its own hot copy."""
    other = search_rows.SearchIndex(store._database, store._keys, UTC)

    async def found(term: str) -> list[list[int] | None]:
        mine = await seqs_with(store, term)
        theirs = store._index
        store._index = other
        try:
            return [mine, await seqs_with(store, term)]
        finally:
            store._index = theirs

    await talk(store, say, 300)
    assert await found("n7x") == [[7], [7]]
    await other.index_ahead()
    await talk(store, say, 300, start=301)
    await store.take_in(edit("7", "zeppelin", clock), OBSERVE)
    assert await found("zeppelin") == [[7], [7]]
    await store._index.index_ahead()
    await store.take_in(edit("8", "zeppelin", clock), OBSERVE)
    assert await found("zeppelin") == [[7, 8], [7, 8]]
    await other.index_ahead()
    assert await found("zeppelin") == [[7, 8], [7, 8]]
    assert await found("n600x") == [[600], [600]]


@pytest.mark.slow
async def test_a_long_channel_that_is_not_indexed_is_searched_in_bounded_time(store: Store, say: Say) -> None:
    """The newest messages and those that were stored are found at once, the others once they are indexed."""
    many = (search_rows.STEPS + 3) * search_rows.READ_AT_ONCE
    await talk(store, say, many)
    assert await seqs_with(store, f"n{many}x") == [many]
    assert await seqs_with(store, "n7x") == [7]
    missing = many - search_rows.READ_AT_ONCE - 1
    assert await seqs_with(store, f"n{missing}x") == []
    await talk(store, say, 10, start=many + 1)
    assert await seqs_with(store, f"n{many + 10}x") == [many + 10]
    await store.index_ahead()
    for number in (7, missing, many, many + 10):
        assert await seqs_with(store, f"n{number}x") == [number]


async def test_captions_and_file_names_are_words_of_their_message(store: Store, say: Say, photo: Photo) -> None:
    ref = photo("1", caption="a lighthouse at dawn", file_name="quarterly-report.pdf")
    await store.take_in(say("1", "look", media=(ref,)), OBSERVE)
    assert await seqs_with(store, "lighthous") == [1]
    assert await seqs_with(store, "quarter") == [1]


async def test_what_is_asked_for_rarely_leaves_the_memory(
    store: Store, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_rows, "HOT_BYTES", 50_000)
    for number in range(8):
        channel = ConversationKey(platform="web", account="default", channel=f"c{number}")
        await talk(store, say, 200, channel=channel)
        assert await seqs_with(store, "n7x", channel) == [7]
    assert len(store._index._hot) == 1
    first = ConversationKey(platform="web", account="default", channel="c0")
    assert await seqs_with(store, "n7x", first) == [7]


async def test_random_changes_leave_the_index_as_if_made_at_once(engine: Engine, clock: FakeClock, say: Say) -> None:
    chance = random.Random(7)
    store = await engine.open()
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
                await store._index.use(MAIN, size)
            case _:
                now[number] = f"{chance.choice(WORDS)} n{number}x"
                await store.take_in(edit(str(number), now[number], clock), OBSERVE)
    for word, stem in (("apple", "appl"), ("bridge", "bridg"), ("harbor", "harbor")):
        expected = [number for number, text in now.items() if word in text]
        assert await seqs_with(store, stem) == expected
    await store.close()
    store = await engine.open()
    assert await seqs_with(store, "harbor") == [number for number, text in now.items() if "harbor" in text]
    await store.close()


async def test_a_thousand_guesses_reach_no_other_channel(store: Store, say: Say) -> None:
    await talk(store, say, 50)
    await talk(store, say, 50, channel=OTHER)
    chance = random.Random(9)
    for _ in range(1_000):
        guess = chance.choice([chance.randint(-5, 120), chance.getrandbits(40), chance.getrandbits(63)])
        for message in await store._index.use(OTHER, numbered(guess)) or ():
            assert message.conversation == OTHER
            assert message.seq == guess


async def test_a_thread_is_summed_up_by_its_living_replies(store: Store, say: Say, clock: FakeClock) -> None:
    bob = Author(id="u-bob", name="Bob")
    await store.take_in(say("1", "root"), OBSERVE)
    await store.take_in(say("2", "a", reply_to="1", author=bob), OBSERVE)
    await store.take_in(say("3", "b", reply_to="1"), OBSERVE)
    await store.take_in(say("4", "c", reply_to="1", author=bob), OBSERVE)
    await store.take_in(say("5", "d", reply_to="1"), OBSERVE)
    await store.take_in(deletion("5", clock), OBSERVE)
    summaries = await store._index.use(MAIN, lambda view: view.records.thread_summaries(["1", "2", "1"]))
    assert summaries is not None
    assert list(summaries) == ["1"]
    assert summaries["1"].reply_count == 3
    assert summaries["1"].participant_names == ("Bob", "Anna")


async def test_a_changed_caption_reaches_the_index(store: Store, say: Say, photo: Photo, clock: FakeClock) -> None:
    await store.take_in(say("1", "look", media=(photo("1", caption="a lighthouse"),)), OBSERVE)
    assert await seqs_with(store, "lighthous") == [1]
    clock.shift(1)
    await store.take_in(replace(edit("1", "look", clock), media=(photo("1", caption="a windmill"),)), OBSERVE)
    assert await seqs_with(store, "lighthous") == []
    assert await seqs_with(store, "windmil") == [1]


async def test_withdrawn_media_leave_the_entries_of_messages_that_forward_them(
    store: Store, say: Say, photo: Photo, clock: FakeClock
) -> None:
    shown = photo("1", caption="a lighthouse")
    await store.take_in(say("1", "look", media=(shown,)), OBSERVE)
    await store.take_in(say("2", "see", forward=Quote(author=ANNA, text="", media=(shown,))), OBSERVE)
    assert await seqs_with(store, "lighthous") == [1, 2]
    await store.take_in(deletion("1", clock), OBSERVE)
    assert await seqs_with(store, "lighthous") == []


async def test_a_live_message_replaces_its_imported_copy_in_the_index(store: Store, say: Say) -> None:
    await store.take_history(MAIN, [say("1", "an old harbor")])
    assert await seqs_with(store, "harbor") == [1]
    await store.take_in(say("1", "an old harbor"), OBSERVE)
    assert await seqs_with(store, "harbor") == [2]


async def test_a_change_that_could_not_be_read_is_read_by_the_next_search(
    store: Store, say: Say, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk(store, say, 10)
    assert await seqs_with(store, "n7x") == [7]
    await store.take_in(edit("7", "zeppelin", clock), OBSERVE)
    with monkeypatch.context() as broken:
        broken.setattr(search_rows, "_ENTRIES", "SELECT no_such_column FROM messages WHERE id IN (?, ?, ?)")
        with pytest.raises(StoreError):
            await seqs_with(store, "zeppelin")
    assert await seqs_with(store, "zeppelin") == [7]
    assert await seqs_with(store, "n7x") == []


SHADOW = (
    "CREATE TABLE shadow (message INTEGER)",
    "CREATE TRIGGER changed AFTER UPDATE OF text, deleted, root, author_id ON messages "
    "BEGIN INSERT INTO shadow VALUES (new.id); END",
    "CREATE TRIGGER gone AFTER DELETE ON messages BEGIN INSERT INTO shadow VALUES (old.id); END",
)


async def test_every_way_to_change_a_message_leaves_a_note(
    store: Store, say: Say, photo: Photo, clock: FakeClock
) -> None:
    """Triggers see every changed row, whatever code changes it."""
    await store._database.write(lambda tx: [tx.execute(sql) for sql in SHADOW])
    seen = 0

    async def noted() -> None:
        nonlocal seen
        shadow = await store._database.read(lambda tx: [row[0] for row in tx.execute("SELECT message FROM shadow")])
        notes = await store._database.read(
            lambda tx: {row[0] for row in tx.execute("SELECT message FROM search_stale")}
        )
        assert notes == set(shadow)
        assert len(shadow) > seen, "nothing changed"
        seen = len(shadow)

    parcel = Parcel(key="p1", conversation=MAIN, kind=ParcelKind.TEXT, text="draft", reply_to=None)
    agent = Author(id="bot", name="Bot", is_agent=True)
    await store.take_in(say("1", "one"), OBSERVE)
    await store.take_in(edit("1", "two", clock), OBSERVE)
    await noted()
    await store.take_in(say("3", "answer", reply_to="2"), OBSERVE)
    await store.take_in(say("2", "question", reply_to="1"), OBSERVE)  # adopts its early answer
    await noted()
    await store.take_in(deletion("3", clock), OBSERVE)
    await noted()
    await store.take_history(MAIN, [say("4", "imported")])
    await store.take_in(say("4", "live"), OBSERVE)
    await noted()
    await store.take_in(say("echo", "draft", author=replace(agent, is_agent=False)), OBSERVE)
    await store.put_parcels([parcel])
    await store.confirm_parcel("p1", Receipt(message_id="echo", sent=clock.now()), author=agent)
    await noted()
    for key, message_id in (("p2", "echo"), ("p3", "another")):  # an edit, and one that its platform posted anew
        await store.put_parcels([replace(parcel, key=key, kind=ParcelKind.EDIT, text=key, edits="echo")])
        await store.confirm_parcel(key, Receipt(message_id=message_id, sent=clock.now()), author=agent)
        await noted()
    clock.shift(timedelta(days=2).total_seconds())
    assert await store.expire_messages(clock.now() - timedelta(days=1))
    await noted()
