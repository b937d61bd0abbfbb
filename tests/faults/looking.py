"""Shared by the fault runs: how many rounds, and how to look at what a gateway has kept."""

import hashlib
import http.client
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from belino.testing import GatewayProcess

SOAK = os.environ.get("BELINO_SOAK") == "1"
SETTLE_SECONDS = 120.0


def history(gateway: GatewayProcess, conversation: str) -> list[dict[str, Any]]:
    """Everything said in a conversation, oldest first."""
    messages: list[dict[str, Any]] = []
    after = 0
    while True:
        path = f"/api/messages?conversation={quote(conversation)}&after={after}&limit=200"
        status, page = gateway.call("GET", path)
        assert status == 200, page
        if not page["messages"]:
            return messages
        messages += page["messages"]
        after = messages[-1]["seq"]


def append(gateway: GatewayProcess, path: str, piece: bytes, *, offset: int) -> tuple[int, Any]:
    """Send a piece of an upload."""
    address = urlsplit(gateway.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        headers = {"Authorization": f"Bearer {gateway.token}", "Upload-Offset": str(offset)}
        connection.request("PATCH", path, body=piece, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def until(settled: Callable[[], bool], what: str) -> None:
    """Look again until it is so; fail with `what` when it never becomes so."""
    deadline = time.monotonic() + SETTLE_SECONDS
    pause = threading.Event()
    while not settled():
        assert time.monotonic() < deadline, what
        pause.wait(0.05)


def until_idle(gateway: GatewayProcess) -> None:
    """Look again until no turn waits or runs and no parcel is on its way; fail once nothing moves any more."""
    pause = threading.Event()
    before, deadline = (-1, -1), 0.0
    while (left := _under_way(gateway)) != (0, 0):
        if left != before:
            before, deadline = left, time.monotonic() + SETTLE_SECONDS
        assert time.monotonic() < deadline, f"{left[0]} turns and {left[1]} parcels never ended"
        pause.wait(0.05)


def _under_way(gateway: GatewayProcess) -> tuple[int, int]:
    """Turns that wait or run, and parcels on their way."""
    _, status = gateway.call("GET", "/api/conversations")
    _, outbox = gateway.call("GET", "/api/outbox")
    turns = sum(entry["waiting"] for entry in status["conversations"])
    return turns, sum(parcel["state"] not in {"sent", "dead"} for parcel in outbox["parcels"])


def check_state_folder(home: Path) -> None:
    """The database is whole, every blob is what its name says, only uploads that a client can resume are unfinished."""
    with closing(sqlite3.connect(home / "belino.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM uploads WHERE NOT resumable").fetchone() == (0,)
        unfinished = {f"upload-{row[0]}" for row in database.execute("SELECT id FROM uploads WHERE sha256 IS NULL")}
    for path in (home / "blobs").rglob("*"):
        if path.parent.name == "tmp":
            assert path.name in unfinished
        elif path.is_file():
            assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that these have."""
    parents = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(file.parent.name)] = int(file.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    below = {pid}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return below - {pid}


def command_of(pid: int) -> str:
    """The command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    """Whether a process exists and is not just waiting to be forgotten."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
