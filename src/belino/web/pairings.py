"""Pairings: strangers who wrote directly, listed and approved by the operator."""

from starlette.responses import Response

from belino.gateway.access import plain_code
from belino.web.request_context import RouteCall
from belino.web.responses import Code, Refusal, answer, not_found
from belino.web.wire import pairing_json

CODE_CHARS = 64
WRONG = (
    "No one is waiting under this code: it was mistyped, has run out, or was refused. `belino pair` shows who waits."
)


async def list_pairings(call: RouteCall) -> Response:
    """Waiting and paired people; never a code, which only the stranger may present."""
    return answer({"pairings": [pairing_json(pairing) for pairing in await call.store.pairings()]})


async def approve(call: RouteCall) -> Response:
    """Accept the person with this code, for direct messages of that account and nothing else."""
    fields = await call.fields("code")
    paired = await call.store.pair(plain_code(fields.text("code", most=CODE_CHARS)))
    if paired is None:
        raise Refusal(404, Code.NOT_FOUND, WRONG)
    return answer(pairing_json(paired), status=201)


async def revoke(call: RouteCall) -> Response:
    """Revoke a pairing; later messages are denied."""
    who = call.query("who").conversation("who")
    if not await call.store.unpair(who.platform, who.account, who.channel):
        raise not_found()
    return Response(status_code=204)
