"""Postings of one channel: its stored segments, and the newest and changed messages that they do not have yet.

What a search asks: `postings(term)` for the messages that have a term, `terms(place)` for the terms of a message,
`matches` for the words of a query in some messages, and `similar(spelling)` for the channel's words that are spelled
like one that no message has. All of them know terms as keyed hashes; `number` and `spelling` give those of a word. A
prefix of a code is found only if it was indexed as a term of its own.

Messages are known by their place, oldest first. `rows[place]` has what is known of one, and is loaded when it is read.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from belino.search.segment import (
    THREAD,
    Begun,
    MessageFlag,
    SegmentEntry,
    SimilarTerm,
    match_terms,
    session_group,
    thread_group,
)
from belino.search.stored_segment import MESSAGES, Living, StoredSegment, living, sum_of
from belino.search.tail import NO_PLACE, IndexRow, Patches, Tail
from belino.search.tokenizer import name_parts
from belino.search.trigrams import spelling_of

_make_row = tuple.__new__
"""Twice as fast as calling the class."""
SESSION_GAP = 3_600_000_000
"""Microseconds of silence that end a session."""
SESSION_MESSAGES = 16
"""A session has no more messages than this, however busy the channel is."""


class IndexRows(dict[int, IndexRow]):
    """The rows of messages that were read, by place."""

    def __init__(self, index: "ChannelPostings") -> None:
        super().__init__()
        self._index = index

    def __missing__(self, place: int) -> IndexRow:
        index = self._index
        base = index.tail.base
        if place >= base:
            row = self[place] = index.tail.rows[place - base]
            return row
        at = bisect_right(index.bases, place) - 1
        if at < 0:
            raise IndexError(place)
        segment, doc = index.segments[at], place - index.bases[at]
        seq, sent, author, flags, group, back, on, size, began, _, terms = segment.row(doc)
        author = index.people_of[at][author]
        if not terms and segment.head.edits is not None:
            terms = len(segment.terms(doc))
        if index.patches.entries:
            patched = index.patches.entries.get(place)
            if patched is not None:
                author, flags, terms = index.person(patched.author, patched.name), patched.flags, len(patched.terms)
        before = place - back if 0 < back <= place else NO_PLACE
        after = place + on if on else index.next_elsewhere(at, place, group)
        row = self[place] = _make_row(IndexRow, (seq, sent, author, flags, group, before, after, began, size, terms))
        return row


class ChannelPostings:
    """The messages of a channel by place, and the terms they are found by."""

    def __init__(self, number: Callable[[str], int], segments: Sequence[StoredSegment] = ()) -> None:
        self.number = number
        """The keyed hash of a term."""
        self.texts: Callable[[Sequence[int]], Mapping[int, str]] = _no_texts
        """Reads what messages say, by their seqs, while the store is read; the index holds no words."""
        self.segments = segments
        self.bases: list[int] = []
        """The place of each segment's first message."""
        self.names: list[str] = []
        self.ids: list[str] = []
        """The platform's ids of the people in `names`."""
        self.called: dict[str, set[int]] = {}
        """The people whose name contains or contained a word, in the form of `name_parts`."""
        self.said_by: list[int] = []
        """Messages of each of the people in `names`."""
        self._talkers = (0, 0.0)
        """For how many messages the number of talkers was counted, and that number."""
        self._people: dict[str, int] = {}
        self.people_of: list[list[int]] = []
        """The numbers of each segment's people."""
        self._spoken: dict[str, int] = {}
        self.in_time = True
        """Whether no message was sent before its predecessor."""
        self._elsewhere: set[int] = set()
        """Groups that may have messages in several segments."""
        self._after: dict[int, int] = {}
        """The next messages of those whose thread or session goes on in the tail."""
        self.patches = Patches()
        self.rows = IndexRows(self)
        """The messages by place."""
        self.tail = Tail(0)
        self._threaded = sum(segment.head.threaded for segment in segments)
        self._begun = Begun(*(sum(segment.head.begun[kind] for segment in segments) for kind in range(2)))
        for segment in segments:
            self._add_segment(segment)
        self._said = self._last_said()
        self._session = self.group_size(self.rows[self._said].group) - 1 if self._said != NO_PLACE else 0

    def __len__(self) -> int:
        return self.tail.base + len(self.tail)

    @property
    def bytes_held(self) -> int:
        """An estimate of its memory, without the blocks that were loaded."""
        own = 300 * len(self.names) + 64 * len(self._elsewhere) + 110 * len(self._after) + 420 * len(self.rows)
        return own + self.tail.bytes_held + self.patches.bytes_held

    @property
    def languages(self) -> Collection[str]:
        """The languages of at least one message in a hundred."""
        return [language for language, times in self._spoken.items() if times * 100 >= len(self)]

    @property
    def spoken(self) -> Collection[str]:
        """The languages of any message."""
        return [language for language, times in self._spoken.items() if times]

    @property
    def talkers(self) -> float:
        """The number of people who talk, as many as would share the talk equally."""
        if self._talkers[0] != len(self):
            total = sum(self.said_by)
            self._talkers = len(self), total * total / max(1, sum(times * times for times in self.said_by))
        return self._talkers[1]

    def end_use(self) -> None:
        """A search has ended: what it read is not needed for the next one."""
        self.texts = _no_texts
        self.rows.clear()
        for segment in self.segments:
            segment.end_use()

    # --- what it is made of ---

    def _add_segment(self, segment: StoredSegment) -> None:
        head, base = segment.head, self.tail.base
        if self.bases and head.arrays["sents"][0] < self.segments[len(self.bases) - 1].head.last_sent:
            self.in_time = False
        self.in_time &= head.in_time
        self.bases.append(base)
        people = [self.person(author, name) for author, name in head.people]
        for person, times in zip(people, head.said_by, strict=True):
            self.said_by[person] += times
        self.people_of.append(people)
        for language, times in head.languages:
            self._spoken[language] = self._spoken.get(language, 0) + times
        self._elsewhere.update(head.arrays["elsewhere"])
        self.tail = Tail(base + len(segment))

    def add(self, entry: SegmentEntry) -> None:
        """Append a message that is newer than all others."""
        tail, place = self.tail, len(self)
        if place and entry.sent < self.rows[place - 1].sent:
            self.in_time = False
        if entry.root:
            group, before, goes_on = self._thread(entry.root)
        else:
            group, before = self._next_session(entry)
            goes_on, self._said = True, place
        if goes_on and before != NO_PLACE:
            self._link(before, place)
        author = self.person(entry.author, entry.name)
        self.said_by[author] += 1
        row = IndexRow(entry.seq, entry.sent, author, entry.flags, group, before, NO_PLACE, 0, 0, len(entry.terms))
        tail.add(entry, row)
        self._spoken[entry.language] = self._spoken.get(entry.language, 0) + 1

    def patch(self, place: int, entry: SegmentEntry, note: int) -> bool:
        """Replace a message that changed or was deleted, unless its segment has that `note` already.

        Returns whether it is in another thread now, and the tail is to be put together again.
        """
        author, tail = self.person(entry.author, entry.name), self.tail
        self.rows.pop(place, None)
        if place >= tail.base:
            root = tail.entries[place - tail.base].root
            tail.replace(place, entry._replace(root=root) if entry.flags & MessageFlag.GONE else entry, author)
            return entry.root != root and not entry.flags & MessageFlag.GONE
        at = self._segment_at(place)
        segment, doc = self.segments[at], place - self.bases[at]
        if segment.head.noted < note:
            self.patches.add(place, entry, note, segment.terms(doc))
        return False

    def without(self, place: int) -> SegmentEntry:
        """The entry of a message that the store no longer has."""
        row = self.rows[place]
        author, name = self.ids[row.author], self.names[row.author]
        return SegmentEntry(row.seq, row.sent, author, name, 0, MessageFlag.GONE, array("Q"), 0, "english")

    # --- messages ---

    def place(self, seq: int) -> int | None:
        """The place of the message with this seq."""
        place = self.place_after(seq) - 1
        return place if place >= 0 and self.seq(place) == seq else None

    def seq(self, place: int) -> int:
        """The seq of a message, mostly without loading it."""
        if place >= self.tail.base:
            return self.tail.seqs[place - self.tail.base]
        at = self._segment_at(place)
        return self.segments[at].seq(place - self.bases[at])

    def seqs(self, places: Iterable[int]) -> list[int]:
        """The seqs of messages."""
        if len(self.segments) == 1 and self.segments[0].is_dense:
            first, base, tail = self.segments[0].head.first, self.tail.base, self.tail.seqs
            return [first + place if place < base else tail[place - base] for place in places]
        return list(map(self.seq, places))

    def place_after(self, seq: int) -> int:
        """The place of the first message after a seq."""
        tail = self.tail
        if tail.seqs and seq >= tail.seqs[0]:
            return tail.base + bisect_right(tail.seqs, seq)
        for base, segment in zip(reversed(self.bases), reversed(self.segments), strict=True):
            if segment.head.first <= seq:
                return base + segment.place_after(seq)
        return 0

    def place_since(self, sent: int) -> int:
        """The place of the first message that was sent at a time or later, if they are in order of time."""
        for base, segment in zip(self.bases, self.segments, strict=True):
            if segment.head.last_sent >= sent:
                return base + segment.place_since(sent)
        return self.tail.base + bisect_left(self.tail.sents, sent)

    def walk(self, place: int, *, back: bool) -> Iterator[tuple[int, int, int]]:
        """The messages before or after one in its thread or session, nearest first: their places, authors and flags."""
        if place < self.tail.base and not self.patches.entries:
            at = self._segment_at(place)
            base, people = self.bases[at], self.people_of[at]
            for doc, author, flags in self.segments[at].walk(place - base, back=back):
                place = base + doc
                yield place, people[author], flags
        rows = self.rows
        while (place := rows[place].before if back else rows[place].after) != NO_PLACE:
            yield place, rows[place].author, rows[place].flags

    def with_flags(self, start: int, end: int, has: int, lacks: int) -> Iterator[int]:
        """The messages from one place up to another that have and lack flags, newest first."""
        mask, patched = has | lacks, self.patches.entries
        for place in range(end - 1, max(start, self.tail.base) - 1, -1):
            if self.tail.rows[place - self.tail.base].flags & mask == has:
                yield place
        for base, segment in zip(reversed(self.bases), reversed(self.segments), strict=True):
            for doc in range(min(end - base, len(segment)) - 1, max(start - base, 0) - 1, -1):
                flags = patched[base + doc].flags if base + doc in patched else segment.flags(doc)
                if flags & mask == has:
                    yield base + doc

    def living(self, start: int, end: int, since: int | None = None) -> Living:
        """The messages from one place up to another that are not deleted, nor sent before a time."""
        parts = [
            self._living_in(at, max(start - base, 0), min(end - base, len(segment)), since)
            for at, (base, segment) in enumerate(zip(self.bases, self.segments, strict=True))
            if start < base + len(segment) and base < end
        ]
        return sum_of((*parts, self.tail.living(start, end, since)))

    def terms(self, place: int) -> "array[int]":
        """A message's terms in order."""
        patched = self.patches.entries.get(place)
        if patched is not None:
            return patched.terms
        if place >= self.tail.base:
            return self.tail.entries[place - self.tail.base].terms
        at = self._segment_at(place)
        return self.segments[at].terms(place - self.bases[at])

    # --- terms ---

    def postings(self, term: int) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
        """The posting lists of a term: the offset of the places, the places, and the impacts in hundredths."""
        patches = self.patches
        removed = patches.removed.get(term)
        for base, segment in zip(self.bases, self.segments, strict=True):
            for docs, weights in segment.postings(term):
                if removed is not None:
                    docs, weights = _without(docs, weights, [place - base for place in removed if place >= base])
                if docs:
                    yield base, docs, weights
            if patches:
                docs, weights = patches.postings(term, base, base + len(segment))
                if docs:
                    yield base, docs, weights
        docs, weights = self.tail.postings(term)
        if docs:
            yield self.tail.base, docs, weights

    def matches(self, places: Iterable[int], words: Sequence[Iterable[int]]) -> Mapping[int, tuple[int, int]]:
        """Which words, given by their terms, are in messages: their bits by place, and those whose next one follows."""
        terms: dict[int, int] = {}
        for at, word in enumerate(words):
            for term in word:
                terms[term] = terms.get(term, 0) | 1 << at
        by_segment: dict[int, list[int]] = {}
        found: dict[int, tuple[int, int]] = {}
        for place in places:
            if place < self.tail.base and place not in self.patches.entries:
                by_segment.setdefault(self._segment_at(place), []).append(place)
            else:
                matched = match_terms(self.terms(place), terms)
                if matched[0]:
                    found[place] = matched
        for at, some in by_segment.items():
            base = self.bases[at]
            for doc, mask, followed in self.segments[at].matches([place - base for place in some], terms):
                found[base + doc] = mask, followed
        return found

    def spelling(self, term: str) -> Sequence[int]:
        """The keyed hashes of a term's trigrams; empty if it is not a word, or a short one."""
        return spelling_of(term, self.number)

    def similar(self, spelling: Sequence[int], least: float = 0.5) -> list[SimilarTerm]:
        """The terms that are at least so much like a word of this spelling; the most similar first, then the most used.

        A message that changed since may be counted in `times` with its old terms.
        """
        return _together(part.similar(spelling, least) for part in self._parts)

    def containing(self, spelling: Sequence[int]) -> list[SimilarTerm]:
        """The terms that begin or end with a word of this spelling, as compounds do, ordered like `similar` ones."""
        return _together(part.containing(spelling) for part in self._parts)

    def frequency(self, term: int) -> int:
        """How many messages have a term; one that changed since may be counted with its old terms."""
        return sum(part.frequency(term) for part in self._parts)

    def newest_with(self, term: int) -> int | None:
        """The place of the newest message that has a term."""
        return max((base + places[-1] for base, places, _ in self.postings(term) if places), default=None)

    @property
    def _parts(self) -> "list[StoredSegment | Tail | Patches]":
        return [*self.segments, self.tail, self.patches]

    # --- groups ---

    def groups_of(self, base: int, places: Sequence[int]) -> Iterable[int]:
        """The groups of the messages of a posting list."""
        if base < self.tail.base:
            return self.segments[self._segment_at(base)].groups_of(places)
        rows = self.tail.rows
        return [rows[place].group for place in places]

    def thread(self, place: int) -> int | None:
        """The group of a message's thread, or of the one that it began; None outside threads."""
        if not self._begun.threads and not self.tail.begun.threads:
            return None
        row = self.rows[place]
        if row.group & THREAD:
            return row.group
        group = thread_group(row.seq)
        return group if row.began or group in self._elsewhere or group in self.tail.sizes else None

    def thread_starts(self, groups: Iterable[int]) -> Mapping[int, int]:
        """The places of the messages that began threads, of those among some groups, and the group of each."""
        found = {self.place(group >> 1): group for group in groups if group & THREAD}
        return {place: group for place, group in found.items() if place is not None}

    def first_of_thread(self, group: int) -> int | None:
        """The place of the message that began a thread, or else of its first reply."""
        place = self.place(group >> 1)
        if place is not None:
            return place
        for base, segment in zip(self.bases, self.segments, strict=True):
            found = segment.group(group)
            if found is not None:
                return base + found.first
        return self.tail.first_of.get(group)

    def group_size(self, group: int) -> int:
        """The number of messages in a thread or session."""
        found = (segment.group(group) for segment in self.segments)
        return sum(part.size for part in found if part is not None) + self.tail.sizes[group]

    def relative_size(self, group: int, row: IndexRow) -> float:
        """The number of messages in the thread or session of a message, as a multiple of the average one."""
        tail, size = self.tail, row.size
        if group != row.group or group in tail.sizes or group in self._elsewhere:
            size = self.group_size(group)
        threaded = self._threaded + tail.threaded
        if group & THREAD:
            return size * (self._begun.threads + tail.begun.threads) / threaded
        return size * (self._begun.sessions + tail.begun.sessions) / (len(self) - threaded)

    def _thread(self, root: int) -> tuple[int, int, bool]:
        """The group of a thread, the place before its next message, and whether that is one of its own."""
        group = thread_group(root)
        last = self.tail.last_of.get(group)
        for at in range(len(self.segments) - 1, -1, -1) if last is None else ():
            found = self.segments[at].group(group)
            if found is not None:
                last = self.bases[at] + found.last
                break
        if last is not None:
            return group, last, True
        begun = self.tail.begun
        self.tail.begun = Begun(begun.sessions, begun.threads + 1)
        place = self.place(root)
        return group, NO_PLACE if place is None else place, False

    def _next_session(self, entry: SegmentEntry) -> tuple[int, int]:
        """The group of the next message outside threads, and the place before it."""
        said = self._said
        is_new = said == NO_PLACE or abs(entry.sent - self.rows[said].sent) > SESSION_GAP
        self._session = 0 if is_new or self._session + 1 == SESSION_MESSAGES else self._session + 1
        if self._session:
            return self.rows[said].group, said
        begun = self.tail.begun
        self.tail.begun = Begun(begun.sessions + 1, begun.threads)
        return session_group(entry.seq), NO_PLACE if is_new else said

    def _link(self, before: int, place: int) -> None:
        tail = self.tail
        if before >= tail.base:
            tail.rows[before - tail.base] = tail.rows[before - tail.base]._replace(after=place)
        else:
            self._after[before] = place
        self.rows.pop(before, None)

    def _last_said(self) -> int:
        """The place of the last message outside threads."""
        for base, segment in zip(reversed(self.bases), reversed(self.segments), strict=True):
            if segment.head.said:
                return base + segment.head.said[1]
        return NO_PLACE

    # --- rows ---

    def _segment_at(self, place: int) -> int:
        at = bisect_right(self.bases, place) - 1
        if at < 0:
            raise IndexError(place)
        return at

    def next_elsewhere(self, at: int, place: int, group: int) -> int:
        """The place of the next message of a thread or session in a later segment or the tail."""
        if group & THREAD:
            if group in self._elsewhere:
                for later in range(at + 1, len(self.segments)):
                    found = self.segments[later].group(group)
                    if found is not None:
                        return self.bases[later] + found.first
        elif place - self.bases[at] == self.segments[at].head.said[1]:
            for later in range(at + 1, len(self.segments)):
                said = self.segments[later].head.said
                if said:
                    following = self.bases[later] + said[0]
                    back = self.segments[later].row(said[0])[5]
                    return following if following - back == place else NO_PLACE
        return self._after.get(place, NO_PLACE)

    def _living_in(self, at: int, begin: int, end: int, since: int | None) -> Living:
        """The messages of a segment between two of its places that are not deleted."""
        segment, base = self.segments[at], self.bases[at]
        changed = {(place - base) // MESSAGES for place in self.patches.entries if base <= place < base + len(segment)}
        partly = {begin // MESSAGES} if begin % MESSAGES else set()
        if end % MESSAGES and end < len(segment):
            partly.add(end // MESSAGES)
        inside = [one for one in sorted(changed | partly) if begin // MESSAGES <= one <= (end - 1) // MESSAGES]
        parts: list[Living] = []
        past = begin // MESSAGES
        for one in inside:
            parts.append(segment.living(past, one, since))
            first = one * MESSAGES
            docs = range(max(begin, first), min(end, first + MESSAGES, len(segment)))
            parts.append(living([self.rows[base + doc][1:4:2] for doc in docs], since))
            past = one + 1
        return sum_of((*parts, segment.living(past, -(-end // MESSAGES), since)))

    def person(self, author: str, name: str) -> int:
        """The number of a person, who may have a new name."""
        number = self._people.setdefault(author, len(self._people))
        if number == len(self.names):
            self.names.append(name)
            self.ids.append(author)
            self.said_by.append(0)
        elif self.names[number] == name:
            return number
        self.names[number] = name
        for part in name_parts(name):
            self.called.setdefault(part, set()).add(number)
        return number


def _no_texts(seqs: Sequence[int]) -> Mapping[int, str]:
    return {}


def _together(parts: Iterable[Iterable[SimilarTerm]]) -> list[SimilarTerm]:
    """The terms of several parts of the index, the most similar first, then the most used."""
    found: dict[int, SimilarTerm] = {}
    for similar in chain.from_iterable(parts):
        known = found.get(similar.term)
        found[similar.term] = similar if known is None else similar._replace(times=similar.times + known.times)
    return sorted(found.values(), key=lambda similar: (-similar.likeness, -similar.times, similar.term))


def _without(docs: Sequence[int], weights: Sequence[int], gone: Iterable[int]) -> tuple[Sequence[int], Sequence[int]]:
    """A posting list without some messages."""
    found = [(bisect_left(docs, doc), doc) for doc in gone]
    places = [at for at, doc in found if at < len(docs) and docs[at] == doc]
    if not places:
        return docs, weights
    docs, weights = array("I", docs), array("B", weights)
    for at in reversed(places):
        del docs[at], weights[at]
    return docs, weights
