"""Sandbox: run one job on hostile bytes in a child that is forked for it and ends with it.

The gateway never decodes: it asks a prepared parent, a process of its own, to fork a confined child (limits, no files
except those passed to it, no network, no programs) and reads its short answer. Whatever happens to the child, the
caller gets an answer or a MediaError, and nothing is left behind.
"""

import asyncio
import contextlib
import fcntl
import json
import logging
import math
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self

from belino.domain.errors import MediaError, MediaRefused, StoreError
from belino.domain.safe_text import one_line
from belino.domain.units import format_size
from belino.media.sandbox.parent import ANSWER_BYTES, LENGTH_BYTES, REQUEST_BYTES, WORDS_AT_MOST
from belino.media.sandbox.walls import CPU_SECONDS, MAX_PIXELS_NAME, MEMORY_BYTES

Level = Literal["full", "limited", "none"]

log = logging.getLogger(__name__)

JOBS: Mapping[str, str] = MappingProxyType(
    {
        "image.probe": "belino.media.image.images:probe",
        "image.fit": "belino.media.image.images:fit",
        "image.greys": "belino.media.image.images:greys",
        "image.pixels": "belino.media.image.plain:pixels",
        "image.agree": "belino.media.image.agreement:agree",
        "document.read": "belino.readers.read:read",
        "document.page": "belino.readers.read:page",
        "audio.probe": "belino.media.audio:probe",
        "audio.waveform": "belino.media.audio:waveform",
        "audio.voice": "belino.media.audio:voice",
        "audio.mono": "belino.media.audio:mono",
        "audio.samples": "belino.media.samples:samples",
        "video.probe": "belino.media.video:probe",
        "video.frames": "belino.media.video:frames",
        "video.sheet": "belino.media.video:sheet",
        "video.subtitles": "belino.media.subtitles:read",
        "video.remux": "belino.media.remux:remux",
        "sheet.album": "belino.media.sheet:album",
    }
)
"""The jobs, each a name and the function that runs in the child.

A function takes the source's descriptor, the target's if the job writes a file, and the options; it returns a small
JSON value. A module may have a `prepare()` that imports what its functions need: the child cannot open files, so
nothing can be imported later.
"""

AT_ONCE = 2
START_SECONDS = 30.0
WALL_TIMES = 5
"""The wall-clock limit of a job, in multiples of its limit of CPU time: other processes may use the machine."""
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

_TRIAL = "sandbox.trial"
_TRIAL_FUNCTION = "belino.media.sandbox.walls:try_walls"
_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


class Sandbox:
    """Runs jobs on untrusted bytes, two at once; the first job starts the prepared parent."""

    def __init__(
        self,
        level: Literal["auto", "required"] = "auto",
        *,
        jobs: Mapping[str, str] = JOBS,
        paths: Sequence[str] = (),
        max_pixels: int | None = None,
    ) -> None:
        """`max_pixels` is the most pixels that decoders hold at once."""
        self.level: Level = "none"
        """The strength of the walls, once `examine` has tested them."""
        self.leaks: tuple[str, ...] = ()
        """What a compromised decoder could do."""
        self.sees_names = True
        """Whether it could see that a file exists, its size and its date, though not its content."""
        self._required = level == "required"
        self._jobs = {**jobs, _TRIAL: _TRIAL_FUNCTION}
        self._paths = tuple(paths)
        self._settings = {} if max_pixels is None else {MAX_PIXELS_NAME: str(max_pixels)}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._opening = asyncio.Lock()
        self._trying = asyncio.Lock()
        self._closed = False
        self._line: ParentLine | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the prepared parent and everything it runs."""
        self._closed = True
        line, self._line = self._line, None
        if line is not None:
            await line.close()

    async def run(
        self,
        job: str,
        source: int | Path,
        options: Mapping[str, Any] = _NO_OPTIONS,
        *,
        output: Path | None = None,
        seconds: float = CPU_SECONDS,
        memory: int = MEMORY_BYTES,
    ) -> dict[str, Any]:
        """Run a job and return its answer. A job that writes creates `output`, which exists only on success.

        `seconds` of CPU time end it for good; one that ran out of wall-clock time is run once more.
        """
        if self._required and not await self._is_full():
            could = " and ".join(self.leaks)
            raise MediaError(f'nothing was decoded: media.sandbox is "required", and here a decoder could {could}')
        # Files are opened when it is this job's turn: however many wait, they hold no descriptors.
        async with self._room:
            return await self._run(job, source, options, output, seconds, memory)

    async def _run(
        self,
        job: str,
        source: int | Path,
        options: Mapping[str, Any],
        output: Path | None,
        seconds: float,
        memory: int,
    ) -> dict[str, Any]:
        with ExitStack() as closing, ExitStack() as undoing:
            files = [_open_source(source, closing)]
            if output is not None:
                files.append(_open_output(output, closing))
                undoing.callback(output.unlink, missing_ok=True)
            answer = await self._do(job, files, options, seconds, memory)
            undoing.pop_all()
            return answer

    async def examine(self) -> Level:
        """Test the walls from inside: full if nothing gets out, limited if something does, none without a sandbox."""
        try:
            async with self._room:
                answer = await self._do(_TRIAL, [], _NO_OPTIONS, CPU_SECONDS, MEMORY_BYTES)
            self.sees_names = bool(answer.get("names", True))
            self.leaks = tuple(str(leak) for leak in answer.get("open", ("lie",)))
            self.level = "limited" if self.leaks else "full"
        except MediaRefused:
            # Running a program succeeded: it did not return.
            self.leaks, self.level = ("run programs",), "limited"
        except MediaError:
            self.leaks, self.level = ("not be started",), "none"
        return self.level

    async def _is_full(self) -> bool:
        # One after the other: a test without a free slot would report that there is no sandbox.
        async with self._trying:
            return self.level == "full" or await self.examine() == "full"

    async def _do(
        self, job: str, files: Sequence[int], options: Mapping[str, Any], seconds: float, memory: int
    ) -> dict[str, Any]:
        if job not in self._jobs:
            raise MediaError(f"the sandbox knows no job {job!r}")
        request = {
            "function": self._jobs[job], "options": dict(options), "memory": memory, "cpu": max(1, math.ceil(seconds))
        }  # fmt: skip
        ended, answer = await self._try_twice(request, files, seconds * WALL_TIMES)
        if ended.killed_for == "time":
            ended, answer = await self._try_twice(request, files, seconds * WALL_TIMES)
        return _result(ended, answer, seconds=seconds, memory=memory)

    async def _try_twice(
        self, request: Mapping[str, Any], files: Sequence[int], seconds: float
    ) -> "tuple[Ended, bytes]":
        """Run the job; if the parent had exited or exits now, which is not the file's fault, again with a new one."""
        try:
            return await self._try(request, files, seconds)
        except LineLost:
            try:
                return await self._try(request, files, seconds)
            except LineLost as error:
                raise MediaError("the sandbox died twice; nothing was decoded") from error

    async def _try(self, request: Mapping[str, Any], files: Sequence[int], seconds: float) -> "tuple[Ended, bytes]":
        line = await self._open_line()
        with ExitStack() as closing:
            for target in files[1:]:
                os.ftruncate(target, 0)
                os.lseek(target, 0, os.SEEK_SET)  # an earlier attempt may have moved it
            reading, writing = os.pipe()
            closing.callback(os.close, reading)
            closing.callback(os.close, writing)
            os.set_blocking(reading, False)
            ended = await line.ask(request, (writing, *files), seconds=seconds)
            # The child has exited and has no other writer: the pipe holds the whole answer.
            with contextlib.suppress(BlockingIOError):
                return ended, os.read(reading, ANSWER_BYTES + 1)
            return ended, b""

    async def _open_line(self) -> "ParentLine":
        async with self._opening:
            if self._line is not None and self._line.lost:
                line, self._line = self._line, None
                await line.close()
            if self._closed:
                raise MediaError("belino is stopping; nothing was decoded")
            if self._line is None:
                modules = sorted({function.partition(":")[0] for function in self._jobs.values()})
                self._line = await ParentLine.open(modules, self._paths, self._settings)
            return self._line


class LineLost(Exception):
    """The prepared parent has exited; the job was not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a child ended: its exit code (negative for a signal), the reason if the parent killed it, and its usage."""

    code: int
    killed_for: Literal["", "time", "threads"]
    cpu_seconds: float = 0.0
    peak_bytes: int = 0


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
    async def open(
        cls,
        modules: Sequence[str],
        paths: Sequence[str],
        settings: Mapping[str, str] = _NO_SETTINGS,
        *,
        idle_seconds: float | None = None,
    ) -> Self:
        """Start a parent and wait until it is prepared; it ends when it has no job for so long."""
        ours, theirs = socket.socketpair()
        try:
            arguments = [json.dumps(each) for each in (list(modules), list(paths), idle_seconds)]
            process = await _started(theirs, arguments, settings)
        except asyncio.CancelledError:
            ours.close()
            raise
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
            # So that the system can forget it; who closes the line may come much later.
            self._loop.run_in_executor(None, self._process.wait)
            return
        *lines, self._heard = (self._heard + heard).split(b"\n")
        for line in lines:
            self._note(json.loads(line))

    def _note(self, message: dict[str, Any]) -> None:
        if "failed" in message:
            self._ready.set_exception(MediaError(f"the sandbox could not be started: {message['failed']}"))
            return
        if "ready" in message:
            self._prepared = True
            self._ready.set_result(None)
            return
        ending = self._jobs.get(message.pop("job"))
        if ending is not None and not ending.done():
            ending.set_result(Ended(**message))

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


async def _started(
    control: socket.socket, arguments: Sequence[str], settings: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """The process; one whose caller waits no longer is ended as soon as it runs."""
    starting = asyncio.get_running_loop().run_in_executor(None, _start, control.dup(), arguments, settings)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_end)
        raise


def _end(starting: "asyncio.Future[subprocess.Popen[bytes]]") -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().kill()
        starting.result().wait()


def _start(control: socket.socket, arguments: Sequence[str], settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """With a copy of the socket, which may be closed before this thread is done."""
    with control:
        return subprocess.Popen(  # noqa: S603 - our own module, our own arguments
            [sys.executable, "-I", "-m", "belino.media.sandbox.parent", str(control.fileno()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(control.fileno(),),
            env={**ENVIRONMENT, **settings},
            cwd="/",
            start_new_session=True,
        )


def _open_source(source: int | Path, closing: ExitStack) -> int:
    """A read-only descriptor of a regular file."""
    if isinstance(source, Path):
        try:
            descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise MediaError("the bytes to decode are not there any more") from error
        closing.callback(os.close, descriptor)
    else:
        descriptor = source
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode) or flags & os.O_ACCMODE != os.O_RDONLY:
        raise MediaError("only a plain file that was opened for reading can be decoded")
    return descriptor


def _open_output(output: Path, closing: ExitStack) -> int:
    try:
        descriptor = os.open(output, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError("there is no room for a decoded file; nothing was decoded") from error
    closing.callback(os.close, descriptor)
    return descriptor


def _result(ended: Ended, answer: bytes, *, seconds: float, memory: int) -> dict[str, Any]:
    """The child's answer; or its fate, as an error."""
    if ended.killed_for or ended.code < 0:
        raise _violent_end(ended, seconds)
    told = _told(answer)
    match told:
        case {"result": dict(result)} if ended.code == 0:
            return result
        case {"refused": str(why)}:
            raise MediaRefused(one_line(why[:WORDS_AT_MOST]))
        case {"error": "memory"}:
            raise MediaRefused(f"decoding it needs more than {format_size(memory)} of memory")
        case {"error": "room"}:
            raise MediaError("there is no room on the disk for what is made of it")
        case {"error": str(what)} if what.isidentifier():
            log.info("a decoder ended with %s", what[:60])
            raise MediaRefused("it could not be decoded")
    raise MediaRefused("decoding it gave no proper answer")


def _violent_end(ended: Ended, seconds: float) -> MediaError:
    if ended.killed_for == "threads":
        return MediaRefused("decoding it started too many threads")
    if ended.killed_for:
        # It may not be the file's fault: the next request tries it again.
        return MediaError(f"decoding it did not end within {seconds * WALL_TIMES:g} s, twice; the machine may be busy")
    if ended.code == -signal.SIGXCPU:
        return MediaRefused(f"decoding it took longer than {max(1, math.ceil(seconds))} s of CPU time")
    if ended.code == -signal.SIGKILL:
        return MediaRefused("decoding it was stopped by the system, most likely for want of memory")
    return MediaRefused(f"decoding it crashed ({_signal_name(-ended.code)})")


def _told(answer: bytes) -> object:
    """An attacker may control the child: its answer is untrusted."""
    if len(answer) > ANSWER_BYTES:
        return None
    try:
        return json.loads(answer, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
