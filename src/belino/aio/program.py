"""Program of the operator, run once: no shell, few variables, limits on its time and output, nothing left behind."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from belino.domain.errors import ProviderError
from belino.domain.safe_text import one_line
from belino.domain.units import format_size

PIECE = 64 * 1024
COMPLAINT_BYTES = 4_096
COMPLAINT_CHARS = 200
PASSED_ON = ("PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "LD_LIBRARY_PATH", "ESPEAK_DATA_PATH")
"""The variables that a program gets, with those that begin with LC_; others may be secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program and its arguments; what it is given to read never is one of them."""

    words: Sequence[str]
    folder: Path
    """Where it runs."""
    most_bytes: int
    """The limit of its output."""

    @property
    def name(self) -> str:
        return self.words[0].rpartition("/")[2]

    async def run(self, given: bytes) -> bytes:
        """Run it with this input and return its output; ProviderError if it fails.

        A caller limits the time by a cancellation, which kills the program and everything it started.
        """
        process = await self._start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_feed(process, given))
                complaint = group.create_task(_complaint(process))
                output = await self._output(process)
            code = await process.wait()
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            await _end(process)
        if code:
            said = f": {complaint.result()}" if complaint.result() else ""
            raise ProviderError(f"{self.name} ended with code {code}{said}")
        return output

    async def _start(self) -> asyncio.subprocess.Process:
        kept = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("LC_")}
        try:
            return await asyncio.create_subprocess_exec(
                *self.words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.folder,
                env=kept,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise ProviderError(f"{self.name} is not installed; install it, or write its whole path") from None
        except OSError as error:
            raise ProviderError(f"{self.name} cannot be started: {error.strerror}") from None

    async def _output(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None
        written = bytearray()
        while piece := await process.stdout.read(PIECE):
            written += piece
            if len(written) > self.most_bytes:
                raise ProviderError(f"{self.name} writes more than {format_size(self.most_bytes)}")
        return bytes(written)


async def _feed(process: asyncio.subprocess.Process, given: bytes) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError):  # it need not read all of it
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()


async def _complaint(process: asyncio.subprocess.Process) -> str:
    """The last line of its error output."""
    assert process.stderr is not None
    tail = b""
    while piece := await process.stderr.read(PIECE):
        tail = (tail + piece)[-COMPLAINT_BYTES:]
    lines = [line for line in tail.decode(errors="replace").splitlines() if line.strip()]
    return one_line(lines[-1])[:COMPLAINT_CHARS] if lines else ""


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what still runs of it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
