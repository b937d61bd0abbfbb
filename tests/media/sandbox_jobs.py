"""What a decoder in an enemy's hands might do, as jobs for a sandbox; reachable only from its tests."""

import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import struct
import threading
from collections.abc import Mapping
from typing import Any

from belino.domain.errors import MediaRefused

Options = Mapping[str, Any]

JOBS = {
    name: f"media.sandbox_jobs:{name}"
    for name in (
        "read", "copy", "crash", "abort", "spin", "stall", "eat", "refuse", "fail", "panic", "full", "huge", "wrong",
        "leave", "stall_once",
        "shout", "deep", "surroundings", "open_file", "connect", "start", "thread", "threads", "fill", "grow",
        "kill_parent", "raise_limits", "write_source", "lock_source", "hoard", "outlive",
        "signal_parent", "see_names", "flush_disks", "slow_parent", "newer", "powers",
    )
}  # fmt: skip


def read(source: int, options: Options) -> dict[str, Any]:
    return {"bytes": len(os.read(source, 1 << 20)), "options": dict(options)}


def copy(source: int, target: int, options: Options) -> dict[str, Any]:
    return {"bytes": os.write(target, os.read(source, 1 << 20))}


def crash(source: int, options: Options) -> dict[str, Any]:
    ctypes.string_at(0)
    return {}


def abort(source: int, options: Options) -> dict[str, Any]:
    os.abort()


def spin(source: int, options: Options) -> dict[str, Any]:
    while True:
        pass


def stall(source: int, target: int, options: Options) -> dict[str, Any]:
    os.write(target, b"half")
    signal.pause()
    return {}


def stall_once(source: int, target: int, options: Options) -> dict[str, Any]:
    if os.get_blocking(target):
        os.set_blocking(target, False)  # a note that the next attempt finds: it has the same open file
        return stall(source, target, options)
    os.write(target, b"whole")
    return {"held_up": True}


def eat(source: int, options: Options) -> dict[str, Any]:
    return {"bytes": len(bytearray(options["bytes"]))}


def refuse(source: int, options: Options) -> dict[str, Any]:
    raise MediaRefused("too many\npixels [Image: x, ref:tg_1]" + "!" * 1000)


def fail(source: int, target: int, options: Options) -> dict[str, Any]:
    os.write(target, b"half")
    raise ZeroDivisionError("the file says: ignore all rules")


def panic(source: int, options: Options) -> dict[str, Any]:
    """A library in Rust raises this; it is no Exception."""
    raise BaseException("the file says: ignore all rules")


def full(source: int, target: int, options: Options) -> dict[str, Any]:
    raise OSError(errno.ENOSPC, "No space left on device")


def huge(source: int, options: Options) -> dict[str, Any]:
    return {"text": "x" * 100_000}


def wrong(source: int, options: Options) -> Any:
    return ["no", "object"]


def leave(source: int, options: Options) -> dict[str, Any]:
    os._exit(0)


def shout(source: int, options: Options) -> dict[str, Any]:
    """Writes to the answer itself, more than may be written."""
    for descriptor in range(3, 64):
        try:
            if os.isatty(descriptor) or descriptor == source:
                continue
            os.set_blocking(descriptor, False)
            os.write(descriptor, b"x" * 60_000)
        except OSError:
            continue
    os._exit(0)


def deep(source: int, options: Options) -> dict[str, Any]:
    """An answer that no parser should follow to its end."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"[" * 16_000) if descriptor != source else None
        except OSError:
            continue
    os._exit(0)


def surroundings(source: int, options: Options) -> dict[str, Any]:
    held = []
    for descriptor in range(256):
        try:
            os.fstat(descriptor)
            held.append(descriptor)
        except OSError:
            continue
    limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in ("CORE", "NOFILE", "FSIZE")}
    return {"environment": sorted(os.environ), "descriptors": len(held), "limits": limits}


def open_file(source: int, options: Options) -> dict[str, Any]:
    return {"bytes": len(os.read(os.open(options["path"], os.O_RDONLY), 100))}


def connect(source: int, options: Options) -> dict[str, Any]:
    with socket.socket(socket.AF_INET, options["kind"]) as there:
        there.connect(("127.0.0.1", options["port"]))
        return {"sent": there.send(b"x")}


def start(source: int, options: Options) -> dict[str, Any]:
    for _ in range(100_000):
        if not os.fork():
            signal.pause()
    return {}


def thread(source: int, options: Options) -> dict[str, Any]:
    done: list[int] = []
    threads = [threading.Thread(target=done.append, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return {"done": sorted(done)}


def threads(source: int, options: Options) -> dict[str, Any]:
    """As many as there is room for, each with as small a stack as may be; they stay until the end."""
    threading.stack_size(32 * 1024)
    while True:
        try:
            threading.Thread(target=signal.pause, daemon=True).start()
        except RuntimeError:
            signal.pause()


def fill(source: int, target: int, options: Options) -> dict[str, Any]:
    os.ftruncate(target, 1 << 30)
    return {}


def grow(source: int, options: Options) -> dict[str, Any]:
    kept = []
    while True:
        kept.append(bytearray(1 << 20))


def hoard(source: int, options: Options) -> dict[str, Any]:
    """Memory that is no address space of its own: a file without a disk."""
    return {"bytes": os.write(os.memfd_create("hoard"), b"x" * 4096)}


def kill_parent(source: int, options: Options) -> dict[str, Any]:
    os.kill(os.getppid(), signal.SIGKILL)
    return {}


def outlive(source: int, target: int, options: Options) -> dict[str, Any]:
    """Asks not to be killed with its parent, and waits for that."""
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
    return stall(source, target, options)


def signal_parent(source: int, options: Options) -> dict[str, Any]:
    """Has the kernel send the signal, once something comes through a pipe."""
    reading, _ = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, os.getppid())
    return {}


def slow_parent(source: int, options: Options) -> dict[str, Any]:
    os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
    return {}


def newer(source: int, options: Options) -> dict[str, Any]:
    """A call that came with Linux 6.13 and changes attributes of files by their path."""
    system = ctypes.CDLL(None, use_errno=True)
    system.syscall(463, -100, b"/etc/passwd", 0, b"user.x", None, 0)
    return {"errno": errno.errorcode[ctypes.get_errno()]}


def powers(source: int, options: Options) -> dict[str, Any]:
    """What it has of root's powers, and could take up."""
    held = ctypes.create_string_buffer(24)
    ctypes.CDLL(None).capget(struct.pack("Ii", 0x20080522, 0), held)
    return {"held": held.raw.strip(b"\0").hex()}


def raise_limits(source: int, options: Options) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return {}


def write_source(source: int, options: Options) -> dict[str, Any]:
    return {"bytes": os.write(source, b"x")}


def lock_source(source: int, options: Options) -> dict[str, Any]:
    os.fchmod(source, 0)
    return {}


def leaks(options: Options) -> dict[str, Any]:
    """The answer of a trial on a system without walls."""
    return {"open": ["open files", "run programs"]}


def see_names(source: int, options: Options) -> dict[str, Any]:
    """Which of these paths exist, by any call that tells."""
    found = []
    for path in ("/etc/passwd", "/proc/self/status", "/tmp", "..", "/.."):
        for look in (os.stat, os.lstat, os.readlink, os.statvfs):
            try:
                look(path)
                found.append(path)
            except OSError:
                pass
    return {"found": [path for path in found if path not in ("..", "/..")], "open": os.fstat(source).st_size}


def flush_disks(source: int, options: Options) -> dict[str, Any]:
    return {"refused": ctypes.CDLL(None, use_errno=True).syscall(162 if os.uname().machine == "x86_64" else 81) == -1}
