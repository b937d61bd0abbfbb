"""Verbs of the store: what every group of them shares."""

from belino.domain.ports import Clock
from belino.storage.blobs import Blobs
from belino.storage.database import Database, to_micros
from belino.storage.encryption import Keys


class Verbs:
    """A group of verbs, each one transaction; `Store` has them all."""

    def __init__(self, database: Database, blobs: Blobs, clock: Clock, keys: Keys) -> None:
        self._database = database
        self._blobs = blobs
        self._clock = clock
        self._keys = keys

    def _now(self) -> int:
        return to_micros(self._clock.now())
