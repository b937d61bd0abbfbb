"""Segments: flat arrays that are the same after packing."""

import random
from array import array
from itertools import pairwise

from belino.search.segment import FORMAT, SegmentEntry, build, merge, unpack

ENTRIES = [
    SegmentEntry(3, 5, "u", "Ü", 0, 1, array("Q", [7, 8, 7]), 1, "english"),
    SegmentEntry(4, 6, "v", "V", 3, 0, array("Q"), 0, "german"),
]


def test_a_segment_is_the_same_after_packing() -> None:
    again = unpack(build(ENTRIES).pack())
    assert again is not None
    assert list(again.entries()) == ENTRIES


def test_a_segment_of_another_format_is_not_read() -> None:
    content = build(ENTRIES).pack()
    other = f"9{FORMAT[1:]}".encode()
    assert unpack(content.replace(FORMAT.encode(), other, 1)) is None


def test_segments_that_are_merged_are_the_same_as_one_built_of_all_their_messages() -> None:
    rng = random.Random(1)
    entries = [
        SegmentEntry(
            seq, seq << 20, rng.choice("abc"), rng.choice("AB"), rng.randrange(seq), rng.randrange(256),
            array("Q", rng.choices([1, 2, 3, 2**63, *range(100, 400)], k=rng.randrange(12))),
            rng.randrange(2), rng.choice(["english", "german", "finnish"]),
        )
        for seq in range(1, 700)
    ]  # fmt: skip
    cuts = [0, 1, 256, 256, 300, len(entries)]
    segments = [build(entries[begin:end]) for begin, end in pairwise(cuts)]
    assert merge(segments).pack() == build(entries).pack()
