"""Audit of a store: counters against rows, rows against each other, rows against files.

Works on a live store, on a state folder that no gateway uses, and on the parts of a backup. It changes nothing.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from belino.domain.audit import Audit, Balance, Discrepancy
from belino.domain.errors import StoreError
from belino.domain.outcome import MediaOutcome, MessageOutcome, TurnState
from belino.domain.reply import ParcelState
from belino.storage.arrivals import OWN
from belino.storage.audit_rules import RULES, STRAY_FILE, WITHOUT_FILE, WRONG_SIZE, Rule
from belino.storage.blobs import BlobFolder, blob_files, known, on_disk, without_row
from belino.storage.garbage import PREFIXES
from belino.storage.home import Home
from belino.storage.messages import OUTCOMES
from belino.storage.migrations import STEPS, migrate
from belino.storage.writer import Readers, Writer, as_store_error, connect

ASIDE = "aside"
"""The folder in `blobs/` for files that no row references; they are counted, and are not a discrepancy."""


def audit_home(home: Home) -> Audit:
    """Audit a state folder from outside; a gateway may be running on it."""
    if not home.database.is_file():
        raise StoreError(f"there is no state in {home.path} to audit; name another folder with --home")
    return audit_files(home.database, home.blobs)


def audit_files(database: Path, blobs: Path) -> Audit:
    """Audit a database and a folder of blobs, at any path."""
    try:
        with snapshot(database) as connection:
            rows = audit_rows(connection)
            files = [compare(blob_files(blobs, prefix), known(connection, prefix)) for prefix in PREFIXES]
        if any(each.differs for each in files):
            # Compared a second time: a file that moved in or out between the two scans is not a discrepancy.
            with snapshot(database) as connection:
                files = [recheck(connection, each, blobs) for each in files]
    except sqlite3.Error as error:
        raise as_store_error(error) from error
    return with_files(rows, blobs, files)


async def audit_live(readers: Readers, writer: Writer, folder: BlobFolder) -> Audit:
    """Audit an open store that is in use."""
    rows = await readers.read(audit_rows)
    found = []
    for prefix in PREFIXES:
        lying = await on_disk(folder.lying, prefix)
        compared = compare(lying, await readers.read(partial(known, prefix=prefix)))
        if compared.differs:
            compared = await readers.read(partial(recheck, compared=compared, blobs=folder.path))
            # Read on the writer, whose order counts: a task that moves these files has had its own answer by now.
            strays = await writer.write(partial(without_row, names=compared.strays))
            compared = compared.only(name for name in strays if not folder.is_moving(name))
        found.append(compared)
    return await on_disk(with_files, rows, folder.path, found)


@contextmanager
def snapshot(database: Path) -> Iterator[sqlite3.Connection]:
    """One consistent state of a database, at this program's version; an older file is migrated in a copy in memory."""
    with closing(connect(database.absolute(), read_only=True)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if version < len(STEPS):
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
                connection.backup(copy)
                copy.row_factory = sqlite3.Row
                migrate(copy)
                yield copy
            return
        migrate(connection)  # refuses a database that a newer belino wrote
        connection.execute("BEGIN")
        yield connection


def audit_rows(connection: sqlite3.Connection) -> Audit:
    """Everything that can be checked in the database alone, in one transaction."""
    unused = "SELECT count(*) FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha256 = b.sha256)"
    return Audit(
        arrivals=tuple(_arrivals(connection)),
        attachments=_balance(
            connection,
            "attachments",
            "SELECT count(DISTINCT ref) FROM message_refs",
            "SELECT outcome, count(*) FROM refs GROUP BY outcome",
            MediaOutcome,
        ),
        parcels=_balance(
            connection,
            "parcels",
            "SELECT count(*) FROM parcels",
            "SELECT state, count(*) FROM parcels GROUP BY state",
            ParcelState,
        ),
        blobs={"rows": _count(connection, "SELECT count(*) FROM blobs"), "unused": _count(connection, unused)},
        discrepancies=tuple(_broken(connection)),
    )


class Compared:
    """Names that differ between the files of a folder and the rows of a database."""

    __slots__ = ("files", "missing", "resized", "strays")

    def __init__(self, files: int, strays: Iterable[str], missing: Iterable[str], resized: Iterable[str]) -> None:
        self.files = files
        self.strays = tuple(sorted(strays))
        self.missing = tuple(sorted(missing))
        self.resized = tuple(sorted(resized))

    def only(self, strays: Iterable[str]) -> "Compared":
        """A copy with only these strays."""
        return Compared(self.files, strays, self.missing, self.resized)

    @property
    def differs(self) -> bool:
        return bool(self.strays or self.missing or self.resized)


def compare(lying: Mapping[str, int], rows: Mapping[str, int]) -> Compared:
    """Compare files and rows, both by name and size."""
    return Compared(
        len(lying),
        lying.keys() - rows.keys(),
        rows.keys() - lying.keys(),
        (name for name in lying.keys() & rows.keys() if lying[name] != rows[name]),
    )


def recheck(connection: sqlite3.Connection, compared: Compared, blobs: Path) -> Compared:
    """What still differs in a later snapshot: a file is written before its row and deleted after it."""
    if not compared.differs:
        return compared
    prefix = (*compared.strays, *compared.missing, *compared.resized)[0][:2]
    again = compare(blob_files(blobs, prefix), known(connection, prefix))
    return Compared(
        compared.files,
        set(compared.strays) & set(again.strays),
        set(compared.missing) & set(again.missing),
        set(compared.resized) & set(again.resized),
    )


def with_files(rows: Audit, blobs: Path, compared: Iterable[Compared]) -> Audit:
    """The audit of the rows, completed with the files of the blob folder."""
    found = tuple(compared)
    by_rule = (
        (STRAY_FILE, [name for each in found for name in each.strays]),
        (WITHOUT_FILE, [name for each in found for name in each.missing]),
        (WRONG_SIZE, [name for each in found for name in each.resized]),
    )
    aside = sum(1 for path in (blobs / ASIDE).rglob("*") if path.is_file())
    return Audit(
        arrivals=rows.arrivals,
        attachments=rows.attachments,
        parcels=rows.parcels,
        blobs={"files": sum(each.files for each in found), **rows.blobs, "aside": aside},
        discrepancies=(*rows.discrepancies, *(_told(rule, names) for rule, names in by_rule if names)),
    )


def _arrivals(connection: sqlite3.Connection) -> Iterator[Balance]:
    """One balance per account: its counter, and the outcomes of its arrivals."""
    counters = {
        (row["platform"], row["account"]): row
        for row in connection.execute("SELECT * FROM arrivals ORDER BY platform, account")
    }
    found: dict[tuple[str, str], dict[str, int]] = {key: _none_of(MessageOutcome) for key in counters}
    for platform, account, outcome, times in _ended(connection):
        counted = found.setdefault((platform, account), _none_of(MessageOutcome))
        if outcome in counted:
            counted[outcome] += times
    for (platform, account), outcomes in found.items():
        counter = counters.get((platform, account))
        if counter is not None:
            outcomes[MessageOutcome.DUPLICATE] += counter["duplicates"]
        yield Balance(
            name=f"{platform}:{account}",
            taken=0 if counter is None else counter["taken"],
            forgotten=0 if counter is None else counter["forgotten"],
            outcomes=outcomes,
        )


def _ended(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str, int]]:
    """(platform, account, outcome, count) of all arrivals except duplicates."""
    yield from connection.execute(
        "SELECT platform, account, ?, sum(times) FROM denied GROUP BY platform, account", (MessageOutcome.DENIED,)
    )
    yield from connection.execute(
        "SELECT c.platform, c.account, ?, count(*) FROM changes x JOIN channels c ON c.id = x.channel GROUP BY c.id",
        (MessageOutcome.NOTED,),
    )
    messages = connection.execute(
        "SELECT c.platform, c.account, m.outcome, t.state, count(*) FROM messages m "  # noqa: S608
        f"JOIN channels c ON c.id = m.channel LEFT JOIN turns t ON t.id = m.turn WHERE NOT ({OWN}) "
        "GROUP BY c.id, m.outcome, t.state"
    )
    states = set(TurnState)
    for platform, account, outcome, state, times in messages:
        yield platform, account, (OUTCOMES[TurnState(state)] if state in states else state or outcome), times


def _balance(connection: sqlite3.Connection, name: str, taken: str, by_outcome: str, closed: Iterable[str]) -> Balance:
    outcomes = _none_of(closed)
    for outcome, times in connection.execute(by_outcome):
        if outcome in outcomes:
            outcomes[outcome] = times
    return Balance(name=name, taken=_count(connection, taken), outcomes=outcomes)


def _broken(connection: sqlite3.Connection) -> Iterator[Discrepancy]:
    for rule in RULES:
        subjects = [str(row[0]) for row in connection.execute(rule.query)]
        if subjects:
            yield _told(rule, subjects)


def _told(rule: Rule, subjects: Iterable[str]) -> Discrepancy:
    return Discrepancy(kind=rule.kind, says=rule.says, cure=rule.cure, subjects=tuple(subjects))


def _none_of(closed: Iterable[str]) -> dict[str, int]:
    return {str(member): 0 for member in closed}


def _count(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])
