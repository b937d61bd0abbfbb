"""Responses: JSON, and one format for every refusal."""

from collections.abc import Mapping
from enum import StrEnum

import orjson
from starlette.responses import Response

from belino.domain.errors import (
    BelinoError,
    Busy,
    MediaNotFound,
    MediaTooLarge,
    OverDailyLimit,
    StoreBusy,
    StoreError,
    StoreReadOnly,
    StoreUnwritable,
    UploadError,
    UploadsFull,
)


class Code(StrEnum):
    """The error code of a refusal, for programs."""

    BAD_REQUEST = "bad_request"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    REJECTED = "rejected"
    PLATFORM = "platform"
    TOO_LARGE = "too_large"
    OVER_LIMIT = "over_limit"
    BAD_BASE64 = "bad_base64"
    EMPTY = "empty"
    BUSY = "busy"
    STORE_FULL = "store_full"
    STORE_READ_ONLY = "store_read_only"
    UNKNOWN_METHOD = "unknown_method"
    INTERNAL = "internal"


class Refusal(BelinoError):
    """A request is refused; the message is for the person, the code for the program."""

    def __init__(
        self,
        status: int,
        code: Code,
        message: str,
        *,
        extra: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})

    def as_json(self) -> dict[str, object]:
        """The error alone, as in a frame or a body."""
        return {"code": self.code.value, "message": str(self)}


def bad_request(message: str) -> Refusal:
    """The request is invalid."""
    return Refusal(400, Code.BAD_REQUEST, message)


def not_found() -> Refusal:
    """The same answer for what does not exist and for what this visitor may not see."""
    return Refusal(404, Code.NOT_FOUND, "There is nothing here.")


def busy(message: str, *, status: int = 503) -> Refusal:
    """No capacity right now; the same request may succeed in a moment."""
    return Refusal(status, Code.BUSY, message, headers={"Retry-After": "1"})


def stopping() -> Refusal:
    """The answer to a request that a stopping server does not finish."""
    return busy("belino is stopping; send it again once it has started.")


def refusal_of(error: BelinoError) -> Refusal:
    """The refusal for a domain error."""
    match error:
        case Refusal():
            return error
        case StoreUnwritable():
            return _unwritable(error)
        case StoreError():
            return Refusal(500, Code.INTERNAL, "The state folder cannot be used right now; see `belino doctor`.")
        case Busy():
            return busy(str(error))
        case MediaTooLarge():
            return Refusal(413, Code.TOO_LARGE, str(error))
        case OverDailyLimit() | UploadsFull():
            return Refusal(413, Code.OVER_LIMIT, str(error))
        case MediaNotFound():
            return not_found()
        case UploadError():
            return Refusal(422, Code.BAD_REQUEST, str(error))
        case _:
            return bad_request(str(error))


def _unwritable(error: StoreUnwritable) -> Refusal:
    """The refusal for what cannot be stored now, with a retry time."""
    match error:
        case StoreReadOnly():
            why = "The state folder is read-only; nothing was stored. Make it writable and try again."
            return Refusal(503, Code.STORE_READ_ONLY, why, headers={"Retry-After": "10"})
        case StoreBusy():
            return busy("Another process holds the database; nothing was stored. Try again.")
        case _:
            return Refusal(507, Code.STORE_FULL, "The disk is full; nothing was stored. Try again once there is space.")


def encode(value: object) -> bytes:
    """JSON with UTC times; dataclasses must be converted explicitly."""
    return orjson.dumps(value, option=orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_DATACLASS)


def answer(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(encode(value), status_code=status, headers=dict(headers or {}), media_type="application/json")


def refuse(refusal: Refusal) -> Response:
    """A refusal as an HTTP answer."""
    body = {"error": refusal.as_json(), **refusal.extra}
    return answer(body, status=refusal.status, headers=refusal.headers)
