"""Segment purge: take changed messages out of a stored segment, by new blocks in place of those that hold them."""

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from belino.search.blocks import ENTRIES, ITEMS, BlockWriter, PackedSegment, pack_columns
from belino.search.segment import EditedMessages, SegmentEntry, build
from belino.search.stored_segment import (
    MESSAGES,
    SUMMARIES,
    PackedMessage,
    StoredSegment,
    message_terms,
    pack_edits,
    pack_messages,
    summarize,
)


def purge(segment: StoredSegment, changes: Mapping[int, SegmentEntry], noted: int) -> PackedSegment:
    """The blocks of a segment in which messages, given by their place in it, have their new terms or none.

    The old terms leave the posting lists; those that no message has any more leave the vocabulary, with their
    trigrams. The new terms of edited messages go into a block of their own, until the segment is merged.
    """
    return _Purge(segment, changes).packed(noted)


class _Section:
    """Blocks of columns, some of which change."""

    def __init__(self, numbers: "array[int]", block: Callable[[int], tuple["array[int]", ...]]) -> None:
        self.numbers = numbers[:]
        self.changed: dict[int, tuple[array[int], ...]] = {}
        self._block = block

    def block(self, at: int) -> tuple["array[int]", ...]:
        """The columns of a block, to be changed."""
        if at not in self.changed:
            self.changed[at] = tuple([column[:] for column in self._block(at)])
        return self.changed[at]

    def put(self, start: int, columns: Iterable["array[int]"]) -> None:
        """Put items in their place in a long list."""
        for at, column in enumerate(columns):
            done = 0
            while done < len(column):
                block, place = divmod(start + done, ITEMS)
                count = min(ITEMS - place, len(column) - done)
                self.block(block)[at][place : place + count] = column[done : done + count]
                done += count


class _Purge:
    def __init__(self, segment: StoredSegment, changes: Mapping[int, SegmentEntry]) -> None:
        self.segment = segment
        self.changes = changes
        self.arrays = {name: part[:] for name, part in segment.head.arrays.items()}
        self.people = {person: at for at, person in enumerate(segment.head.people)}
        self.said_by = segment.head.said_by[:]
        self.languages = dict(segment.head.languages)
        self.writer = BlockWriter(segment.head.number)
        self.dropped: list[int] = []

    def packed(self, noted: int) -> PackedSegment:
        """The head and the new blocks."""
        gone, edits = self._removed(), self._edits()
        for at in sorted({doc // MESSAGES for doc in self.changes}):
            self._change_messages(at)
        self._change_lists(gone)
        head = replace(
            self.segment.head,
            noted=noted,
            edits=edits,
            number=self.writer.number,
            people=list(self.people),
            said_by=self.said_by,
            languages=list(self.languages.items()),
            arrays=self.arrays,
        )
        return PackedSegment(head.first, head.last, head.pack(), self.writer.blocks, self.dropped)

    def _removed(self) -> Mapping[int, set[int]]:
        """The messages to be removed from the posting list of each term, by its place in the vocabulary."""
        gone: dict[int, set[int]] = {}
        for doc in self.changes:
            for ordinal in self.segment.ordinals(doc):
                gone.setdefault(ordinal, set()).add(doc)
        return gone

    def _change_messages(self, at: int) -> None:
        """Write the new rows of the changed messages of a block, without terms."""
        numbers = self.arrays["messages"]
        old, rows, forward = message_terms(self.segment.block(at)), [], array("I")
        for doc, row in enumerate(self.segment.rows(at), at * MESSAGES):
            terms = old[row.start : row.start + row.terms]
            entry = self.changes.get(doc)
            if entry is not None:
                row, terms = self._changed(row, entry), array("I")
            rows.append(row._replace(start=len(forward), terms=len(terms)))
            forward += terms
        self.dropped.append(numbers[at])
        numbers[at] = self.writer.add(pack_messages(rows, forward))
        for name, value in zip(SUMMARIES, summarize(rows), strict=True):
            self.arrays[name][at] = value

    def _changed(self, row: PackedMessage, entry: SegmentEntry) -> PackedMessage:
        author = self.people.setdefault((entry.author, entry.name), len(self.people))
        if author == len(self.said_by):
            self.said_by.append(0)
        self.said_by[row.author] -= 1
        self.said_by[author] += 1
        languages = list(self.languages)
        self.languages[languages[row.language]] -= 1
        self.languages[entry.language] = self.languages.get(entry.language, 0) + 1
        language = list(self.languages).index(entry.language)
        return row._replace(author=author, flags=entry.flags, captions=entry.captions, language=language)

    def _change_lists(self, gone: Mapping[int, set[int]]) -> None:
        """Shorten the posting lists; each keeps its place."""
        segment = self.segment
        terms = _Section(self.arrays["terms"], segment.vocabulary.block)
        lists = _Section(self.arrays["postings"], segment.lists.block)
        unused: set[int] = set()
        for ordinal, docs in gone.items():
            _, start, count, _ = segment.vocabulary.at(ordinal)
            found = zip(*segment.lists.slice(start, count), strict=True)
            kept = [posting for posting in found if posting[0] not in docs]
            places, weights = zip(*kept, *[(0, 0)] * (count - len(kept)), strict=True)
            lists.put(start, (array("I", places), array("B", weights)))
            _, _, counts, spelled = terms.block(ordinal // ENTRIES)
            counts[ordinal % ENTRIES] = len(kept)
            if not kept:
                spelled[ordinal % ENTRIES] = 0
                unused.add(ordinal)
        if unused:
            self._change_grams(unused)
            _erase(terms, self.arrays["term_tops"], 2)
        self._write("terms", terms)
        self._write("postings", lists)

    def _change_grams(self, unused: set[int]) -> None:
        """Take terms that no message has any more out of the lists of trigrams."""
        segment = self.segment
        grams = _Section(self.arrays["grams"], segment.grams.block)
        lists = _Section(self.arrays["gram_terms"], segment.gram_lists.block)
        for at in range(len(grams.numbers)):
            _, starts, counts = segment.grams.block(at)
            for place, (start, count) in enumerate(zip(starts, counts, strict=True)):
                if not count:
                    continue
                (terms,) = segment.gram_lists.slice(start, count)
                if unused.isdisjoint(terms):
                    continue
                kept = [term for term in terms if term not in unused]
                lists.put(start, [array("I", [*kept, *([0] * (count - len(kept)))])])
                grams.block(at)[2][place] = len(kept)
        _erase(grams, self.arrays["gram_tops"], 2)
        self._write("grams", grams)
        self._write("gram_terms", lists)

    def _edits(self) -> int | None:
        """Write the terms of all edited messages, old ones that did not change again included."""
        old = self.segment.edits
        said = {} if old is None else dict(zip(old.docs, old.arrays.entries(), strict=True))
        if self.segment.head.edits is not None:
            self.dropped.append(self.segment.head.edits)
        said |= self.changes
        kept = [(doc, entry) for doc, entry in sorted(said.items()) if entry.terms]
        if not kept:
            return None
        docs, entries = zip(*kept, strict=True)
        return self.writer.add(pack_edits(EditedMessages(array("I", docs), build(entries))))

    def _write(self, name: str, section: _Section) -> None:
        for at, columns in sorted(section.changed.items()):
            self.dropped.append(section.numbers[at])
            section.numbers[at] = self.writer.add(pack_columns(columns))
        self.arrays[name] = section.numbers


def _erase(section: _Section, tops: "array[int]", counts: int) -> None:
    """Overwrite the keys of entries that have no items, so that the order stays and nothing is left of them.

    They get the key before them in their block, or 0; a search finds the first of equal keys.
    """
    for at, columns in section.changed.items():
        keys, key, top = columns[0], 0, None
        for place, count in enumerate(columns[counts]):
            if count:
                key = keys[place]
                top = key if top is None else top
            else:
                keys[place] = key
        tops[at] = 0 if top is None else top
    # A block without entries is never the last that begins before a key.
    for at in range(len(tops) - 1, -1, -1):
        if not tops[at]:
            tops[at] = tops[at + 1] if at + 1 < len(tops) else (1 << 8 * tops.itemsize) - 1
