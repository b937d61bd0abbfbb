"""Files beneath a folder that is held open: what leaves it is refused, and what was looked at is what is read."""

import gc
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from belino.domain.errors import MediaError, MediaNotFound, MediaRefused, StoreError
from belino.media import jail as module
from belino.media.jail import Jail, lend_below

SECRET = b"secret-5f0c1b"
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Openat2 = Callable[[int, str, int], int]


@pytest.fixture(params=["openat2", "walking"], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with the kernel's own way, once as on a kernel that lacks it."""
    if request.param == "walking":

        def missing(handle: int, path: str, flags: int) -> int:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(module, "_openat2", missing)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "here-too").mkdir()
    (tmp_path / "here-too" / "secret.txt").write_bytes(SECRET)
    here = tmp_path / "here"
    (here / "inner").mkdir(parents=True)
    (here / "inner" / "file.txt").write_bytes(b"fine")
    return here


async def content(folder: Path, path: str) -> bytes:
    with Jail(folder) as beneath, beneath.open(path) as file:
        return b"".join([piece async for piece in file.pieces()])


async def test_a_plain_file_is_read(folder: Path) -> None:
    assert await content(folder, "inner/file.txt") == b"fine"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "inner/../../secret.txt",
        "../here-too/secret.txt",
        "/etc/hostname",
        "./inner/file.txt",
        "inner//file.txt",
        "inner/",
        "",
        ".",
        "..",
        "inner/file.txt\0.png",
        "%2e%2e/secret.txt",
        "..\\secret.txt",
        "~/secret.txt",
        "file:///etc/hostname",
        "//host/share",
        "x" * 300,
        "inner/file.txt/more",
    ],
)
async def test_what_is_not_a_name_beneath_names_nothing(folder: Path, path: str) -> None:
    with pytest.raises(MediaNotFound):
        await content(folder, path)


@contextmanager
def planted(folder: Path, kind: str) -> Iterator[str]:
    bait = folder / "bait"
    match kind:
        case "link":
            bait.symlink_to(folder.parent / "secret.txt")
        case "relative link":
            bait.symlink_to("../secret.txt")
        case "link to what is inside":
            bait.symlink_to("inner/file.txt")
        case "hard link":
            os.link(folder.parent / "secret.txt", bait)
        case "pipe":
            os.mkfifo(bait)
        case "folder":
            bait.mkdir()
        case "magic link":
            bait.symlink_to("/proc/self/cwd/pyproject.toml")
        case "device":
            bait.symlink_to("/dev/zero")
    yield "bait"


@pytest.mark.parametrize(
    "kind",
    ["link", "relative link", "link to what is inside", "hard link", "pipe", "folder", "magic link", "device"],
)
async def test_what_is_no_plain_file_is_refused(folder: Path, kind: str) -> None:
    with planted(folder, kind) as path, pytest.raises(MediaRefused):
        await content(folder, path)


async def test_a_folder_on_the_way_that_is_a_link_is_refused(folder: Path) -> None:
    (folder / "way").symlink_to(folder.parent)
    with pytest.raises(MediaError):
        await content(folder, "way/secret.txt")


def test_a_folder_that_is_a_link_is_not_held(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    with pytest.raises(StoreError):
        Jail(folder.parent / "link")


async def test_a_file_that_is_written_to_while_it_is_read_is_refused(folder: Path) -> None:
    with Jail(folder) as beneath, beneath.open("inner/file.txt") as file:
        pieces = file.pieces()
        assert await anext(pieces) == b"fine"
        with (folder / "inner" / "file.txt").open("ab") as other:
            other.write(b" no more")
        with pytest.raises(MediaRefused, match="changed while it was read"):
            b"".join([piece async for piece in pieces])


async def test_a_file_that_grows_as_fast_as_it_is_read_is_not_followed(folder: Path) -> None:
    path = folder / "inner" / "file.txt"
    read = 0
    refused = pytest.raises(MediaRefused, match="changed while it was read")
    with Jail(folder) as beneath, beneath.open("inner/file.txt") as file, refused:
        async for piece in file.pieces():
            read += len(piece)
            assert read < 100
            with path.open("ab") as more:
                more.write(b"more")
    assert read == len(b"finemore")


async def test_no_swap_of_names_lets_anything_from_outside_through(folder: Path) -> None:
    """Somebody renames a link over the file, and back, as fast as they can."""
    target, link, plain = folder / "inner" / "file.txt", folder / "link", folder / "plain"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            link.symlink_to(folder.parent / "secret.txt")
            link.rename(target)
            plain.write_bytes(b"fine")
            plain.rename(target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    read = refused = 0
    try:
        while read < 200 or refused < 20:
            try:
                assert await content(folder, "inner/file.txt") == b"fine"
                read += 1
            except MediaError:
                refused += 1
    finally:
        stop.set()
        swapper.join()


def test_links_and_pipes_are_listed_as_what_they_are_and_not_followed(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe")
    os.link(folder.parent / "secret.txt", folder / "hard")
    (folder / "inner" / "deeper").mkdir()
    (folder / "inner" / "deeper" / "one.txt").write_bytes(b"1")
    (folder / "way").symlink_to(folder / "inner")
    with Jail(folder.parent) as beneath:
        seen = {one.path: one.plain for one in beneath.files("here", most=100)}
        assert seen == {
            "here/hard": False,
            "here/link": False,
            "here/pipe": False,
            "here/way": False,
            "here/inner/file.txt": True,
            "here/inner/deeper/one.txt": True,
        }
        assert len(list(beneath.files("here", most=2))) == 2
        assert not list(beneath.files("gone", most=2))


def test_a_moved_file_overwrites_nothing_and_is_dated(folder: Path) -> None:
    (folder / "there").mkdir()
    (folder / "there" / "file.txt").write_bytes(b"older")
    with Jail(folder) as beneath:
        assert beneath.move("inner/file.txt", "there", at=NOW) == "file-2.txt"
    assert (folder / "there" / "file.txt").read_bytes() == b"older"
    moved = folder / "there" / "file-2.txt"
    assert moved.read_bytes() == b"fine"
    assert moved.stat().st_mtime == NOW.timestamp()


def test_what_we_write_goes_through_no_link(folder: Path) -> None:
    (folder / "inner" / "note").symlink_to(folder.parent / "secret.txt")
    with Jail(folder) as beneath:
        beneath.write("inner/note", "ours")
        beneath.write("inner/reason.txt", "ours")
        beneath.remove("inner/note")
        beneath.remove("inner/note")
    assert (folder.parent / "secret.txt").read_bytes() == SECRET
    assert (folder / "inner" / "reason.txt").stat().st_mode & 0o777 == 0o600


async def test_opened_files_leave_nothing_to_the_garbage_collector(folder: Path) -> None:
    await content(folder, "inner/file.txt")
    gc.collect()
    with Jail(folder) as beneath:
        for _ in range(100):
            with beneath.open("inner/file.txt"):
                pass
    assert gc.collect() < 100


async def some(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_a_lent_file_keeps_its_name_and_is_gone_afterwards_also_after_an_error(tmp_path: Path) -> None:
    async with lend_below(tmp_path, "../report.pdf", some(b"pages")) as lent:
        assert (lent.name, lent.read_bytes(), lent.stat().st_mode & 0o777) == ("_report.pdf", b"pages", 0o640)
        assert lent.is_relative_to(tmp_path)
    with pytest.raises(RuntimeError):
        async with lend_below(tmp_path, "a.txt", some(b"a")):
            raise RuntimeError
    assert list(tmp_path.iterdir()) == []


async def test_what_a_killed_process_had_lent_is_removed_after_an_hour(tmp_path: Path) -> None:
    for name, age in (("belino-old", 4_000), ("belino-young", 10), ("others", 4_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_bytes(b"a")
        os.utime(tmp_path / name, (time.time() - age, time.time() - age))
    async with lend_below(tmp_path, "b.txt", some(b"b")) as lent:
        assert sorted(each.name for each in tmp_path.iterdir()) == sorted([lent.parent.name, "belino-young", "others"])


async def test_a_shared_folder_that_cannot_be_written_to_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="the shared folder cannot be written to"):
        async with lend_below(tmp_path / "missing", "a.txt", some(b"a")):
            raise AssertionError
