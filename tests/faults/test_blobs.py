"""Killed at every step between a socket and a blob: nothing partial is ever seen, nothing is left lying around."""

import subprocess
import sys
from pathlib import Path

import pytest

from faults.looking import SOAK, check_state_folder

PROGRAM = Path(__file__).with_name("fetching.py")
KILLS = 1000 if SOAK else 40
SEED = 20261115
SECONDS = 60 * (60 if SOAK else 3)


@pytest.mark.slow
def test_no_kill_leaves_a_partial_blob_a_temporary_file_or_a_ref_without_its_bytes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(home), str(SEED), str(KILLS)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    *wrong, killed = done.stdout.splitlines()
    assert wrong == []
    assert int(killed.removeprefix("killed ")) >= KILLS // 2, "hardly anything was killed"
    check_state_folder(home)
