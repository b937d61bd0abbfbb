"""WhatsApp server: Meta's Cloud API, its files and signed webhooks on loopback that follow the documented rules.

Facts are from developers.facebook.com/documentation/business-messaging/whatsapp: messages, media, webhooks, errors.
"""

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from belino.domain.ports import Clock
from belino.net.clock import SystemClock
from belino.testing.faults import FILE, CannedAnswer, Fault, Reset, Stall
from belino.testing.file_server import FakeUpload, cut, form_parts
from belino.testing.platform_server import PlatformServer
from belino.testing.whatsapp.calls import FILE_PATH, CloudCall, CloudCalls, CloudPace, CloudRefusal
from belino.testing.whatsapp.events import CloudWebhook
from belino.testing.whatsapp.shapes import NUMBER_ID, Json
from belino.testing.whatsapp.world import WhatsAppWorld

if TYPE_CHECKING:
    from aiohttp import web

TOKEN = "EAAbelinoOpensNothing00000000000"  # noqa: S105 - it opens nothing but this server
APP_SECRET = "5f0c0ffee0belino0opens0nothing00"  # noqa: S105
VERIFY_TOKEN = "belino-expects-whatsapp"  # noqa: S105
UPLOAD, MESSAGES, READ, MEDIA, NUMBER_CALL = "upload", "messages", "read", "media", "number"
VERSION = "/v26.0"


class WhatsAppServer(WhatsAppWorld, PlatformServer[CloudCall]):
    """A fake WhatsApp: inside `async with`, a number is configured with `settings`.

    People act through the methods of WhatsAppWorld (`say`, `react`, `revoke` …), and `subscribe` names the callback of
    the number; one with `public_url` registers itself. `calls` and `bytes_served` count the cost of the business;
    `fail` takes `messages`, `read`, `upload`, `media` (the URL of a file), `number` or `file`, and the faults of
    `testing.faults`. Files are served at an address of their own, as Meta's are.
    """

    platform = "whatsapp"
    upload_bytes = 2**31
    ports = 2
    files_url: str

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        token: str = TOKEN,
        app_secret: str = APP_SECRET,
        number_id: str = NUMBER_ID,
        pace: CloudPace | None = None,
    ) -> None:
        PlatformServer.__init__(self, clock or SystemClock())
        WhatsAppWorld.__init__(self, self.clock, number_id=number_id, hook=CloudWebhook(self.clock, app_secret))
        self.token = token
        self.app_secret = app_secret
        self.verify_token = VERIFY_TOKEN
        self.downloads: list[tuple[str, bool]] = []
        """Every request for a file: its path, and whether it had the token."""
        self.api = CloudCalls(self, self.clock, pace or CloudPace())
        self._group = asyncio.TaskGroup()
        self._pusher: asyncio.Task[None] | None = None

    @property
    def settings(self) -> Json:
        """The addresses of an account's table."""
        return {"api_url": self.url + VERSION, "files_url": self.files_url, "phone_number_id": self.number_id}

    async def subscribe(self, url: str) -> bool:
        """Send events to this address, if it answers the handshake."""
        return await self.hook.verify(url, self.verify_token)

    def revoke_token(self) -> None:
        """The token is void from now on."""
        self.token = f"{self.token}-another"

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_get(FILE_PATH, self._take_file)
        app.router.add_post(f"{VERSION}/{{number}}/media", self._take_upload)
        app.router.add_route("*", f"{VERSION}/{{object}}", self._take_call)
        app.router.add_route("*", f"{VERSION}/{{object}}/{{edge}}", self._take_call)

    async def listening(self, *urls: str) -> None:
        await super().listening(*urls)
        self.files_url = urls[1]
        await self._group.__aenter__()
        self._pusher = self._group.create_task(self.hook.push())

    async def closing(self) -> None:
        if self._pusher is not None:
            self._pusher.cancel()
        await self._group.__aexit__(None, None, None)

    def fault_response(self, fault: CannedAnswer) -> "web.Response":
        code = fault.parameters.get("code")
        told = CloudRefusal(int(code), fault.description).body if code is not None else {}
        return self._json(told, fault.status, dict(fault.headers))

    async def _take_call(self, request: "web.Request") -> "web.StreamResponse":
        own, edge = request.match_info["object"], request.match_info.get("edge", "")
        fields: Json = dict(request.query)
        if request.method == "POST" and request.can_read_body:
            fields |= await request.json()
        name = self._name(own, edge, fields)

        async def answer() -> Json:
            if own == self.number_id and edge == MESSAGES:
                return self.api.message(fields)
            if own == self.number_id and not edge:
                return await self.api.configure(fields) if request.method == "POST" else self.api.number()
            if not edge and request.method == "GET":
                return self.api.media(own, str(fields.get("phone_number_id", "")), self.files_url)
            raise CloudRefusal(100, f"Object with ID '{own}' does not exist", subcode=33)

        return await self._answered(request, CloudCall(name=name, fields=fields), answer, self.faults.take(name))

    def _name(self, own: str, edge: str, fields: Json) -> str:
        if edge:
            return READ if fields.get("status") == READ else edge
        return NUMBER_CALL if own == self.number_id else MEDIA

    async def _take_upload(self, request: "web.Request") -> "web.StreamResponse":
        fault = self.faults.take(UPLOAD)
        if isinstance(fault, Stall):
            await self.stall(request, fault)
        fields: dict[str, Any] = {}
        files: dict[str, FakeUpload] = {}
        if not isinstance(fault, Reset) or fault.done:
            async for name, value in form_parts(request, self.folder):
                if isinstance(value, FakeUpload):
                    files[name] = value
                else:
                    fields[name] = value

        async def answer() -> Json:
            return self.api.upload(fields, files)

        return await self._answered(request, CloudCall(name=UPLOAD, fields=fields), answer, fault)

    async def _answered(
        self, request: "web.Request", call: CloudCall, work: Callable[[], Awaitable[Json]], fault: Fault | None
    ) -> "web.StreamResponse":
        self.calls[call.name] += 1
        self.record(call)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        try:
            if request.headers.get("Authorization", "") != f"Bearer {self.token}":
                raise CloudRefusal(190, "Invalid OAuth access token.", status=401)
            told, status = await work(), 200
        except CloudRefusal as refused:
            told, status = refused.body, refused.status
        if isinstance(fault, Reset):
            cut(request)
        return self._json(told, status, {})

    async def _take_file(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        self.calls[FILE] += 1
        allowed = request.headers.get("Authorization", "") == f"Bearer {self.token}"
        self.downloads.append((request.path_qs, allowed))
        fault = self.faults.take(FILE)
        if (answered := await self.misbehave(request, fault)) is not None:
            return answered
        if not allowed:
            return web.Response(status=401)
        stored = self.api.linked(request.query.get("mid", ""), request.query.get("hash", ""))
        if stored is None:
            return web.Response(status=404)
        return await self.serve(request, stored.hosted, fault, mime=stored.mime)

    def _json(self, told: Json, status: int, headers: dict[str, str]) -> "web.Response":
        from aiohttp import web

        date = format_datetime(self.clock.now(), usegmt=True)
        return web.json_response(told, status=status, headers={"Date": date, **headers})
