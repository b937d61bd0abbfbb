"""A provider that hangs, lies or fails costs its reading: the text is answered in time, and the reason is seen."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from belino.config import from_table
from belino.domain.media import MediaKind
from belino.domain.message import Deletion, Message
from belino.domain.outcome import MessageOutcome, Stage
from belino.domain.reading import ReadingOutcome
from belino.gateway.gateway import Gateway
from belino.gateway.reading_attempts import attempts_json
from belino.testing import ScriptedAgent, espeak, make_wav
from belino.testing.models import (
    ModelAnswer,
    ModelCut,
    ModelFailure,
    ModelHang,
    ModelRaw,
    ModelReply,
    ModelSpeech,
    SpokenPart,
)
from belino.testing.models.gemini import GeminiServer
from belino.testing.models.speech import DeepgramServer
from faults.looking import command_of, descendants, is_running
from gateway.house import House, until

pytestmark = pytest.mark.slow

DEADLINE = 5.0
SAID = "the zebra leaves at nine"
SPEECH = ModelSpeech(parts=(SpokenPart(text=SAID, start=0.2, end=2.0),))

SILENT: dict[str, ModelReply] = {
    "never answers": ModelHang(),
    "drips, and stops": ModelRaw(body=b'{"results": ', stalls=True),
}
WRONG: dict[str, ModelReply] = {
    "answers 50 MB": ModelRaw(body=b'{"a": "' + b"x" * 1024 * 1024, times=50),
    "answers garbage": ModelRaw(body=b"\x00\xff canary-of-the-answer {"),
    "answers an empty object": ModelRaw(body=b"{}"),
    "answers a page": ModelRaw(body=b"<html>canary-of-the-answer</html>", content_type="text/html"),
    "misreports its length": ModelRaw(body=b"{}", headers={"Content-Length": "999999"}, cut=True),
    "breaks off": ModelCut(),
    "redirects": ModelRaw(status=302, headers={"Location": "http://127.0.0.1:1/elsewhere"}),
    "fails": ModelFailure(status=503, message="canary-of-the-answer"),
    "refuses the key": ModelFailure(status=401, message="canary-of-the-answer"),
}


@pytest.fixture
async def ears() -> AsyncIterator[DeepgramServer]:
    async with DeepgramServer() as server:
        yield server


def listen(house: House, **entry: object) -> ScriptedAgent:
    """Voices are read by this entry only."""
    kinds = {kind: {"enabled": False} for kind in ("image", "video", "document")}
    media = {"turn_seconds": DEADLINE, "audio": {"models": [entry]}, **kinds}
    house.tools = from_table({"tools": {"media": media}}).tools
    house.agent = agent = ScriptedAgent()
    return agent


def voice(house: House, sound: bytes, text: str = "what is this?") -> Message:
    message = house.say(text)
    wire = house.wires.get("default") or house.prepare()
    wire._far_side.files[message.id] = sound
    ref = replace(house.picture(message, item=message.id, name="note.wav"), kind=MediaKind.VOICE, mime="audio/wav")
    return replace(message, media=(ref,))


async def check_failed(gateway: Gateway, message: Message, agent: ScriptedAgent, reason: str = "") -> None:
    """The message is answered by its text, and its reading has failed visibly."""
    assert "what is this?" in agent.told() and SAID not in agent.told()
    story = await gateway.store.story(message.conversation, message.id)
    assert story is not None and story.message.outcome is MessageOutcome.ANSWERED
    told = [step for step in story.steps if step.stage is Stage.READING and step.outcome == "failed"]
    assert told and all(step.reason for step in told)
    (tried,) = attempts_json(await gateway.store.attempts(ref=told[0].subject))
    assert tried["outcome"] == ReadingOutcome.FAILED and tried["reason"]
    assert reason in str(tried["reason"])
    assert "canary" not in f"{told} {tried} {agent.told()}"


async def test_a_service_that_answers_wrongly_costs_its_reading_and_no_time(house: House, ears: DeepgramServer) -> None:
    agent = listen(house, provider="deepgram", base_url=ears.url)
    async with house.at_work() as gateway:
        for fault, reply in WRONG.items():
            ears.asked.clear()
            ears.script = [reply]
            message = voice(house, make_wav(3.0))
            await house.ask(gateway, message)
            assert house.clock.monotonic() == 0.0, fault
            await check_failed(gateway, message, agent)
            assert len(ears.asked) == 1, fault


async def test_a_service_that_goes_silent_holds_the_turn_no_longer_than_its_deadline_and_a_second(
    house: House, ears: DeepgramServer
) -> None:
    agent = listen(house, provider="deepgram", base_url=ears.url)
    async with house.at_work() as gateway:
        for number, reply in enumerate(SILENT.values()):
            ears.arrived.clear()
            ears.script = [reply]
            message = voice(house, make_wav(3.0))
            await gateway.accept(message)
            await until(ears.arrived.is_set)
            assert len(agent.turns) == number
            await house.clock.wake(DEADLINE)
            await until(lambda number=number: len(house.wire.seen) > number)  # type: ignore[misc]
            assert house.clock.monotonic() <= (number + 1) * (DEADLINE + 1.0)
            await check_failed(gateway, message, agent, "it was not ready when the time was up")


async def test_the_next_entry_is_not_kept_waiting_by_one_that_is_silent(house: House, ears: DeepgramServer) -> None:
    ears.script = [ModelHang(), SPEECH]
    agent = listen(house, provider="deepgram", base_url=ears.url, timeout_seconds=2.0)
    (entry,) = house.tools.media.audio.models
    audio = replace(house.tools.media.audio, models=(entry, replace(entry, timeout_seconds=60.0)))
    house.tools = replace(house.tools, media=replace(house.tools.media, audio=audio))
    async with house.at_work() as gateway:
        message = voice(house, make_wav(3.0))
        await gateway.accept(message)
        await until(ears.arrived.is_set)
        await house.clock.wake(2.0)
        await until(lambda: house.wire.seen)
        assert SAID in agent.told()
        outcomes = [record.attempt.outcome for _, record in await gateway.store.attempts()]
        assert outcomes == [ReadingOutcome.SUCCESS, ReadingOutcome.FAILED]


async def test_nothing_of_a_deleted_voice_message_stays_here_or_at_the_service(house: House) -> None:
    async with GeminiServer() as server:
        said = json.dumps({"language": "en", "segments": [{"start": "00:00", "text": SAID}]})
        server.script = lambda asked: ModelAnswer(text=said)
        agent = listen(house, provider="google", base_url=server.url, inline_bytes=0)
        async with house.at_work() as gateway:
            message = voice(house, make_wav(3.0))
            await house.ask(gateway, message)
            assert SAID in agent.told()
            assert server.uploads and server.files == {}
            assert not [*gateway.store.scratch.iterdir()]
            assert b"zebra" in _everything(house.home.path)
            gone = Deletion(
                conversation=message.conversation, id="d", message_id=message.id, author=None, sent=house.clock.now()
            )
            await gateway.accept(gone)
            await _until_purged(gateway)
            assert await gateway.store.attempts() == ()
        assert b"zebra" not in _everything(house.home.path)


async def test_a_local_model_that_is_killed_or_hangs_costs_one_reading_and_leaves_no_process(
    house: House, tmp_path: Path
) -> None:
    agent = listen(house, provider="local_whisper", timeout_seconds=60.0)
    house.tools = replace(house.tools, media=replace(house.tools.media, turn_seconds=600.0))
    async with house.at_work() as gateway:
        for number, (reason, end) in enumerate(ENDS.items()):
            message = voice(house, _speech(tmp_path, f"This is message number {number}."))
            await gateway.accept(message)
            child = await _job_of("local_whisper")
            await end(house, child)
            await until(lambda number=number: len(house.wire.seen) > number)  # type: ignore[misc]
            await check_failed(gateway, message, agent, reason)
            await until(lambda child=child: not is_running(child))  # type: ignore[misc]
        await house.ask(gateway, voice(house, _speech(tmp_path, "I will call you back after lunch.")))
        assert "after lunch" in agent.told().lower()


async def _out_of_memory(house: House, child: int) -> None:
    os.kill(child, signal.SIGKILL)  # as the system does


async def _hanging(house: House, child: int) -> None:
    await house.clock.wake(60.0)


ENDS = {"stopped by the system": _out_of_memory, "it took longer than 60 s": _hanging}


async def _job_of(model: str) -> int:
    """The process of a local model's job, stopped, so that it does not end by itself."""
    async with asyncio.timeout(60):
        while True:
            for parent in descendants(os.getpid()):
                for child in descendants(parent) if f".{model}" in command_of(parent) else ():
                    os.kill(child, signal.SIGSTOP)
                    return child
            await asyncio.sleep(0.001)


def _speech(folder: Path, text: str) -> bytes:
    espeak.speak(text, folder / "speech.wav")
    return (folder / "speech.wav").read_bytes()


def _everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def _until_purged(gateway: Gateway) -> None:
    async with asyncio.timeout(60):
        while await gateway.store.taken_back():
            await asyncio.sleep(0.005)
