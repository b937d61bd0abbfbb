"""Recordings, for the gateway's owner: start one, show its state, end it."""

from dataclasses import asdict

from starlette.responses import Response

from belino.domain.errors import StoreError
from belino.gateway.recorder import Recording, RecordingRefused
from belino.web.fields import Fields
from belino.web.request_context import RouteCall
from belino.web.responses import Code, Refusal, answer, bad_request
from belino.web.wire import Json


async def show_recording(call: RouteCall) -> Response:
    """The state of the recording; null if there is none."""
    return answer({"recording": recording_json(call.site.gateway.recorder.state())})


async def start_recording(call: RouteCall) -> Response:
    """Start to record one conversation, or all of them."""
    fields = await call.fields("conversation", "without_text", "without_media")
    where = fields.conversation("conversation") if fields.has("conversation") else None
    try:
        begun = await call.site.gateway.record(
            where, without_text=_switch(fields, "without_text"), without_media=_switch(fields, "without_media")
        )
    except RecordingRefused as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None
    return answer({"recording": recording_json(begun)}, status=201)


async def stop_recording(call: RouteCall) -> Response:
    """End the recording and write its cassette, on this machine."""
    try:
        written = await call.site.gateway.stop_recording()
    except RecordingRefused as error:
        raise Refusal(409, Code.CONFLICT, str(error)) from None
    except StoreError as error:
        raise Refusal(507, Code.INTERNAL, str(error)) from None
    return answer({**asdict(written), "path": str(written.path)})


def recording_json(recording: Recording | None) -> Json | None:
    """A recording in wire format."""
    return None if recording is None else asdict(recording)


def _switch(fields: Fields, name: str) -> bool:
    value = fields.raw(name)
    if value is not None and not isinstance(value, bool):
        raise bad_request(f"The body: {name} must be true or false.")
    return bool(value)
