"""A backup has its name once it is complete, wherever its folder is named from, and can be read back."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import StoreError
from belino.domain.message import Message
from belino.domain.outcome import Standing
from belino.domain.stored import Verdict
from belino.storage.backup import BackedUp, back_up, backup_place
from belino.storage.backup_check import verify_backup
from belino.storage.home import Home
from belino.storage.store import Store
from storage.pieces import keep

NOW = datetime(2026, 1, 2, tzinfo=UTC)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
DYING = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from belino.storage.backup import back_up
from belino.storage.home import Home

def die(done, total):
    os.kill(os.getpid(), signal.SIGKILL)

back_up(Home(path=Path(sys.argv[1])), Path(sys.argv[2]), now=datetime.now(UTC), version="1", progress=die)
"""


def backed_up(home: Home, folder: Path, **more: Any) -> BackedUp:
    return back_up(home, folder, now=NOW, version="1", **more)


@pytest.fixture
async def filled(store: Store, say: Callable[..., Message]) -> None:
    """A message and two blobs."""
    await store.take_in(say("1"), OBSERVE)
    for body in (b"first", b"second"):
        await keep(store, body)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("name", ["bk", "./bk", "~/bk", "deep/er/bk", "../bk"])
async def test_a_backup_takes_a_folder_however_it_is_named(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(here))
    assert backed_up(home, Path(name)).blobs == 2
    found = verify_backup(Path(name))
    assert (found.is_whole, found.messages, found.blobs) == (True, 1, 2)
    assert [path.name for path in here.parent.rglob("bk") if (path / "backup.json").is_file()] == ["bk"]


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
async def test_a_backup_that_is_killed_leaves_no_folder_of_its_name_and_the_next_one_removes_its_rest(
    home: Home, tmp_path: Path
) -> None:
    target = tmp_path / "backups" / "bk"
    died = subprocess.run([sys.executable, "-c", DYING, str(home.path), str(target)])
    assert died.returncode == -signal.SIGKILL
    (left,) = target.parent.iterdir()
    assert left.name.startswith(".bk.part-")
    backed_up(home, target)
    assert [path.name for path in target.parent.iterdir()] == ["bk"]
    assert verify_backup(target).is_whole


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
async def test_an_earlier_backup_is_whole_when_the_next_one_into_its_folder_is_killed(
    store: Store, home: Home, tmp_path: Path, say: Callable[..., Message]
) -> None:
    target = tmp_path / "bk"
    backed_up(home, target)
    await store.take_in(say("2"), OBSERVE)
    await keep(store, b"third")
    assert subprocess.run([sys.executable, "-c", DYING, str(home.path), str(target)]).returncode == -signal.SIGKILL
    assert (verify_backup(target).messages, verify_backup(target).is_whole) == (1, True)
    assert backed_up(home, target).copied == 1
    assert (verify_backup(target).messages, verify_backup(target).is_whole) == (2, True)


@pytest.mark.usefixtures("filled")
async def test_a_backup_that_fails_leaves_nothing(home: Home, tmp_path: Path) -> None:
    def full(done: int, total: int) -> None:
        raise OSError(28, "No space left on device")

    for target in (tmp_path / "new" / "bk", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(OSError, match="No space"):
            backed_up(home, target, progress=full)
    assert list((tmp_path / "new").iterdir()) == list((tmp_path / "empty").iterdir()) == []


async def test_what_an_earlier_version_left_unfinished_is_replaced(store: Store, home: Home, tmp_path: Path) -> None:
    target = tmp_path / "bk"
    (target / "blobs").mkdir(parents=True)
    (target / f"belino-{'c' * 16}.db").write_bytes(b"half")
    backed_up(home, target)
    assert verify_backup(target).is_whole
    assert not (target / f"belino-{'c' * 16}.db").exists()


async def test_two_backups_are_not_written_to_the_same_folder_at_once(store: Store, home: Home, tmp_path: Path) -> None:
    target = tmp_path / "bk"
    backed_up(home, target)
    with backup_place(home, target), pytest.raises(StoreError, match="another backup is being written"):
        backed_up(home, target)
    with backup_place(home, tmp_path / "new") as staged:
        backed_up(home, tmp_path / "new")  # what the first one writes is left alone
        assert staged.is_dir()


@pytest.mark.usefixtures("filled")
async def test_verify_names_everything_that_is_not_what_it_was(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "bk"
    backed_up(home, target)
    blob, other = sorted((target / "blobs").glob("??/??/*"))
    kept = {path: path.read_bytes() for path in (blob, target / "key", next(target.glob("*.db")))}
    for path, content in kept.items():
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        assert verify_backup(target).problems, path.name
        path.unlink()
        (problem,) = verify_backup(target).problems
        assert any(word in problem for word in (blob.name, "key", "database")), problem
        path.write_bytes(content)
    stray = target / "blobs" / "ab" / "cd" / ("abcd" * 16)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"?")
    assert verify_backup(target).problems == (f"file without row: {stray.name}",)
    stray.unlink()
    other.rename(tmp_path / "elsewhere")
    other.symlink_to(tmp_path / "elsewhere")
    assert [other.name in problem for problem in verify_backup(target).problems] == [True]


async def test_verify_refuses_a_folder_that_is_no_backup(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(StoreError, match=r"backup"):
            verify_backup(folder)


@pytest.mark.usefixtures("filled")
async def test_blobs_of_an_earlier_backup_are_shared_unless_they_are_damaged(home: Home, tmp_path: Path) -> None:
    backed_up(home, tmp_path / "one")
    blob, other = sorted((tmp_path / "one" / "blobs").glob("??/??/*"))
    blob.write_bytes(b"rotten")
    assert backed_up(home, tmp_path / "two", earlier=tmp_path / "one").copied == 1
    assert verify_backup(tmp_path / "two").is_whole
    assert (tmp_path / "two" / other.relative_to(tmp_path / "one")).stat().st_nlink == 2
    assert json.loads((tmp_path / "two" / "backup.json").read_text())["blobs"] == 2
