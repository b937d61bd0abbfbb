"""What was seen and what was fetched: media that came along with its message, as uploads do, counts as neither."""

import sqlite3

from belino.domain.media import MediaKind
from belino.domain.record import MediaTally, Unfetched

# Bytes that came with the message were nobody's choice.
_SEEN = "FROM refs WHERE NOT (sha256 IS NOT NULL AND fetched IS NULL)"


def tally(connection: sqlite3.Connection) -> MediaTally:
    """Everything that ever came, what of it was fetched, and the rest by kind, type and size of picture."""
    messages = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    seen, fetched, fetched_bytes = connection.execute(
        f"SELECT count(*), count(fetched), coalesce(sum(fetched_bytes), 0) {_SEEN}"
    ).fetchone()
    rows = connection.execute(
        "SELECT kind, mime, width, height, count(*) AS items, coalesce(sum(size), 0) AS size "
        f"{_SEEN} AND fetched IS NULL GROUP BY kind, mime, width, height"
    )
    return MediaTally(
        messages=messages,
        seen=seen,
        fetched=fetched,
        fetched_bytes=fetched_bytes,
        unfetched=tuple(
            Unfetched(
                kind=MediaKind(row["kind"]),
                mime=row["mime"],
                width=row["width"],
                height=row["height"],
                items=row["items"],
                size=row["size"],
            )
            for row in rows
        ),
    )
