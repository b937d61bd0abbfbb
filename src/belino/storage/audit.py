"""Audit of a store: counters against rows, rows against each other, rows against files.

Works on a live store, on a state folder that no gateway uses, and on the parts of a backup. It changes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from belino.domain.audit import Audit, Balance, Discrepancy
from belino.domain.errors import StoreError
from belino.domain.outcome import MediaOutcome, MessageOutcome, TurnState
from belino.domain.reading import ReadingOutcome
from belino.domain.reply import ParcelState
from belino.storage.arrivals import OWN
from belino.storage.audit_rules import RULES, STRAY_FILE, WITHOUT_FILE, WRONG_SIZE, Rule
from belino.storage.blob_rows import known, strays_among
from belino.storage.blobs import PREFIXES, Blobs
from belino.storage.database import Database, Tx
from belino.storage.folder import blob_files, files_aside
from belino.storage.home import Home
from belino.storage.messages import OUTCOMES, SILENT
from belino.storage.sqlite import snapshot


def audit_home(home: Home) -> Audit:
    """Audit a state folder from outside; a gateway may be running on it."""
    if not home.database.is_file():
        raise StoreError(f"there is no state in {home.path} to audit; name another folder with --home")
    return audit_files(home.database, home.blobs)


def audit_files(database: Path, blobs: Path) -> Audit:
    """Audit a database and a folder of blobs, at any path."""
    with snapshot(database) as tx:
        rows = audit_rows(tx)
        files = [compare(blob_files(blobs, prefix), known(tx, prefix)) for prefix in PREFIXES]
    if any(each.differs for each in files):
        # Compared a second time: a file that moved in or out between the two scans is not a discrepancy.
        with snapshot(database) as tx:
            files = [
                each.still(compare(blob_files(blobs, prefix), known(tx, prefix))) if each.differs else each
                for prefix, each in zip(PREFIXES, files, strict=True)
            ]
            files = [each.only(strays_among(tx, each.strays)) for each in files]
    return with_files(rows, files, aside=len(files_aside(blobs)))


async def audit_live(database: Database, blobs: Blobs) -> Audit:
    """Audit an open store that is in use."""
    rows = await database.read(audit_rows)
    found = []
    for prefix in PREFIXES:
        compared = await _compared(database, blobs, prefix)
        if compared.differs:
            compared = compared.still(await _compared(database, blobs, prefix))
            # Read on the writer, whose order counts: a task that moves these bytes has had its own answer by now.
            strays = await database.write(partial(strays_among, names=compared.strays))
            compared = compared.only(name for name in strays if not blobs.is_moving(name))
        found.append(compared)
    return with_files(rows, found, aside=len(await blobs.list_aside()))


async def _compared(database: Database, blobs: Blobs, prefix: str) -> "Compared":
    return compare(await blobs.list(prefix), await database.read(partial(known, prefix=prefix)))


def audit_rows(tx: Tx) -> Audit:
    """Everything that can be checked in the database alone, in one transaction."""
    unused = "SELECT count(*) FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha256 = b.sha256)"
    return Audit(
        arrivals=tuple(_arrivals(tx)),
        attachments=_balance(
            tx,
            "attachments",
            "SELECT count(DISTINCT ref) FROM message_refs",
            "SELECT outcome, count(*) FROM refs GROUP BY outcome",
            MediaOutcome,
        ),
        readings=_balance(
            tx,
            "readings",
            "SELECT count(*) FROM reading_attempts",
            "SELECT outcome, count(*) FROM reading_attempts GROUP BY outcome",
            ReadingOutcome,
        ),
        parcels=_balance(
            tx,
            "parcels",
            "SELECT count(*) FROM parcels",
            "SELECT state, count(*) FROM parcels GROUP BY state",
            ParcelState,
        ),
        blobs={"rows": _count(tx, "SELECT count(*) FROM blobs"), "unused": _count(tx, unused)},
        discrepancies=tuple(_broken(tx)),
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

    def still(self, later: "Compared") -> "Compared":
        """What differs later, too: a file is written before its row and deleted after it."""
        return Compared(
            self.files,
            set(self.strays) & set(later.strays),
            set(self.missing) & set(later.missing),
            set(self.resized) & set(later.resized),
        )

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


def with_files(rows: Audit, compared: Iterable[Compared], *, aside: int) -> Audit:
    """The audit of the rows, completed with the files of blobs. Those set aside are counted, and no discrepancy."""
    found = tuple(compared)
    by_rule = (
        (STRAY_FILE, [name for each in found for name in each.strays]),
        (WITHOUT_FILE, [name for each in found for name in each.missing]),
        (WRONG_SIZE, [name for each in found for name in each.resized]),
    )
    return Audit(
        arrivals=rows.arrivals,
        attachments=rows.attachments,
        readings=rows.readings,
        parcels=rows.parcels,
        blobs={"files": sum(each.files for each in found), **rows.blobs, "aside": aside},
        discrepancies=(*rows.discrepancies, *(_told(rule, names) for rule, names in by_rule if names)),
    )


def _arrivals(tx: Tx) -> Iterator[Balance]:
    """One balance per account: its counter, and the outcomes of its arrivals."""
    rows = {(row["platform"], row["account"]): row for row in tx.execute("SELECT * FROM arrivals")}
    counters = {account: rows[account] for account in sorted(rows)}
    found: dict[tuple[str, str], dict[str, int]] = {key: _none_of(MessageOutcome) for key in counters}
    for platform, account, outcome, times in _ended(tx):
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


def _ended(tx: Tx) -> Iterator[tuple[str, str, str, int]]:
    """(platform, account, outcome, count) of all arrivals except duplicates."""
    yield from tx.execute(
        "SELECT platform, account, ?, sum(times) FROM denied GROUP BY platform, account", (MessageOutcome.DENIED,)
    )
    yield from tx.execute(
        "SELECT c.platform, c.account, ?, count(*) FROM changes x JOIN channels c ON c.id = x.channel GROUP BY c.id",
        (MessageOutcome.NOTED,),
    )
    messages = tx.execute(
        f"SELECT c.platform, c.account, m.outcome, CASE WHEN {SILENT} THEN '{MessageOutcome.SILENT}' ELSE t.state END, "
        f"count(*) FROM messages m JOIN channels c ON c.id = m.channel LEFT JOIN turns t ON t.id = m.turn "
        f"WHERE NOT ({OWN}) GROUP BY c.id, m.outcome, 4"
    )
    states = set(TurnState)
    for platform, account, outcome, state, times in messages:
        yield platform, account, (OUTCOMES[TurnState(state)] if state in states else state or outcome), times


def _balance(tx: Tx, name: str, taken: str, by_outcome: str, closed: Iterable[str]) -> Balance:
    outcomes = _none_of(closed)
    for outcome, times in tx.execute(by_outcome):
        if outcome in outcomes:
            outcomes[outcome] = times
    return Balance(name=name, taken=_count(tx, taken), outcomes=outcomes)


def _broken(tx: Tx) -> Iterator[Discrepancy]:
    for rule in RULES:
        subjects = tuple(rule.find(tx))
        if subjects:
            yield _told(rule, subjects)


def _told(rule: Rule, subjects: Iterable[str]) -> Discrepancy:
    return Discrepancy(kind=rule.kind, says=rule.says, cure=rule.cure, subjects=tuple(subjects))


def _none_of(closed: Iterable[str]) -> dict[str, int]:
    return {str(member): 0 for member in closed}


def _count(tx: Tx, query: str) -> int:
    return int(tx.execute(query).fetchone()[0])
