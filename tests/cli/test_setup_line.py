"""`belino setup line` and `belino doctor` against a server that keeps LINE's rules."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.testing import LineServer
from cli.shell import Belino, Done, doctor_beside_a_gateway, on_a_terminal, read

pytestmark = pytest.mark.slow


@pytest.fixture
async def line() -> AsyncIterator[LineServer]:
    async with LineServer() as server:
        yield server


async def setup(belino: Belino, server: LineServer, *more: str, **secrets: str) -> Done:
    names = ("--token-env", "channel_access_token=TOKEN", "--token-env", "channel_secret=SECRET")
    environment = {"TOKEN": server.token, "SECRET": server.channel_secret, **secrets}
    given = (*names, "--set", f"api_url={server.url}", *more)
    return await asyncio.to_thread(belino, "setup", "line", *given, **environment)


async def test_a_good_token_is_checked_live_and_its_name_written_down(
    belino: Belino, home: Path, line: LineServer
) -> None:
    answer = read(await setup(belino, line, "--json"))
    findings = {finding["name"]: finding for finding in answer["findings"]}
    assert answer["ok"] and findings["line:default token"]["ok"]
    assert "no URL is set" in findings["line:default webhook"]["says"], "a warning: belino does not serve yet"
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert 'channel_secret = "env:SECRET"' in text
    assert line.token not in text and line.channel_secret not in text
    assert not line.sent


async def test_a_bad_token_changes_nothing(belino: Belino, home: Path, line: LineServer) -> None:
    done = await setup(belino, line, "--yes", TOKEN="wrong-token")
    assert done.returncode == 1
    assert "Nothing was changed." in done.stdout
    assert "wrong-token" not in done.stdout + done.stderr
    assert not (home / "belino.toml").exists()


async def test_the_doctor_finds_a_gateway_that_line_reaches(belino: Belino, home: Path, line: LineServer) -> None:
    import json

    read(await setup(belino, line, "--json"))

    def hook() -> str:
        run = json.loads((home / "run.json").read_text(encoding="utf-8"))
        return f"{run['url'].rstrip('/')}/hooks/line/default"

    line.webhook.url = hook
    secrets = {"TOKEN": line.token, "SECRET": line.channel_secret}
    findings = await asyncio.to_thread(doctor_beside_a_gateway, belino, home, **secrets)
    assert findings["line:default webhook"]["ok"], findings["line:default webhook"]


async def test_who_is_asked_learns_where_both_secrets_stand_and_what_to_enter(home: Path, line: LineServer) -> None:
    typed = {"did you issue? ": line.token, "does the channel have? ": line.channel_secret}
    command = ("setup", "line", "--set", f"api_url={line.url}")
    shown = (await asyncio.to_thread(on_a_terminal, *command, home=home, typed=typed)).stdout
    assert "/hooks/line/default" in shown and "server.public_url" in shown
    assert line.channel_secret not in shown
    kept = home / "secrets" / "line.channel_secret"
    assert kept.read_text(encoding="utf-8").strip() == line.channel_secret
