"""Repair of SQLite files: salvage the readable rows of a damaged database into a new one; the old file is kept."""

import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import orjson

from belino.domain.audit import Repaired, SalvagedTable
from belino.domain.errors import StoreError, StoreIncomplete, StoreTooNew
from belino.domain.outcome import MediaOutcome
from belino.storage.arrivals import recount
from belino.storage.database import to_micros
from belino.storage.disk import sync_folder
from belino.storage.folder import blob_path, bring_back
from belino.storage.home import Home, lock_folder
from belino.storage.migrations import STEPS
from belino.storage.parcels import take_up_files
from belino.storage.restore import finish_restore
from belino.storage.sqlite import CORRUPTION, SqliteTx, connect, migrate, primary_code, quick_check, why_unreadable
from belino.storage.sqlite_opening import has_content, old_name, wal_of
from belino.storage.sqlite_salvage import DamagedDatabase, SalvagedRow, Tree, Value, open_damaged

HELD = "the database was repaired: it may have been sent before; `belino outbox retry` sends it"
UNCERTAIN = "the database was damaged while it was sent; it may have arrived"
SCRAP = ".repair-"

_BUILT_AGAIN = ("arrivals", "search_segments", "search_blocks", "search_stale", "search_vectors", "reading_words")
"""Rebuilt from other tables whenever they are missing."""
# A reused row id would link a new row to the remains of a lost one. Parents come first.
_REFERENCES = (
    ("conversations", "channel", "channels", "id"),
    ("messages", "channel", "channels", "id"),
    ("messages", "conversation", "conversations", "id"),
    ("changes", "channel", "channels", "id"),
    ("reactions", "channel", "channels", "id"),
    ("refs", "channel", "channels", "id"),
    ("refs", "conversation", "conversations", "id"),
    ("refs_gone", "channel", "channels", "id"),
    ("fetches", "channel", "channels", "id"),
    ("message_refs", "message", "messages", "id"),
    ("message_refs", "ref", "refs", "seq"),
    ("turns", "conversation", "conversations", "id"),
    ("sessions", "conversation", "conversations", "id"),
    ("chat_settings", "conversation", "conversations", "id"),
    ("parcels", "conversation", "conversations", "id"),
    ("reading_parts", "reading", "readings", "id"),
    ("transcripts", "reading", "readings", "id"),
    ("reading_attempts", "channel", "channels", "id"),
    ("reading_attempts", "ref", "refs", "id"),
    ("read_ahead", "ref", "refs", "id"),
    ("reading_costs", "channel", "channels", "id"),
)


def repair(home: Home, *, now: datetime) -> Repaired:
    """Replace a damaged database by what can be salvaged from it. StoreInUse while a gateway runs."""
    with ExitStack() as opened:
        opened.callback(os.close, lock_folder(home))
        finish_restore(home)
        database, wal = _source(home)
        if not has_content(database) and not has_content(wal):
            raise StoreIncomplete(
                f"there is nothing to salvage: {home.database} is missing or empty. `belino restore DIR` brings a "
                "backup back; `belino serve --start-empty` starts with an empty database and keeps the media files"
            )
        if _is_whole(home):
            return Repaired(was_damaged=False)
        scrap = home.path / f"{SCRAP}{secrets.token_hex(8)}"
        opened.callback(_discard, scrap)
        with open_damaged(database, wal) as damaged:
            tables, held = _salvage(damaged, scrap, home, now)
        if not any(table.kept for table in tables):
            raise StoreError(
                f"nothing in {home.database} could be read; it was left as it is. `belino restore DIR` brings a backup "
                "back; to start again, move the file away and use `belino serve --start-empty`"
            )
        old = _replace(home, scrap, now)
    return Repaired(was_damaged=True, tables=tables, held=held, old=old)


def _source(home: Home) -> tuple[Path, Path]:
    """The damaged database and its log; a killed repair may have renamed the log already."""
    for old in home.path.glob(f"{home.database.name}.before-*"):
        if home.database.exists() and old.samefile(home.database) and has_content(wal_of(old)):
            return home.database, wal_of(old)
    return home.database, wal_of(home.database)


def _is_whole(home: Home) -> bool:
    """Whether SQLite reads all of it and it has the tables that belino makes; read-only, so that nothing changes."""
    if not has_content(home.database):
        return False
    try:
        with closing(connect(home.database, read_only=True)) as connection:
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
            _refuse_newer(version)
            names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            found = quick_check(connection, with_indexes=True)
    except sqlite3.Error as error:
        if primary_code(error) in CORRUPTION:
            return False
        why = why_unreadable(error, home.database)
        raise StoreError(f"the database could not be checked, and nothing was changed: {why}") from error
    return not found and names >= set(_tables_of(version))


def _salvage(damaged: DamagedDatabase, scrap: Path, home: Home, now: datetime) -> tuple[tuple[SalvagedTable, ...], int]:
    schema = damaged.schema()
    version = damaged.version
    _refuse_newer(version or 0)
    if version is None or version < 1:
        version = _likely_version({sql for _, sql in schema.values()})
    os.close(os.open(scrap, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    with closing(sqlite3.connect(scrap, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        migrate(connection, STEPS[:version])
        connection.execute("BEGIN")
        tables = _copy_tables(damaged, connection, {name: root for name, (root, _) in schema.items()})
        connection.execute("COMMIT")
        migrate(connection)
        connection.execute("BEGIN")
        tables = _settle(connection, tables)
        held = _hold(connection, to_micros(now))
        _rebuild_uses(connection, home.blobs, to_micros(now))
        connection.execute("COMMIT")
        found = quick_check(connection, with_indexes=True)
    if found:
        raise StoreError(f"the repaired database is not whole ({found}); the old one was left as it is")
    return tuple(tables.values()), held


def _refuse_newer(version: int) -> None:
    if version > len(STEPS):
        raise StoreTooNew(f"the database is of version {version} and this belino knows version {len(STEPS)}")


def _tables_of(version: int) -> dict[str, str]:
    """The tables of a schema version, and their SQL."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, STEPS[:version])
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL")
        return {name: sql for name, sql in rows if not name.startswith("sqlite_")}


def _likely_version(found: set[str]) -> int:
    """The version whose tables match those found best; the newest of equals."""
    return max(range(1, len(STEPS) + 1), key=lambda version: (len(found & set(_tables_of(version).values())), version))


@dataclass(frozen=True, slots=True)
class _Target:
    """The table that rows are copied to."""

    name: str
    columns: tuple[str, ...]
    """In storage order."""
    types: tuple[str, ...]
    rowid_at: int | None
    """The column that is the rowid."""
    tree: Tree

    def insert(self, connection: sqlite3.Connection, row: SalvagedRow) -> bool:
        """Insert a row; False if it is invalid for this table, or already there."""
        values = list(row.values)
        if self.rowid_at is not None and self.rowid_at < len(values):
            values[self.rowid_at] = row.rowid
        if not 0 < len(values) <= len(self.columns):
            return False
        names, marks = ", ".join(self.columns[: len(values)]), ", ".join("?" * len(values))
        try:
            connection.execute(f"INSERT INTO {self.name} ({names}) VALUES ({marks})", values)
        except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError):
            return False
        return True

    def fits(self, row: SalvagedRow) -> bool:
        """Whether a row of an unknown table could belong to this one."""
        return len(row.values) <= len(self.columns) and all(
            value is None or isinstance(value, _CLASSES[kind])
            for value, kind in zip(row.values, self.types, strict=False)
        )


_CLASSES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (int, float), "TEXT": (str,), "BLOB": (bytes,)}


def _copy_tables(
    damaged: DamagedDatabase, connection: sqlite3.Connection, roots: dict[str, int]
) -> dict[str, SalvagedTable]:
    """Copy every readable row; then those whose tree has lost the page that led to them."""
    names = [row["name"] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    targets = [
        _target(connection, name, roots.get(name, 0))
        for name in names
        if not name.startswith("sqlite_") and name not in _BUILT_AGAIN
    ]
    kept: dict[str, int] = {}
    for target in targets:
        kept[target.name] = _insert_all(connection, target, damaged.rows(target.tree))
    broken = [target for target in targets if target.tree.bad_pages and target.tree.has_rowid]
    for row in damaged.orphans() if broken else ():
        # A row that fits two tables is dropped: its table is unknown.
        match [target for target in broken if target.fits(row)]:
            case [target]:
                kept[target.name] += _insert_all(connection, target, iter((row,)))
    _keep_sequences(damaged, connection, roots.get("sqlite_sequence"))
    return {
        target.name: SalvagedTable(
            name=target.name, kept=kept[target.name], lost=target.tree.bad_rows, bad_pages=target.tree.bad_pages
        )
        for target in targets
    }


def _insert_all(connection: sqlite3.Connection, target: _Target, rows: Iterator[SalvagedRow]) -> int:
    kept = 0
    for row in rows:
        if target.insert(connection, row):
            kept += 1
        else:
            target.tree.bad_rows += 1
    return kept


def _target(connection: sqlite3.Connection, name: str, root: int) -> _Target:
    columns = connection.execute(f"PRAGMA table_xinfo({name})").fetchall()
    listed = connection.execute(f"PRAGMA table_list({name})").fetchone()
    key = sorted((column for column in columns if column["pk"]), key=lambda column: int(column["pk"]))
    has_rowid = not listed["wr"]
    if not has_rowid:  # its key is stored in front
        columns = [*key, *(column for column in columns if not column["pk"])]
    is_alias = has_rowid and len(key) == 1 and key[0]["type"] == "INTEGER"
    return _Target(
        name=name,
        columns=tuple(column["name"] for column in columns),
        types=tuple(column["type"] for column in columns),
        rowid_at=columns.index(key[0]) if is_alias else None,
        tree=Tree(root, has_rowid=has_rowid),
    )


def _keep_sequences(damaged: DamagedDatabase, connection: sqlite3.Connection, root: int | None) -> None:
    """Keep ids from being reused after their rows were lost."""
    for row in damaged.rows(Tree(root, has_rowid=True)) if root else ():
        match row.values:
            case (str(name), int(last)):
                connection.execute("INSERT INTO sqlite_sequence SELECT ?, 0 WHERE NOT EXISTS "
                                   "(SELECT 1 FROM sqlite_sequence WHERE name = ?)", (name, name))  # fmt: skip
                connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (last, name))


def _settle(connection: sqlite3.Connection, tables: dict[str, SalvagedTable]) -> dict[str, SalvagedTable]:
    """Delete the remains of lost rows, and all that is rebuilt from the rest."""
    for table, column, parent, key in _REFERENCES:
        gone = connection.execute(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT {key} FROM {parent})").rowcount
        tables = _recount(tables, table, gone)
    parts = tables.get("reading_parts")
    if parts is not None and (parts.lost or parts.bad_pages):  # a text with a gap would pass for a complete one
        for table in ("reading_parts", "transcripts", "readings"):
            tables = _recount(tables, table, connection.execute(f"DELETE FROM {table}").rowcount)
    connection.execute("UPDATE readings SET indexed = ''")
    connection.execute("UPDATE messages SET short = NULL, short_chars = 5")  # made again when the store is opened
    connection.execute("DELETE FROM search_stale")
    connection.execute("DELETE FROM search_vectors")
    connection.execute("DELETE FROM leases")
    recount(SqliteTx(connection))
    return tables


def _recount(tables: dict[str, SalvagedTable], name: str, gone: int) -> dict[str, SalvagedTable]:
    table = tables.get(name)
    if table is None or not gone:
        return tables
    return tables | {name: replace(table, kept=table.kept - gone, lost=table.lost + gone)}


def _rebuild_uses(connection: sqlite3.Connection, blobs: Path, now: int) -> None:
    """Every blob that is used gets a row and a use; an unused one loses its row, and its file stays.

    A row without a use would be deleted with its file, though only the use is lost.
    """
    connection.execute(
        "INSERT OR IGNORE INTO blob_uses SELECT sha256, 'ref:' || id FROM refs "
        "WHERE sha256 IS NOT NULL AND outcome = ?",
        (MediaOutcome.HELD,),
    )
    connection.execute(
        "INSERT OR IGNORE INTO blob_uses SELECT sha256, 'upload:' || id FROM uploads WHERE sha256 IS NOT NULL"
    )
    parcels = "SELECT key, files FROM parcels WHERE files IS NOT NULL AND state IN ('held', 'uncertain')"
    for row in connection.execute(parcels).fetchall():
        take_up_files(SqliteTx(connection), row["key"], orjson.loads(row["files"]))
    unlisted = connection.execute(
        "SELECT u.sha256, coalesce(min(r.mime), 'application/octet-stream') AS mime FROM blob_uses u "
        "LEFT JOIN refs r ON r.sha256 = u.sha256 WHERE u.sha256 NOT IN (SELECT sha256 FROM blobs) GROUP BY u.sha256"
    ).fetchall()
    for row in unlisted:
        if bring_back(blobs, row["sha256"]):
            size = blob_path(blobs, row["sha256"]).stat().st_size
            connection.execute("INSERT INTO blobs VALUES (?, ?, ?, ?)", (row["sha256"], row["mime"], size, now))
    connection.execute("DELETE FROM blobs WHERE sha256 NOT IN (SELECT sha256 FROM blob_uses)")
    connection.execute("DELETE FROM file_ids WHERE sha256 NOT IN (SELECT sha256 FROM blobs)")
    connection.execute("DELETE FROM published_files WHERE sha256 NOT IN (SELECT sha256 FROM blobs)")


def _hold(connection: sqlite3.Connection, now: int) -> int:
    """Hold parcels that may have been sent already. Returns how many."""
    connection.execute("UPDATE parcels SET window_closed = 0")
    states: Sequence[tuple[Value, ...]] = (("held", HELD, "ready"), ("uncertain", UNCERTAIN, "sending"))
    return sum(
        connection.execute(
            "UPDATE parcels SET state = ?1, reason = ?2, changed = ?4, doubt = iif(?1 = 'uncertain', 2, doubt) "
            "WHERE state = ?3",
            (*state, now),
        ).rowcount
        for state in states
    )


def _replace(home: Home, scrap: Path, now: datetime) -> Path | None:
    """Put the new database in the place of the old one, which is kept under another name."""
    descriptor = os.open(scrap, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    old = old_name(home.database, now)
    if home.database.exists():
        os.link(home.database, old, follow_symlinks=False)  # so that a database exists under its name at every moment
    for side in ("-wal", "-shm"):
        path = home.database.with_name(home.database.name + side)
        if path.exists():
            path.rename(old.with_name(old.name + side))
    sync_folder(home.path)
    scrap.rename(home.database)
    sync_folder(home.path)
    return old if old.exists() or wal_of(old).exists() else None


def _discard(scrap: Path) -> None:
    for path in (scrap, scrap.with_name(f"{scrap.name}-journal")):
        path.unlink(missing_ok=True)
