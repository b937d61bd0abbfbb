"""Uploads: begun, appended to at an exact offset, resumed, cancelled."""

import re

from starlette.responses import Response

from belino.domain.stored import Upload
from belino.web.attachments import FILE_NAME_CHARS
from belino.web.mimes import normal_mime
from belino.web.request_context import RouteCall, body_chunks, too_large
from belino.web.responses import Code, Refusal, answer, bad_request, not_found
from belino.web.wire import upload_json

CHUNK_BYTES = 4 * 1024 * 1024
IDLE_SECONDS = 30.0

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


async def start_upload(call: RouteCall) -> Response:
    """Announce a file: its conversation, size and hash."""
    fields = await call.fields("conversation", "file_name", "mime_type", "size", "sha256")
    conversation = fields.conversation()
    call.visitor.must_see(conversation)
    await call.site.must_exist(conversation)
    size = fields.number("size", least=0, most=2**53)
    if size is None:
        raise bad_request("The body: size must be a number of bytes.")
    sha256 = fields.text("sha256", most=64).lower() if fields.has("sha256") else None
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise bad_request("The body: sha256 must be 64 hexadecimal digits.")
    file_name = fields.text("file_name", most=FILE_NAME_CHARS, default="")
    limit = call.site.gateway.config.media.max_bytes
    if size == 0:
        raise Refusal(400, Code.EMPTY, "The file is empty.")
    if size > limit:
        raise too_large(limit, "The file")
    await _refuse_too_many(call)
    mime = normal_mime(fields.text("mime_type", most=1024, default=""))
    upload = await call.store.start_upload(
        conversation, file_name=file_name, mime=mime, size=size, sha256=sha256, limits=call.site.upload_limits
    )
    call.site.uploads.setdefault(call.visitor.grant.id, set()).add(upload.id)
    return answer({**upload_json(upload), "chunk_bytes": CHUNK_BYTES}, status=201)


async def show_upload(call: RouteCall) -> Response:
    """The state of an upload, so that it can be resumed."""
    return answer(upload_json(await _upload(call)))


async def extend_upload(call: RouteCall) -> Response:
    """Append the raw body at exactly `Upload-Offset`; what arrived before a disconnect counts."""
    offset = _offset(call)
    with call.site.extending.enter(call.request.path_params["upload_id"]):
        upload = await _upload(call)
        if offset != upload.offset:
            message = f"The upload's offset is {upload.offset}."
            raise Refusal(409, Code.CONFLICT, message, extra={"offset": upload.offset})
        announced = call.request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > upload.size - offset:
            raise too_large(upload.size, "The file was announced smaller; it")
        chunks = body_chunks(call.request, idle_seconds=IDLE_SECONDS)
        return answer(upload_json(await call.store.extend_upload(upload.id, offset, chunks)))


async def drop_upload(call: RouteCall) -> Response:
    """Cancel an upload."""
    upload = await _upload(call)
    await call.store.drop_upload(upload.id)
    call.site.uploads.get(call.visitor.grant.id, set()).discard(upload.id)
    return Response(status_code=204)


async def _upload(call: RouteCall) -> Upload:
    upload_id = call.request.path_params["upload_id"]
    upload = await call.store.upload(upload_id) if _ID.fullmatch(upload_id) else None
    if upload is None or not call.visitor.may_see(upload.conversation):
        raise not_found()
    return upload


async def _refuse_too_many(call: RouteCall) -> None:
    """Forget ended uploads, then count those still open under this grant."""
    most = call.site.gateway.config.server.open_uploads
    begun = call.site.uploads.get(call.visitor.grant.id, set())
    if len(begun) < most:
        return
    for upload_id in tuple(begun):
        upload = await call.store.upload(upload_id)
        if upload is None or upload.sha256 is not None:
            begun.discard(upload_id)
    if len(begun) >= most:
        message = f"{most} uploads are open already; finish or cancel one first."
        raise Refusal(429, Code.BUSY, message, headers={"Retry-After": "1"})


def _offset(call: RouteCall) -> int:
    text = call.request.headers.get("upload-offset", "")
    if not re.fullmatch(r"[0-9]{1,16}", text):
        raise bad_request("The header Upload-Offset must say where the body begins.")
    return int(text)
