"""The command line as people use it: real processes on a state folder of their own."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Belino = Callable[..., subprocess.CompletedProcess[str]]


def run_belino(*arguments: str, home: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "belino", *arguments, "--home", str(home)],
        env={**kept, "TZ": "UTC", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def belino(home: Path) -> Belino:
    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_belino(*arguments, home=home, environment=environment)

    return run
