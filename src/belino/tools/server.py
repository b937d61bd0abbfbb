"""MCP server for a toolbox over streamable HTTP, made for each request of an authenticated conversation.

No MCP session is kept: the token decides the channel at each request, so there is no session id to steal and a revoked
token is invalid at once. Host, Origin and token are checked by `web/` before a request comes here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from belino import __version__
from belino.aio.deadline import beside
from belino.context.prompt import tool_instructions
from belino.domain.errors import ToolError
from belino.domain.media import AudioBlock, Block, DocumentBlock, FileBlock, ImageBlock, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.safe_text import clean_mime
from belino.domain.stored import RefRecord
from belino.domain.turn import Toolbox, ToolSpec
from belino.tools.notifications import (
    ChangeBus,
    ClientWishes,
    Message,
    Receive,
    ResourceChanges,
    Send,
    reporting,
    stream_changes,
    take_wishes,
    wants_reports,
)
from belino.tools.resources import TEMPLATE, MediaResources, uri_of
from belino.tools.tool_context import NO_MEDIA, title
from belino.tools.toolbox import FAILED, ScopedToolbox

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.server.models import InitializationOptions
    from mcp.server.subscriptions import ListenHandler
    from mcp_types import CallToolResult, ContentBlock, ListResourcesResult, ReadResourceResult, Resource, Tool

SERVER_NAME = "belino"
BODY_BYTES = 1024 * 1024

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)


SAYS: Mapping[str, object] = {"type": "object", "properties": {"says": {"type": "string"}}, "required": ["says"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutTool:
    """What a client may tell people about a tool before it is called."""

    title: str
    reads_only: bool = False
    destroys: bool = False
    repeatable: bool = False
    """A second call with the same arguments changes nothing more."""
    acts_outside: bool = True
    output: Mapping[str, object] | None = field(default_factory=lambda: SAYS)
    """The schema of the structured content.

    None where a result may have pictures: many clients show only the structured content where there is one.
    """

    @property
    def hints(self) -> Mapping[str, bool]:
        """MCP's annotations."""
        return {
            "readOnlyHint": self.reads_only,
            "destructiveHint": self.destroys,
            "idempotentHint": self.reads_only or self.repeatable,
            "openWorldHint": self.acts_outside,
        }


def _output(items: str) -> Mapping[str, object]:
    listed = {"type": "array", "items": {"type": "object"}}
    properties = {items: listed, "next_cursor": {"type": ["string", "null"]}}
    return {"type": "object", "properties": properties, "required": [items, "next_cursor"]}


ABOUT_TOOLS = {
    "list_media": AboutTool(title="List media", reads_only=True, acts_outside=False, output=_output("media")),
    "fetch_media": AboutTool(title="Fetch media", reads_only=True, output=None),
    "channel_context": AboutTool(title="Search the channel", reads_only=True, output=_output("results")),
    "channel_messages": AboutTool(title="Read messages", reads_only=True, output=None),
    "send_message": AboutTool(title="Send a message"),
    "send_media": AboutTool(title="Send a file"),
    "react": AboutTool(title="React to a message", repeatable=True),
    "edit_message": AboutTool(title="Edit a message", destroys=True, repeatable=True),
    "delete_message": AboutTool(title="Delete a message", destroys=True, repeatable=True),
    "ask_user": AboutTool(title="Ask with choices"),
    "stay_silent": AboutTool(title="Send no answer", repeatable=True, acts_outside=False),
}


class McpDoor:
    """Serves a conversation's toolbox to MCP clients."""

    def __init__(
        self,
        toolbox_for: Callable[[ConversationKey], Toolbox],
        *,
        changes: ResourceChanges | None = None,
        wishes: ClientWishes | None = None,
    ) -> None:
        self._toolbox_for = toolbox_for
        self._changes = changes
        self._wishes = wishes

    def app(self, conversation: ConversationKey) -> App:
        """An ASGI app that serves only this conversation, whatever the request says."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "GET" and self._changes is not None and self._wishes is not None:
                await stream_changes(self._changes, self._wishes, receive, send)
                return
            if scope["method"] != "POST":  # without sessions there is nothing to delete
                await _refuse_method(send)
                return
            await load_server()
            await _serve_once(self._toolbox_for(conversation), self._changes, self._wishes, scope, receive, send)

        return serve


async def load_server() -> None:
    """Load MCP, which takes over a second the first time: in a thread, so that the event loop is not blocked."""
    await asyncio.to_thread(_load_mcp)


def _load_mcp() -> None:
    import_module("mcp.server.streamable_http_manager")
    import_module("mcp.server.lowlevel")
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it logs the start and end of every request


async def _serve_once(
    toolbox: Toolbox,
    changes: ResourceChanges | None,
    wishes: ClientWishes | None,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.subscriptions import ListenHandler

    body, again = await _peek(receive)
    # A stream only where there is something to report; closing it cancels the request.
    listen = None if changes is None else ListenHandler(ChangeBus(changes))
    manager = StreamableHTTPSessionManager(
        make_server(toolbox, listen, wishes),
        json_response=not wants_reports(body, wishes or ClientWishes()),
        stateless=True,
        max_request_body_size=BODY_BYTES,
    )
    async with manager.run(), beside(_close(listen, changes)):
        if manager.json_response:  # a stream notices by itself that its client has gone
            await _unless_gone(manager.handle_request(scope, again, send), receive)
        else:
            await manager.handle_request(scope, again, send)


async def _unless_gone(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Answer a request, and cancel it if its client closes the connection."""
    async with asyncio.TaskGroup() as group:
        answering = group.create_task(work)
        watching = group.create_task(_cancel_if_gone(answering, receive))
        answering.add_done_callback(lambda _: watching.cancel())


async def _cancel_if_gone(answering: asyncio.Task[None], receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    answering.cancel()


async def _close(listen: "ListenHandler | None", changes: ResourceChanges | None) -> None:
    if listen is not None and changes is not None:
        await changes.over()
        listen.close()


async def _peek(receive: Receive) -> tuple[bytes, Receive]:
    """The body, up to its limit, and what receives it once more."""
    got, size, more = list[Message](), 0, True
    while more and size <= BODY_BYTES:
        got.append(await receive())
        size += len(got[-1].get("body", b""))
        more = got[-1]["type"] == "http.request" and got[-1].get("more_body", False)
    body = b"".join(message.get("body", b"") for message in got)

    async def again() -> Message:
        return got.pop(0) if got else await receive()

    return body, again


def make_server(
    toolbox: Toolbox, listen: "ListenHandler | None" = None, wishes: ClientWishes | None = None
) -> "Server[Any]":
    """An MCP server whose tools are exactly the toolbox's, and whose resources are its channel's media.

    `wishes` is what its client asked for in earlier requests; None where there is no place to keep that.
    """
    import mcp_types as types

    asked = wishes or ClientWishes()

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(spec) for spec in toolbox.specs])

    async def call_tool(
        context: "ServerRequestContext[Any]", params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        async with reporting(context, asked):
            return await _call(toolbox, params.name, params.arguments or {})

    async def list_resources(
        _context: object, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await _list_resources(toolbox, params.cursor if params else None)

    async def list_templates(_context: object, _params: object) -> types.ListResourceTemplatesResult:
        one = types.ResourceTemplate(uri_template=TEMPLATE, name="media", description="A media item by its ref.")
        return types.ListResourceTemplatesResult(resource_templates=[one])

    async def read_resource(
        context: "ServerRequestContext[Any]", params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async with reporting(context, asked):
            return await _read_resource(toolbox, params.uri)

    server = _server_class(tells_changes=wishes is not None)(
        SERVER_NAME,
        version=__version__,
        instructions=tool_instructions(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscriptions_listen=listen,
    )
    if wishes is not None:
        take_wishes(server, wishes)
    return server


@cache
def _server_class(*, tells_changes: bool) -> "type[Server[Any]]":
    """A server whose handshake says whether it tells of changed resources; the library's says that it does not."""
    from mcp.server.lowlevel import NotificationOptions, Server

    class ToolServer(Server[Any]):
        def create_initialization_options(self, *given: Any, **more: Any) -> "InitializationOptions":
            options = NotificationOptions(resources_changed=tells_changes)
            return super().create_initialization_options(*(given or (options,)), **more)

    return ToolServer


def _tool(spec: ToolSpec) -> "Tool":
    from mcp_types import Tool, ToolAnnotations

    about = about_tool(spec.name)
    return Tool(
        name=spec.name,
        title=about.title,
        description=spec.description,
        input_schema=dict(spec.schema),
        output_schema=None if about.output is None else dict(about.output),
        annotations=ToolAnnotations.model_validate(about.hints),
    )


def about_tool(name: str) -> AboutTool:
    """What is known of a tool; of one that is not belino's own, that it may do anything."""
    return ABOUT_TOOLS.get(name) or AboutTool(title=name, destroys=True, output=None)


async def _list_resources(toolbox: Toolbox, cursor: str | None) -> "ListResourcesResult":
    from mcp import MCPError
    from mcp_types import INVALID_PARAMS, ListResourcesResult

    try:
        found, following = await _resources(toolbox).page(cursor)
    except ToolError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
    return ListResourcesResult(resources=[_resource(record) for record in found], next_cursor=following)


def _resources(toolbox: Toolbox) -> MediaResources:
    if not isinstance(toolbox, ScopedToolbox):
        raise ToolError(NO_MEDIA)
    return toolbox.resources


def _resource(record: RefRecord) -> "Resource":
    from mcp_types import Resource

    ref = record.ref
    return Resource(uri=uri_of(ref.id), name=ref.id, title=title(record), mime_type=clean_mime(ref.mime), size=ref.size)


async def _read_resource(toolbox: Toolbox, uri: str) -> "ReadResourceResult":
    """The bytes; a resource that cannot be had is an error of one sentence."""
    import pybase64
    from mcp import MCPError
    from mcp_types import INVALID_PARAMS, BlobResourceContents, ReadResourceResult

    try:
        record, content = await _resources(toolbox).read(uri)
    except ToolError as error:
        raise MCPError(INVALID_PARAMS, str(error), {"uri": uri}) from error
    blob = (await asyncio.to_thread(pybase64.b64encode, content)).decode()
    return ReadResourceResult(
        contents=[BlobResourceContents(uri=uri_of(record.ref.id), blob=blob, mime_type=clean_mime(record.ref.mime))]
    )


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
    return CallToolResult(
        content=[part for block in blocks for part in _contents(block)], structured_content=_structured(name, blocks)
    )


def _structured(name: str, blocks: Sequence[Block]) -> dict[str, object] | None:
    """The result as JSON, where the tool has a schema for it."""
    if about_tool(name).output is None:
        return None
    texts = [block for block in blocks if isinstance(block, TextBlock)]
    data = next((block.data for block in texts if block.data is not None), None)
    return {"says": "\n".join(block.text for block in texts)} if data is None else dict(data)


def _contents(block: Block) -> "list[ContentBlock]":
    """The content of a block; a file also as a link, for clients on other machines."""
    from mcp_types import ResourceLink

    made = [_content(block)]
    if isinstance(block, FileBlock):
        made.append(ResourceLink(uri=uri_of(block.ref), name=block.ref, mime_type=block.mime))
    return made


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
                uri=uri_of(block.ref), blob=pybase64.b64encode(block.data).decode(), mime_type=block.mime
            )
            return EmbeddedResource(resource=held)
        case FileBlock():
            # The client may be on another machine: the name is relative to the conversation's folder.
            return TextContent(text=f"File: {block.path.parent.name}/{block.path.name} ({block.mime})")


async def _refuse_method(send: Send) -> None:
    headers = [(b"allow", b"POST"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 405, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
