"""Flush: send the files in the folder `pending`, without a turn."""

from starlette.responses import Response

from belino.turns.reply import Flushed
from belino.web.request_context import RouteCall
from belino.web.responses import answer
from belino.web.wire import Json


async def flush(call: RouteCall) -> Response:
    """Put the pending files of a conversation, or of all, into the outbox."""
    fields = await call.fields("conversation")
    where = fields.conversation("conversation") if fields.has("conversation") else None
    if where is not None:
        await call.site.must_exist(where)
    return answer({"flushed": [_flushed_json(each) for each in await call.site.gateway.flush(where)]})


def _flushed_json(flushed: Flushed) -> Json:
    return {
        "conversation": str(flushed.conversation),
        "sent": flushed.sent,
        "refused": [{"name": name, "reason": reason} for name, reason in flushed.refused],
        "waiting": flushed.waiting,
    }
