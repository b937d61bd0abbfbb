"""A full disk: refused with a reason, nothing acknowledged that is not stored, and recovery without a restart."""

import resource
from pathlib import Path
from typing import Any

import pytest

from belino.testing import GatewayProcess
from faults.looking import append, check_state_folder, history, until_idle

CONVERSATION = "web:default:main"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux can fill the disk of another process"),
]


def fill_disk(gateway: GatewayProcess) -> None:
    # From now on no write beyond the first byte of any file succeeds, as on a full disk.
    resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))


def free_disk(gateway: GatewayProcess) -> None:
    resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def say(gateway: GatewayProcess, name: str) -> tuple[int, Any]:
    return gateway.call("POST", "/api/messages", {"conversation": CONVERSATION, "message": f"I am {name}", "id": name})


def test_what_cannot_be_stored_is_refused_and_taken_once_there_is_room(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with GatewayProcess(home) as gateway:
        assert say(gateway, "before")[0] == 200
        until_idle(gateway)
        fill_disk(gateway)
        for attempt in range(5):
            status, answer = say(gateway, f"during{attempt}")
            assert (status, answer["error"]["code"]) == (507, "store_full"), answer
        assert [m["id"] for m in history(gateway, CONVERSATION) if not m["author"]["is_agent"]] == ["before"]
        assert gateway.call("GET", "/healthz")[0] == 200
        free_disk(gateway)
        assert say(gateway, "during0")[0] == 200
        assert say(gateway, "after")[0] == 200
        until_idle(gateway)
        messages = history(gateway, CONVERSATION)
        said = [m for m in messages if not m["author"]["is_agent"]]
        answers = [m for m in messages if m["author"]["is_agent"]]
        assert [m["id"] for m in said] == ["before", "during0", "after"]
        assert [m["trace"] for m in answers] == [m["trace"] for m in said]
        assert gateway.stop() == 0
    check_state_folder(home)


def test_an_upload_that_finds_the_disk_full_goes_on_where_it_stood(tmp_path: Path) -> None:
    home = tmp_path / "home"
    announced = {"conversation": CONVERSATION, "file_name": "notes.txt", "mime_type": "text/plain", "size": 10}
    with GatewayProcess(home) as gateway:
        status, upload = gateway.call("POST", "/api/uploads", announced)
        assert status == 201, upload
        path = f"/api/uploads/{upload['upload_id']}"
        fill_disk(gateway)
        status, answer = append(gateway, path, b"0123456789", offset=0)
        assert (status, answer["error"]["code"]) == (507, "store_full"), answer
        free_disk(gateway)
        _, where = gateway.call("GET", path)
        status, answer = append(gateway, path, b"0123456789"[where["offset"] :], offset=where["offset"])
        assert (status, answer["offset"]) == (200, 10), answer
        assert len(answer["sha256"]) == 64
        assert gateway.stop() == 0
