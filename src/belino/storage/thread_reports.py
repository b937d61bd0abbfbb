"""Thread reports: the replies under messages, counted from what is stored and from what platforms reported."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from belino.domain.message import ThreadReport
from belino.storage.database import TableRow, Tx, to_micros
from belino.storage.dialect import marks

LATEST = 2**62
"""Later than any time."""


class ThreadCount(NamedTuple):
    """The replies under a message: those that are stored, and those that only the platform has."""

    replies: int
    stored: int
    recent: int | None
    """Replies since the asked time; None if some of these are not stored."""
    first: int | None
    """When the first stored one was sent."""
    last: int | None
    participants: tuple[str, ...] = ()
    """Names that the platform reported."""
    is_reported: bool = False
    """Whether the platform reported how many there are."""


def take_report(tx: Tx, channel: int, root: str, report: ThreadReport, now: int) -> None:
    """Store what a platform reports about a thread, in place of what it reported before."""
    last = None if report.last is None else to_micros(report.last)
    tx.execute(
        "INSERT INTO thread_reports (channel, root, replies, last, at, participants) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (channel, root) DO UPDATE SET replies = excluded.replies, last = excluded.last, "
        "at = excluded.at, participants = excluded.participants",
        (channel, root, report.replies, last, now, orjson.dumps(report.participants)),
    )


def count_deleted_reply(tx: Tx, channel: int, root: str | None, sent: int) -> None:
    """A reply was deleted: if it is among those that its platform reported, these are one less."""
    tx.execute(
        "UPDATE thread_reports SET replies = replies - 1 "
        "WHERE channel = ? AND root = ? AND coalesce(last, at) >= ? AND replies > 0",
        (channel, root, sent),
    )


def drop_reports(tx: Tx, channel: int, roots: Sequence[str]) -> None:
    """Delete what platforms reported about these threads: they are stored whole, or their first message is gone."""
    tx.many("DELETE FROM thread_reports WHERE channel = ? AND root = ?", [(channel, root) for root in roots])


def reported(tx: Tx, channel: int | None, roots: Sequence[str]) -> Sequence[TableRow]:
    """What platforms reported about these threads."""
    return tx.execute(
        f"SELECT * FROM thread_reports WHERE channel = ? AND root IN ({marks(roots)}) AND replies > 0",
        (channel, *roots),
    ).fetchall()


def count_threads(
    tx: Tx, channel: int | None, roots: Sequence[str], *, since: int, until: int = LATEST
) -> Mapping[str, ThreadCount]:
    """The undeleted replies under these messages that were sent up to a time; none of those without replies."""
    rows = tx.execute(
        "SELECT root, count(*) AS replies, count(CASE WHEN sent > ? THEN 1 END) AS recent, min(sent) AS first, "
        f"max(sent) AS last FROM messages WHERE channel = ? AND root IN ({marks(roots)}) AND deleted IS NULL "
        "AND sent <= ? GROUP BY root",
        (since, channel, *roots, until),
    )
    counts = {
        row["root"]: ThreadCount(row["replies"], row["replies"], row["recent"], row["first"], row["last"])
        for row in rows
    }
    for report in reported(tx, channel, roots):
        # A report from after that time counts replies that came later.
        if (report["last"] or report["at"]) <= until:
            count = counts.get(report["root"], ThreadCount(0, 0, 0, None, None))
            later = tx.execute(
                "SELECT count(*) FROM messages WHERE channel = ? AND root = ? AND deleted IS NULL "
                "AND sent > ? AND sent <= ?",
                (channel, report["root"], report["last"] or report["at"], until),
            ).fetchone()[0]
            counts[report["root"]] = _with_report(
                count, report["replies"] + later, report["last"], orjson.loads(report["participants"]), since
            )
    return counts


def _with_report(
    count: ThreadCount, replies: int, last: int | None, participants: Sequence[str], since: int
) -> ThreadCount:
    lacks_some = replies > count.stored
    return count._replace(
        replies=max(replies, count.stored),
        recent=None if lacks_some and (last is None or last > since) else count.recent,
        last=max((each for each in (count.last, last) if each is not None), default=None),
        participants=tuple(participants),
        is_reported=True,
    )
