"""Cassettes as tests: replay one, and fail with what differs."""

from collections.abc import Mapping
from pathlib import Path


async def check_cassette(path: Path) -> Mapping[str, int]:
    """Replay a cassette and return how many records of each kind were compared; AssertionError tells what differs."""
    from belino.cassette.file import read_cassette
    from belino.gateway.replay import replay

    replayed = await replay(read_cassette(path))
    told = "\n".join("\n".join([each.where, *each.diff]) for each in replayed.differences)
    assert not replayed.differences, f"{path.name} does not replay as it was recorded:\n{told}"
    return replayed.counts
