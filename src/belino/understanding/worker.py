"""Worker: runs local models and programs in confined processes, outside the gateway.

Each kind of model has a parent process of its own. It starts on first use with an empty environment, imports the
library, and forks a child for each job. The child loads the model, then raises the walls (no files, no network, no
programs, limited memory and time), reads the material, and ends. A child that fails fails one reading. The parent ends
when it is idle, and with the gateway.
"""

import asyncio
import json
import math
import os
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belino.domain.errors import MediaError, ProviderError
from belino.domain.reading import Material
from belino.domain.safe_text import one_line
from belino.domain.units import format_size
from belino.media.sandbox.parent import DESCRIPTORS_AT_MOST, WORDS_AT_MOST
from belino.media.sandbox.sandbox import Ended, LineLost, ParentLine

IDLE_SECONDS = 120.0
"""Long enough for the next voice note of a conversation; importing a recogniser takes half a second of CPU."""
ANSWER_BYTES = 4 * 1024 * 1024
"""Hours of speech, or hundreds of dense pages."""
CORES = 2
"""A job may use so many seconds of CPU for each second that it may take."""
MATERIAL_AT_MOST = DESCRIPTORS_AT_MOST - 2

_PROGRAMS = "belino.media.sandbox.walls"
"""The parent of programs needs no library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUsage:
    """What one job took."""

    module: str
    cpu_seconds: float
    peak_bytes: int
    """The most memory that its process had at once, what it shares with its parent included."""


@dataclass(slots=True, kw_only=True)
class _Room:
    """The parent process of one module, if it runs, and the job that has it."""

    line: ParentLine | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class ModelWorker:
    """Implements LocalWorker: one job at a time for each module, each in a child of its own."""

    def __init__(
        self,
        *,
        idle_seconds: float = IDLE_SECONDS,
        paths: Sequence[str] = (),
        used: Callable[[JobUsage], None] = lambda usage: None,
    ) -> None:
        self._idle_seconds = idle_seconds
        self._used = used
        self._paths = tuple(paths)
        self._rooms: dict[str, _Room] = {}
        self._closed = False

    async def run(
        self, function: str, material: Sequence[Material], options: Mapping[str, object], *, seconds: float, memory: int
    ) -> Mapping[str, object]:
        """Call a function in the worker and return its JSON value; ProviderError if it fails."""
        request = {"function": function, "options": dict(options)}
        ended, answer = await self._job(function.partition(":")[0], request, material, seconds, memory)
        return _result(ended, answer, seconds=seconds, memory=memory)

    async def run_program(
        self,
        command: Sequence[str],
        material: Material,
        *,
        readable: Sequence[Path],
        environment: Mapping[str, str],
        seconds: float,
        memory: int,
    ) -> str:
        """Run a program that gets the material as its input and may read only `readable`; returns its output."""
        request = {
            "program": list(command), "environment": dict(environment), "readable": [str(path) for path in readable]
        }  # fmt: skip
        ended, answer = await self._job(_PROGRAMS, request, [material], seconds, memory)
        _raise_for(ended, seconds=seconds)
        if ended.code:
            raise ProviderError(f"{Path(command[0]).name} failed with exit code {ended.code}")
        return answer.decode("utf-8", "replace")

    @property
    def running(self) -> tuple[str, ...]:
        """The modules whose parent process runs."""
        return tuple(name for name, room in self._rooms.items() if room.line is not None and not room.line.lost)

    async def close(self) -> None:
        """End every process."""
        self._closed = True
        for room in self._rooms.values():
            await _end(room)

    async def _job(
        self, module: str, request: Mapping[str, Any], material: Sequence[Material], seconds: float, memory: int
    ) -> tuple[Ended, bytes]:
        if len(material) > MATERIAL_AT_MOST:
            raise ProviderError(f"at most {MATERIAL_AT_MOST} files can be read in one job")
        whole = {
            **request, "memory": memory, "cpu": max(1, math.ceil(seconds * CORES)), "answer_bytes": ANSWER_BYTES
        }  # fmt: skip
        room = self._rooms.setdefault(module, _Room())
        async with room.turn:
            for last in (False, True):
                try:
                    return await self._try(module, room, whole, material, seconds)
                except LineLost as error:
                    # The parent has exited, which is not the fault of this job: retry once with a new one.
                    if last:
                        raise ProviderError("the worker ended twice; nothing was read") from error
        raise AssertionError("unreachable")

    async def _try(
        self, module: str, room: _Room, request: Mapping[str, Any], material: Sequence[Material], seconds: float
    ) -> tuple[Ended, bytes]:
        line = await self._line(module, room)
        with ExitStack() as closing:
            files = [_open(one.path, closing) for one in material]
            # Without a name, so that nothing is left of it, whatever ends.
            answer = closing.enter_context(tempfile.TemporaryFile())
            ended = await line.ask(request, (answer.fileno(), *files), seconds=seconds)
            self._used(JobUsage(module=module, cpu_seconds=ended.cpu_seconds, peak_bytes=ended.peak_bytes))
            answer.seek(0)
            return ended, await asyncio.to_thread(answer.read, ANSWER_BYTES + 1)

    async def _line(self, module: str, room: _Room) -> ParentLine:
        if self._closed:
            raise ProviderError("belino is stopping; nothing was read")
        if room.line is not None and room.line.lost:
            await _end(room)
        if room.line is None:
            try:
                room.line = await ParentLine.open([module], self._paths, idle_seconds=self._idle_seconds)
            except MediaError as error:
                why = str(error).partition(": ")[2] or "it did not start"
                raise ProviderError(f"the worker of {module.rpartition('.')[2]} cannot run: {one_line(why)}") from error
            if self._closed:
                await _end(room)
                raise ProviderError("belino is stopping; nothing was read")
        return room.line


async def _end(room: _Room) -> None:
    line, room.line = room.line, None
    if line is not None:
        await line.close()


def _open(path: Path, closing: ExitStack) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise ProviderError("the material to read is gone") from error
    closing.callback(os.close, descriptor)
    return descriptor


def _result(ended: Ended, answer: bytes, *, seconds: float, memory: int) -> Mapping[str, object]:
    """The child's answer, which is untrusted; or what became of the child, as an error."""
    _raise_for(ended, seconds=seconds)
    match _parsed(answer):
        case {"result": dict(result)} if ended.code == 0:
            return result
        case {"refused": str(why)}:
            raise ProviderError(one_line(why[:WORDS_AT_MOST]))
        case {"error": "memory"}:
            raise ProviderError(f"reading it needs more than {format_size(memory)} of memory; raise `memory_mb`")
        case {"error": str(what)} if what.isidentifier():
            raise ProviderError(f"the local model failed ({what[:60]})")
    raise ProviderError("the local model gave no proper answer")


def _raise_for(ended: Ended, *, seconds: float) -> None:
    if ended.killed_for == "threads":
        raise ProviderError("the local model started too many threads")
    if ended.killed_for or ended.code == -signal.SIGXCPU:
        raise ProviderError(f"reading it took longer than {seconds:g} s")
    if ended.code == -signal.SIGKILL:
        raise ProviderError("the worker was stopped by the system, most likely for want of memory")
    if ended.code == -signal.SIGXFSZ:
        raise ProviderError(f"the text of it is over {format_size(ANSWER_BYTES)}")
    if ended.code < 0:
        raise ProviderError(f"the worker crashed ({_signal_name(-ended.code)})")


def _parsed(answer: bytes) -> object:
    if len(answer) > ANSWER_BYTES:
        return None
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
