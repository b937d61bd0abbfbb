"""A person asks for the bytes of a ref, and may watch them come."""

import asyncio
import re

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from belino.domain.errors import BelinoError, MediaError, MediaTooLarge
from belino.domain.record import RefRecord
from belino.web.answers import Code, Refusal, answer, encode, not_found, refusal_of
from belino.web.site import Call, Site
from belino.web.wire import Json, record_json

LINES = "application/x-ndjson"
TELL_SECONDS = 0.2

_REF = re.compile(r"[a-z0-9]{1,8}_[a-z0-9]{12}")


async def fetch_media(call: Call) -> "Response | ProgressAnswer":
    """The ref as listings tell it, once its bytes are here; asked for as lines, how far they are as well."""
    fields = await call.fields("ref")
    ref_id = fields.text("ref", most=64)
    record = await call.store.find_ref(ref_id) if _REF.fullmatch(ref_id) else None
    if record is None:
        raise not_found()
    if LINES in call.request.headers.get("accept", ""):
        return ProgressAnswer(call.site, record)
    return answer(await fetched(call.site, record, Progress()))


class Progress:
    """How much of a fetch is here, for whoever looks."""

    def __init__(self) -> None:
        self.bytes = 0
        self.total: int | None = None

    def __call__(self, done: int, total: int | None) -> None:
        self.bytes, self.total = done, total


async def fetched(site: Site, record: RefRecord, progress: Progress) -> Json:
    """Fetch, and tell the ref as it is then; why it cannot be had becomes a refusal."""
    try:
        await site.gateway.fetch(record, progress)
    except MediaTooLarge:
        raise
    except MediaError as error:
        raise Refusal(409, Code.CONFLICT, f"{record.ref.id} cannot be had: {error}") from error
    return record_json(await site.store.find_ref(record.ref.id) or record)


class ProgressAnswer:
    """JSON lines: `{"bytes", "total"}` while the bytes come, then `{"media"}` or `{"error"}`."""

    def __init__(self, site: Site, record: RefRecord) -> None:
        self._site = site
        self._record = record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", LINES.encode("ascii"))]}
        )
        progress = Progress()
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self._end(progress))
            while not work.done():
                await asyncio.wait({work}, timeout=TELL_SECONDS)
                await _line(send, {"bytes": progress.bytes, "total": progress.total})
        await _line(send, work.result())
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _end(self, progress: Progress) -> Json:
        try:
            return {"media": await fetched(self._site, self._record, progress)}
        except BelinoError as error:
            return {"error": refusal_of(error).as_json()}


async def _line(send: Send, value: Json) -> None:
    await send({"type": "http.response.body", "body": encode(value) + b"\n", "more_body": True})
