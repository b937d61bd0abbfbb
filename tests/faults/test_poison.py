"""One message ends the process again and again: the others are answered, and it alone is given up."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from belino.testing import GatewayProcess
from cli.shell import run_belino
from faults.looking import check_state_folder, history, until
from faults.poisonous import EXIT_CODE

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
POISONED = "web:default:poisoned"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway with default settings, whose agent is found as an installed package's would be."""
    package = tmp_path / "installed" / "poisonous-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: poisonous\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[belino.agents]\npoisonous = faults.poisonous\n")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "belino.json").write_text(json.dumps({"agent": {"kind": "poisonous", "folder": str(tmp_path)}}))
    with GatewayProcess(home, environment={"PYTHONPATH": f"{package.parent}:{TESTS}"}) as gateway:
        yield gateway


def say(gateway: GatewayProcess, name: str, text: str) -> str:
    status, opened = gateway.call("POST", "/api/conversations", {"name": name})
    assert status == 201
    where = str(opened["conversation"])
    assert gateway.call("POST", "/api/messages", {"conversation": where, "message": text, "id": "m"})[0] == 200
    return where


def outcome(gateway: GatewayProcess, where: str) -> str:
    return str(history(gateway, where)[0]["outcome"])


def told(gateway: GatewayProcess) -> list[tuple[str, str]]:
    _, story = gateway.call("GET", f"/api/explain?message={quote(f'{POISONED}/m')}")
    return [(step["outcome"], step["reason"]) for step in story["steps"] if step["stage"] == "turn"]


def test_ten_turns_beside_a_poison_message_get_ten_answers_and_it_is_given_up_after_three_crashes_of_its_own(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    others = [say(gateway, f"c{number}", "hello") for number in range(5)]
    assert say(gateway, "poisoned", "P0ISON") == POISONED
    others += [say(gateway, f"c{number}", "hello") for number in range(5, 10)]
    assert gateway.wait() == EXIT_CODE  # eleven turns ran
    (tmp_path / "go").touch()
    for _ in range(2):  # it ran alone; the second time the others were answered before it
        gateway.start()
        assert gateway.wait() == EXIT_CODE
    gateway.start()
    answers = [[(one["text"], one["outcome"]) for one in history(gateway, where)] for where in others]
    assert answers == [[("hello", "answered"), (f"fine in c{number}", "answered")] for number in range(10)]
    assert outcome(gateway, POISONED) == "waiting"  # for this process to have been up for 20 s
    assert gateway.wait() == EXIT_CODE
    gateway.start()
    until(lambda: outcome(gateway, POISONED) == "failed", "the poison message was never given up")
    assert history(gateway, POISONED)[0]["reason"] == "belino stopped 3 times while this ran alone"
    steps = told(gateway)
    interrupted = [
        reason.removeprefix("belino stopped while it ran ") for name, reason in steps if name == "interrupted"
    ]
    assert interrupted == [
        "beside 10 other turns; not counted",
        *(f"alone; counted, {number} of 3" for number in (1, 2, 3)),
    ]
    assert ("waits", "runs again when belino has been up for 20 s") in steps
    (tmp_path / "cured").touch()
    done = run_belino("retry", f"{POISONED}/m", home=gateway.home, environment={})
    assert (done.returncode, done.stdout) == (0, f"{POISONED}/m is queued to be answered again\n"), done.stderr
    until(lambda: outcome(gateway, POISONED) == "answered", "the retried message was never answered")
    until(lambda: len(history(gateway, POISONED)) == 3, "the answer never came")
    assert texts(history(gateway, POISONED)) == [
        "P0ISON",
        "Sorry, I could not answer that: belino stopped 3 times while this ran alone.",
        "fine in poisoned",
    ]
    assert ("retried", "by a person") in told(gateway)
    assert gateway.stop() == 0
    check_state_folder(gateway.home)


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["text"] for message in messages]
