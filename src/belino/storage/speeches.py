"""Speeches: which blob is the voice message of a text; a row does not keep its blob from being deleted."""

from belino.storage.database import TableRow, Tx


def find_speech(tx: Tx, key: str) -> TableRow | None:
    """The blob of a voice message that was made before, if it is still stored."""
    row: TableRow | None = tx.execute(
        "SELECT b.sha256, b.mime, b.size FROM speeches s JOIN blobs b ON b.sha256 = s.blob WHERE s.key = ?", (key,)
    ).fetchone()
    return row


def keep_speech(tx: Tx, key: str, sha256: str) -> None:
    """Record the blob of a voice message; rows whose blob is gone are deleted."""
    tx.execute("DELETE FROM speeches WHERE NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = speeches.blob)")
    tx.execute(
        "INSERT INTO speeches (key, blob) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET blob = excluded.blob",
        (key, sha256),
    )
