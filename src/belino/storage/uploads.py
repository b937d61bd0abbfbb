"""Resumable uploads: bytes a client sends piece by piece, within daily and overall limits."""

import hashlib
import os
import secrets
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from belino.domain.errors import OverDailyLimit, UploadError, UploadsFull
from belino.domain.message import ConversationKey
from belino.domain.stored import Upload, UploadLimits
from belino.storage import refs
from belino.storage.blob_rows import insert_blob, use_blob
from belino.storage.database import Rows, TableRow, Tx, from_micros
from belino.storage.deletions import forsake
from belino.storage.dialect import marks
from belino.storage.disk import PIECE, sync_folder, write_all

NOTE_BYTES = 8 << 20
"""At most this much has to be sent again after the process was killed."""
_ID_BYTES = 16
_DAY = timedelta(days=1) // timedelta(microseconds=1)


class UploadFile:
    """The bytes of one upload so far."""

    def __init__(self, path: Path, offset: int, size: int) -> None:
        """Bytes past `offset` were never recorded as received, and are cut off. `size` is the announced size."""
        self.path = path
        self.offset = offset
        self._size = size
        self._is_new = offset == 0
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        os.fchmod(self._descriptor, 0o600)
        os.ftruncate(self._descriptor, offset)
        os.lseek(self._descriptor, offset, os.SEEK_SET)

    def write(self, piece: bytes) -> None:
        write_all(self._descriptor, piece)
        self.offset += len(piece)

    def sync(self) -> None:
        """Flush the bytes to disk, and the file's name as long as it has this one."""
        os.fsync(self._descriptor)
        if self._is_new and self.offset < self._size:
            sync_folder(self.path.parent)
            self._is_new = False

    def close(self) -> None:
        try:
            self.sync()
        finally:
            os.close(self._descriptor)


def file_name(upload_id: str) -> str:
    """The name of an upload's scratch file, until its bytes are complete."""
    return f"upload-{upload_id}"


def file_of(scratch: Path, upload_id: str) -> Path:
    """The path of an upload's bytes until they are complete."""
    return scratch / file_name(upload_id)


def hash_file(path: Path) -> str:
    """The sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def insert_upload(tx: Tx, values: Mapping[str, object]) -> TableRow:
    """Record the start of an upload, under an id of its own."""
    row: TableRow = tx.execute(
        f"INSERT INTO uploads (id, written, {', '.join(values)}) VALUES (?, 0, {marks(values)}) RETURNING *",
        (secrets.token_hex(_ID_BYTES), *values.values()),
    ).fetchone()
    return row


def over_limits(tx: Tx, channel: int, size: int, limits: UploadLimits, now: int) -> OverDailyLimit | UploadsFull | None:
    """Why the channel's daily limit or that of all uploads refuses an upload; None if neither does.

    To be called in the transaction that begins the upload, so that concurrent uploads cannot use the same allowance. It
    raises nothing: a transaction that fails is run again with all the others of its batch.
    """
    refs.turn_back(tx, channel, now)
    spent, _ = refs.bytes_counted(tx, channel, now - _DAY)
    if size > limits.channel_bytes_per_day - spent:
        left = max(0, limits.channel_bytes_per_day - spent)
        return OverDailyLimit(
            f"The file has {size} bytes and its channel has {left} left of {limits.channel_bytes_per_day} for 24 hours "
            "(media.channel_bytes_per_day); send it later, or a smaller one.",
            limit=limits.channel_bytes_per_day,
        )
    held = unattached_bytes(tx)
    if size > limits.total_bytes - held:
        return UploadsFull(
            f"The file has {size} bytes and {max(0, limits.total_bytes - held)} are left of the {limits.total_bytes} "
            "for uploads that no message took yet (media.uploads_bytes); send those, give them up, or wait an hour."
        )
    return None


def unattached_bytes(tx: Tx) -> int:
    """Bytes that uploads announced or hold and no message took, and abandoned ones that are still on disk."""
    query = (
        "SELECT (SELECT coalesce(sum(size), 0) FROM uploads) + (SELECT coalesce(sum(b.size), 0) FROM blobs_forsaken f "
        "JOIN blobs b USING (sha256) WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha256 = f.sha256))"
    )
    return int(tx.execute(query).fetchone()[0])


def find_upload(tx: Tx, upload_id: str) -> TableRow | None:
    """An upload's row."""
    row: TableRow | None = tx.execute("SELECT * FROM uploads WHERE id = ?", (upload_id,)).fetchone()
    return row


def note_written(tx: Tx, upload_id: str, offset: int) -> TableRow:
    """Record that these bytes are on disk."""
    return _known(tx.execute("UPDATE uploads SET written = ? WHERE id = ? RETURNING *", (offset, upload_id)))


def complete_upload(tx: Tx, row: TableRow, sha256: str, now: int) -> TableRow:
    """Turn the upload into a blob, which it uses until a message does; it counts toward the daily limit."""
    _count(tx, row, row["size"], now)
    insert_blob(tx, sha256, row["mime"], row["size"], now, declared=True)
    use_blob(tx, sha256, _owner(row["id"]))
    return _known(
        tx.execute(
            "UPDATE uploads SET written = size, sha256 = ?, finished = ? WHERE id = ? RETURNING *",
            (sha256, now, row["id"]),
        )
    )


def drop_upload(tx: Tx, upload_id: str, now: int) -> None:
    """Delete an upload; a blob in use stays. The bytes of an unfinished one count toward the daily limit."""
    row = tx.execute("DELETE FROM uploads WHERE id = ? RETURNING *", (upload_id,)).fetchone()
    if row is None:
        return
    if row["sha256"] is None:
        _count(tx, row, row["written"], now)
        return
    tx.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner = ?", (row["sha256"], _owner(upload_id)))
    if tx.execute("SELECT 1 FROM blob_uses WHERE sha256 = ?", (row["sha256"],)).fetchone() is None:
        forsake(tx, (row["sha256"],), now)


def drop_interrupted(tx: Tx, now: int) -> None:
    """Delete uploads that ended with the process that began them: no client knows their ids."""
    for row in tx.execute("SELECT id FROM uploads WHERE resumable = 0").fetchall():
        drop_upload(tx, row["id"], now)


def old_uploads(tx: Tx, *, finished_before: int, begun_before: int) -> tuple[str, ...]:
    """Uploads finished before one time, and unfinished ones begun before the other."""
    rows = tx.execute(
        "SELECT id FROM uploads WHERE CASE WHEN sha256 IS NULL THEN created < ? ELSE finished < ? END",
        (begun_before, finished_before),
    )
    return tuple(row["id"] for row in rows)


def unfinished_uploads(tx: Tx) -> tuple[str, ...]:
    """Unfinished uploads."""
    return tuple(row["id"] for row in tx.execute("SELECT id FROM uploads WHERE sha256 IS NULL"))


def as_upload(row: TableRow, scratch: Path) -> Upload:
    """A row as a value. Bytes that are not in the scratch folder have not arrived, whatever was recorded."""
    path = file_of(scratch, row["id"])
    there = row["size"] if row["sha256"] is not None else path.stat().st_size if path.is_file() else 0
    return Upload(
        id=row["id"],
        conversation=ConversationKey.parse(row["conversation"]),
        file_name=row["file_name"],
        mime=row["mime"],
        size=row["size"],
        offset=min(row["written"], there),
        created=from_micros(row["created"]),
        sha256=row["sha256"],
    )


def _known(found: Rows) -> TableRow:
    row: TableRow | None = found.fetchone()
    if row is None:
        raise UploadError("there is no such upload")
    return row


def _count(tx: Tx, row: TableRow, size: int, now: int) -> None:
    if size and row["channel"] is not None:
        refs.count_bytes(tx, row["channel"], size, now)


def _owner(upload_id: str) -> str:
    return f"upload:{upload_id}"
