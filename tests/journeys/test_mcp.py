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
from mcp_types import ImageContent, TextContent, ToolListChangedNotification

from belino.testing import GatewayProcess, make_png

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
async def test_the_progress_of_a_call_comes_through_belino_mcp(tmp_path: Path) -> None:
    told: list[float] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    with GatewayProcess(tmp_path / "home") as gateway:
        assert gateway.call("POST", "/api/messages", {"conversation": MAIN, "message": "hi", "id": "m1"})[0] == 200
        async with Client(belino_mcp(gateway.home)) as client:
            answered = await client.call_tool("list_media", {}, progress_callback=watch)
            assert not answered.is_error


def belino_mcp(home: Path) -> StdioServerParameters:
    """What somebody writes into their MCP client's settings."""
    own = ["-m", "belino", "mcp", "--conversation", MAIN, "--home", str(home)]
    return StdioServerParameters(command=sys.executable, args=own)
