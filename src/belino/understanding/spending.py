"""Spending on readings by channel: reserved before a provider is asked, so that parallel ones keep to the limits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.reading import Spent
from belino.domain.units import format_duration
from belino.understanding.config import DailyReadingLimits, ModelEntry

DAY = timedelta(days=1)
OVER_LIMIT = "over daily limit"
TOKENS_A_SECOND = 32
TOKENS_A_PICTURE = 1_600
"""What providers that charge by tokens count, at most, for a second of sound and for a picture."""


class CountsCosts(Protocol):
    """The part of the store that counts what was spent."""

    async def spent_on_readings(self, channel: ConversationKey, since: datetime) -> Spent: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingCost:
    """What one call of a provider takes; the price is None where the entry tells none."""

    seconds: float = 0.0
    pages: int = 0
    usd: float | None = 0.0


def cost_of(
    entry: ModelEntry, *, local: bool, seconds: float = 0.0, pages: int = 0, tokens: int | None = None
) -> ReadingCost:
    """What a call takes; tokens are estimated before it."""
    usd, known = 0.0, local
    if entry.usd_per_minute is not None and seconds:
        usd, known = usd + entry.usd_per_minute * seconds / 60, True
    if entry.usd_per_page is not None and pages:
        usd, known = usd + entry.usd_per_page * pages, True
    if entry.usd_per_mtok is not None:
        counted = tokens if tokens is not None else round(TOKENS_A_SECOND * seconds + TOKENS_A_PICTURE * pages)
        usd, known = usd + entry.usd_per_mtok * counted / 1_000_000, True
    return ReadingCost(seconds=seconds, pages=pages, usd=usd if known else None)


def over_limit(limits: DailyReadingLimits, spent: Spent, cost: ReadingCost) -> str:
    """Why a call would exceed what a channel may spend today; empty if it does not."""
    if limits.seconds_per_day is not None and cost.seconds and spent.seconds + cost.seconds > limits.seconds_per_day:
        return f"{OVER_LIMIT}: {format_duration(limits.seconds_per_day)} of sound a day (limits.seconds_per_day)"
    if limits.pages_per_day is not None and cost.pages and spent.pages + cost.pages > limits.pages_per_day:
        return f"{OVER_LIMIT}: {limits.pages_per_day} pages a day (limits.pages_per_day)"
    if limits.usd_per_day is None or cost.usd == 0.0:
        return ""
    if cost.usd is None:
        return "its price is unknown, and limits.usd_per_day is set; set usd_per_minute, usd_per_page or usd_per_mtok"
    if spent.usd + cost.usd > limits.usd_per_day:
        return f"{OVER_LIMIT}: ${limits.usd_per_day:g} a day (limits.usd_per_day)"
    return ""


class Spending:
    """What every channel spends today, readings that run included."""

    def __init__(self, store: CountsCosts | None, limits: DailyReadingLimits, clock: Clock) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock
        self._reserved: dict[ConversationKey, Spent] = {}

    @asynccontextmanager
    async def reserve(self, channel: ConversationKey, cost: ReadingCost) -> AsyncIterator[str]:
        """Reserve the cost of a call until the block is left; yields why that is refused, or an empty text."""
        refused = await self._refused(channel, cost)
        if refused:
            yield refused
            return
        part = Spent(seconds=cost.seconds, pages=cost.pages, usd=cost.usd or 0.0)
        self._reserved[channel] = self._reserved.get(channel, Spent()) + part
        try:
            yield ""
        finally:
            left = self._reserved[channel] + replace(part, seconds=-part.seconds, pages=-part.pages, usd=-part.usd)
            self._reserved[channel] = left
            if left.pages <= 0 and left.seconds <= 1e-9 and left.usd <= 1e-12:
                del self._reserved[channel]

    async def _refused(self, channel: ConversationKey, cost: ReadingCost) -> str:
        if self._limits == DailyReadingLimits() or self._store is None:
            return ""
        spent = await self._store.spent_on_readings(channel, self._clock.now() - DAY)
        # Without a wait after this line: no other reservation comes in between.
        return over_limit(self._limits, spent + self._reserved.get(channel, Spent()), cost)
