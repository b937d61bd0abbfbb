"""Search segments in tables: a head for each in `search_segments`, its blocks in `search_blocks`, and a cache of these.

A block's id is its segment's id and its number. Ids are never used again and blocks never change, so that a cached
block is right whichever transaction reads it.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

from belino.domain.errors import StoreError
from belino.search import tokenizer
from belino.search.blocks import Load, PackedSegment
from belino.search.segment import FORMAT
from belino.search.stored_segment import StoredSegment, read_head
from belino.storage.database import Tx
from belino.storage.row_ids import SEQ_BITS, SEQ_MASK

VERSION = f"{FORMAT}-{tokenizer.VERSION}"
BLOCK_BITS = 20
OVERHEAD = 400
"""Bytes of memory that a cached block takes besides its content."""

T = TypeVar("T")


class BlockCache:
    """Blocks that were read lately, of all channels.

    There are two generations: what is used moves to the young one, and when that is full, the old one is dropped.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.young: dict[int, tuple[Any, int]] = {}
        """Values of blocks, and their sizes in bytes."""
        self._old: dict[int, tuple[Any, int]] = {}
        self._young_bytes = self._old_bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.young) + len(self._old)

    @property
    def bytes_held(self) -> int:
        return self._young_bytes + self._old_bytes

    def find(self, block: int) -> tuple[Any, int] | None:
        """A block's value and size, which is young then; None if it is not cached."""
        found = self.young.get(block) or self._old.get(block)
        if found is not None:
            self._keep(block, found)
        return found

    def put(self, block: int, value: object, size: int) -> None:
        """Cache a block's value, of this size in bytes."""
        self._keep(block, (value, size + OVERHEAD))

    def _keep(self, block: int, held: tuple[Any, int]) -> None:
        with self._lock:
            if block in self.young:
                return
            if self._old.pop(block, None) is not None:
                self._old_bytes -= held[1]
            self.young[block] = held
            self._young_bytes += held[1]
            if 2 * self._young_bytes > self.most:
                self._old, self._old_bytes = self.young, self._young_bytes
                self.young, self._young_bytes = {}, 0


class BlockReader:
    """Loads blocks in the transaction that it is given for a while."""

    def __init__(self, cache: BlockCache) -> None:
        self._cache = cache
        self.tx: Tx | None = None

    def of(self, segment: int) -> Load:
        """Loads the blocks of a segment."""
        first, cache = segment << BLOCK_BITS, self._cache

        def load(number: int, decode: Callable[[bytes], T]) -> T:
            found = cache.young.get(first | number)
            return self._read(first | number, decode) if found is None else cast("T", found[0])

        return load

    def _read(self, block: int, decode: Callable[[bytes], T]) -> T:
        found = self._cache.find(block)
        if found is not None:
            return cast("T", found[0])
        assert self.tx is not None, "blocks are loaded in a transaction"
        row = self.tx.execute("SELECT content FROM search_blocks WHERE id = ?", (block,)).fetchone()
        if row is None:
            raise StoreError(f"block {block:x} of the search index is missing")
        value = decode(row[0])
        self._cache.put(block, value, len(row[0]))
        return value


class SegmentKey(NamedTuple):
    """A segment in the store as it was at some time."""

    id: int
    edition: int
    first: int
    last: int


def list_segments(tx: Tx, channel: int) -> tuple[SegmentKey, ...]:
    """The segments of a channel from its first message on, up to the first of another version."""
    rows = tx.execute(
        "SELECT id, edition, first, last, version FROM search_segments WHERE channel = ? ORDER BY first", (channel,)
    )
    found: list[SegmentKey] = []
    for *key, version in rows:
        segment = SegmentKey(*key)
        if version != VERSION or (found and segment.first <= found[-1].last):
            break
        found.append(segment)
    return tuple(found)


def load_segment(tx: Tx, key: SegmentKey, load: Load) -> StoredSegment:
    """A segment of the store."""
    row = tx.execute("SELECT head FROM search_segments WHERE id = ?", (key.id,)).fetchone()
    return StoredSegment(read_head(row["head"]), load)


class IndexUpdate(NamedTuple):
    """What is to be written of a channel's index."""

    channel: int
    deleted: Sequence[SegmentKey] = ()
    added: PackedSegment | None = None
    changed: Mapping[SegmentKey, PackedSegment] = MappingProxyType({})
    noted: int = 0
    """The last note of a changed message that the segments contain."""


def store_update(tx: Tx, update: IndexUpdate) -> bool:
    """Write an update; False if another process has changed the index since."""
    channel, added = update.channel, update.added
    stored = set(list_segments(tx, channel))
    if not stored.issuperset((*update.deleted, *update.changed)):
        return False
    others = stored.difference(update.deleted)
    if added is not None and any(key.first <= added.last and key.last >= added.first for key in others):
        return False
    for key in update.deleted:
        _delete(tx, key.id)
    for key, packed in update.changed.items():
        tx.execute("UPDATE search_segments SET edition = edition + 1, head = ? WHERE id = ?", (packed.head, key.id))
        tx.many("DELETE FROM search_blocks WHERE id = ?", [(key.id << BLOCK_BITS | at,) for at in packed.dropped])
        _insert_blocks(tx, key.id, packed)
    if added is not None:
        _add(tx, channel, added)
    tx.execute(
        "DELETE FROM search_stale WHERE number <= ?3 AND message BETWEEN ?1 << ?4 AND ?1 << ?4 | coalesce("
        "(SELECT max(last) FROM search_segments WHERE channel = ?1 AND version = ?2), 0)",
        (channel, VERSION, update.noted, SEQ_BITS),
    )
    return True


def _add(tx: Tx, channel: int, packed: PackedSegment) -> None:
    """Insert a segment, in place of those of other versions."""
    old = tx.execute(
        "SELECT id FROM search_segments WHERE channel = ? AND version <> ? AND first <= ? AND last >= ?",
        (channel, VERSION, packed.last, packed.first),
    )
    for row in old.fetchall():
        _delete(tx, row["id"])
    made = tx.execute(
        "INSERT INTO search_segments (channel, first, last, version, head) VALUES (?, ?, ?, ?, ?) RETURNING id",
        (channel, packed.first, packed.last, VERSION, packed.head),
    ).fetchone()
    _insert_blocks(tx, made["id"], packed)


def _insert_blocks(tx: Tx, segment: int, packed: PackedSegment) -> None:
    tx.many(
        "INSERT INTO search_blocks (id, content) VALUES (?, ?)",
        [(segment << BLOCK_BITS | number, content) for number, content in packed.blocks.items()],
    )


def _delete(tx: Tx, segment: int) -> None:
    tx.execute("DELETE FROM search_segments WHERE id = ?", (segment,))
    first = segment << BLOCK_BITS
    tx.execute("DELETE FROM search_blocks WHERE id BETWEEN ? AND ?", (first, first | (1 << BLOCK_BITS) - 1))


def channels_behind(tx: Tx, stretch: int) -> list[int]:
    """Channels with changes in their segments, or that many messages or more that are in none."""
    rows = tx.execute(
        "SELECT c.id, coalesce((SELECT max(m.id) FROM messages m WHERE m.id BETWEEN c.id << ?1 AND c.id << ?1 | ?2) "
        "& ?2, 0) AS newest, coalesce((SELECT max(s.last) FROM search_segments s WHERE s.channel = c.id AND "
        "s.version = ?3), 0) AS last, (SELECT min(t.message) FROM search_stale t WHERE t.message "
        "BETWEEN c.id << ?1 AND c.id << ?1 | ?2) & ?2 AS noted FROM channels c",
        (SEQ_BITS, SEQ_MASK, VERSION),
    )
    return [
        row["id"]
        for row in rows
        if (row["noted"] is not None and row["noted"] <= row["last"]) or row["newest"] - row["last"] >= stretch
    ]
