"""Search rows: each channel's index, brought up to date from the rows of its messages, and the hot ones in memory.

Intake costs nothing: the first search after an arrival indexes it, in memory. `index_ahead` stores a full stretch of
such messages as a segment, writes changed messages into theirs, and merges segments, so that a channel never has many.
A search loads only the blocks of segments that it needs (`search_segments.py`).
"""

import hashlib
import logging
import threading
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from functools import partial
from itertools import groupby, takewhile
from typing import NamedTuple, TypeVar

import orjson

from belino.domain.errors import StoreError
from belino.domain.message import ConversationKey
from belino.domain.outcome import CacheSize
from belino.domain.search import SearchHits, SearchQuery
from belino.search import tokenizer
from belino.search.marks import message_marks
from belino.search.postings import ChannelPostings
from belino.search.segment import MessageFlag, SegmentEntry
from belino.search.segment_merge import merge
from belino.search.segment_purge import purge
from belino.search.stored_segment import StoredSegment, cut
from belino.search.tokenizer import tokenize
from belino.search.trigrams import spelling_of
from belino.search.weights import WEIGHTS, Weights
from belino.storage import search_passages
from belino.storage.database import Database, TableRow, Tx, from_micros
from belino.storage.encryption import Keys
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK, find_channel
from belino.storage.search_hits import ChannelRecords, ChannelView, find_hits
from belino.storage.search_passages import ChannelPassages
from belino.storage.search_segments import (
    BlockCache,
    BlockReader,
    IndexUpdate,
    SegmentKey,
    channels_behind,
    list_segments,
    load_segment,
    store_update,
)
from belino.storage.search_vectors import ChannelVectors, Vector, store_vectors, vectorless
from belino.storage.static_vectors import StaticVectors

BLOCK_BYTES = 72 << 20
"""Memory for the blocks that were loaded, of all channels together."""
HOT_BYTES = 24 << 20
"""Memory for all hot indexes together, without their blocks; the least recently used is evicted first."""
STRETCH = 256
"""Messages that make a segment."""
LAZY = 4
"""A search that finds that many stretches to index, or as many changes, stores them first."""
FAN = 4
"""Segments of similar size that are merged into one."""
EDITED = 16
"""A segment is written again when one in that many of its messages was edited."""
READ_AT_ONCE = 4_096
STEPS = 4
"""Steps of storing that a search takes; if there is more to store, it covers the newest messages and what is stored."""
REMEMBERED = 32_768
"""Terms and trigrams whose hashes are cached; computing one takes a microsecond."""

log = logging.getLogger(__name__)

T = TypeVar("T")

_ENTRIES = """
SELECT m.id, m.sent, m.author_id, m.author_name, m.author_other_names, m.author_marks, m.root, m.text, m.forward,
    (m.deleted IS NOT NULL OR m.outcome = 'command') AS hidden,
    (SELECT r.id FROM messages r WHERE r.channel = m.channel AND r.platform_id = m.root ORDER BY r.kind LIMIT 1)
    AS root_number
FROM messages m WHERE m.id BETWEEN ? AND ? ORDER BY m.id LIMIT ?
"""
_CAPTIONS = """
SELECT b.message, r.caption, r.file_name FROM message_refs b JOIN refs r ON r.seq = b.ref
WHERE b.role IN ('own', 'forwarded') AND b.message BETWEEN ? AND ? ORDER BY b.message, b.role, b.position
"""


class HotIndex:
    """A channel's index in memory; its lock is held while it is used."""

    def __init__(self, channel: int, number: Callable[[str], int], cache: BlockCache) -> None:
        self.channel = channel
        self.size = 0
        """Its part of the memory of all hot indexes, when it was last measured."""
        self.seen = 0
        """The last note of a changed message that was applied."""
        self.cleared = 0
        """The last one that was to be deleted."""
        self.skips = False
        """Whether messages between the segments and the tail are not indexed yet."""
        self.segments: dict[SegmentKey, StoredSegment] = {}
        self.postings = ChannelPostings(number)
        self._number = number
        self._lock = threading.Lock()
        self._reader = BlockReader(cache)

    @property
    def bytes_held(self) -> int:
        return self.postings.bytes_held + sum(segment.bytes_held for segment in self.segments.values())

    @property
    def past(self) -> int:
        """The seq of the last message that is indexed."""
        return self.postings.seq(len(self.postings) - 1) if len(self.postings) else 0

    @contextmanager
    def using(self, tx: Tx) -> Iterator[None]:
        """Use it in a transaction, with the segments that are stored then."""
        with self._lock:
            self._reader.tx = tx
            try:
                self._follow(tx)
                yield
            finally:
                self._reader.tx = None
                self.postings.end_use()

    def change(self, seq: int, entry: SegmentEntry | None, note: int) -> None:
        """Replace a message that changed; None if the store no longer has it."""
        place = self.postings.place(seq)
        if place is None:
            return
        if self.postings.patch(place, entry or self.postings.without(place), note):
            self.postings = self._put_together(self.postings, self.postings.tail.entries)

    def drop_tail(self) -> None:
        """Forget the messages that are in no segment."""
        self.postings = self._put_together(self.postings, ())
        self.skips = False

    def _follow(self, tx: Tx) -> None:
        stored = list_segments(tx, self.channel)
        if stored == tuple(self.segments):
            return
        self.segments = {
            key: self.segments.get(key) or load_segment(tx, key, self._reader.of(key.id)) for key in stored
        }
        last = stored[-1].last if stored else 0
        newest = [entry for entry in self.postings.tail.entries if entry.seq > last]
        self.postings = self._put_together(self.postings, newest)

    def _put_together(self, old: ChannelPostings, newest: Sequence[SegmentEntry]) -> ChannelPostings:
        """The segments, the newest messages, and the changes that the segments do not have yet."""
        postings = ChannelPostings(self._number, tuple(self.segments.values()))
        for entry in newest:
            postings.add(entry)
        for place, entry in old.patches.entries.items():
            found = postings.place(entry.seq)
            if found is not None:
                postings.patch(found, entry, old.patches.notes[place])
        return postings


class Behind(NamedTuple):
    """A channel whose index is to be stored before it is searched."""

    channel: int


class Unindexed(NamedTuple):
    """Readings of a channel that are not indexed yet."""

    readings: Sequence[int]


class SearchIndex:
    """The search indexes of all channels."""

    def __init__(self, database: Database, keys: Keys, zone: tzinfo, static: StaticVectors | None = None) -> None:
        """`static` re-ranks results."""
        self._database = database
        self._static = static
        self._keys = keys
        self._zone = zone
        self._hot: OrderedDict[int, HotIndex] = OrderedDict()
        self._lock = threading.Lock()
        self._held = 0
        self._blocks = BlockCache(BLOCK_BYTES)
        self._numbers: dict[str, int] = {}

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """The hot indexes, their blocks, and the cached hashes of terms."""
        return {
            "word_index": CacheSize(entries=len(self._hot), bytes=self._held, most_bytes=HOT_BYTES),
            "word_blocks": CacheSize(
                entries=len(self._blocks), bytes=self._blocks.bytes_held, most_bytes=self._blocks.most
            ),
            "search_terms": CacheSize.of_entries(len(self._numbers), most=REMEMBERED, each=120),
        }

    async def search(self, channel: ConversationKey, query: SearchQuery, weights: Weights = WEIGHTS) -> SearchHits:
        """One page of the messages that match a query."""
        hits = await self.use(channel, partial(find_hits, query=query, weights=weights))
        return SearchHits() if hits is None else hits

    async def use(self, channel: ConversationKey, work: Callable[[ChannelView], T]) -> T | None:
        """Run work on a channel's index, brought up to date, in a reader's thread; None for an unknown channel."""
        run = partial(self._use, channel=channel, work=work)
        done = await self._database.read(run)
        if isinstance(done, Unindexed):
            await self._index_readings(done.readings)
            done = await self._database.read(partial(run, passages_as_they_are=True))
        if isinstance(done, Behind):
            await self._advance(done.channel, STEPS)
            done = await self._database.read(partial(run, passages_as_they_are=True, as_it_is=True))
        if done is None or isinstance(done, Unindexed | Behind):
            return None
        return done[0]

    async def index_ahead(self) -> int:
        """Index what no search has needed yet, channel by channel. Returns how many channels were behind."""
        behind = await self._database.read(partial(channels_behind, stretch=STRETCH))
        for channel in behind:
            await self._advance(channel)
        await self._index_readings(await self._database.read(partial(search_passages.unindexed, channel=None)))
        if self._static is not None:
            await self._make_vectors(self._static)
        return len(behind)

    def number(self, term: str) -> int:
        """The keyed hash of a term: without the key, the index does not reveal its terms."""
        known = self._numbers.get(term)
        if known is None:
            digest = hashlib.blake2b(
                term.encode("utf-8", "surrogatepass"), digest_size=8, key=self._keys.word_key
            ).digest()
            known = int.from_bytes(digest, "big")
            if len(term) <= tokenizer.TERM_CHARS:
                if len(self._numbers) >= REMEMBERED:
                    self._numbers.clear()
                self._numbers[term] = known
        return known

    def _use(
        self,
        tx: Tx,
        channel: ConversationKey,
        work: Callable[[ChannelView], T],
        *,
        as_it_is: bool = False,
        passages_as_they_are: bool = False,
    ) -> "tuple[T] | Unindexed | Behind | None":
        """`as_it_is`: if much is not indexed yet, the newest messages are, and those that lie between are not found."""
        number = find_channel(tx, channel)
        if number is None:
            return None
        if not passages_as_they_are and (unindexed := search_passages.unindexed(tx, number)):
            return Unindexed(unindexed)
        hot = self._warm(number)
        with hot.using(tx):
            if not self._catch_up(tx, hot, as_it_is=as_it_is):
                return Behind(number)
            passages, records = ChannelPassages(tx, number), ChannelRecords(tx, self._keys, number)
            vectors = None if self._static is None else ChannelVectors(tx, number, self._static)
            hot.postings.texts = records.texts
            result = work(ChannelView(hot.postings, passages, records, vectors))
        self._weigh(hot)
        return (result,)

    async def _advance(self, channel: int, most: int | None = None) -> None:
        """Store what is to be stored of a channel's index, in `most` steps."""
        done = 0
        while most is None or done < most:
            update = await self._database.read(partial(self._next_update, channel=channel))
            if update is None or not await self._write(update):
                return
            done += 1

    def _next_update(self, tx: Tx, channel: int) -> IndexUpdate | None:
        """The next step of storing a channel's index."""
        hot = self._warm(channel)
        with hot.using(tx):
            update = self._stretch(tx, hot)
            merged = None if update is not None else _to_merge(hot)
        self._weigh(hot)
        return update if merged is None else _merged(tx, channel, merged)

    def _stretch(self, tx: Tx, hot: HotIndex) -> IndexUpdate | None:
        """Changes to segments, a new one, or those that are not needed any more."""
        if hot.skips:
            hot.drop_tail()
        self._apply(tx, hot, self._notes(tx, hot))
        postings = hot.postings
        if postings.patches or hot.seen > hot.cleared:
            hot.cleared = hot.seen
            return _purged(hot)
        self._add_newest(tx, hot, hot.past)
        if len(postings.tail) >= STRETCH:
            return IndexUpdate(hot.channel, added=cut(postings.tail.arrays(), hot.seen), noted=hot.seen)
        deleted = _deleted(hot)
        return IndexUpdate(hot.channel, deleted=deleted) if deleted else None

    async def _index_readings(self, readings: Sequence[int]) -> None:
        for reading in readings:
            indexed = await self._database.read(
                partial(search_passages.index_reading, reading=reading, number=self.number)
            )
            if indexed is None:
                continue
            try:
                await self._database.write(partial(search_passages.store_reading, indexed=indexed))
            except StoreError as error:
                log.warning("a document's words could not be stored and will be again: %s", type(error).__name__)

    async def _make_vectors(self, static: StaticVectors) -> None:
        """Until there is nothing new: what changes while it is made waits for the next time."""
        before: list[Vector] = []
        while (made := await self._database.read(partial(vectorless, static=static))) and made != before:
            await self._database.write(partial(store_vectors, vectors=made))
            before = made

    async def _write(self, update: IndexUpdate) -> bool:
        try:
            return await self._database.write(partial(store_update, update=update))
        except StoreError as error:
            log.warning("the search index could not be stored and will be made again: %s", type(error).__name__)
            return False

    def _warm(self, channel: int) -> HotIndex:
        with self._lock:
            hot = self._hot.get(channel)
            if hot is None:
                hot = self._hot[channel] = HotIndex(channel, self.number, self._blocks)
            self._hot.move_to_end(channel)
            return hot

    def _weigh(self, hot: HotIndex) -> None:
        """Evict the least recently used indexes while all together are too large."""
        size = hot.bytes_held
        with self._lock:
            if self._hot.get(hot.channel) is not hot:
                return
            self._held += size - hot.size
            hot.size = size
            while self._held > HOT_BYTES and len(self._hot) > 1:
                self._held -= self._hot.popitem(last=False)[1].size

    def _catch_up(self, tx: Tx, hot: HotIndex, *, as_it_is: bool) -> bool:
        """Apply changes and index new messages, in memory; False if there are too many, except as the index is."""
        first = hot.channel << SEQ_BITS
        query = "SELECT max(id) FROM messages WHERE id BETWEEN ? AND ?"
        newest = (tx.execute(query, (first, first | SEQ_MASK)).fetchone()[0] or 0) & SEQ_MASK
        notes = self._notes(tx, hot)
        if max(newest - hot.past, len(notes)) > LAZY * STRETCH and not as_it_is:
            return False
        self._apply(tx, hot, notes)
        if newest - hot.past > READ_AT_ONCE:
            hot.drop_tail()
            hot.skips = True
        self._add_newest(tx, hot, max(hot.past, newest - READ_AT_ONCE))
        return True

    def _notes(self, tx: Tx, hot: HotIndex) -> Sequence[tuple[int, int]]:
        """The next notes of changed messages: the number of the last one about each, and its seq."""
        first = hot.channel << SEQ_BITS
        rows = tx.execute(
            "SELECT max(number) AS number, message FROM search_stale WHERE message BETWEEN ? AND ? AND number > ? "
            "GROUP BY message ORDER BY 1 LIMIT ?",
            (first, first | SEQ_MASK, hot.seen, READ_AT_ONCE),
        )
        return [(number, message & SEQ_MASK) for number, message in rows]

    def _apply(self, tx: Tx, hot: HotIndex, notes: Sequence[tuple[int, int]]) -> None:
        """Read changed messages again."""
        numbers = {seq: number for number, seq in notes}
        seqs = sorted(numbers)
        # Consecutive ones are read together: those that expire often are.
        for _, run in groupby(enumerate(seqs), lambda numbered: numbered[1] - numbered[0]):
            some = [seq for _, seq in run]
            now = {entry.seq: entry for entry in self._entries(tx, hot.channel, some[0], some[-1])}
            for seq in some:
                hot.change(seq, now.get(seq), numbers[seq])
        # Only now: if a message could not be read, the next search reads it again.
        hot.seen = max((number for number, _ in notes), default=hot.seen)

    def _add_newest(self, tx: Tx, hot: HotIndex, past: int) -> None:
        for entry in self._entries(tx, hot.channel, past + 1, SEQ_MASK):
            hot.postings.add(entry)

    def _entries(self, tx: Tx, channel: int, first: int, last: int) -> list[SegmentEntry]:
        """The channel's messages between two seqs, as many as are read at once."""
        between = (channel << SEQ_BITS | first, channel << SEQ_BITS | last, READ_AT_ONCE)
        rows = tx.execute(_ENTRIES, between).fetchall()
        if not rows:
            return []
        captions: dict[int, list[str]] = {}
        for row in tx.execute(_CAPTIONS, (rows[0]["id"], rows[-1]["id"])):
            captions.setdefault(row["message"], []).extend(filter(None, (row["caption"], row["file_name"])))
        spellings: dict[int, array[int]] = {}
        return [self._entry(row, captions.get(row["id"]), spellings) for row in rows]

    def _entry(self, row: TableRow, captions: Sequence[str] | None, spellings: dict[int, "array[int]"]) -> SegmentEntry:
        """`captions`: captions and names of its media's files; None if it has none. `spellings` gets its words."""
        text: str = "" if row["hidden"] else row["text"]
        if row["forward"] is not None and not row["hidden"]:
            text = f"{text}\n{orjson.loads(row['forward'])['text']}"
        said = tokenize(text)
        shown = tokenize("\n".join(caption for caption in captions or () if caption != row["text"]))
        day = from_micros(row["sent"]).astimezone(self._zone).date()
        names = row["author_other_names"]
        marks = [] if row["hidden"] else message_marks(row["author_id"], names, text, said, day)
        terms = said.terms + marks + shown.terms
        known, number = self._numbers, self.number
        numbers = [known.get(term) or number(term) for term in terms]
        for term, spelled in zip(terms, numbers, strict=True):
            if spelled not in spellings:
                spellings[spelled] = spelling_of(term, number)
        flags = said.flags
        flags |= MessageFlag.AGENT if row["author_marks"] & 2 else 0
        flags |= MessageFlag.GONE if row["hidden"] else 0  # deleted, or a command or its answer
        flags |= MessageFlag.MEDIA if captions is not None else 0
        flags |= MessageFlag.BLANK if captions is None and not text.strip() else 0
        return SegmentEntry(
            seq=row["id"] & SEQ_MASK,
            sent=row["sent"],
            author=row["author_id"],
            name=row["author_name"],
            root=_root(row),
            flags=flags,
            terms=array("Q", numbers),
            captions=len(shown.terms),
            language=said.language,
            spellings=spellings,
        )


def _purged(hot: HotIndex) -> IndexUpdate:
    """Changed messages, written into their segments."""
    patches, changed = hot.postings.patches, {}
    for (key, segment), base in zip(hot.segments.items(), hot.postings.bases, strict=True):
        own = {place - base: entry for place, entry in patches.entries.items() if 0 <= place - base < len(segment)}
        if own:
            changed[key] = purge(segment, own, hot.seen)
    return IndexUpdate(hot.channel, changed=changed, noted=hot.seen)


def _deleted(hot: HotIndex) -> list[SegmentKey]:
    """The oldest segments with only deleted messages, without the newest: it marks how far the index goes."""
    return list(takewhile(lambda key: hot.segments[key].is_gone, list(hot.segments)[:-1]))


def _to_merge(hot: HotIndex) -> list[SegmentKey] | None:
    """The last segments if the later ones outgrow the first of them, or one of which much was edited."""
    keys, sizes = list(hot.segments), [len(segment) for segment in hot.segments.values()]
    for at in range(len(sizes) - 1):
        if sum(sizes[at + 1 :]) >= (FAN - 1) * sizes[at]:
            return keys[at:]
    for key, segment in hot.segments.items():
        if segment.edits is not None and len(segment.edits.docs) * EDITED > len(segment):
            return [key]
    return None


def _merged(tx: Tx, channel: int, keys: Sequence[SegmentKey]) -> IndexUpdate:
    """Merge segments. It takes long, so the index is used while it lasts, and no block is cached."""
    reader = BlockReader(BlockCache(0))
    reader.tx = tx
    segments = [load_segment(tx, key, reader.of(key.id)) for key in keys]
    merged = merge([segment.arrays() for segment in segments])
    return IndexUpdate(channel, deleted=keys, added=cut(merged, min(segment.head.noted for segment in segments)))


def _root(row: TableRow) -> int:
    """The seq of the thread's first message; a number of its own if the store does not have it."""
    if row["root"] is None:
        return 0
    if row["root_number"] is None:
        return 1 << 63 | zlib.crc32(row["root"].encode("utf-8", "surrogatepass"))
    return int(row["root_number"]) & SEQ_MASK
