"""Somebody's MCP client uses a conversation's tools through the front door: a real gateway, the real client."""

import asyncio
import base64
import subprocess
import sys
from pathlib import Path

import httpx2
import pybase64
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    ImageContent,
    LoggingMessageNotificationParams,
    ResourceListChangedNotification,
    TextContent,
    ToolListChangedNotification,
)

from belino.testing import FakeUpload, GatewayProcess, make_png
from belino.testing.telegram import TelegramServer

MAIN = "web:default:main"
PICTURE = make_png(64, 48)


@pytest.mark.slow
async def test_a_token_from_the_command_line_opens_the_tools_of_its_conversation(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        attachment = {"mime_type": "image/png", "file_name": "p.png", "content": base64.b64encode(PICTURE).decode()}
        said = {"conversation": MAIN, "message": "look", "id": "m1", "attachments": [attachment]}
        assert gateway.call("POST", "/api/messages", said)[0] == 200
        _, page = gateway.call("GET", f"/api/messages?conversation={MAIN}")
        ref = page["messages"][0]["media"][0]["ref"]
        secret = subprocess.run(
            [sys.executable, "-m", "belino", "token", "create", "--conversation", MAIN, "--home", str(gateway.home)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        headers = {"Authorization": f"Bearer {secret}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{gateway.url}/mcp", http_client=http)) as client,
        ):
            tools = {tool.name for tool in (await client.list_tools()).tools}
            reading = {"list_media", "fetch_media", "channel_context", "channel_messages"}
            assert tools == reading | {"send_media", "send_message", "react", "edit_message", "ask_user"}
            listed = (await client.call_tool("list_media", {})).content[0]
            assert isinstance(listed, TextContent)
            assert ref in listed.text
            shown = (await client.call_tool("fetch_media", {"ref": ref})).content
            (picture,) = [block for block in shown if isinstance(block, ImageContent)]
            assert pybase64.b64decode(picture.data) == PICTURE
            told = (await client.call_tool("channel_messages", {"message_ids": ["m1"]})).content[0]
            assert isinstance(told, TextContent)
            assert "look" in told.text


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_starts_belino_mcp_gets_the_tools_of_that_one_conversation(
    tmp_path: Path, mode: str
) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        attachment = {"mime_type": "image/png", "file_name": "p.png", "content": base64.b64encode(PICTURE).decode()}
        said = {"conversation": MAIN, "message": "look", "id": "m1", "attachments": [attachment]}
        assert gateway.call("POST", "/api/messages", said)[0] == 200
        _, page = gateway.call("GET", f"/api/messages?conversation={MAIN}")
        ref = page["messages"][0]["media"][0]["ref"]
        async with Client(belino_mcp(gateway.home), mode=mode) as client:
            assert "fetch_media" in {tool.name for tool in (await client.list_tools()).tools}
            shown = (await client.call_tool("fetch_media", {"ref": ref})).content
            (picture,) = [block for block in shown if isinstance(block, ImageContent)]
            assert pybase64.b64decode(picture.data) == PICTURE
            unknown = await client.call_tool("fetch_media", {"ref": "web_000000000000"})
            assert unknown.is_error


@pytest.mark.slow
async def test_a_gateway_that_was_started_again_is_found_again_by_a_client_over_stdio(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        assert gateway.call("POST", "/api/messages", {"conversation": MAIN, "message": "hi", "id": "m1"})[0] == 200
        async with Client(belino_mcp(gateway.home)) as client:
            assert not (await client.call_tool("list_media", {})).is_error
            gateway.stop()
            refused = await client.call_tool("list_media", {})
            assert refused.is_error and "no gateway runs" in str(refused.content)
            gateway.start()
            assert not (await client.call_tool("list_media", {})).is_error


@pytest.mark.slow
async def test_a_client_that_starts_before_the_gateway_gets_the_tools_once_it_runs(tmp_path: Path) -> None:
    changed = asyncio.Event()

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    gateway = GatewayProcess(tmp_path / "home")
    async with Client(belino_mcp(gateway.home), mode="legacy", message_handler=heard) as client:
        assert (await client.list_tools()).tools == []
        refused = await client.call_tool("list_media", {})
        assert refused.is_error and "no gateway runs" in str(refused.content)
        with gateway:
            async with asyncio.timeout(60):
                await changed.wait()
            assert "fetch_media" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.slow
async def test_progress_and_log_of_a_call_come_through_belino_mcp(tmp_path: Path) -> None:
    told, logged = list[float](), list[str]()

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async def log(params: LoggingMessageNotificationParams) -> None:
        logged.append(str(params.data))

    async with TelegramServer() as telegram:
        ann = telegram.user("Ann")
        gateway = GatewayProcess(tmp_path / "home", environment={"BOT": telegram.token})
        gateway.home.mkdir(mode=0o700)
        account = f'[agent]\nkind = "channel"\n[adapters.telegram]\ntoken = "env:BOT"\napi_url = "{telegram.url}"\n'
        unread = "[tools.media.document]\nenabled = false\n"  # or it is fetched and read for the turn
        (gateway.home / "belino.toml").write_text(f'{unread}{account}[adapters.telegram.access]\nsenders = ["*"]\n')
        await asyncio.to_thread(gateway.start)
        try:
            place = f"telegram:default:{ann['id']}"
            telegram.say(ann, ann, document=FakeUpload(content=bytes(3_000_000), name="plan.bin"))
            ref = await first_ref(gateway, place)
            async with Client(belino_mcp(gateway.home, place), mode="legacy", logging_callback=log) as client:
                with pytest.warns(MCPDeprecationWarning):
                    await client.set_logging_level("info")
                arguments = {"ref": ref, "as": "file"}
                answered = await client.call_tool("fetch_media", arguments, progress_callback=watch)
        finally:
            await asyncio.to_thread(gateway.stop)
    assert not answered.is_error
    assert told and told == sorted(told) and told[-1] == 3_000_000
    assert logged == [f"fetching {ref}, 2.9MB"]


@pytest.mark.slow
async def test_a_client_of_belino_mcp_is_told_of_new_media_also_by_a_gateway_started_again(tmp_path: Path) -> None:
    changed = asyncio.Event()

    async def heard(message: object) -> None:
        if isinstance(message, ResourceListChangedNotification):
            changed.set()

    async def send(gateway: GatewayProcess, name: str) -> None:
        attachment = {"mime_type": "image/png", "file_name": "p.png", "content": base64.b64encode(PICTURE).decode()}
        said = {"conversation": MAIN, "message": "look", "id": name, "attachments": [attachment]}
        assert (await asyncio.to_thread(gateway.call, "POST", "/api/messages", said))[0] == 200

    with GatewayProcess(tmp_path / "home") as gateway:
        await send(gateway, "m0")
        async with (
            Client(belino_mcp(gateway.home), mode="legacy", message_handler=heard) as client,
            asyncio.timeout(120),
        ):
            number = 0
            while not changed.is_set():  # the stream opens beside the first requests
                await send(gateway, f"m{(number := number + 1)}")
                await client.list_resources()
            await asyncio.to_thread(gateway.stop)
            changed.clear()
            await asyncio.to_thread(gateway.start)
            await changed.wait()


async def first_ref(gateway: GatewayProcess, conversation: str) -> str:
    """The ref of the first media that arrives there."""
    async with asyncio.timeout(60):
        while True:
            where = f"/api/messages?conversation={conversation}"
            status, page = await asyncio.to_thread(gateway.call, "GET", where)
            for message in page["messages"] if status == 200 else ():
                if message["media"]:
                    return str(message["media"][0]["ref"])
            await asyncio.sleep(0.05)


def belino_mcp(home: Path, conversation: str = MAIN) -> StdioServerParameters:
    """What somebody writes into their MCP client's settings."""
    own = ["-m", "belino", "mcp", "--conversation", conversation, "--home", str(home)]
    return StdioServerParameters(command=sys.executable, args=own)
