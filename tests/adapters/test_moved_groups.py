"""A Telegram group that becomes a supergroup keeps its access, agent, history, session and settings."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.in_house import at_work
from belino.domain.commands import ChatCommand, ChatSettings, CommandEffect
from belino.domain.message import ConversationKey
from belino.domain.places import Moved
from belino.domain.reply import Parcel
from belino.domain.search import SearchIntent, SearchQuery
from belino.gateway.explain import explain
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent, TelegramServer

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 64


def settings(server: TelegramServer, *groups: int, ada: int) -> dict[str, Any]:
    channels = {str(group): {"senders": [str(ada)]} for group in groups}
    return {"token": "env:TOKEN", "api_url": server.url, "access": {"channels": channels}}


def place(channel: object) -> ConversationKey:
    return ConversationKey(platform="telegram", account="default", channel=str(channel))


async def stored(gateway: Gateway, group: dict[str, Any], count: int) -> list[str]:
    while len(said := await gateway.store.history(place(group["id"]), limit=50)) < count:
        await asyncio.sleep(0.002)
    return [message.id for message in said]


@pytest.fixture
def server_token(monkeypatch: pytest.MonkeyPatch, server: TelegramServer) -> TelegramServer:
    monkeypatch.setenv("TOKEN", server.token)
    return server


async def test_a_group_that_becomes_a_supergroup_goes_on_where_it_was(
    server_token: TelegramServer, tmp_path: Path
) -> None:
    server, agent = server_token, ScriptedAgent()
    ada, group = server.user("Ada"), server.group("Harbour", kind="group")
    own = settings(server, group["id"], ada=ada["id"])
    async with at_work(tmp_path / "home", agent=agent, telegram=own) as (gateway, _):
        server.say(group, ada, "@belino_bot the crane is red", photo=PNG)
        await until(lambda: server.sent)
        chosen = ChatSettings(model="small")
        effect = CommandEffect(command=ChatCommand(name="model"), reason="", answer=(), settings=chosen)
        await gateway.store.carry_out(place(group["id"]), 1, effect, turn=0)
        new = server.migrate(group)
        first = server.say(new, ada, "@belino_bot and the pier?")
        await until(lambda: len(server.sent) == 2)
        assert server.sent[-1]["chat"]["id"] == new["id"]
        assert server.sent[-1]["reply_to_message"]["message_id"] == first["message_id"]
        old, session = place(group["id"]), await gateway.store.session(place(group["id"]))
        assert session.turns == 2, "one session"
        assert await gateway.store.chat_settings(old) == chosen
        assert await gateway.store.chat_settings(place(new["id"])) == chosen
        said = [message.text for message in await gateway.store.history(place(new["id"]), limit=50)]
        assert "@belino_bot the crane is red" in said[0] and "@belino_bot and the pier?" in said
        hits = await gateway.store.search(place(new["id"]), SearchQuery(intents=(SearchIntent(text="crane"),)))
        assert hits.hits[0].message.seq == 1
        told = await explain(gateway.store, f"telegram:default:{new['id']}/{first['message_id']}")
        assert any(step.outcome == "moved" and str(new["id"]) in step.reason for step in told.steps)
        assert told.message.id == f"{first['message_id']}@{new['id']}"
    async with at_work(tmp_path / "home", agent=agent, telegram=own) as (gateway, _):
        server.say(new, ada, "@belino_bot still there?")
        await until(lambda: len(server.sent) == 3)
        assert server.sent[-1]["chat"]["id"] == new["id"]
        assert (await gateway.store.session(place(group["id"]))).turns == 3


async def test_messages_of_both_places_with_one_number_are_all_kept(
    server_token: TelegramServer, tmp_path: Path
) -> None:
    server = server_token
    ada, group = server.user("Ada"), server.group("Harbour", kind="group")
    async with at_work(tmp_path / "home", telegram=settings(server, group["id"], ada=ada["id"])) as (gateway, _):
        for number in range(4):
            server.say(group, ada, f"old {number}")
        new = server.migrate(group)
        for number in range(4):
            server.say(new, ada, f"new {number}")
        ids = await stored(gateway, group, 10)
        assert ids == ["1", "2", "3", "4", "5", *(f"{number}@{new['id']}" for number in range(1, 6))]


async def test_a_group_whose_move_is_first_told_when_an_answer_is_refused_is_followed(
    server_token: TelegramServer, tmp_path: Path
) -> None:
    server = server_token
    ada, group = server.user("Ada"), server.group("Harbour", kind="group")
    async with at_work(tmp_path / "home", telegram=settings(server, group["id"], ada=ada["id"])) as (gateway, _):
        server.say(group, ada, "@belino_bot hello")
        await until(lambda: server.sent)
        new = server.group("Harbour")
        server.migrated[group["id"]] = new["id"]
        await gateway.store.put_parcels([Parcel(key="late", conversation=place(group["id"]), text="late", trace="t")])
        gateway._sender.wake(place(group["id"]))
        await until(lambda: len(server.sent) == 2)
        assert server.sent[-1]["chat"]["id"] == new["id"]
        server.say(new, ada, "thanks", reply_to=server.sent[-1])
        await until(lambda: len(server.sent) == 3)
        assert server.calls["sendMessage"] == 4, "the old place is tried once"
        assert await gateway.store.moved_channels() == (
            (("telegram", "default"), Moved(old=str(group["id"]), new=str(new["id"]))),
        )


async def test_a_listed_group_that_moved_before_it_was_ever_heard_is_heard(
    server_token: TelegramServer, tmp_path: Path
) -> None:
    server = server_token
    ada, group = server.user("Ada"), server.group("Harbour", kind="group")
    new = server.group("Harbour")
    own = settings(server, group["id"], ada=ada["id"])
    async with at_work(tmp_path / "home", telegram=own) as (gateway, _):
        await until(lambda: server.calls["getUpdates"])
        server.say(new, None, migrate_from_chat_id=group["id"])
        server.say(new, ada, "@belino_bot hello")
        await until(lambda: server.sent)
        assert await stored(gateway, group, 3) == [f"{number}@{new['id']}" for number in (1, 2, 3)]


async def test_rules_for_the_new_id_count_before_those_for_the_old(
    server_token: TelegramServer, tmp_path: Path
) -> None:
    server = server_token
    ada, bob, group = server.user("Ada"), server.user("Bob"), server.group("Harbour", kind="group")
    new = server.group("Harbour")
    own = settings(server, group["id"], ada=ada["id"])
    own["access"]["channels"][str(new["id"])] = {"senders": [str(bob["id"])]}
    async with at_work(tmp_path / "home", telegram=own) as (gateway, _):
        await until(lambda: server.calls["getUpdates"])
        server.say(new, None, migrate_from_chat_id=group["id"])
        server.say(new, ada, "@belino_bot hello")
        server.say(new, bob, "@belino_bot hello")
        await until(lambda: server.sent)
        assert server.sent[0]["reply_to_message"]["from"]["id"] == bob["id"]
        assert (await stored(gateway, group, 3))[:2] == [f"1@{new['id']}", f"2@{new['id']}"]


async def test_the_move_of_a_group_that_is_not_listed_leaves_nothing(
    server_token: TelegramServer, tmp_path: Path
) -> None:
    server = server_token
    ada, group = server.user("Ada"), server.group("Elsewhere", kind="group")
    async with at_work(tmp_path / "home", telegram=settings(server, ada=ada["id"])) as (gateway, _):
        await until(lambda: server.calls["getUpdates"])
        new = server.migrate(group)
        server.say(new, ada, "hello")
        await until(lambda: gateway.counters.arrivals["denied"] == 3)
        assert await gateway.store.moved_channels() == ()
