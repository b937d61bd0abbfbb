"""The scenarios of MCP's official conformance suite that belino covers, with the real client over real HTTP.

`scripts/mcp-conformance` runs the suite itself; what it asks of the handshake and of headers is in its own run.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import httpx2
import pybase64
import pytest
from mcp import Client, MCPError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    LoggingMessageNotificationParams,
    TextContent,
)

from belino.testing.files import make_wav
from belino.tools import notifications
from belino.tools.notifications import ClientWishes, KnownClients, ResourceChanges
from belino.tools.server import McpDoor
from belino.tools.tool_context import tell_client
from tools.suite_tools import PICTURE, SAYS_ERROR, SCHEMA_2020_12, SuiteTools
from tools.test_server import PNG, serving
from tools.town import HERE, File, Town

pytestmark = pytest.mark.slow

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
LEGACY = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


async def with_suite_tools(
    mode: str, use: Callable[[Client], Awaitable[None]], wishes: ClientWishes | None = None, **options: Any
) -> None:
    door = McpDoor(lambda _: SuiteTools(), wishes=wishes or ClientWishes())
    async with serving(door.app(HERE)) as url, Client(url, mode=mode, read_timeout_seconds=30, **options) as client:
        await use(client)


@MODES
async def test_text_pictures_sounds_and_documents_of_a_result_are_content_of_their_type(mode: str) -> None:
    async def use(client: Client) -> None:
        (text,) = (await client.call_tool("test_simple_text", {})).content
        assert isinstance(text, TextContent) and text.text
        (picture,) = (await client.call_tool("test_image_content", {})).content
        assert isinstance(picture, ImageContent) and pybase64.b64decode(picture.data) == PICTURE.data
        (sound,) = (await client.call_tool("test_audio_content", {})).content
        assert isinstance(sound, AudioContent) and sound.mime_type == "audio/wav"
        assert pybase64.b64decode(sound.data) == make_wav(1)
        mixed = (await client.call_tool("test_multiple_content_types", {})).content
        assert [type(each) for each in mixed] == [TextContent, ImageContent, EmbeddedResource]

    await with_suite_tools(mode, use)


@MODES
async def test_a_failing_tool_is_a_result_with_its_sentence(mode: str) -> None:
    async def use(client: Client) -> None:
        failed = await client.call_tool("test_error_handling", {})
        assert failed.is_error
        assert [each.text for each in failed.content if isinstance(each, TextContent)] == [SAYS_ERROR]

    await with_suite_tools(mode, use)


@MODES
async def test_every_keyword_of_a_schema_reaches_the_client(mode: str) -> None:
    async def use(client: Client) -> None:
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert schemas["json_schema_2020_12_tool"] == SCHEMA_2020_12

    await with_suite_tools(mode, use)


@MODES
async def test_each_report_of_progress_comes_in_its_order_before_the_answer(mode: str) -> None:
    told: list[tuple[float, float | None]] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async def use(client: Client) -> None:
        await client.call_tool("test_tool_with_progress", {}, progress_callback=watch)
        await client.call_tool("test_tool_with_progress", {})

    await with_suite_tools(mode, use)
    assert told == [(1, 100), (50, 100), (100, 100)]


@pytest.mark.parametrize(
    ("mode", "level", "wanted"), [("legacy", "debug", 3), ("legacy", "warning", 0), ("auto", "info", 3)]
)
async def test_a_client_gets_the_log_from_the_level_that_it_asked_for(mode: str, level: Any, wanted: int) -> None:
    told: list[str] = []

    async def log(params: LoggingMessageNotificationParams) -> None:
        assert params.logger == "belino"
        told.append(str(params.data))

    async def use(client: Client) -> None:
        if mode == "legacy":
            await client.call_tool("test_tool_with_logging", {})
            assert told == []  # nothing was asked for
            with pytest.warns(MCPDeprecationWarning):
                await client.set_logging_level(level)
        await client.call_tool("test_tool_with_logging", {})

    options = {} if mode == "legacy" else {"log_level": level}
    await with_suite_tools(mode, use, logging_callback=log, **options)
    assert told == ["Tool execution started", "Tool processing data", "Tool execution completed"][:wanted]


async def test_a_client_that_waits_for_a_long_call_is_told_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "ALIVE_SECONDS", 0.01)
    told: list[tuple[float, str | None]] = []
    heard = asyncio.Event()

    class Reading(SuiteTools):
        async def call(self, name: str, arguments: object) -> Any:
            tell_client("reading tg_k3v9d0q2m7xa as transcript")
            await heard.wait()
            return ()

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))
        if len(told) == 2:
            heard.set()

    async with (
        serving(McpDoor(lambda _: cast("Any", Reading())).app(HERE)) as url,
        Client(url, mode="legacy", read_timeout_seconds=30) as client,
    ):
        await client.call_tool("test_simple_text", {}, progress_callback=watch)
    assert told[:2] == [(1, "reading tg_k3v9d0q2m7xa as transcript"), (2, "reading tg_k3v9d0q2m7xa as transcript")]


async def test_what_a_tool_fetches_and_reads_is_in_the_log_without_what_it_holds(town: Town) -> None:
    told: list[str] = []

    async def log(params: LoggingMessageNotificationParams) -> None:
        told.append(str(params.data))

    _, (ref,) = await town.say("", File(content=PNG, name="secret-plan.png"))
    async with (
        serving(McpDoor(town.toolbox).app(HERE)) as url,
        Client(url, read_timeout_seconds=30, log_level="info", logging_callback=log) as client,
    ):
        await client.call_tool("fetch_media", {"ref": ref})
        await client.call_tool("fetch_media", {"ref": ref, "as": "thumb"})
    assert told == [f"fetching {ref}, {len(PNG)}B"]


@MODES
async def test_a_resource_that_does_not_exist_is_an_error_that_names_its_address(town: Town, mode: str) -> None:
    async with (
        serving(McpDoor(town.toolbox).app(HERE)) as url,
        Client(url, mode=mode, read_timeout_seconds=30) as client,
    ):
        with pytest.raises(MCPError) as refused:
            await client.read_resource("test://nonexistent")
    assert refused.value.error.code == -32602 and refused.value.error.data == {"uri": "test://nonexistent"}


class News:
    """Changes of media, told by a test."""

    def __init__(self) -> None:
        self.ended, self.stopping = asyncio.Event(), asyncio.Event()
        self.listening = asyncio.Event()
        self._told: Callable[[list[str]], None] = lambda _: None

    def watch(self, told: Callable[[Any], None]) -> Callable[[], None]:
        self._told = told
        self.listening.set()
        return self.listening.clear

    @property
    def changes(self) -> ResourceChanges:
        return ResourceChanges(watch=self.watch, ended=self.ended, stopping=self.stopping)

    def tell(self, *refs: str) -> None:
        self._told(list(refs))

    def door(self, town: Town, wishes: ClientWishes) -> McpDoor:
        return McpDoor(town.toolbox, changes=self.changes, wishes=wishes)


async def lines(stream: httpx2.Response) -> Any:
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")


async def test_a_client_of_an_earlier_protocol_is_told_of_changes_and_of_what_it_subscribed_to(town: Town) -> None:
    news, wishes = News(), ClientWishes()
    watched, other = "belino://media/tg_k3v9d0q2m7xa", "belino://media/tg_k3v9d0q2m7xb"
    async with serving(news.door(town, wishes).app(HERE)) as url, asyncio.timeout(60):
        async with Client(url, mode="legacy") as client:
            offers = client.server_capabilities
            assert offers.resources is not None and offers.logging is not None
            assert offers.resources.list_changed and offers.resources.subscribe
            with pytest.warns(MCPDeprecationWarning):
                for uri in (watched, other):
                    await client.subscribe_resource(uri)
                await client.unsubscribe_resource(other)
        async with httpx2.AsyncClient(headers=LEGACY, timeout=60) as http, http.stream("GET", url) as stream:
            await news.listening.wait()
            news.tell(*(uri.rpartition("/")[2] for uri in (watched, other)))
            told = lines(stream)
            assert '"notifications/resources/list_changed"' in await anext(told)
            assert await anext(told) == (
                '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"' + watched + '"}}'
            )
            news.ended.set()  # its token is revoked
            assert [each async for each in told] == []
        assert not news.listening.is_set()


async def test_a_stream_ends_with_its_client(town: Town) -> None:
    news = News()
    async with serving(news.door(town, ClientWishes()).app(HERE)) as url, asyncio.timeout(60):
        async with httpx2.AsyncClient(headers=LEGACY, timeout=60) as http, http.stream("GET", url):
            await news.listening.wait()
        while news.listening.is_set():
            await asyncio.sleep(0)


def test_what_clients_asked_for_is_kept_for_their_token_and_conversation_within_a_limit() -> None:
    known = KnownClients()
    known.of("a", "web:default:main").level = "info"
    assert known.of("a", "web:default:main").level == "info"
    assert known.of("b", "web:default:main").level is None and known.of("a", "web:default:other").level is None
    for number in range(notifications.CLIENTS_KEPT):
        known.of(str(number), "web:default:main")
    assert known.of("a", "web:default:main").level is None
