"""Kill the gateway at seeded random moments under load: nothing acknowledged is lost, reordered or answered twice."""

import base64
import http.client
import random
import re
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
KILLS_EACH = 5
"""Then people go on in new conversations: a turn that was hit twice while it ran alone waits for a longer life."""
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
    rng = random.Random(SEED)
    with GatewayProcess(home) as gateway:
        speakers = [speaker for number in range(KILLS // KILLS_EACH) for speaker in killed(gateway, rng, number)]
        assert sum(len(speaker.acknowledged) for speaker in speakers) > KILLS, "the load never got through"
        until_idle(gateway)
        for speaker in speakers:
            check(speaker, history(gateway, speaker.conversation))
        assert gateway.stop() == 0
    check_state_folder(home)
    assert "Traceback" not in gateway.log()


def killed(gateway: GatewayProcess, rng: random.Random, number: int) -> list[Speaker]:
    """Kill it some times while people speak in conversations of their own."""
    done, pause = threading.Event(), threading.Event()
    speakers = [Speaker(gateway, f"web:default:c{number}-{index}", done) for index in range(CONVERSATIONS)]
    for speaker in speakers:
        status, answer = gateway.call("POST", "/api/conversations", {"name": speaker.conversation.split(":")[-1]})
        assert (status, answer["conversation"]) == (201, speaker.conversation)
    threads = [threading.Thread(target=speaker.run, daemon=True) for speaker in speakers]
    for thread in threads:
        thread.start()
    for _ in range(KILLS_EACH):
        pause.wait(rng.uniform(0.0, 0.4))
        gateway.kill()
        gateway.start()
    done.set()
    for thread in threads:
        thread.join(60)
    return speakers


def check(speaker: Speaker, messages: list[dict[str, Any]]) -> None:
    assert not speaker.wrong
    said = [message for message in messages if not message["author"]["is_agent"]]
    answers = [message for message in messages if message["author"]["is_agent"]]
    ids = [message["id"] for message in said]
    assert ids[: len(speaker.acknowledged)] == speaker.acknowledged
    assert len(ids) - len(speaker.acknowledged) <= 1, "only the last one may be stored and not acknowledged"
    assert {message["outcome"] for message in said} <= {"answered"}
    # Messages that waited together share an answer, which has the trace of the first of them.
    asked, traces = [message["trace"] for message in said], [message["trace"] for message in answers]
    assert traces[0] == asked[0]
    assert traces == [trace for trace in asked if trace in set(traces)]
    firsts = [asked.index(trace) for trace in traces]
    for answer, first, end in zip(answers, firsts, [*firsts[1:], len(said)], strict=True):
        assert told(answer["text"]) == (2 * (end - first), sum(len(one["media"]) for one in said[first:end]))


def told(answer: str) -> tuple[int, int]:
    """How many words and attachments the demo agent says it got: all of the messages that it answers, and no other."""
    found = re.search(r"You sent me ([0-9]+) words(?: and ([0-9]+) attachment)?", answer)
    assert found, answer
    return int(found[1]), int(found[2] or 0)
