"""A folder of blobs: where its files lie, and that only complete ones do."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from belino.domain.errors import StoreFull
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from blob_files import path_of
from storage.pieces import chunks


def files(home: Home) -> list[Path]:
    return [path for path in home.blobs.rglob("*") if path.is_file()]


async def test_a_full_disk_refuses_bytes_and_leaves_nothing(store: Store, home: Home) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
    try:
        with pytest.raises(StoreFull, match="disk is full"):
            await store.keep(chunks(b"x" * 2_000_000), mime="a/b", limit=10_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(home) == []
    assert (await store.keep(chunks(b"x" * 2_000_000), mime="a/b", limit=10_000_000)).size == 2_000_000


async def test_a_file_lies_in_folders_that_its_name_begins_with(store: Store, home: Home) -> None:
    blob = await store.keep(chunks(b"same"), mime="image/png", limit=10)
    assert files(home) == [path_of(store, blob)]
    assert path_of(store, blob).relative_to(home.blobs).parts == (blob.sha256[:2], blob.sha256[2:4], blob.sha256)


@pytest.mark.slow
async def test_a_process_killed_while_writing_leaves_nothing_to_be_seen(home: Home, clock: FakeClock) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from belino.storage.home import Home\n"
        "from belino.storage.store import open_store\n"
        "from belino.testing.clock import FakeClock\n"
        "async def endless():\n"
        "    while True:\n"
        "        yield b'x' * 1_000_000\n"
        "        print('piece', flush=True)\n"
        "async def main():\n"
        "    store = await open_store(Home.at(Path(sys.argv[1])), clock=FakeClock())\n"
        "    await store.keep(endless(), mime='a/b', limit=10**12)\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(home.path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(5):
        assert process.stdout.readline() == b"piece\n"
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert [path.parent.name for path in files(home)] == ["tmp"]
    store = await open_store(home, clock=clock)
    assert files(home) == []
    assert (await store.counts())["blobs"] == 0
    await store.close()
