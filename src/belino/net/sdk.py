"""The HTTP client for model SDKs: it uses no proxy, follows no redirect and leaves no answer open."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx2 import AsyncClient as AsyncClient  # for callers that receive one
    from httpx2 import Request, Response

CONNECT_SECONDS = 10.0
# A reasoning model may be silent for minutes; the gateway limits the length of a turn.
SILENCE_SECONDS = 300.0

_OPENING: "ContextVar[list[Response]]" = ContextVar("opening")
"""Collects the answers of a running request."""


def open_sdk_client() -> "AsyncClient":
    """A client for an SDK that accepts one; ImportError without an extra that needs it."""
    import httpx2

    # The environment is ignored: no proxy that would see every word, and no .netrc.
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        event_hooks={"request": [_say_one_name], "response": [_note, _refuse_redirect]},
    )


class Answers:
    """The HTTP answers of one request. Not every SDK closes them when reading stops early."""

    def __init__(self) -> None:
        self._open: list[Response] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Collect answers inside the block."""
        token = _OPENING.set(self._open)
        try:
            yield
        finally:
            _OPENING.reset(token)

    async def close(self) -> None:
        for answer in self._open:
            await answer.aclose()


async def _refuse_redirect(answer: "Response") -> None:
    # SDKs request redirects per call, whatever the client says; the key and every word would be sent along.
    if answer.is_redirect:
        import httpx2

        raise httpx2.RemoteProtocolError("redirects are not followed", request=answer.request)


async def _note(answer: "Response") -> None:
    if (noting := _OPENING.get(None)) is not None:
        noting.append(answer)


async def _say_one_name(request: "Request") -> None:
    # Google's SDK sends this header twice, which strict servers refuse.
    request.headers["User-Agent"] = "belino"
