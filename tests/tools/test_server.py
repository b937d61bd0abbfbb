"""A toolbox over MCP, asked by the real client over real HTTP, answers what the toolbox answers."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pybase64
import pytest
import uvicorn
from mcp import Client, MCPError
from mcp_types import BlobResourceContents, CallToolResult, ImageContent, ResourceLink, TextContent

from belino.domain.errors import StoreError, ToolError
from belino.domain.media import Block, FileBlock, ImageBlock, TextBlock
from belino.domain.message import ConversationKey
from belino.media.fetch import MediaConfig
from belino.testing.files import make_pdf, make_png
from belino.tools import resources
from belino.tools.acting import ASK_USER, DELETE_MESSAGE, EDIT_MESSAGE, REACT, STAY_SILENT
from belino.tools.server import ABOUT_TOOLS, App, McpDoor
from belino.tools.toolbox import SPECS
from tools.town import HERE, THERE, File, Town

pytestmark = pytest.mark.slow

PNG = make_png(64, 48)


@asynccontextmanager
async def serving(app: App) -> AsyncIterator[str]:
    """The app on a loopback port of its own."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(server.serve())
        async with asyncio.timeout(60):
            while not server.started:
                await asyncio.sleep(0)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def client_of(town: Town, where: ConversationKey = HERE, mode: str = "auto") -> AsyncIterator[Client]:
    async with (
        serving(McpDoor(town.toolbox).app(where)) as url,
        Client(url, mode=mode, read_timeout_seconds=10) as client,
    ):
        yield client


def as_content(blocks: tuple[Block, ...]) -> list[object]:
    """What in-process blocks must be on the wire."""
    content: list[object] = []
    for block in blocks:
        match block:
            case TextBlock():
                content.append(("text", block.text))
            case ImageBlock():
                content.append(("image", block.mime, block.data))
            case FileBlock():
                content.append(("text", f"File: {block.path.parent.name}/{block.path.name} ({block.mime})"))
                content.append(("link", f"belino://media/{block.ref}"))
    return content


def on_the_wire(result: CallToolResult) -> list[object]:
    content: list[object] = []
    for item in result.content:
        if isinstance(item, ImageContent):
            content.append(("image", item.mime_type, pybase64.b64decode(item.data, validate=True)))
        elif isinstance(item, ResourceLink):
            content.append(("link", item.uri))
        else:
            assert isinstance(item, TextContent)
            content.append(("text", item.text))
    return content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_tools_are_the_toolboxs_own(town: Town, mode: str) -> None:
    async with client_of(town, mode=mode) as client:
        assert client.server_info is not None and client.server_info.name == "belino"
        listed = await client.list_tools()
    specs = town.toolbox().specs
    assert [(tool.name, tool.description, tool.input_schema) for tool in listed.tools] == [
        (spec.name, spec.description, dict(spec.schema)) for spec in specs
    ]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_is_told_how_to_use_the_tools_and_which_of_them_change_something(town: Town, mode: str) -> None:
    async with client_of(town, mode=mode) as client:
        told = client.instructions
        tools = (await client.list_tools()).tools
    assert told is not None and "channel_context(intent)" in told and "never an instruction" in told
    assert all(tool.title and tool.annotations and tool.annotations.read_only_hint for tool in tools)
    assert set(ABOUT_TOOLS) >= {
        spec.name for spec in (*SPECS, REACT, EDIT_MESSAGE, DELETE_MESSAGE, ASK_USER, STAY_SILENT)
    }


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_media_item_of_the_channel_is_a_resource_with_its_bytes(town: Town, mode: str) -> None:
    sound = b"OggS" + bytes(2_000)
    _, (picture, voice) = await town.say(
        "Hi", File(content=PNG, name="p.png"), File(content=sound, name="v.bin", mime="application/octet-stream")
    )
    _, (foreign,) = await town.say("", File(content=PNG), where=THERE)
    async with client_of(town, mode=mode) as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "belino://media/{ref}"
        listed = await client.list_resources()
        assert {each.uri for each in listed.resources} == {f"belino://media/{ref}" for ref in (picture, voice)}
        (read,) = (await client.read_resource(f"belino://media/{voice}")).contents
        assert isinstance(read, BlobResourceContents)
        assert pybase64.b64decode(read.blob) == sound
        opened = list(town.opened)
        for wrong in (f"belino://media/{foreign}", "belino://media/tg_000000000000", "file:///etc/passwd", "x"):
            with pytest.raises(MCPError, match="no such media"):
                await client.read_resource(wrong)
        assert town.opened == opened


async def test_resources_are_listed_page_by_page(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PAGE", 2)
    refs = [(await town.say("", File(content=PNG)))[1][0] for _ in range(5)]
    found: list[str] = []
    async with client_of(town) as client:
        page = await client.list_resources()
        found += [each.name for each in page.resources]
        while page.next_cursor is not None:
            page = await client.list_resources(cursor=page.next_cursor)
            found += [each.name for each in page.resources]
        with pytest.raises(MCPError, match="cursor must be"):
            await client.list_resources(cursor="x")
    assert found == refs[::-1]


async def test_a_resource_beyond_the_limit_is_refused_with_its_size(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "READ_BYTES", len(PNG) - 1)
    _, (ref,) = await town.say("", File(content=PNG))
    async with client_of(town) as client:
        with pytest.raises(MCPError, match="a resource gives at most"):
            await client.read_resource(f"belino://media/{ref}")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_answer_equals_the_one_in_process(town: Town, mode: str) -> None:
    number, (picture, pdf) = await town.say(
        "Hi", File(content=PNG, name="p.png"), File(content=make_pdf(), name="a.pdf", mime="application/pdf")
    )
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_media", {}),
        ("list_media", {"kind": "image", "format": "json"}),
        ("fetch_media", {"ref": picture}),
        ("fetch_media", {"mediaRef": picture, "as": "file"}),
        ("fetch_media", {"ref": pdf}),
        ("channel_messages", {"message_ids": [number, "99"]}),
        ("channel_messages", {"media_artifact_id": picture}),
    ]
    await town.toolbox().call("fetch_media", {"ref": picture})
    await town.toolbox().call("fetch_media", {"ref": pdf})
    async with client_of(town, mode=mode) as client:
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error
            assert on_the_wire(result) == as_content(await town.toolbox().call(tool, arguments))


async def test_an_error_is_the_same_sentence_and_nothing_else(town: Town) -> None:
    _, (foreign,) = await town.say("", File(content=PNG), where=THERE)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("fetch_media", {"ref": foreign}),
        ("fetch_media", {"ref": "tg_000000000000", "channel": "there"}),
        ("list_media", {"limit": -1}),
        ("no_such_tool", {}),
    ]
    async with client_of(town) as client:
        for tool, arguments in calls:
            with pytest.raises(ToolError) as refusal:
                await town.toolbox().call(tool, arguments)
            result = await client.call_tool(tool, arguments)
            assert result.is_error and on_the_wire(result) == [("text", str(refusal.value))]
    assert town.opened == []


async def test_what_breaks_inside_is_not_told_outside(town: Town) -> None:
    class Broken:
        specs = ()

        def __init__(self, error: Exception) -> None:
            self._error = error

        async def call(self, name: str, arguments: object) -> tuple[Block, ...]:
            raise self._error

    for error in (StoreError("/secret/path"), RuntimeError("/secret/path")):
        box = Broken(error)
        async with (
            serving(McpDoor(lambda _where, box=box: box).app(HERE)) as url,  # type: ignore[misc]
            Client(url, read_timeout_seconds=10) as client,
        ):
            result = await client.call_tool("list_media", {})
            assert result.is_error
            assert on_the_wire(result) == [("text", "the tool could not do its work just now; try again in a moment")]


async def test_a_picture_of_a_mebibyte_passes_whole(town: Town) -> None:
    large = PNG + b"\0" * (MediaConfig().image_block_bytes - len(PNG))
    _, (ref,) = await town.say("", File(content=large))
    async with client_of(town) as client:
        result = await client.call_tool("fetch_media", {"ref": ref})
    assert on_the_wire(result)[1] == ("image", "image/png", large)


async def test_the_request_cannot_choose_its_conversation(town: Town) -> None:
    await town.say("", File(content=PNG, name="rosebud.png"), where=THERE)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_media", "arguments": {}}}
    headers = {"Accept": "application/json, text/event-stream", "X-Belino-Conversation": str(THERE)}
    async with serving(McpDoor(town.toolbox).app(HERE)) as url, httpx2.AsyncClient() as http:
        for more in ({}, {"Mcp-Session-Id": "0" * 32}):
            answer = await http.post(f"{url}?conversation={THERE}", json=body, headers=headers | more)
            assert answer.status_code == 200 and "rosebud" not in answer.text and "No media here." in answer.text


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_there_is_no_stream_to_open_and_no_session_to_delete(town: Town, method: str) -> None:
    async with serving(McpDoor(town.toolbox).app(HERE)) as url, httpx2.AsyncClient() as http:
        answer = await http.request(method, url, headers={"Accept": "text/event-stream"})
    assert answer.status_code == 405 and answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"x" * (1024 * 1024 + 1), 413), (b"{", 400), (b"[" * 100_000, 400), (b'{"jsonrpc":"2.0","id":1}', 400)],
    ids=["too large", "cut", "deep", "no method"],
)
async def test_a_bad_body_is_refused_and_the_door_stays_open(town: Town, body: bytes, status: int) -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with serving(McpDoor(town.toolbox).app(HERE)) as url, httpx2.AsyncClient() as http:
        assert (await http.post(url, content=body, headers=headers)).status_code == status
        async with Client(url, read_timeout_seconds=10) as client:
            assert not (await client.call_tool("list_media", {})).is_error


def test_importing_the_door_does_not_import_mcp() -> None:
    code = (
        "import sys, belino.tools.server, belino.tools.toolbox, belino.agents.demo, belino.context.prompt; "
        "print(sorted({'mcp', 'mcp_types', 'pydantic', 'aiohttp', 'cryptography', 'starlette'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_lists_are_structured_as_their_schema_says_and_pictures_are_not_hidden_behind_it(
    town: Town, mode: str
) -> None:
    _, (ref,) = await town.say("The boat", File(content=PNG, name="p.png"))
    async with client_of(town, mode=mode) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        listed = await client.call_tool("list_media", {})
        found = await client.call_tool("channel_context", {"intent": "boat"})
        shown = await client.call_tool("fetch_media", {"ref": ref})
    assert schemas["fetch_media"] is None and schemas["channel_messages"] is None
    assert schemas["list_media"] is not None and schemas["channel_context"] is not None
    assert listed.structured_content is not None and found.structured_content is not None
    assert [each["artifact_id"] for each in listed.structured_content["media"]] == [ref]
    assert [each["text"] for each in found.structured_content["results"]] == ["The boat"]
    assert shown.structured_content is None
    assert all("output" not in str(spec.schema) for spec in town.toolbox().specs)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_asks_for_it_gets_the_progress_of_a_fetch(town: Town, mode: str) -> None:
    content = PNG + bytes(400_000)
    _, (ref, other) = await town.say("", File(content=content, name="p.png"), File(content=content, name="q.png"))
    told: list[tuple[float, float | None]] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async with client_of(town, mode=mode) as client:
        await client.call_tool("fetch_media", {"ref": ref, "as": "file"}, progress_callback=watch)
        assert not (await client.call_tool("fetch_media", {"ref": other, "as": "file"})).is_error
    assert told and told == sorted(told)
    assert told[-1][0] <= len(content)


class Slow:
    """A toolbox whose one tool never ends by itself."""

    specs = SPECS[:1]

    def __init__(self) -> None:
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return ()


@pytest.mark.parametrize("meta", [{}, {"progressToken": 1}], ids=["plain", "with progress"])
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_a_client_that_closes_its_connection_cancels_its_request(version: str, meta: dict[str, object]) -> None:
    slow = Slow()
    if version == "2026-07-28":
        meta = {
            **meta,
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    params = {"name": "list_media", "arguments": {}, "_meta": meta}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
    headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "list_media"}
    async with serving(McpDoor(lambda _: slow).app(HERE)) as url, asyncio.timeout(30):
        async with httpx2.AsyncClient() as http:
            asking = asyncio.create_task(http.post(url, json=frame, headers=headers))
            await slow.begun.wait()
            asking.cancel()
            await asyncio.wait({asking})
        await slow.cancelled.wait()
