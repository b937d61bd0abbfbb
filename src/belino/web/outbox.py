"""The outbox: send what scripts say; for the owner, parcels with their reasons, to be retried or dropped."""

from starlette.responses import Response

from belino.domain.errors import MediaError, ToolError
from belino.domain.limits import SendAs
from belino.domain.reply import ParcelState
from belino.domain.stored import ParcelRecord
from belino.turns.reply import Flushed
from belino.web.attachments import ATTACHMENTS, PendingAttachments, parse_attachments
from belino.web.request_context import JSON_BYTES, RouteCall
from belino.web.responses import Code, Refusal, answer, bad_request, not_found
from belino.web.wire import Json, parcel_json

LISTED = 500
TEXT_CHARS = 100_000
ID_CHARS = 256
WAIT_SECONDS, MOST_WAIT = 60, 600


async def list_parcels(call: RouteCall) -> Response:
    """The outbox, newest first; `unsent=1` leaves out sent and dropped parcels."""
    query = call.query("limit", "state", "conversation", "unsent")
    state = query.text("state", most=16) if query.has("state") else None
    if state is not None and state not in set(ParcelState):
        raise bad_request(f"state must be one of {', '.join(ParcelState)}.")
    parcels = await call.store.parcels(
        limit=query.number("limit", least=1, most=LISTED) or 50,
        state=ParcelState(state) if state else None,
        conversation=query.conversation("conversation") if query.has("conversation") else None,
        unsent=bool(query.number("unsent", least=0, most=1)),
    )
    return answer({"parcels": [parcel_json(parcel) for parcel in parcels]})


async def show_parcel(call: RouteCall) -> Response:
    """One parcel."""
    return answer(parcel_json(await _known(call)))


async def retry(call: RouteCall) -> Response:
    """Send it now: a held or failed parcel, or one that waits for its retry."""
    return await _decided(call, await call.site.gateway.retry_parcel((await _known(call)).key))


async def drop(call: RouteCall) -> Response:
    """Never send it."""
    return await _decided(call, await call.site.gateway.drop_parcel((await _known(call)).key))


async def flush_pending(call: RouteCall) -> Response:
    """Put the pending files of a conversation, or of all, into the outbox."""
    fields = await call.fields("conversation")
    where = fields.conversation("conversation") if fields.has("conversation") else None
    if where is not None:
        await call.site.must_exist(where)
    return answer({"flushed": [_flushed_json(each) for each in await call.site.gateway.flush(where)]})


async def send(call: RouteCall) -> Response:
    """Send a text and files, and wait up to `wait` seconds for their receipts."""
    fields = await call.fields("conversation", "text", "files", "as", "reply_to", "wait")
    where = fields.conversation()
    call.visitor.must_see(where)
    await call.site.must_exist(where)
    text, form = fields.text("text", most=TEXT_CHARS, default=""), fields.text("as", most=16, default="")
    if form and form not in set(SendAs):
        raise bad_request(f"as must be one of {', '.join(SendAs)}.")
    files = parse_attachments(fields.items("files", most=ATTACHMENTS), limit=JSON_BYTES)
    if not text.strip() and not files:
        raise Refusal(400, Code.EMPTY, "There is nothing to send.")
    if form and not files and form != SendAs.VOICE:
        raise bad_request("as is the form of files, or voice for a text that is spoken.")
    unasked, pending = call.site.gateway.unasked, PendingAttachments(call.store, where, call.site.upload_limits)
    target, wait = fields.text("reply_to", most=ID_CHARS, default=""), fields.number("wait", least=0, most=MOST_WAIT)
    taken = False
    try:
        wanted = SendAs(form) if form else None
        offers = [await unasked.offer(upload, wanted) for upload in await pending.pack(files)]
        if form and not files:
            offers, text = [await unasked.spoken(where, text)], ""
        seconds = float(WAIT_SECONDS if wait is None else wait) or 0.001
        sent = await unasked.send(where, text, offers, reply_to=target or None, seconds=seconds)
        taken = True
    except (MediaError, ToolError) as error:
        raise Refusal(409, Code.CONFLICT, f"{error}.") from None
    finally:
        await pending.release(taken=taken)
    return answer({"parcels": [parcel_json(parcel) for parcel in sent]})


async def _known(call: RouteCall) -> ParcelRecord:
    parcel = await call.store.parcel(call.request.path_params["key"])
    if parcel is None:
        raise not_found()
    return parcel


async def _decided(call: RouteCall, decided: ParcelRecord | None) -> Response:
    if decided is None:
        raise Refusal(409, Code.CONFLICT, too_late(await _known(call)))
    return answer(parcel_json(decided))


def too_late(parcel: ParcelRecord) -> str:
    """Why a parcel can no longer be changed."""
    if parcel.dropped:
        return "This parcel is already dropped."
    return "This parcel is already sent." if parcel.state is ParcelState.SENT else "This parcel is being sent."


def _flushed_json(flushed: Flushed) -> Json:
    return {
        "conversation": str(flushed.conversation),
        "sent": flushed.sent,
        "refused": [{"name": name, "reason": reason} for name, reason in flushed.refused],
        "waiting": flushed.waiting,
    }
