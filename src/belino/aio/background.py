"""Background task: runs beside a block of code and ends with it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run `work`, which must not raise, until the body has ended; what the body raises is raised as it is."""
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
        # A group that waits for its tasks because the body failed would forget that it was cancelled meanwhile.
        if own is not None and own.cancelling() > asked:
            raise asyncio.CancelledError from wrapped.exceptions[0]
        raise wrapped.exceptions[0] from wrapped.exceptions[0].__cause__
