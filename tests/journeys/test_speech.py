"""A spoken question is answered aloud on every platform, in the form it has for that."""

import base64
from pathlib import Path
from typing import Any

import pytest

from belino.testing import ScriptedAgent, TelegramServer
from belino.testing.discord import DiscordServer
from belino.testing.file_server import FakeUpload
from belino.testing.slack import SlackServer
from journeys.busy_group import BusyGroup
from journeys.busy_place import BusyPlace, until
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BusyWorkspace
from understanding.voices import KEY, VoiceServer, program

pytestmark = pytest.mark.slow

NOTE = FakeUpload(content=b"OggS" + bytes(2000), duration=12)
ANSWER = "The hut is open until Sunday."


def speaking(place: BusyPlace, speech: dict[str, Any], **more: Any) -> None:
    """Give a place a voice, as an operator would write it."""
    table = {**place.table(), "tools": {"media": {"speech": speech}}, **more}
    place.table = lambda: table  # type: ignore[method-assign]


def hummed(folder: Path) -> dict[str, Any]:
    command, args = program(folder)
    return {"command": command, "args": list(args), "auto": "inbound", "timeoutSeconds": 60}


async def test_on_telegram_a_voice_note_comes_back_with_the_text_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICE_KEY", KEY)
    async with TelegramServer() as server, VoiceServer().serving() as voices:
        group = BusyGroup(server, tmp_path / "home")
        speech = {"provider": "openai", "baseUrl": voices.url, "profile": "voice", "auto": "inbound", "voice": "sage"}
        speaking(group, speech, profiles={"voice": {"keys": ["env:VOICE_KEY"]}})
        agent = ScriptedAgent(ANSWER)
        async with group.gateway(agent):
            server.say(group.ann, group.ann, voice=NOTE)
            await until(lambda: len(server.sent) == 2)
        voice, text = server.sent
        assert voice["voice"]["mime_type"] == "audio/ogg"
        assert voice["voice"]["duration"] == round(len(ANSWER) / 16)
        assert text["text"] == ANSWER
        assert [asked["input"] for asked in voices.asked] == [ANSWER]
        assert "spoken: they said it in a voice message" in agent.told()


async def test_who_accepts_no_voice_messages_still_gets_the_text(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        group = BusyGroup(server, tmp_path / "home")
        server.no_voice.add(group.ann["id"])
        speaking(group, hummed(tmp_path))
        async with group.gateway(ScriptedAgent(ANSWER)):
            server.say(group.ann, group.ann, voice=NOTE)
            await until(lambda: ANSWER in group.answers())
        assert not [message for message in server.sent if "voice" in message]


async def test_on_discord_the_voice_message_has_its_waveform_and_stands_alone(tmp_path: Path) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        speaking(club, hummed(tmp_path))
        async with club.gateway(ScriptedAgent(ANSWER)):
            discord.say(club.ann, club.ann, voice=NOTE)
            await until(lambda: len(discord.sent) == 2)
        voice, text = discord.sent
        assert voice["flags"] & (1 << 13)
        assert voice["content"] == ""
        (attached,) = voice["attachments"]
        assert attached["duration_secs"] == pytest.approx(len(ANSWER) / 16, abs=0.2)
        assert any(base64.b64decode(attached["waveform"]))
        assert text["content"] == ANSWER


async def test_on_slack_which_has_no_voice_messages_of_apps_it_is_a_sound_file(tmp_path: Path) -> None:
    async with SlackServer() as slack:
        crew = BusyWorkspace(slack, tmp_path / "home")
        speaking(crew, hummed(tmp_path))
        async with crew.gateway(ScriptedAgent(ANSWER)):
            slack.say(crew.ann, crew.ann, voice=FakeUpload(content=bytes(2000), duration=12))
            await until(lambda: crew.sent)
        (voice,) = crew.sent
        assert [file["mimetype"] for file in voice["files"]] == ["audio/ogg"]
        assert voice["text"] == ANSWER
