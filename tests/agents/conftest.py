"""A town for every test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tools.town import Town, settled


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with settled(tmp_path / "home") as found:
        yield found
