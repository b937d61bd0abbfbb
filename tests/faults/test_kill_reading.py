"""Killed while media is read: one answer, a finished reading is not made again, and nothing of it is left behind."""

import asyncio
import base64
import json
import random
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from belino.domain.failpoints import FAILPOINTS
from belino.storage.audit import audit_home
from belino.storage.home import Home
from belino.testing import espeak, make_wav
from belino.testing.models import ModelHang, ModelReply, ModelSpeech, SpokenPart
from belino.testing.models.speech import DeepgramServer
from faults.forked import ForkedGateway, Nursery
from faults.looking import (
    SOAK,
    check_state_folder,
    command_of,
    descendants,
    history,
    is_running,
    until,
    until_idle,
)

pytestmark = pytest.mark.slow

WEB = "web:default:main"
SAID = "the zebra leaves at nine"
SPOKEN = "I will call you back after lunch."
SPEECH = ModelSpeech(parts=(SpokenPart(text=SAID, start=0.2, end=2.0),))
POINTS = ("reading.asked", "reading.kept", "turn.media.read")
ROUNDS = 25 if SOAK else 1
SEED = 20261117


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


class Killed:
    """A gateway that reads a voice message, and every process it has ever started."""

    def __init__(self, nursery: Nursery, home: Path, entry: dict[str, Any]) -> None:
        home.mkdir(mode=0o700, parents=True)
        off = {kind: {"enabled": False} for kind in ("image", "video", "document")}
        media = {"audio": {"models": [entry]}, "echo_transcript": True, **off}
        (home / "belino.json").write_text(json.dumps({"tools": {"media": media}}), encoding="utf-8")
        self.gateway = ForkedGateway(nursery, home)
        self.started: set[int] = set()

    def begin(self, sound: bytes, failpoint: str = "") -> None:
        """Start it, and send the voice message."""
        self.gateway.failpoint = failpoint
        self.gateway.start()
        attachment = {
            "mime_type": "audio/wav",
            "file_name": "note.wav",
            "content": base64.b64encode(sound).decode(),
        }
        body = {"conversation": WEB, "message": "what is this?", "attachments": [attachment], "id": "v1"}
        status, told = self.gateway.call("POST", "/api/messages", body)
        assert status == 200, told

    def until(self, settled: Callable[[], bool]) -> None:
        """Wait, and remember every process that it starts meanwhile."""

        def so() -> bool:
            self.started |= descendants(self.gateway.pid)
            return settled()

        until(so, "it never came to that")

    def until_dead(self) -> None:
        self.until(lambda: self.gateway.ended is not None)
        self.gone()

    def kill(self) -> None:
        self.started |= descendants(self.gateway.pid)
        assert self.started, "it reads in processes of its own"
        self.gateway.kill()
        self.gone()

    def gone(self) -> None:
        until(lambda: not any(map(is_running, self.started)), "a process outlives the gateway")

    def check(self, text: str) -> None:
        """After another start there is one answer, one reading and one attempt in the books, and nothing else."""
        self.gateway.start()
        until_idle(self.gateway)
        question, *answers = history(self.gateway, WEB)
        (reading,) = question["readings"]
        assert question["outcome"] == "answered" and text in reading["text"].lower()
        said = [each["text"] for each in answers]
        assert (said[0], said.count(reading["text"])) == (reading["text"], 1), (
            "the transcript is posted once, and first"
        )
        assert sum("answer" in text for text in said) == 1
        status, told = self.gateway.call("GET", f"/api/readings/{question['media'][0]['ref']}")
        assert status == 200
        assert [attempt["outcome"] for attempt in told["attempts"]] == ["success"]
        self.started |= descendants(self.gateway.pid)
        assert self.gateway.stop() == 0
        self.gone()
        home = self.gateway.home
        assert [path.name for path in (home / "blobs" / "tmp").iterdir()] == []
        check_state_folder(home)
        assert audit_home(Home(path=home)).is_balanced
        assert "Traceback" not in self.gateway.log()


def test_every_failpoint_of_a_reading_is_killed_at() -> None:
    assert {name for name in FAILPOINTS if name.startswith("reading.")} <= set(POINTS)


@pytest.mark.parametrize("at", POINTS if SOAK else POINTS[1:2])
async def test_killed_before_or_after_a_service_reads_it_is_asked_once(
    tmp_path: Path, nursery: Nursery, at: str
) -> None:
    async with DeepgramServer(lambda asked: SPEECH) as server:
        killed = Killed(nursery, tmp_path / "home", {"provider": "deepgram", "base_url": server.url})
        await asyncio.to_thread(killed.begin, make_wav(3.0), f"{at}:1")
        await asyncio.to_thread(killed.until_dead)
        assert len(server.asked) == (0 if at == "reading.asked" else 1)
        await asyncio.to_thread(killed.check, SAID)
        assert len(server.asked) == 1


async def test_killed_while_a_service_reads_it_is_asked_once_more(tmp_path: Path, nursery: Nursery) -> None:
    replies: Iterator[ModelReply] = iter([ModelHang(), SPEECH])
    async with DeepgramServer(lambda asked: next(replies)) as server:
        killed = Killed(nursery, tmp_path / "home", {"provider": "deepgram", "base_url": server.url})
        await asyncio.to_thread(killed.begin, make_wav(3.0))
        await server.arrived.wait()
        await asyncio.to_thread(killed.kill)
        await asyncio.to_thread(killed.check, SAID)
        assert len(server.asked) == 2


@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_while_a_local_model_reads_its_process_ends_and_it_reads_once_more(
    tmp_path: Path, nursery: Nursery, number: int
) -> None:
    espeak.speak(SPOKEN, tmp_path / "speech.wav")
    killed = Killed(nursery, tmp_path / "home", {"provider": "local_whisper"})
    killed.begin((tmp_path / "speech.wav").read_bytes())
    killed.until(lambda: any("local_whisper" in command_of(pid) for pid in descendants(killed.gateway.pid)))
    if number:  # else as soon as its process exists
        rng = random.Random(SEED + number)
        looks = iter(range(rng.randrange(40)))
        killed.until(lambda: next(looks, None) is None)
    killed.kill()
    killed.check("after lunch")


def test_killed_while_a_command_reads_neither_it_nor_its_children_nor_its_files_stay(
    tmp_path: Path, nursery: Nursery
) -> None:
    program, begun = tmp_path / "program", tmp_path / "begun"
    program.write_text(
        f"#!/bin/sh\nif [ ! -e {begun} ]; then sleep 600 & echo $! > {begun}.new; mv {begun}.new {begun}; wait; fi\n"
        f"echo {SAID}\n",
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    killed = Killed(nursery, tmp_path / "home", {"type": "cli", "provider": "mine", "command": str(program)})
    killed.begin(make_wav(3.0))
    killed.until(begun.exists)
    assert list((killed.gateway.home / "blobs" / "tmp").glob("cli-*"))
    killed.started.add(int(begun.read_text()))
    killed.kill()
    killed.check(SAID)
