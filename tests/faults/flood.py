"""Half-open HTTP requests, as an attacker holds them: a program of its own, for they take many descriptors.

`python flood.py PORT COUNT SECONDS` reads one incomplete request from its input, keeps COUNT connections open with it,
opens those that are closed again after some seconds, and says `open` once each was sent once.
"""

import asyncio
import sys
from contextlib import suppress


async def hold(port: int, request: bytes, again: float, sent: asyncio.Semaphore) -> None:
    """Keep one connection open; the first that was opened counts as sent."""
    is_first = True
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(again)
            continue
        writer.write(request)
        if is_first:
            sent.release()
            is_first = False
        with suppress(OSError):
            await reader.read()
        writer.transport.abort()
        await asyncio.sleep(again)


async def main(port: int, count: int, again: float, request: bytes) -> None:
    sent = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(hold(port, request, again, sent))
        for _ in range(count):
            await sent.acquire()
        sys.stdout.write("open\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.stdin.buffer.read()))
