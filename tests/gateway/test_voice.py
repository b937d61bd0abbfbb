"""The doctor tries the voice of a gateway, whether it runs or not."""

from dataclasses import replace
from pathlib import Path

import pytest

from belino.config import Config
from belino.gateway.doctor import RunningParts, examine
from belino.gateway.voice import examine_voice
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.understanding.speech import SpeechConfig
from gateway.house import House
from understanding.voices import program

pytestmark = pytest.mark.slow


def speaking(speech: SpeechConfig) -> Config:
    config = Config()
    return replace(config, tools=replace(config.tools, media=replace(config.tools.media, speech=speech)))


async def test_the_doctor_tries_a_voice_without_a_gateway(tmp_path: Path) -> None:
    command, args = program(tmp_path)
    home = Home.at(tmp_path / "home")
    store = await open_store(home, clock=SystemClock())
    try:
        (heard,) = await examine_voice(speaking(SpeechConfig(command=command, args=args)), home, store)
        (missing,) = await examine_voice(speaking(SpeechConfig(command="no-such-voice")), home, store)
        assert await examine_voice(Config(), home, store) == ()
    finally:
        await store.close()
    assert heard.ok
    assert heard.says.startswith("it speaks: 1s of sound in ")
    assert (missing.name, missing.ok) == ("speech command", False)
    assert missing.says.startswith("no-such-voice is not installed")


async def test_the_doctor_tries_the_voice_of_a_running_gateway(house: House) -> None:
    async with house.at_work() as gateway:
        assert gateway.speaker is None
    config = speaking(SpeechConfig(command="no-such-voice"))
    house.config = lambda: replace(config, adapters=())  # type: ignore[method-assign]
    async with house.at_work() as gateway:
        running = RunningParts(speaker=gateway.speaker)
        found = await examine(home=house.home, store=gateway.store, running=running)
    assert [finding.ok for finding in found if finding.name == "speech command"] == [False]
