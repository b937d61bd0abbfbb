"""Access for people and programs: logins, tokens for others, and pairings that the operator approves."""

from datetime import timedelta

from starlette.responses import Response

from belino.domain.stored import Grant, GrantKind
from belino.gateway.access import plain_code
from belino.storage.access import AccessVerbs
from belino.web.auth import SECRET_CHARS, refuse_foreign_page, unauthorized
from belino.web.request_context import RouteCall
from belino.web.responses import Code, Refusal, answer, bad_request, not_found
from belino.web.wire import grant_json, pairing_json

LOGIN_BYTES = 1_024
LOGIN_SECONDS = 5.0
NOTE_CHARS = 100
MOST_DAYS = 3650
CODE_CHARS = 64
WRONG_CODE = "There is no request with this code: it is mistyped, expired or refused. `belino pair` lists the requests."


async def log_in(call: RouteCall) -> Response:
    """Exchange the one-time secret of a login address for a cookie; every attempt counts until it succeeds."""
    refuse_foreign_page(call.request, call.site.origins)
    fields = await call.fields("token", limit=LOGIN_BYTES, seconds=LOGIN_SECONDS)
    secret = fields.text("token", most=SECRET_CHARS)
    peer = call.site.origins.peer(call.request)
    call.site.logins.begin(peer)
    hours = call.site.gateway.config.server.session_hours
    redeemed = await call.store.redeem(secret, lifetime=timedelta(hours=hours))
    if redeemed is None:
        raise unauthorized("This login is used, expired or invalid; `belino login` prints a new one.")
    call.site.logins.succeeded(peer)
    response = answer({"ok": True})
    call.site.cookie.write(call.request, response, redeemed[1], seconds=hours * 3600)
    return response


async def log_out(call: RouteCall) -> Response:
    """End this login; its open sockets close within seconds."""
    await call.site.grants.revoke(call.visitor.grant.id)
    response = answer({"ok": True})
    call.site.cookie.write(call.request, response, "", seconds=0)
    return response


async def make_login(call: RouteCall) -> Response:
    """A fresh login address, for `belino login`."""
    server = call.site.gateway.config.server
    scheme = "https" if call.site.origins.is_secure(call.request) else "http"
    root = server.public_url or f"{scheme}://{call.request.headers['host']}"
    return answer({"url": await login_url(call.store, root, minutes=server.login_minutes)})


async def login_url(credentials: AccessVerbs, root: str, *, minutes: int) -> str:
    """An address whose fragment, which browsers never send, logs in once."""
    _, secret = await credentials.grant(GrantKind.LOGIN, lifetime=timedelta(minutes=minutes))
    return f"{root.rstrip('/')}/#token={secret}"


async def list_tokens(call: RouteCall) -> Response:
    """The valid tokens of programs."""
    return answer({"tokens": [grant_json(grant) for grant in await _tokens(call)]})


async def make_token(call: RouteCall) -> Response:
    """A token for one conversation's tools and messages, or for a monitoring system; shown once."""
    fields = await call.fields("conversation", "monitor", "note", "days")
    monitor = fields.flag("monitor")
    if monitor == fields.has("conversation"):
        raise bad_request("The body: name a conversation, or set monitor, but not both.")
    conversation = None if monitor else fields.conversation()
    if conversation is not None:
        await call.site.must_exist(conversation)
    days = fields.number("days", least=1, most=MOST_DAYS)
    grant, secret = await call.store.grant(
        GrantKind.MONITOR if monitor else GrantKind.CHANNEL,
        conversation=conversation,
        note=fields.text("note", most=NOTE_CHARS, default=""),
        lifetime=timedelta(days=days) if days else None,
    )
    return answer({**grant_json(grant), "token": secret}, status=201)


async def revoke_token(call: RouteCall) -> Response:
    """Revoke a token; its open sockets close within seconds. A browser's login ends by logout."""
    grant_id = call.request.path_params["grant_id"]
    if grant_id not in {grant.id for grant in await _tokens(call)} or not await call.site.grants.revoke(grant_id):
        raise not_found()
    return Response(status_code=204)


async def list_pairings(call: RouteCall) -> Response:
    """Waiting and paired people; never a code, which only the stranger may present."""
    return answer({"pairings": [pairing_json(pairing) for pairing in await call.store.pairings()]})


async def approve_pairing(call: RouteCall) -> Response:
    """Accept the person with this code, for direct messages of that account and nothing else."""
    fields = await call.fields("code")
    paired = await call.store.pair(plain_code(fields.text("code", most=CODE_CHARS)))
    if paired is None:
        raise Refusal(404, Code.NOT_FOUND, WRONG_CODE)
    return answer(pairing_json(paired), status=201)


async def revoke_pairing(call: RouteCall) -> Response:
    """Revoke a pairing; later messages are denied."""
    who = call.query("who").conversation("who")
    if not await call.store.unpair(who.platform, who.account, who.channel):
        raise not_found()
    return Response(status_code=204)


async def _tokens(call: RouteCall) -> list[Grant]:
    return [grant for grant in await call.store.grants() if grant.kind in (GrantKind.CHANNEL, GrantKind.MONITOR)]
