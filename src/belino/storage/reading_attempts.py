"""Reading attempts: what was tried to read a ref, deleted with it; and the cost of a day, which is not."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from belino.domain.message import ConversationKey
from belino.domain.reading import Attempt, AttemptRecord, ReadingForm, ReadingOutcome, Spent
from belino.storage.database import TableRow, Tx, from_micros, to_micros
from belino.storage.row_ids import RowIds, find_channel

KEPT = timedelta(days=2)
"""How long costs are kept; limits count those of a day."""

_INSERT = """
INSERT INTO reading_attempts (channel, ref, sha256, at, form, provider, model, outcome, reason, milliseconds, cached,
    sent_to, usd, seconds, pages, ahead)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16
WHERE EXISTS (SELECT 1 FROM refs WHERE channel = ?1 AND id = ?2)
"""


def insert_attempts(tx: Tx, records: Sequence[AttemptRecord], now: datetime) -> None:
    """Store attempts whose ref still exists, and count the cost of all."""
    if not records:
        return
    for record in records:
        channel = tx.memo(RowIds).channel(tx, record.channel).id
        attempt, at = record.attempt, to_micros(record.at)
        tx.execute(
            _INSERT,
            (channel, record.ref, record.sha256, at, record.form, attempt.provider, attempt.model, attempt.outcome,
             attempt.reason, attempt.milliseconds, int(attempt.cached), attempt.sent_to, attempt.usd,
             float(record.seconds), record.pages, int(record.ahead)),
        )  # fmt: skip
        if record.seconds or record.pages or attempt.usd:
            cost = (channel, at, float(record.seconds), record.pages, float(attempt.usd or 0.0))
            tx.execute("INSERT INTO reading_costs (channel, at, seconds, pages, usd) VALUES (?, ?, ?, ?, ?)", cost)
    tx.execute("DELETE FROM reading_costs WHERE at < ?", (to_micros(now - KEPT),))


def insert_cost(tx: Tx, channel: ConversationKey, usd: float, now: datetime) -> None:
    """Count what was spent in a channel on something else than a reading."""
    cost = (tx.memo(RowIds).channel(tx, channel).id, to_micros(now), float(usd))
    tx.execute("INSERT INTO reading_costs (channel, at, seconds, pages, usd) VALUES (?, ?, 0.0, 0, ?)", cost)
    tx.execute("DELETE FROM reading_costs WHERE at < ?", (to_micros(now - KEPT),))


def find_attempts(
    tx: Tx, *, channel: ConversationKey | None, ref: str | None, before: int | None, limit: int
) -> tuple[tuple[int, AttemptRecord], ...]:
    """The newest attempts first, each with its number."""
    conditions, values = ["1 = 1"], list[object]()
    if channel is not None:
        conditions.append("a.channel = ?")
        values.append(find_channel(tx, channel))
    if ref is not None:
        conditions.append("a.ref = ?")
        values.append(ref)
    if before is not None:
        conditions.append("a.id < ?")
        values.append(before)
    rows = tx.execute(
        "SELECT a.*, c.platform, c.account, c.channel AS channel_key FROM reading_attempts a "
        f"JOIN channels c ON c.id = a.channel WHERE {' AND '.join(conditions)} ORDER BY a.id DESC LIMIT ?",
        (*values, limit),
    )
    return tuple((row["id"], _record(row)) for row in rows)


def forget_attempts(tx: Tx, ref: str) -> None:
    """Delete the attempts of a ref that is deleted, and how far it was read ahead."""
    tx.execute("DELETE FROM reading_attempts WHERE ref = ?", (ref,))
    tx.execute("DELETE FROM read_ahead WHERE ref = ?", (ref,))


def sum_costs(tx: Tx, channel: ConversationKey, since: datetime) -> Spent:
    """How much of a channel's media was read since then."""
    seconds, pages, usd = tx.execute(
        "SELECT coalesce(sum(seconds), 0.0), coalesce(sum(pages), 0), coalesce(sum(usd), 0.0) FROM reading_costs "
        "WHERE channel = ? AND at >= ?",
        (find_channel(tx, channel), to_micros(since)),
    ).fetchone()
    return Spent(seconds=float(seconds), pages=int(pages), usd=float(usd))


def _record(row: TableRow) -> AttemptRecord:
    return AttemptRecord(
        ref=row["ref"],
        sha256=row["sha256"],
        channel=ConversationKey(platform=row["platform"], account=row["account"], channel=row["channel_key"]),
        at=from_micros(row["at"]),
        form=ReadingForm(row["form"]),
        attempt=Attempt(
            provider=row["provider"],
            model=row["model"],
            outcome=ReadingOutcome(row["outcome"]),
            reason=row["reason"],
            milliseconds=row["milliseconds"],
            cached=bool(row["cached"]),
            sent_to=row["sent_to"],
            usd=row["usd"],
        ),
        seconds=row["seconds"],
        pages=row["pages"],
        ahead=bool(row["ahead"]),
    )
