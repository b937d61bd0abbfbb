"""Search rows: each channel's index in the tables `search_segments` and `search_stale`, and the hot ones in memory.

Intake costs nothing: the first search after an arrival indexes it. A full stretch of such messages is stored as a
segment, and segments of similar size are merged, so that a channel never has many.
"""

import hashlib
import logging
import threading
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import orjson

from belino.domain.errors import StoreError
from belino.domain.message import ConversationKey
from belino.domain.outcome import CacheSize
from belino.domain.search import SearchHits, SearchQuery
from belino.search import tokenizer
from belino.search.postings import ChannelPostings
from belino.search.segment import FORMAT, MessageFlag, SegmentEntry, unpack
from belino.search.tokenizer import tokenize
from belino.storage import search_passages
from belino.storage.database import Database, TableRow, Tx
from belino.storage.encryption import Keys
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK, find_channel
from belino.storage.search_hits import ChannelRecords, ChannelView, find_hits
from belino.storage.search_passages import ChannelPassages

HOT_BYTES = 96 << 20
"""Memory for all hot indexes together; the least recently used is evicted first."""
STRETCH = 256
"""Messages that make a segment."""
LAZY = 4
"""A search stores segments only after that many stretches; `index_ahead` stores each."""
READ_AT_ONCE = 4_096
PATCHES = 64
"""Changed messages that are kept as patches before their segments are written again."""
REMEMBERED = 16_384
"""Terms whose hashes are cached; computing one takes a microsecond."""
VERSION = f"{FORMAT}-{tokenizer.VERSION}"

log = logging.getLogger(__name__)

T = TypeVar("T")

_ENTRIES = """
SELECT m.id, m.sent, m.author_id, m.author_name, m.author_marks, m.root, m.text, m.forward, m.deleted,
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

    def __init__(self, channel: int, number: Callable[[str], int]) -> None:
        self.channel = channel
        self.number = number
        self.lock = threading.Lock()
        self.size = 0
        """Its part of the memory of all hot indexes, when it was last measured."""
        self.clear()

    def clear(self) -> None:
        """Drop everything; the next use loads it again."""
        self.postings = ChannelPostings(self.number)
        self.loaded = False
        self.seen = 0
        """The last note of a changed message that was applied."""
        self.notes = 0
        """Notes applied since they were last deleted."""


class SegmentRange(NamedTuple):
    """A segment to be stored in place of all that it contains; without content they are only deleted."""

    first: int
    last: int
    content: bytes | None


class Unindexed(NamedTuple):
    """Readings of a channel that are not indexed yet."""

    readings: Sequence[int]


class IndexUpdate(NamedTuple):
    """What the store is to write of an index, and the last note that it can delete."""

    channel: int
    ranges: tuple[SegmentRange, ...]
    noted: int


class SearchIndex:
    """The search indexes of all channels."""

    def __init__(self, database: Database, keys: Keys) -> None:
        self._database = database
        self._keys = keys
        self._hot: OrderedDict[int, HotIndex] = OrderedDict()
        self._lock = threading.Lock()
        self._held = 0
        self._numbers: dict[str, int] = {}

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """The hot indexes, and the cached hashes of terms."""
        return {
            "word_index": CacheSize(entries=len(self._hot), bytes=self._held, most_bytes=HOT_BYTES),
            "search_terms": CacheSize.of_entries(len(self._numbers), most=REMEMBERED, each=120),
        }

    async def search(self, channel: ConversationKey, query: SearchQuery) -> SearchHits:
        """One page of the messages that match a query."""
        hits = await self.use(channel, partial(find_hits, query=query))
        return SearchHits() if hits is None else hits

    async def use(self, channel: ConversationKey, work: Callable[[ChannelView], T]) -> T | None:
        """Run work on a channel's index, brought up to date, in a reader's thread; None for an unknown channel."""
        run = partial(self._use, channel=channel, work=work)
        done = await self._database.read(run)
        if isinstance(done, Unindexed):
            await self._index_readings(done.readings)
            done = await self._database.read(partial(run, as_it_is=True))
        if done is None or isinstance(done, Unindexed):
            return None
        result, update = done
        await self._write(update)
        return result

    async def index_ahead(self) -> int:
        """Index what no search has needed yet, channel by channel. Returns how many channels were behind."""
        behind = await self._database.read(_behind)
        for channel in behind:
            more = True
            while more:
                update, more = await self._database.read(partial(self._advance, channel=channel))
                await self._write(update)
        await self._index_readings(await self._database.read(partial(search_passages.unindexed, channel=None)))
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
    ) -> "tuple[T, IndexUpdate | None] | Unindexed | None":
        """`as_it_is`: without the documents that are not indexed yet."""
        number = find_channel(tx, channel)
        if number is None:
            return None
        if not as_it_is and (unindexed := search_passages.unindexed(tx, number)):
            return Unindexed(unindexed)
        hot = self._warm(number)
        with hot.lock:
            while self._catch_up(tx, hot):
                hot.postings.end_tail()
            passages, records = ChannelPassages(tx, number), ChannelRecords(tx, self._keys, number)
            result = work(ChannelView(hot.postings, passages, records))
            update = update_of(hot, LAZY * STRETCH)
        self._weigh(hot)
        return result, update

    def _advance(self, tx: Tx, channel: int) -> tuple[IndexUpdate | None, bool]:
        """Index the next messages of a channel; True if there may be more."""
        hot = self._warm(channel)
        with hot.lock:
            more = self._catch_up(tx, hot)
            update = update_of(hot, STRETCH, patches=0)
        self._weigh(hot)
        return update, more

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

    async def _write(self, update: IndexUpdate | None) -> None:
        if update is None:
            return
        try:
            await self._database.write(partial(store_update, update=update))
        except StoreError as error:
            log.warning("the search index could not be stored and will be made again: %s", type(error).__name__)
            with self._lock:
                failed = self._hot.pop(update.channel, None)
                self._held -= failed.size if failed else 0

    def _warm(self, channel: int) -> HotIndex:
        with self._lock:
            hot = self._hot.setdefault(channel, HotIndex(channel, self.number))
            self._hot.move_to_end(channel)
            return hot

    def _weigh(self, hot: HotIndex) -> None:
        """Evict the least recently used indexes while all together are too large."""
        size = hot.postings.bytes_held
        with self._lock:
            if self._hot.get(hot.channel) is not hot:
                return
            self._held += size - hot.size
            hot.size = size
            while self._held > HOT_BYTES and len(self._hot) > 1:
                self._held -= self._hot.popitem(last=False)[1].size

    def _catch_up(self, tx: Tx, hot: HotIndex) -> bool:
        """Apply changes and index new messages; True if there may be more than is read at once."""
        if not hot.loaded:
            _load(tx, hot)
        self._read_notes(tx, hot)
        postings = hot.postings
        past = postings.seqs[-1] if len(postings) else 0
        entries = self._entries(tx, hot.channel, past + 1, SEQ_MASK)
        for entry in entries:
            postings.add(entry)
        return len(entries) == READ_AT_ONCE

    def _read_notes(self, tx: Tx, hot: HotIndex) -> None:
        first = hot.channel << SEQ_BITS
        notes = tx.execute(
            "SELECT max(number) AS number, message FROM search_stale WHERE message BETWEEN ? AND ? AND number > ? "
            "GROUP BY message",
            (first, first | SEQ_MASK, hot.seen),
        ).fetchall()
        if not notes:
            return
        postings = hot.postings
        entries: list[SegmentEntry] = []
        for note in notes:
            seq = note["message"] & SEQ_MASK
            place = postings.place(seq)
            if place is not None:
                entries += self._entries(tx, hot.channel, seq, seq) or [postings.without(place)]
        postings.patch(entries)
        # Only now: if a message could not be read, the next search reads it again.
        hot.seen = max(note["number"] for note in notes)
        hot.notes += len(notes)

    def _entries(self, tx: Tx, channel: int, first: int, last: int) -> list[SegmentEntry]:
        """The channel's messages between two seqs, as many as are read at once."""
        between = (channel << SEQ_BITS | first, channel << SEQ_BITS | last, READ_AT_ONCE)
        rows = tx.execute(_ENTRIES, between).fetchall()
        if not rows:
            return []
        captions: dict[int, list[str]] = {}
        for row in tx.execute(_CAPTIONS, (rows[0]["id"], rows[-1]["id"])):
            captions.setdefault(row["message"], []).extend(filter(None, (row["caption"], row["file_name"])))
        return [self._entry(row, captions.get(row["id"])) for row in rows]

    def _entry(self, row: TableRow, captions: Sequence[str] | None) -> SegmentEntry:
        """`captions`: captions and file names of its media; None if it has none."""
        text: str = row["text"]
        if row["forward"] is not None:
            text = f"{text}\n{orjson.loads(row['forward'])['text']}"
        said = tokenize(text)
        shown = tokenize("\n".join(caption for caption in captions or () if caption != row["text"]))
        numbers = [self.number(term) for term in said.terms] + [self.number(term) for term in shown.terms]
        flags = said.flags
        flags |= MessageFlag.AGENT if row["author_marks"] & 2 else 0
        flags |= MessageFlag.GONE if row["deleted"] is not None else 0
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
        )


def update_of(hot: HotIndex, stretch: int, patches: int = PATCHES) -> IndexUpdate | None:
    """Make segments of `stretch` messages and more, and return what the store is to write of them."""
    postings = hot.postings
    if len(postings.tail) >= stretch:
        postings.end_tail()
        postings.merge_segments()
    if len(postings.patches) > patches:
        postings.rewrite_patched()
    deleted = postings.deleted_segments()
    new = [segment for segment in postings.segments[len(deleted) :] if not segment.stored]
    noted = hot.seen if hot.notes > patches and not postings.patches_in_segments else 0
    if not new and not noted and not deleted:
        return None
    for segment in new:
        segment.stored = True
    hot.notes = 0 if noted else hot.notes
    ranges = [SegmentRange(segment.seqs[0], segment.seqs[-1], None) for segment in deleted]
    ranges += [SegmentRange(segment.seqs[0], segment.seqs[-1], segment.pack()) for segment in new]
    if deleted:
        hot.clear()
    return IndexUpdate(hot.channel, tuple(ranges), noted)


def store_update(tx: Tx, update: IndexUpdate) -> None:
    """Store segments in place of those that hold the same messages."""
    channel = update.channel
    for stretch in update.ranges:
        held = (channel, stretch.first, stretch.last, VERSION)
        larger = "SELECT 1 FROM search_segments WHERE channel = ? AND first <= ? AND last > ? AND version = ?"
        if tx.execute(larger, held).fetchone() is not None:
            continue  # another search has already merged more of them
        tx.execute(
            "DELETE FROM search_segments WHERE channel = ?1 AND (first >= ?2 AND last <= ?3 "
            "OR first <= ?3 AND last >= ?2 AND version <> ?4)",
            held,
        )
        if stretch.content is not None:
            tx.execute(
                "INSERT INTO search_segments (channel, first, last, version, content) VALUES (?, ?, ?, ?, ?)",
                (*held, stretch.content),
            )
    first = channel << SEQ_BITS
    tx.execute(
        "DELETE FROM search_stale WHERE message BETWEEN ? AND ? AND number <= ?",
        (first, first | SEQ_MASK, update.noted),
    )


def _load(tx: Tx, hot: HotIndex) -> None:
    """Load the stored segments, up to the first of another version."""
    hot.loaded = True
    rows = tx.execute("SELECT * FROM search_segments WHERE channel = ? ORDER BY first", (hot.channel,))
    past = -1
    for row in rows:
        segment = unpack(row["content"]) if row["version"] == VERSION and row["first"] > past else None
        if segment is None:
            break
        past = row["last"]
        segment.stored = True
        hot.postings.add_segment(segment)


def _behind(tx: Tx) -> list[int]:
    """Channels with changes, or enough messages for a segment, that are not in the stored index."""
    rows = tx.execute(
        "SELECT c.id, (SELECT max(m.id) FROM messages m WHERE m.id BETWEEN c.id << ?1 AND c.id << ?1 | ?2) AS newest, "
        "(SELECT max(s.last) FROM search_segments s WHERE s.channel = c.id) AS last, EXISTS (SELECT 1 FROM "
        "search_stale t WHERE t.message BETWEEN c.id << ?1 AND c.id << ?1 | ?2) AS noted FROM channels c",
        (SEQ_BITS, SEQ_MASK),
    )
    return [
        row["id"] for row in rows if row["noted"] or ((row["newest"] or 0) & SEQ_MASK) - (row["last"] or 0) >= STRETCH
    ]


def _root(row: TableRow) -> int:
    """The seq of the thread's first message; a number of its own if the store does not have it."""
    if row["root"] is None:
        return 0
    if row["root_number"] is None:
        return 1 << 63 | zlib.crc32(row["root"].encode("utf-8", "surrogatepass"))
    return int(row["root_number"]) & SEQ_MASK
