"""Power cuts: whatever was acknowledged is there after any of them, and a missing sync is noticed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.looking import SOAK

PROGRAM = Path(__file__).with_name("power.py")
RUNS = 20 if SOAK else 1
CUTS = 100 if SOAK else 20
SEED = 20261117
CARELESS = ("blob", "blob-folder", "fan-out-folder", "upload", "upload-folder", "key", "normal", "off")
UNREACHABLE = "Python's SQLite library cannot be reached here: its writes are not recorded"


def power_cuts(folder: Path, seed: int, cuts: int, *more: str) -> tuple[list[str], bool]:
    """The promises that were broken, and whether the database was recorded write by write."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), str(seed), str(cuts), *more],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(PROGRAM.parents[1])},
    )
    assert done.returncode == 0, done.stderr
    *broken, counted = done.stdout.splitlines()
    kept, events, promises = counted.split()
    assert int(events) > int(promises) > 0, "nothing was recorded"
    return broken, kept == "recorded"


@pytest.mark.parametrize("run", range(RUNS))
def test_no_power_cut_loses_what_was_acknowledged(tmp_path: Path, run: int) -> None:
    assert power_cuts(tmp_path, SEED + run, CUTS)[0] == []


def test_no_power_cut_loses_a_file_so_large_that_it_is_written_past_the_kernels_memory(tmp_path: Path) -> None:
    assert power_cuts(tmp_path, SEED, 4, "--large")[0] == []


@pytest.mark.parametrize("sync", CARELESS)
def test_a_sync_that_is_left_out_is_noticed_by_a_power_cut(tmp_path: Path, sync: str) -> None:
    broken, recorded = power_cuts(tmp_path, SEED, 8, "--rounds", "4", "--without", sync)
    if sync in ("normal", "off") and not recorded:
        pytest.skip(UNREACHABLE)
    assert broken != []


def test_a_large_file_that_is_not_synced_is_noticed_by_a_power_cut(tmp_path: Path) -> None:
    assert power_cuts(tmp_path, SEED, 4, "--large", "--without", "blob")[0] != []


def test_where_the_databases_writes_cannot_be_recorded_the_files_are_looked_at_all_the_same(tmp_path: Path) -> None:
    assert power_cuts(tmp_path / "whole", SEED, 8, "--rounds", "2", "--copied") == ([], False)
    assert power_cuts(tmp_path / "careless", SEED, 8, "--rounds", "2", "--copied", "--without", "blob")[0] != []
