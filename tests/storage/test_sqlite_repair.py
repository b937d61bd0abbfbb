"""A damaged database is salvaged into a new one: what can be read is kept, the old file too, and nothing is made up."""

import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from belino.domain.audit import Repaired
from belino.domain.errors import StoreDamaged, StoreError, StoreIncomplete, StoreInUse, StoreTooNew
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, Deletion, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.reply import Parcel, ParcelState
from belino.domain.stored import GrantKind, ScreenedArrival, Verdict
from belino.storage.audit import audit_home
from belino.storage.home import Home
from belino.storage.migrations import STEPS
from belino.storage.sqlite import migrate
from belino.storage.sqlite_repair import repair
from belino.storage.store import Store, open_store
from belino.testing.clock import START, FakeClock
from blob_files import content_of
from storage.conftest import MAIN
from storage.pieces import chunks, read_aloud

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
PAGE = 4096
MESSAGES = 300
ANEW = {"search_segments", "search_blocks", "search_stale", "reading_words", "leases", "sqlite_sequence"}
MADE_AGAIN = {("messages", "short"), ("messages", "short_chars")}
Rows = dict[str, set[tuple[object, ...]]]


@pytest.fixture
async def filled(home: Home, clock: FakeClock, say: Callable[..., Message], photo: Callable[..., MediaRef]) -> Home:
    """A state folder with some of everything, rows longer than a page among it, that nobody has open."""
    store = await open_store(home, clock=clock)
    await fill(store, say, photo)
    await store.close()
    return home


@pytest.fixture
async def killed(
    home: Home, clock: FakeClock, tmp_path: Path, say: Callable[..., Message], photo: Callable[..., MediaRef]
) -> Home:
    """The same as a kill leaves it, with all commits in the write-ahead log; `home` is closed cleanly."""
    store = await open_store(home, clock=clock)
    await fill(store, say, photo)
    killed = Home.at(tmp_path / "killed")
    for name in ("belino.db", "belino.db-wal", "key"):
        shutil.copy(home.path / name, killed.path / name)
    await store.close()
    return killed


async def fill(store: Store, say: Callable[..., Message], photo: Callable[..., MediaRef]) -> None:
    blob = await store.keep(chunks(b"picture"), mime="image/png", limit=100)
    said = []
    for number in range(MESSAGES):
        text = f"message {number} " + "word " * (3000 if number % 50 == 7 else number % 60)
        media = (photo(str(number), sha256=blob.sha256),) if number % 10 == 0 else ()
        said.append(say(str(number), text, media=media))
    await take_in(store, said)
    await read_aloud(store, (await store.refs(None))[0].ref)
    await store.put_parcels((Parcel(key="waiting", conversation=MAIN, text="an answer"),))
    await store.grant(GrantKind.PROGRAM, note="a program")


async def take_in(store: Store, arrivals: Sequence[Arrival]) -> None:
    await store.take_in_all([ScreenedArrival(arrival=arrival, verdict=OBSERVE) for arrival in arrivals])


def rows_of(database: Path) -> Rows:
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        kept = [name for (name,) in tables if name not in ANEW]
        return {name: set(connection.execute(f'SELECT {columns(connection, name)} FROM "{name}"')) for name in kept}


def columns(connection: sqlite3.Connection, table: str) -> str:
    """The columns of a table that are not made again from the others."""
    found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return ", ".join(f'"{name}"' for (name,) in found if (table, name) not in MADE_AGAIN)


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def kept_of(done: Repaired, table: str) -> int:
    return next(one.kept for one in done.tables if one.name == table)


def but_for_parcels(rows: Rows) -> Rows:
    return {name: found for name, found in rows.items() if name != "parcels"}


async def opens(home: Home, clock: FakeClock) -> None:
    """The store takes the database, finds it whole and answers."""
    store = await open_store(home, clock=clock)
    try:
        assert await store.check_database() == ""
        await store.history(MAIN)
        await store.refs(None)
        await store.tidy()
    finally:
        await store.close()


async def test_a_database_whose_header_is_lost_is_salvaged_whole(filled: Home, clock: FakeClock) -> None:
    before = rows_of(filled.database)
    overwrite(filled.database, 0, bytes(100))
    damaged = filled.database.read_bytes()
    with pytest.raises(StoreDamaged, match=r"file is not a database.*belino doctor --repair.*belino restore DIR"):
        await open_store(filled, clock=clock)
    done = repair(filled, now=clock.now())
    assert but_for_parcels(rows_of(filled.database)) == but_for_parcels(before)
    assert all(table.lost == table.bad_pages == 0 for table in done.tables)
    assert done.old is not None
    assert done.old.read_bytes() == damaged
    assert {stat.S_IMODE(path.stat().st_mode) for path in (done.old, filled.database)} == {0o600}
    await opens(filled, clock)


async def test_what_may_have_been_sent_already_waits_for_a_person(filled: Home, clock: FakeClock) -> None:
    overwrite(filled.database, 0, bytes(100))
    assert repair(filled, now=clock.now()).held == 1
    store = await open_store(filled, clock=clock)
    try:
        (parcel,) = await store.parcels()
        assert parcel.state is ParcelState.HELD
        assert "belino outbox retry" in parcel.reason
    finally:
        await store.close()


async def test_a_lost_first_page_costs_nothing_but_itself(filled: Home, clock: FakeClock) -> None:
    before = rows_of(filled.database)
    overwrite(filled.database, 0, os.urandom(PAGE))
    repair(filled, now=clock.now())
    assert but_for_parcels(rows_of(filled.database)) == but_for_parcels(before)
    await opens(filled, clock)


@pytest.mark.parametrize("seed", range(12))
async def test_garbage_in_some_pages_costs_only_what_they_held(filled: Home, clock: FakeClock, seed: int) -> None:
    before, rng = rows_of(filled.database), random.Random(seed)
    pages = filled.database.stat().st_size // PAGE
    for page in rng.sample(range(1, pages), 3):
        overwrite(filled.database, page * PAGE + rng.choice((0, 0, 1000)), rng.randbytes(rng.choice((PAGE, 600))))
    try:
        done = repair(filled, now=clock.now())
    except StoreError as error:
        pytest.fail(str(error))
    after = rows_of(filled.database)
    if done.was_damaged:
        for table in ("messages", "refs", "channels", "grants", "message_refs", "blobs"):
            assert after[table] <= before[table], f"{table} has rows that were never there"
        assert kept_of(done, "messages") == len(after["messages"])
        if after["conversations"] == before["conversations"] and after["channels"] == before["channels"]:
            assert len(after["messages"]) >= MESSAGES - 3 * 60
        arrivals = [
            balance for balance in audit_home(filled).balances if balance.name not in ("attachments", "parcels")
        ]
        assert not any(balance.difference for balance in arrivals)
    await opens(filled, clock)


async def test_a_file_that_ends_too_early_gives_what_is_in_it(filled: Home, clock: FakeClock) -> None:
    before = rows_of(filled.database)
    size = filled.database.stat().st_size
    os.truncate(filled.database, size * 4 // 5 + 100)
    done = repair(filled, now=clock.now())
    after = rows_of(filled.database)
    assert after["messages"] < before["messages"]
    assert len(after["messages"]) > MESSAGES // 4
    assert any(table.bad_pages for table in done.tables)
    await opens(filled, clock)


async def test_rows_below_a_lost_page_are_found_and_deleted_ones_stay_deleted(
    home: Home, clock: FakeClock, say: Callable[..., Message]
) -> None:
    store = await open_store(home, clock=clock)
    numbers = range(2 * MESSAGES)
    await take_in(store, [say(str(number), f"number {number} " * 20) for number in numbers])
    gone = [
        Deletion(conversation=MAIN, id=f"d{number}", message_id=str(number), author=None, sent=START)
        for number in numbers[:MESSAGES]
    ]
    await take_in(store, gone)
    await store.close()
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("DELETE FROM messages WHERE deleted IS NOT NULL")  # pages full of rows become free
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").fetchone()
        assert connection.execute("PRAGMA freelist_count").fetchone()[0] > 1
        connection.commit()
    left = rows_of(home.database)["messages"]
    overwrite(home.database, (root - 1) * PAGE, os.urandom(PAGE))
    repair(home, now=clock.now())
    assert rows_of(home.database)["messages"] == left
    await opens(home, clock)


async def test_commits_that_lie_only_in_the_write_ahead_log_are_salvaged(
    home: Home, killed: Home, clock: FakeClock
) -> None:
    os.truncate(killed.database, 0)
    with pytest.raises(StoreIncomplete, match=r"its write-ahead log belino\.db-wal exists"):
        await open_store(killed, clock=clock)
    done = repair(killed, now=clock.now())
    assert but_for_parcels(rows_of(killed.database)) == but_for_parcels(rows_of(home.database))
    assert done.old is not None
    assert done.old.with_name(f"{done.old.name}-wal").stat().st_size > 0


async def test_a_repair_that_was_killed_between_its_renames_loses_nothing(
    home: Home, killed: Home, clock: FakeClock
) -> None:
    overwrite(killed.database, 0, bytes(100))
    os.link(killed.database, killed.path / "belino.db.before-20260101-120000-abcd")
    (killed.path / "belino.db-wal").rename(killed.path / "belino.db.before-20260101-120000-abcd-wal")
    repair(killed, now=clock.now())
    assert rows_of(killed.database)["messages"] == rows_of(home.database)["messages"]


async def test_blobs_keep_their_rows_though_the_table_of_uses_is_lost(
    filled: Home, clock: FakeClock, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(filled.database)) as connection:
        roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'").fetchall())
    for table in ("blob_uses", "blobs"):
        overwrite(filled.database, (roots[table] - 1) * PAGE, os.urandom(PAGE))
    repair(filled, now=clock.now())
    clock.shift(2 * 3600)
    store = await open_store(filled, clock=clock)
    try:
        assert (await store.tidy()).total == 0
        records = await store.refs(MAIN)
        assert {record.outcome for record in records} == {MediaOutcome.HELD}
        blob = await store.blob(records[0].ref.sha256 or "")
        assert blob is not None
        assert await content_of(store, blob) == b"picture"
    finally:
        await store.close()


async def test_bytes_whose_use_cannot_be_told_stay_on_disk(filled: Home, clock: FakeClock) -> None:
    with closing(sqlite3.connect(filled.database)) as connection:
        roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'").fetchall())
        connection.execute("UPDATE refs SET sha256 = NULL")
        connection.commit()
    overwrite(filled.database, (roots["blob_uses"] - 1) * PAGE, os.urandom(PAGE))
    repair(filled, now=clock.now())
    store = await open_store(filled, clock=clock)
    try:
        clock.shift(2 * 3600)
        assert (await store.tidy()).strays == 1
    finally:
        await store.close()
    assert len(list(filled.blobs.glob("??/??/*"))) == 1


async def test_an_older_database_is_salvaged_and_brought_up_to_date(home: Home, clock: FakeClock) -> None:
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        migrate(connection, STEPS[:5])
        connection.execute("INSERT INTO channels VALUES (1, 'web', 'default', 'main', 'Main', 'direct', 0, 0)")
        connection.execute("INSERT INTO conversations VALUES (1, 1, '', 'Main', 0, 0)")
        connection.executemany(
            "INSERT INTO messages (id, channel, conversation, kind, platform_id, author_id, author_name, author_marks, "
            "sent, received, text, standing, outcome, reason, trace) "
            "VALUES (?, 1, 1, 'message', ?, 'a', 'A', 0, 0, 0, 'hi', 'observed', 'observed', '', '')",
            [((1 << 40) + number, str(number)) for number in range(1, 201)],
        )
    for at, content in ((60, b"\xff" * 4), (0, bytes(16))):
        overwrite(home.database, at, content)
    home.key_file.write_bytes(os.urandom(32))
    done = repair(home, now=clock.now())
    assert kept_of(done, "messages") == 200
    store = await open_store(home, clock=clock)
    try:
        assert len(await store.history(MAIN, limit=500)) == 200
    finally:
        await store.close()


def test_a_whole_database_is_left_as_it_is(filled: Home, clock: FakeClock) -> None:
    before = filled.database.read_bytes()
    assert repair(filled, now=clock.now()) == Repaired(was_damaged=False)
    assert filled.database.read_bytes() == before


def test_garbage_is_left_as_it_is(home: Home, clock: FakeClock) -> None:
    garbage = random.Random(1).randbytes(50_000)
    home.database.write_bytes(garbage)
    with pytest.raises(StoreError, match=r"nothing in .*belino.db could be read; it was left as it is"):
        repair(home, now=clock.now())
    assert home.database.read_bytes() == garbage
    assert {path.name for path in home.path.iterdir()} <= {"belino.db", "belino.lock", "blobs"}


@pytest.mark.parametrize("content", [None, b""])
def test_where_nothing_is_left_it_says_so(home: Home, clock: FakeClock, content: bytes | None) -> None:
    if content is not None:
        home.database.write_bytes(content)
    with pytest.raises(StoreIncomplete, match=r"nothing to salvage.*belino restore DIR.*--start-empty"):
        repair(home, now=clock.now())


def test_a_newer_database_is_refused(filled: Home, clock: FakeClock) -> None:
    overwrite(filled.database, 60, (len(STEPS) + 1).to_bytes(4, "big"))
    with pytest.raises(StoreTooNew):
        repair(filled, now=clock.now())


async def test_it_is_refused_while_a_gateway_has_the_folder(store: Store, home: Home, clock: FakeClock) -> None:
    with pytest.raises(StoreInUse):
        repair(home, now=clock.now())


def test_a_database_that_cannot_be_opened_now_is_not_taken_for_damaged(home: Home, clock: FakeClock) -> None:
    home.database.mkdir()
    with pytest.raises(StoreError, match="could not be checked, and nothing was changed: disk I/O error"):
        repair(home, now=clock.now())
    assert home.database.is_dir()
