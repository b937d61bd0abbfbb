"""Copies of media in a session's folder have safe names, overwrite nothing, and are deleted with their refs."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from belino.domain.errors import StoreError
from belino.domain.media import MediaKind, MediaRef
from belino.media.session_files import place, remove_copies, remove_older, safe_name, stored_name

HOSTILE = [
    "../../x", "..", ".", "a/b", "C:\\x", "\0", "n" * 300, "😀😀", "文書.pdf", "\u202egpj.exe", 'x"><file name="y',
    "]\nref:x", "-rf", ".bashrc", "con\x00.txt", "a" * 70 + ".jpeg", "~root", "%2e%2e%2f", "", " ",
    "x.tar.gz", "a.b/c.d/",
]  # fmt: skip


def name_of(name: str | None, mime: str = "image/png", kind: MediaKind = MediaKind.IMAGE) -> str:
    return safe_name(name, mime=mime, kind=kind)


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [
        ("photo.JPG", "photo.jpg"),
        ("文書 1.pdf", "文書_1.pdf"),
        ("Größe-2_é.png", "Größe-2_é.png"),
        ("../../etc/passwd", "passwd.png"),
        ("C:\\dir\\x.gif", "x.gif"),
        (".bashrc", "bashrc.png"),
        ("-rf.png", "rf.png"),
        ("x.tar.gz", "x.tar.gz"),
        ("no extension", "no_extension.png"),
    ],
)
def test_letters_of_any_script_stay_and_the_rest_becomes_an_underscore(given_name: str, kept: str) -> None:
    assert name_of(given_name) == kept


def test_without_a_name_the_type_and_then_the_kind_give_one() -> None:
    assert name_of(None) == "image.png"
    assert name_of(None, "application/x-unheard", MediaKind.VOICE) == "voice.ogg"
    assert name_of("😀", "", MediaKind.DOCUMENT) == "document.bin"


@given(st.text(max_size=300) | st.sampled_from(HOSTILE))
@example("a" * 400 + "." + "b" * 20)
def test_no_name_is_a_path_hidden_endless_or_an_option(name: str) -> None:
    safe = name_of(name)
    assert "/" not in safe and "\\" not in safe and "\0" not in safe and not safe.startswith((".", "-"))
    assert safe.isprintable() and len(safe.rpartition(".")[0]) <= 60 and len(safe.encode()) <= 200
    assert name_of(safe) == safe


def test_the_stored_name_tells_refs_of_equal_name_apart() -> None:
    def ref(ref_id: str) -> MediaRef:
        return MediaRef(
            platform="web", account="a", channel_id="c", message_id="m", item="0", kind=MediaKind.IMAGE,
            mime="image/png", created=datetime(2026, 1, 1, tzinfo=UTC), id=ref_id, file_name="image.png",
        )  # fmt: skip

    assert stored_name(ref("web_aaaaaaaaaaaa")) == "image---web_aaaaaaaaaaaa.png"
    assert stored_name(ref("web_bbbbbbbbbbbb")) == "image---web_bbbbbbbbbbbb.png"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "incoming"
    inside.mkdir()
    return inside


def blob(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / f"blob-{content.hex()[:16]}"
    path.write_bytes(content)
    return path


def test_a_copy_is_private_and_no_link_to_the_blob(folder: Path, tmp_path: Path) -> None:
    source = blob(tmp_path, b"bytes")
    copy = place(folder, "a.txt", source)
    assert copy == folder / "a.txt" and copy.read_bytes() == b"bytes"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert copy.stat().st_nlink == 1 and copy.stat().st_ino != source.stat().st_ino


def test_a_file_that_is_there_is_never_overwritten(folder: Path, tmp_path: Path) -> None:
    (folder / "a.txt").write_bytes(b"the agent's own work")
    assert place(folder, "a.txt", blob(tmp_path, b"one")) == folder / "a-2.txt"
    assert place(folder, "a.txt", blob(tmp_path, b"two")) == folder / "a-3.txt"
    assert (folder / "a.txt").read_bytes() == b"the agent's own work"


def test_an_equal_copy_is_used_again(folder: Path, tmp_path: Path) -> None:
    source = blob(tmp_path, b"same")
    assert place(folder, "a", source) == place(folder, "a", source)
    assert [path.name for path in folder.iterdir()] == ["a"]


def test_a_link_in_the_way_is_not_followed(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (folder / "a.txt").symlink_to(outside)
    (folder / "a-2.txt").hardlink_to(blob(tmp_path, b"x"))
    os.mkfifo(folder / "a-3.txt")
    assert place(folder, "a.txt", blob(tmp_path, b"x")) == folder / "a-4.txt"
    assert not outside.exists()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "incoming").symlink_to(elsewhere)
    with pytest.raises(StoreError, match="not a folder"):
        place(tmp_path / "incoming", "a", blob(tmp_path, b"x"))
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/x", "a\0b"])
def test_what_is_no_plain_name_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="no file name"):
        place(folder, name, blob(tmp_path, b"x"))


def test_a_copy_that_fails_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="ENOENT"):
        place(folder, "a.txt", tmp_path / "missing")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_written_inside_the_folder_or_nowhere(folder: Path, tmp_path: Path, name: str) -> None:
    source = blob(tmp_path, b"x")
    before = set(tmp_path.rglob("*"))
    copy = place(folder, name_of(name), source)
    assert set(tmp_path.rglob("*")) - before == {copy}
    assert copy.parent == folder


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
