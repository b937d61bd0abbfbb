"""A configuration that is changed, rejected and corrected while a gateway runs, and before it starts."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from belino.testing import GatewayProcess
from cli.shell import Belino, read

pytestmark = pytest.mark.slow

PATIENCE = 60.0


def write(home: Path, **table: object) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "belino.json").write_text(json.dumps(table), encoding="utf-8")


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_running_gateway_applies_its_file_on_command_and_on_a_signal_and_survives_a_broken_one(
    belino: Belino, home: Path
) -> None:
    write(home, agent={"name": "Ada"})
    with GatewayProcess(home) as gateway:

        def name() -> str:
            return str(gateway.call("GET", "/api/status")[1]["agent"]["name"])

        write(home, agent={"name": "Bea"}, server={"session_hours": 1})
        done = read(belino("config", "reload", "--json"))
        assert (done["applied"], done["restart"]) == (["agent.name"], ["server.session_hours"])
        assert name() == "Bea"
        shown = belino("config", "reload").stdout
        assert "needs a restart: server.session_hours" in shown
        (home / "belino.json").write_text('{"agent": ')
        broken = belino("config", "reload")
        assert broken.returncode == 1 and "not valid JSON" in broken.stderr
        assert name() == "Bea"
        status = belino("status").stdout
        assert "rejected, the running configuration is in use" in status
        write(home, agent={"name": "Cleo"})
        os.kill(gateway.pid, signal.SIGHUP)
        until(lambda: name() == "Cleo")
        assert "rejected" not in belino("status").stdout
        gateway.stop()

    (home / "belino.json").write_text('{"agent": {"name": 7}}')
    strict = belino("serve", "--strict", "--port", "0")
    assert strict.returncode != 0 and "agent.name must be a string" in strict.stderr
    with GatewayProcess(home) as gateway:
        _, status_now = gateway.call("GET", "/api/status")
        assert status_now["agent"]["name"] == "Cleo"
        assert status_now["config"]["is_last_good"] and "agent.name" in status_now["config"]["rejected"]
        until(lambda: gateway.call("GET", "/api/notices")[1]["notices"])
        assert "the copy that worked last is in use" in belino("status").stdout
        gateway.stop()
    assert "configuration that worked last is used instead" in gateway.log_file.read_text()


def test_without_a_gateway_there_is_nothing_to_reload(belino: Belino) -> None:
    done = belino("config", "reload")
    assert done.returncode == 69 and "start it with `belino serve`" in done.stderr
