"""Backup, restore and gc as people use them: beside a running gateway, and without one."""

import base64
import json
from pathlib import Path

import pytest

from belino.testing import GatewayProcess, make_png
from cli.shell import Belino, read

pytestmark = pytest.mark.slow

MAIN = "web:default:main"


def say(gateway: GatewayProcess, name: str) -> None:
    picture = base64.b64encode(make_png(5, len(name))).decode()
    attachment = {"mime_type": "image/png", "file_name": "dot.png", "content": picture}
    body = {"conversation": MAIN, "message": name, "id": name, "attachments": [attachment]}
    status, answer = gateway.call("POST", "/api/messages", body)
    assert status == 200, answer


def test_a_backup_beside_a_running_gateway_comes_back_when_it_is_stopped(
    belino: Belino, home: Path, tmp_path: Path
) -> None:
    folder = str(tmp_path / "backup")
    with GatewayProcess(home) as gateway:
        say(gateway, "one")
        done = read(belino("backup", folder, "--json"))
        assert (done["blobs"], done["damaged"], done["has_key"]) == (1, [], True)
        assert "and 1 file (" in belino("backup", folder).stdout
        say(gateway, "two")
        refused = belino("restore", folder)
        assert refused.returncode == 1
        assert "stop it first" in refused.stderr
        assert gateway.stop() == 0
    back = read(belino("restore", folder, "--json"))
    assert (back["blobs"], back["lost"], Path(back["aside"]).is_dir()) == (1, 0, True)
    with GatewayProcess(home) as gateway:
        status, page = gateway.call("GET", f"/api/messages?conversation={MAIN}&limit=50")
        assert status == 200
        assert [m["id"] for m in page["messages"] if not m["author"]["is_agent"]] == ["one"]
        (media,) = [item for message in page["messages"] for item in message["media"]]
        assert (media["outcome"], media["url"] is not None) == ("held", True)
        assert gateway.stop() == 0


def test_what_lies_around_is_found_with_and_without_a_gateway(belino: Belino, home: Path) -> None:
    stray = home / "blobs" / "ab" / "ab" / ("ab" * 32)
    with GatewayProcess(home) as gateway:
        say(gateway, "one")
        stray.parent.mkdir(parents=True)
        stray.write_bytes(b"lost")
        found = read(belino("media", "gc", "--dry-run", "--json"))
        assert found["lost"] == 0
        assert belino("media", "gc").returncode == 0
        assert not stray.exists()
        assert gateway.stop() == 0
    stray.write_bytes(b"lost")
    told = belino("media", "gc", "--dry-run")
    assert told.stdout == "1 file that no row knows\n4B would be freed\n"
    assert stray.exists()
    assert read(belino("media", "gc", "--json")) == {
        "dry_run": False, "deleted": 0, "unused": 0, "strays": 1, "lost": 0, "unfinished": 0, "freed": 4,
    }  # fmt: skip
    assert not stray.exists()
    assert belino("media", "gc").stdout == "nothing lies around\n"


def test_the_doctor_looks_through_the_database(belino: Belino, home: Path) -> None:
    belino("status")
    findings = {one["name"]: one for one in json.loads(belino("doctor", "--json").stdout)["findings"]}
    assert (findings["database"]["ok"], findings["database"]["says"]) == (True, "whole, by quick_check")
