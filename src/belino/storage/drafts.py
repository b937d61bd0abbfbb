"""A draft: the parcel of a running turn, and the parcel that edits it into the answer."""

from belino.domain.errors import StoreError
from belino.domain.outcome import TurnState
from belino.domain.reply import DRAFT_OF, Parcel, ParcelKind, ParcelState
from belino.storage.database import TableRow, Tx
from belino.storage.outbox import insert_parcels, parcel_row

OVERTAKEN = "the answer itself was sent in its place"


def start_draft(tx: Tx, turn_id: int, parcel: Parcel, now: int) -> None:
    """Put a running turn's draft into the outbox; an existing one is left unchanged."""
    turn = tx.execute("SELECT * FROM turns WHERE id = ? AND state = ?", (turn_id, TurnState.RUNNING)).fetchone()
    if turn is None:
        raise StoreError(f"turn {turn_id} is not running")
    insert_parcels(tx, turn, [parcel], now)


def settled(tx: Tx, row: TableRow, now: int) -> TableRow:
    """Resolve a parcel before it is claimed: an edit of a draft gets the draft's message id, or becomes a new message.

    The draft was sent before it or never will be: parcels leave in order.
    """
    if not (row["edits"] or "").startswith(DRAFT_OF):
        return row
    draft = tx.execute("SELECT * FROM parcels WHERE key = ?", (row["edits"].removeprefix(DRAFT_OF),)).fetchone()
    message = draft["message_id"] if draft is not None and draft["state"] == ParcelState.SENT else None
    if draft is not None and draft["state"] in (ParcelState.READY, ParcelState.HELD):
        tx.execute(
            "UPDATE parcels SET state = 'dead', dropped = 1, reason = ?, changed = ? WHERE id = ?",
            (OVERTAKEN, now, draft["id"]),
        )
    kind = ParcelKind.TEXT if message is None else ParcelKind.EDIT
    tx.execute("UPDATE parcels SET kind = ?, edits = ? WHERE id = ?", (kind, message, row["id"]))
    return parcel_row(tx, row["key"])
