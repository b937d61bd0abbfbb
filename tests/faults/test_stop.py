"""A gateway that is asked to stop while it is written to: refusals in JSON, and nothing acknowledged is lost."""

import http.client
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from belino.testing import GatewayProcess
from faults.looking import SOAK, history, until_idle

WRITERS = 10
STOPS = 20 if SOAK else 1
ACKNOWLEDGED_FIRST = 3


@dataclass(slots=True, kw_only=True)
class Writer:
    """Says one thing after another until the gateway is gone."""

    gateway: GatewayProcess
    conversation: str
    acknowledged: list[str] = field(default_factory=list)
    refused: list[tuple[int, Any]] = field(default_factory=list)
    is_writing: threading.Event = field(default_factory=threading.Event)

    def run(self, stop: int) -> None:
        number = 0
        while True:
            message_id = f"s{stop}n{number}"
            body = {"conversation": self.conversation, "message": f"number {number}", "id": message_id}
            try:
                status, answer = self.gateway.call("POST", "/api/messages", body)
            except (OSError, http.client.HTTPException):
                return
            if status == 200:
                self.acknowledged.append(message_id)
            else:
                self.refused.append((status, answer))
            number += 1
            if number >= ACKNOWLEDGED_FIRST:
                self.is_writing.set()


@pytest.mark.slow
def test_a_stop_under_load_refuses_in_json_and_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        writers = [Writer(gateway=gateway, conversation=f"web:default:c{number}") for number in range(WRITERS)]
        for writer in writers:
            gateway.call("POST", "/api/conversations", {"name": writer.conversation.rpartition(":")[2]})
        for stop in range(STOPS):
            threads = [threading.Thread(target=writer.run, args=(stop,), daemon=True) for writer in writers]
            for writer, thread in zip(writers, threads, strict=True):
                writer.is_writing.clear()
                thread.start()
            for writer in writers:
                assert writer.is_writing.wait(60)
            assert gateway.stop(signal.SIGTERM) == 0
            for thread in threads:
                thread.join(60)
            gateway.start()
        until_idle(gateway)
        for writer in writers:
            said = [message["id"] for message in history(gateway, writer.conversation)]
            assert [message_id for message_id in said if message_id in writer.acknowledged] == writer.acknowledged
            for status, answer in writer.refused:
                assert (status, answer["error"]["code"]) == (503, "busy")
        assert gateway.stop() == 0
        assert "Traceback" not in gateway.log()
