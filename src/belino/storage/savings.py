"""Savings: media seen against media fetched; uploads count as neither."""

from collections import defaultdict

from belino.domain.media import MediaKind
from belino.domain.message import ConversationKey
from belino.domain.stored import MediaTally, Unfetched
from belino.storage.database import Tx

# Bytes that came with the message were not fetched by choice.
_SEEN = "FROM refs WHERE NOT (sha256 IS NOT NULL AND fetched IS NULL)"


def tallies(tx: Tx) -> tuple[MediaTally, ...]:
    """Media per channel: all items, those fetched, and the rest by kind, type and picture size."""
    said = dict(tx.execute("SELECT channel, count(*) FROM messages GROUP BY channel").fetchall())
    seen = {
        row[0]: tuple(row[1:])
        for row in tx.execute(
            f"SELECT channel, count(*), count(fetched), coalesce(sum(fetched_bytes), 0) {_SEEN} GROUP BY channel"
        )
    }
    left = _unfetched(tx)
    return tuple(
        MediaTally(
            channel=ConversationKey(platform=row["platform"], account=row["account"], channel=row["channel"]),
            name=row["name"],
            messages=said.get(row["id"], 0),
            seen=seen.get(row["id"], (0, 0, 0))[0],
            fetched=seen.get(row["id"], (0, 0, 0))[1],
            fetched_bytes=seen.get(row["id"], (0, 0, 0))[2],
            unfetched=tuple(left[row["id"]]),
        )
        for row in tx.execute("SELECT id, platform, account, channel, name FROM channels ORDER BY id")
    )


def _unfetched(tx: Tx) -> defaultdict[int, list[Unfetched]]:
    found: defaultdict[int, list[Unfetched]] = defaultdict(list)
    rows = tx.execute(
        "SELECT channel, kind, mime, width, height, count(*) AS items, coalesce(sum(size), 0) AS size "
        f"{_SEEN} AND fetched IS NULL GROUP BY channel, kind, mime, width, height"
    )
    for row in rows:
        kind, mime, width, height = MediaKind(row["kind"]), row["mime"], row["width"], row["height"]
        group = Unfetched(kind=kind, mime=mime, width=width, height=height, items=row["items"], size=row["size"])
        found[row["channel"]].append(group)
    return found
