"""Process of one turn: the program on its leash, its minimal environment, its input and output, and its end."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from belino.domain.errors import AgentError
from belino.net.redact import redact

LEASH = Path(__file__).with_name("leash.py")
LINE_BYTES = 8 * 1024 * 1024
"""The longest line of JSON that a program may write."""
PIECE_BYTES = 64 * 1024
ERROR_BYTES = 4 * 1024
"""The end of the error output that is kept, for the operator."""
REASON_CHARS = 300
CLOSING_SECONDS = 5.0

INHERITED = ("PATH", "LANG", "LC_ALL", "TZ")
"""Program search path and locale; anything else only if the operator or a preset names it."""
BROKEN = "the program behind me failed; its operator has been told"


def environment(names: Sequence[str], own: Mapping[str, str], home: Path) -> dict[str, str]:
    """The program's whole environment; without `HOME` among the names, its home is a private folder."""
    kept = {name: os.environ[name] for name in (*INHERITED, *names) if os.environ.get(name)}
    return {"HOME": str(home), **kept, **own}


class Process:
    """A running program; leaving the block ends it, with everything that it started."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], folder: Path, prompt: bytes) -> None:
        self._words = list(words)
        self._env = dict(env)
        self._folder = folder
        self._prompt = prompt
        self._process: asyncio.subprocess.Process | None = None
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []
        self._errors = bytearray()

    async def __aenter__(self) -> Self:
        program = shutil.which(self._words[0], path=self._env.get("PATH"))
        if program is None:
            raise AgentError(f"the program {self._words[0]!r} is not found; see command in [agent]", says=BROKEN)
        if not self._folder.is_dir():
            raise AgentError("the folder in [agent] does not exist", says=BROKEN)
        process = self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), program),
            *self._words[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._folder,
            env=self._env,
            start_new_session=True,
            limit=LINE_BYTES,
        )
        assert process.stdin is not None and process.stderr is not None
        group = await self._group.__aenter__()
        self._tasks = [
            group.create_task(_write(process.stdin, self._prompt)),
            group.create_task(self._keep_errors(process.stderr)),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._end()
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:  # without the block's error, which a group would wrap
                await self._group.__aexit__(None, None, None)

    async def _end(self) -> None:
        """Ask the leash to kill the program and what it started; if it does not, kill its process group."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        try:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(CLOSING_SECONDS):
                await process.wait()
        except (TimeoutError, asyncio.CancelledError) as ended:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(ended, asyncio.CancelledError):
                raise

    async def lines(self, until: float | None) -> AsyncIterator[bytes]:
        """The lines of its output; TimeoutError at the loop time `until`."""
        stdout = self._output()
        while True:
            try:
                async with asyncio.timeout_at(until):
                    line = await stdout.readline()
            except ValueError:
                raise AgentError(f"the program wrote a line over {LINE_BYTES} bytes", says=BROKEN) from None
            if not line:
                return
            yield line

    async def pieces(self, until: float | None) -> AsyncIterator[bytes]:
        """Its output as it comes; TimeoutError at the loop time `until`."""
        stdout = self._output()
        while True:
            async with asyncio.timeout_at(until):
                piece = await stdout.read(PIECE_BYTES)
            if not piece:
                return
            yield piece

    async def ended(self, until: float | None) -> int:
        """Wait for its end, and return its exit status."""
        assert self._process is not None
        async with asyncio.timeout_at(until):
            await asyncio.gather(*self._tasks)
            return await self._process.wait()

    @property
    def errors(self) -> str:
        """The end of its error output, on one line and without secrets."""
        return redact(" ".join(self._errors.decode(errors="replace").split()))[-REASON_CHARS:]

    def _output(self) -> asyncio.StreamReader:
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout

    async def _keep_errors(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(PIECE_BYTES):
            self._errors += piece
            del self._errors[:-ERROR_BYTES]


async def _write(stdin: asyncio.StreamWriter, prompt: bytes) -> None:
    """Give the program its input; one that does not read it may still answer."""
    with suppress(ConnectionError):
        stdin.write(prompt)
        await stdin.drain()
    stdin.close()
    with suppress(ConnectionError):
        await stdin.wait_closed()
