"""Stored segment: a segment of a channel's index in the store, of which a search loads only the blocks that it needs.

The head is small and stays in memory: the people, the numbers of the blocks, and what leads to the right one.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from struct import Struct
from typing import NamedTuple

import orjson

from belino.search.blocks import BlockColumns, BlockWriter, Lists, Load, LongList, PackedSegment, Table
from belino.search.segment import (
    THREAD,
    Begun,
    EditedMessages,
    MessageFlag,
    Sections,
    SegmentArrays,
    SimilarTerm,
    empty_sections,
    holding,
    match_terms,
    read_sections,
    shared_counts,
    thread_group,
    unpack,
)

MESSAGES = 32
"""Messages of a block. Candidates lie far apart: a block is about a page of the store, which is read at once."""
GROUPS = 1 << 20
"""Messages whose groups are in one block: those of many messages are looked up at once."""
LONG = 8_192
"""Postings of a list that is loaded only where it is read."""
SIZE_AT_MOST = 0xFFFF
TERM_COLUMNS, GRAM_COLUMNS, GROUP_COLUMNS, POSTING_COLUMNS = "QIIB", "III", "IIII", "IB"
"""Term, start and count of its postings, number of its trigrams; trigram, start and count of its terms; group, count,
first and last place; place and impact."""


class PackedMessage(NamedTuple):
    """A message as it is stored."""

    seq: int
    sent: int
    author: int
    """The place in the segment's `people`."""
    flags: int
    group: int
    before: int
    after: int
    size: int
    """Messages of its group in the segment."""
    began: int
    """1 if the segment has messages of a thread that it began."""
    start: int
    """Where its terms are in the block."""
    terms: int
    captions: int
    language: int
    """The place in the segment's `languages`."""


# Blocks of messages are not decoded: a search reads a few messages of each, and Python's garbage collector looks at
# every array that is held, but not at bytes.
_ROW = Struct("<QqIHIIIHBIHHB")
_ROW_BEGIN, _ROW_WALKED, _ROW_TERMS = Struct("<QqIHIIIHBIH"), Struct("<16xIH4xII"), Struct("<37xIH")
"""The fields up to `terms`; `author`, `flags`, `before` and `after`; `start` and `terms`."""
_unpack_row, _unpack_walked, _unpack_terms = _ROW_BEGIN.unpack_from, _ROW_WALKED.unpack_from, _ROW_TERMS.unpack_from
_ROWS_AT, _ROW_SIZE, _SHIFT, _MASK = 4, _ROW.size, MESSAGES.bit_length() - 1, MESSAGES - 1


def pack_messages(rows: Sequence[PackedMessage], forward: "array[int]") -> bytes:
    """Encode a block of messages."""
    count = len(rows).to_bytes(_ROWS_AT, "little")
    return b"".join((count, *(_ROW.pack(*row) for row in rows), forward.tobytes()))


def message_rows(block: bytes) -> list[PackedMessage]:
    """The messages of a block."""
    return list(map(PackedMessage._make, _ROW.iter_unpack(block[_ROWS_AT : _terms_at(block)])))


def message_terms(block: bytes) -> "array[int]":
    """The terms of a block's messages, one after another, as places in the vocabulary."""
    return array("I", block[_terms_at(block) :])


def _terms_at(block: bytes) -> int:
    return _ROWS_AT + _ROW_SIZE * int.from_bytes(block[:_ROWS_AT], "little")


def read_edits(content: bytes) -> EditedMessages:
    """Decode the block of edits."""
    end = 4 + 4 * int.from_bytes(content[:4], "little")
    docs = array("I")
    docs.frombytes(content[4:end])
    return EditedMessages(docs, unpack(content[end:]))


def pack_edits(edits: EditedMessages) -> bytes:
    """Encode the block of edits."""
    return len(edits.docs).to_bytes(4, "little") + edits.docs.tobytes() + edits.arrays.pack()


class Summary(NamedTuple):
    """What leads to a block of messages, and what is known without it."""

    seq: int
    sent: int
    """Of its first message."""
    living: int
    """Messages that are not deleted."""
    first: int
    last: int
    """When the oldest and the newest of these were sent."""


SUMMARIES = {"seqs": "Q", "sents": "q", "living": "H", "firsts": "q", "lasts": "q"}
"""The fields of `Summary` as arrays of the head."""


class Living(NamedTuple):
    """Messages that are not deleted: how many, and when the oldest and the newest were sent."""

    messages: int
    first: int
    last: int


NO_LIVING = Living(0, (1 << 63) - 1, -1 << 63)


def living(rows: Iterable[tuple[int, int]], since: int | None = None) -> Living:
    """The messages of these times and flags that are not deleted, nor sent before a time."""
    sents = [sent for sent, flags in rows if not flags & MessageFlag.GONE and (since is None or sent >= since)]
    return Living(len(sents), min(sents), max(sents)) if sents else NO_LIVING


def sum_of(parts: Iterable[Living]) -> Living:
    """Several parts together."""
    counts, firsts, lasts = zip(*parts, strict=True)
    return Living(sum(counts), min(firsts), max(lasts))


def summarize(rows: Sequence[PackedMessage]) -> Summary:
    """Sum up a block of messages."""
    return Summary(rows[0].seq, rows[0].sent, *living((row.sent, row.flags) for row in rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What stays in memory of a segment."""

    count: int
    last: int
    """The seq of its last message."""
    last_sent: int
    in_time: bool
    """Whether no message was sent before its predecessor."""
    said: Sequence[int]
    """The places of its first and last message outside threads; empty if it has none."""
    begun: Begun
    threaded: int
    """Messages in threads."""
    noted: int
    """The last note of a changed message that is applied."""
    number: int
    """That of the next block."""
    edits: int | None
    """The block with the terms of messages that changed since."""
    people: list[tuple[str, str]]
    said_by: list[int]
    """Messages of each of the people."""
    languages: list[tuple[str, int]]
    """With the number of messages in each."""
    arrays: Sections
    """The numbers of the blocks by section; the first keys of the blocks of tables; `elsewhere`, the groups that are
    not numbered after a message of this segment; and the summaries of the blocks of messages."""

    @property
    def first(self) -> int:
        return self.arrays["seqs"][0]

    def pack(self) -> bytes:
        head = orjson.dumps(
            {
                "count": self.count,
                "last": self.last,
                "last_sent": self.last_sent,
                "in_time": self.in_time,
                "said": self.said,
                "begun": tuple(self.begun),
                "threaded": self.threaded,
                "noted": self.noted,
                "number": self.number,
                "edits": self.edits,
                "people": self.people,
                "said_by": self.said_by,
                "languages": self.languages,
                "arrays": [(name, part.typecode, len(part)) for name, part in self.arrays.items()],
            }
        )
        return b"".join((len(head).to_bytes(4, "big"), head, *(part.tobytes() for part in self.arrays.values())))


def read_head(content: bytes) -> Head:
    """The head of packed bytes."""
    head_end = 4 + int.from_bytes(content[:4], "big")
    head = orjson.loads(content[4:head_end])
    head["arrays"] = read_sections(head["arrays"], memoryview(content)[head_end:])
    head["begun"] = Begun(*head["begun"])
    head["people"] = [(author, name) for author, name in head["people"]]
    head["languages"] = [(language, times) for language, times in head["languages"]]
    return Head(**head)


class Group(NamedTuple):
    """The messages of a group in a segment: how many, and their places."""

    size: int
    first: int
    last: int


class StoredSegment:
    """Consecutive messages of a channel; blocks come through `load`."""

    def __init__(self, head: Head, load: Load) -> None:
        self.head = head
        self.load = load
        arrays = head.arrays
        self.vocabulary = Table(load, arrays["terms"], arrays["term_tops"], TERM_COLUMNS)
        self.grams = Table(load, arrays["grams"], arrays["gram_tops"], GRAM_COLUMNS)
        self._group_table = Table(load, arrays["groups"], arrays["group_tops"], GROUP_COLUMNS)
        self.lists = Lists(load, arrays["postings"], POSTING_COLUMNS)
        self.gram_lists = Lists(load, arrays["gram_terms"], "I")
        self._groups = Lists(load, arrays["message_groups"], "I", GROUPS)
        self._messages = arrays["messages"]
        self._in_use: dict[int, bytes] = {}
        """The blocks of messages that the current search has read: it comes back to most of them."""
        self._elsewhere = arrays["elsewhere"]
        self.is_dense = head.last - head.first + 1 == head.count
        """Whether its seqs follow one another without a gap."""
        self._all = self._living(0, len(self._messages))

    def __len__(self) -> int:
        return self.head.count

    @property
    def bytes_held(self) -> int:
        """An estimate of the memory of its head."""
        return (
            4_000 + sum(part.itemsize * len(part) for part in self.head.arrays.values()) + 200 * len(self.head.people)
        )

    @property
    def is_gone(self) -> bool:
        """Whether all its messages are deleted."""
        return not self._all.messages

    def row(self, doc: int) -> tuple[int, ...]:
        """A message, as the fields of `PackedMessage` up to `terms`."""
        block = self._in_use.get(doc >> _SHIFT) or self._block(doc >> _SHIFT)
        return _unpack_row(block, _ROWS_AT + _ROW_SIZE * (doc & _MASK))

    def flags(self, doc: int) -> int:
        """The flags of a message."""
        return self._walked(doc)[1]

    def walk(self, doc: int, *, back: bool) -> Iterator[tuple[int, int, int]]:
        """The messages before or after one in its thread or session, nearest first, as far as the segment has them.

        Each as its place, author and flags.
        """
        _, _, before, after = self._walked(doc)
        while step := -before if back else after:
            doc += step
            if not 0 <= doc < self.head.count:
                return
            author, flags, before, after = self._walked(doc)
            yield doc, author, flags

    def _walked(self, doc: int) -> tuple[int, int, int, int]:
        """The author, flags and distances to the messages before and after."""
        block = self._in_use.get(doc >> _SHIFT) or self._block(doc >> _SHIFT)
        return _unpack_walked(block, _ROWS_AT + _ROW_SIZE * (doc & _MASK))

    def rows(self, at: int) -> list[PackedMessage]:
        """The messages of a block."""
        return message_rows(self.block(at))

    def block(self, at: int) -> bytes:
        """A block of messages."""
        return self.load(self._messages[at], bytes)

    def end_use(self) -> None:
        """A search has ended."""
        self._in_use.clear()

    def _block(self, at: int) -> bytes:
        block = self._in_use[at] = self.block(at)
        return block

    def seq(self, doc: int) -> int:
        """The seq of a message."""
        return self.head.first + doc if self.is_dense else self.row(doc)[0]

    def place_after(self, seq: int) -> int:
        """The place of the first message after a seq."""
        if self.is_dense:
            return min(max(0, seq - self.head.first + 1), self.head.count)
        at = bisect_right(self.head.arrays["seqs"], seq) - 1
        return 0 if at < 0 else at * MESSAGES + bisect_right([row.seq for row in self.rows(at)], seq)

    def place_since(self, sent: int) -> int:
        """The place of the first message that was sent at a time or later, if they are in order of time."""
        at = bisect_left(self.head.arrays["sents"], sent) - 1
        return 0 if at < 0 else at * MESSAGES + bisect_left([row.sent for row in self.rows(at)], sent)

    def living(self, begin: int, end: int, since: int | None) -> Living:
        """The messages of consecutive blocks that are not deleted, nor sent before a time."""
        if since is None:
            return self._all if end - begin == len(self._messages) else self._living(begin, end)
        firsts, lasts = self.head.arrays["firsts"], self.head.arrays["lasts"]
        parts = [NO_LIVING]
        for at in range(begin, end):
            if firsts[at] >= since:
                parts.append(self._living(at, at + 1))
            elif lasts[at] >= since:
                parts.append(living([(row.sent, row.flags) for row in self.rows(at)], since))
        return sum_of(parts)

    def _living(self, begin: int, end: int) -> Living:
        if begin >= end:
            return NO_LIVING
        arrays = self.head.arrays
        return Living(
            sum(arrays["living"][begin:end]), min(arrays["firsts"][begin:end]), max(arrays["lasts"][begin:end])
        )

    def groups_of(self, docs: Sequence[int]) -> Iterable[int]:
        """The groups of several messages."""
        blocks = [self._groups.block(at)[0] for at in range(len(self._groups.numbers))]
        if len(blocks) == 1:
            return map(blocks[0].__getitem__, docs)
        return [blocks[doc // GROUPS][doc % GROUPS] for doc in docs]

    def matches(self, docs: Iterable[int], terms: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
        """The messages that have some of the terms, the bits of these, and those bits whose next follows at once."""
        found = {term: self.vocabulary.find(term) for term in terms}
        bits = {entry[0]: terms[term] for term, entry in found.items() if entry is not None}
        edits = self.edits
        for doc in docs:
            ordinals = self.ordinals(doc)
            at = None if edits is None or ordinals else edits.place(doc)
            if edits is not None and at is not None:
                matched = match_terms(edits.arrays.terms(at), terms)
            else:
                matched = match_terms(ordinals, bits)
            if matched[0]:
                yield doc, *matched

    def ordinals(self, doc: int) -> "array[int]":
        """A message's terms in order, as places in the vocabulary; none if it was edited."""
        block = self._in_use.get(doc >> _SHIFT) or self._block(doc >> _SHIFT)
        start, count = _unpack_terms(block, _ROWS_AT + _ROW_SIZE * (doc & _MASK))
        begin = _terms_at(block) + 4 * start
        return array("I", block[begin : begin + 4 * count])

    def terms(self, doc: int) -> "array[int]":
        """A message's terms in order."""
        edits = self.edits
        at = None if edits is None else edits.place(doc)
        if edits is not None and at is not None:
            return edits.arrays.terms(at)
        return array("Q", [self.vocabulary.at(ordinal)[0] for ordinal in self.ordinals(doc)])

    @property
    def edits(self) -> EditedMessages | None:
        """The terms of messages that changed since."""
        return None if self.head.edits is None else self.load(self.head.edits, read_edits)

    def postings(self, term: int) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """The messages with a term, by their place in the segment, and its impact on each; edited ones apart."""
        found = self.vocabulary.find(term)
        if found is not None:
            _, start, count, _ = found
            if count > LONG:
                yield LongList(self.lists, start, count, 0), LongList(self.lists, start, count, 1)
            else:
                docs, weights = self.lists.slice(start, count)
                yield docs, weights
        edits = self.edits
        if edits is not None:
            docs, weights = edits.arrays.postings(term)
            if docs:
                yield array("I", map(edits.docs.__getitem__, docs)), weights

    def frequency(self, term: int) -> int:
        """How many messages have a term."""
        found = self.vocabulary.find(term)
        edits = self.edits
        return (0 if found is None else found[2]) + (0 if edits is None else len(edits.arrays.postings(term)[0]))

    def containing(self, spelling: Sequence[int]) -> Iterator[SimilarTerm]:
        """The terms that begin or end with a word of this spelling, as a compound does."""
        for ordinal in holding([self._spelled_with(gram) for gram in spelling]):
            term, _, count, spelled = self.vocabulary.at(ordinal)
            yield SimilarTerm(term, 2 * len(spelling) / (len(spelling) + spelled), count)
        edits = self.edits
        if edits is not None:
            yield from edits.arrays.containing(spelling)

    def _spelled_with(self, gram: int) -> "array[int]":
        found = self.grams.find(gram)
        return array("I") if found is None else self.gram_lists.slice(*found[1:])[0]

    def similar(self, spelling: Sequence[int], least: float) -> Iterator[SimilarTerm]:
        """The terms that share trigrams with a word of this spelling, and are at least so much like it."""
        lists = [self._spelled_with(gram) for gram in spelling]
        for ordinal, shared in shared_counts(sorted(lists, key=len), least).items():
            term, _, count, spelled = self.vocabulary.at(ordinal)
            likeness = 2 * shared / (len(spelling) + spelled)
            if likeness >= least:
                yield SimilarTerm(term, likeness, count)
        edits = self.edits
        if edits is not None:
            yield from edits.arrays.similar(spelling, least)

    def is_elsewhere(self, group: int) -> bool:
        """Whether it has messages of a group that is not numbered after one of its own."""
        at = bisect_left(self._elsewhere, group)
        return at < len(self._elsewhere) and self._elsewhere[at] == group

    def group(self, group: int) -> Group | None:
        """The messages of a group in the segment; their places only if it is a thread or elsewhere."""
        is_own = self.head.first <= group >> 1 <= self.head.last
        if self.is_elsewhere(group) or (is_own and group & THREAD):
            found = self._group_table.find(group)
            return None if found is None else Group(*found[1:])
        if not is_own:
            return None
        doc = self.place_after(group >> 1) - 1
        _, _, _, _, own, _, _, size, *_ = self.row(doc)
        return Group(size, doc, doc) if own == group else None

    def arrays(self) -> SegmentArrays:
        """Everything that it holds."""
        sections = empty_sections()
        lengths = [0]
        for at in range(len(self._messages)):
            columns = list(zip(*self.rows(at), strict=True))
            for name, column in zip(_ROW_SECTIONS, (*columns[:7], *columns[11:]), strict=True):
                sections[name].extend(column)
            lengths.extend(columns[10])
            sections["forward"] += message_terms(self.block(at))
        sections["offsets"].extend(accumulate(lengths))
        held: tuple[BlockColumns, ...] = (self.vocabulary, self.grams, self.lists, self.gram_lists)
        for names, blocks in zip(_TABLE_SECTIONS, held, strict=True):
            for at in range(len(blocks.numbers)):
                for name, part in zip(names, blocks.block(at), strict=True):
                    sections[name] += part
        languages = [language for language, _ in self.head.languages]
        arrays = SegmentArrays(sections, self.head.people, languages, self.head.begun)
        arrays.edits = self.edits
        return arrays


_ROW_SECTIONS = ("seqs", "sents", "authors", "flags", "groups", "before", "after", "captions", "spoken")
_TABLE_SECTIONS = (
    ("vocabulary", "starts", "counts", "spelled"),
    ("grams", "gram_starts", "gram_counts"),
    ("docs", "impacts"),
    ("gram_terms",),
)


def cut(arrays: SegmentArrays, noted: int = 0) -> PackedSegment:
    """Cut a segment into blocks, with `noted` changes of its messages applied."""
    writer = BlockWriter()
    sizes = Counter(arrays.groups)
    sections: Sections = {name: array(typecode) for name, typecode in SUMMARIES.items()}
    sections["messages"] = array("I")
    for begin in range(0, len(arrays), MESSAGES):
        rows, forward = _rows(arrays, begin, min(begin + MESSAGES, len(arrays)), sizes)
        sections["messages"].append(writer.add(pack_messages(rows, forward)))
        for name, value in zip(SUMMARIES, summarize(rows), strict=True):
            sections[name].append(value)
    groups = _groups(arrays, sizes)
    tables = [[arrays.sections[name] for name in names] for names in _TABLE_SECTIONS]
    sections["terms"], sections["term_tops"] = writer.table(tables[0])
    sections["grams"], sections["gram_tops"] = writer.table(tables[1])
    sections["groups"], sections["group_tops"] = writer.table(groups)
    sections["postings"] = writer.lists(tables[2])
    sections["gram_terms"] = writer.lists(tables[3])
    sections["message_groups"] = writer.lists([arrays.groups], GROUPS)
    first, last = arrays.seqs[0], arrays.seqs[-1]
    sections["elsewhere"] = array("I", [group for group in sorted(sizes) if not first <= group >> 1 <= last])
    said = [doc for doc, group in enumerate(arrays.groups) if not group & THREAD]
    times, said_by = Counter(arrays.spoken), Counter(arrays.authors)
    head = Head(
        count=len(arrays),
        last=last,
        last_sent=arrays.sents[-1],
        in_time=all(one <= next_one for one, next_one in pairwise(arrays.sents)),
        said=(said[0], said[-1]) if said else (),
        begun=arrays.begun,
        threaded=len(arrays) - len(said),
        noted=noted,
        number=writer.number,
        edits=None,
        people=arrays.people,
        said_by=[said_by[at] for at in range(len(arrays.people))],
        languages=[(language, times[at]) for at, language in enumerate(arrays.languages)],
        arrays=sections,
    )
    return PackedSegment(first, last, head.pack(), writer.blocks)


def _rows(arrays: SegmentArrays, begin: int, end: int, sizes: Counter[int]) -> tuple[list[PackedMessage], "array[int]"]:
    offsets = arrays.offsets
    base = offsets[begin]
    rows = [
        PackedMessage(
            seq,
            arrays.sents[doc],
            arrays.authors[doc],
            arrays.flags[doc],
            arrays.groups[doc],
            arrays.before[doc],
            arrays.after[doc],
            min(sizes[arrays.groups[doc]], SIZE_AT_MOST),
            int(thread_group(seq) in sizes),
            offsets[doc] - base,
            offsets[doc + 1] - offsets[doc],
            arrays.captions[doc],
            arrays.spoken[doc],
        )
        for doc, seq in enumerate(arrays.seqs[begin:end], begin)
    ]
    return rows, arrays.forward[base : offsets[end]]


def _groups(arrays: SegmentArrays, sizes: Counter[int]) -> list["array[int]"]:
    """The table of groups: threads, and sessions that began in another segment."""
    first, last = arrays.seqs[0], arrays.seqs[-1]
    chosen = [group for group in sorted(sizes) if group & THREAD or not first <= group >> 1 <= last]
    ends = {group: doc for doc, group in enumerate(arrays.groups)}
    begins = {group: doc for doc, group in zip(range(len(arrays) - 1, -1, -1), reversed(arrays.groups), strict=True)}
    return [array("I", chosen), *(array("I", [of[group] for group in chosen]) for of in (sizes, begins, ends))]
