"""After a gap: what was said in the channels and threads we know, asked for one after the other, at Slack's pace."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from belino.adapters.slack.calls import Refused
from belino.adapters.slack.cursor import Reached, since
from belino.adapters.slack.history import Past
from belino.adapters.slack.raw import stamp
from belino.domain.errors import BelinoError, RateLimited
from belino.domain.ports import Clock
from belino.net.raw import Raw

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.5
"""Between two calls: forty a minute, of the fifty that Slack takes."""
AGAIN_SECONDS = 60.0
MOST_PAGES = 5

Take = Callable[[str, Sequence[Raw]], Awaitable[None]]
"""(place, messages) → they are on disk, and with the last of them that the place is caught up with."""


class CatchUp:
    """Works off what `Reached` says was missed; a channel that spoke last comes first."""

    def __init__(self, past: Past, reached: Reached, clock: Clock, take: Take) -> None:
        self._past = past
        self._reached = reached
        self._clock = clock
        self._take = take

    async def run(self) -> None:
        """Until nothing is missed any more; what fails for now is tried again later."""
        while self._reached.missed:
            place, ts = next(reversed(self._reached.missed.items()))
            try:
                wait = await self._work_off(place, ts)
            except BelinoError as error:
                self._reached.missed[place] = ts
                log.warning("what was missed cannot be had now: %s", type(error).__name__)
                wait = error.retry_after if isinstance(error, RateLimited) else AGAIN_SECONDS
            if self._reached.missed:
                await self._clock.sleep(max(wait, PAUSE_SECONDS))

    async def _work_off(self, place: str, ts: str) -> float:
        try:
            await self._fill(place, since(ts, self._clock.now()))
        except Refused as error:
            log.info("what was missed in one place cannot be had: %s", error.error)
        self._reached.caught_up(place)
        return PAUSE_SECONDS

    async def _fill(self, place: str, oldest: str) -> None:
        channel, _, thread = place.partition(" ")
        found: dict[str, Raw] = {}
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page, cursor = await self._page(channel, thread, oldest, cursor)
            found |= {stamp(message, "ts"): message for message in page}
            if cursor is None:
                break
            await self._clock.sleep(PAUSE_SECONDS)
        for message in found.values() if not thread else ():
            self._note_thread(channel, message, oldest)
        await self._take(place, [found[ts] for ts in sorted(found, key=float)])

    async def _page(
        self, channel: str, thread: str, oldest: str, cursor: str | None
    ) -> tuple[Sequence[Raw], str | None]:
        """The next page, however long it takes: begun anew after a wait, an app that is given one would never end."""
        while True:
            try:
                return await self._past.since(channel, thread, oldest, cursor)
            except RateLimited as error:
                if cursor is None:
                    raise
                await self._clock.sleep(max(error.retry_after, PAUSE_SECONDS))

    def _note_thread(self, channel: str, message: Raw, oldest: str) -> None:
        """A thread that began in the gap is told by its first message alone: its replies are asked for."""
        latest, ts = stamp(message, "latest_reply"), stamp(message, "ts")
        if latest and float(latest) > float(oldest) and f"{channel} {ts}" not in self._reached.missed:
            self._reached.missed = {f"{channel} {ts}": ts, **self._reached.missed}
