"""Supervise an adapter: restart it with back-off when it fails, without affecting the others."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

from belino.aio.deadline import beside, deadline
from belino.aio.retry import backoff, recheck_after
from belino.domain.errors import ListeningRefused, RateLimited, Unauthorized, Unreached, place_of, reason_of
from belino.domain.failpoints import failpoint
from belino.domain.ports import Accept, Adapter, Clock, Connects, TakesOver
from belino.gateway.health import AccountState, AdapterHealth
from belino.storage.inbox import InboxVerbs

log = logging.getLogger(__name__)

HEALTHY_SECONDS = 60.0
FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0
# A failed connection attempt is cheap, so retry soon enough to notice when the platform is back.
UNREACHED_SECONDS = 30.0
# Another program that listens, or a webhook, may go at any time.
REFUSED_SECONDS = 60.0
CONNECT_SECONDS = 10.0
"""How long an adapter may take to connect before it is reported as not connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """Why a run ended, and how long to wait before the next one, if the reason says it."""

    reason: str
    state: AccountState = "restarting"
    wait: float | None = None
    most: float = LONGEST_WAIT
    is_refusal: bool = False
    """Whether it is checked again soon, and later at longer intervals."""
    removable: bool = False
    """Whether the operator may take over from the program that gets the events."""


async def keep_running(
    adapter: Adapter,
    account: str,
    accept: Accept,
    *,
    inbox: InboxVerbs,
    clock: Clock,
    rng: Random,
    report: Callable[[AdapterHealth], None],
    nudged: asyncio.Event | None = None,
) -> None:
    """Run the adapter until cancelled, from its stored cursor; a healthy minute resets the back-off.

    `nudged` is set when another call of the account succeeds: the first check after a refusal is then made at once.
    """
    failures = refusals = restarts = 0
    reason = ""
    nudged = nudged or asyncio.Event()
    while True:
        started = clock.monotonic()
        begun = AdapterHealth(state="starting", since=clock.now(), reason=reason, restarts=restarts)
        ended = await _run(adapter, account, accept, begun, inbox=inbox, clock=clock, report=report)
        was_healthy = clock.monotonic() - started >= HEALTHY_SECONDS
        failures = 1 if was_healthy else failures + 1
        refusals = (0 if was_healthy else refusals) + 1 if ended.is_refusal else 0
        restarts, reason, wait = restarts + 1, ended.reason, ended.wait
        if ended.is_refusal:
            wait = min(recheck_after(refusals), ended.most)
        elif wait is None:
            wait = backoff(failures, first=FIRST_WAIT, most=ended.most, rng=rng)
        now = AdapterHealth(state=ended.state, since=clock.now(), reason=reason, restarts=restarts)
        report(replace(now, can_take_over=ended.removable))
        log.warning("adapter %s:%s is %s, again in %.1f s: %s", adapter.platform, account, ended.state, wait, reason)
        if refusals == 1:
            await _pause(clock, wait, nudged)
        else:
            await clock.sleep(wait)


async def _run(
    adapter: Adapter,
    account: str,
    accept: Accept,
    begun: AdapterHealth,
    *,
    inbox: InboxVerbs,
    clock: Clock,
    report: Callable[[AdapterHealth], None],
) -> _Ended:
    """Run the adapter once, to its end."""
    try:
        cursor = await inbox.cursor(adapter.platform, account)
        failpoint("adapter.cursor.loaded")
        if isinstance(adapter, Connects):
            async with beside(_watch(adapter, begun, clock, report)):
                await adapter.run(accept, cursor)
        else:
            report(_running(begun, clock))
            await adapter.run(accept, cursor)
    except Unauthorized as error:
        return _Ended(reason=reason_of(error), state="unauthorized", is_refusal=True)
    except ListeningRefused as error:
        taken = error.removable and isinstance(adapter, TakesOver)
        return _Ended(reason=reason_of(error), state="impaired", most=REFUSED_SECONDS, is_refusal=True, removable=taken)
    except RateLimited as error:
        return _Ended(reason=reason_of(error), wait=max(error.retry_after, FIRST_WAIT))
    except Unreached as error:
        return _Ended(reason=reason_of(error), most=UNREACHED_SECONDS)
    except Exception as error:  # noqa: BLE001 - an error in one adapter must not affect the others
        log.error("adapter %s:%s died of %s", adapter.platform, account, place_of(error))
        return _Ended(reason=reason_of(error))
    return _Ended(reason="it stopped listening by itself")


async def _pause(clock: Clock, seconds: float, nudged: asyncio.Event) -> None:
    nudged.clear()
    with suppress(TimeoutError):
        async with deadline(clock, seconds):
            await nudged.wait()


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
