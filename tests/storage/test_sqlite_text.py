"""Every text is read from SQLite as it was written, and most databases never pay for that."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.domain.message import ChatType, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.stored import Verdict
from belino.storage.audit import audit_home
from belino.storage.database import Tx
from belino.storage.home import Home
from belino.storage.sqlite import SqliteTx, connect, migrate, snapshot
from belino.storage.sqlite_text import SqliteText
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from storage.test_text_escape import ANY_TEXT

MAIN = ConversationKey(platform="web", account="default", channel="main")
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
HALF = "half \ud83d a pair, and \0"
CURSOR = "SELECT cursor FROM cursors WHERE platform = ? AND account = ?"


def keep(name: str, text: str) -> Callable[[Tx], None]:
    def work(tx: Tx) -> None:
        tx.execute("INSERT INTO cursors (platform, account, cursor) VALUES (?, ?, ?)", ("web", name, text))

    return work


def marks(home: Home) -> list[str]:
    with closing(sqlite3.connect(home.database)) as connection:
        return [row[0] for row in connection.execute("SELECT mark FROM text_escape")]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(ANY_TEXT, min_size=1, max_size=4, unique=True), min_size=1, max_size=4))
def test_any_text_is_read_as_it_was_written(batches: list[list[str]]) -> None:
    """By its writer, by readers, as an argument, and after a restart."""

    def all_of(tx: Tx) -> dict[str, str]:
        return {row["id"]: row["note"] for row in tx.execute("SELECT id, note FROM grants")}

    def insert(tx: Tx, rows: list[tuple[str, bytes, str]]) -> None:
        tx.many("INSERT INTO grants (id, hash, kind, note, created) VALUES (?, ?, 'link', ?, 0)", rows)

    def find(tx: Tx, text: str) -> list[str]:
        return [row["note"] for row in tx.execute("SELECT note FROM grants WHERE id = ?", (text,))]

    async def run(home: Home) -> None:
        store = await open_store(home, clock=FakeClock())
        written: dict[str, str] = {}
        for batch in batches:
            rows = [(text, text.encode("utf-8", "surrogatepass"), text) for text in batch if text not in written]
            await store._database.write(partial(insert, rows=rows))
            written |= {text: text for text in batch}
            assert await store._database.read(all_of) == written
            assert await store._database.write(all_of) == written
        await store.close()
        store = await open_store(home, clock=FakeClock())
        for text in written:
            assert await store._database.read(partial(find, text=text)) == [text]
        await store.close()
        with snapshot(home.database) as tx:
            assert all_of(tx) == written

    with TemporaryDirectory() as folder:
        asyncio.run(run(Home.at(Path(folder) / "state")))


async def test_a_database_without_such_text_has_no_mark(store: Store, home: Home) -> None:
    await store.keep_cursor("web", "default", "Grüße \0 🌄")
    assert await store.cursor("web", "default") == "Grüße \0 🌄"
    assert await store.cursor("web", HALF) is None
    assert marks(home) == []
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("SELECT cursor FROM cursors").fetchall() == [("Grüße \0 🌄",)]


async def test_a_question_with_such_text_does_not_slow_its_connection_down(store: Store) -> None:
    def factory(tx: Tx) -> object:
        assert isinstance(tx, SqliteTx)
        return tx._connection.text_factory

    assert await store.cursor("web", HALF) is None
    assert await store._database.read(factory) is str


async def test_one_job_of_a_batch_brings_the_first_such_text(
    store: Store, home: Home, held_up: Callable[[], AbstractAsyncContextManager[None]]
) -> None:
    texts = {"a": "plain", "b": HALF, "c": "\udfff", "d": "plain again"}
    async with held_up():
        jobs = [asyncio.ensure_future(store._database.write(keep(name, text))) for name, text in texts.items()]
        jobs.append(asyncio.ensure_future(store._database.write(keep("a", "twice"))))
    *_, refused = await asyncio.gather(*jobs, return_exceptions=True)
    assert isinstance(refused, Exception)
    assert {name: await store.cursor("web", name) for name in texts} == texts
    assert len(marks(home)) == 1


async def test_a_job_that_fails_all_the_same_leaves_no_mark(store: Store, home: Home) -> None:
    def fails(tx: Tx) -> None:
        keep("a", HALF)(tx)
        "\ud800".encode()

    with pytest.raises(UnicodeEncodeError):
        await store._database.write(fails)
    assert marks(home) == []
    await store.keep_cursor("web", "b", "plain")
    await store.keep_cursor("web", "c", HALF)
    assert len(marks(home)) == 1
    assert [await store.cursor("web", name) for name in "abc"] == [None, "plain", HALF]


async def test_a_commit_that_fails_leaves_no_mark(store: Store, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(name: str) -> None:
        if name == "store.commit.before" and armed:
            raise OSError("the disk is gone")

    armed = True
    monkeypatch.setattr("belino.storage.sqlite.failpoint", break_down)
    with pytest.raises(Exception, match="cannot be used"):
        await store.keep_cursor("web", "a", HALF)
    armed = False
    assert marks(home) == []
    await store.keep_cursor("web", "a", HALF)
    assert await store.cursor("web", "a") == HALF
    assert len(marks(home)) == 1


async def test_a_reader_that_began_before_the_first_such_text_reads_it_right(store: Store) -> None:
    """SQLite takes a reader's view at its first statement, not at its BEGIN."""
    loop = asyncio.get_running_loop()
    runs = 0

    def work(tx: Tx) -> str | None:
        nonlocal runs
        runs += 1
        if runs == 1:
            asyncio.run_coroutine_threadsafe(store.keep_cursor("web", "a", HALF), loop).result(60)
        row = tx.execute(CURSOR, ("web", "a")).fetchone()
        return None if row is None else str(row[0])

    assert await store._database.read(work) == HALF
    assert runs == 2


async def test_a_text_that_contains_the_mark_or_looks_like_an_escape_is_itself(store: Store, home: Home) -> None:
    early = "\x1a0041 and \x1a-"
    await store.keep_cursor("web", "early", early)
    await store.keep_cursor("web", "first", HALF)
    (mark,) = marks(home)
    forged = f"{mark}0041{mark}-{mark}"
    await store.keep_cursor("web", "forged", forged)
    assert [await store.cursor("web", name) for name in ("early", "first", "forged")] == [early, HALF, forged]


async def test_the_name_of_a_file_and_the_id_of_a_channel_are_kept_as_they_are(store: Store) -> None:
    place = ConversationKey(platform="web", account="default", channel="c\udcff")
    await store.open_conversation(place, name="caf\udce9", chat_type=ChatType.GROUP)
    assert [(one.conversation, one.name) for one in await store.conversations()] == [(place, "caf\udce9")]
    upload = await store.start_upload(MAIN, file_name="caf\udce9.txt", mime="text/plain", size=1, sha256=None)
    found = await store.upload(upload.id)
    assert found is not None
    assert found.file_name == "caf\udce9.txt"


async def test_another_process_reads_such_text_too(store: Store, home: Home, say: Callable[..., Message]) -> None:
    await store.take_in(say("1"), OBSERVE)
    await store._database.write(lambda tx: tx.execute("UPDATE arrivals SET account = ?", (HALF,)))
    assert f"web:{HALF}" in {balance.name for balance in audit_home(home).arrivals}


def test_damaged_text_is_an_error_of_the_database(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch()
    with closing(connect(path)) as connection:
        migrate(connection)
        tx = SqliteTx(connection, SqliteText())
        with pytest.raises(sqlite3.OperationalError, match="decode"):
            tx.execute("SELECT CAST(x'ff' AS TEXT)").fetchone()
