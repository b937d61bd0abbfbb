"""Buttons on each platform: a press is acknowledged, counts once, and the question shows what was chosen."""

from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.in_house import at_work
from auditing import accounts_balance
from belino.testing import DiscordServer, ScriptedAgent, SlackServer, TelegramServer, ToolCall

__all__ = ["accounts_balance"]

ASK = ToolCall(name="ask_user", arguments={"question": "Deploy now?", "choices": ["Yes", "No"]})
CHOSEN = "Deploy now?\n\n✓ No"


@pytest.fixture
def agent() -> ScriptedAgent:
    return ScriptedAgent([ASK], "Then I wait.")


async def test_a_button_of_telegram(
    server: TelegramServer, agent: ScriptedAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", server.token)
    settings = {"token": "env:TOKEN", "api_url": server.url, "access": {"senders": ["*"]}}
    ada = server.user("Ada")
    async with at_work(tmp_path / "home", agent=agent, telegram=settings):
        await until(lambda: server.calls["getUpdates"])
        server.say(ada, ada, "Go on")
        await until(lambda: server.sent)
        question = server.sent[0]
        first = server.press(question, ada, "No")
        second = server.press(question, ada, "Yes")
        await until(lambda: len(server.press_answers) == 2 and len(server.sent) == 2 and server.edited)
        assert server.press_answers == {first: "", second: "already chosen: No"}
        assert server.edited == [(question["message_id"], CHOSEN)]
        assert "reply_markup" not in server.messages[ada["id"], question["message_id"]]
    assert '"value": "No"' in agent.told() and len(agent.turns) == 2


@pytest.mark.usefixtures("brisk_discord")
async def test_a_button_of_discord(
    discord: DiscordServer, agent: ScriptedAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", discord.token)
    ada = discord.user("ada")
    settings = {"token": "env:TOKEN", "api_url": discord.api_url, "access": {"senders": ["*"]}}
    async with at_work(tmp_path / "home", agent=agent, discord=settings):
        await until(lambda: discord.sessions.identified)
        discord.say(discord.dm(ada), ada, "Go on")
        await until(lambda: discord.sent)
        question = discord.sent[0]
        presses = [discord.press(question, ada, label) for label in ("No", "Yes")]
        await until(lambda: all(discord.interactions[each["token"]].acknowledged for each in presses))
        await until(lambda: discord.edited and any(each["content"] == "Then I wait." for each in discord.sent))
        refused = discord.interactions[presses[1]["token"]].answer
        assert refused is not None and refused["content"] == "already chosen: No"
        assert discord.interactions[presses[0]["token"]].answer is None
        assert (question["id"], CHOSEN) in discord.edited
        assert discord.messages[question["channel_id"]][question["id"]]["components"] == []
    assert '"value": "No"' in agent.told() and len(agent.turns) == 2


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_a_button_of_slack(
    slack: SlackServer, agent: ScriptedAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    for name, value in (("BOT", slack.bot_token), ("APP", slack.app_token), ("HOOK", slack.signing_secret)):
        monkeypatch.setenv(name, value)
    settings: dict[str, Any] = {"bot_token": "env:BOT", "app_token": "env:APP", "signing_secret": "env:HOOK"}
    settings |= {"api_url": slack.api_url, "access": {"senders": ["*"]}, "mode": mode}
    ada = slack.user("Ada")
    async with at_work(tmp_path / "home", agent=agent, slack=settings) as (_, url):
        if mode == "http":
            await until(lambda: slack.calls["auth.test"])
            assert await slack.use_http(f"{url}/hooks/slack/default")
        else:
            await until(lambda: slack.socket_mode.connections)
        slack.say(ada, ada, "Go on")
        await until(lambda: slack.sent)
        question = slack.sent[0]
        slack.press(question, ada, "No")
        slack.press(question, ada, "Yes")
        await until(lambda: len(slack.sent) == 2 and slack.edited and slack.ephemeral)
        assert slack.ephemeral == [(question["channel"], ada["id"], "already chosen: No")]
        assert slack.edited == [(question["ts"], CHOSEN)]
        assert not any(
            each["type"] == "actions" for each in slack.messages[question["channel"]][question["ts"]]["blocks"]
        )
        await until(lambda: not slack.deliveries.waiting)
        assert not slack.deliveries.lost
    assert '"value": "No"' in agent.told() and len(agent.turns) == 2
