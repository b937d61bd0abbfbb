"""The endpoint for MCP clients: the token alone decides which conversation's toolbox they get."""

from starlette.types import Receive, Scope, Send

from belino.domain.message import ConversationKey
from belino.tools.server import McpDoor
from belino.web.fields import parse_conversation
from belino.web.request_context import RouteCall
from belino.web.responses import bad_request

CONVERSATION_HEADER = "x-belino-conversation"


class McpAnswer:
    """Passes the request to the MCP server of one conversation."""

    def __init__(self, door: McpDoor, conversation: ConversationKey) -> None:
        self._app = door.app(conversation)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


async def serve_mcp(call: RouteCall) -> McpAnswer:
    """A channel's token opens its own conversation; the local command line names one."""
    named = call.request.headers.get(CONVERSATION_HEADER)
    conversation = parse_conversation(named) if named else call.visitor.grant.conversation
    if conversation is None:
        raise bad_request(f"Name the conversation in the header {CONVERSATION_HEADER}.")
    call.visitor.must_see(conversation)
    await call.site.must_exist(conversation)
    return McpAnswer(McpDoor(call.site.gateway.toolbox), conversation)
