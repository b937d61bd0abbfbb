"""Event socket: the daemon's stream of server-sent events, opened again when it breaks off.

The daemon keeps what it receives for no one: with `--receive-mode on-connection` it takes messages from Signal only
while the stream is open, and Signal keeps the others.
"""

import logging
from collections.abc import Awaitable, Callable

from belino.adapters.signal.client import SignalClient, not_served
from belino.aio.retry import backoff
from belino.domain.errors import AdapterError, AddressRefused, Unauthorized
from belino.domain.failpoints import failpoint
from belino.domain.ports import Clock
from belino.net.json_fields import Raw, from_json
from belino.net.stream import sent_events

log = logging.getLogger(__name__)

STEADY_SECONDS = 30.0
ATTEMPTS = 5
"""Streams in a row that end early, until the account counts as down."""

Take = Callable[[Raw], Awaitable[None]]


class EventSocket:
    """The stream of one account."""

    def __init__(self, client: SignalClient, clock: Clock, opened: Callable[[], None]) -> None:
        """`opened` is called with each stream."""
        self._client = client
        self._clock = clock
        self._opened = opened

    async def listen(self, take: Take) -> None:
        """Pass on every event until cancelled; raises when the daemon stays away."""
        failures = 0
        while True:
            since = self._clock.monotonic()
            try:
                await self._hear(take)
                error = AdapterError("the daemon ends one stream of events after the other")
            except (Unauthorized, AddressRefused):
                raise
            except AdapterError as ended:
                error = ended
            failures = 1 if self._clock.monotonic() - since >= STEADY_SECONDS else failures + 1
            if failures > ATTEMPTS:
                raise error
            log.info("the stream of events is opened again: %s", type(error).__name__)
            await self._clock.sleep(0.0 if failures == 1 else backoff(failures - 1))

    async def _hear(self, take: Take) -> None:
        async with self._client.events() as answer:
            if (refused := not_served(answer.status)) is not None:
                raise refused
            self._opened()
            async for event in sent_events(answer.chunks()):
                failpoint("adapter.events.received")
                await take(from_json(event))
                failpoint("adapter.events.stored")
