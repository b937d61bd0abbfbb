"""How long to wait before trying again: back-off with full jitter, and what a platform asks for."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Literal

# Asked for more than a day, belino tries once a day: nobody waits for an answer that long.
LONGEST_WAIT = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceConfig:
    """How often a platform may be asked for what was said before."""

    calls_per_minute: int = field(
        default=40, metadata={"says": "How many calls for history an account makes in a minute.", "least": 1}
    )
    overflow: Literal["queue", "degrade"] = field(
        default="queue",
        metadata={
            "says": "Beyond that: `queue` waits for its turn, `degrade` answers from what is stored and says so."
        },
    )
    stale_minutes: int = field(
        default=60, metadata={"says": "How old stored answers may be that `degrade` gives instead of a call."}
    )


_DICE = random.Random()  # noqa: S311 - jitter, not a secret


def backoff(attempt: int, *, first: float = 0.5, most: float = 60.0, rng: random.Random = _DICE) -> float:
    """Seconds to wait after the attempt of this number (from 1): full jitter under a doubling ceiling."""
    doublings = min(max(attempt, 1) - 1, 32)
    return rng.uniform(0.0, min(most, first * 2**doublings))


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The wait a `Retry-After` header asks for, as seconds or as a date; None if it says nothing readable."""
    value = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    seconds = _seconds(value, now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT)


def _seconds(value: str, now: datetime) -> float | None:
    try:
        seconds = float(value)
        return seconds if isfinite(seconds) else None
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return (date - now).total_seconds() if date.tzinfo is not None else None
