"""Published files: bytes that anyone with a link may fetch until it expires; only its keyed hash is stored."""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from belino.domain.media import Blob
from belino.domain.outcome import MediaOutcome
from belino.storage.blob_verbs import BlobVerbs
from belino.storage.database import TableRow, Tx

TOKEN_BYTES = 32
TOKEN_CHARS = 64
"""Longer ones are not looked up."""
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """The bytes behind a link, and how they are named."""

    blob: Blob
    name: str
    mime: str


class PublishedVerbs(BlobVerbs):
    """Links to bytes."""

    async def publish(self, sha256: str, *, name: str, mime: str, lifetime: timedelta, ref: str | None = None) -> str:
        """The token of a new link to stored bytes; it ends with the ref's bytes, or with every use of them."""
        token, now = secrets.token_urlsafe(TOKEN_BYTES), self._now()
        values = (self._keys.published_hash(token), sha256, name, mime, ref, now + lifetime // _MICROSECOND)
        await self._database.write(lambda tx: _insert(tx, values, now))
        return token

    async def published(self, token: str) -> PublishedFile | None:
        """The file of a token; None if it is unknown, expired, or its bytes were deleted."""
        if len(token) > TOKEN_CHARS:
            return None
        hashed, now = self._keys.published_hash(token), self._now()
        row = await self._database.read(lambda tx: _find(tx, hashed, now))
        blob = None if row is None else await self._proven(row)
        return None if row is None or blob is None else PublishedFile(blob=blob, name=row["name"], mime=row["named"])


def _insert(tx: Tx, values: tuple[object, ...], now: int) -> None:
    tx.execute("DELETE FROM published_files WHERE expires <= ?", (now,))
    tx.execute("INSERT INTO published_files (hash, sha256, name, mime, ref, expires) VALUES (?, ?, ?, ?, ?, ?)", values)


def _find(tx: Tx, hashed: bytes, now: int) -> TableRow | None:
    row: TableRow | None = tx.execute(
        "SELECT b.sha256, b.mime, b.size, p.name, p.mime AS named FROM published_files p "
        "JOIN blobs b ON b.sha256 = p.sha256 WHERE p.hash = ? AND p.expires > ? AND ("
        "EXISTS (SELECT 1 FROM refs r WHERE r.id = p.ref AND r.sha256 = p.sha256 AND r.outcome = ?) OR "
        "(p.ref IS NULL AND EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha256 = p.sha256)))",
        (hashed, now, str(MediaOutcome.HELD)),
    ).fetchone()
    return row
