"""The chat socket: requests in, answers and events out, while the login is valid."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from belino.domain.errors import BelinoError
from belino.web.auth import Visitor
from belino.web.events import Subscription
from belino.web.fields import Fields, parse_conversation, parse_json
from belino.web.messages import HISTORY_FIELDS, SAY_FIELDS, abort, history, say
from belino.web.request_context import Site
from belino.web.responses import Code, Refusal, bad_request, encode, refusal_of
from belino.web.wire import Json

log = logging.getLogger(__name__)

FRAME_BYTES = 32 * 1024 * 1024
"""Frames up to this size are read, so that an oversized one gets an error; larger ones close the connection."""
HEAVY_CHARS = 1024 * 1024
IN_FLIGHT = 8
SEND_SECONDS = 30.0
FOLLOWED = 32

OTHER_VALUES = 10_000

LOGGED_OUT = 4401
TOO_SLOW = 1013

# The id of a frame that is not parsed: only if nothing but type and method precedes it.
_HEAD = re.compile(r'\s*\{\s*(?:"(?:type|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*("[^"\\]{0,64}"|[0-9]{1,15})')


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method that a client may call."""

    fields: tuple[str, ...]
    run: Callable[[Site, Visitor, Fields], Awaitable[Json]]


METHODS = {
    "chat.send": Method(fields=SAY_FIELDS, run=say),
    "chat.history": Method(fields=HISTORY_FIELDS, run=history),
    "chat.abort": Method(fields=("conversation",), run=abort),
}


async def serve_chat(site: Site, visitor: Visitor, socket: WebSocket, hello: Json) -> None:
    """Serve one admitted socket until it closes, its login ends, or it reads too slowly."""
    with site.sockets.enter(visitor.grant.id), site.grants.hold(visitor.grant) as ended:
        # Revoked between the login check and the hold: it has ended, and its holders are not notified again.
        if await site.grants.check(visitor.secret) is None:
            ended.set()
        await socket.accept()
        # Subscribed before the first frame, so that nothing is lost between history and events.
        with site.events.subscribe(visitor) as subscription:
            await ChatSocket(site, visitor, socket, subscription).run(ended, hello)


class ChatSocket:
    """One open socket."""

    def __init__(self, site: Site, visitor: Visitor, socket: WebSocket, subscription: Subscription) -> None:
        self._site = site
        self._visitor = visitor
        self._socket = socket
        self._subscription = subscription
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._listener: asyncio.Task[None] | None = None
        self._methods = METHODS | {"chat.follow": Method(fields=("conversations",), run=self._follow)}

    async def run(self, ended: asyncio.Event, hello: Json) -> None:
        """Read, send and watch; when reading ends, accepted requests are still carried out."""
        async with asyncio.TaskGroup() as group:
            self._listener = group.create_task(self._listen(group))
            beside = (group.create_task(self._tell(hello)), group.create_task(self._watch(ended)))
            await asyncio.wait((self._listener,))
            for task in beside:
                task.cancel()

    async def _listen(self, group: asyncio.TaskGroup) -> None:
        while await self._take(group):
            pass

    async def _take(self, group: asyncio.TaskGroup) -> bool:
        """Read one frame and start to process it; its text is released before the next is awaited."""
        event = await self._socket.receive()
        if event["type"] == "websocket.disconnect":
            return False
        frame: str | None = event.get("text")
        await self._slots.acquire()
        if frame is not None and len(frame) > HEAVY_CHARS:
            # Processed before the next is read: one large frame at a time, for all sockets.
            async with self._site.heavy:
                await self._request(frame)
        else:
            group.create_task(self._request(frame))
        return True

    async def _tell(self, hello: Json) -> None:
        await self._send({"type": "event", "event": "hello", **hello})
        while True:
            await self._send_text(await self._subscription.next())

    async def _watch(self, ended: asyncio.Event) -> None:
        """End when the login is revoked or expires."""
        await ended.wait()
        await self._close(LOGGED_OUT, "logged out")

    async def _follow(self, site: Site, visitor: Visitor, fields: Fields) -> Json:
        """Send the events of these conversations only; of the others a person's page gets an overview."""
        named = fields.items("conversations", most=FOLLOWED)
        if not all(isinstance(name, str) for name in named):
            raise bad_request("params: conversations must be a list of texts.")
        conversations = [parse_conversation(str(name)) for name in named]
        for conversation in conversations:
            visitor.must_see(conversation)
        site.events.follow(self._subscription, conversations)
        return {"conversations": [str(conversation) for conversation in conversations]}

    async def _request(self, frame: str | None) -> None:
        reply: Json = {"type": "res", "id": None, "ok": False}
        try:
            reply |= {"payload": await self._carry_out(frame, reply), "ok": True}
        except BelinoError as error:
            reply["error"] = refusal_of(error).as_json()
        except Exception as error:  # noqa: BLE001 - a failed request must not end the others
            log.error("a request over the socket failed: %s", type(error).__name__)
            reply["error"] = {"code": Code.INTERNAL, "message": "An internal error occurred; the log has its type."}
        finally:
            self._slots.release()
        await self._send(reply)

    async def _carry_out(self, frame: str | None, reply: Json) -> Json:
        if frame is None:
            raise bad_request("Frames are JSON text.")
        self._refuse_flood(frame, reply)
        fields = Fields(parse_json(frame), known=("type", "id", "method", "params"), what="The frame")
        request_id = fields.raw("id")
        if isinstance(request_id, bool) or not isinstance(request_id, str | int) or len(str(request_id)) > 64:
            raise bad_request("The frame: id must be text or a number.")
        reply["id"] = request_id
        if fields.raw("type") != "req":
            raise bad_request('The frame: type must be "req".')
        method = self._methods.get(fields.text("method", most=64))
        if method is None:
            raise Refusal(404, Code.UNKNOWN_METHOD, f"Known methods are {', '.join(self._methods)}.")
        params = Fields(fields.raw("params") or {}, known=method.fields, what="params")
        return await method.run(self._site, self._visitor, params)

    def _refuse_flood(self, frame: str, reply: Json) -> None:
        """More values than bytes and characters allowed: refused before they are parsed at 24 bytes each."""
        config = self._site.gateway.config
        most = config.server.frame_attachment_bytes + config.sessions.max_text_chars + OTHER_VALUES
        if len(frame) > most and frame.count(",") > most:
            if head := _HEAD.match(frame):
                reply["id"] = parse_json(head.group(1))
            raise Refusal(413, Code.TOO_LARGE, "The frame holds more than may be attached; send large files by upload.")

    async def _send(self, frame: Json) -> None:
        await self._send_text(encode(frame).decode())

    async def _send_text(self, frame: str) -> None:
        """Write a frame; a reader that accepts none for half a minute is disconnected, and catches up from history."""
        if self._socket.application_state is not WebSocketState.CONNECTED:
            return
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self._socket.send_text(frame)
        except WebSocketDisconnect:
            return
        except TimeoutError:
            await self._close(TOO_SLOW, "too slow")

    async def _close(self, code: int, reason: str) -> None:
        try:
            async with asyncio.timeout(1):
                await self._socket.close(code, reason)
        except (TimeoutError, WebSocketDisconnect):
            log.info("a socket could not be closed in good order")
        if self._listener is not None:
            self._listener.cancel()
