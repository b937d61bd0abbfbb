"""Event socket: the daemon's stream of server-sent events, opened again when it breaks off.

The daemon keeps what it receives for no one: with `--receive-mode on-connection` it takes messages from Signal only
while the stream is open, and Signal keeps the others.
"""

import logging
from collections.abc import Awaitable, Callable

from belino.adapters.signal.client import SignalClient
from belino.aio.retry import backoff
from belino.domain.errors import AdapterError, AddressRefused, Unauthorized
from belino.net.json_fields import Raw, from_json

log = logging.getLogger(__name__)

STEADY_SECONDS = 30.0
ATTEMPTS = 5
"""Streams in a row that end early, until the account counts as down."""

Take = Callable[[Raw], Awaitable[None]]


async def listen(client: SignalClient, opened: Callable[[], None], take: Take) -> None:
    """Pass on every event until cancelled, and report each stream as `opened`; raises when the daemon stays away."""
    clock, failures = client.clock, 0
    while True:
        since = clock.monotonic()
        try:
            await _hear(client, opened, take)
            error = AdapterError("the daemon ends one stream of events after the other")
        except (Unauthorized, AddressRefused):
            raise
        except AdapterError as ended:
            error = ended
        failures = 1 if clock.monotonic() - since >= STEADY_SECONDS else failures + 1
        if failures > ATTEMPTS:
            raise error
        log.info("the stream of events is opened again: %s", type(error).__name__)
        await clock.sleep(0.0 if failures == 1 else backoff(failures - 1))


async def _hear(client: SignalClient, opened: Callable[[], None], take: Take) -> None:
    async with client.events() as events:
        opened()
        async for event in events:
            await take(from_json(event))
