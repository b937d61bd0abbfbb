"""`belino setup slack` and `belino doctor` against a server that keeps Slack's rules."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from belino.adapters.slack.capabilities import SCOPES
from belino.testing import SlackServer
from cli.shell import Belino, Done, doctor_beside_a_gateway, findings_of, on_a_terminal, read

pytestmark = pytest.mark.slow


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


async def setup(belino: Belino, server: SlackServer, *more: str, **tokens: str) -> Done:
    given = ("--token-env", "bot_token=BOT", "--token-env", "app_token=APP", "--set", f"api_url={server.api_url}")
    environment = {"BOT": server.bot_token, "APP": server.app_token, **tokens}
    return await asyncio.to_thread(belino, "setup", "slack", *given, *more, **environment)


async def test_good_tokens_are_checked_live_and_their_names_written_down(
    belino: Belino, home: Path, slack: SlackServer
) -> None:
    answer = read(await setup(belino, slack, "--json"))
    assert answer["ok"]
    assert answer["table"] == "adapters.slack"
    assert all(finding["ok"] for finding in answer["findings"])
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert 'bot_token = "env:BOT"' in text
    assert slack.bot_token not in text
    assert not slack.sent


@pytest.mark.parametrize("wrong", [{"BOT": "xoxb-wrong-1"}, {"APP": "xapp-wrong-1"}], ids=["bot", "app"])
async def test_a_bad_token_changes_nothing_and_is_told(
    belino: Belino, home: Path, slack: SlackServer, wrong: dict[str, str]
) -> None:
    done = await setup(belino, slack, "--yes", **wrong)
    assert done.returncode == 1
    assert "Nothing was changed." in done.stdout
    assert not set(wrong.values()) & set((done.stdout + done.stderr).split())
    assert not (home / "belino.toml").exists()


async def test_http_needs_a_secret_and_no_app_token(belino: Belino, home: Path, slack: SlackServer) -> None:
    given = ("--set", "bot_token=env:BOT", "--set", "mode=http", "--set", f"api_url={slack.api_url}", "--json")
    environment = {"BOT": slack.bot_token, "HOOK": slack.signing_secret}
    done = await asyncio.to_thread(belino, "setup", "slack", *given, **environment)
    assert done.returncode == 78
    assert "signing_secret" in done.stderr
    signed = ("--token-env", "signing_secret=HOOK")
    assert read(await asyncio.to_thread(belino, "setup", "slack", *given, *signed, **environment))["ok"]


@pytest.mark.parametrize(
    ("named", "told"),
    [("BOT", "--token-env bot_token=NAME --token-env app_token=NAME"), ("token=BOT", "bot_token, app_token")],
    ids=["none", "unknown"],
)
def test_an_environment_variable_is_of_one_secret_and_says_of_which(belino: Belino, named: str, told: str) -> None:
    done = belino("setup", "slack", "--token-env", named, "--no-check", BOT="xoxb-1")
    assert done.returncode == 78
    assert told in done.stderr


async def test_the_doctor_names_a_missing_scope_and_a_channel_the_app_is_not_in_with_their_cures(
    belino: Belino, home: Path, slack: SlackServer
) -> None:
    slack.scopes.discard("files:read")
    read(await setup(belino, slack, "--json"))
    with (home / "belino.toml").open("a", encoding="utf-8") as config:
        config.write('\n[adapters.slack.access.channels.C0NOWHERE1]\nsenders = ["U0ADA00001"]\n')
    tokens = {"BOT": slack.bot_token, "APP": slack.app_token}
    findings = await asyncio.to_thread(doctor_beside_a_gateway, belino, home, **tokens)
    assert findings["slack:default token"]["ok"]
    assert "files:read" in findings["slack:default scopes"]["says"]
    assert "Reinstall" in findings["slack:default scopes"]["cure"]
    assert "/invite" in findings["slack:default channel C0NOWHERE1"]["cure"]


async def test_the_doctor_asks_slack_also_where_no_gateway_runs(belino: Belino, home: Path, slack: SlackServer) -> None:
    read(await setup(belino, slack, "--json"))
    slack.scopes.discard("files:read")
    slack.api.socket_mode_on = False
    tokens = {"BOT": slack.bot_token, "APP": slack.app_token}
    done = await asyncio.to_thread(belino, "doctor", "--json", **tokens)
    findings = findings_of(done)
    assert done.returncode == 1
    assert "files:read" in findings["slack:default scopes"]["says"]
    assert "Enable Socket Mode" in findings["slack:default socket mode"]["cure"]


async def typed_in(home: Path, slack: SlackServer, typed: Mapping[str, str], *more: str) -> str:
    """What a terminal shows while somebody types these."""
    command = ("setup", "slack", "--set", f"api_url={slack.api_url}", *more)
    return (await asyncio.to_thread(on_a_terminal, *command, home=home, typed=typed)).stdout


async def test_who_wants_events_over_http_is_asked_for_what_slack_signs_with(home: Path, slack: SlackServer) -> None:
    typed = {"(xoxb-…) ": slack.bot_token, "Signing Secret does the app have? ": slack.signing_secret}
    shown = await typed_in(home, slack, typed, "--set", "mode=http")
    assert "xapp-" not in shown
    assert "/hooks/slack/default" in shown
    kept = home / "secrets" / "slack.signing_secret"
    assert kept.read_text(encoding="utf-8").strip() == slack.signing_secret


async def test_who_is_asked_sees_the_manifest_and_types_both_tokens_unseen(home: Path, slack: SlackServer) -> None:
    typed = {"(xoxb-…) ": slack.bot_token, "(xapp-…) ": slack.app_token}
    shown = await typed_in(home, slack, typed)
    assert all(f"- {scope}" in shown for scope in SCOPES)
    assert "connections:write" in shown
    assert "belino pair CODE" in shown
    assert slack.bot_token not in shown
    assert slack.app_token not in shown
    for key, token in (("bot_token", slack.bot_token), ("app_token", slack.app_token)):
        assert (home / "secrets" / f"slack.{key}").read_text(encoding="utf-8").strip() == token
