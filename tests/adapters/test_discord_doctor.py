"""What the doctor finds out about a bot on Discord."""

import json
from collections.abc import Callable

import pytest

from adapters.discord_harness import Bot
from belino.adapters.discord import Config, hosts
from belino.adapters.discord.doctor import FOR_THREADS, PERMISSIONS, invite_link
from belino.domain.errors import ConfigError
from belino.domain.outcome import Finding
from belino.net.redact import Secret
from belino.testing.discord import BOT_ID, TOKEN, DiscordServer
from belino.testing.faults import CannedAnswer

GUILDS, APPLICATION = "GET /users/@me/guilds", "GET /applications/@me"


async def found(bot: Bot) -> dict[str, Finding]:
    return {finding.name.removeprefix("discord:default "): finding for finding in await bot.adapter.check()}


def answer(value: object) -> CannedAnswer:
    return CannedAnswer(status=200, body=json.dumps(value).encode(), headers={"Content-Type": "application/json"})


async def test_all_is_well(discord: DiscordServer, discord_bot: Bot) -> None:
    discord.guild("Hikers", discord.user("ada"))
    findings = await found(discord_bot)
    assert {name: finding.ok for name, finding in findings.items()} == {
        "token": True, "intent": True, "servers": True, "gateway": True,
    }  # fmt: skip
    assert "Hikers" in findings["servers"].says and invite_link(BOT_ID) in findings["servers"].says


async def test_the_link_is_made_of_the_applications_id_which_need_not_be_the_bots(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    discord.fail(APPLICATION, answer({"id": "77", "flags": 1 << 19}))
    assert invite_link("77") in (await found(discord_bot))["servers"].cure
    discord.fail(APPLICATION, CannedAnswer(status=502))
    findings = await found(discord_bot)
    assert not findings["intent"].ok and invite_link(BOT_ID) in findings["servers"].cure


async def test_a_wrong_token_is_the_only_finding(discord: DiscordServer, discord_bot_at: Callable[..., Bot]) -> None:
    findings = await found(discord_bot_at(discord, token="wrong.bot.token"))
    assert list(findings) == ["token"] and "belino setup discord" in findings["token"].cure


async def test_a_missing_intent_an_empty_world_and_missing_permissions_have_their_cures(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    discord.allow(message_content=False)
    findings = await found(discord_bot)
    assert "Message Content Intent" in findings["intent"].cure
    assert "in no server" in findings["servers"].says and invite_link(BOT_ID) in findings["servers"].cure
    lacking = str(sum(PERMISSIONS.values()) & ~PERMISSIONS["Attach Files"])
    discord.fail(GUILDS, answer([{"id": "1", "name": "Hikers", "permissions": lacking}]))
    assert (await found(discord_bot))["permissions"].says == "in Hikers its role lacks Attach Files"
    discord.fail(GUILDS, answer([{"id": "1", "name": "Hikers", "permissions": "8"}]))
    assert "permissions" not in await found(discord_bot)


async def test_a_bot_that_answers_in_threads_needs_the_permission_to_create_them(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: Callable[..., Bot]
) -> None:
    guild = {"id": "1", "name": "Hikers", "permissions": str(sum(PERMISSIONS.values()))}
    discord.fail(GUILDS, answer([guild]))
    assert "permissions" not in await found(discord_bot)
    discord.fail(GUILDS, answer([guild]))
    findings = await found(discord_bot_at(discord, reply_in_threads=True))
    assert findings["permissions"].says == "in Hikers its role lacks Create Public Threads"
    assert invite_link(BOT_ID, {**PERMISSIONS, **FOR_THREADS}) in findings["permissions"].cure


async def test_what_cannot_be_looked_at_is_said_and_keeps_nothing_else_from_being_seen(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    discord.fail(GUILDS, CannedAnswer(status=502))
    discord.fail("GET /gateway/bot", answer({"url": "wss://x", "session_start_limit": {"remaining": 3}}))
    findings = await found(discord_bot)
    assert not findings["servers"].ok and findings["intent"].ok
    assert "3 more sessions" in findings["gateway"].says


async def test_listed_channels_the_bot_does_not_hear_are_named_with_their_cures(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    ada = discord.user("ada")
    club = discord.guild("Hikers", ada)
    room, hidden, drawer = discord.channel(club, "trips"), discord.channel(club, "staff"), discord.channel(club, "x", 4)
    thread = discord.thread(room, ada, "talk")
    discord.forbid(hidden, "VIEW_CHANNEL")
    listed = [room["id"], "*", hidden["id"], thread["id"], drawer["id"], "12345", "general"]
    findings = {one.name.rpartition(" ")[2]: one for one in await discord_bot.adapter.check_channels(listed)}
    assert set(findings) == set(listed) - {room["id"], "*"} and not any(one.ok for one in findings.values())
    assert "View Channel" in findings[hidden["id"]].cure
    assert room["id"] in findings[thread["id"]].cure and "category" in findings[drawer["id"]].says
    assert "no such channel" in findings["12345"].says and "not a Discord id" in findings["general"].says


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"api_url": "http://discord.com/api/v10"}, "encrypted"),
        ({"api_url": "https://user@discord.com/api"}, "without a login"),
        ({"gateway_url": "ws://gateway.discord.gg"}, "encrypted"),
        ({"cdn_url": "ftp://cdn"}, "cdn_url must be"),
        ({"api_url": "https://[x"}, "not a URL"),
        ({"token": Secret("T", "two words")}, "three parts"),
    ],
)
def test_settings_that_would_say_the_token_in_the_clear_are_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Config(**{"token": Secret("T", TOKEN), **settings})  # type: ignore[arg-type]


def test_the_token_goes_to_the_api_and_the_gateway_and_nowhere_else() -> None:
    assert hosts(Config(token=Secret("T", TOKEN))) == {"discord.com"}
    own = Config(
        token=Secret("T", TOKEN),
        api_url="http://127.0.0.1:1/api",
        gateway_url="ws://127.0.0.1:2",
        cdn_url="http://[::1]:3",
    )
    assert hosts(own) == {"127.0.0.1:1", "127.0.0.1:2", "[::1]:3"}
