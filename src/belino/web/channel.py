"""Channel routes for `belino mcp --channel`: the next messages, acknowledgements, answers and permission questions."""

from starlette.responses import Response

from belino.domain.errors import ToolError
from belino.domain.message import ConversationKey
from belino.gateway.channel_inbox import CODE, PermissionRequest, as_json
from belino.web.fields import Fields
from belino.web.request_context import RouteCall
from belino.web.responses import Code, Refusal, answer, bad_request

WAIT_SECONDS = 60
SEQ_MOST = 2**40
TEXT_CHARS = 100_000
ID_CHARS = 256
DETAILS_CHARS = 10_000


async def next_messages(call: RouteCall) -> Response:
    """What the client has not got yet; waits up to `wait` seconds for some."""
    fields, where = await _asked(call, "after", "wait")
    after, wait = fields.number("after", least=0, most=SEQ_MOST), fields.number("wait", least=0, most=WAIT_SECONDS)
    found = await call.site.gateway.channel_inbox.next(where, after=after, seconds=wait or 0.001)
    return answer({"events": [as_json(each) for each in found]})


async def acknowledge(call: RouteCall) -> Response:
    """Messages up to `seq` are not given again."""
    fields, where = await _asked(call, "seq")
    seq = fields.number("seq", least=0, most=SEQ_MOST)
    await call.site.gateway.channel_inbox.acknowledge(where, seq or 0)
    return answer({})


async def reply(call: RouteCall) -> Response:
    """Send an answer."""
    fields, where = await _asked(call, "text", "reply_to")
    text = fields.text("text", most=TEXT_CHARS)
    target = fields.text("reply_to", most=ID_CHARS, default="")
    if not text.strip():
        raise bad_request("The body: text must not be empty.")
    try:
        return answer({"says": await call.site.gateway.channel_inbox.reply(where, text, target or None)})
    except ToolError as error:
        raise Refusal(409, Code.CONFLICT, f"{error}.") from None


async def ask_permission(call: RouteCall) -> Response:
    """Ask the people of the conversation whether the client may use one of its own tools."""
    fields, where = await _asked(call, "request_id", "tool_name", "description", "input_preview")
    code = fields.text("request_id", most=ID_CHARS)
    if not CODE.fullmatch(code):
        raise bad_request("The body: request_id must be five letters from a to z without l.")
    request = PermissionRequest(
        request_id=code,
        tool_name=fields.text("tool_name", most=ID_CHARS),
        description=fields.text("description", most=DETAILS_CHARS, default=""),
        input_preview=fields.text("input_preview", most=DETAILS_CHARS, default=""),
    )
    await call.site.gateway.channel_inbox.ask(where, request)
    return answer({})


async def _asked(call: RouteCall, *known: str) -> tuple[Fields, ConversationKey]:
    fields = await call.fields("conversation", *known, limit=4 * TEXT_CHARS)
    where = fields.conversation()
    call.visitor.must_see(where)
    await call.site.must_exist(where)
    return fields, where
