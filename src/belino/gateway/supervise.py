"""Supervise an adapter: restart it with back-off when it fails, without affecting the others."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Literal

from belino.aio.deadline import beside, deadline
from belino.aio.retry import backoff
from belino.domain.errors import RateLimited, Unauthorized, Unreached, place_of, reason_of
from belino.domain.failpoints import failpoint
from belino.domain.ports import Accept, Adapter, Clock, Connects
from belino.storage.inbox import InboxVerbs

log = logging.getLogger(__name__)

HEALTHY_SECONDS = 60.0
FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0
# A failed connection attempt is cheap, so retry soon enough to notice when the platform is back.
UNREACHED_SECONDS = 30.0
# Only the operator can fix credentials.
UNAUTHORIZED_SECONDS = 600.0
CONNECT_SECONDS = 10.0
"""How long an adapter may take to connect before it is reported as not connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterHealth:
    """The state of an adapter; its parcels are sent while it is `running`."""

    state: Literal["starting", "running", "restarting", "unauthorized"]
    since: datetime
    reason: str = ""
    """Why it is not running; empty once it is."""
    restarts: int = 0


async def keep_running(
    adapter: Adapter,
    account: str,
    accept: Accept,
    *,
    inbox: InboxVerbs,
    clock: Clock,
    rng: Random,
    report: Callable[[AdapterHealth], None],
) -> None:
    """Run the adapter until cancelled, from its stored cursor; a healthy minute resets the back-off."""
    failures = restarts = 0
    reason = ""
    while True:
        started = clock.monotonic()
        state: Literal["restarting", "unauthorized"] = "restarting"
        wait, most = None, LONGEST_WAIT
        try:
            cursor = await inbox.cursor(adapter.platform, account)
            failpoint("adapter.cursor.loaded")
            begun = AdapterHealth(state="starting", since=clock.now(), reason=reason, restarts=restarts)
            if isinstance(adapter, Connects):
                async with beside(_watch(adapter, begun, clock, report)):
                    await adapter.run(accept, cursor)
            else:
                report(_running(begun, clock))
                await adapter.run(accept, cursor)
            reason = "it stopped listening by itself"
        except Unauthorized as error:
            state, reason, wait = "unauthorized", reason_of(error), UNAUTHORIZED_SECONDS
        except RateLimited as error:
            reason, wait = reason_of(error), max(error.retry_after, FIRST_WAIT)
        except Unreached as error:
            reason, most = reason_of(error), UNREACHED_SECONDS
        except Exception as error:  # noqa: BLE001 - an error in one adapter must not affect the others
            reason = reason_of(error)
            log.error("adapter %s:%s died of %s", adapter.platform, account, place_of(error))
        failures = 1 if clock.monotonic() - started >= HEALTHY_SECONDS else failures + 1
        restarts += 1
        wait = backoff(failures, first=FIRST_WAIT, most=most, rng=rng) if wait is None else wait
        report(AdapterHealth(state=state, since=clock.now(), reason=reason, restarts=restarts))
        log.warning("adapter %s:%s is %s, again in %.1f s: %s", adapter.platform, account, state, wait, reason)
        await clock.sleep(wait)


async def _watch(
    adapter: Connects, begun: AdapterHealth, clock: Clock, report: Callable[[AdapterHealth], None]
) -> None:
    """Report when the adapter is connected, and that it is not if that takes long."""
    report(begun)
    try:
        async with deadline(clock, CONNECT_SECONDS):
            await adapter.connected()
    except TimeoutError:
        late = f"its platform did not accept the connection within {CONNECT_SECONDS:g} seconds"
        report(replace(begun, reason=begun.reason or late))
        await adapter.connected()
    report(_running(begun, clock))


def _running(begun: AdapterHealth, clock: Clock) -> AdapterHealth:
    """Running again: earlier failures are in the log, and their number is in `restarts`."""
    return replace(begun, state="running", since=clock.now(), reason="")
