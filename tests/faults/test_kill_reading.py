"""Killed while media is read: one answer, a finished reading is not made again, and nothing of it is left behind."""

import asyncio
import base64
import io
import json
import random
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
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


def test_killed_while_media_is_read_ahead_it_is_read_once(tmp_path: Path, nursery: Nursery) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    off = {kind: {"enabled": False} for kind in ("audio", "video", "document")}
    media = {"read_ahead": "local", "image": {"models": [{"provider": "local_rapidocr"}]}, **off}
    (home / "belino.json").write_text(json.dumps({"tools": {"media": media}}), encoding="utf-8")
    gateway = ForkedGateway(nursery, home)
    gateway.failpoint = "reading.kept:1"
    gateway.start()
    picture = {"mime_type": "image/png", "file_name": "p.png", "content": base64.b64encode(_sign()).decode()}
    body = {"conversation": WEB, "message": "what is this?", "attachments": [picture], "id": "p1"}
    assert gateway.call("POST", "/api/messages", body)[0] == 200
    until(lambda: gateway.ended is not None, "nothing was read ahead")
    gateway.failpoint = ""
    gateway.start()
    search = f"/api/search?conversation={WEB}&intent=platform"
    until(lambda: gateway.call("GET", search)[1]["found"] == 1, "what was read ahead is not found")
    until(lambda: _places(home) == ["done"], "reading ahead does not end")
    question = history(gateway, WEB)[0]
    assert question["outcome"] == "answered"
    status, told = gateway.call("GET", f"/api/readings/{question['media'][0]['ref']}")
    assert status == 200
    assert [(each["outcome"], each["ahead"]) for each in told["attempts"]] == [("success", True)]
    assert gateway.stop() == 0
    check_state_folder(home)
    assert audit_home(Home(path=home)).is_balanced and "Traceback" not in gateway.log()


def _sign() -> bytes:
    from PIL import Image, ImageDraw, ImageFont

    image, written = Image.new("RGB", (420, 90), "white"), io.BytesIO()
    ImageDraw.Draw(image).text((20, 20), "PLATFORM 7", fill="black", font=ImageFont.load_default(48))
    image.save(written, "PNG")
    return written.getvalue()


def _places(home: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{home / 'belino.db'}?mode=ro", uri=True)) as database:
        return [place for (place,) in database.execute("SELECT place FROM read_ahead")]
