"""Backup, restore and gc as people use them: beside a running gateway, and without one."""

import base64
import json
from pathlib import Path

import pytest

from belino.testing import GatewayProcess, make_png
from cli.shell import Belino, findings_of, read

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


def test_strays_are_left_and_put_aside_on_request_with_and_without_a_gateway(belino: Belino, home: Path) -> None:
    stray, aside = (home / "blobs" / place / ("ab" * 32) for place in ("ab/ab", "aside"))
    with GatewayProcess(home) as gateway:
        say(gateway, "one")
        stray.parent.mkdir(parents=True)
        stray.write_bytes(b"lost")
        found = read(belino("media", "gc", "--json"))
        assert (found["lost"], found["strays"], found["put_aside"]) == (0, 1, 0)
        assert belino("media", "gc", "--all-strays").returncode == 0
        assert (stray.exists(), aside.read_bytes()) == (False, b"lost")
        assert gateway.stop() == 0
    aside.rename(stray)
    said = "1 file that the database does not list, left in place; see `belino doctor`\n0B freed\n"
    assert belino("media", "gc").stdout == said
    finding = findings_of(belino("doctor", "--json"))["strays"]
    assert not finding["ok"]
    assert "gc --all-strays" in finding["cure"]
    assert read(belino("media", "gc", "--all-strays", "--json")) == {
        "dry_run": False, "deleted": 0, "unused": 0, "strays": 0, "put_aside": 1, "brought_back": 0, "expired": 0,
        "lost": 0, "unfinished": 0, "freed": 0,
    }  # fmt: skip
    assert (stray.exists(), aside.read_bytes()) == (False, b"lost")
    assert belino("media", "gc").stdout == "nothing to delete\n"
    finding = findings_of(belino("doctor", "--json"))["strays"]
    assert (finding["ok"], finding["says"]) == (True, "one file (4B) put aside in blobs/aside/ for a week")


def test_the_doctor_looks_through_the_database(belino: Belino, home: Path) -> None:
    belino("status")
    findings = {one["name"]: one for one in json.loads(belino("doctor", "--json").stdout)["findings"]}
    assert (findings["database"]["ok"], findings["database"]["says"]) == (True, "whole, by quick_check")


def test_a_backup_to_a_relative_folder_is_made_and_read_back(
    belino: Belino, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert belino("token", "ls").returncode == 0  # makes the store
    assert "bk holds 0 messages" in belino("backup", "bk").stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bk", "home"]
    found = read(belino("backup", "--verify", "./bk", "--json"))
    assert (found["ok"], found["messages"], found["problems"]) == (True, 0, [])
    (tmp_path / "bk" / "key").write_bytes(bytes(32))
    told = belino("backup", "--verify", "bk")
    assert told.returncode == 1
    assert "is not intact" in told.stdout
    assert "the key is not the one this backup was made with" in told.stdout
