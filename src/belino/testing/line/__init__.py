"""LINE server: a Messaging API on loopback that follows the documented rules, for tests.

Facts are from developers.line.biz/en/reference/messaging-api; error texts are those of the reference.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belino.domain.ports import Clock
from belino.net.clock import SystemClock
from belino.testing.faults import FILE, CannedAnswer, Reset
from belino.testing.file_server import HEAD, cut
from belino.testing.files import make_png
from belino.testing.line.calls import LineCall, LineCalls, LineRefusal
from belino.testing.line.world import KEPT_SECONDS, LineWorld
from belino.testing.platform_server import Json, PlatformServer

if TYPE_CHECKING:
    from aiohttp import web

TOKEN = "canary-line-access-token-0123456789"  # noqa: S105 - it opens nothing
SECRET = "canary-line-channel-secret-0123456"  # noqa: S105 - it opens nothing
NOT_FOUND = "Not found"
SEND = "send"
"""The name of a fault for the next call that makes something visible, whichever it is."""
MIMES = {"image": "image/jpeg", "video": "video/mp4", "audio": "audio/x-m4a", "file": "application/octet-stream"}

Answer = Callable[[LineCall], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFile:
    """What LINE got when it fetched a link."""

    status: int
    mime: str
    size: int
    sha256: str
    head: bytes


class LineServer(LineWorld, PlatformServer[LineCall]):
    """A fake LINE: inside `async with`, an account is configured with `url`, `token` and `channel_secret`.

    People act through the methods of LineWorld (`say`, `edit`, `unsend` …); events go to `webhook.url`. `sent` has what
    people see, `view` fetches a link as LINE does, from where `origins` says that a public address is. `fail` takes a
    call's name (`reply`, `push`, `send` for either, `content`, `file` for a download) and the faults of
    `testing.faults`.
    """

    platform = "line"
    upload_bytes = 2 * 1024 * 1024
    """LINE refuses larger requests."""

    def __init__(self, *, clock: Clock | None = None, token: str = TOKEN, secret: str = SECRET) -> None:
        PlatformServer.__init__(self, clock or SystemClock())
        LineWorld.__init__(self, self.clock, secret=secret)
        self.token = token
        self.api = LineCalls(self, self.clock)
        self.origins: dict[str, str] = {}
        """Public addresses, and where each really is."""
        self._routes: dict[tuple[str, str], tuple[str, Answer]] = {}
        self._group = asyncio.TaskGroup()
        self._pusher: asyncio.Task[None] | None = None

    def add_routes(self, app: "web.Application") -> None:
        def route(method: str, path: str, name: str, answer: Answer) -> None:
            self._routes[method, f"/v2/bot/{path}"] = name, answer
            app.router.add_route(method, f"/v2/bot/{path}", self._take_call)

        route("GET", "info", "info", lambda _: {**self.bot, "chatMode": "bot", "markAsReadMode": "auto"})
        route("GET", "profile/{user}", "profile", self._profile)
        route("GET", "group/{place}/summary", "summary", self._summary)
        route("GET", "group/{place}/member/{user}", "member", self._member)
        route("GET", "room/{place}/member/{user}", "member", self._member)
        route("GET", "channel/webhook/endpoint", "endpoint", self._endpoint)
        route("GET", "message/quota", "quota", self._quota)
        route("GET", "message/quota/consumption", "consumption", lambda _: {"totalUsage": self.api.used})
        route("GET", "message/{message}/content/transcoding", "transcoding", self._transcoding)
        route("POST", "message/reply", "reply", self.api.reply)
        route("POST", "message/push", "push", self.api.push)
        route("POST", "chat/loading/start", "loading", self.api.load)
        app.router.add_post("/v2/bot/channel/webhook/test", self._test_webhook)
        app.router.add_get("/v2/bot/message/{message}/content", self._take_file)
        app.router.add_get("/stickershop/v1/sticker/{sticker}/android/sticker.png", self._take_sticker)
        app.router.add_route("*", "/{rest:.*}", _not_found)

    async def listening(self, *urls: str) -> None:
        await super().listening(*urls)
        await self._group.__aenter__()
        self._pusher = self._group.create_task(self.deliver_events())

    async def closing(self) -> None:
        if self._pusher is not None:
            self._pusher.cancel()
        await self._group.__aexit__(None, None, None)

    def fault_response(self, fault: CannedAnswer) -> "web.Response":
        return _json(fault.status, {"message": fault.description or "Something went wrong"}, fault.headers)

    async def view(self, url: str) -> SeenFile:
        """Fetch a link of a message, as LINE does."""
        from aiohttp import ClientSession

        real = next((url.replace(public, at, 1) for public, at in self.origins.items() if url.startswith(public)), url)
        digest, size, head = hashlib.sha256(), 0, b""
        async with ClientSession() as session, session.get(real, allow_redirects=False) as answer:
            async for piece in answer.content.iter_chunked(256 * 1024):
                digest.update(piece)
                size += len(piece)
                head += piece[: HEAD - len(head)]
            mime = answer.content_type
            return SeenFile(status=answer.status, mime=mime, size=size, sha256=digest.hexdigest(), head=head)

    async def _take_call(self, request: "web.Request") -> "web.StreamResponse":
        resource = request.match_info.route.resource
        name, answer = self._routes[request.method, "" if resource is None else resource.canonical]
        fault = self.faults.take(name)
        if fault is None and name in ("reply", "push"):
            fault = self.faults.take(SEND)
        self.calls[name] += 1
        fields = await request.json() if request.can_read_body else {}
        headers = {key.lower(): value for key, value in request.headers.items()}
        request_id = str(uuid.uuid4())
        call = LineCall(name=name, path=dict(request.match_info), fields=fields, headers=headers, request_id=request_id)
        self.record(call)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        told = {"X-Line-Request-Id": request_id}
        if (refused := self._refused(request)) is not None:
            return refused
        try:
            self.api.keep_pace(name)
            result = answer(call)
        except LineRefusal as error:
            told |= {"X-Line-Accepted-Request-Id": error.accepted} if error.accepted else {}
            return _json(error.status, error.told, told)
        if isinstance(fault, Reset):
            cut(request)
        return _json(202 if name == "loading" else 200, result, told)

    async def _take_file(self, request: "web.Request") -> "web.StreamResponse":
        own = request.match_info["message"]
        self.calls[FILE] += 1
        fault = self.faults.take(FILE)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        if (refused := self._refused(request)) is not None:
            return refused
        stored = self.files.get(own)
        if stored is None:
            return _json(404, {"message": NOT_FOUND})
        if self.clock.monotonic() - (stored.opened_at or 0.0) >= KEPT_SECONDS:
            return _json(410, {"message": "Gone"})
        if self.preparing.get(own, 0) > 0:
            return _json(202, {"message": "The content is being prepared"})
        mime = stored.upload.mime or MIMES[self.messages[own]["type"]]
        return await self.serve(request, stored, fault, mime=mime)

    async def _take_sticker(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        self.calls["sticker"] += 1
        assert "Authorization" not in request.headers, "the shop of stickers was shown the token"
        return web.Response(body=make_png(64, 64), content_type="image/png")

    async def _test_webhook(self, request: "web.Request") -> "web.StreamResponse":
        """Call the webhook without events: https://developers.line.biz/en/reference/messaging-api/#test-webhook-endpoint."""
        from aiohttp import ClientSession

        self.calls["test"] += 1
        if (refused := self._refused(request)) is not None:
            return refused
        async with ClientSession() as session:
            success = await self.posted(session, [])
        status = self.webhook.deliveries.pop()
        reason = "OK" if success else "ERROR_STATUS_CODE" if status else "COULD_NOT_CONNECT"
        told = {"success": success, "statusCode": status, "reason": reason, "detail": str(status)}
        return _json(200, {**told, "timestamp": self.clock.now().isoformat()})

    def _refused(self, request: "web.Request") -> "web.Response | None":
        if request.headers.get("Authorization") == f"Bearer {self.token}":
            return None
        why = "Authentication failed. Confirm that the access token in the authorization header is valid."
        return _json(401, {"message": why})

    def _profile(self, call: LineCall) -> Json:
        user = self.users.get(call.path["user"])
        if user is None:
            raise LineRefusal(404, NOT_FOUND)
        return {**user, "pictureUrl": "https://profile.line-scdn.net/x"}

    def _summary(self, call: LineCall) -> Json:
        group = self.groups.get(call.path["place"])
        if group is None or call.path["place"] in self.left:
            raise LineRefusal(404, NOT_FOUND)
        return {"groupId": group["groupId"], "groupName": group["groupName"]}

    def _member(self, call: LineCall) -> Json:
        members = self.groups.get(call.path["place"], {}).get("members", ())
        user = next((each for each in members if each["userId"] == call.path["user"]), None)
        if user is None:
            raise LineRefusal(404, NOT_FOUND)
        return {"userId": user["userId"], "displayName": user["displayName"]}

    def _endpoint(self, _: LineCall) -> Json:
        if not self.webhook.address:
            raise LineRefusal(404, NOT_FOUND)
        return {"endpoint": self.webhook.address, "active": self.webhook.active}

    def _quota(self, _: LineCall) -> Json:
        return {"type": "none"} if self.api.quota is None else {"type": "limited", "value": self.api.quota}

    def _transcoding(self, call: LineCall) -> Json:
        own = call.path["message"]
        if own not in self.files:
            raise LineRefusal(404, NOT_FOUND)
        left = self.preparing.get(own, 0)
        if left < 0:
            return {"status": "failed"}
        self.preparing[own] = max(0, left - 1)
        return {"status": "processing" if left else "succeeded"}


async def _not_found(request: "web.Request") -> "web.StreamResponse":
    return _json(404, {"message": NOT_FOUND})


def _json(status: int, value: Any, headers: Mapping[str, str] | None = None) -> "web.Response":
    from aiohttp import web

    return web.json_response(value, status=status, headers=headers)
