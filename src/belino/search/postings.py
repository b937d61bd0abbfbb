"""Postings of one channel in memory: the stored segments, and the newest messages that are in none yet."""

from array import array
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from belino.search.segment import MessageFlag, Segment, SegmentEntry, TermPostings, add_postings, build, impacts, merge
from belino.search.tokenizer import name_parts

NO_PLACE = 0xFFFFFFFF
"""In `before` and `after`: there is no such message."""
SESSION_GAP = 3_600_000_000
"""Microseconds of silence that end a session."""
SESSION_MESSAGES = 16
"""A session has no more messages than this, however busy the channel is."""
FAN = 4
"""Segments of similar size that are merged into one."""


class ChannelPostings:
    """The messages of a channel by place, oldest first, and the terms they are found by."""

    def __init__(self, number: Callable[[str], int]) -> None:
        self.number = number
        """The keyed hash of a term."""
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        """The place of each segment's first message."""
        self.tail: list[SegmentEntry] = []
        """The newest messages, which are in no segment yet."""
        self.tail_base = 0
        self._tail_postings: TermPostings = {}
        self._tail_terms = 0
        self.seqs = array("Q")
        self.sents = array("q")
        """Microseconds."""
        self.in_time = True
        """Whether no message was sent before its predecessor."""
        self.authors = array("I")
        """Indexes of `names` and `ids`."""
        self.flags = array("B")
        self.gone = array("I")
        """Places of deleted messages, ascending."""
        self.groups = array("I")
        """Messages of one thread, or of one session, share a number."""
        self.threads: dict[int, int] = {}
        """The groups of threads by the place of their first message."""
        self.before = array("I")
        """The place of the previous message of the thread or session, or NO_PLACE."""
        self.after = array("I")
        self.names: list[str] = []
        self.ids: list[str] = []
        """The platform's ids of the people in `names`."""
        self.called: dict[str, set[int]] = {}
        """The people whose name contains or contained a word, in the form of `name_parts`."""
        self._people: dict[str, int] = {}
        self._spoken: dict[str, int] = {}
        self.patches: dict[int, SegmentEntry] = {}
        """Messages that changed, or were deleted, since they were indexed."""
        self._patch_postings: dict[int, list[tuple[int, int]]] = {}
        self._threads: dict[int, tuple[int, int]] = {}
        self._last_said = NO_PLACE
        self._group = 0
        self._session = 0

    def __len__(self) -> int:
        return len(self.seqs)

    @property
    def bytes_held(self) -> int:
        """An estimate: arrays by their size, objects by their measured size."""
        own = 33 * len(self.seqs) + 4 * len(self.gone) + 300 * len(self.names) + 150 * len(self._threads)
        tail = 280 * len(self.tail) + 13 * self._tail_terms + 306 * len(self._tail_postings)
        patches = 330 * len(self.patches) + 250 * len(self._patch_postings)
        return own + tail + patches + sum(segment.bytes_held for segment in self.segments)

    @property
    def languages(self) -> Collection[str]:
        """The languages of at least one message in a hundred."""
        return [language for language, times in self._spoken.items() if times * 100 >= len(self.seqs)]

    def add_segment(self, segment: Segment) -> None:
        """Append a stored segment. The tail must be empty."""
        self.bases.append(len(self.seqs))
        self.segments.append(segment)
        numbers = [self._person(author, name) for author, name in segment.people]
        for seq, sent, author, root, flags in zip(
            segment.seqs, segment.sents, segment.authors, segment.roots, segment.flags, strict=True
        ):
            self._append(seq, sent, numbers[author], root, flags)
        for at, times in Counter(segment.spoken).items():
            language = segment.languages[at]
            self._spoken[language] = self._spoken.get(language, 0) + times
        self.tail_base = len(self.seqs)

    def add(self, entry: SegmentEntry) -> None:
        """Append a message that is newer than all others."""
        doc = len(self.seqs)
        self._append(entry.seq, entry.sent, self._person(entry.author, entry.name), entry.root, entry.flags)
        self.tail.append(entry)
        self._tail_terms += len(entry.terms)
        self._spoken[entry.language] = self._spoken.get(entry.language, 0) + 1
        add_postings(self._tail_postings, doc, entry)

    def end_tail(self) -> Segment:
        """Make a segment of the tail."""
        segment = build(self.patched(self.tail))
        self.bases.append(self.tail_base)
        self.segments.append(segment)
        for doc in [doc for doc in self.patches if doc >= self.tail_base]:
            del self.patches[doc]
        self._patch()
        self.tail = []
        self._tail_postings = {}
        self._tail_terms = 0
        self.tail_base = len(self.seqs)
        return segment

    def rewrite(self, first: int, count: int) -> None:
        """Replace several segments with one, with all patches applied."""
        old = self.segments[first : first + count]
        if any(self.is_patched(at) for at in range(first, first + count)):
            segment = build(self.patched(entry for one in old for entry in one.entries()))
        else:
            segment = merge(old)
        base = self.bases[first]
        self.segments[first : first + count] = [segment]
        self.bases[first : first + count] = [base]
        for doc in [doc for doc in self.patches if base <= doc < base + len(segment)]:
            del self.patches[doc]
        self._patch()

    def is_patched(self, at: int) -> bool:
        """Whether a segment holds messages that changed since."""
        base = self.bases[at]
        return any(base <= doc < base + len(self.segments[at]) for doc in self.patches)

    def merge_segments(self) -> None:
        """Merge the last segments when the later ones outgrow the first of them, so that there are never many."""
        sizes = [len(segment) for segment in self.segments]
        for at in range(len(sizes) - 1):
            if sum(sizes[at + 1 :]) >= (FAN - 1) * sizes[at]:
                self.rewrite(at, len(sizes) - at)
                return

    def rewrite_patched(self) -> None:
        """Apply the patches to the segments they belong to."""
        for at in range(len(self.segments)):
            if self.is_patched(at):
                self.rewrite(at, 1)

    def deleted_segments(self) -> list[Segment]:
        """The oldest segments with only deleted messages, without the newest: it marks how far the index goes."""
        deleted: list[Segment] = []
        for base, segment in zip(self.bases[:-1], self.segments[:-1], strict=True):
            if not all(flags & MessageFlag.GONE for flags in self.flags[base : base + len(segment)]):
                break
            deleted.append(segment)
        return deleted

    @property
    def patches_in_segments(self) -> bool:
        return any(doc < self.tail_base for doc in self.patches)

    def without(self, doc: int) -> SegmentEntry:
        """The entry of a message that the store no longer has."""
        author, name = self.ids[self.authors[doc]], self.names[self.authors[doc]]
        seq, sent = self.seqs[doc], self.sents[doc]
        return SegmentEntry(seq, sent, author, name, 0, MessageFlag.GONE, array("Q"), 0, "english")

    def patched(self, entries: Iterable[SegmentEntry]) -> Iterator[SegmentEntry]:
        """Entries with the patches applied."""
        by_seq = {entry.seq: entry for entry in self.patches.values()}
        return (by_seq.get(entry.seq, entry) for entry in entries)

    def patch(self, entries: Iterable[SegmentEntry]) -> None:
        """Replace the entries of messages that changed or were deleted."""
        for entry in entries:
            doc = self.place(entry.seq)
            if doc is not None:
                if entry.flags & ~self.flags[doc] & MessageFlag.GONE:
                    insort(self.gone, doc)
                self.flags[doc] = entry.flags
                self.authors[doc] = self._person(entry.author, entry.name)
                self.patches[doc] = entry
        self._patch()

    def _patch(self) -> None:
        self._patch_postings.clear()
        for place, patched in sorted(self.patches.items()):
            for term, impact in impacts(patched.terms, patched.captions).items():
                self._patch_postings.setdefault(term, []).append((place, impact))

    def place(self, seq: int) -> int | None:
        """The place of the message with this seq."""
        at = bisect_left(self.seqs, seq)
        return at if at < len(self.seqs) and self.seqs[at] == seq else None

    def postings(self, term: int) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
        """The posting lists of a term: the offset of the places, the places, and the impacts in hundredths."""
        patches = self.patches
        for base, segment in zip(self.bases, self.segments, strict=True):
            docs, weights = segment.postings(term)
            if docs:
                yield _without(base, docs, weights, patches) if patches else (base, docs, weights)
        docs, weights = self._tail_postings.get(term, ((), ()))
        if docs:
            yield _without(0, docs, weights, patches) if patches else (0, docs, weights)
        patched = self._patch_postings.get(term)
        if patched:
            yield 0, [doc for doc, _ in patched], [impact for _, impact in patched]

    def terms(self, doc: int) -> Sequence[int]:
        """A message's terms in order."""
        patched = self.patches.get(doc)
        if patched is not None:
            return patched.terms
        if doc >= self.tail_base:
            return self.tail[doc - self.tail_base].terms
        at = len(self.bases) - 1
        while self.bases[at] > doc:
            at -= 1
        return self.segments[at].terms(doc - self.bases[at])

    def _person(self, author: str, name: str) -> int:
        number = self._people.setdefault(author, len(self._people))
        if number == len(self.names):
            self.names.append(name)
            self.ids.append(author)
        elif self.names[number] == name:
            return number
        self.names[number] = name
        for part in name_parts(name):
            self.called.setdefault(part, set()).add(number)
        return number

    def _append(self, seq: int, sent: int, author: int, root: int, flags: int) -> None:
        doc = len(self.seqs)
        if doc and sent < self.sents[-1]:
            self.in_time = False
        if root:
            group, last = self._threads.get(root) or self._new_thread(root)
            self._threads[root] = (group, doc)
            previous = NO_PLACE if last is None else last
        else:
            last_said = self._last_said
            self._session += 1
            new = last_said == NO_PLACE or abs(sent - self.sents[last_said]) > SESSION_GAP
            if new or self._session == SESSION_MESSAGES:
                self._session = 0
            group = self.groups[last_said] if self._session else self._new_group()
            previous = NO_PLACE if new else last_said
            self._last_said = doc
        self.seqs.append(seq)
        self.sents.append(sent)
        self.authors.append(author)
        self.flags.append(flags)
        if flags & MessageFlag.GONE:
            self.gone.append(doc)
        self.groups.append(group)
        self.before.append(previous)
        self.after.append(NO_PLACE)
        if previous != NO_PLACE and (not root or previous != self.place(root)):
            self.after[previous] = doc

    def _new_thread(self, root: int) -> tuple[int, int | None]:
        group, place = self._new_group(), self.place(root)
        if place is not None:
            self.threads[place] = group
        return group, place

    def _new_group(self) -> int:
        self._group += 1
        return self._group


def _without(
    base: int, docs: Sequence[int], weights: Sequence[int], patches: dict[int, SegmentEntry]
) -> tuple[int, Sequence[int], Sequence[int]]:
    kept = [(doc, weight) for doc, weight in zip(docs, weights, strict=True) if base + doc not in patches]
    return base, [doc for doc, _ in kept], [weight for _, weight in kept]
