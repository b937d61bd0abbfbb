"""On a machine that lacks something, make says in one sentence what, and how to get it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYTHONS = ("python3", "python3.11", "python3.12", "python3.13", "python3.14")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A fresh checkout on a machine where every Python there is does what the test says."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "bin").mkdir()
    return tmp_path


def make(machine: Path, python: str) -> subprocess.CompletedProcess[str]:
    for name in PYTHONS:
        path = machine / "bin" / name
        path.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
        path.chmod(0o755)
    environment = {
        "PATH": f"{machine / 'bin'}:/usr/bin:/bin",
        "HOME": str(machine),
        "LANG": os.environ.get("LANG", "C"),
    }
    return subprocess.run(["make", "setup"], cwd=machine, env=environment, capture_output=True, text=True, check=False)


def test_a_machine_without_a_recent_python_is_told_so(machine: Path) -> None:
    done = make(machine, "exit 1")
    assert done.returncode != 0
    assert "belino needs Python 3.11 or newer" in done.stderr
    assert not (machine / ".venv").exists()


def test_a_python_that_cannot_make_an_environment_is_told_with_the_cure(machine: Path) -> None:
    done = make(machine, 'case "$*" in *ensurepip*) exit 1;; esac\nexit 0')
    assert done.returncode != 0
    assert "apt install python3-venv" in done.stderr
    assert not (machine / ".venv").exists()
