"""MCP server for a toolbox over streamable HTTP, made for each request of an authenticated conversation.

No MCP session is kept: the token decides the channel at each request, so there is no session id to steal and a revoked
token is invalid at once. Host, Origin and token are checked by `web/` before a request comes here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from belino import __version__
from belino.domain.errors import ToolError
from belino.domain.media import AudioBlock, Block, DocumentBlock, FileBlock, ImageBlock, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.turn import Toolbox
from belino.tools.toolbox import FAILED

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ContentBlock

SERVER_NAME = "belino"
BODY_BYTES = 1024 * 1024

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)


class McpDoor:
    """Serves a conversation's toolbox to MCP clients."""

    def __init__(self, toolbox_for: Callable[[ConversationKey], Toolbox]) -> None:
        self._toolbox_for = toolbox_for

    def app(self, conversation: ConversationKey) -> App:
        """An ASGI app that serves only this conversation, whatever the request says."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] != "POST":  # without sessions there is no stream to open and nothing to delete
                await _refuse_method(send)
                return
            # Importing mcp takes over a second: in a thread, so that the event loop is not blocked.
            await asyncio.to_thread(_load_mcp)
            await _serve_once(self._toolbox_for(conversation), scope, receive, send)

        return serve


def _load_mcp() -> None:
    import_module("mcp.server.lowlevel")
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it logs the start and end of every request


async def _serve_once(toolbox: Toolbox, scope: Scope, receive: Receive, send: Send) -> None:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(
        make_server(toolbox), json_response=True, stateless=True, max_request_body_size=BODY_BYTES
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)


def make_server(toolbox: Toolbox) -> "Server[Any]":
    """An MCP server whose tools are exactly the toolbox's."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        tools = [
            types.Tool(name=spec.name, description=spec.description, input_schema=dict(spec.schema))
            for spec in toolbox.specs
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await _call(toolbox, params.name, params.arguments or {})

    return Server(SERVER_NAME, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def _call(toolbox: Toolbox, name: str, arguments: Mapping[str, object]) -> "CallToolResult":
    """The tool's result; an error is one sentence and nothing else."""
    from mcp_types import CallToolResult, TextContent

    try:
        blocks = await toolbox.call(name, arguments)
    except ToolError as error:
        return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
    except Exception as error:  # noqa: BLE001 - the HTTP edge: internal errors are logged, never sent to the client
        log.error("a tool called over MCP failed: %s", type(error).__name__)
        return CallToolResult(content=[TextContent(text=FAILED)], is_error=True)
    return CallToolResult(content=[_content(block) for block in blocks])


def _content(block: Block) -> "ContentBlock":
    import pybase64
    from mcp_types import AudioContent, BlobResourceContents, EmbeddedResource, ImageContent, TextContent

    match block:
        case TextBlock():
            return TextContent(text=block.text)
        case ImageBlock():
            return ImageContent(data=pybase64.b64encode(block.data).decode(), mime_type=block.mime)
        case AudioBlock():
            return AudioContent(data=pybase64.b64encode(block.data).decode(), mime_type=block.mime)
        case DocumentBlock():
            held = BlobResourceContents(
                uri=f"belino:{block.ref}", blob=pybase64.b64encode(block.data).decode(), mime_type=block.mime
            )
            return EmbeddedResource(resource=held)
        case FileBlock():
            # The client may be on another machine: the name is relative to the conversation's folder.
            return TextContent(text=f"File: {block.path.parent.name}/{block.path.name} ({block.mime})")


async def _refuse_method(send: Send) -> None:
    headers = [(b"allow", b"POST"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 405, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
