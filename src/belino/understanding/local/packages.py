"""Packages: whether a library is installed, without importing it."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path


def missing_packages(names: Iterable[str], extra: str) -> str:
    """How to install what is missing; empty if nothing is."""
    absent = [name for name in names if find_spec(name) is None]
    if not absent:
        return ""
    return f"{' and '.join(absent)} is not installed here; install it with `pip install 'belino[{extra}]'`"


def package_folder(name: str) -> Path | None:
    """The folder of an installed package."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
