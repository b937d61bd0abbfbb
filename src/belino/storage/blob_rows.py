"""Rows of blobs: what the database lists, with type, size, the time of storing, and owners."""

from collections.abc import Iterable, Sequence

from belino.storage.database import TableRow, Tx

RENDITION = "rendition:"
"""Prefix of the owner of bytes that can be made again from other bytes."""
_UNUSED = "kept < ? AND NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha256 = blobs.sha256)"


def insert_blob(tx: Tx, sha256: str, mime: str, size: int, now: int, *, declared: bool = False) -> None:
    """Insert the row of a stored blob. A declared type does not replace a detected one."""
    tx.execute(
        "INSERT INTO blobs (sha256, mime, size, kept) VALUES (?, ?, ?, ?) ON CONFLICT (sha256) DO UPDATE "
        "SET kept = excluded.kept, mime = CASE WHEN ? = 1 THEN blobs.mime ELSE excluded.mime END",
        (sha256, mime, size, now, int(declared)),
    )


def use_blob(tx: Tx, sha256: str, owner: str) -> None:
    """Record that an owner uses a blob, once."""
    tx.execute(
        "INSERT INTO blob_uses (sha256, owner) VALUES (?, ?) ON CONFLICT (sha256, owner) DO NOTHING", (sha256, owner)
    )


def rendition_owner(sha256: str, name: str) -> str:
    """The owner of a rendition's bytes."""
    return f"{RENDITION}{sha256}:{name}"


def find_blob(tx: Tx, sha256: str) -> TableRow | None:
    """A blob's row."""
    row: TableRow | None = tx.execute("SELECT * FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
    return row


def delete_blob(tx: Tx, sha256: str) -> int:
    """Delete a blob's row and the file ids and links that lead to it; returns how many rows of blobs there were."""
    tx.execute("DELETE FROM file_ids WHERE sha256 = ?", (sha256,))
    tx.execute("DELETE FROM published_files WHERE sha256 = ?", (sha256,))
    return tx.execute("DELETE FROM blobs WHERE sha256 = ?", (sha256,)).rowcount


def note_file_id(tx: Tx, sha256: str, ref_id: str) -> None:
    """Record that these are the bytes of the file of a ref, for other refs of its account."""
    tx.execute(
        "INSERT INTO file_ids (platform, account, file_id, sha256) SELECT c.platform, c.account, r.file_id, ? "
        "FROM refs r JOIN channels c ON c.id = r.channel WHERE r.id = ? AND r.file_id IS NOT NULL "
        "ON CONFLICT (platform, account, file_id) DO UPDATE SET sha256 = excluded.sha256",
        (sha256, ref_id),
    )


def find_by_file_id(tx: Tx, platform: str, account: str, file_id: str) -> TableRow | None:
    """The row of the blob that an account has fetched for this file."""
    row: TableRow | None = tx.execute(
        "SELECT b.* FROM file_ids f JOIN blobs b ON b.sha256 = f.sha256 "
        "WHERE f.platform = ? AND f.account = ? AND f.file_id = ?",
        (platform, account, file_id),
    ).fetchone()
    return row


def unused_blobs(tx: Tx, kept_before: int, after: str, limit: int) -> tuple[tuple[str, int], ...]:
    """The next unused blobs after a name, and their sizes; recently kept ones may be waiting for their first use."""
    rows = tx.execute(f"SELECT sha256, size FROM blobs WHERE sha256 > ? AND {_UNUSED} LIMIT ?",
                              (after, kept_before, limit))  # fmt: skip
    return tuple((row["sha256"], row["size"]) for row in rows)


def forget_unused(tx: Tx, names: Sequence[str], kept_before: int) -> tuple[str, ...]:
    """Delete the rows of those of these blobs that are still unused."""
    gone = []
    for name in names:
        if tx.execute(f"SELECT 1 FROM blobs WHERE sha256 = ? AND {_UNUSED}", (name, kept_before)).fetchone():
            gone += [name] * delete_blob(tx, name)
    return tuple(gone)


def known(tx: Tx, prefix: str) -> dict[str, int]:
    """Every blob with a row whose name begins with these two digits, and its size."""
    rows = tx.execute("SELECT sha256, size FROM blobs WHERE sha256 BETWEEN ? AND ?", (prefix, f"{prefix}g"))
    return {row["sha256"]: row["size"] for row in rows}


def strays_among(tx: Tx, names: Iterable[str]) -> tuple[str, ...]:
    """Those of these files that are strays: they have no row, and are not about to be deleted.

    A process died between moving them and recording it.
    """
    row = "SELECT 1 FROM blobs WHERE sha256 = ?1 UNION ALL SELECT 1 FROM blobs_forsaken WHERE sha256 = ?1"
    return tuple(name for name in names if tx.execute(row, (name,)).fetchone() is None)
