"""Slack in the whole house: two workspaces at once, events through the web door, and what happens to messages later."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.in_house import at_work, kept, seen
from belino.gateway.gateway import Gateway
from belino.testing import SlackServer, make_jpeg
from belino.testing.slack.shapes import Json


def settings(server: SlackServer, **more: Any) -> dict[str, Any]:
    tokens = {"bot_token": "env:BOT", "app_token": "env:APP", "signing_secret": "env:HOOK"}
    return {**tokens, "api_url": server.api_url, "access": {"senders": ["*"]}, **more}


@pytest.fixture
def server(slack: SlackServer, monkeypatch: pytest.MonkeyPatch) -> SlackServer:
    monkeypatch.setenv("BOT", slack.bot_token)
    monkeypatch.setenv("APP", slack.app_token)
    monkeypatch.setenv("HOOK", slack.signing_secret)
    return slack


async def test_two_workspaces_are_answered_each_in_its_own(
    server: SlackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SlackServer(bot_token="xoxb-another", app_token="xapp-another") as second:
        monkeypatch.setenv("BOT_2", second.bot_token)
        monkeypatch.setenv("APP_2", second.app_token)
        work = settings(second, bot_token="env:BOT_2", app_token="env:APP_2")
        async with at_work(tmp_path / "home", slack=settings(server, accounts={"work": work})) as (gateway, _):
            await until(lambda: server.socket_mode.connections and second.socket_mode.connections)
            ada, bob = server.user("Ada"), second.user("Bob")
            server.say(ada, ada, "to the first")
            second.say(bob, bob, "to the second")
            await until(lambda: server.sent and second.sent)
            assert (await kept(gateway, server.dm(ada)["id"]))[0].text == "to the first"
            assert (await kept(gateway, second.dm(bob)["id"], account="work"))[0].text == "to the second"


async def test_slack_calls_at_the_web_door_and_is_answered(server: SlackServer, tmp_path: Path) -> None:
    ada = server.user("Ada")
    async with at_work(tmp_path / "home", slack=settings(server, mode="http")) as (gateway, url):
        await until(lambda: server.calls["auth.test"])
        assert await server.use_http(f"{url}/hooks/slack/default")
        server.say(ada, ada, "hello over there", files=[make_jpeg(32, 24)])
        await until(lambda: server.sent)
        (first, *_) = await kept(gateway, server.dm(ada)["id"])
        assert (first.text, len(first.media)) == ("hello over there", 1)
        server.hooks.secret = "somebody else's"
        server.say(ada, ada, "forged")
        await until(lambda: any(status == 401 for _, status in server.hooks.attempts))
        assert "forged" not in str(await kept(gateway, server.dm(ada)["id"]))


@asynccontextmanager
async def general(server: SlackServer, path: Path, words: str) -> AsyncIterator[tuple[Gateway, Json]]:
    """A house that listens to a channel and has stored what Ada says there."""
    ada = server.user("Ada")
    channel = server.channel("general", ada)
    listed = {"channels": {channel["id"]: {"senders": ["*"]}}}
    async with at_work(path, slack=settings(server, access=listed)) as (gateway, _):
        await until(lambda: server.socket_mode.connections)
        said = server.say(channel, ada, words)
        await seen(gateway, channel["id"], lambda message: message.text == words)
        yield gateway, said


async def test_edits_reactions_and_deletions_reach_the_stored_message(server: SlackServer, tmp_path: Path) -> None:
    async with general(server, tmp_path / "home", "we meet at 8") as (gateway, said):
        server.edit(said, "we meet at 9")
        await seen(gateway, said["channel"], lambda message: message.text == "we meet at 9")
        server.react(said, server.users[said["user"]], "eyes")
        await seen(gateway, said["channel"], lambda message: dict(message.reactions) == {":eyes:": 1})
        server.delete(said)
        await seen(gateway, said["channel"], lambda message: message.deleted is not None)


async def test_a_message_whose_address_was_pasted_is_brought_along_when_slack_has_found_it(
    server: SlackServer, tmp_path: Path
) -> None:
    async with general(server, tmp_path / "home", "what is this?") as (gateway, said):
        found = {"is_msg_unfurl": True, "author_name": "Bo", "text": "our boat", "from_url": "https://example.org/p1"}
        before = {key: said[key] for key in ("user", "type", "ts", "text")}
        after = {**before, "attachments": [{**found, "files": [{"id": "F0BOAT0001", "mimetype": "image/png"}]}]}
        change = {"type": "message", "subtype": "message_changed", "channel": said["channel"], "ts": said["ts"]}
        server.deliveries.event({**change, "message": after, "previous_message": before}, "message.channels")
        stored = await seen(gateway, said["channel"], lambda message: message.media)
        assert stored.text == "what is this?\n> Bo: our boat"
        assert server.calls["file"] == server.calls["files.info"] == 0
