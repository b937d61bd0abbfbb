"""belino outbox flush, against a real gateway and without one."""

import json
import os
from pathlib import Path

import pytest

from belino.domain.message import ConversationKey
from belino.storage.home import Home
from belino.testing import GatewayProcess
from cli.shell import Belino

TRIP = ConversationKey(platform="web", account="default", channel="trip")


def test_without_a_gateway_there_is_nobody_to_send(belino: Belino) -> None:
    done = belino("outbox", "flush")
    assert done.returncode == 69
    assert "no gateway runs" in done.stderr


@pytest.mark.slow
def test_files_dropped_by_a_script_go_out_at_once_and_what_does_not_is_told(home: Path, belino: Belino) -> None:
    with GatewayProcess(home) as gateway:
        assert gateway.call("POST", "/api/conversations", {"name": "Trip"})[0] == 201
        pending = Home.at(home).outgoing(TRIP) / "pending"
        (pending / "report.txt").write_text("all is well")
        os.utime(pending / "report.txt", (1_000_000_000, 1_000_000_000))
        done = belino("outbox", "flush", str(TRIP))
        assert (done.returncode, done.stdout) == (0, f"{TRIP}: report.txt is queued\n")
        (pending / "link.txt").symlink_to(home / "key")
        done = belino("outbox", "flush", "--json")
        assert done.returncode == 1
        (flushed,) = json.loads(done.stdout)["flushed"]
        assert flushed["refused"] == [{"name": "link.txt", "reason": "it is a link"}]
        assert belino("outbox", "flush").stdout == "nothing is pending\n"
        assert (pending.parent / "error" / "link.txt.error.txt").read_text() == "it is a link\n"
