"""Leash: a small parent of the program, which kills it with everything it started when belino stops it or dies.

Run as `python -I -S leash.py PARENT PROGRAM ARGUMENT…`; standard library only. Linux makes it the parent of orphans, so
that a program cannot leave processes behind, even in a session of their own. Elsewhere its process group is killed.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

NOT_STARTED = 127
POLL_SECONDS = 1.0
ON_LINUX = sys.platform == "linux"

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36  # linux/prctl.h


def main(parent: int, words: list[str]) -> int:
    """Run the program to its end, or to ours; its exit status, as a shell counts it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    if ON_LINUX:
        libc = ctypes.CDLL(None)
        libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before the signal was set
        return NOT_STARTED
    try:
        program = os.posix_spawnp(words[0], words, os.environ, setsigmask=[], setsigdef=[signal.SIGPIPE])
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return NOT_STARTED
    _let_go_of_pipes()
    status = _wait(program, parent)
    _kill_all()
    return NOT_STARTED if status is None else status


def _let_go_of_pipes() -> None:
    """Only the program and its children hold its input and output, so that their end is seen."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)


def _wait(program: int, parent: int) -> int | None:
    """The program's exit status; None if it is to be stopped."""
    while True:
        ended = _reap()
        if program in ended:
            code = ended[program]
            return code if code >= 0 else 128 - code
        if _signalled() == signal.SIGTERM or os.getppid() != parent:
            return None


def _signalled() -> int:
    waited = {signal.SIGTERM, signal.SIGCHLD}
    if sys.platform == "darwin":
        return int(signal.sigwait(waited))
    found = signal.sigtimedwait(waited, POLL_SECONDS)
    return 0 if found is None else found.si_signo


def _reap() -> dict[int, int]:
    """The children that ended, each with its exit code."""
    ended: dict[int, int] = {}
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not child:
            return ended
        ended[child] = os.waitstatus_to_exitcode(status)


def _kill_all() -> None:
    """Kill every process that descends from this one, until there is none."""
    if not ON_LINUX:
        os.killpg(0, signal.SIGKILL)
    while found := _descendants():
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        signal.sigtimedwait({signal.SIGCHLD}, POLL_SECONDS)
        _reap()


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(words[1]), []).append(int(entry.name))
    found, new = list[int](), [os.getpid()]
    while new:
        new = [child for parent in new for child in children.get(parent, [])]
        found += new
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
