"""The tables grow step by step, and never under a program that does not know them."""

import hashlib
import sqlite3
from contextlib import closing

import pytest

from belino.domain.errors import StoreTooNew
from belino.gateway.maintenance import FINISHED_KEPT, UNFINISHED_KEPT
from belino.storage.database import to_micros
from belino.storage.home import Home
from belino.storage.migrations import M030_LIKENESSES_UP_CLOSE, STEPS
from belino.storage.sqlite import migrate
from belino.storage.store import open_store
from belino.testing.clock import FakeClock
from storage.pieces import chunks

RELEASED = {"0.7.0": (12, "5b282249e47c16d167a025e9fe9a4cf92ed379b4d504821fd5fd062275d8a874")}
"""How many steps a version has, and their hash."""


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


async def test_a_newer_database_is_refused_in_a_sentence_and_left_as_it_was(home: Home, clock: FakeClock) -> None:
    await (await open_store(home, clock=clock)).close()
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("PRAGMA user_version = 99")
    for _ in range(2):  # the lock must be free again after the refusal
        with pytest.raises(StoreTooNew, match=r"version 99 .* knows version"):
            await open_store(home, clock=clock)
    with closing(sqlite3.connect(home.database)) as connection:
        assert version(connection) == 99


def test_an_older_database_is_brought_forward_and_keeps_its_rows() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, ("CREATE TABLE a (x);",))
        connection.execute("INSERT INTO a VALUES (1)")
        migrate(connection, ("CREATE TABLE a (x);", "ALTER TABLE a ADD COLUMN y DEFAULT 2;"))
        assert connection.execute("SELECT * FROM a").fetchall() == [(1, 2)]
        assert version(connection) == 2


def test_a_step_that_fails_halfway_leaves_nothing_of_itself() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.Error):
            migrate(connection, ("CREATE TABLE a (x);", "CREATE TABLE b (x); CREATE TABLE a (x);"))
        assert version(connection) == 1
        assert [row[0] for row in connection.execute("SELECT name FROM sqlite_master")] == ["a"]


def test_migrating_twice_changes_nothing() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        migrate(connection)
        assert version(connection) == len(STEPS)


def test_what_was_fetched_within_the_last_day_still_counts() -> None:
    hour = 3_600_000_000
    columns = "id, public_name, channel_id, message_id, item, author_id, author_name, kind, mime, outcome, reason"
    numbers = "channel, conversation, message, author_marks, sent, created, stored, unclaimed"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, STEPS[:11])
        for number, (fetched, size) in enumerate(((hour, 1), (30 * hour, 10), (40 * hour, 100), (None, None))):
            connection.execute(
                f"INSERT INTO refs ({columns}, {numbers}, fetched, fetched_bytes) VALUES ({', '.join('?' * 21)})",
                (f"r{number}", f"p{number}", *"xxxxxxxxx", 7, 0, 0, 0, 0, 0, 0, 0, fetched, size),
            )
        connection.execute("INSERT INTO fetched_elsewhere VALUES (7, 0, 1000)")
        migrate(connection)
        assert connection.execute("SELECT sum(bytes) FROM fetches WHERE channel = 7").fetchone() == (1110,)


def test_pictures_that_an_older_version_took_for_copies_are_compared_again() -> None:
    step = STEPS.index(M030_LIKENESSES_UP_CLOSE)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, STEPS[:step])
        connection.execute("INSERT INTO likenesses VALUES ('a', 'a', 'same'), ('a', 'b', 'recompressed')")
        migrate(connection, STEPS[: step + 1])
        assert connection.execute("SELECT sha256, other FROM likenesses").fetchall() == [("a", "a")]


async def test_uploads_begun_by_an_older_version_are_resumed_and_swept_like_others(
    home: Home, clock: FakeClock
) -> None:
    columns = "id, conversation, file_name, mime, size, written, created, announced, sha256"
    hour, now = 3_600_000_000, to_micros(clock.now())
    home.key_file.write_bytes(bytes(32))
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        migrate(connection, STEPS[:12])
        for name, age, sha256 in (("open", 2 * hour, None), ("done", 2 * hour, "0" * 64), ("fresh", 0, "1" * 64)):
            row = (name, "web:default:main", "a", "a/b", 4, 0, now - age, None, sha256)
            connection.execute(f"INSERT INTO uploads ({columns}) VALUES ({', '.join('?' * 9)})", row)
    store = await open_store(home, clock=clock)
    assert (await store.counts())["uploads_open"] == 1
    before = {"finished_before": clock.now() - FINISHED_KEPT, "begun_before": clock.now() - UNFINISHED_KEPT}
    assert await store.sweep_uploads(**before) == 1
    assert await store.upload("done") is None
    done = await store.extend_upload("open", 0, chunks(b"1234"))
    assert done.offset == 4
    await store.close()


def test_the_steps_of_a_released_version_are_never_changed() -> None:
    for version, (count, digest) in RELEASED.items():
        steps = "\0".join(STEPS[:count]).encode()
        assert hashlib.sha256(steps).hexdigest() == digest, f"a step of version {version} differs: append a new one"
