"""Kill the gateway at seeded random moments under load: nothing acknowledged is lost, reordered or answered twice."""

import base64
import http.client
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from belino.testing import GatewayProcess, make_png
from faults.looking import SOAK, check_state_folder, history, until_idle

KILLS = 1000 if SOAK else 50
SEED = 20261115
CONVERSATIONS = 4
PICTURE = base64.b64encode(make_png(3, 2)).decode()


@dataclass(slots=True)
class Speaker:
    """Says one numbered thing after another, and says it again under the same id until it is acknowledged."""

    gateway: GatewayProcess
    conversation: str
    done: threading.Event
    acknowledged: list[str] = field(default_factory=list)
    wrong: list[object] = field(default_factory=list)

    def run(self) -> None:
        number = 0
        while not self.done.is_set():
            if self.say(number):
                number += 1

    def say(self, number: int) -> bool:
        body: dict[str, Any] = {"conversation": self.conversation, "message": f"number {number}", "id": f"n{number}"}
        if number % 5 == 0:
            body["attachments"] = [{"mime_type": "image/png", "file_name": "dot.png", "content": PICTURE}]
        try:
            status, answer = self.gateway.call("POST", "/api/messages", body)
        except (OSError, http.client.HTTPException, KeyError, ValueError):
            return self.done.wait(0.02)  # killed, or on its way up: the same again
        if status == 200:
            self.acknowledged.append(f"n{number}")
        elif status not in {401, 503}:  # another process took the port, or it is closing
            self.wrong.append((status, answer))
        return status == 200


@pytest.mark.slow
def test_a_gateway_killed_at_random_moments_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    # A turn may be hit by many kills here; that it gives up after three is told elsewhere.
    (home / "belino.toml").write_text("[sessions]\nattempts = 100000\n", encoding="utf-8")
    rng = random.Random(SEED)
    done = threading.Event()
    pause = threading.Event()
    with GatewayProcess(home) as gateway:
        speakers = [Speaker(gateway, f"web:default:c{index}", done) for index in range(CONVERSATIONS)]
        for speaker in speakers:
            status, answer = gateway.call("POST", "/api/conversations", {"name": speaker.conversation.split(":")[-1]})
            assert (status, answer["conversation"]) == (201, speaker.conversation)
        threads = [threading.Thread(target=speaker.run, daemon=True) for speaker in speakers]
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            pause.wait(rng.uniform(0.0, 0.4))
            gateway.kill()
            gateway.start()
        done.set()
        for thread in threads:
            thread.join(60)
        until_idle(gateway)
        for speaker in speakers:
            check(speaker, history(gateway, speaker.conversation))
        assert gateway.stop() == 0
    check_state_folder(home)


def check(speaker: Speaker, messages: list[dict[str, Any]]) -> None:
    assert not speaker.wrong
    said = [message for message in messages if not message["author"]["is_agent"]]
    answers = [message for message in messages if message["author"]["is_agent"]]
    assert speaker.acknowledged, "the load never got through"
    ids = [message["id"] for message in said]
    assert ids[: len(speaker.acknowledged)] == speaker.acknowledged
    assert len(ids) - len(speaker.acknowledged) <= 1, "only the last one may be stored and not acknowledged"
    assert {message["outcome"] for message in said} == {"answered"}
    assert [message["trace"] for message in answers] == [message["trace"] for message in said]
