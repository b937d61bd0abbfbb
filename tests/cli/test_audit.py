"""The accounting check as people use it: the same answer beside a running gateway and without one."""

import json
from pathlib import Path

import pytest

from belino.testing import GatewayProcess
from cli.shell import Belino, read

pytestmark = pytest.mark.slow


def test_the_audit_is_the_same_with_and_without_a_gateway_and_fails_on_a_discrepancy(
    belino: Belino, home: Path
) -> None:
    with GatewayProcess(home) as gateway:
        body = {"conversation": "web:default:main", "message": "hello", "id": "one"}
        assert gateway.call("POST", "/api/messages", body)[0] == 200
        running = read(belino("audit", "--json"))
        assert (running["ok"], running["difference"], running["arrivals"][0]["taken"]) == (True, 0, 1)
        assert gateway.call("GET", "/api/audit", token="nobody")[0] == 401
        assert gateway.stop() == 0
    told = belino("audit")
    assert (told.returncode, told.stdout.splitlines()[-1]) == (0, "everything is accounted for")
    stray = home / "blobs" / "ab" / "ab" / ("ab" * 32)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"lost")
    told = belino("audit")
    assert told.returncode == 1
    assert told.stdout.splitlines()[-2].startswith("file without row: files in blobs/ are named by no row. ")
    assert told.stdout.splitlines()[-1] == f"  {stray.name}"
    assert [each["kind"] for each in json.loads(belino("audit", "--json").stdout)["discrepancies"]] == [
        "file without row"
    ]
