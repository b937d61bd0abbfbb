"""What tests of media understanding share."""

import pytest

from understanding.scripted import Shelf


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return Shelf(monkeypatch)
