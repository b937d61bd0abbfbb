"""Program of the operator, run once: no shell, few variables, limits on its time and output, nothing left behind."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from belino.domain.errors import ProviderError
from belino.domain.safe_text import one_line
from belino.domain.units import format_size

COMPLAINT_BYTES = 4_096
COMPLAINT_CHARS = 200
# What is left in the pipe of a program that has ended; a process that left its group may keep it open.
DRAIN_SECONDS = 1.0
PASSED_ON = ("PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "LD_LIBRARY_PATH", "ESPEAK_DATA_PATH")
"""The variables that a program gets, with those that begin with LC_; others may be secrets."""
# When we are killed, the system sends it a signal, and it ends the program with everything that this has started. That
# has no effect if we are dead already, hence the check of the parent's id. Its own signals are not the program's.
_LEASH = """\
import ctypes, os, signal, sys
signal.signal(signal.SIGUSR2, lambda *_: os.killpg(0, signal.SIGKILL))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ctypes.CDLL(None).prctl(1, int(signal.SIGUSR2))
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
child = os.fork()
if not child:
    for number in (signal.SIGUSR2, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execv(sys.argv[2], sys.argv[2:])
    except OSError as error:
        print(error.strerror, file=sys.stderr, flush=True)
    os._exit(126)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if code < 0:
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def passed_on() -> Mapping[str, str]:
    """Our own variables that are no secrets."""
    return {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("LC_")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program and its arguments; what it is given to read never is one of them."""

    words: Sequence[str]
    folder: Path
    """Where it runs."""
    most_bytes: int
    """The limit of its output."""
    environment: Mapping[str, str] = field(default_factory=passed_on)
    tells_why: bool = True
    """Whether an error contains the last line of its error output, which may be words of what it reads."""

    @property
    def name(self) -> str:
        return self.words[0].rpartition("/")[2]

    async def run(self, given: bytes = b"") -> bytes:
        """Run it with this input and return its output; ProviderError if it fails.

        A caller limits the time by a cancellation, which kills the program and everything it started.
        """
        output, complaint = _Output(self.most_bytes), _Output(COMPLAINT_BYTES, tail=True)
        process = self._start(given)
        try:
            code = await _ended(process, output, complaint)
        finally:
            _kill(process)
            await asyncio.to_thread(process.wait)
        if output.is_full:
            raise ProviderError(f"{self.name} writes more than {format_size(self.most_bytes)}")
        if code:
            ended = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            raise ProviderError(f"{self.name} {ended}{self._why(complaint)}")
        return bytes(output.content)

    def _why(self, complaint: "_Output") -> str:
        if not self.tells_why:
            return "; run it in a terminal to see why"
        return f": {complaint.last_line}" if complaint.last_line else ""

    def _start(self, given: bytes) -> subprocess.Popen[bytes]:
        found = shutil.which(self.words[0], path=self.environment.get("PATH"))
        if found is None:
            raise ProviderError(f"{self.name} is not installed; install it, or write its whole path")
        try:
            # Without a name, so that nothing is left of it, whatever ends.
            with tempfile.TemporaryFile(dir=self.folder) as file:
                file.write(given)
                file.seek(0)
                # Not asyncio's: a cancellation while it starts a process kills that one only, not what it has started.
                return subprocess.Popen(  # noqa: S603 - the operator chose the program
                    [*_leash(), found, *self.words[1:]],
                    stdin=file,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=self.folder,
                    env=self.environment,
                    start_new_session=True,
                )
        except OSError as error:
            raise ProviderError(f"{self.name} cannot be started: {error.strerror}") from None


def _leash() -> list[str]:
    """A command prefix that ends the program with us, also if we are killed."""
    return [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid())] if sys.platform == "linux" else []


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and what it started, also what it left running."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _ended(process: subprocess.Popen[bytes], output: "_Output", complaint: "_Output") -> int:
    """Wait for the end, or for too much output; kill what is left, and return the exit code."""
    pipes: list[asyncio.ReadTransport] = []
    try:
        for reader, file in ((output, process.stdout), (complaint, process.stderr)):
            pipes.append(await _connected(reader, file))
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(asyncio.to_thread(process.wait))
            waiting.add_done_callback(lambda _: output.enough.set())
            await output.enough.wait()
            _kill(process)
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await output.ended.wait()
                await complaint.ended.wait()
    finally:
        for pipe in pipes:
            pipe.close()
    return waiting.result()


async def _connected(reader: "_Output", file: IO[bytes] | None) -> asyncio.ReadTransport:
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: reader, file)
    return pipe


class _Output(asyncio.Protocol):
    """What a program writes: all of it up to a limit, or its end."""

    def __init__(self, most: int, *, tail: bool = False) -> None:
        self.content = bytearray()
        self.is_full = False
        self.enough = asyncio.Event()
        self.ended = asyncio.Event()
        self._most = most
        self._tail = tail

    @property
    def last_line(self) -> str:
        lines = [line for line in self.content.decode(errors="replace").splitlines() if line.strip()]
        return one_line(lines[-1])[:COMPLAINT_CHARS] if lines else ""

    def data_received(self, data: bytes) -> None:
        if self._tail:
            self.content = (self.content + data)[-self._most :]
        elif len(self.content) + len(data) > self._most:
            self.is_full = True
            self.enough.set()
        else:
            self.content += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()
