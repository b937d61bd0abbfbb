"""App: every route with its requirement, behind one entry."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from belino.domain.errors import BelinoError
from belino.web import (
    access,
    api,
    channel,
    chat,
    context,
    fetches,
    hooks,
    media,
    messages,
    metrics,
    outbox,
    owner,
    pages,
    readings,
    uploads,
)
from belino.web.auth import Requires
from belino.web.connections import connection_of
from belino.web.request_context import RouteCall, Site
from belino.web.responses import Code, Refusal, not_found, refusal_of, refuse, stopping

log = logging.getLogger(__name__)

Answer = Callable[[Scope, Receive, Send], Awaitable[None]]
Handler = Callable[[RouteCall], Awaitable[Answer]]

DEFAULT_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
EVERY_METHOD = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class GuardedRoute(Route):
    """A route with its requirement, which refuses everyone who does not meet it."""

    def __init__(
        self, path: str, handler: Handler, *, requires: Requires, site: Site, methods: Sequence[str] = ("GET",)
    ) -> None:
        self.requires = requires
        super().__init__(path, _Guard(handler, requires, site), methods=methods, name=path)


class GuardedSocket(WebSocketRoute):
    """The chat socket: login happens at the upgrade, before any frame is read."""

    def __init__(self, path: str, *, requires: Requires, site: Site) -> None:
        self.requires = requires

        async def serve(socket: WebSocket) -> None:
            visitor = await site.admit(socket, requires)
            await chat.serve_chat(site, visitor, socket, api.me_json(site))

        super().__init__(path, serve, name=path)


class _Guard:
    def __init__(self, handler: Handler, requires: Requires, site: Site) -> None:
        self._handler = handler
        self._requires = requires
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        visitor = None
        if self._requires not in (Requires.OPEN, Requires.TURN):
            visitor = await self._site.admit(request, self._requires)
        answer = await self._handler(RouteCall(site=self._site, request=request, known_visitor=visitor))
        await answer(scope, receive, send)


class EntryPoint:
    """Checks host, path and headers of every request, and handles remaining errors."""

    def __init__(self, app: ASGIApp, *, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in DEFAULT_HEADERS.items():
                    headers.setdefault(name, value)
                if _leaves_body(scope):
                    headers["connection"] = "close"
            begun = True
            await send(message)

        try:
            _look(scope, self._site)
            await self._app(scope, _waits_for_client(scope, receive), send_guarded)
            return
        except (ClientDisconnect, WebSocketDisconnect):
            return
        except asyncio.CancelledError:
            # Only a stopping server cancels requests; re-raised, uvicorn would log it with a traceback.
            refusal = stopping()
        except Exception as error:  # noqa: BLE001 - the outermost layer: the client needs an answer
            refusal = _told(error)
        if not begun:
            await refuse(refusal)(scope, receive, send_guarded)


def make_app(site: Site) -> Starlette:
    """The web application of a gateway."""
    routes = guarded([*_open_routes(site), *_chat_routes(site), *_person_routes(site)])
    app = Starlette(
        routes=routes,
        middleware=[Middleware(EntryPoint, site=site)],
        exception_handlers={HTTPException: _starlette_refused},
    )
    # A redirect would answer before the login check.
    app.router.redirect_slashes = False
    return app


def guarded(routes: Sequence[BaseRoute]) -> Sequence[BaseRoute]:
    """Refuse to start with a route without a requirement."""
    for route in routes:
        if not isinstance(getattr(route, "requires", None), Requires):
            raise TypeError(f"{route!r} does not say what it requires")
    return routes


def _open_routes(site: Site) -> list[BaseRoute]:
    public = Requires.OPEN
    hook = "/hooks/{platform}/{account}"
    return [
        GuardedRoute("/", pages.index, requires=public, site=site),
        GuardedRoute("/static/{path:path}", pages.static, requires=public, site=site),
        GuardedRoute("/healthz", owner.healthz, requires=public, site=site),
        GuardedRoute("/api/login", access.log_in, requires=public, site=site, methods=["POST"]),
        GuardedRoute(
            "/mcp/turn", context.serve_turn_mcp, requires=Requires.TURN, site=site, methods=["GET", "POST", "DELETE"]
        ),
        GuardedRoute("/files/{token}", media.serve_published, requires=public, site=site),
        GuardedRoute("/files/{token}/preview", media.serve_preview, requires=public, site=site),
        GuardedRoute(hook, hooks.take_hook, requires=public, site=site, methods=EVERY_METHOD),
    ]


def _chat_routes(site: Site) -> list[BaseRoute]:
    """Routes that a channel's token may use too, within its own conversation."""
    own = Requires.CONVERSATION
    upload = "/api/uploads/{upload_id}"
    return [
        GuardedSocket("/ws", requires=own, site=site),
        GuardedRoute("/mcp", context.serve_mcp, requires=own, site=site, methods=["GET", "POST", "DELETE"]),
        GuardedRoute("/api/messages", messages.get_messages, requires=own, site=site),
        GuardedRoute("/api/messages", messages.post_message, requires=own, site=site, methods=["POST"]),
        GuardedRoute("/api/send", outbox.send, requires=own, site=site, methods=["POST"]),
        GuardedRoute("/api/uploads", uploads.start_upload, requires=own, site=site, methods=["POST"]),
        GuardedRoute(upload, uploads.show_upload, requires=own, site=site),
        GuardedRoute(upload, uploads.extend_upload, requires=own, site=site, methods=["PATCH"]),
        GuardedRoute(upload, uploads.drop_upload, requires=own, site=site, methods=["DELETE"]),
        GuardedRoute("/api/media", media.list_media, requires=own, site=site),
        GuardedRoute("/api/media/{filename}", media.serve_media, requires=own, site=site),
        GuardedRoute("/api/media/{filename}/preview", media.show_preview, requires=own, site=site),
        GuardedRoute("/api/media/{filename}/picture", media.show_picture, requires=own, site=site),
        GuardedRoute("/api/explain", api.explain_message, requires=own, site=site),
        GuardedRoute("/api/retry", api.retry_message, requires=own, site=site, methods=["POST"]),
        GuardedRoute("/api/context", context.show_context, requires=own, site=site),
        GuardedRoute("/api/search", context.search_channel, requires=own, site=site),
        GuardedRoute("/api/channel/next", channel.next_messages, requires=own, site=site, methods=["POST"]),
        GuardedRoute("/api/channel/ack", channel.acknowledge, requires=own, site=site, methods=["POST"]),
        GuardedRoute("/api/channel/reply", channel.reply, requires=own, site=site, methods=["POST"]),
        GuardedRoute("/api/channel/permission", channel.ask_permission, requires=own, site=site, methods=["POST"]),
    ]


def _person_routes(site: Site) -> list[BaseRoute]:
    """Routes of the gateway's owner."""
    person = Requires.PERSON
    return [
        GuardedRoute("/api/me", api.me, requires=person, site=site),
        GuardedRoute("/api/logout", access.log_out, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/logins", access.make_login, requires=Requires.PROGRAM, site=site, methods=["POST"]),
        GuardedRoute("/api/conversations", api.list_conversations, requires=person, site=site),
        GuardedRoute("/api/conversations", api.open_conversation, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/status", api.status, requires=person, site=site),
        GuardedRoute("/api/savings", api.show_savings, requires=person, site=site),
        GuardedRoute("/api/channels", api.list_channels, requires=person, site=site),
        GuardedRoute("/api/outbox", outbox.list_parcels, requires=person, site=site),
        GuardedRoute("/api/outbox/flush", outbox.flush_pending, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/outbox/{key}", outbox.show_parcel, requires=person, site=site),
        GuardedRoute("/api/outbox/{key}/retry", outbox.retry, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/outbox/{key}", outbox.drop, requires=person, site=site, methods=["DELETE"]),
        GuardedRoute("/api/audit", api.audit, requires=person, site=site),
        GuardedRoute("/api/doctor", api.doctor, requires=person, site=site),
        GuardedRoute("/api/take-over", owner.take_over, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/link", owner.begin_link, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/link", owner.show_link, requires=person, site=site),
        GuardedRoute("/api/doctor/live", owner.check_media, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/tokens", access.list_tokens, requires=person, site=site),
        GuardedRoute("/api/tokens", access.make_token, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/tokens/{grant_id}", access.revoke_token, requires=person, site=site, methods=["DELETE"]),
        GuardedRoute("/api/pairings", access.list_pairings, requires=person, site=site),
        GuardedRoute("/api/pairings", access.approve_pairing, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/pairings", access.revoke_pairing, requires=person, site=site, methods=["DELETE"]),
        GuardedRoute("/api/health", owner.show_health, requires=person, site=site),
        GuardedRoute("/api/notices", owner.list_notices, requires=person, site=site),
        GuardedRoute("/api/notices", owner.close_notice, requires=person, site=site, methods=["DELETE"]),
        GuardedRoute("/api/groups", owner.list_groups, requires=person, site=site),
        GuardedRoute("/api/groups", owner.decide_group, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/groups", owner.forget_group, requires=person, site=site, methods=["DELETE"]),
        GuardedRoute("/api/config", owner.show_config, requires=person, site=site),
        GuardedRoute("/api/config/reload", owner.reload_config, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/recording", api.show_recording, requires=person, site=site),
        GuardedRoute("/api/recording", api.start_recording, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/recording", api.stop_recording, requires=person, site=site, methods=["DELETE"]),
        GuardedRoute("/api/media/fetch", fetches.fetch_media, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/media/read", readings.read_media, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/api/readings", readings.list_readings, requires=person, site=site),
        GuardedRoute("/api/readings/{ref}", readings.show_readings, requires=person, site=site),
        GuardedRoute("/api/media/gc", media.tidy_up, requires=person, site=site, methods=["POST"]),
        GuardedRoute("/metrics", metrics.show_metrics, requires=Requires.MONITOR, site=site),
    ]


def _waits_for_client(scope: Scope, receive: Receive) -> Receive:
    """`receive`, during which the client's connection may be dropped if the rest of its request does not arrive."""
    connection = connection_of(scope)

    async def receive_rest() -> Message:
        if connection is not None and not connection.has_whole_request():
            connection.pool.set_turn(connection, client_turn=True)
        return await receive()

    return receive_rest


def _leaves_body(scope: Scope) -> bool:
    """Whether a client without a login is answered before its body arrives, which is then not read."""
    connection = connection_of(scope)
    return connection is not None and not connection.is_known and not connection.has_whole_request()


def _look(scope: Scope, site: Site) -> None:
    """The path was decoded once; a path that still needs decoding, or traverses, is not found."""
    raw = scope.get("raw_path", b"").lower()
    path: str = scope["path"]
    if any(mark in path for mark in ("%", "\\", "\0", "//", "/..", "/./")) or b"%2f" in raw:
        raise not_found()
    if not site.origins.knows_host(HTTPConnection(scope)):
        raise Refusal(421, Code.BAD_REQUEST, "This is not the host you asked for; see server.allowed_hosts.")


async def _starlette_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return refuse(
            Refusal(405, Code.BAD_REQUEST, "This method is not allowed here.", headers=dict(error.headers or {}))
        )
    return refuse(not_found() if error.status_code == 404 else Refusal(error.status_code, Code.BAD_REQUEST, "Refused."))


def _told(error: Exception) -> Refusal:
    """The refusal for an error, which is logged if it is ours to fix."""
    if isinstance(error, BelinoError):
        refusal = refusal_of(error)
        if refusal.status >= 500:
            log.warning("refused with %d: %s", refusal.status, type(error).__name__)
        return refusal
    log.error("a request failed: %s", _kind(error))
    return Refusal(500, Code.INTERNAL, "An internal error occurred; the log has its type.")


def _kind(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return ", ".join(sorted({_kind(inner) for inner in error.exceptions}))
    return type(error).__name__
