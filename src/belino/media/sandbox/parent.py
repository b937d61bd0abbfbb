"""Parent process of the sandbox: holds the decoders and forks a confined child for each job.

It is started by the gateway with an empty environment, decodes nothing itself, and ends when the gateway does.
"""

import errno
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belino.domain.errors import MediaError, ProviderError
from belino.media.sandbox.walls import leave_the_network, open_nowhere, raise_program_walls, raise_walls, set_limits

ANSWER_BYTES = 16 * 1024
"""An answer must fit into a pipe that is read only after the child has exited; in a file it may be longer."""
DESCRIPTORS_AT_MOST = 18
REQUEST_BYTES = 64 * 1024
WORDS_AT_MOST = 300
LENGTH_BYTES = 4
THREADS_AT_MOST = 128
"""More threads than fit into a child's memory, each with a stack of the usual size."""
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in one unit of the memory that the system reports for a process."""
LOOK_SECONDS = 0.05
"""How often children's threads are counted: thousands can start in this interval, but not all that a system has."""


@dataclass(slots=True, kw_only=True)
class _Child:
    job: int
    deadline: float
    killed_for: str = ""


def main(descriptor: int, modules: list[str], paths: list[str], idle_seconds: float | None) -> None:
    """Prepare, report readiness, and fork until the gateway has exited or there is no job for so long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=descriptor)
    nowhere = open_nowhere()
    leave_the_network()
    sys.path += paths
    try:
        _prepare(modules)
    except ImportError as error:
        _tell(control, {"failed": str(error)[:WORDS_AT_MOST]})
        return
    gc.collect()
    gc.freeze()
    _tell(control, {"ready": True})
    _serve(control, nowhere, idle_seconds)


def _prepare(modules: list[str]) -> None:
    for name in modules:
        prepare = getattr(importlib.import_module(name), "prepare", None)
        if prepare is not None:
            prepare()


def _serve(control: socket.socket, nowhere: int | None, idle_seconds: float | None) -> None:
    awake, wake = os.pipe()
    os.set_blocking(awake, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    children: dict[int, _Child] = {}
    try:
        while True:
            until = _until_next(children) if children else idle_seconds
            ready, _, _ = select.select([control.fileno(), awake], [], [], until)
            if not ready and not children:
                return
            if awake in ready:
                os.read(awake, 4096)
            _bury(control, children)
            _kill_unruly(children)
            if control.fileno() in ready and not _take(control, children, nowhere):
                return
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def _until_next(children: dict[int, _Child]) -> float | None:
    pending = [child.deadline for child in children.values() if not child.killed_for]
    return max(0.0, min(LOOK_SECONDS, min(pending) - time.monotonic())) if pending else None


def _bury(control: socket.socket, children: dict[int, _Child]) -> None:
    for pid in list(children):
        gone, status, usage = os.wait4(pid, os.WNOHANG)
        if gone:
            child = children.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            took = {"cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_bytes": usage.ru_maxrss * RSS_UNIT}
            _tell(control, {"job": child.job, "code": code, "killed_for": child.killed_for, **took})


def _kill_unruly(children: dict[int, _Child]) -> None:
    for pid, child in children.items():
        if child.killed_for:
            continue
        if child.deadline <= time.monotonic():
            child.killed_for = "time"
        elif _count_threads(pid) > THREADS_AT_MOST:
            child.killed_for = "threads"
        if child.killed_for:
            os.kill(pid, signal.SIGKILL)


def _count_threads(pid: int) -> int:
    """Resource limits cannot do this: the one on processes does not bind root, and counts all processes of a user."""
    try:
        return Path(f"/proc/{pid}/task").stat().st_nlink - 2
    except OSError:
        return 0


def _take(control: socket.socket, children: dict[int, _Child], nowhere: int | None) -> bool:
    """Start the requested job; False when the gateway has exited."""
    head, descriptors, _, _ = socket.recv_fds(control, LENGTH_BYTES, DESCRIPTORS_AT_MOST)
    if len(head) < LENGTH_BYTES:
        return False
    request = json.loads(_exactly(control, int.from_bytes(head)))
    if "kill" in request:
        for pid, child in children.items():
            if child.job == request["kill"]:
                os.kill(pid, signal.SIGKILL)
        return True
    parent, pid = os.getpid(), os.fork()
    if not pid:
        _be_the_child(parent, request, descriptors, nowhere)
    for descriptor in descriptors:
        os.close(descriptor)
    children[pid] = _Child(job=request["job"], deadline=time.monotonic() + request["seconds"])
    return True


def _exactly(control: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        piece = control.recv(size - len(read))
        if not piece:
            raise EOFError("the gateway is gone")
        read += piece
    return read


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


def _be_the_child(parent: int, request: dict[str, Any], descriptors: list[int], nowhere: int | None) -> None:
    """Everything after the fork; never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        answer, *files = descriptors
        _close_others(descriptors if nowhere is None else [*descriptors, nowhere])
        if "program" in request:
            _become(parent, request, answer, files)
        function = _function(request["function"])
        unloaded = _load(request)
        raise_walls(parent=parent, memory=request["memory"], seconds=request["cpu"], nowhere=nowhere)
        written = json.dumps(unloaded or _do(function, files, request["options"])).encode()
        if len(written) <= request.get("answer_bytes", ANSWER_BYTES):
            _write(answer, written)
            code = 0
        else:
            _write(answer, b'{"error": "answer"}')
    finally:
        os._exit(code)


def _become(parent: int, request: dict[str, Any], answer: int, files: list[int]) -> None:
    """Run a program in the place of the child: its input is the file, its output the answer; never returns."""
    program, *_ = command = request["program"]
    raise_program_walls(
        parent=parent,
        memory=request["memory"],
        seconds=request["cpu"],
        output=request["answer_bytes"],
        readable=request["readable"],
    )
    os.lseek(files[0], 0, os.SEEK_SET)
    os.dup2(files[0], 0)
    os.dup2(answer, 1)
    _close_others([])
    os.execve(program, command, request["environment"])  # noqa: S606 - no shell, and behind walls


def _load(request: dict[str, Any]) -> dict[str, Any] | None:
    """Let the function's module load its model, which takes files; the failure if that fails."""
    load = getattr(importlib.import_module(request["function"].partition(":")[0]), "load", None)
    if load is None:
        return None
    set_limits(memory=request["memory"], seconds=request["cpu"])
    failure = _do(load, [], request["options"])
    return None if "result" in failure else failure


def _write(answer: int, written: bytes) -> None:
    while written:
        written = written[os.write(answer, written) :]


def _close_others(kept: list[int]) -> None:
    last = 3
    for descriptor in sorted(kept):
        os.closerange(last, descriptor)
        last = descriptor + 1
    os.closerange(last, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") > 0 else 4096)


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found


def _do(function: Callable[..., Any], files: list[int], options: dict[str, Any]) -> dict[str, Any]:
    try:
        if files:
            os.lseek(files[0], 0, os.SEEK_SET)
        return {"result": function(*files, options)}
    except (MediaError, ProviderError) as error:
        return {"refused": str(error)[:WORDS_AT_MOST]}
    except MemoryError:
        return {"error": "memory"}
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return {"error": "room" if full else type(error).__name__[:60]}
    except BaseException as error:  # noqa: BLE001 - a decoder may raise anything, a panic too; the child ends here
        # A decoder's message may quote the file; the type of the error is enough.
        return {"error": type(error).__name__[:60]}


if __name__ == "__main__":
    main(int(sys.argv[1]), *(json.loads(argument) for argument in sys.argv[2:]))
