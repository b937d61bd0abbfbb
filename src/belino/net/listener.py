"""Listener: stop accepting connections without leaving one half set up."""

import asyncio
import socket

ACCEPT_STEPS = 3
"""Event loop steps from an accepted connection to one that its protocol knows."""


async def stop_accepting(*listeners: socket.socket) -> None:
    """Call this before the server of these sockets is closed.

    asyncio (Python 3.11) leaves an accepted connection open if its server closes before the connection is set up: its
    client waits until the process ends.
    """
    loop = asyncio.get_running_loop()
    for listener in listeners:
        loop.remove_reader(listener)
    for _ in range(ACCEPT_STEPS):
        await asyncio.sleep(0)
