"""Companion: a program that runs beside us for as long as a block lasts, with calls and events as lines of JSON.

For libraries that must not share our process: those that bring another runtime, print to our output, or end the process
when they fail. The program reads from its input, and ends when that ends, also if we are killed:

- first a line with what it is to do
- `{"call": 1, "name": "send", "arguments": {}}`, which it answers by `{"answer": 1, "result": {}}` or, with a kind of
  `failure`, `{"answer": 1, "error": "refused", "says": "why"}`
- `{"ack": 7}` once the event `{"n": 7, "event": "message", "data": {}}` was processed; before that it sends no other
"""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from subprocess import DEVNULL

from belino.aio.deadline import beside
from belino.aio.program import passed_on
from belino.domain.errors import AdapterError, RateLimited, Unanswered, Unauthorized, Undeliverable, Unreached

LINE_BYTES = 32 * 1024 * 1024
CALL_SECONDS = 60.0
STOP_SECONDS = 3.0
LIMITED_SECONDS = 60.0
# The program sends an event only after the acknowledgement of the one before.
MOST_EVENTS = 4

Told = Mapping[str, object]


def failure(kind: str, says: str) -> AdapterError:
    """The error of a call, by the kind that the program gives it; a kind that is not known is temporary."""
    match kind:
        case "refused" | "unsupported":
            return Undeliverable(says)
        case "limited":
            return RateLimited(says, retry_after=LIMITED_SECONDS)
        case "unlinked":
            return Unauthorized(says)
        case "unreached":
            return Unreached(says)
        case "unanswered":
            return Unanswered(says)
    return AdapterError(says)


class Companion:
    """A running program."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._input, self._output = process, process.stdin, process.stdout
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[Told]] = {}
        self._events: asyncio.Queue[Told | None] = asyncio.Queue(MOST_EVENTS)
        self._has_ended = False

    async def events(self, *, seconds: float | None = None) -> AsyncIterator[Told]:
        """Its events until it ends; one is acknowledged when the next is asked for. TimeoutError if none follows."""
        while (event := await asyncio.wait_for(self._events.get(), seconds)) is not None:
            yield event
            await self._write({"ack": event.get("n")})
        raise Unreached("the program that keeps the connection has ended; it is started again")

    async def call(self, name: str, arguments: Told, *, seconds: float = CALL_SECONDS) -> Told:
        """The result of a call. Unreached if it did not get it, Unanswered if it may have done it."""
        if self._has_ended:
            raise Unreached("the program that keeps the connection has ended")
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            await self._write({"call": number, "name": name, "arguments": arguments})
            async with asyncio.timeout(seconds):
                told = await answer
        except TimeoutError:
            raise Unanswered(f"{name} was not answered within {seconds:g} seconds") from None
        finally:
            self._answers.pop(number, None)
        if "error" in told:
            raise failure(str(told["error"]), str(told.get("says") or "no reason was given"))
        result = told.get("result")
        return result if isinstance(result, dict) else {}

    async def read(self) -> None:
        """Distribute what it writes, to its end."""
        with suppress(ValueError, ConnectionError):  # a line over the limit is the end, too
            while line := await self._output.readline():
                await self._take(line)
        self._has_ended = True
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(Unanswered("the program that keeps the connection ended before its answer"))
        await self._events.put(None)

    async def _take(self, line: bytes) -> None:
        told = json.loads(line)
        if not isinstance(told, dict):
            return
        if "event" in told:
            await self._events.put(told)
        elif (answer := self._answers.get(told.get("answer", 0))) is not None and not answer.done():
            answer.set_result(told)

    async def _write(self, told: Told) -> None:
        try:
            self._input.write(json.dumps(told).encode() + b"\n")
            await self._input.drain()
        except (ConnectionError, RuntimeError):
            raise Unreached("the program that keeps the connection has ended") from None


class CompanionSession:
    """What is kept of a program's session beside its own files: whether it is linked, and why it ended for good."""

    def __init__(self, folder: Path, files: str) -> None:
        """The names of the program's files begin with `files`."""
        self._folder, self._files = folder, files
        self._linked, self._why = folder / "linked", folder / "ended"

    @property
    def is_linked(self) -> bool:
        return self._linked.exists()

    @property
    def why(self) -> str:
        """The sentence why it ended; empty while it goes on."""
        return self._why.read_text(encoding="utf-8") if self._why.exists() else ""

    def begin(self) -> None:
        """It is linked, and works."""
        self._linked.touch(mode=0o600)
        self._why.unlink(missing_ok=True)

    def end(self, why: str, *, is_void: bool) -> None:
        """It ended; one that is void has to be linked again."""
        self._why.touch(mode=0o600)
        self._why.write_text(why, encoding="utf-8")
        for file in (*self._folder.glob(f"{self._files}*"), self._linked) if is_void else ():
            file.unlink(missing_ok=True)


@asynccontextmanager
async def companion(words: Sequence[str], task: Told, *, folder: Path) -> AsyncIterator[Companion]:
    """Run the program with this task in this folder; it is ended with the block."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=folder,
            env=passed_on(),
            limit=LINE_BYTES,
            start_new_session=True,  # Ctrl-C is ours
        )
    except OSError as error:
        raise Unreached(f"{words[0]} cannot be started: {error.strerror}") from None
    running = Companion(process)
    try:
        async with beside(running.read()):
            await running._write(task)
            yield running
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    """Close its input, which ends it; kill it if it goes on."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        raise
