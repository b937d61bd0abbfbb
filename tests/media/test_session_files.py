"""Copies go with their ref, and with age; nothing else in a folder does."""

import os
from datetime import UTC, datetime
from pathlib import Path

from belino.media.session_files import remove_copies, remove_older


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / "incoming" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_every_copy_of_a_ref_goes_and_no_other_file(tmp_path: Path) -> None:
    ref, other = "tg_k3v9d0q2m7xa", "tg_aaaaaaaaaaaa"
    make(tmp_path, f"photo---{ref}.jpg", f"photo---{ref}-2.jpg", f"old/frames---{ref}/1.png", f"photo---{other}.jpg")
    make(tmp_path, f"notes about {ref}.txt")
    (tmp_path / "outgoing").mkdir()
    (tmp_path / "outgoing" / f"photo---{ref}.jpg").write_bytes(b"the agent's own")
    assert remove_copies(tmp_path, [ref]) == 3
    assert left(tmp_path) == [
        f"incoming/notes about {ref}.txt",
        f"incoming/photo---{other}.jpg",
        f"outgoing/photo---{ref}.jpg",
    ]


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere" / "secret"
    secret.parent.mkdir()
    secret.write_bytes(b"precious")
    folder = tmp_path / "conversation"
    make(folder, "a---tg_k3v9d0q2m7xa.jpg")
    (folder / "incoming" / "b---tg_k3v9d0q2m7xa.jpg").symlink_to(secret)
    (folder / "incoming" / "c---tg_k3v9d0q2m7xa").symlink_to(secret.parent)
    assert remove_copies(folder, ["tg_k3v9d0q2m7xa"]) == 3
    assert left(folder) == []
    assert secret.read_bytes() == b"precious"


def test_what_nobody_touched_for_long_goes(tmp_path: Path) -> None:
    make(tmp_path, "old.txt", "read.txt", "new.txt")
    for name, times in (("old.txt", (1, 1)), ("read.txt", (2_000_000_000, 1)), ("new.txt", (1, 2_000_000_000))):
        os.utime(tmp_path / "incoming" / name, times)
    assert remove_older(tmp_path, datetime(2026, 1, 1, tzinfo=UTC)) == 1
    assert left(tmp_path) == ["incoming/new.txt", "incoming/read.txt"]
