"""Context of a conversation as an agent would read it, a search of its channel, and its tools for MCP clients."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from urllib.parse import unquote

from starlette.responses import Response

from belino.context.results import results_json
from belino.context.search import INTENTS_AT_MOST, search
from belino.domain.errors import NoSuchMessage, SeveralMessages, ToolError
from belino.domain.message import ConversationKey
from belino.domain.stored import StoredMessage
from belino.gateway.events import Notice, NoticeKind
from belino.tools.arguments import Arguments
from belino.tools.notifications import Receive, ResourceChanges, Send
from belino.tools.server import App, McpDoor, Scope
from belino.turns.preview import as_json, preview
from belino.turns.tool_access import NamedFiles
from belino.web.auth import bearer_of, refuse_foreign_page, unauthorized
from belino.web.fields import parse_conversation
from belino.web.request_context import RouteCall
from belino.web.responses import Code, Refusal, answer, bad_request, not_found

MESSAGE_ID_CHARS = 256
INTENT_CHARS = 2_000
AUTHORS_CHARS = 2_000
CURSOR_CHARS = 256
RESULTS_DEFAULT, RESULTS_MOST = 8, 50
CONVERSATION_HEADER = "x-belino-conversation"
CLIENT_HEADER, CLIENT_CHARS = "x-belino-client", 64


async def show_context(call: RouteCall) -> Response:
    """The exact context of a session that begins with a message, and its price."""
    query = call.query("conversation", "at")
    conversation = query.conversation()
    call.visitor.must_see(conversation)
    await call.site.must_exist(conversation)
    at = query.text("at", most=MESSAGE_ID_CHARS) if query.has("at") else None
    gateway = call.site.gateway
    agent = gateway.agents.at(conversation)
    try:
        told = await preview(
            call.store,
            conversation,
            at,
            gateway.config.context,
            clock=gateway.clock,
            key=gateway.home.key_file.read_bytes(),
            history=gateway.history,
            picture_side=gateway.config.media.image_block_side if agent.sees_images else None,
        )
    except NoSuchMessage:
        raise not_found() from None
    except SeveralMessages as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None
    call.visitor.must_see(told.conversation)
    return answer(as_json(told))


async def search_channel(call: RouteCall) -> Response:
    """The results of `channel_context` in a conversation's channel."""
    query = call.query("conversation", "intent", "intents", "since", "authors", "near", "limit", "cursor")
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
    intents = _listed(query.text("intents", most=INTENTS_AT_MOST * INTENT_CHARS, default=""))
    note = await gateway.history.channel(channel)
    page = await search(
        call.store,
        channel,
        intents or query.text("intent", most=INTENT_CHARS, default=""),
        now=now,
        since=since,
        authors=_listed(query.text("authors", most=AUTHORS_CHARS, default="")),
        near=query.text("near", most=MESSAGE_ID_CHARS) if query.has("near") else None,
        limit=query.number("limit", least=1, most=RESULTS_MOST) or RESULTS_DEFAULT,
        cursor=query.text("cursor", most=CURSOR_CHARS) if query.has("cursor") else None,
    )
    return answer(results_json(page) | ({"note": note} if note else {}))


def _listed(text: str) -> list[str]:
    """The items of a list that is separated by commas; a comma inside one is percent-encoded."""
    return [unquote(item).strip() for item in text.split(",") if item.strip()]


async def serve_mcp(call: RouteCall) -> App:
    """The tools of one conversation, for an MCP client: a channel's token opens its own, the command line names one."""
    refuse_foreign_page(call.request, call.site.origins)  # a token does not make a page of another site ours
    named = call.request.headers.get(CONVERSATION_HEADER)
    conversation = parse_conversation(named) if named else call.visitor.grant.conversation
    if conversation is None:
        raise bad_request(f"Name the conversation in the header {CONVERSATION_HEADER}.")
    call.visitor.must_see(conversation)
    await call.site.must_exist(conversation)
    return _listening(call, conversation)


def _listening(call: RouteCall, conversation: ConversationKey) -> App:
    """The tools, and a stream of changes that ends with the client's token."""
    gateway, channel = call.site.gateway, conversation.whole_channel

    def watch(told: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        def heard(notice: Notice) -> None:
            if notice.conversation is None or notice.conversation.whole_channel != channel:
                return
            refs = [ref.id for ref in notice.payload.media] if isinstance(notice.payload, StoredMessage) else []
            if refs or notice.kind is NoticeKind.CHANGED:
                told(refs)

        stack = ExitStack()
        stack.enter_context(gateway.notices.listening(heard))
        return stack.close

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        grant, limit = call.visitor.grant, call.site.mcp_streams
        with (
            limit.enter(grant.id) if scope["method"] == "GET" else nullcontext(),
            call.site.grants.hold(grant) as ended,
        ):
            changes = ResourceChanges(watch=watch, ended=ended, stopping=call.site.stopping)
            client = call.request.headers.get(CLIENT_HEADER, "")[:CLIENT_CHARS]
            wishes = call.site.mcp_clients.of(grant.id, f"{conversation} {client}")
            await McpDoor(gateway.toolbox, changes=changes, wishes=wishes).app(conversation)(scope, receive, send)

    return serve


async def serve_turn_mcp(call: RouteCall) -> App:
    """The tools of a running turn, for the program or server that answers it; its token opens nothing else."""
    refuse_foreign_page(call.request, call.site.origins)
    found = call.site.gateway.turn_tools.find(bearer_of(call.request) or "")
    if found is None:
        raise unauthorized("This token belongs to no running turn.")
    conversation, toolbox = found
    return McpDoor(lambda _: NamedFiles(toolbox)).app(conversation)
