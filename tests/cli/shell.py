"""The command line as people use it: real processes on a state folder of their own, with or without a terminal."""

import fcntl
import json
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Timer
from types import MappingProxyType
from typing import Any

from belino.testing import GatewayProcess

PATIENCE = 120.0

Done = subprocess.CompletedProcess[str]
Belino = Callable[..., Done]

NOTHING: Mapping[str, str] = MappingProxyType({})


def run_belino(*arguments: str, home: Path, environment: Mapping[str, str]) -> Done:
    """Run a command to its end."""
    return subprocess.run(
        _command(arguments, home),
        env=_environment(environment),
        capture_output=True,
        encoding=environment.get("PYTHONIOENCODING", "utf-8"),
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )


def read(done: Done) -> Any:
    """The JSON that a command printed which went well."""
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def findings_of(doctor: Done) -> dict[str, Any]:
    """What `belino doctor --json` found, well or not, by name."""
    return {each["name"]: each for each in json.loads(doctor.stdout)["findings"]}


def doctor_beside_a_gateway(belino: Belino, home: Path, **environment: str) -> dict[str, Any]:
    """What the doctor finds while a gateway runs that has these tokens."""
    with GatewayProcess(home, environment=environment):
        return findings_of(belino("doctor", "--json"))


def on_a_terminal(*arguments: str, home: Path, typed: Mapping[str, str] = NOTHING, **environment: str) -> Done:
    """All that a terminal shows of a command while somebody types an answer after each of these questions."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        _command(arguments, home),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env=_environment({"TERM": "xterm-256color", **environment}),
    )
    os.close(theirs)
    patience = Timer(PATIENCE, process.kill)
    patience.start()
    shown = b""
    try:
        for question, answer in typed.items():
            while question.encode() not in shown and (piece := _more(ours)):
                shown += piece
            os.write(ours, f"{answer}\n".encode())
        while piece := _more(ours):
            shown += piece
        return Done(process.args, process.wait(), shown.decode(), "")
    finally:
        patience.cancel()
        os.close(ours)


def _more(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""  # the other end was closed


def _command(arguments: tuple[str, ...], home: Path) -> list[str]:
    return [sys.executable, "-m", "belino", *arguments, "--home", str(home)]


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "TZ": "UTC", **more}
