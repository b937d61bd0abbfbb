"""Opening and closing the store, and who may look into it."""

import asyncio
import gc
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing

import pytest

from belino.domain.errors import StoreError, StoreInUse
from belino.domain.media import MediaRef
from belino.domain.message import Author, Message, Quote
from belino.domain.outcome import Standing
from belino.domain.stored import Verdict
from belino.storage import sqlite
from belino.storage.database import Tx
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)


async def test_a_second_gateway_is_refused_and_told_which_process_has_the_folder(
    store: Store, home: Home, clock: FakeClock
) -> None:
    with pytest.raises(StoreInUse, match=f"in use by another gateway \\(process {os.getpid()}\\)"):
        await open_store(home, clock=clock)
    await store.close()
    await (await open_store(home, clock=clock)).close()


@pytest.mark.slow
async def test_the_lock_goes_with_a_killed_process(home: Home, clock: FakeClock) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import asyncio, sys\n"
            "from pathlib import Path\n"
            "from belino.storage.home import Home\n"
            "from belino.storage.store import open_store\n"
            "from belino.testing.clock import FakeClock\n"
            "async def main():\n"
            "    store = await open_store(Home.at(Path(sys.argv[1])), clock=FakeClock())\n"
            "    print('open', flush=True)\n"
            "    sys.stdin.read()\n"
            "asyncio.run(main())\n",
            str(home.path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StoreInUse, match=f"process {holder.pid}"):
            await open_store(home, clock=clock)
    finally:
        holder.kill()
        holder.communicate(timeout=60)
    await (await open_store(home, clock=clock)).close()


async def test_it_survives_a_power_cut_by_its_settings(store: Store) -> None:
    def settings(connection: Tx) -> tuple[str, int]:
        (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        return journal, synchronous

    assert await store._database.write(settings) == ("wal", 2)  # 2 is FULL


async def test_folders_are_0700_and_files_0600_whatever_the_umask(
    home: Home, clock: FakeClock, say: Callable[..., Message]
) -> None:
    before = os.umask(0)
    try:
        store = await open_store(home, clock=clock)
        await store.take_in(say("1"), ANSWER)
        await store.keep(_bytes(b"picture"), mime="image/png", limit=100)
        upload = await store.start_upload(say("1").conversation, file_name="a", mime="a/b", size=4, sha256=None)
        await store.extend_upload(upload.id, 0, _bytes(b"ab"))
        home.outgoing(say("1").conversation)
        modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in home.path.rglob("*")}
        await store.close()
    finally:
        os.umask(before)
    assert {path.name for path in modes} >= {"belino.db", "belino.db-wal", "key", "belino.lock", f"upload-{upload.id}"}
    wrong = {path: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)}
    assert wrong == {}


async def test_a_sealed_value_is_in_no_file_of_the_state_folder(
    store: Store, home: Home, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    ref = photo("1", sealed={"media_key": "CANARY-OF-THE-MEDIA"}, locator={"file_id": "VISIBLE-LOCATOR"})
    taken = await store.take_in(say("1", media=(ref,)), ANSWER)
    record = await store.ref(say("1").conversation, taken.refs[0].id)
    assert record is not None
    assert record.ref.sealed == {"media_key": "CANARY-OF-THE-MEDIA"}
    assert "CANARY" not in repr(record)
    everything = b"".join(path.read_bytes() for path in home.path.rglob("*") if path.is_file())
    assert b"VISIBLE-LOCATOR" in everything  # the search itself works
    assert b"CANARY" not in everything


async def test_half_a_surrogate_pair_is_stored_with_a_mark_instead_of_being_offered_for_ever(
    store: Store, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    ref = photo("1", caption="\udfff", locator={"file_id": "\ud800"})
    said = say(
        "1", "half \ud83d a pair", media=(ref,), author=Author(id="x", name="\ud800"), quote=Quote(text="\ud800")
    )
    await store.take_in(said, ANSWER, cursor="\ud800")
    (message,) = await store.history(say("1").conversation)
    assert message.text == "half ? a pair"
    assert message.author.name == "?"
    assert message.media[0].caption == "?"
    assert message.quote == Quote(text="?")
    assert await store.cursor("web", "default") == "?"


async def test_an_absurd_size_is_no_size(
    store: Store, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    await store.take_in(say("1", media=(photo("1", size=2**70, width=-1, height=3),)), ANSWER)
    (message,) = await store.history(say("1").conversation)
    assert (message.media[0].size, message.media[0].width, message.media[0].height) == (None, None, 3)


async def test_a_damaged_database_is_a_clear_refusal(home: Home, clock: FakeClock) -> None:
    home.database.write_bytes(b"this is no database" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        await open_store(home, clock=clock)


async def test_what_was_stored_is_there_after_a_restart(
    home: Home, clock: FakeClock, say: Callable[..., Message]
) -> None:
    store = await open_store(home, clock=clock)
    await store.take_in(say("1", "before"), ANSWER, cursor="41")
    await store.close()
    store = await open_store(home, clock=clock)
    await store.take_in(say("2", "after"), ANSWER)
    history = await store.history(say("1").conversation)
    assert [(message.seq, message.text) for message in history] == [(1, "before"), (2, "after")]
    assert await store.cursor("web", "default") == "41"
    await store.close()


async def test_a_closed_store_says_so(store: Store, say: Callable[..., Message]) -> None:
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.take_in(say("1"), ANSWER)


def test_names_with_a_percent_or_a_question_mark_in_the_path_are_opened(home: Home) -> None:
    odd = Home.at(home.path / "100% odd?#name")
    with closing(sqlite3.connect(odd.database)) as connection:
        connection.execute("CREATE TABLE a (x)")
    from belino.storage.sqlite import connect

    with closing(connect(odd.database, read_only=True)) as connection:
        assert connection.execute("SELECT count(*) FROM a").fetchone()[0] == 0


async def _bytes(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_check_that_is_given_up_leaves_no_error_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def interrupted(connection: sqlite3.Connection) -> str:
        begun.set()
        ended.wait()
        raise sqlite3.OperationalError("interrupted")

    monkeypatch.setattr(sqlite, "quick_check", interrupted)
    unseen: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    checking = asyncio.create_task(store.check_database())
    await asyncio.to_thread(begun.wait)
    checking.cancel()
    ended.set()
    await asyncio.wait([checking])
    assert checking.cancelled()
    del checking
    gc.collect()
    assert unseen == []
