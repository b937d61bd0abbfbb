"""Stored segments: the cache of their blocks keeps what is used, within its limit."""

from belino.storage.search_segments import OVERHEAD, BlockCache


def test_a_cache_of_blocks_keeps_those_that_are_used_and_never_too_many() -> None:
    size = 1_000
    cache = BlockCache(10 * (size + OVERHEAD))
    for block in range(100):
        cache.put(block, f"block {block}", size)
        assert cache.find(0) is not None
        assert cache.bytes_held <= cache.most
    assert cache.find(0) == ("block 0", size + OVERHEAD)
    assert cache.find(99) is not None
    assert cache.find(50) is None
    assert 5 <= len(cache) <= 10


def test_a_cache_without_room_holds_nothing_for_long() -> None:
    cache = BlockCache(0)
    for block in range(3):
        cache.put(block, b"", 10)
    assert len(cache) <= 1
