"""Calls from platforms: bounded before anybody is believed, then handed raw to the adapter that checks them."""

import asyncio

from starlette.responses import Response

from belino.domain.ports import Hook, TakesHooks
from belino.web.answers import Code, Refusal, not_found
from belino.web.site import Call, read_body

HOOK_BYTES = 1024 * 1024
HOOK_SECONDS = 10.0
TAKE_SECONDS = 30.0


async def take_hook(call: Call) -> Response:
    """Answer a webhook; an adapter says 200 only after commit."""
    params = call.request.path_params
    adapter = call.site.gateway.adapters.get((params["platform"], params["account"]))
    if not isinstance(adapter, TakesHooks):
        raise not_found()
    with call.site.hooks.enter("all"):
        body = await read_body(call.request, limit=HOOK_BYTES, seconds=HOOK_SECONDS)
        hook = Hook(
            method=call.request.method,
            path=call.request.url.path,
            query=call.request.url.query,
            headers={name.lower(): value for name, value in call.request.headers.items()},
            body=body,
        )
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                taken = await adapter.take_hook(hook)
        except TimeoutError:
            raise Refusal(503, Code.BUSY, "Not taken in time; call again.") from None
    return Response(taken.body, status_code=taken.status, media_type=taken.mime)
