"""Listener: stop accepting connections without leaving one of them half set up."""

import asyncio
import socket

ACCEPT_STEPS = 3
"""Steps of the event loop from an accepted connection to one whose protocol knows of it."""


async def stop_accepting(*listeners: socket.socket) -> None:
    """Call this before the server of these sockets is closed.

    asyncio leaves a connection open that it has accepted and whose server closes before the connection is set up
    (Python 3.11): its client waits, and nothing closes it but the end of the process.
    """
    loop = asyncio.get_running_loop()
    for listener in listeners:
        loop.remove_reader(listener)
    for _ in range(ACCEPT_STEPS):
        await asyncio.sleep(0)
