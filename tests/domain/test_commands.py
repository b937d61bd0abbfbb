"""Commands in a chat: which text is one of ours."""

import pytest

from belino.domain.commands import COMMANDS, ChatCommand, parse_command, spoken_command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/stop", ChatCommand(name="stop")),
        ("  /Stop  ", ChatCommand(name="stop")),
        ("/stop@Belino_bot", ChatCommand(name="stop", bot="belino_bot")),
        ("/stop it, please", ChatCommand(name="stop", argument="it, please")),
        ("/model  claude\n opus", ChatCommand(name="model", argument="claude opus")),
    ],
)
def test_a_known_command_is_recognised_with_what_follows_it(text: str, command: ChatCommand) -> None:
    assert parse_command(text) == command


@pytest.mark.parametrize(
    "text",
    [
        *("", "stop", "/", "/deploy now", "please /stop", "/stop/now", "/stopp", "//stop"),
        *("/why is the sky blue?", "/help me with it", "/new idea:\na boat", "/status@belino_bot of it?"),
    ],
)
def test_other_text_goes_to_the_agent(text: str) -> None:
    assert parse_command(text) is None


@pytest.mark.parametrize(
    ("transcript", "command"),
    [
        ("Slash stop.", ChatCommand(name="stop")),
        ("/new!", ChatCommand(name="new")),
        ("slash voice on.", ChatCommand(name="voice", argument="on")),
    ],
)
def test_a_spoken_command_is_recognised(transcript: str, command: ChatCommand) -> None:
    assert spoken_command(transcript) == command


@pytest.mark.parametrize("transcript", ["stop", "slash stop the music", "what does slash new do?", "slash deploy", ""])
def test_other_speech_goes_to_the_agent(transcript: str) -> None:
    assert spoken_command(transcript) is None


def test_every_command_fits_the_menus_of_platforms() -> None:
    assert all(spec.name.isascii() and spec.name.islower() and 1 <= len(spec.name) <= 32 for spec in COMMANDS)
    assert all(3 <= len(spec.says) <= 100 for spec in COMMANDS)
