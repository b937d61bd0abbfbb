"""Retry: back-off with full jitter, and a store call repeated until it succeeds."""

import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from belino.domain.errors import StoreError, StoreUnwritable, reason_of
from belino.domain.ports import Clock

log = logging.getLogger(__name__)

T = TypeVar("T")

TRIES = 25
"""Attempts for errors other than a full disk: about twelve minutes."""
RECHECK_SECONDS = (5.0, 15.0, 60.0, 300.0)
"""Waits after refusals in a row. One may be the platform's mistake; only the operator can correct credentials."""


_DICE = Random()  # noqa: S311 - jitter, not a secret


def backoff(attempt: int, *, first: float = 0.5, most: float = 60.0, rng: Random = _DICE) -> float:
    """Seconds to wait after attempt number `attempt` (from 1): full jitter under a doubling ceiling."""
    doublings = min(max(attempt, 1) - 1, 32)
    return rng.uniform(0.0, min(most, first * 2**doublings))


def recheck_after(refusals: int) -> float:
    """Seconds to wait after so many refusals in a row; 0 after none."""
    return RECHECK_SECONDS[min(refusals, len(RECHECK_SECONDS)) - 1] if refusals > 0 else 0.0


class Retry:
    """Repeats a store call until it succeeds: a full disk delays it and loses nothing."""

    def __init__(
        self,
        clock: Clock,
        rng: Random = _DICE,
        *,
        tries: float = TRIES,
        report: Callable[[str], None] = lambda _problem: None,
    ) -> None:
        """`report` is called with each failure and its reason, and with an empty text when a call succeeds."""
        self._clock = clock
        self._rng = rng
        self._tries = tries
        self._report = report
        self.troubles: dict[str, str] = {}
        """Calls that are failing, each with the reason."""

    async def __call__(self, what: str, verb: Callable[[], Awaitable[T]]) -> T:
        """The result of the call; an error that is not about the disk is raised after the last attempt."""
        attempt = 0
        try:
            while True:
                try:
                    done = await verb()
                    self._report("")
                    return done
                except StoreError as error:
                    attempt += 1
                    if attempt >= self._tries and not isinstance(error, StoreUnwritable):
                        raise
                    self.troubles[what] = reason_of(error)
                    self._report(f"{what} cannot be stored: {self.troubles[what]}")
                    log.warning("%s waits for the store, attempt %d: %s", what, attempt, type(error).__name__)
                    await self._clock.sleep(backoff(attempt, rng=self._rng))
        finally:
            self.troubles.pop(what, None)
