"""Outcomes of one message: recorded steps, merged with what the rows show."""

from collections.abc import Iterable, Iterator, Sequence

from belino.domain.joining import JoinReason
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome, Stage, Step
from belino.domain.places import message_at
from belino.domain.stored import Story
from belino.storage.database import TableRow, Tx, from_micros, to_micros
from belino.storage.dialect import by_index, marks
from belino.storage.encryption import Keys
from belino.storage.messages import by_number
from belino.storage.parcels import parcel_record, parcels_of_command, parcels_of_turn
from belino.storage.refs import refs_of_message
from belino.storage.row_ids import find_channel

_STAGES = {stage: position for position, stage in enumerate(Stage)}
_CHANGES = {"edit": "edited", "deletion": "deleted", "reaction": "reaction"}


def note(tx: Tx, trace: str, steps: Sequence[Step]) -> None:
    """Store steps for `story`."""
    tx.many(
        "INSERT INTO steps (trace, at, stage, outcome, reason, subject) VALUES (?, ?, ?, ?, ?, ?)",
        [(trace, to_micros(step.at), step.stage, step.outcome, step.reason, step.subject) for step in steps],
    )


def story(tx: Tx, keys: Keys, conversation: ConversationKey, message_id: str) -> Story | None:
    """The steps of a message of this channel, from arrival to receipt; of an agent's message, from its question."""
    row = tx.execute(
        "SELECT * FROM messages WHERE channel = ? AND platform_id = ? ORDER BY kind LIMIT 1",
        (find_channel(tx, conversation), message_id),
    ).fetchone()
    if row is None:
        return None
    turn = _turn_of(tx, row)
    (message,) = by_number(tx, keys, (row["id"],))
    begun = row if turn is None or row["turn"] is not None else _begun(tx, turn) or row
    refs = refs_of_message(tx, keys, begun["id"])
    parcels = parcels_of_turn(tx, turn["id"]) if turn is not None else parcels_of_command(tx, begun["trace"])
    steps = (
        *_arrival_steps(begun),
        *_move_steps(tx, begun),
        *_change_steps(tx, row),
        *_turn_steps(turn),
        *_join_steps(tx, turn),
        *_media_steps(tx, begun["id"]),
        *_parcel_steps(tx, parcels),
        *_noted(tx, {begun["trace"], row["trace"], *(() if turn is None else (turn["trace"],))}),
    )
    return Story(
        message=message,
        steps=tuple(sorted(steps, key=lambda step: (step.at, _STAGES[step.stage]))),
        refs=refs,
        parcels=tuple(parcel_record(parcel) for parcel in parcels),
    )


def _turn_of(tx: Tx, message: TableRow) -> TableRow | None:
    """The turn that answers a message, or that produced an agent's message."""
    turn: TableRow | None = tx.execute(
        "SELECT * FROM turns WHERE id = coalesce(?, (SELECT turn FROM parcels WHERE channel = ? AND message_id = ?))",
        (message["turn"], message["channel"], message["platform_id"]),
    ).fetchone()
    return turn


def _begun(tx: Tx, turn: TableRow) -> TableRow | None:
    """The first message of a turn; None if it was deleted by age before the rest of its album."""
    row: TableRow | None = tx.execute("SELECT * FROM messages WHERE id = ?", (turn["message"],)).fetchone()
    return row


def _arrival_steps(message: TableRow) -> Iterator[Step]:
    at = from_micros(message["received"])
    yield Step(at=at, stage=Stage.RECEIVED, outcome=message["kind"])
    yield Step(at=at, stage=Stage.STORED, outcome="stored")
    yield Step(at=at, stage=Stage.GATE, outcome=message["standing"], reason=message["reason"])


def _move_steps(tx: Tx, message: TableRow) -> Iterator[Step]:
    """That a message came from a place that its channel moved to."""
    places = tx.execute(
        "SELECT d.place, d.channel FROM moved_channels d JOIN channels c "
        "ON c.platform = d.platform AND c.account = d.account AND c.channel = d.channel WHERE c.id = ?",
        (message["channel"],),
    )
    for row in places:
        if str(message["platform_id"]).endswith(message_at("", row["place"])):
            why = f"the channel {row['channel']} moved to {row['place']}, and keeps its access, history and session"
            yield Step(at=from_micros(message["received"]), stage=Stage.RECEIVED, outcome="moved", reason=why)


def _change_steps(tx: Tx, message: TableRow) -> Iterator[Step]:
    rows = tx.execute(
        f"SELECT * FROM changes{by_index('changes_of_message')} WHERE channel = ? AND message_id = ? "
        "AND kind <> 'delivery' ORDER BY received",
        (message["channel"], message["platform_id"]),
    )
    for row in rows:
        outcome = _CHANGES[row["kind"]] if row["outcome"] == "applied" else f"{row['kind']} {row['outcome']}"
        yield Step(at=from_micros(row["received"]), stage=Stage.STORED, outcome=outcome)


def _turn_steps(turn: TableRow | None) -> Iterator[Step]:
    if turn is None:
        return
    subject = f"turn {turn['number']}"
    yield Step(at=from_micros(turn["created"]), stage=Stage.TURN, outcome="waiting", subject=subject)
    if turn["started"] is not None:
        attempt = f"attempt {turn['attempt']}"
        yield Step(
            at=from_micros(turn["started"]), stage=Stage.TURN, outcome="running", reason=attempt, subject=subject
        )
    if turn["ended"] is not None:
        at = from_micros(turn["ended"])
        yield Step(at=at, stage=Stage.TURN, outcome=turn["state"], reason=turn["reason"], subject=subject)


def _join_steps(tx: Tx, turn: TableRow | None) -> Iterator[Step]:
    """Every message that is answered together with the turn's first, and why."""
    if turn is None:
        return
    rows = tx.execute(
        "SELECT platform_id, received, joined FROM messages WHERE turn = ? AND joined <> '' ORDER BY id", (turn["id"],)
    )
    for row in rows:
        at, subject = from_micros(row["received"]), f"message {row['platform_id']}"
        yield Step(at=at, stage=Stage.TURN, outcome="joined", reason=JoinReason(row["joined"]).says, subject=subject)
    if turn["restarts"]:
        at = max(from_micros(turn["created"]), from_micros(turn["ready"]))
        reason = "a message joined it before anything of it was seen"
        yield Step(at=at, stage=Stage.TURN, outcome="started again", reason=reason, subject=f"turn {turn['number']}")


def _media_steps(tx: Tx, message: int) -> Iterator[Step]:
    """The outcome of each ref at arrival and since."""
    rows = tx.execute(
        "SELECT r.* FROM message_refs l JOIN refs r ON r.seq = l.ref WHERE l.message = ? ORDER BY l.role, l.position",
        (message,),
    )
    for row in rows:
        came_along = row["sha256"] is not None and row["fetched"] is None
        first = MediaOutcome.HELD if came_along else MediaOutcome.REFERENCED
        yield Step(at=from_micros(row["stored"]), stage=Stage.MEDIA, outcome=first, subject=row["id"])
        if row["ended"] is not None:
            at = from_micros(row["ended"])
            yield Step(at=at, stage=Stage.MEDIA, outcome=row["outcome"], reason=row["reason"], subject=row["id"])


def _parcel_steps(tx: Tx, parcels: Iterable[TableRow]) -> Iterator[Step]:
    for row in parcels:
        yield Step(at=from_micros(row["created"]), stage=Stage.REPLY, outcome=row["kind"], subject=row["key"])
        if row["attempts"]:
            tries = "1 attempt" if row["attempts"] == 1 else f"{row['attempts']} attempts"
            yield Step(
                at=from_micros(row["changed"]),
                stage=Stage.DELIVERY,
                outcome=row["state"],
                reason=f"{row['reason']} ({tries})" if row["reason"] else tries,
                subject=row["key"],
            )
        news = tx.execute(
            "SELECT * FROM changes WHERE channel = ? AND message_id = ? AND kind = 'delivery' ORDER BY received",
            (row["channel"], row["message_id"]),
        )
        for status in news:
            at = from_micros(status["received"])
            yield Step(
                at=at, stage=Stage.DELIVERY, outcome=status["outcome"], reason=status["text"], subject=row["key"]
            )


def _noted(tx: Tx, traces: set[str]) -> Iterator[Step]:
    rows = tx.execute(
        f"SELECT * FROM steps WHERE trace IN ({marks(traces)}) ORDER BY id",
        tuple(traces),
    )
    for row in rows:
        yield Step(
            at=from_micros(row["at"]),
            stage=Stage(row["stage"]),
            outcome=row["outcome"],
            reason=row["reason"],
            subject=row["subject"],
        )
