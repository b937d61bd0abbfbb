"""Background task: runs beside a block of code and ends with it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager


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
