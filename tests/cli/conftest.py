"""A state folder, and the command line on it."""

from pathlib import Path

import pytest

from cli.shell import Belino, Done, run_belino


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def belino(home: Path) -> Belino:
    def run(*arguments: str, **environment: str) -> Done:
        return run_belino(*arguments, home=home, environment=environment)

    return run
