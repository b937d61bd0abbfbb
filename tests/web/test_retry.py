"""A failed message tried again over HTTP: by its owner and by its conversation's token, by nobody else."""

import asyncio
from typing import Any

import pytest

from belino.domain.errors import AgentError
from belino.domain.message import ChatType, ConversationKey
from belino.testing import ScriptedAgent

MAIN = "web:default:main"
OTHER = ConversationKey(platform="web", account="default", channel="other")


@pytest.fixture
async def site(run_site: Any) -> Any:
    async with run_site(agent=ScriptedAgent(AgentError("the model is gone"), "the answer")) as site:
        yield site


async def ask(site: Any, text: str, **more: Any) -> None:
    body = {"conversation": MAIN, "message": text, **more}
    assert (await site.ask("POST", "/api/messages", json=body))[0] == 200


async def outcome(site: Any, *ends: str) -> list[tuple[str, str]]:
    """The conversation, once its first message has come to one of these ends and everything is told."""
    while True:
        _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")
        _, outbox, _ = await site.ask("GET", "/api/outbox?unsent=1")
        if page["messages"][0]["outcome"] in ends and not outbox["parcels"]:
            _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")  # what has been sent since, too
            return [(message["text"], message["outcome"]) for message in page["messages"]]
        await asyncio.sleep(0.01)


async def test_a_failed_message_is_answered_when_its_owner_asks(site: Any) -> None:
    await ask(site, "hi", id="m1")
    await outcome(site, "failed")
    page = await site.browser()
    status, told, _ = await site.ask("POST", "/api/retry", headers=page, json={"message": f"{MAIN}/m1"})
    assert (status, told["name"], told["conversation"]) == (200, f"{MAIN}/m1", MAIN)
    assert (told["messages"], told["outcome"]) == (["m1"], "waiting")
    assert await outcome(site, "answered") == [
        ("hi", "answered"),
        ("Sorry, I could not answer that: the model is gone.", "answered"),
        ("the answer", "answered"),
    ]
    status, refused, _ = await site.ask("POST", "/api/retry", json={"message": f"{MAIN}/m1"})
    assert (status, refused["error"]["code"]) == (409, "conflict")
    assert refused["error"]["message"].endswith("only a failed message can be retried")
    for name in ("nothing", f"{MAIN}/nothing"):
        assert (await site.ask("POST", "/api/retry", json={"message": name}))[0] == 404
    for body in ({}, {"message": 1}, {"message": "m1", "more": 1}):
        assert (await site.ask("POST", "/api/retry", json=body))[0] == 400


async def test_a_conversations_token_retries_its_own_messages_and_a_strangers_none(site: Any) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)
    await ask(site, "hi", id="m1")
    await outcome(site, "failed")
    for headers in (await site.token(OTHER), {"Authorization": "Bearer guessed"}, {}):
        for name in (f"{MAIN}/m1", "m1", f"{OTHER}/m1"):
            status, _, _ = await site.ask("POST", "/api/retry", headers=headers, json={"message": name})
            assert status in {401, 404}
    page = await site.browser()
    del page["X-Belino"]
    assert (await site.ask("POST", "/api/retry", headers=page, json={"message": f"{MAIN}/m1"}))[0] == 403
    assert (await outcome(site, "failed"))[0] == ("hi", "failed"), "none of these had it run"
    own = await site.token()
    assert (await site.ask("POST", "/api/retry", headers=own, json={"message": "m1"}))[0] == 404
    assert (await site.ask("POST", "/api/retry", headers=own, json={"message": f"{MAIN}/m1"}))[0] == 200
    assert (await outcome(site, "answered"))[-1] == ("the answer", "answered")
