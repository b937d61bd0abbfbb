"""Line to the sandbox's parent process: start it, send it jobs, receive how they end."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, Self

from belino.domain.errors import MediaError
from belino.media.sandbox.parent import LENGTH_BYTES, REQUEST_BYTES

START_SECONDS = 30.0
GRACE_SECONDS = 5.0
"""How long after a job's time limit the parent may take to report that it killed it."""

# One thread and one arena: the address space of a child is limited, and each further arena takes 64 MB of it.
ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "VIPS_CONCURRENCY": "1",
    "LC_ALL": "C.UTF-8",
}
"""The whole environment of decoders. With large pages a picture is loaded in a third less time."""


class LineLost(Exception):
    """The prepared parent has exited; the job was not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a child ended: its exit code (negative for a signal), and the reason if the parent killed it."""

    code: int
    killed_for: Literal["", "time", "threads"]


class ParentLine:
    """One prepared parent. When it exits, every job on the line fails with LineLost."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self.lost = False
        self._prepared = False
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._heard = b""
        self._numbers = count(1)
        self._jobs: dict[int, asyncio.Future[Ended]] = {}
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(control, self._hear)

    @classmethod
    async def open(cls, modules: Sequence[str], paths: Sequence[str]) -> Self:
        """Start a parent and wait until it is prepared."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.to_thread(_start, theirs, modules, paths)
        except OSError as error:
            ours.close()
            raise MediaError("the sandbox could not be started; nothing was decoded") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        line = cls(process, ours)
        try:
            async with asyncio.timeout(START_SECONDS):
                await asyncio.shield(line._ready)
        except (LineLost, TimeoutError) as error:
            raise MediaError("the sandbox could not be started; nothing was decoded") from error
        finally:
            if not line._prepared:
                await line.close()
        return line

    async def ask(self, request: Mapping[str, Any], descriptors: Sequence[int], *, seconds: float) -> Ended:
        """Run a job; returns when its child has exited."""
        number = next(self._numbers)
        ending: asyncio.Future[Ended] = self._loop.create_future()
        self._jobs[number] = ending
        try:
            self._send({**request, "job": number, "seconds": seconds}, descriptors)
            async with asyncio.timeout(seconds + GRACE_SECONDS):
                return await ending
        except TimeoutError:
            self._lose("it does not answer")
            raise LineLost from None
        finally:
            del self._jobs[number]
            if not ending.done() or ending.cancelled():
                self._send({"kill": number}, ())

    async def close(self) -> None:
        """End the parent and everything it runs."""
        self._lose("it was closed")  # it then exits by itself, after its children
        try:
            await asyncio.to_thread(self._process.wait, GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)

    def _send(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        body = json.dumps(request).encode()
        if len(body) > REQUEST_BYTES:
            raise MediaError("the job's options are too long")
        message = len(body).to_bytes(LENGTH_BYTES) + body
        try:
            sent = socket.send_fds(self._control, [message], list(descriptors))
        except OSError:
            sent = 0
        if sent < len(message):
            self._lose("it takes no jobs")

    def _hear(self) -> None:
        try:
            heard = self._control.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if not heard:
            self._lose("it is gone")
            return
        *lines, self._heard = (self._heard + heard).split(b"\n")
        for line in lines:
            self._note(json.loads(line))

    def _note(self, message: Mapping[str, Any]) -> None:
        if "failed" in message:
            self._ready.set_exception(MediaError(f"the sandbox could not be started: {message['failed']}"))
            return
        if "ready" in message:
            self._prepared = True
            self._ready.set_result(None)
            return
        ending = self._jobs.get(message["job"])
        if ending is not None and not ending.done():
            ending.set_result(Ended(code=message["code"], killed_for=message["killed_for"]))

    def _lose(self, why: str) -> None:
        if self.lost:
            return
        self.lost = True
        self._loop.remove_reader(self._control)
        self._control.close()
        waiters: list[asyncio.Future[Any]] = [self._ready, *self._jobs.values()]
        for waiting in waiters:
            if not waiting.done():
                waiting.set_exception(LineLost(why))
                # There may be no waiter any more; that is not worth a warning.
                waiting.exception()


def _start(control: socket.socket, modules: Sequence[str], paths: Sequence[str]) -> subprocess.Popen[bytes]:
    arguments = [str(control.fileno()), json.dumps(list(modules)), json.dumps(list(paths))]
    return subprocess.Popen(  # noqa: S603 - our own module, our own arguments
        [sys.executable, "-I", "-m", "belino.media.sandbox.parent", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(control.fileno(),),
        env=ENVIRONMENT,
        cwd="/",
        start_new_session=True,
    )
