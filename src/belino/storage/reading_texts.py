"""Texts of readings that are stored for bytes, each under its reader's key."""

from collections.abc import Mapping, Sequence

from belino.domain.reading import StoredText
from belino.storage.database import Tx
from belino.storage.dialect import marks
from belino.storage.readings import find_reading
from belino.storage.transcripts import find_transcript

_ALL = (1, (1 << 63) - 1)


def texts_of(tx: Tx, sha256s: Sequence[str]) -> Mapping[str, tuple[StoredText, ...]]:
    """What providers found in these bytes, oldest first; a document's own text is not among it."""
    rows = tx.execute(
        f"SELECT sha256, reader FROM readings WHERE sha256 IN ({marks(sha256s)}) AND reader LIKE '%:%' ORDER BY id",
        tuple(sha256s),
    ).fetchall()
    found: dict[str, tuple[StoredText, ...]] = {}
    for row in rows:
        sha256, reader = row["sha256"], row["reader"]
        text = find_reading(tx, sha256, reader, _ALL)
        if text is not None:
            told = StoredText(reader=reader, text=text, window=find_transcript(tx, sha256, reader))
            found[sha256] = (*found.get(sha256, ()), told)
    return found
