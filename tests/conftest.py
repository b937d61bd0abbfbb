"""While tests run, this process talks to loopback and to nothing else; what every test would pay for is paid once."""

import gc
import ipaddress
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings

from belino.storage import sqlite
from belino.storage.sqlite import migrate

TESTS = Path(__file__).parent
# Whole gateways, web servers and browsers: each room takes longer than all the quick tests.
SLOW_ROOMS = ("browser", "faults", "gateway", "journeys", "turns", "web")
SLOW_MODULE = "\npytestmark = pytest.mark.slow\n"

# Collecting makes a million objects that live to the end: none of them is worth looking at again and again.
gc.disable()

# A slow machine is no failure: how long an example takes is for the bench to say.
settings.register_profile("belino", deadline=None)
settings.load_profile("belino")


def _is_here(host: object) -> bool:
    if host is None or host in ("", b"", "localhost", b"localhost"):
        return True
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text).is_loopback or text == "0.0.0.0"
    except ValueError:
        return False


def _watch(event: str, arguments: tuple[object, ...], *, is_here: Callable[[object], bool] = _is_here) -> None:
    if event == "socket.connect" and isinstance(arguments[1], tuple) and not is_here(arguments[1][0]):
        raise AssertionError(f"a test connects to {arguments[1][0]}")
    if event == "socket.getaddrinfo" and not is_here(arguments[0]):
        raise AssertionError(f"a test looks up {arguments[0]!r}")


sys.addaudithook(_watch)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In the quick part, what is slow as a whole is not even read: half of the time to collect went into it."""
    if config.option.markexpr != "not slow":
        return None
    if collection_path.parent == TESTS and collection_path.name in SLOW_ROOMS:
        return True
    if collection_path.suffix == ".py" and SLOW_MODULE in collection_path.read_text(encoding="utf-8"):
        return True
    return None


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in SLOW_ROOMS:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # a test makes much and keeps little of it
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def new_databases_are_copies() -> Iterator[None]:
    """A thousand tests open a new store: its tables are made once (test_migrations makes them) and then copied."""
    template = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(template)

    def copied(connection: sqlite3.Connection) -> None:
        if all(connection.execute(f"PRAGMA {kind}_version").fetchone()[0] == 0 for kind in ("schema", "user")):
            template.backup(connection)
        migrate(connection)

    with closing(template), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "migrate", copied)
        yield
