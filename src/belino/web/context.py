"""Context of a conversation as an agent would read it, a search of its channel, and its tools for MCP clients."""

from urllib.parse import unquote

from starlette.responses import Response

from belino.context.search import results_json, search
from belino.domain.errors import NoSuchMessage, ToolError
from belino.tools.arguments import Arguments
from belino.tools.server import App, McpDoor
from belino.turns.preview import as_json, preview
from belino.web.fields import parse_conversation
from belino.web.request_context import RouteCall
from belino.web.responses import answer, bad_request, not_found

MESSAGE_ID_CHARS = 256
INTENT_CHARS = 2_000
AUTHORS_CHARS = 2_000
CURSOR_CHARS = 256
RESULTS_DEFAULT, RESULTS_MOST = 8, 50
CONVERSATION_HEADER = "x-belino-conversation"


async def show_context(call: RouteCall) -> Response:
    """The exact context of a session that begins with a message, and its price."""
    query = call.query("conversation", "at")
    conversation = query.conversation()
    call.visitor.must_see(conversation)
    await call.site.must_exist(conversation)
    at = query.text("at", most=MESSAGE_ID_CHARS) if query.has("at") else None
    gateway = call.site.gateway
    try:
        told = await preview(
            call.store,
            conversation,
            at,
            gateway.config.context,
            clock=gateway.clock,
            key=gateway.home.key_file.read_bytes(),
            history=gateway.history,
        )
    except NoSuchMessage:
        raise not_found() from None
    call.visitor.must_see(told.conversation)
    return answer(as_json(told))


async def search_channel(call: RouteCall) -> Response:
    """The results of `channel_context` in a conversation's channel."""
    query = call.query("conversation", "intent", "since", "authors", "limit", "cursor")
    conversation = query.conversation()
    call.visitor.must_see(conversation)
    await call.site.must_exist(conversation)
    channel = conversation.whole_channel
    gateway = call.site.gateway
    now = gateway.clock.now()
    try:
        since = Arguments({"since": query.raw("since")}, ("since",)).since("since", now)
    except ToolError as error:
        raise bad_request(f"{error}.") from None
    authors = query.text("authors", most=AUTHORS_CHARS, default="").split(",")
    note = await gateway.history.channel(channel)
    page = await search(
        call.store,
        channel,
        query.text("intent", most=INTENT_CHARS, default=""),
        now=now,
        since=since,
        authors=[unquote(name).strip() for name in authors if name.strip()],
        limit=query.number("limit", least=1, most=RESULTS_MOST) or RESULTS_DEFAULT,
        cursor=query.text("cursor", most=CURSOR_CHARS) if query.has("cursor") else None,
    )
    return answer(results_json(page) | ({"note": note} if note else {}))


async def serve_mcp(call: RouteCall) -> App:
    """The tools of one conversation, for an MCP client: a channel's token opens its own, the command line names one."""
    named = call.request.headers.get(CONVERSATION_HEADER)
    conversation = parse_conversation(named) if named else call.visitor.grant.conversation
    if conversation is None:
        raise bad_request(f"Name the conversation in the header {CONVERSATION_HEADER}.")
    call.visitor.must_see(conversation)
    await call.site.must_exist(conversation)
    return McpDoor(call.site.gateway.toolbox).app(conversation)
