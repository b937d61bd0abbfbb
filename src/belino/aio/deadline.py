"""Deadline: a time limit on the clock that is passed in, so that tests do not wait; and tasks beside a block."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from belino.domain.ports import Clock

log = logging.getLogger(__name__)

T = TypeVar("T")

_abandoned: set[asyncio.Task[Any]] = set()
"""Tasks that ignore their cancellation; held until they end, because the loop holds tasks only weakly."""


@asynccontextmanager
async def deadline(clock: Clock, seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """Raise TimeoutError in the body after `seconds`, or as soon as `ring` is called with the yielded scope."""
    async with asyncio.timeout(None) as scope, beside(_ring_later(clock, seconds, scope)):
        yield scope


@asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run `work`, which must not raise, until the body ends; exceptions of the body are raised unchanged."""
    own = asyncio.current_task()
    asked = 0 if own is None else own.cancelling()
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            try:
                yield
            finally:
                task.cancel()
    except BaseExceptionGroup as wrapped:
        # TaskGroup drops a cancellation that comes while it waits for its tasks after the body failed.
        if own is not None and own.cancelling() > asked:
            raise asyncio.CancelledError from wrapped.exceptions[0]
        raise wrapped.exceptions[0] from wrapped.exceptions[0].__cause__


def ring(scope: asyncio.Timeout) -> None:
    """End a body now; does nothing if it has already ended."""
    with suppress(RuntimeError):
        scope.reschedule(asyncio.get_running_loop().time())


async def or_abandon(work: Coroutine[Any, Any, T], clock: Clock, *, grace: float) -> T:
    """Wait for foreign code; if cancelled, give it `grace` seconds to end, and then stop waiting for it."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with suppress(TimeoutError):
            async with deadline(clock, grace):
                await asyncio.wait({task})
        if not task.done():
            log.error("a task ignores its cancellation and is left behind: %s", task.get_name())
        _abandoned.add(task)
        task.add_done_callback(_forget)
        raise


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved so that asyncio does not log it as never retrieved


async def _ring_later(clock: Clock, seconds: float, scope: asyncio.Timeout) -> None:
    await clock.sleep(seconds)
    ring(scope)
