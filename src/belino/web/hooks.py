"""Hooks: webhook calls of platforms, checked by their headers, read within limits, passed raw to their adapter."""

import asyncio
from dataclasses import replace

from starlette.responses import Response

from belino.domain.failpoints import failpoint
from belino.domain.ports import Hook, HookAnswer, ScreensHooks, TakesHooks
from belino.web.request_context import RouteCall, read_body
from belino.web.responses import Code, Refusal, busy, not_found, refuse

HOOK_BYTES = 4 * 1024 * 1024
"""The largest call that a platform documents has 3 MB."""
HOOK_SECONDS = 10.0
TAKE_SECONDS = 30.0

_CODES = {401: Code.UNAUTHORIZED, 403: Code.FORBIDDEN, 404: Code.NOT_FOUND, 429: Code.BUSY, 503: Code.BUSY}


async def take_hook(call: RouteCall) -> Response:
    """Answer a webhook; an adapter answers 200 only after commit."""
    params = call.request.path_params
    platform, account = params["platform"], params["account"]
    adapter = call.site.gateway.adapters.get((platform, account))
    if not isinstance(adapter, TakesHooks):
        raise not_found()
    hook = Hook(
        method=call.request.method,
        path=call.request.url.path,
        query=call.request.url.query,
        headers={name.lower(): value for name, value in call.request.headers.items()},
        body=b"",
    )
    refused = adapter.screen_hook(hook) if isinstance(adapter, ScreensHooks) else None
    if refused is not None:
        return _answer(refused)
    key = f"{platform}:{account}"
    async with call.site.hook_readers.enter(key, call.site.origins.peer(call.request)):
        hook = replace(hook, body=await read_body(call.request, limit=HOOK_BYTES, seconds=HOOK_SECONDS))
    with call.site.hooks.enter(key):
        failpoint("hook.received")
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                taken = await adapter.take_hook(hook)
        except TimeoutError:
            raise busy("Not processed in time; call again.") from None
    failpoint("hook.answer.before")
    return _answer(taken)


def _answer(taken: HookAnswer) -> Response:
    """The adapter's answer; a refusal without a body gets the usual error format."""
    if taken.status >= 400 and not taken.body:
        return refuse(Refusal(taken.status, _CODES.get(taken.status, Code.BAD_REQUEST), "This call is not accepted."))
    return Response(taken.body, status_code=taken.status, media_type=taken.mime)
