"""Cursor: which parcels a call without an idempotency key was made for, kept on disk before that call.

A reply by its token carries no key: what may have arrived by one must not be pushed again in silence, also after a
crash. https://developers.line.biz/en/docs/messaging-api/retrying-api-request/
"""

import json
from collections import deque

from belino.domain.ports import Accept, KeepsCursor
from belino.net.json_fields import from_json

MOST_KEYS = 500
"""More than can be on their way at once by tokens that are valid for a minute."""
REPLIED = "replied"


class RepliedParcels:
    """The keys of parcels that were sent by a reply token, the newest last."""

    def __init__(self) -> None:
        self._keys = deque[str](maxlen=MOST_KEYS)
        self._accept: KeepsCursor | None = None
        self.is_kept = False
        """Whether changes reach the disk, or need not; else no parcel may be sent that way."""

    def read(self, cursor: str | None, accept: Accept) -> None:
        """Begin with what is on disk; `accept` keeps changes there."""
        kept = from_json(cursor or "{}").get(REPLIED)
        self._keys.clear()
        self._keys.extend(key for key in (kept if isinstance(kept, list) else ()) if type(key) is str)
        self._accept = accept if isinstance(accept, KeepsCursor) else None
        self.is_kept = self._accept is not None

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    async def add(self, key: str) -> None:
        """Note a parcel; when this returns, it is on disk."""
        self._keys.append(key)
        await self._write()

    async def drop(self, key: str) -> None:
        """Forget a parcel that LINE certainly did not show."""
        self._keys.remove(key)
        await self._write()

    async def _write(self) -> None:
        if self._accept is not None:
            await self._accept.keep_cursor(json.dumps({REPLIED: list(self._keys)}))
