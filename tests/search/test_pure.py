"""Search is pure: it knows the domain, and neither SQL nor asyncio nor any file but its own data."""

import ast
import sys
from pathlib import Path

import belino.search

MODULES = sorted(Path(belino.search.__file__).parent.rglob("*.py"))
OURS = ("belino.domain", "belino.search")
LIBRARIES = {"orjson"}
IMPURE = {"asyncio", "concurrent", "io", "os", "pathlib", "shutil", "socket", "sqlite3", "subprocess", "threading"}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_search_imports_the_domain_and_nothing_impure() -> None:
    for path in MODULES:
        for name in imports(path):
            top = name.partition(".")[0]
            allowed = name.startswith(OURS) or top in LIBRARIES or top in sys.stdlib_module_names - IMPURE
            assert allowed, f"{path.name} imports {name}"


def test_search_awaits_and_opens_nothing() -> None:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not isinstance(node, ast.AsyncFunctionDef | ast.Await), path.name
            assert not (isinstance(node, ast.Name) and node.id == "open"), path.name
