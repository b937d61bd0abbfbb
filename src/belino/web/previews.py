"""Previews of files for the page, only of bytes that are stored; none is fetched for one."""

import hashlib

from starlette.responses import Response

from belino.domain.document import DocumentUnit
from belino.domain.errors import MediaError, MediaNotFound
from belino.domain.stored import RefRecord
from belino.domain.units import NUMBER_MOST, NoRange
from belino.media.preview import CHARS, Drawing, FilePreview, Glance, Loudness, Nothing, Poster, Shape, Words
from belino.media.renditions import reason_of
from belino.web.media import SAFE_HEADERS, held_bytes, is_known_already, named_record
from belino.web.mimes import media_file_name
from belino.web.request_context import RouteCall
from belino.web.responses import Code, Refusal, answer, bad_request
from belino.web.wire import Json

OFFSET_MOST = 100_000_000


async def show_preview(call: RouteCall) -> Response:
    """The preview: text, a listing, a waveform, or the address of a picture."""
    query = call.query("part", "offset", "chars")
    look = FilePreview(
        part=query.number("part", least=1, most=NUMBER_MOST) or 1,
        offset=query.number("offset", least=0, most=OFFSET_MOST) or 0,
        chars=query.number("chars", least=1, most=CHARS) or CHARS,
    )
    record = await named_record(call)
    await held_bytes(call, record)
    try:
        seen = await call.site.gateway.glance(record, look)
    except NoRange as error:
        raise bad_request(f"The query: part is too large; {error}.") from None
    return answer({"ref": record.ref.id, **glance_json(seen, record)})


async def show_picture(call: RouteCall) -> Response:
    """A rendered picture of the file: a video's poster, a page of a PDF."""
    page = call.query("page").number("page", least=1, most=NUMBER_MOST) or 1
    record = await named_record(call)
    await held_bytes(call, record)
    try:
        drawn = await call.site.gateway.picture(record, page)
    except MediaNotFound:
        raise
    except MediaError as error:
        raise Refusal(409, Code.CONFLICT, f"There is no picture of it: {reason_of(error)}.") from error
    etag = f'"{hashlib.sha256(drawn.data).hexdigest()}"'
    headers = {**SAFE_HEADERS, "etag": etag, "content-disposition": "inline"}
    if is_known_already(call, etag):
        return Response(status_code=304, headers=headers)
    return Response(drawn.data, headers=headers, media_type=drawn.mime)


def glance_json(seen: Glance, record: RefRecord) -> Json:
    """A preview in wire format; `kind` says which fields there are."""
    picture = f"/api/media/{media_file_name(record.public_name, record.ref)}/picture"
    match seen:
        case Words():
            return {
                "kind": Shape.LISTING if seen.unit is DocumentUnit.LIST else Shape.TEXT,
                "unit": seen.unit,
                "part": seen.part,
                "parts": seen.parts,
                "title": seen.title,
                "text": seen.text,
                "next": seen.rest,
                "notes": list(seen.notes),
                "picture": f"{picture}?page={seen.part}" if seen.drawn else None,
            }
        case Loudness(seconds=seconds, heights=heights, reason=reason):
            return {"kind": Shape.WAVEFORM, "seconds": seconds, "heights": list(heights), "reason": reason}
        case Poster(seconds=seconds, width=width, height=height):
            return {"kind": Shape.POSTER, "seconds": seconds, "width": width, "height": height, "picture": picture}
        case Drawing(width=width, height=height):
            return {"kind": Shape.PICTURE, "width": width, "height": height, "picture": picture}
        case Nothing(reason=reason, failed=failed):
            return {"kind": Shape.FAILED if failed else Shape.NONE, "reason": reason}
