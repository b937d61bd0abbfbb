"""Bytes a client sends piece by piece, resumable after any interruption."""

import hashlib
import os
import secrets
import sqlite3
from pathlib import Path

from belino.domain.errors import UploadError
from belino.domain.message import ConversationKey
from belino.domain.record import Upload
from belino.storage.blobs import PIECE, insert_blob
from belino.storage.sink import write_all
from belino.storage.stamps import from_micros

NOTE_BYTES = 8 << 20
"""At most this much has to be sent again after the process was killed."""
_ID_BYTES = 16


class UploadFile:
    """The bytes of one upload so far."""

    def __init__(self, path: Path, offset: int) -> None:
        """Bytes past `offset` were never noted as arrived; they go."""
        self.path = path
        self.offset = offset
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        os.fchmod(self._descriptor, 0o600)
        os.ftruncate(self._descriptor, offset)
        os.lseek(self._descriptor, offset, os.SEEK_SET)

    def write(self, piece: bytes) -> None:
        write_all(self._descriptor, piece)
        self.offset += len(piece)

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        try:
            self.sync()
        finally:
            os.close(self._descriptor)


def file_of(folder: Path, upload_id: str) -> Path:
    """Where an upload's bytes lie until they are whole."""
    return folder / f"upload-{upload_id}"


def hash_file(path: Path) -> str:
    """The sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def start_upload(
    connection: sqlite3.Connection,
    conversation: ConversationKey,
    *,
    name: str,
    mime: str,
    size: int,
    sha256: str | None,
    now: int,
) -> sqlite3.Row:
    """Announce bytes."""
    row: sqlite3.Row = connection.execute(
        "INSERT INTO uploads VALUES (?, ?, ?, ?, ?, 0, ?, ?, NULL) RETURNING *",
        (secrets.token_hex(_ID_BYTES), str(conversation), name, mime, size, now, sha256),
    ).fetchone()
    return row


def find_upload(connection: sqlite3.Connection, upload_id: str) -> sqlite3.Row | None:
    """An upload's row."""
    row: sqlite3.Row | None = connection.execute("SELECT * FROM uploads WHERE id = ?", (upload_id,)).fetchone()
    return row


def note_written(connection: sqlite3.Connection, upload_id: str, offset: int) -> sqlite3.Row:
    """These bytes are on disk."""
    return _known(connection.execute("UPDATE uploads SET written = ? WHERE id = ? RETURNING *", (offset, upload_id)))


def complete_upload(connection: sqlite3.Connection, row: sqlite3.Row, sha256: str, now: int) -> sqlite3.Row:
    """The bytes are a blob now, which the upload uses until a message does."""
    insert_blob(connection, sha256, row["mime"], row["size"], now, declared=True)
    connection.execute("INSERT OR IGNORE INTO blob_uses VALUES (?, ?)", (sha256, _owner(row["id"])))
    return _known(
        connection.execute(
            "UPDATE uploads SET written = size, sha256 = ? WHERE id = ? RETURNING *", (sha256, row["id"])
        )
    )


def drop_upload(connection: sqlite3.Connection, upload_id: str) -> None:
    """Forget an upload; a blob some message uses stays."""
    row = connection.execute("DELETE FROM uploads WHERE id = ? RETURNING *", (upload_id,)).fetchone()
    if row is not None and row["sha256"] is not None:
        connection.execute("DELETE FROM blob_uses WHERE sha256 = ? AND owner = ?", (row["sha256"], _owner(upload_id)))


def old_uploads(connection: sqlite3.Connection, older_than: int) -> tuple[str, ...]:
    """Uploads begun before then."""
    return tuple(row["id"] for row in connection.execute("SELECT id FROM uploads WHERE created < ?", (older_than,)))


def unfinished_uploads(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Uploads that still wait for bytes."""
    return tuple(row["id"] for row in connection.execute("SELECT id FROM uploads WHERE sha256 IS NULL"))


def as_upload(row: sqlite3.Row, folder: Path) -> Upload:
    """A row as a value. Bytes that are not in the folder have not arrived, whatever was noted."""
    path = file_of(folder, row["id"])
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


def _known(found: sqlite3.Cursor) -> sqlite3.Row:
    row: sqlite3.Row | None = found.fetchone()
    if row is None:
        raise UploadError("there is no such upload")
    return row


def _owner(upload_id: str) -> str:
    return f"upload:{upload_id}"
