"""The HTTP client a model's SDK is given: it asks no proxy, follows no redirect and leaves no answer open."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx2 import AsyncClient as AsyncClient  # for whoever is given one
    from httpx2 import Request, Response

CONNECT_SECONDS = 10.0
# A model that thinks says nothing for minutes; how long a turn may take is the gateway's to say.
SILENCE_SECONDS = 300.0

_OPENING: "ContextVar[list[Response]]" = ContextVar("opening")
"""Where a request that is being made notes its answers."""


def open_sdk_client() -> "AsyncClient":
    """A client for an SDK that brings its own; ImportError without an extra that needs one."""
    import httpx2

    # The environment is not asked: neither for a proxy that would see every word, nor for a .netrc.
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        event_hooks={"request": [_say_one_name], "response": [_note, _refuse_redirect]},
    )


class Answers:
    """The HTTP answers of one request. Not every SDK closes them when somebody stops reading."""

    def __init__(self) -> None:
        self._open: list[Response] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Answers that come while this lasts are noted."""
        token = _OPENING.set(self._open)
        try:
            yield
        finally:
            _OPENING.reset(token)

    async def close(self) -> None:
        for answer in self._open:
            await answer.aclose()


async def _refuse_redirect(answer: "Response") -> None:
    # SDKs ask for redirects request by request, whatever the client says; the key and every word would go along.
    if answer.is_redirect:
        import httpx2

        raise httpx2.RemoteProtocolError("redirects are not followed", request=answer.request)


async def _note(answer: "Response") -> None:
    if (noting := _OPENING.get(None)) is not None:
        noting.append(answer)


async def _say_one_name(request: "Request") -> None:
    # Google's SDK sends this header twice, which strict servers refuse.
    request.headers["User-Agent"] = "belino"
