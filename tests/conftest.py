"""While tests run, this process talks to loopback and to nothing else."""

import ipaddress
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent
# Whole gateways and web servers, one for each test: together they take longer than all other quick tests.
SLOW_ROOMS = ("gateway", "web")

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


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in SLOW_ROOMS:
            item.add_marker(pytest.mark.slow)
