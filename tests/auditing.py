"""Shared by the rooms whose tests end with the accounting check: every state folder a test leaves must balance."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from belino.domain.audit import Balance, Discrepancy
from belino.storage.audit import audit_home
from belino.storage.home import Home


@pytest.fixture(autouse=True)
def accounts_balance(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Audit what the test leaves; a test that damages a store names the kinds of discrepancy it is to be left with."""
    yield
    marker = request.node.get_closest_marker("leaves_discrepancies")
    expected = set() if marker is None else set(marker.args)
    found: dict[str, Balance | Discrepancy] = {}
    for database in sorted(tmp_path.rglob("belino.db")):
        audit = audit_home(Home(path=database.parent))
        found |= {each.kind: each for each in audit.discrepancies}
        found |= {f"difference in {each.name}": each for each in audit.balances if each.difference}
    assert found.keys() == expected, list(found.values())
