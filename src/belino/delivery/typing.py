"""Typing and upload indicators, repeated until the message is sent."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from belino.aio.deadline import beside, deadline
from belino.domain.errors import place_of
from belino.domain.ports import Adapter, Clock, ShowsUpload
from belino.domain.reply import Parcel

log = logging.getLogger(__name__)

EVERY_SECONDS = 4.0
"""Platforms stop showing an indicator after about five seconds."""
CALL_SECONDS = 10.0
UPLOAD_SECONDS = 1.0
"""A file that is sent within this time needs no indicator."""


async def keep_showing(show: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Show an indicator until cancelled. If that fails, stop: an indicator must not affect anything else."""
    try:
        while True:
            async with deadline(clock, CALL_SECONDS):
                await show()
            await clock.sleep(EVERY_SECONDS)
    except Exception as error:  # noqa: BLE001 - a failed indicator must not stop the work it announces
        log.info("an indicator cannot be shown: %s", place_of(error))


@asynccontextmanager
async def upload_shown(adapter: Adapter, parcel: Parcel, clock: Clock) -> AsyncIterator[None]:
    """Show an upload indicator inside the block, if the platform has one."""
    if parcel.files and isinstance(adapter, ShowsUpload):
        async with beside(_show_upload(adapter, parcel, clock)):
            yield
    else:
        yield


async def _show_upload(adapter: ShowsUpload, parcel: Parcel, clock: Clock) -> None:
    await clock.sleep(UPLOAD_SECONDS)
    form = parcel.files[0].send_as
    await keep_showing(lambda: adapter.show_upload(parcel.conversation, form), clock)
