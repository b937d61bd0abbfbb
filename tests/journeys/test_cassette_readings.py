"""What providers read is in a cassette, without their secrets, and a replay reads it from there, offline."""

import json
import re
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from belino.cassette.file import Cassette, read_cassette
from belino.domain.errors import ToolError
from belino.domain.turn import Final, ReplyPart, Turn
from belino.gateway.cassettes import WrittenCassette
from belino.gateway.gateway import Gateway
from belino.gateway.replay import Replayed, config_of, replay
from belino.testing import ScriptedAgent, TelegramServer, make_wav
from belino.testing.models import ModelFailure, ModelSpeech, SpokenPart
from belino.testing.models.speech import DeepgramServer
from belino.understanding.speech import SpeechConfig
from journeys.busy_group import BOT, BusyGroup
from journeys.busy_place import BusyPlace
from journeys.busy_place import told as prompt_of
from journeys.recording import answered, readings, record

KEY = "canary-key-of-the-provider"
SAID = "Ann, the zebra leaves at nine"
SPEECH = ModelSpeech(parts=(SpokenPart(text=SAID, start=0.2, end=2.0),))
VOICE = make_wav(3.0)


class Listening(BusyGroup):
    """The group, with a gateway whose voice messages a service reads."""

    ears: DeepgramServer

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "BELINO_TEST_EARS": KEY}

    def table(self) -> dict[str, Any]:
        off = {kind: {"enabled": False} for kind in ("image", "video", "document")}
        entry = {"provider": "deepgram", "base_url": self.ears.url, "profile": "work", "prompt": "private words"}
        profiles = {"work": {"key": "env:BELINO_TEST_EARS"}}
        return {**super().table(), "tools": {"media": {"audio": {"models": [entry]}, **off}}, "profiles": profiles}

    def speak(self, caption: str = f"{BOT} what does he say?") -> dict[str, Any]:
        return self.server.say(self.chat, self.ann, voice=VOICE, caption=caption)


class Attentive:
    """Asks for the transcript of everything it is told of."""

    remembers = False
    sees_images = True

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        said = []
        for ref in dict.fromkeys(re.findall(r"ref:([a-z]+_\w{12})", prompt_of(turn))):
            try:
                await turn.toolbox.call("fetch_media", {"ref": ref, "as": "transcript"})
                said.append("heard")
            except ToolError:
                said.append("not heard")
        yield Final(text=" ".join(said) or "nothing")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Listening]:
    async with TelegramServer() as server:
        yield Listening(server, tmp_path / "home")


async def speak(place: BusyPlace, gateway: Gateway) -> None:
    assert isinstance(place, Listening)
    place.speak()


async def speak_twice(place: BusyPlace, gateway: Gateway) -> None:
    """The first time the service fails."""
    assert isinstance(place, Listening)
    place.ears.script = [ModelFailure(status=503), SPEECH]
    place.speak()
    await answered(gateway)
    place.speak()
    await answered(gateway, 2)


async def recorded(place: Listening, talk: Any, **more: Any) -> WrittenCassette:
    """Questions by voice and their answers; afterwards the service is gone."""
    async with DeepgramServer(lambda asked: SPEECH, key=KEY) as place.ears:
        return await record(place, ScriptedAgent("at nine", "at nine"), talk, **more)


def of_kind(cassette: Cassette, kind: str) -> list[dict[str, Any]]:
    return [each for each in cassette.records if each["record"] == kind]


def differences(replayed: Replayed) -> str:
    return "\n".join("\n".join([each.where, *each.diff]) for each in replayed.differences)


@pytest.mark.slow
async def test_what_a_provider_read_is_recorded_without_its_secrets_and_replayed_without_it(place: Listening) -> None:
    written = await recorded(place, speak_twice)
    cassette = read_cassette(written.path)
    failed, reading = of_kind(cassette, "reading")
    assert failed["failed"] and "read" not in failed
    assert (reading["form"], reading["provider"], reading["model"]) == ("transcript", "deepgram", "nova-3")
    assert "the zebra leaves at nine" in reading["read"]["text"]
    assert "Ann" not in reading["read"]["text"], "a name is replaced as in every text"
    assert "zebra" in json.dumps(of_kind(cassette, "exchange"))
    entry = cassette.header["reading"]["entries"]["audio"][0]
    assert entry["provider"] == "deepgram" and {"skill": "transcribe", "model": "nova-3"} in entry["skills"]
    for text in readings(written.path):
        assert KEY not in text and place.ears.url not in text and "private words" not in text
    assert differences(await replay(cassette)) == ""
    without = tuple(each for each in cassette.records if each["record"] != "reading")
    replayed = await replay(replace(cassette, records=without))
    assert {"reading", "prompt"} <= {each.what for each in replayed.differences}, "nobody else is asked"
    assert "transcript by deepgram nova-3" in differences(replayed)


@pytest.mark.slow
async def test_without_text_and_media_it_replays_too(place: Listening) -> None:
    cassette = read_cassette((await recorded(place, speak, without_text=True, without_media=True)).path)
    assert not cassette.media and of_kind(cassette, "reading") and "zebra" not in json.dumps(cassette.records)
    assert differences(await replay(cassette)) == ""


@pytest.mark.slow
async def test_what_was_read_before_the_recording_is_in_it_and_so_is_what_a_tool_reads(place: Listening) -> None:
    async with DeepgramServer(lambda asked: SPEECH, key=KEY) as place.ears:
        async with place.gateway(Attentive()) as gateway:
            place.speak()
            await answered(gateway)
            await gateway.record()
            place.speak(caption="")
            await place.stored(gateway, 3)
            place.server.say(place.chat, place.ann, f"{BOT} what does he say?")
            await answered(gateway)
            written = await gateway.stop_recording()
        assert len(place.ears.asked) == 1, "the same bytes are read once"
    cassette = read_cassette(written.path)
    assert of_kind(cassette, "reading")
    assert "heard" in json.dumps(of_kind(cassette, "turn"))
    replayed = await replay(cassette)
    assert not [each for each in replayed.differences if each.what == "reading"], differences(replayed)


def test_a_cassette_that_was_made_before_media_was_read_reads_none() -> None:
    tools = config_of({}).tools.media
    assert not any((tools.image.enabled, tools.audio.enabled, tools.video.enabled, tools.document.enabled))


def test_a_cassette_brings_no_command_and_no_provider_of_its_own() -> None:
    evil: dict[str, Any] = {
        "models": [{"type": "cli", "provider": "x", "command": "/bin/sh"}],
        "speech": {"command": "/bin/sh"},
        "turn_seconds": 30,
    }
    evil["audio"] = {**deepcopy(evil), "max_chars": 100}
    tools = config_of({"reading": {"tools": evil, "entries": {}}}).tools.media
    assert (tools.models, tools.audio.models, tools.speech) == ((), (), SpeechConfig())
    assert (tools.turn_seconds, tools.audio.max_chars) == (30, 100)
