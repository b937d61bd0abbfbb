"""What the README shows is what happens."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from belino.cli import COMMANDS
from belino.context.line_format import placeholder
from belino.domain.media import MediaKind, MediaRef
from belino.testing import GatewayProcess, make_png

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "own_agent.py"
MAIN = "web:default:main"


def test_the_line_the_agent_sees_is_the_line_it_sees() -> None:
    ref = MediaRef(
        platform="web",
        account="default",
        channel_id="main",
        message_id="1",
        item="0",
        id="web_k3v9d0q2m7xa",
        kind=MediaKind.IMAGE,
        mime="image/jpeg",
        file_name="sunset.jpg",
        size=2_500_000,
        caption="The view from here",
        created=datetime(2026, 11, 15, tzinfo=UTC),
    )
    assert placeholder(ref) in README


def test_the_commands_are_the_commands() -> None:
    listed = re.search(r"^belino (serve .*)$", README, re.MULTILINE)
    assert listed
    assert set(listed.group(1).split(" | ")) == set(COMMANDS)


def test_the_agent_in_the_text_is_the_one_in_the_example() -> None:
    shown = re.search(r"```python\n(from belino import .*?\n)```\n", README, re.DOTALL)
    assert shown
    example = EXAMPLE.read_text(encoding="utf-8").partition("\n\n")[2]
    lines = _written(shown.group(1))
    assert lines == _written(example.replace('if __name__ == "__main__":\n    run', "run"))
    assert len(lines) <= 14 and sum("import" in line for line in lines) == 1


@pytest.mark.slow
def test_a_conversation_its_story_and_a_restart(tmp_path: Path) -> None:
    picture = {
        "mime_type": "image/png",
        "file_name": "photo.png",
        "content": base64.b64encode(make_png(64, 48)).decode(),
    }
    said = {"conversation": MAIN, "message": "Here is a picture.", "id": "3f9ac1", "attachments": [picture]}
    with GatewayProcess(tmp_path / "home") as gateway:
        assert gateway.call("POST", "/api/messages", said)[0] == 200
        answer = wait_for(lambda: answer_in(gateway))
        assert "64×48" in answer["text"]
        told = subprocess.run(
            [sys.executable, "-m", "belino", "explain", f"{MAIN}/3f9ac1", "--home", str(tmp_path / "home")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        shown = README.partition(f"$ belino explain {MAIN}/3f9ac1\n")[2].partition("```")[0]
        assert steps_of(told) == steps_of(shown)
        assert gateway.stop(signal.SIGINT) == 0
        gateway.start()
        assert answer_in(gateway) == answer


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C reaches what a test starts, also where a shell has the tests ignore it, in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("heard")
def test_the_example_answers_in_the_web_chat(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "belino.toml").write_text("[server]\nport = 0\n", encoding="utf-8")
    environment = {**os.environ, "BELINO_HOME": str(home)}
    with subprocess.Popen(
        [sys.executable, str(EXAMPLE)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            assert "#token=" in process.stdout.readline()
            gateway = Running(home)
            file = {"mime_type": "text/plain", "file_name": "a.txt", "content": base64.b64encode(b"hello").decode()}
            said = {"conversation": MAIN, "message": "Hello", "attachments": [file]}
            assert gateway.call("POST", "/api/messages", said)[0] == 200
            wait_for(lambda: dict(enumerate(answers_in(gateway))).get(1))  # the text and the file
            answers = answers_in(gateway)
            assert [answer["text"] for answer in answers if answer["text"]] == ["You wrote: Hello\na.txt has 5 bytes"]
            assert [file["file_name"] for answer in answers for file in answer["media"]] == ["a.txt"]
            assert gateway.call("GET", "/api/status")[1]["agent"] == {"name": "belino", "kind": "Echo"}
            process.send_signal(signal.SIGINT)
            _, printed = process.communicate(timeout=60)
            assert (process.returncode, "Traceback" in printed) == (0, False)
        finally:
            process.kill()


def _written(code: str) -> list[str]:
    """The lines that are not blank."""
    return [line for line in code.splitlines() if line.strip()]


def steps_of(story: str) -> list[str]:
    """The stages of a story, each with how it went."""
    return re.findall(r"^[0-9:.]{12}  (\w+ +\w+)", story, re.MULTILINE)


class Running(GatewayProcess):
    """A gateway that somebody else has started."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._run = json.loads((home / "run.json").read_text(encoding="utf-8"))


def answer_in(gateway: GatewayProcess) -> dict[str, Any] | None:
    return next(iter(answers_in(gateway)), None)


def answers_in(gateway: GatewayProcess) -> list[dict[str, Any]]:
    _, page = gateway.call("GET", f"/api/messages?conversation={MAIN}")
    return [message for message in page["messages"] if message["author"]["is_agent"]]


def wait_for(look: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
    deadline, pause = time.monotonic() + 60, threading.Event()
    while (found := look()) is None:
        assert time.monotonic() < deadline, "no answer came"
        pause.wait(0.05)
    return found
