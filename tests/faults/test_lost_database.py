"""A database that is lost, older or damaged costs no media: real gateways on state folders that were changed."""

import base64
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from belino.testing import GatewayProcess, make_png
from cli.shell import Done, findings_of, read, run_belino

MAIN = "web:default:main"
FILES = 8
OLD_SECONDS = 3 * 86_400


def belino(home: Path, *arguments: str) -> Done:
    return run_belino(*arguments, home=home, environment={})


def attach(gateway: GatewayProcess, number: int) -> None:
    picture = base64.b64encode(make_png(5, number + 1)).decode()
    attachment = {"mime_type": "image/png", "file_name": "dot.png", "content": picture}
    body = {"conversation": MAIN, "message": "look", "id": f"m{number}", "attachments": [attachment]}
    status, answer = gateway.call("POST", "/api/messages", body)
    assert status == 200, answer


def lying(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "blobs").glob("??/??/*"))


def swept(gateway: GatewayProcess) -> dict[str, Any]:
    """The sweep of the start is over once the database is checked; what it found."""
    for _ in range(6_000):
        status, answer = gateway.call("GET", "/api/status")
        assert status == 200
        found = {finding["name"]: finding for finding in answer["soundness"]}
        if found["database"]["says"] == "whole, by quick_check":
            return found
        time.sleep(0.01)
    raise AssertionError("the database was not checked")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with eight files three days old, and beside it the database as it was after the third."""
    folder = tmp_path_factory.mktemp("filled")
    home = folder / "home"
    with GatewayProcess(home) as gateway:
        for number in range(FILES):
            if number == 3:
                assert gateway.stop() == 0
                shutil.copy(home / "belino.db", folder / "older.db")
                gateway.start()
            attach(gateway, number)
        assert gateway.stop() == 0
    old = time.time() - OLD_SECONDS
    for path in (home / "blobs").glob("??/??/*"):
        os.utime(path, (old, old))
    assert len(lying(home)) == FILES
    return folder


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copytree(filled / "home", tmp_path / "home"))


def remove(home: Path) -> None:
    (home / "belino.db").unlink()


def empty(home: Path) -> None:
    os.truncate(home / "belino.db", 0)


@pytest.mark.leaves_discrepancies("file without row")
@pytest.mark.parametrize("change", [remove, empty])
def test_without_its_database_a_gateway_refuses_to_start_and_names_the_options(
    home: Path, change: Callable[[Path], None]
) -> None:
    before = lying(home)
    change(home)
    for command in (("serve", "--port", "0"), ("status",), ("media", "gc")):
        done = belino(home, *command)
        assert done.returncode == 1
        for option in ("belino restore DIR", "belino doctor --repair", "belino serve --start-empty"):
            assert option in done.stderr
    finding = findings_of(belino(home, "doctor", "--json"))["store"]
    assert "8 media files" in finding["says"]
    assert "nothing to salvage" in belino(home, "doctor", "--repair").stderr
    with GatewayProcess(home, arguments=("--start-empty",)) as gateway:
        found = swept(gateway)
        assert not found["strays"]["ok"]
        assert found["strays"]["says"].startswith("8 files")
        assert gateway.stop() == 0
    with GatewayProcess(home) as gateway:  # it was decided: a service that starts again needs no option
        swept(gateway)
        assert gateway.stop() == 0
    assert lying(home) == before


def test_an_older_database_costs_no_file_and_the_right_one_finds_all_of_them(home: Path, filled: Path) -> None:
    before = lying(home)
    (home / "belino.db").rename(home / "right.db")
    shutil.copy(filled / "older.db", home / "belino.db")
    with GatewayProcess(home) as gateway:
        found = swept(gateway)
        assert found["strays"]["says"].startswith("5 files")
        assert not found["strays"]["ok"]
        doctor = findings_of(belino(home, "doctor", "--json"))
        assert not doctor["strays"]["ok"]
        assert gateway.stop() == 0
    assert lying(home) == before
    read(belino(home, "media", "gc", "--all-strays", "--json"))
    assert len(lying(home)) == 3
    (home / "right.db").rename(home / "belino.db")
    with GatewayProcess(home) as gateway:
        assert "strays" not in swept(gateway)
        status, page = gateway.call("GET", f"/api/messages?conversation={MAIN}&limit=50")
        held = [item["outcome"] for message in page["messages"] for item in message["media"]]
        assert (status, held) == (200, ["held"] * FILES)
        assert gateway.stop() == 0
    assert lying(home) == before


def test_a_damaged_database_is_repaired_with_its_media(home: Path) -> None:
    before = lying(home)
    with (home / "belino.db").open("r+b") as file:
        file.write(bytes(100))
    refused = belino(home, "serve", "--port", "0")
    assert refused.returncode == 1
    assert "belino doctor --repair" in refused.stderr
    assert "belino restore DIR" in refused.stderr
    told = belino(home, "doctor", "--repair")
    assert told.returncode == 0, told.stderr
    assert "is kept as" in told.stdout
    assert "messages" in told.stdout
    assert read(belino(home, "doctor", "--repair", "--json"))["was_damaged"] is False
    with GatewayProcess(home) as gateway:
        assert "strays" not in swept(gateway)
        assert "stop it first" in belino(home, "doctor", "--repair").stderr
        status, page = gateway.call("GET", f"/api/messages?conversation={MAIN}&limit=50")
        held = [item["outcome"] for message in page["messages"] for item in message["media"]]
        assert (status, held) == (200, ["held"] * FILES)
        assert gateway.stop() == 0
    assert lying(home) == before


def test_a_lost_key_is_refused_and_a_new_one_is_made_only_when_asked_for(home: Path) -> None:
    (home / "key").unlink()
    refused = belino(home, "serve", "--port", "0")
    assert refused.returncode == 1
    assert "belino serve --new-key" in refused.stderr
    assert "belino restore DIR" in refused.stderr
    assert not (home / "key").exists()
    with GatewayProcess(home, arguments=("--new-key",)) as gateway:
        swept(gateway)
        assert gateway.stop() == 0
    assert (home / "key").stat().st_size == 32
    assert len(lying(home)) == FILES
