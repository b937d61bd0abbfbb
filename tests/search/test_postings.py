"""Postings: what a channel's index in memory takes."""

import random
import tracemalloc
from array import array

import pytest

from belino.search.postings import ChannelPostings
from belino.search.segment import SegmentEntry


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
