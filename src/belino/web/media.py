"""Media for browsers: lists, files and previews, shown where that is safe, never executed."""

import asyncio
import hashlib
import re
from typing import BinaryIO
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from belino.domain.errors import MediaError, MediaNotFound
from belino.domain.media import Blob, DocumentUnit, MediaKind
from belino.domain.outcome import MediaOutcome
from belino.domain.stored import RefRecord
from belino.domain.units import NUMBER_MOST, NoRange
from belino.media.preview import CHARS, Drawing, FilePreview, Glance, Loudness, Nothing, Poster, Shape, Words
from belino.media.renditions import reason_of
from belino.web.mimes import media_file_name, normal_mime, served_type
from belino.web.request_context import RouteCall
from belino.web.responses import Code, Refusal, answer, bad_request, not_found
from belino.web.wire import Json, record_json, tidied_json

CHUNK_BYTES = 256 * 1024
SEND_SECONDS = 60.0
LISTED = 200
OFFSET_MOST = 100_000_000

SAFE_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "private, no-cache",  # revalidated by its ETag: a deleted file is not shown from a cache
    "vary": "Cookie, Authorization",
}

PUBLISHED_HEADERS = {"cache-control": "no-store", "cross-origin-resource-policy": "cross-origin"}
"""Links end when the bytes are deleted, so no cache may keep them."""

_FILE_NAME = re.compile(r"([0-9a-z]{26})\.[a-z0-9]{1,8}")
_RANGE = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})")
# RFC 8187's attr-char: everything else is percent-encoded.
_ATTR_CHARS = "!#$&+-.^_`|~"


async def serve_media(call: RouteCall) -> "Response | FileAnswer":
    """One file by its public name; unknown, foreign and no longer held get the same answer."""
    record = await named_record(call)
    blob = await held_bytes(call, record)
    return await _serve(call, blob, media_headers(record.ref.mime, record.ref.file_name, blob))


async def serve_published(call: RouteCall) -> "Response | FileAnswer":
    """One file by a link that was given out; unknown, expired and deleted get the same answer."""
    file = await call.store.published(call.request.path_params["token"])
    if file is None:
        raise not_found()
    # Fetched by programs of other sites, which need the type that it has; shown inline only where that is safe.
    headers = media_headers(file.mime, file.name, file.blob)
    return await _serve(call, file.blob, headers | {"content-type": _true_type(file.mime), **PUBLISHED_HEADERS})


async def serve_preview(call: RouteCall) -> Response:
    """A small picture of a published file, for platforms that show one before they fetch the file."""
    file = await call.store.published(call.request.path_params["token"])
    if file is None:
        raise not_found()
    try:
        picture = await call.site.gateway.small_picture(file.blob)
    except MediaError:
        raise not_found() from None
    headers = {**SAFE_HEADERS, **PUBLISHED_HEADERS, "content-disposition": "inline"}
    return Response(picture.data, headers=headers, media_type=picture.mime)


async def _serve(call: RouteCall, blob: Blob, headers: dict[str, str]) -> "Response | FileAnswer":
    if is_known_already(call, headers["etag"]):
        return Response(status_code=304, headers={name: headers[name] for name in (*SAFE_HEADERS, "etag")})
    asked = call.request.headers.getlist("range")
    if_range = call.request.headers.get("if-range")
    if not asked or (if_range is not None and if_range != headers["etag"]):
        return await _open(call, blob, headers, 0, blob.size, status=200)
    first, last = parse_range(asked, blob.size)
    headers["content-range"] = f"bytes {first}-{last}/{blob.size}"
    return await _open(call, blob, headers, first, last - first + 1, status=206)


async def list_media(call: RouteCall) -> Response:
    """Received media, newest first, for `belino media ls` and galleries."""
    query = call.query("channel", "kind", "limit", "before")
    channel = query.conversation("channel").whole_channel if query.has("channel") else None
    own = call.visitor.grant.conversation
    if own is not None:
        channel = channel or own.whole_channel
        if channel != own.whole_channel or own.thread is not None:
            raise not_found()
    records = await call.store.refs(
        channel,
        kind=_kind(query.text("kind", most=16)) if query.has("kind") else None,
        before=query.number("before", least=0, most=2**63 - 1),
        limit=query.number("limit", least=1, most=LISTED) or 20,
    )
    return answer({"media": [record_json(record) for record in records]})


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


async def tidy_up(call: RouteCall) -> Response:
    """Delete garbage in the state folder; `dry_run` only counts, `all_strays` moves every stray aside."""
    fields = await call.fields("dry_run", "all_strays")
    wanted = {name: bool(fields.number(name, least=0, most=1)) for name in ("dry_run", "all_strays")}
    return answer(tidied_json(await call.site.gateway.tidy(**wanted)))


async def named_record(call: RouteCall) -> RefRecord:
    """The ref whose public name is in the path; unknown and foreign get the same answer."""
    match = _FILE_NAME.fullmatch(call.request.path_params["filename"])
    record = await call.store.ref_by_public_name(match.group(1)) if match else None
    if match is None or record is None or not call.visitor.may_see(record.conversation):
        raise not_found()
    if match.group() != media_file_name(record.public_name, record.ref):
        raise not_found()
    return record


async def held_bytes(call: RouteCall, record: RefRecord) -> Blob:
    """The bytes; damaged or missing ones are fetched again, if possible."""
    blob = await call.store.blob(record.ref.sha256) if record.ref.sha256 else None
    if blob is None and record.outcome is MediaOutcome.HELD:
        try:
            return await call.site.gateway.fetch(record)
        except MediaError:
            raise not_found() from None  # the ref has the reason
    if blob is None:
        raise not_found()
    return blob


def is_known_already(call: RouteCall, etag: str) -> bool:
    """Whether the client already has exactly these bytes."""
    wanted = call.request.headers.get("if-none-match")
    return wanted is not None and (wanted.strip() == "*" or etag in re.split(r"\s*,\s*", wanted.strip()))


def _true_type(declared: str) -> str:
    """The type of a published file: it is a download, in a sandbox, unless it is safe to show."""
    mime, inline = served_type(declared)
    return mime if inline else normal_mime(declared)


def media_headers(declared: str, name: str | None, blob: Blob) -> dict[str, str]:
    """Headers that make a stored script a download and a stored picture a picture."""
    mime, inline = served_type(declared)
    return {
        "content-type": mime,
        "content-disposition": disposition(name, inline=inline),
        **SAFE_HEADERS,
        "etag": f'"{blob.sha256}"',
        "accept-ranges": "bytes",
    }


def disposition(name: str | None, *, inline: bool) -> str:
    """A Content-Disposition (RFC 6266): an ASCII name for old clients, the true one beside it."""
    kind = "inline" if inline else "attachment"
    if not name:
        return kind
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name)[:150]
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe=_ATTR_CHARS, errors='replace')}"


def parse_range(asked: list[str], size: int) -> tuple[int, int]:
    """The first and last byte of one range; several, none or invalid ones cannot be satisfied."""
    match = _RANGE.fullmatch(asked[0].strip()) if len(asked) == 1 and len(asked[0]) <= 64 else None
    if match is None or not any(match.groups()):
        raise _unsatisfiable(size)
    start, end = match.groups()
    if start:
        first, last = int(start), min(int(end), size - 1) if end else size - 1
    else:
        first, last = max(0, size - int(end)), size - 1
    if first > last:
        raise _unsatisfiable(size)
    return first, last


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


class FileAnswer:
    """A part of an open file as an HTTP answer, read in a thread, a chunk at a time."""

    def __init__(self, file: BinaryIO | None, *, status: int, headers: dict[str, str], length: int) -> None:
        self._file = file
        self._status = status
        self._headers = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        self._length = length

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self._status, "headers": self._headers})
            left = self._length if self._file is not None else 0
            while self._file is not None and left > 0:
                chunk = await asyncio.to_thread(self._file.read, min(CHUNK_BYTES, left))
                if not chunk:
                    return
                left -= len(chunk)
                # A stalled reader must not keep a file open for ever.
                async with asyncio.timeout(SEND_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            return
        finally:
            if self._file is not None:
                self._file.close()


async def _open(
    call: RouteCall, blob: Blob, headers: dict[str, str], first: int, length: int, *, status: int
) -> FileAnswer:
    headers["content-length"] = str(length)
    if call.request.method == "HEAD":
        return FileAnswer(None, status=status, headers=headers, length=length)
    try:
        async with call.store.local(blob.sha256) as path:
            file = await asyncio.to_thread(path.open, "rb")  # stays readable after the block
    except (FileNotFoundError, MediaNotFound):
        raise not_found() from None
    file.seek(first)
    return FileAnswer(file, status=status, headers=headers, length=length)


def _kind(text: str) -> MediaKind:
    try:
        return MediaKind(text)
    except ValueError:
        raise bad_request(f"kind must be one of {', '.join(MediaKind)}.") from None


def _unsatisfiable(size: int) -> Refusal:
    message = "One satisfiable byte range at a time."
    return Refusal(416, Code.BAD_REQUEST, message, headers={"Content-Range": f"bytes */{size}"})
