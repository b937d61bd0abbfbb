"""Session files: copies of media in a session's folder, found by the ref in their name."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from belino.media.jail import Jail
from belino.media.paths import MARK

INCOMING = "incoming"
LOOKED_AT = 100_000


def remove_copies(folder: Path, refs: Collection[str]) -> int:
    """Delete every copy of these refs below a conversation's folder. Returns how many there were."""
    marks = [f"{MARK}{ref}" for ref in refs]
    with Jail(folder) as jail:
        copies = [
            seen.path
            for seen in jail.files(INCOMING, most=LOOKED_AT)
            if any(mark in seen.path.removeprefix(f"{INCOMING}/") for mark in marks)
        ]
        for path in copies:
            jail.remove(path)
    return len(copies)


def remove_older(folder: Path, before: datetime) -> int:
    """Delete copies in the session's folder that were not written or read since then. Returns how many there were."""
    bound = before.timestamp() * 1e9
    with Jail(folder) as jail:
        old = [seen.path for seen in jail.files(INCOMING, most=LOOKED_AT) if max(seen.mtime_ns, seen.atime_ns) < bound]
        for path in old:
            jail.remove(path)
    return len(old)
