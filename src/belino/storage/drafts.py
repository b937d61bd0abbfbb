"""A draft: the parcel of a running turn, and the parcel that edits it into the answer."""

import sqlite3

from belino.domain.errors import StoreError
from belino.domain.outcome import TurnState
from belino.domain.reply import DRAFT_OF, Parcel, ParcelKind, ParcelState
from belino.storage.outbox import insert_parcels, parcel_row
from belino.storage.row_ids import RowIds

OVERTAKEN = "the answer itself was sent in its place"


def start_draft(connection: sqlite3.Connection, places: RowIds, turn_id: int, parcel: Parcel, now: int) -> None:
    """Put a running turn's draft into the outbox; an existing one is left unchanged."""
    turn = connection.execute("SELECT * FROM turns WHERE id = ? AND state = ?", (turn_id, TurnState.RUNNING)).fetchone()
    if turn is None:
        raise StoreError(f"turn {turn_id} is not running")
    insert_parcels(connection, places, turn, [parcel], now)


def settled(connection: sqlite3.Connection, row: sqlite3.Row, now: int) -> sqlite3.Row:
    """Resolve a parcel before it is claimed: an edit of a draft gets the draft's message id, or becomes a new message.

    The draft was sent before it or never will be: parcels leave in order.
    """
    if not (row["edits"] or "").startswith(DRAFT_OF):
        return row
    draft = connection.execute("SELECT * FROM parcels WHERE key = ?", (row["edits"].removeprefix(DRAFT_OF),)).fetchone()
    message = draft["message_id"] if draft is not None and draft["state"] == ParcelState.SENT else None
    if draft is not None and draft["state"] in (ParcelState.READY, ParcelState.HELD):
        connection.execute(
            "UPDATE parcels SET state = 'dead', dropped = 1, reason = ?, changed = ? WHERE id = ?",
            (OVERTAKEN, now, draft["id"]),
        )
    kind = ParcelKind.TEXT if message is None else ParcelKind.EDIT
    connection.execute("UPDATE parcels SET kind = ?, edits = ? WHERE id = ?", (kind, message, row["id"]))
    return parcel_row(connection, row["key"])
