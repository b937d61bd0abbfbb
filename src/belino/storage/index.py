"""Every channel's word index: kept in the store behind a watermark, caught up on use, hot ones in memory.

Intake pays nothing. Whoever asks first after an arrival reads it then; a full stretch of such messages is stored as
a segment, and segments of like size are stored as one, so that a channel never has many.
"""

import hashlib
import logging
import sqlite3
import threading
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import orjson

from belino.domain.concordance import Concordance, Mark
from belino.domain.errors import StoreError
from belino.domain.message import ConversationKey
from belino.domain.outcome import CacheSize
from belino.storage import passages, words
from belino.storage.concordance import ChannelConcordance
from belino.storage.encryption import Keys
from belino.storage.found import ChannelRecords, NoRecords
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK, find_channel
from belino.storage.segment import FORMAT, Entry, unpack
from belino.storage.writer import Readers, Writer

HOT_BYTES = 96 << 20
"""What the indexes in memory may take together; the one asked last goes last."""
STRETCH = 256
"""Messages that make a segment."""
LAZY = 4
"""A search waits until that many stretches are to be stored; `index_ahead` does not."""
FAN = 4
"""So many segments of like size become one."""
READ_AT_ONCE = 4_096
PATCHES = 64
"""Messages that may read otherwise than their segments say, before those are written anew."""
REMEMBERED = 16_384
"""Terms whose numbers are known; a hash more costs a microsecond."""
VERSION = f"{FORMAT}-{words.VERSION}"

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


class Hot:
    """A channel's index in memory; who uses it holds its lock."""

    def __init__(self, channel: int, number: Callable[[str], int]) -> None:
        self.channel = channel
        self.number = number
        self.lock = threading.Lock()
        self.size = 0
        """What it takes of the memory that all share, as it was last weighed."""
        self.forget()

    def forget(self) -> None:
        """As if nobody had asked yet."""
        self.concordance = ChannelConcordance(self.number)
        self.loaded = False
        self.seen = 0
        """The last note of a changed message that is in it."""
        self.notes = 0
        """How many notes it has read since they were last thrown away."""


class Stretch(NamedTuple):
    """A segment on its way into the store, in the place of those it holds; without content they only go."""

    first: int
    last: int
    content: bytes | None


class Unindexed(NamedTuple):
    """Readings of a channel whose words are not in the store yet."""

    readings: Sequence[int]


class Settled(NamedTuple):
    """What the store is to keep of an index, and the last note it need not keep any more."""

    channel: int
    stretches: tuple[Stretch, ...]
    noted: int


class Index:
    """The word indexes of all channels."""

    def __init__(self, readers: Readers, writer: Writer, keys: Keys) -> None:
        self._readers = readers
        self._writer = writer
        self._keys = keys
        self._hot: OrderedDict[int, Hot] = OrderedDict()
        self._lock = threading.Lock()
        self._held = 0
        self._numbers: dict[str, int] = {}

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """The indexes of channels that were asked lately, and the terms whose numbers are known."""
        return {
            "word_index": CacheSize(entries=len(self._hot), bytes=self._held, most_bytes=HOT_BYTES),
            "search_terms": CacheSize.of_entries(len(self._numbers), most=REMEMBERED, each=120),
        }

    async def consult(self, channel: ConversationKey, question: Callable[[Concordance], T]) -> T | None:
        """Ask a channel's index, brought up to date; None if nothing is known of the channel."""
        ask = partial(self._consult, channel=channel, question=question)
        asked = await self._readers.read(ask)
        if isinstance(asked, Unindexed):
            await self._index_readings(asked.readings)
            asked = await self._readers.read(partial(ask, as_it_is=True))
        if asked is None or isinstance(asked, Unindexed):
            return None
        answer, settled = asked
        await self._keep(settled)
        return answer

    async def index_ahead(self) -> int:
        """Index what nobody has asked for yet, channel by channel. Returns how many channels were behind."""
        behind = await self._readers.read(_behind)
        for channel in behind:
            more = True
            while more:
                settled, more = await self._readers.read(partial(self._settle, channel=channel))
                await self._keep(settled)
        await self._index_readings(await self._readers.read(partial(passages.unindexed, channel=None)))
        return len(behind)

    def number(self, term: str) -> int:
        """What a term is kept as. Without the key nobody can tell which word it was."""
        known = self._numbers.get(term)
        if known is None:
            digest = hashlib.blake2b(
                term.encode("utf-8", "surrogatepass"), digest_size=8, key=self._keys.word_key
            ).digest()
            known = int.from_bytes(digest, "big")
            if len(term) <= words.TERM_CHARS:
                if len(self._numbers) >= REMEMBERED:
                    self._numbers.clear()
                self._numbers[term] = known
        return known

    def _consult(
        self,
        connection: sqlite3.Connection,
        channel: ConversationKey,
        question: Callable[[Concordance], T],
        *,
        as_it_is: bool = False,
    ) -> "tuple[T, Settled | None] | Unindexed | None":
        number = find_channel(connection, channel)
        if number is None:
            return None
        if not as_it_is and (unindexed := passages.unindexed(connection, number)):
            return Unindexed(unindexed)
        hot = self._warm(number)
        with hot.lock:
            while self._catch_up(connection, hot):
                hot.concordance.end_tail()
            hot.concordance.passages = passages.ChannelPassages(connection, number)
            hot.concordance.records = ChannelRecords(connection, self._keys, number)
            try:
                answer = question(hot.concordance)
            finally:
                hot.concordance.passages = passages.NoPassages()
                hot.concordance.records = NoRecords()
            settled = settle(hot, LAZY * STRETCH)
        self._weigh(hot)
        return answer, settled

    def _settle(self, connection: sqlite3.Connection, channel: int) -> tuple[Settled | None, bool]:
        hot = self._warm(channel)
        with hot.lock:
            more = self._catch_up(connection, hot)
            settled = settle(hot, STRETCH, patches=0)
        self._weigh(hot)
        return settled, more

    async def _index_readings(self, readings: Sequence[int]) -> None:
        for reading in readings:
            indexed = await self._readers.read(partial(passages.index, reading=reading, number=self.number))
            if indexed is None:
                continue
            try:
                await self._writer.write(partial(passages.store, indexed=indexed))
            except StoreError as error:
                log.warning("a document's words could not be stored and will be again: %s", type(error).__name__)

    async def _keep(self, settled: Settled | None) -> None:
        if settled is None:
            return
        try:
            await self._writer.write(partial(store_settled, settled=settled))
        except StoreError as error:
            log.warning("the search index could not be stored and will be made again: %s", type(error).__name__)
            with self._lock:
                failed = self._hot.pop(settled.channel, None)
                self._held -= failed.size if failed else 0

    def _warm(self, channel: int) -> Hot:
        with self._lock:
            hot = self._hot.setdefault(channel, Hot(channel, self.number))
            self._hot.move_to_end(channel)
            return hot

    def _weigh(self, hot: Hot) -> None:
        """Let go of what was asked longest ago while all together are too large."""
        size = hot.concordance.bytes_held
        with self._lock:
            if self._hot.get(hot.channel) is not hot:
                return
            self._held += size - hot.size
            hot.size = size
            while self._held > HOT_BYTES and len(self._hot) > 1:
                self._held -= self._hot.popitem(last=False)[1].size

    def _catch_up(self, connection: sqlite3.Connection, hot: Hot) -> bool:
        """Read what changed and what is new; True if there may be more than is read at once."""
        if not hot.loaded:
            _load(connection, hot)
        self._read_notes(connection, hot)
        concordance = hot.concordance
        past = concordance.seqs[-1] if len(concordance) else 0
        entries = self._entries(connection, hot.channel, past + 1, SEQ_MASK)
        for entry in entries:
            concordance.add(entry)
        return len(entries) == READ_AT_ONCE

    def _read_notes(self, connection: sqlite3.Connection, hot: Hot) -> None:
        first = hot.channel << SEQ_BITS
        notes = connection.execute(
            "SELECT max(number) AS number, message FROM search_stale WHERE message BETWEEN ? AND ? AND number > ? "
            "GROUP BY message",
            (first, first | SEQ_MASK, hot.seen),
        ).fetchall()
        if not notes:
            return
        hot.seen = max(note["number"] for note in notes)
        hot.notes += len(notes)
        concordance = hot.concordance
        entries: list[Entry] = []
        for note in notes:
            seq = note["message"] & SEQ_MASK
            place = concordance.place(seq)
            if place is not None:
                entries += self._entries(connection, hot.channel, seq, seq) or [concordance.without(place)]
        concordance.patch(entries)

    def _entries(self, connection: sqlite3.Connection, channel: int, first: int, last: int) -> list[Entry]:
        """The channel's messages between two seqs, as many as are read at once."""
        between = (channel << SEQ_BITS | first, channel << SEQ_BITS | last, READ_AT_ONCE)
        rows = connection.execute(_ENTRIES, between).fetchall()
        if not rows:
            return []
        captions: dict[int, list[str]] = {}
        for row in connection.execute(_CAPTIONS, (rows[0]["id"], rows[-1]["id"])):
            captions.setdefault(row["message"], []).extend(filter(None, (row["caption"], row["file_name"])))
        return [self._entry(row, captions.get(row["id"])) for row in rows]

    def _entry(self, row: sqlite3.Row, captions: Sequence[str] | None) -> Entry:
        """`captions`: those of its media, and their names; None if it brought none."""
        text: str = row["text"]
        if row["forward"] is not None:
            text = f"{text}\n{orjson.loads(row['forward'])['text']}"
        said = words.read(text)
        shown = words.read("\n".join(caption for caption in captions or () if caption != row["text"]))
        numbers = [self.number(term) for term in said.terms] + [self.number(term) for term in shown.terms]
        flags = said.marks
        flags |= Mark.AGENT if row["author_marks"] & 2 else 0
        flags |= Mark.GONE if row["deleted"] is not None else 0
        flags |= Mark.MEDIA if captions is not None else 0
        flags |= Mark.BLANK if captions is None and not text.strip() else 0
        return Entry(
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


def settle(hot: Hot, stretch: int, patches: int = PATCHES) -> Settled | None:
    """Make segments of what is enough for one, and say what of them the store is to keep."""
    concordance = hot.concordance
    if len(concordance.tail) >= stretch:
        concordance.end_tail()
        _merge(concordance)
    if len(concordance.patches) > patches:
        _mend(concordance)
    dropped = _forgotten(concordance)
    new = [segment for segment in concordance.segments[len(dropped) :] if not segment.stored]
    noted = hot.seen if hot.notes > patches and not concordance.patches_in_segments else 0
    if not new and not noted and not dropped:
        return None
    for segment in new:
        segment.stored = True
    hot.notes = 0 if noted else hot.notes
    stretches = [*dropped, *(Stretch(segment.seqs[0], segment.seqs[-1], segment.pack()) for segment in new)]
    if dropped:
        hot.forget()
    return Settled(hot.channel, tuple(stretches), noted)


def _forgotten(concordance: ChannelConcordance) -> list[Stretch]:
    """The oldest segments of which no message is left. The newest stays: it says how far the index goes."""
    gone: list[Stretch] = []
    for base, segment in zip(concordance.bases[:-1], concordance.segments[:-1], strict=True):
        if not all(flags & Mark.GONE for flags in concordance.flags[base : base + len(segment)]):
            break
        gone.append(Stretch(segment.seqs[0], segment.seqs[-1], None))
    return gone


def _merge(concordance: ChannelConcordance) -> None:
    """Put those last segments together of which the first is outgrown by the others."""
    sizes = [len(segment) for segment in concordance.segments]
    for at in range(len(sizes) - 1):
        if sum(sizes[at + 1 :]) >= (FAN - 1) * sizes[at]:
            concordance.rewrite(at, len(sizes) - at)
            return


def _mend(concordance: ChannelConcordance) -> None:
    for at in range(len(concordance.segments)):
        if concordance.is_patched(at):
            concordance.rewrite(at, 1)


def store_settled(connection: sqlite3.Connection, settled: Settled) -> None:
    """Keep segments in the place of those that hold the same messages."""
    channel = settled.channel
    for stretch in settled.stretches:
        held = (channel, stretch.first, stretch.last, VERSION)
        larger = "SELECT 1 FROM search_segments WHERE channel = ? AND first <= ? AND last > ? AND version = ?"
        if connection.execute(larger, held).fetchone() is not None:
            continue  # another search was quicker, and put more of them together
        connection.execute(
            "DELETE FROM search_segments WHERE channel = ?1 AND (first >= ?2 AND last <= ?3 "
            "OR first <= ?3 AND last >= ?2 AND version <> ?4)",
            held,
        )
        if stretch.content is not None:
            connection.execute("INSERT INTO search_segments VALUES (?, ?, ?, ?, ?)", (*held, stretch.content))
    first = channel << SEQ_BITS
    connection.execute(
        "DELETE FROM search_stale WHERE message BETWEEN ? AND ? AND number <= ?",
        (first, first | SEQ_MASK, settled.noted),
    )


def _load(connection: sqlite3.Connection, hot: Hot) -> None:
    """Take up what the store has, up to where it was written by another version."""
    hot.loaded = True
    rows = connection.execute("SELECT * FROM search_segments WHERE channel = ? ORDER BY first", (hot.channel,))
    past = -1
    for row in rows:
        segment = unpack(row["content"]) if row["version"] == VERSION and row["first"] > past else None
        if segment is None:
            break
        past = row["last"]
        segment.stored = True
        hot.concordance.add_segment(segment)


def _behind(connection: sqlite3.Connection) -> list[int]:
    """Channels with enough messages for a segment, or with changes, that are not in the stored index."""
    rows = connection.execute(
        "SELECT c.id, (SELECT max(m.id) FROM messages m WHERE m.id BETWEEN c.id << ?1 AND c.id << ?1 | ?2) AS newest, "
        "(SELECT max(s.last) FROM search_segments s WHERE s.channel = c.id) AS last, EXISTS (SELECT 1 FROM "
        "search_stale t WHERE t.message BETWEEN c.id << ?1 AND c.id << ?1 | ?2) AS noted FROM channels c",
        (SEQ_BITS, SEQ_MASK),
    )
    return [
        row["id"] for row in rows if row["noted"] or ((row["newest"] or 0) & SEQ_MASK) - (row["last"] or 0) >= STRETCH
    ]


def _root(row: sqlite3.Row) -> int:
    """The seq of the thread's first message; a number of its own for one that nobody has."""
    if row["root"] is None:
        return 0
    if row["root_number"] is None:
        return 1 << 63 | zlib.crc32(row["root"].encode("utf-8", "surrogatepass"))
    return int(row["root_number"]) & SEQ_MASK
