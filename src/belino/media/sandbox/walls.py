"""Walls around a process that decodes hostile bytes: limits, no files, no network, no programs.

Walls that the system does not support are left out; `try_walls` tests from inside which of them hold.
"""

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import socket
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

MEMORY_BYTES = 768 * 1024 * 1024
CPU_SECONDS = 20
FILE_BYTES = 256 * 1024 * 1024
OPEN_FILES = 64
MAX_PIXELS_NAME = "BELINO_MAX_PIXELS"
"""The variable that tells decoders how many pixels they may hold at once."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_FILTER = 2
_CAPABILITIES_64_BIT = 0x20080522
_CLONE_NEWUSER, _CLONE_NEWNET, _CLONE_NEWIPC, _CLONE_THREAD = 0x10000000, 0x40000000, 0x08000000, 0x00010000
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION = 1
_LANDLOCK_BENEATH = 1
_LANDLOCK_EXECUTE, _LANDLOCK_READ_FILE, _LANDLOCK_READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
# The file rights that each Landlock version added, as a mask of all up to it.
_LANDLOCK_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_LANDLOCK_FILES_SINCE_5 = (1 << 16) - 1
_LANDLOCK_TCP, _LANDLOCK_SCOPES = 0b11, 0b11

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_UNKNOWN = 463
"""The first system call number newer than the list below; those of x32 are far beyond it."""

# System calls whose numbers differ by machine: (x86-64, arm64); None where there is none.
_REFUSED: Mapping[str, tuple[int | None, int | None]] = {
    "open": (2, None), "creat": (85, None), "openat": (257, 56), "openat2": (437, 437), "truncate": (76, 45),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "open_tree": (428, 428),
    "chdir": (80, 49), "chroot": (161, 51), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35),
    "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36), "mknod": (133, None),
    "mknodat": (259, 33), "chmod": (90, None), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None), "futimesat": (261, None),
    "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "inotify_init": (253, None), "inotify_init1": (294, 26), "fanotify_init": (300, 262),
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242),
    "bind": (49, 200), "listen": (50, 201), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None),
    "kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "unshare": (272, 97), "setns": (308, 268),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "setrlimit": (160, 164), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "init_module": (175, 105),
    "finit_module": (313, 273), "kexec_load": (246, 104), "shmget": (29, 194), "shmat": (30, 196),
    "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "personality": (135, 92),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "sync": (162, 81), "syncfs": (306, 267),
    # `newfstatat` stays: the C library needs it for open files, and a filter does not see paths.
    "stat": (4, None), "lstat": (6, None), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78), "statfs": (137, 43),
    # Even a read-only file has a mode that its owner may change.
    "fchmod": (91, 52), "fchown": (93, 55), "fsetxattr": (190, 7), "fremovexattr": (199, 16),
}  # fmt: skip
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7), "arm64": (1, 0xC00000B7)}
_PROGRAMS_NEED = frozenset(
    {"execve", "stat", "lstat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "statfs"}
)
"""What a program's loader and libraries call; files are kept from it by Landlock."""
_OPEN_FLAGS = {"open": 24, "openat": 32}
"""Where a call that opens a file has its flags."""
_CLONE, _CLONE3, _PRLIMIT, _TGKILL = (56, 220), (435, 435), (302, 261), (234, 131)
_PRCTL, _FCNTL = (157, 167), (72, 25)
_F_SETOWN, _F_SETOWN_EX = 8, 15


def leave_the_network() -> None:
    """Move this process and its children into an empty network namespace, where an ordinary user may."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC)


def open_nowhere() -> int | None:
    """A folder that no longer has a name: nothing is in it, and nothing can be put there."""
    try:
        folder = tempfile.mkdtemp(prefix="belino-")
        try:
            return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            Path(folder).rmdir()
    except OSError:
        return None


def raise_walls(*, parent: int, memory: int, seconds: int, nowhere: int | None = None) -> None:
    """Confine this process for good: it keeps only its open files, and ends with its parent."""
    set_limits(memory=memory, seconds=seconds)
    if platform.system() == "Linux":
        _confine(parent, readable=(), programs=False, nowhere=nowhere)


def raise_program_walls(*, parent: int, memory: int, seconds: int, output: int, readable: Sequence[str]) -> None:
    """Confine this process, which then runs a program: it may read below `readable`, write `output` bytes, no more."""
    set_limits(memory=memory, seconds=seconds)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (output, output))
    if platform.system() == "Linux":
        _confine(parent, readable=readable, programs=True)


def _confine(parent: int, *, readable: Sequence[str], programs: bool, nowhere: int | None = None) -> None:
    # When the machine runs out of memory, this process is the first to kill.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    system = ctypes.CDLL(None, use_errno=True)
    system.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    _leave_all_paths(nowhere)
    system.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Where root starts the gateway and cannot create a network namespace, children would be root as well.
    system.capset(struct.pack("Ii", _CAPABILITIES_64_BIT, 0), bytes(24))
    _landlock(system, readable)
    _seccomp(system, programs=programs)


def _leave_all_paths(nowhere: int | None) -> None:
    """Make an empty folder the root, where an ordinary user may: then no path leads to any file, not even its size."""
    if nowhere is None:
        return
    with contextlib.suppress(OSError):
        os.fchdir(nowhere)
        os.chroot(".")
    os.close(nowhere)


def set_limits(*, memory: int, seconds: int) -> None:
    """Resource limits; a soft CPU limit sends a signal of its own, the hard one kills."""
    for kind, soft, hard in (
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_FSIZE, FILE_BYTES, FILE_BYTES),
        (resource.RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_AS, memory, memory),
    ):
        # Not every system allows lowering every limit; the parent still kills on time.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (soft, hard))


def _landlock(system: ctypes.CDLL, readable: Sequence[str]) -> None:
    """A ruleset that handles everything and allows nothing except reading and running what is below `readable`."""
    version = int(system.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION))
    if version < 1:
        return
    files = _LANDLOCK_FILES.get(version, _LANDLOCK_FILES_SINCE_5)
    rules = struct.pack("QQQ", files, _LANDLOCK_TCP, _LANDLOCK_SCOPES)[
        : 8 if version < 4 else 16 if version < 6 else 24
    ]
    ruleset = int(system.syscall(_LANDLOCK_CREATE, rules, ctypes.c_size_t(len(rules)), 0))
    if ruleset >= 0:
        for path in readable:
            _let_read(system, ruleset, path)
        system.syscall(_LANDLOCK_RESTRICT, ruleset, 0)
        os.close(ruleset)


def _let_read(system: ctypes.CDLL, ruleset: int, path: str) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not every system has every folder
    rights = _LANDLOCK_EXECUTE | _LANDLOCK_READ_FILE
    if Path(path).is_dir():
        rights |= _LANDLOCK_READ_FOLDER
    system.syscall(_LANDLOCK_ADD, ruleset, _LANDLOCK_BENEATH, struct.pack("=Qi", rights, folder), 0)
    os.close(folder)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _seccomp(system: ctypes.CDLL, *, programs: bool) -> None:
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return
    steps = _filter(*machine, programs=programs)
    program = _Program(length=len(steps) // 8, steps=steps)
    system.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(program), 0, 0)


def _filter(column: int, architecture: int, *, programs: bool) -> bytes:
    """A BPF program: the listed calls fail, newer ones and those of another machine; threads may start.

    A program may also be run, and files opened for reading.
    """
    number, machine, first, second, third = 0, 4, 16, 24, 32
    refuse, allow = (_RETURN, 0, 0, _ERRNO | errno.EPERM), (_RETURN, 0, 0, _ALLOW)
    steps = [(_LOAD, 0, 0, machine), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL)]
    steps += [(_LOAD, 0, 0, number), (_AT_LEAST, 0, 1, _UNKNOWN), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    for name, numbers in _REFUSED.items():
        if (call := numbers[column]) is None or (programs and name in _PROGRAMS_NEED):
            continue
        if programs and name in _OPEN_FLAGS:
            steps += [(_EQUAL, 0, 4, call), (_LOAD, 0, 0, _OPEN_FLAGS[name])]
            steps += [(_ANY_BIT, 0, 1, os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC), refuse, allow]
        else:
            steps += [(_EQUAL, 0, 1, call), refuse]
    # The C library tries clone3 first and falls back to clone, whose flags can be checked.
    steps += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    steps += [(_EQUAL, 0, 4, _CLONE[column]), (_LOAD, 0, 0, first), (_ANY_BIT, 0, 1, _CLONE_THREAD), allow, refuse]
    # A process may signal only itself: `abort` needs that.
    steps += [(_EQUAL, 0, 4, _TGKILL[column]), (_LOAD, 0, 0, first), (_EQUAL, 0, 1, os.getpid()), allow, refuse]
    # A process that outlives the parent could not be ended.
    steps += [(_EQUAL, 0, 4, _PRCTL[column]), (_LOAD, 0, 0, first), (_EQUAL, 0, 1, _PR_SET_PDEATHSIG), refuse, allow]
    # A file may not signal other processes about input either: the signal could be any.
    steps += [(_EQUAL, 0, 5, _FCNTL[column]), (_LOAD, 0, 0, second), (_EQUAL, 1, 0, _F_SETOWN)]
    steps += [(_EQUAL, 0, 1, _F_SETOWN_EX), refuse, allow]
    # A limit may be read, not set: the pointer to a new one must be null, in both halves.
    steps += [(_EQUAL, 0, 6, _PRLIMIT[column]), (_LOAD, 0, 0, third), (_EQUAL, 0, 3, 0)]
    steps += [(_LOAD, 0, 0, third + 4), (_EQUAL, 0, 1, 0), allow, refuse, allow]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def try_walls(options: Mapping[str, object]) -> dict[str, object]:
    """From inside: what a compromised decoder could do here. Nothing, if the walls hold."""
    tries: dict[str, Callable[[], object]] = {
        "open files": lambda: os.close(os.open("/etc/passwd", os.O_RDONLY)),
        "write files": _write,
        "reach the network by TCP": lambda: _reach(socket.SOCK_STREAM),
        "reach the network by UDP": lambda: _reach(socket.SOCK_DGRAM),
        "signal other processes": lambda: os.kill(os.getppid(), 0),
        "start processes": _start,
        # Last: if it succeeds, it does not return.
        "run programs": lambda: os.execv("/bin/sh", ["sh", "-c", "exit 0"]),  # noqa: S606
    }
    names = _managed(Path("/etc").stat) or _managed(Path("/usr").stat)
    return {"names": names, "open": [name for name, attempt in tries.items() if _managed(attempt)]}


def _managed(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError as error:
        # "Refused" comes from the network itself: it was reached.
        return error.errno == errno.ECONNREFUSED
    return True


def _write() -> None:
    path = Path(f"/tmp/belino-{os.getpid()}")  # noqa: S108 - created exclusively, and removed at once
    path.touch(0o600, exist_ok=False)
    path.unlink()


def _reach(kind: int) -> None:
    with socket.socket(socket.AF_INET, kind) as there:
        there.settimeout(1)
        there.connect(("127.0.0.1", 9))
        there.send(b".")


def _start() -> None:
    if not os.fork():
        os._exit(0)
    os.wait()
