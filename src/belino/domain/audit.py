"""Audit values: whether every arrival, attachment, parcel and blob is accounted for."""

from collections.abc import Mapping
from dataclasses import dataclass


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
    parcels: Balance
    blobs: Mapping[str, int]
    """Files and rows by category; none of these numbers is a discrepancy by itself."""
    discrepancies: tuple[Discrepancy, ...]

    @property
    def balances(self) -> tuple[Balance, ...]:
        return (*self.arrivals, self.attachments, self.parcels)

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
