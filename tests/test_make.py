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
    for name in (
        "Makefile",
        "pyproject.toml",
        "requirements.lock",
        "requirements-dev.lock",
        "requirements-reading.lock",
    ):
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


def ensure_browser(machine: Path, commands: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine that has these commands and no others."""
    (machine / ".venv" / "bin").mkdir(parents=True)
    for name, does in commands.items():
        path = machine / (".venv/bin" if name == "playwright" else "bin") / name
        path.write_text(f"#!/bin/sh\necho {name} $* >> {machine}/ran\n{does}\n", encoding="utf-8")
        path.chmod(0o755)
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "ensure-browser")],
        cwd=machine,
        env={"PATH": str(machine / "bin"), "APPLICATIONS": str(machine), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def ran(machine: Path) -> list[str]:
    file = machine / "ran"
    return [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("id ")]


USER, ROOT_USER = "echo 1000", "echo 0"


def test_a_browser_that_is_installed_is_used(machine: Path) -> None:
    done = ensure_browser(machine, {"chromium": "", "id": USER, "playwright": "exit 1"}, CI="true")
    assert done.returncode == 0
    assert not (machine / "ran").exists()


def test_root_gets_a_browser_from_apt_and_a_failure_there_leads_to_playwrights(machine: Path) -> None:
    done = ensure_browser(machine, {"id": ROOT_USER, "apt-get": "exit 100", "playwright": ""}, CI="true")
    assert done.returncode == 0
    assert ran(machine) == ["apt-get update -qq", "playwright install chromium"]


def test_a_user_without_a_browser_gets_playwrights_own(machine: Path) -> None:
    done = ensure_browser(machine, {"id": USER, "apt-get": "", "playwright": ""}, CI="true")
    assert done.returncode == 0
    assert ran(machine) == ["playwright install chromium"]


@pytest.mark.parametrize(("ci", "code", "says"), [("", 0, "will be skipped"), ("true", 1, "need Chromium or Chrome")])
def test_without_any_browser_the_tests_are_skipped_and_in_ci_they_fail(
    machine: Path, ci: str, code: int, says: str
) -> None:
    done = ensure_browser(machine, {"id": USER, "playwright": "exit 1"}, CI=ci)
    assert done.returncode == code
    assert says in done.stderr


def ensure_reading(machine: Path, uv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script in an environment whose installer does what the test says."""
    (machine / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
    installer = machine / ".venv" / "bin" / "uv"
    installer.write_text(f"#!/bin/sh\necho uv $* >> {machine}/ran\n{uv}\n", encoding="utf-8")
    installer.chmod(0o755)
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "ensure-reading")],
        cwd=machine,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_local_reading_is_installed_by_hashes_once_for_each_lock(machine: Path) -> None:
    for _ in range(2):
        done = ensure_reading(machine, "", CI="true")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ran(machine) == ["uv pip install -q --require-hashes -r requirements-reading.lock"]
    later = (machine / ".venv" / ".reading").stat().st_mtime + 10
    os.utime(machine / "requirements-reading.lock", (later, later))
    ensure_reading(machine, "")
    assert len(ran(machine)) == 2


def test_where_no_wheel_fits_one_line_says_so_and_belino_runs(machine: Path) -> None:
    done = ensure_reading(machine, "echo no wheel for this platform >&2; exit 1", CI="")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert "cannot be read on this machine" in line
    assert "no wheel for this platform" in (machine / ".venv" / "reading.log").read_text(encoding="utf-8")
    assert not (machine / ".venv" / ".reading").exists()


def test_in_ci_local_reading_must_be_installed(machine: Path) -> None:
    done = ensure_reading(machine, "echo no wheel for this platform >&2; exit 1", CI="true")
    assert done.returncode == 1
    assert "no wheel for this platform" in done.stderr


def test_make_run_installs_local_reading_before_it_starts(machine: Path) -> None:
    plan = subprocess.run(["make", "-n", "run"], cwd=machine, capture_output=True, text=True, check=True).stdout
    assert plan.index("scripts/ensure-reading") < plan.index("belino serve")
