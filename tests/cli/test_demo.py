"""The demo as a visitor starts it: one command, and nothing of it is left."""

import json
import os
import signal
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from belino.cli.demo import PACE_SECONDS, demo_arguments

PAGE = Path(__file__).parents[2] / "docs" / "demo.md"
WAIT_SECONDS = 90.0
pytestmark = pytest.mark.slow


class Demo:
    """`belino demo --fast` in a process of its own, and a browser's first steps."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "belino", "demo", "--fast", "--no-browser", "--json", *arguments]
        environment = {**os.environ, "TMPDIR": str(folder), "HOME": str(folder / "nobody")}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
        self.url = str(self.told()["url"])
        self.cookie = ""

    def told(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line: dict[str, Any] = json.loads(self.process.stdout.readline())
        return line

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(WAIT_SECONDS)

    def call(self, method: str, path: str, body: object = None) -> Any:
        address = urlsplit(self.url)
        connection = HTTPConnection(address.hostname or "", address.port, timeout=WAIT_SECONDS)
        origin = f"http://{address.netloc}"
        headers = {"Content-Type": "application/json", "X-Belino": "1", "Origin": origin, "Cookie": self.cookie}
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status < 300, text
            self.cookie = (answer.headers["Set-Cookie"] or self.cookie).partition(";")[0]
            return json.loads(text) if text else None
        finally:
            connection.close()

    def log_in(self) -> str:
        """The conversation the address leads to."""
        token, _, conversation = urlsplit(self.url).fragment.removeprefix("token=").partition("&c=")
        self.call("POST", "/api/login", {"token": token})
        return unquote(conversation)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    demo = Demo(tmp_path)
    yield demo
    if demo.process.poll() is None:
        demo.process.kill()
    demo.process.wait(WAIT_SECONDS)
    assert demo.process.stdout is not None
    demo.process.stdout.close()


@pytest.mark.parametrize(("given", "pace"), [([], PACE_SECONDS), (["--fast"], 0.0), (["--pace", "2"], 2.0)])
def test_people_talk_at_their_own_pace_unless_told(given: list[str], pace: float) -> None:
    parser = ArgumentParser()
    demo_arguments(parser)
    assert parser.parse_args(given).pace == pace


def test_the_group_talks_one_picture_is_fetched_and_the_bill_says_what_was_not_spent(demo: Demo) -> None:
    saved = demo.told()["savings"]
    assert (saved["messages"], saved["media"], saved["fetched"]) == (214, 61, 1)
    assert 40_000_000 < saved["bytes_not_spent"] < 60_000_000
    assert saved["tokens_not_spent"] > 50_000
    told = saved["says"].replace("\N{NO-BREAK SPACE}", " ")
    assert f"So far: {told}\n" in PAGE.read_text(encoding="utf-8")
    conversation = demo.log_in()
    assert demo.call("GET", "/api/savings") == saved
    assert demo.call("GET", "/api/status")["savings"] == saved
    (group,) = [one for one in demo.call("GET", "/api/conversations")["conversations"] if one["messages"] > 2]
    assert (group["conversation"], group["name"]) == (conversation, "Weekend on the coast")
    kinds = {item["kind"] for item in demo.call("GET", "/api/media?limit=100")["media"]}
    assert kinds == {"image", "video", "audio", "voice", "document", "sticker"}


def test_a_visitor_asks_about_a_picture_and_the_agent_looks_at_it(demo: Demo) -> None:
    demo.told()
    conversation = demo.log_in()
    media = demo.call("GET", "/api/media?kind=image&limit=5")["media"]
    picture = next(item for item in media if item["outcome"] == "referenced")
    wish = {"conversation": conversation, "message": "What is this?", "id": "v1", "reply_to": picture["message_id"]}
    said = demo.call("POST", "/api/messages", wish)
    again = demo.call("POST", "/api/messages", wish)
    assert said["message_id"] == again["message_id"]
    for _ in range(10_000):
        answers = demo.call("GET", f"/api/messages?conversation={conversation}&limit=5")["messages"]
        if answers[-1]["author"]["is_agent"]:
            break
    asked, answer = answers[-2:]
    assert (asked["author"]["name"], asked["text"]) == ("You", "@belino_bot What is this?")
    assert "I was shown" in answer["text"]
    assert demo.call("GET", "/api/savings")["fetched"] == 2


def test_whatever_a_visitor_fetches_can_be_looked_into(demo: Demo) -> None:
    demo.told()
    demo.log_in()
    media = demo.call("GET", "/api/media?limit=100")["media"]
    promised = {item["file_name"] or item["kind"]: item for item in media if item["outcome"] == "referenced"}
    assert promised.keys() == {
        "video", "voice", "image", "sticker", "song.mp3", "ferry-times.pdf", "expenses.csv", "packing list.docx"
    }  # fmt: skip
    seen = {}
    for name, item in promised.items():
        here = demo.call("POST", "/api/media/fetch", {"ref": item["ref"]})
        assert here["size"] == item["size"], name
        seen[name] = demo.call("GET", f"{here['url']}/preview")
    assert {name: each["kind"] for name, each in seen.items()} == {
        "image": "picture",
        "sticker": "picture",
        "video": "poster",
        "voice": "waveform",
        "song.mp3": "waveform",
        "ferry-times.pdf": "text",
        "expenses.csv": "text",
        "packing list.docx": "text",
    }
    for name in ("video", "voice", "song.mp3"):
        assert abs(seen[name]["seconds"] - promised[name]["duration"]) < 1.5, name
    assert len(set(seen["voice"]["heights"])) > 5
    assert "Packing list" in seen["packing list.docx"]["text"]


def test_the_end_is_clean_and_leaves_nothing_behind(demo: Demo, tmp_path: Path) -> None:
    demo.told()
    assert [path.name for path in tmp_path.iterdir()] != []
    assert demo.end() == 0
    assert demo.told()["savings"]["media"] == 61
    assert list(tmp_path.iterdir()) == []
