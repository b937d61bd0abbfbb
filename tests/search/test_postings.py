"""Postings: what a channel's index holds, however it was put together, and which of its words are spelled alike."""

import gc
import random
import tracemalloc
import zlib
from array import array
from itertools import islice

import pytest

from belino.search.postings import ChannelPostings
from belino.search.segment import THREAD, MessageFlag, SegmentEntry
from belino.search.stored_segment import MESSAGES
from belino.search.trigrams import spelling_of
from search.segments import HeldIndex


@pytest.mark.parametrize("distinct", [4, 100_000])
def test_an_index_says_about_how_much_memory_its_newest_messages_take(distinct: int) -> None:
    rng = random.Random(1)
    numbers = [rng.getrandbits(64) for _ in range(distinct)]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        postings = ChannelPostings(lambda term: 0)
        for seq in range(1_000, 2_000):
            terms = array("Q", (rng.choice(numbers) for _ in range(10)))
            postings.add(SegmentEntry(seq, seq << 20, "anna", "Anna", 0, 0, terms, 0, "english"))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.7 * taken < postings.bytes_held < 1.4 * taken


def number(term: str) -> int:
    return zlib.crc32(term.encode()) << 32 | zlib.adler32(term.encode())


def entry(seq: int, *words: str) -> SegmentEntry:
    terms = array("Q", map(number, words))
    spellings = {number(word): spelling_of(word, number) for word in words if spelling_of(word, number)}
    return SegmentEntry(seq, seq << 20, "anna", "Anna", 0, 0, terms, 0, "english", spellings)


def similar_to(index: ChannelPostings, word: str, least: float = 0.5) -> list[tuple[int, int]]:
    return [(found.term, found.times) for found in index.similar(index.spelling(word), least)]


@pytest.mark.parametrize("stored", [False, True], ids=["tail", "segments"])
def test_a_misspelt_word_has_the_channels_nearest_words(stored: bool) -> None:
    index = HeldIndex(number)
    for seq, word in enumerate(["warehous", "invoic", "warehous", "warship", "accommod", "room4711"], 1):
        index.add(entry(seq, word, "the"))
        if stored and seq % 2:
            index.end_tail()
    if stored:
        index.merge(1)
    assert similar_to(index.postings, "warehos") == [(number("warehous"), 2)]
    assert similar_to(index.postings, "invoc") == [(number("invoic"), 1)]
    assert similar_to(index.postings, "acommod") == [(number("accommod"), 1)]
    assert similar_to(index.postings, "zeppelin") == []
    assert similar_to(index.postings, "room4712") == []


def test_the_most_similar_word_comes_first() -> None:
    index = ChannelPostings(number)
    for seq, word in enumerate(["harbour", "harbor", "harbor", "harvest"], 1):
        index.add(entry(seq, word))
    assert [term for term, _ in similar_to(index, "harbours", 0.3)][:2] == [number("harbour"), number("harbor")]


def test_an_edited_message_has_the_spelling_of_its_new_words_only_once_it_is_written_again() -> None:
    index = HeldIndex(number)
    index.add(entry(1, "warehous"), entry(2, "lighthous"))
    index.end_tail()
    index.change(entry(1, "accommod"))
    assert similar_to(index.postings, "acommod") == [(number("accommod"), 1)]
    index.purge()
    assert similar_to(index.postings, "acommod") == [(number("accommod"), 1)]
    assert similar_to(index.postings, "lighthos") == [(number("lighthous"), 1)]
    assert similar_to(index.postings, "warehos") == []


def everything(index: ChannelPostings) -> object:
    """All that a search can ask."""
    places = range(len(index))
    terms = [list(index.terms(place)) for place in places]
    numbers = sorted({term for said in terms for term in said})
    lists = {
        term: sorted(
            (base + place, impact)
            for base, docs, impacts in index.postings(term)
            for place, impact in zip(docs, impacts, strict=True)
        )
        for term in numbers
    }
    rows = [index.rows[place] for place in places]
    groups = sorted({row.group for row in rows})
    return (
        [(row.seq, row.sent, row.flags, row.group, row.before, row.after, row.terms) for row in rows],
        [(index.ids[row.author], index.names[row.author]) for row in rows],
        terms,
        lists,
        [index.thread(place) for place in places],
        [(group, index.group_size(group)) for group in groups],
        [index.relative_size(row.group, row) for row in rows],
        [(group, index.first_of_thread(group)) for group in groups if group & THREAD],
        sorted(zip(index.ids, index.said_by, strict=True)),
        sorted(index.thread_starts(groups).items()),
        [index.seq(place) for place in places],
        [index.place(seq) for seq in range(places[-1] + 30)],
        index.in_time,
        [index.living(start, end, since) for start, end in ((0, len(index)), (3, 200), (150, 151), (130, 700))
         for since in (None, rows[250].sent, rows[3].sent)],
        index.matches(places, [numbers[1:3], numbers[5:6]]),
        [[(at, index.ids[author], flags) for at, author, flags in islice(index.walk(place, back=back), 8)]
         for place in places for back in (True, False)],
        [list(index.with_flags(start, end, has, lacks)) for start, end in ((0, len(index)), (100, 333))
         for has, lacks in ((0, MessageFlag.GONE), (MessageFlag.GONE, 0))],
    )  # fmt: skip


def chatter(rng: random.Random, count: int, *, in_time: bool) -> list[SegmentEntry]:
    """Messages of a few people, some in threads whose first message may be missing or late."""
    seq, sent, entries = 0, 0, []
    words = [f"word{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(300)]
    for _ in range(count):
        seq += rng.choice([1] * 30 + [2, 5])
        sent += rng.choice([1, 60, 600, 9_000]) * 1_000_000 if in_time else rng.randrange(-(10**9), 10**10)
        root = rng.choice([0, 0, 0, max(1, seq - rng.randrange(1, 40)), rng.randrange(1, seq + 30), 1 << 63 | 7])
        made = entry(seq, *rng.choices(words, k=rng.randrange(9)))
        author = rng.choice("abcd")
        entries.append(made._replace(sent=sent, root=root if root != seq else 0, author=author, name=author.upper()))
    return entries


def test_messages_that_were_read_cost_the_garbage_collector_nothing() -> None:
    index = HeldIndex(number)
    index.add(*chatter(random.Random(1), 300, in_time=True))
    index.end_tail()
    segment = index.held[0].segment
    gc.collect()
    before = len(gc.get_objects())
    blocks = [segment.block(doc // MESSAGES) for doc in range(0, 300, MESSAGES)]
    assert len(gc.get_objects()) - before < len(blocks) > 5


@pytest.mark.parametrize("seed", range(6))
def test_an_index_says_the_same_however_it_was_put_together(seed: int) -> None:
    rng = random.Random(seed)
    whole, cut = HeldIndex(number), HeldIndex(number)
    entries = chatter(rng, 900, in_time=seed % 2 == 0)
    for at, one in enumerate(entries):
        whole.add(one)
        cut.add(one)
        if at in (130, 131, 300, 431, 560, 700):
            cut.end_tail()
        if at in (431, 800):
            cut.merge(1 + rng.randrange(len(cut.held) - 1))
        if rng.random() < 0.1:
            old = rng.choice(entries[: at + 1])
            new = entry(old.seq, "changed", f"edit{at}")._replace(
                sent=old.sent, root=old.root, author=old.author, name=old.name
            )
            if rng.random() < 0.4:
                new = new._replace(terms=array("Q"), flags=MessageFlag.GONE, spellings={})
            whole.change(new)
            cut.change(new)
        if at in (380, 600, 810, 850):
            cut.purge()
    assert len(cut.held) > 1
    assert everything(cut.postings) == everything(whole.postings)
    cut.purge()
    assert everything(cut.postings) == everything(whole.postings)
    cut.end_tail()
    cut.merge()
    assert everything(cut.postings) == everything(whole.postings)


def test_what_was_purged_is_in_no_block() -> None:
    index = HeldIndex(number)
    index.add(*(entry(seq, "everyone", f"only{chr(97 + seq % 26)}{chr(97 + seq // 26)}") for seq in range(1, 600)))
    index.end_tail()
    unique = f"only{chr(97 + 77 % 26)}{chr(97 + 77 // 26)}"
    lost = spelling_of(unique, number)
    only_lost = [
        gram
        for gram in lost
        if not any(
            gram in spelling_of(f"only{chr(97 + seq % 26)}{chr(97 + seq // 26)}", number)
            for seq in range(1, 600)
            if seq != 77
        )
    ]
    assert only_lost
    index.change(entry(77)._replace(flags=MessageFlag.GONE))
    index.purge()
    (held,) = index.held
    stored = held.head + b"".join(held.blocks.values())
    assert number(unique).to_bytes(8, "little") not in stored
    for gram in only_lost:
        assert gram.to_bytes(4, "little") not in stored
    assert number("onlyab").to_bytes(8, "little") in stored
