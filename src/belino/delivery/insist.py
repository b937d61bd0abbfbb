"""Store verbs that must not be given up on: a full disk delays them and loses nothing."""

import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from belino.delivery.reasons import reason_of
from belino.domain.errors import StoreError, StoreUnwritable
from belino.domain.ports import Clock
from belino.net.pace import backoff

log = logging.getLogger(__name__)

T = TypeVar("T")

TRIES = 25
"""For refusals that are not about room: some twelve minutes."""


class Insistence:
    """Tries again until the store takes it, and knows what it is waiting for."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self.troubles: dict[str, str] = {}
        """What the store would not take so far, and why; empty when all is well."""

    async def __call__(self, what: str, verb: Callable[[], Awaitable[T]]) -> T:
        """The verb's answer, however long the disk is full; any other refusal is believed in the end."""
        attempt = 0
        try:
            while True:
                try:
                    return await verb()
                except StoreError as error:
                    attempt += 1
                    if attempt >= TRIES and not isinstance(error, StoreUnwritable):
                        raise
                    self.troubles[what] = reason_of(error)
                    log.warning("%s waits for the store, attempt %d: %s", what, attempt, type(error).__name__)
                    await self._clock.sleep(backoff(attempt, rng=self._rng))
        finally:
            self.troubles.pop(what, None)
