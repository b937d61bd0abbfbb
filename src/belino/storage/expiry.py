"""Expiry of messages by the timer of their platform: their content is deleted as if their sender had deleted it."""

from belino.storage.changes import delete_content
from belino.storage.database import Tx

_DUE = "SELECT * FROM messages WHERE expires IS NOT NULL AND expires <= ? ORDER BY expires, id LIMIT ?"
AT_ONCE = 200
"""Messages per transaction, so that arrivals need not wait for a month of them."""


def expire_timed(tx: Tx, now: int) -> int:
    """Delete the content of the next messages whose timer has ended; returns how many."""
    due = tx.execute(_DUE, (now, AT_ONCE)).fetchall()
    for message in due:
        delete_content(tx, message, message["expires"], now)
        tx.execute("UPDATE messages SET expires = NULL WHERE id = ?", (message["id"],))
        # The words of one that we sent are in the outbox, too.
        tx.execute(
            "UPDATE parcels SET text = '', plain = '', rich = '' "
            "WHERE channel = ? AND message_id = ? AND state = 'sent'",
            (message["channel"], message["platform_id"]),
        )
    return len(due)


def next_expiry(tx: Tx) -> int | None:
    """When the next timer ends; None if no message has one."""
    found: int | None = tx.execute("SELECT min(expires) FROM messages WHERE expires IS NOT NULL").fetchone()[0]
    return found
