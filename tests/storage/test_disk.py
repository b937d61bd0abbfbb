"""Every byte of a file arrives in its place, whichever way it takes."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from belino.storage import disk
from belino.storage.disk import FileWriter

BLOCK = 4096
MEMORY = 4 * BLOCK
STRAIGHT = 2 * BLOCK

Write = Callable[[int, Any], int]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "MEMORY_BYTES", MEMORY)
    monkeypatch.setattr(disk, "STRAIGHT_BYTES", STRAIGHT)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    made = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    yield made
    os.close(made)


def body(size: int) -> bytes:
    return b"".join(number.to_bytes(4) for number in range(size // 4 + 1))[:size]


def pour(descriptor: int, content: bytes, step: int) -> bytes:
    """What lies in the file once all was written, piece by piece."""
    made = FileWriter(descriptor)
    for at in range(0, len(content), step):
        made.write(content[at : at + step])
    made.flush()
    return os.pread(descriptor, 2 * len(content) + 1, 0)


def is_straight(descriptor: int) -> bool:
    return bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & getattr(os, "O_DIRECT", 0))


@pytest.mark.parametrize("step", [1021, BLOCK, 3 * STRAIGHT])
@pytest.mark.parametrize(
    "size", [0, 1, MEMORY - 1, MEMORY, MEMORY + 1, MEMORY + STRAIGHT, MEMORY + STRAIGHT + 1, 2 * MEMORY + 5]
)
def test_a_file_of_any_size_is_written_as_it_came(descriptor: int, size: int, step: int) -> None:
    content = body(size)
    assert pour(descriptor, content, step) == content
    assert not is_straight(descriptor)


def test_where_no_write_goes_past_memory_all_go_through_it(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_STRAIGHT", 0)
    content = body(3 * MEMORY + 7)
    assert pour(descriptor, content, 1021) == content


def _refusing(write: Write, descriptor: int) -> Write:
    def refuse(target: int, piece: Any) -> int:
        if is_straight(descriptor):
            raise OSError(errno.EINVAL, "Invalid argument")
        return write(target, piece)

    return refuse


def _halving(write: Write, descriptor: int) -> Write:
    def halve(target: int, piece: Any) -> int:
        whole = memoryview(piece)
        return write(target, whole[: max(len(whole) // 2, 1)])

    return halve


@pytest.mark.parametrize("trouble", [_refusing, _halving])
def test_what_was_not_taken_on_one_way_goes_the_other(
    descriptor: int, monkeypatch: pytest.MonkeyPatch, trouble: Callable[[Write, int], Write]
) -> None:
    monkeypatch.setattr("belino.storage.disk.os.write", trouble(os.write, descriptor))
    content = body(2 * MEMORY + 5)
    assert pour(descriptor, content, 1021) == content


def test_a_full_disk_is_told(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    written = os.write

    def fill(target: int, piece: Any) -> int:
        if os.fstat(target).st_size >= MEMORY:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(target, piece)

    monkeypatch.setattr("belino.storage.disk.os.write", fill)
    with pytest.raises(OSError, match="No space"):
        pour(descriptor, body(2 * MEMORY), BLOCK)
