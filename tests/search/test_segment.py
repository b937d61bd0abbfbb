"""Segments: flat arrays that are the same after packing."""

from array import array

from belino.search.segment import FORMAT, SegmentEntry, build, unpack

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
