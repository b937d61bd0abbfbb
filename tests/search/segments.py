"""Segments in memory: what the store does with them, for tests of the index alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from belino.search.blocks import PackedSegment
from belino.search.postings import ChannelPostings
from belino.search.segment import SegmentEntry
from belino.search.segment_merge import merge
from belino.search.segment_purge import purge
from belino.search.stored_segment import StoredSegment, cut, read_head

T = TypeVar("T")


class HeldSegment:
    """A segment and its blocks."""

    def __init__(self, packed: PackedSegment) -> None:
        self.blocks = dict(packed.blocks)
        self.head = packed.head
        self.loaded: list[int] = []

    @property
    def segment(self) -> StoredSegment:
        return StoredSegment(read_head(self.head), self._load)

    def purge(self, changes: Mapping[int, SegmentEntry], noted: int) -> None:
        packed = purge(self.segment, changes, noted)
        for number in packed.dropped:
            del self.blocks[number]
        assert self.blocks.keys().isdisjoint(packed.blocks)
        self.blocks |= packed.blocks
        self.head = packed.head

    def _load(self, number: int, decode: Callable[[bytes], T]) -> T:
        self.loaded.append(number)
        return decode(self.blocks[number])


class HeldIndex:
    """A channel's index whose segments are held in memory."""

    def __init__(self, number: Callable[[str], int]) -> None:
        self.number = number
        self.held: list[HeldSegment] = []
        self.postings = ChannelPostings(number)
        self._note = 0

    def add(self, *entries: SegmentEntry) -> None:
        for entry in entries:
            self.postings.add(entry)

    def change(self, entry: SegmentEntry) -> None:
        place = self.postings.place(entry.seq)
        assert place is not None
        self._note += 1
        self.postings.patch(place, entry, self._note)

    def end_tail(self) -> None:
        self.held.append(HeldSegment(cut(self.postings.tail.arrays(), self._note)))
        self._put_together([])

    def merge(self, first: int = 0) -> None:
        """Merge the last segments."""
        segments = [held.segment for held in self.held[first:]]
        noted = min(segment.head.noted for segment in segments)
        self.held[first:] = [HeldSegment(cut(merge([segment.arrays() for segment in segments]), noted))]
        self._put_together(self.postings.tail.entries)

    def purge(self) -> None:
        """Write all changes into their segments."""
        entries = self.postings.patches.entries
        for held, base in zip(self.held, self.postings.bases, strict=True):
            own = {place - base: entry for place, entry in entries.items() if 0 <= place - base < len(held.segment)}
            if own:
                held.purge(own, self._note)
        self._put_together(self.postings.tail.entries)

    def _put_together(self, newest: Sequence[SegmentEntry]) -> None:
        old = self.postings
        self.postings = ChannelPostings(self.number, [held.segment for held in self.held])
        for entry in newest:
            self.postings.add(entry)
        for place, entry in old.patches.entries.items():
            self.postings.patch(place, entry, old.patches.notes[place])
