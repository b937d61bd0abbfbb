"""Fetches by a person: the bytes of a ref, with progress."""

import asyncio
import base64
import re
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from belino.domain.errors import BelinoError, MediaError, MediaTooLarge
from belino.domain.stored import RefRecord
from belino.domain.units import NoRange, parse_pages, parse_times
from belino.media.renditions import LEAST_TOKENS, MADE, MOST_TOKENS, Rendered, RenderOptions
from belino.web.fields import Fields
from belino.web.request_context import RouteCall, Site
from belino.web.responses import Code, Refusal, answer, bad_request, encode, not_found, refusal_of
from belino.web.wire import Json, record_json

LINES = "application/x-ndjson"
TELL_SECONDS = 0.2

_REF = re.compile(r"[a-z0-9]{1,8}_[a-z0-9]{12}")


async def fetch_media(call: RouteCall) -> "Response | ProgressAnswer":
    """Fetch a ref and return its listing entry, with a rendition if a form is requested.

    Requested as lines, with progress.
    """
    fields = await call.fields("ref", "as", "pages", "time_range", "max_tokens", "cursor")
    ref_id = fields.text("ref", most=64)
    record = await call.store.find_ref(ref_id) if _REF.fullmatch(ref_id) else None
    if record is None:
        raise not_found()
    wanted = _wanted(fields)
    if LINES in call.request.headers.get("accept", ""):
        return ProgressAnswer(call.site, record, wanted)
    return answer(await fetched(call.site, record, wanted, Progress()))


class Progress:
    """The progress of a fetch."""

    def __init__(self) -> None:
        self.bytes = 0
        self.total: int | None = None

    def __call__(self, done: int, total: int | None) -> None:
        self.bytes, self.total = done, total


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedFetch:
    """A form, and its range."""

    form: str
    wish: RenderOptions


def _wanted(fields: Fields) -> WantedFetch | None:
    """The requested form; None for the file itself."""
    form = fields.text("as", most=20, default="file")
    if form == "file":
        return None
    if form not in MADE:
        raise bad_request(f"The body: as must be one of {', '.join(MADE)}, file.")
    pages, times = (fields.text(name, most=40, default="") for name in ("pages", "time_range"))
    try:
        wish = RenderOptions(
            pages=parse_pages(pages) if pages else None,
            times=parse_times(times) if times else None,
            cursor=fields.text("cursor", most=40, default="") or None,
            max_tokens=fields.number("max_tokens", least=LEAST_TOKENS, most=MOST_TOKENS),
        )
    except NoRange as error:
        raise bad_request(f"The body: {error}.") from None
    return WantedFetch(form=form, wish=wish)


async def fetched(site: Site, record: RefRecord, wanted: WantedFetch | None, progress: Progress) -> Json:
    """Fetch, and return the updated ref; a failure becomes a refusal."""
    try:
        await site.gateway.fetch(record, progress)
        current = await site.store.find_ref(record.ref.id) or record
        if wanted is None:
            return record_json(current)
        rendered = await site.gateway.render(current, wanted.form, wanted.wish)
        return record_json(current) | {"rendered": rendered_json(rendered)}
    except MediaTooLarge:
        raise
    except (MediaError, NoRange) as error:
        raise Refusal(409, Code.CONFLICT, f"{record.ref.id} is not available: {error}") from error


def rendered_json(rendered: Rendered) -> Json:
    """A rendition for a program: our text, its own text, and pictures in base64."""
    return {
        "about": rendered.about,
        "text": rendered.text,
        "next_cursor": rendered.rest,
        "tokens": rendered.tokens,
        "pictures": [
            {
                "label": label,
                "mime": picture.mime,
                "width": picture.width,
                "height": picture.height,
                "content": base64.b64encode(picture.data).decode("ascii"),
            }
            for label, picture in zip(rendered.labels, rendered.pictures, strict=True)
        ],
    }


class ProgressAnswer:
    """JSON lines: `{"bytes", "total"}` during the fetch, then `{"media"}` or `{"error"}`."""

    def __init__(self, site: Site, record: RefRecord, wanted: WantedFetch | None) -> None:
        self._site = site
        self._record = record
        self._wanted = wanted

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
            return {"media": await fetched(self._site, self._record, self._wanted, progress)}
        except BelinoError as error:
            return {"error": refusal_of(error).as_json()}


async def _line(send: Send, value: Json) -> None:
    await send({"type": "http.response.body", "body": encode(value) + b"\n", "more_body": True})
