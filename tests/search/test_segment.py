"""Segments: arrays that are the same after packing, merging and being cut into blocks."""

import random
from array import array
from itertools import pairwise

import pytest

from belino.search.segment import SegmentArrays, SegmentEntry, build, unpack
from belino.search.segment_merge import merge
from belino.search.stored_segment import cut
from search.segments import HeldSegment

SPELLINGS = {7: array("I", [1, 2]), 8: array("I", [2, 9])}
ENTRIES = [
    SegmentEntry(3, 5, "u", "Ü", 0, 1, array("Q", [7, 8, 7]), 1, "english", SPELLINGS),
    SegmentEntry(4, 6, "v", "V", 0, 0, array("Q"), 0, "german", SPELLINGS),
]


def many(count: int, seed: int = 1) -> list[SegmentEntry]:
    rng = random.Random(seed)
    spellings = {term: array("I", rng.sample(range(50), k=1 + term % 7)) for term in range(100, 300)}
    entries = []
    for seq in range(1, count + 1):
        terms = array("Q", rng.choices([1, 2, 3, 2**63, *range(100, 4000)], k=rng.randrange(12)))
        entries.append(
            SegmentEntry(
                seq, seq << 20, rng.choice("abc"), rng.choice("AB"), 0, rng.randrange(256),
                terms, rng.randrange(2), rng.choice(["english", "german", "finnish"]),
                {term: spellings[term] for term in terms if term in spellings},
            )
        )  # fmt: skip
    return entries


def content(arrays: SegmentArrays) -> object:
    return arrays.sections, arrays.people, arrays.languages, arrays.begun


def test_a_segment_is_the_same_after_packing() -> None:
    assert list(unpack(build(ENTRIES).pack()).entries()) == ENTRIES


def test_segments_that_are_merged_are_the_same_as_one_built_of_all_their_messages() -> None:
    entries = many(700)
    cuts = [0, 1, 256, 256, 300, len(entries)]
    segments = [build(entries[begin:end]) for begin, end in pairwise(cuts)]
    assert content(merge(segments)) == content(build(entries))


@pytest.mark.parametrize("count", [1, 128, 129, 3_000])
def test_a_segment_that_was_cut_into_blocks_holds_the_same(count: int) -> None:
    built = build(many(count))
    assert content(HeldSegment(cut(built)).segment.arrays()) == content(built)


def test_one_term_needs_few_blocks() -> None:
    held = HeldSegment(cut(build(many(20_000))))
    segment = held.segment
    assert not held.loaded
    ((docs, impacts),) = segment.postings(200)
    assert len(docs) == len(impacts) > 10
    assert len(held.loaded) <= 2 < len(held.blocks) / 50


def test_a_long_list_is_loaded_only_where_it_is_read() -> None:
    entries = [entry._replace(terms=array("Q", [5])) for entry in many(20_000)]
    held = HeldSegment(cut(build(entries)))
    ((docs, impacts),) = held.segment.postings(5)
    assert len(docs) == len(impacts) == 20_000
    held.loaded.clear()
    assert list(docs[-3:]) == [19_997, 19_998, 19_999]
    assert docs[9_000] == 9_000
    assert len(held.loaded) == 2
    assert list(docs) == list(range(20_000))
