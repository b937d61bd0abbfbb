"""What tests of media understanding share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from auditing import accounts_balance as accounts_balance
from understanding.reading_house import ReadingHouse, opened
from understanding.scripted import Shelf


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return Shelf(monkeypatch)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[ReadingHouse]:
    async with opened(tmp_path / "state") as made:
        yield made
