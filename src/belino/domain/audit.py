"""Audit values: whether every arrival, attachment, reading, parcel and blob is accounted for; what a repair kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Two counts of the same things, made from different rows."""

    name: str
    taken: int
    """The expected number."""
    forgotten: int = 0
    """Of those, how many were deleted on purpose since."""
    outcomes: Mapping[str, int]
    """How many are found, by outcome: every member of the closed set, also those with none."""

    @property
    def difference(self) -> int:
        """How many are missing (positive) or surplus (negative); 0 when the two counts agree."""
        return self.taken - self.forgotten - sum(self.outcomes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
    """A rule that some rows or files break: ids, never content."""

    kind: str
    says: str
    cure: str
    subjects: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of an accounting check."""

    arrivals: tuple[Balance, ...]
    """By account."""
    attachments: Balance
    readings: Balance
    """Attempts to read attachments."""
    parcels: Balance
    blobs: Mapping[str, int]
    """Files and rows by category; none of these numbers is a discrepancy by itself."""
    discrepancies: tuple[Discrepancy, ...]

    @property
    def balances(self) -> tuple[Balance, ...]:
        return (*self.arrivals, self.attachments, self.readings, self.parcels)

    @property
    def difference(self) -> int:
        """The sum of the absolute differences of all balances."""
        return sum(abs(balance.difference) for balance in self.balances)

    @property
    def is_balanced(self) -> bool:
        return not self.difference and not self.discrepancies

    def as_json(self) -> dict[str, object]:
        """The form used by the API and the command line."""
        return {
            "ok": self.is_balanced,
            "difference": self.difference,
            "arrivals": [_balance_json(balance) for balance in self.arrivals],
            "attachments": _balance_json(self.attachments),
            "readings": _balance_json(self.readings),
            "parcels": _balance_json(self.parcels),
            "blobs": dict(self.blobs),
            "discrepancies": [
                {"kind": found.kind, "says": found.says, "cure": found.cure, "subjects": list(found.subjects)}
                for found in self.discrepancies
            ],
        }


def _balance_json(balance: Balance) -> dict[str, object]:
    return {
        "name": balance.name,
        "taken": balance.taken,
        "forgotten": balance.forgotten,
        "outcomes": dict(balance.outcomes),
        "difference": balance.difference,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SalvagedTable:
    """The result for one table."""

    name: str
    kept: int
    lost: int
    """Rows that were found and could not be kept: unreadable, or parts of a lost row."""
    bad_pages: int
    """Pages that could not be read; how many rows they held is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The result of a repair."""

    was_damaged: bool
    """False if the database is intact; then nothing was changed."""
    tables: tuple[SalvagedTable, ...] = ()
    held: int = 0
    """Answers that wait for a person, because they may have been sent already."""
    old: Path | None = None
    """The path of the damaged file."""
