"""MCP clients get the toolbox of the conversation their token was made for, whatever they write."""

import asyncio
import contextlib
from dataclasses import replace
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ResourcesListChanged

from belino.config import Config
from belino.config.tables import ChannelAccess
from belino.domain.message import ChatType, ConversationKey
from belino.testing import make_png
from belino.web.request_context import SOCKETS_PER_GRANT

MAIN = ConversationKey(platform="web", account="default", channel="main")
OTHER = ConversationKey(platform="web", account="default", channel="other")


async def call(site: Any, headers: dict[str, str], method: str, **params: Any) -> tuple[int, Any]:
    sent = {**headers, "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    status, body, _ = await site.ask("POST", "/mcp", headers=sent, json=frame)
    return status, body


async def say(site: Any, conversation: ConversationKey, name: str) -> str:
    """Send a picture; its ref."""
    attachment = {"content": list(make_png(2, 2)), "mime_type": "image/png", "file_name": name}
    async with site.socket() as chat:
        said = await chat.call("chat.send", conversation=str(conversation), message="look", attachments=[attachment])
    return str(said["payload"]["message"]["media"][0]["ref"])


async def test_a_token_opens_the_tools_of_its_own_conversation_only(site: Any) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)
    own, foreign = await say(site, MAIN, "own.png"), await say(site, OTHER, "foreign.png")
    token = await site.token(MAIN)
    status, listed = await call(site, token, "tools/list")
    assert status == 200
    assert {tool["name"] for tool in listed["result"]["tools"]} >= {"list_media", "fetch_media", "channel_messages"}
    _, media = await call(site, token, "tools/call", name="list_media", arguments={})
    assert own in str(media)
    assert foreign not in str(media)
    for ref in (foreign, "web_000000000000"):
        _, refused = await call(site, token, "tools/call", name="fetch_media", arguments={"ref": ref})
        assert refused["result"]["isError"]


async def test_no_path_of_this_machine_reaches_a_client_and_a_file_is_named_once(site: Any) -> None:
    ref, token = await say(site, MAIN, "own.png"), await site.token(MAIN)
    _, got = await call(site, token, "tools/call", name="fetch_media", arguments={"ref": ref, "as": "file"})
    name = f"incoming/own---{ref}.png"
    assert str(got).count(name) == 1 and str(got).count(f"own---{ref}") == 1
    assert str(site.gateway.home.path) not in str(got)
    _, sent = await call(site, token, "tools/call", name="send_media", arguments={"path": name})
    assert not sent["result"].get("isError") and str(site.gateway.home.path) not in str(sent)


async def test_the_calls_of_a_client_are_in_the_story_of_the_newest_message(site: Any) -> None:
    ref, token = await say(site, MAIN, "own.png"), await site.token(MAIN)
    await call(site, token, "tools/call", name="fetch_media", arguments={"ref": ref, "as": "thumb"})
    await call(site, token, "tools/call", name="bash", arguments={})
    (newest, *_) = await site.gateway.store.history(MAIN, limit=1)
    story = await site.gateway.store.story(MAIN, newest.id)
    told = [(step.subject, step.outcome, step.reason) for step in story.steps if "(client)" in step.subject]
    assert told == [
        ("fetch_media (client)", "done", f"ref={ref}, as=thumb"),
        ("bash (client)", "unknown tool", "there is no such tool"),
    ]


@pytest.mark.parametrize("spoof", ["X-Belino-Conversation", "X-Forwarded-For"])
async def test_no_header_widens_a_token(site: Any, spoof: str) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)
    foreign = await say(site, OTHER, "foreign.png")
    headers = {**await site.token(MAIN), spoof: str(OTHER)}
    status, body = await call(site, headers, "tools/call", name="list_media", arguments={})
    assert status == 404 or foreign not in str(body)


async def test_the_program_names_the_conversation_it_means(site: Any) -> None:
    assert (await call(site, site.program, "tools/list"))[0] == 400
    named = {**site.program, "X-Belino-Conversation": str(MAIN)}
    assert (await call(site, named, "tools/list"))[0] == 200
    nowhere = {**site.program, "X-Belino-Conversation": "web:default:nowhere"}
    assert (await call(site, nowhere, "tools/list"))[0] == 404


async def test_a_page_of_another_site_does_not_reach_the_tools(site: Any) -> None:
    page = {**await site.browser(), "X-Belino-Conversation": str(MAIN)}
    assert (await call(site, page, "tools/list"))[0] == 200
    assert (await call(site, {**page, "Origin": "http://evil.test"}, "tools/list"))[0] == 403
    assert (await call(site, {**await site.token(), "Host": "evil.test"}, "tools/list"))[0] == 421
    with_token = {**await site.token(), "Origin": "http://evil.test"}
    assert (await call(site, with_token, "tools/list"))[0] == 403


async def test_the_token_of_a_turn_is_refused_to_a_foreign_page_and_opens_no_other_route(site: Any) -> None:
    access = site.gateway.turn_tools
    access.serve_at("http://127.0.0.1", None)
    with access.open(MAIN, site.gateway.toolbox(MAIN)) as address:
        bearer = {"Authorization": f"Bearer {address.token}"}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        plain = {**bearer, "Accept": "application/json, text/event-stream"}
        status, told, _ = await site.ask("POST", "/mcp/turn", headers=plain, json=asked)
        assert status == 200 and "fetch_media" in {tool["name"] for tool in told["result"]["tools"]}
        foreign = {**plain, "Origin": "https://evil.example"}
        assert (await site.ask("POST", "/mcp/turn", headers=foreign, json=asked))[0] == 403
        for path in ("/mcp", "/api/messages", "/api/status"):
            assert (await site.ask("GET", path, headers=bearer))[0] == 401
    assert (await site.ask("POST", "/mcp/turn", headers=plain, json=asked))[0] == 401


async def test_a_client_without_a_token_is_told_which_one_it_needs(site: Any) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        status, body, told = await site.ask("POST", "/mcp", headers=headers, json={})
        assert status == 401
        assert told["www-authenticate"] == 'Bearer realm="belino"'
        assert "belino token create --conversation" in body["error"]["message"]


async def test_a_client_sends_a_message_and_replies_to_one_of_its_own_channel_only(site: Any) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)
    token = await site.token(MAIN)
    async with site.socket() as chat:
        said = await chat.call("chat.send", conversation=str(MAIN), message="hello")
        foreign = await chat.call("chat.send", conversation=str(OTHER), message="hello")
        own = said["payload"]["message"]["id"]
        given = {"text": "The **boat** leaves at nine", "reply_to": own}
        _, sent = await call(site, token, "tools/call", name="send_message", arguments=given)
        assert not sent["result"]["isError"], sent
        shown = await chat.event("message")
        while "boat" not in str(shown):
            shown = await chat.event("message")
    for wrong in (foreign["payload"]["message"]["id"], "unknown"):
        arguments = {"text": "x", "reply_to": wrong}
        _, refused = await call(site, token, "tools/call", name="send_message", arguments=arguments)
        assert refused["result"]["isError"]
    assert shown["message"]["reply_to"] == own
    assert [each.text for each in await site.gateway.store.parcels(limit=50) if each.text == "x"] == []


async def test_a_client_asks_with_buttons_and_finds_the_choice_among_the_messages(site: Any) -> None:
    token = await site.token(MAIN)
    async with site.socket() as chat:
        given = {"question": "Which boat?", "choices": ["red", "blue"]}
        _, asked = await call(site, token, "tools/call", name="ask_user", arguments=given)
        assert not asked["result"]["isError"] and "end your turn" not in str(asked), asked
        shown = await chat.event("message")
        while not shown["message"].get("choices"):
            shown = await chat.event("message")
        (key, *_) = [each["key"] for each in shown["message"]["choices"]["buttons"]]
        pressed = await chat.call("chat.send", conversation=str(MAIN), press=key)
        assert pressed["ok"], pressed
    name = pressed["payload"]["message"]["id"]
    _, read = await call(site, token, "tools/call", name="channel_messages", arguments={"message_ids": [name]})
    assert "red" in str(read)


async def test_acting_tools_are_those_of_the_platform_that_the_operator_permits(run_site: Any) -> None:
    async def names(site: Any) -> set[str]:
        _, listed = await call(site, await site.token(MAIN), "tools/list")
        return {tool["name"] for tool in listed["result"]["tools"]}

    acting = {"react", "edit_message", "delete_message"}
    usual = Config()
    (web,) = usual.adapters
    permitted: list[tuple[Literal["react", "edit", "delete"], ...]] = [(), ("react", "edit", "delete")]
    for number, may in enumerate(permitted):
        channels = {"main": ChannelAccess(agent_may=may)}
        adapter = replace(web, access=replace(web.access, channels=channels))
        async with run_site(replace(usual, adapters=(adapter,)), folder=str(number)) as site:
            assert await names(site) & acting == (acting if may else set())
            assert {"send_message", "send_media", "ask_user"} <= await names(site)


async def test_a_client_that_listens_is_told_of_new_media_until_its_token_is_revoked(site: Any) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)
    token = await site.token(MAIN)
    async with (
        httpx2.AsyncClient(headers=token, timeout=60) as http,
        Client(streamable_http_client(f"{site.url}/mcp", http_client=http)) as client,
        asyncio.timeout(60),
        client.listen(resources_list_changed=True) as changes,
    ):
        await say(site, OTHER, "foreign.png")
        own = await say(site, MAIN, "own.png")
        assert isinstance(await anext(aiter(changes)), ResourcesListChanged)
        assert f"belino://media/{own}" in {each.uri for each in (await client.list_resources()).resources}
        (grant,) = [each for each in await site.gateway.store.grants() if each.conversation == MAIN]
        status, _, _ = await site.ask("DELETE", f"/api/tokens/{grant.id}")
        assert status in (200, 204)
        with contextlib.suppress(Exception):
            async for _ in changes:
                pass


async def test_a_client_that_listens_does_not_hold_up_the_end(run_site: Any, caplog: pytest.LogCaptureFixture) -> None:
    headers = {"Accept": "text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    async with httpx2.AsyncClient(timeout=60) as http, contextlib.AsyncExitStack() as streams, asyncio.timeout(60):
        async with run_site() as site:
            own = {**headers, **await site.token(MAIN)}
            stream = await streams.enter_async_context(http.stream("GET", f"{site.url}/mcp", headers=own))
            assert stream.status_code == 200
        assert [line async for line in stream.aiter_lines() if line.startswith("data")] == []
    assert [record.getMessage() for record in caplog.records if record.name == "uvicorn.error"] == []


async def test_a_token_opens_only_so_many_streams(site: Any) -> None:
    own = {"Accept": "text/event-stream", "MCP-Protocol-Version": "2025-11-25", **await site.token(MAIN)}
    async with httpx2.AsyncClient(timeout=60) as http, contextlib.AsyncExitStack() as streams:
        opened = [
            await streams.enter_async_context(http.stream("GET", f"{site.url}/mcp", headers=own))
            for _ in range(SOCKETS_PER_GRANT + 1)
        ]
        assert [each.status_code for each in opened] == [200] * SOCKETS_PER_GRANT + [429]
