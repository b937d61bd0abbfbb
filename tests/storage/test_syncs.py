"""What is acknowledged was synced first: bytes before they get their name, and the name before anybody is told."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from belino.domain.message import ConversationKey
from belino.storage.disk import MEMORY_BYTES, STRAIGHT_BYTES
from belino.storage.encryption import load_keys
from belino.storage.home import Home
from belino.storage.store import Store
from blob_files import content_of, path_of
from storage.pieces import chunks

MAIN = ConversationKey(platform="web", account="default", channel="main")


def inode(path: Path) -> int:
    return path.stat().st_ino


@dataclass(frozen=True, slots=True)
class Done:
    """A call that reached the disk, and the file or folder it was for."""

    call: str
    inode: int


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Done]:
    """Every write, sync and rename of this process from here on."""
    calls: list[Done] = []

    def noted(name: str, number: Callable[[Any], int]) -> None:
        real = getattr(os, name)

        def call(target: Any, *given: Any) -> Any:
            calls.append(Done(name, number(target)))
            return real(target, *given)

        monkeypatch.setattr(os, name, call)

    noted("write", lambda descriptor: os.fstat(descriptor).st_ino)
    noted("fsync", lambda descriptor: os.fstat(descriptor).st_ino)
    noted("rename", inode)
    return calls


@pytest.mark.parametrize("size", [5, MEMORY_BYTES + 2 * STRAIGHT_BYTES + 5])
async def test_a_blob_is_synced_before_it_gets_its_name_and_its_folder_before_it_is_told(
    store: Store, done: list[Done], size: int
) -> None:
    body = Random(1).randbytes(size)
    blob = await store.keep(
        chunks(*(body[at : at + 1_000_000] for at in range(0, size, 1_000_000))), mime="a/b", limit=size
    )
    assert await content_of(store, blob) == body
    file, folder = inode(path_of(store, blob)), inode(path_of(store, blob).parent)
    calls = [one.call for one in done if one.inode == file]
    assert calls == ["write"] * (len(calls) - 2) + ["fsync", "rename"]
    assert Done("fsync", folder) in done[done.index(Done("rename", file)) :]


async def test_a_new_folder_for_blobs_is_synced_with_the_one_it_lies_in(
    store: Store, home: Home, done: list[Done]
) -> None:
    blob = await store.keep(chunks(b"words"), mime="a/b", limit=10)
    above = path_of(store, blob).parent.parent
    assert {Done("fsync", inode(home.blobs)), Done("fsync", inode(above))} <= set(done)


async def test_each_piece_of_an_upload_is_synced_before_its_offset_is_told(
    store: Store, home: Home, done: list[Done]
) -> None:
    begun = await store.start_upload(MAIN, file_name="a", mime="a/b", size=6, sha256=None)
    await store.extend_upload(begun.id, 0, chunks(b"abc"))
    file = inode(home.blobs / "tmp" / f"upload-{begun.id}")
    assert [one.call for one in done if one.inode == file] == ["write", "fsync"]
    assert Done("fsync", inode(home.blobs / "tmp")) in done, "without its name, the bytes would be out of reach"
    upload = await store.extend_upload(begun.id, 3, chunks(b"def"))
    assert [one.call for one in done if one.inode == file] == ["write", "fsync", "write", "fsync", "rename"]
    blob = await store.blob(upload.sha256 or "")
    assert blob is not None
    assert Done("fsync", inode(path_of(store, blob).parent)) in done[done.index(Done("rename", file)) :]


def test_a_new_key_is_whole_and_synced_before_it_gets_its_name(tmp_path: Path, done: list[Done]) -> None:
    (tmp_path / "key.new").write_bytes(b"left by a start that was cut off")
    load_keys(tmp_path / "key")
    file = inode(tmp_path / "key")
    assert [one.call for one in done if one.inode == file] == ["write", "fsync", "rename"]
    assert Done("fsync", inode(tmp_path)) in done[done.index(Done("rename", file)) :]
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
