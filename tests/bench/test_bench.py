"""Every benchmark can be run by its name."""

import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

from belino import bench

NAMES = [module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_")]


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_has_a_run(name: str) -> None:
    assert callable(import_module(f"belino.bench.{name}").run)


def test_they_are_the_ones_the_pages_list() -> None:
    root = Path(__file__).parents[2]
    assert f"\n{' | '.join(NAMES)}\n" in (root / "README.md").read_text(encoding="utf-8")
    assert ", ".join(f"`{name}`" for name in NAMES) in (root / "docs" / "cli.md").read_text(encoding="utf-8")
