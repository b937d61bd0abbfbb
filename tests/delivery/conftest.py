"""What delivery's tests start from."""

from pathlib import Path

import pytest

from gateway.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "home")
