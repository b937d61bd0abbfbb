"""What every storage engine promises about transactions and messages."""

import asyncio
from collections.abc import Mapping

import pytest

from belino.domain.outcome import CacheSize
from belino.storage.database import Database, Tx
from belino.storage.store import Store


class Tally:
    """Counts in memory, and writes its sum at the end of a transaction."""

    def __init__(self) -> None:
        self.count = 0

    def flush(self, tx: Tx) -> None:
        if self.count:
            tx.execute("INSERT INTO denied (platform, account, reason, times) VALUES ('t', 'a', 'r', ?)", (self.count,))
        self.count = 0

    def undo(self) -> None:
        self.count = 0

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        return {}


@pytest.fixture
def database(store: Store) -> Database:
    return store._database


def denied(tx: Tx) -> list[int]:
    return [row["times"] for row in tx.execute("SELECT times FROM denied WHERE platform = 't'")]


async def test_rows_are_read_by_the_names_of_their_columns_and_changes_are_counted(database: Database) -> None:
    def write(tx: Tx) -> int:
        tx.many("INSERT INTO cursors (platform, account, cursor) VALUES (?, ?, ?)", [("p", "a", "1"), ("p", "b", "2")])
        return tx.execute("UPDATE cursors SET cursor = '3' WHERE platform = ?", ("p",)).rowcount

    assert await database.write(write) == 2
    rows = await database.read(lambda tx: tx.execute("SELECT account, cursor FROM cursors ORDER BY account").fetchall())
    assert [(row["account"], row["cursor"]) for row in rows] == [("a", "3"), ("b", "3")]


async def test_what_a_memo_holds_is_written_at_the_end_of_its_transaction(database: Database) -> None:
    def count(tx: Tx) -> list[int]:
        tx.memo(Tally).count += 1
        tx.memo(Tally).count += 1
        return denied(tx)

    assert await database.write(count) == []
    assert await database.read(denied) == [2]


async def test_what_a_memo_holds_is_forgotten_with_its_transaction(database: Database) -> None:
    def fail(tx: Tx) -> None:
        tx.memo(Tally).count += 1
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(fail)
    await database.write(lambda tx: tx.memo(Tally).flush(tx))
    assert await database.read(denied) == []


async def test_a_message_reaches_everyone_who_listens_to_its_topic_and_no_one_else(database: Database) -> None:
    heard: dict[str, list[str]] = {"one": [], "two": [], "other": []}

    async def listen(name: str, topic: str, count: int) -> None:
        messages = database.listen(topic)
        async for message in messages:
            heard[name].append(message)
            if len(heard[name]) == count:
                return

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(listen("one", "turns", 2))
        group.create_task(listen("two", "turns", 1))
        group.create_task(listen("other", "parcels", 1))
        await asyncio.sleep(0)
        await database.notify("turns", "1")
        await database.notify("turns", "2")
        await database.notify("parcels", "3")
    assert heard == {"one": ["1", "2"], "two": ["1"], "other": ["3"]}


async def test_migrating_a_database_that_is_up_to_date_changes_nothing(database: Database) -> None:
    before = await database.read(lambda tx: tx.execute("SELECT count(*) FROM channels").fetchone()[0])
    await database.migrate()
    assert await database.read(lambda tx: tx.execute("SELECT count(*) FROM channels").fetchone()[0]) == before
