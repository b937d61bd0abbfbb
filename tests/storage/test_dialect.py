"""SQL outside the SQLite engine runs on PostgreSQL, too, and SQLite still finds the index that it needs."""

import ast
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from belino import storage
from belino.domain.stored import ReadPosition
from belino.storage import changes, messages, outcomes, retention
from belino.storage.database import Tx
from belino.storage.dialect import marks
from belino.storage.row_ids import SEQ_BITS, ConversationRow
from belino.storage.search_hits import ChannelRecords
from belino.storage.search_passages import ChannelPassages
from belino.storage.sqlite import SqliteTx, migrate

OF_THE_ENGINE = re.compile(r"sqlite\w*|dialect|migrations")
MODULES = [path for path in Path(storage.__path__[0]).glob("*.py") if not OF_THE_ENGINE.fullmatch(path.stem)]
REFUSED = {
    "an upsert without its columns": r"ON CONFLICT DO",
    "INSERT OR …": r"INSERT OR|REPLACE INTO",
    "a pattern": r"\b(LIKE|ILIKE|GLOB|REGEXP|MATCH)\b",
    "an index by name": r"INDEXED",
    "a function of SQLite": r"\b(iif|ifnull|printf|group_concat|json_\w+|instr|typeof|total|hex|unixepoch|strftime)\(",
    "SQLite's own tables": r"\b(PRAGMA|rowid|sqlite_\w+|AUTOINCREMENT|WITHOUT ROWID)\b",
    "max or min of several values": r"\b(max|min)\((?:[^()]|\([^()]*\))*,",
    "a number as a condition": r"\b(WHERE|NOT) ([01]|\?\d?)( |$)",
    "an argument without a type": r"\?\d? IS (NOT )?NULL",
    "a table without its columns": r"INSERT INTO \w+ (VALUES|SELECT)",
}


def texts(module: Path) -> Iterator[str]:
    """Every text of a module except docstrings, with `x` for what an f-string inserts."""
    tree = ast.parse(module.read_text())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            said.update(map(id, node.values))
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


@pytest.mark.parametrize("what", REFUSED)
def test_no_statement_needs_sqlite(what: str) -> None:
    found = [f"{path.stem}: {text}" for path in MODULES for text in texts(path) if re.search(REFUSED[what], text)]
    assert not found


def test_the_texts_of_a_module_include_its_statements() -> None:
    found = [text for path in MODULES for text in texts(path) if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE)\b", text)]
    assert len(found) > 200


def test_a_list_has_an_argument_for_each_value_and_an_empty_one_matches_nothing() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        found = connection.execute(f"SELECT 1 WHERE 2 IN ({marks('ab')})", (1, 2)).fetchall()
        none = connection.execute(f"SELECT 1 WHERE 2 IN ({marks('')})").fetchall()
    assert (found, none) == ([(1,)], [])


PLACE = ConversationRow(channel=1, conversation=1)
ROW = {"channel": 1, "platform_id": "1", "message_id": "1", "created": 0, "kind": "text", "key": "k", "attempts": 0}
NO_KEYS: Any = None
PLANS: dict[str, tuple[Callable[[Tx], object], str]] = {
    "kept changes": (
        lambda tx: changes.apply_changes(tx, NO_KEYS, 1 << SEQ_BITS | 1, "1", 0),
        "changes USING INDEX changes_of_message (channel=? AND message_id=?)",
    ),
    "the changes of a message": (
        lambda tx: list(outcomes._change_steps(tx, ROW)),  # type: ignore[arg-type]
        "changes USING INDEX changes_of_message (channel=? AND message_id=?)",
    ),
    "delivery reports": (
        lambda tx: list(outcomes._parcel_steps(tx, [ROW])),  # type: ignore[list-item]
        "changes USING INDEX changes_of_message (channel=? AND message_id=? AND kind=?)",
    ),
    "changes to forget": (
        lambda tx: retention._forget_changes(tx, 1, ["1"]),
        "changes USING COVERING INDEX changes_of_message (channel=? AND message_id=?)",
    ),
    "the next number of a change": (
        lambda tx: tx.execute(changes._INSERT, (1, "edit", "1", "1", None, 0, 0, "", None, "kept")),
        "changes USING COVERING INDEX changes_in_order (channel=?",
    ),
    "arrivals": (
        lambda tx: changes._arrived(tx, PLACE, 0, 9),
        "m USING INDEX messages_of_conversation (conversation=? AND rowid>? AND rowid<?)",
    ),
    "imported arrivals": (
        lambda tx: changes._arrived(tx, PLACE, 0, 9),
        "m USING INDEX messages_in_time (conversation=? AND sent>? AND sent<?)",
    ),
    "changes in order": (
        lambda tx: changes._changed(tx, NO_KEYS, PLACE, None, ReadPosition(seq=1), 9),
        "c USING INDEX changes_in_order (channel=? AND number>?)",
    ),
    "a message by its id": (
        lambda tx: messages.find_messages(tx, NO_KEYS, "1"),
        "x USING COVERING INDEX messages_once (channel=? AND platform_id=?)",
    ),
    "documents by the refs": (
        lambda tx: len(ChannelPassages(tx, 1)),
        "r USING INDEX refs_with_bytes (channel=?",
    ),
    "documents by their bytes": (
        lambda tx: len(ChannelPassages(tx, 1)),
        "d USING INDEX sqlite_autoindex_readings_1 (sha256=?)",
    ),
    "the people of a thread": (
        lambda tx: ChannelRecords(tx, NO_KEYS, 1).thread_summaries(["1", "2"]),
        "messages USING INDEX messages_of_root (channel=? AND root=? AND deleted=?)",
    ),
    "the name of a person in a thread": (
        lambda tx: ChannelRecords(tx, NO_KEYS, 1).thread_summaries(["1", "2"]),
        "m USING INDEX messages_of_root (channel=? AND root=? AND deleted=? AND sent=?)",
    ),
}


class Explained(SqliteTx):
    """A transaction that notes how each statement is run."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.plan: list[str] = []
        self._connection = connection
        self.execute = self._execute

    def _execute(self, sql: str, args: Any = ()) -> sqlite3.Cursor:
        self.plan += [row["detail"] for row in self._connection.execute(f"EXPLAIN QUERY PLAN {sql}", args)]
        return self._connection.execute(sql, args)


@pytest.mark.parametrize("what", PLANS)
def test_sqlite_uses_the_index_that_was_made_for(what: str) -> None:
    run, expected = PLANS[what]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        migrate(connection)
        tx = Explained(connection)
        run(tx)
    assert [step for step in tx.plan if step.startswith(f"SEARCH {expected}")], tx.plan
