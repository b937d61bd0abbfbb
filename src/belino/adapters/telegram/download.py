"""A file's bytes: getFile for a fresh link, then the stream, continued where it broke off."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from belino.adapters.telegram.calls import Calls, Refused
from belino.domain.errors import AdapterError, MediaError, MediaExpired, MediaTooLarge
from belino.domain.media import MediaRef
from belino.domain.ports import Clock, HttpAnswer
from belino.net.raw import as_table, count, words
from belino.net.redact import Secret
from belino.net.stream import ATTEMPTS, range_headers, resumed, retried

FETCH_BYTES = 20 * 1024 * 1024
"""What Telegram's own servers hand to bots."""
LOCAL_FETCH_BYTES = 2000 * 1024 * 1024

# What a link answers when its hour is over.
_GONE = frozenset({404, 410})


class Download:
    """One file on its way."""

    def __init__(self, calls: Calls, clock: Clock, ref: MediaRef, *, limit: int, token: Secret) -> None:
        self._calls = calls
        self._clock = clock
        self._ref = ref
        self._limit = limit
        self._token = token
        self._path: str | None = None

    async def prepare(self) -> None:
        """Get the link; what Telegram will never hand out is refused here, and without a call if its size is known."""
        self._check_size(self._ref.size)
        self._path = await self._link(attempts=ATTEMPTS)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async for chunk in resumed(self._open_at, clock=self._clock):
            yield chunk

    @asynccontextmanager
    async def _open_at(self, offset: int, validator: str | None) -> AsyncIterator[HttpAnswer]:
        headers = range_headers(offset, validator)
        path, self._path = self._path or await self._link(), None
        async with self._calls.file(path, headers) as answer:
            if answer.status not in _GONE:
                yield answer
                return
        async with self._calls.file(await self._link(), headers) as answer:
            if answer.status in _GONE:
                # Telegram has it, or getFile would have said so: this may pass, or the operator may mend it.
                raise MediaError(
                    f"a link that the Bot API has just made for {self._shown} leads nowhere; try it later, and where "
                    "the server is your own, see whether its folder is served over HTTP"
                )
            yield answer

    async def _link(self, *, attempts: int = 1) -> str:
        fields = {"file_id": self._ref.locator.get("file_id", "")}
        try:
            told = await retried(
                lambda: self._calls.call("getFile", fields), clock=self._clock, lasting=(Refused,), attempts=attempts
            )
        except Refused as error:
            raise self._refusal(error) from error
        file = as_table(told)
        self._check_size(count(file, "file_size"))
        return self._over_http(words(file, "file_path"))

    def _refusal(self, error: Refused) -> Exception:
        if "too big" in error.description:
            return self._too_large(None)
        if "temporarily" in error.description:
            # Telegram says so of a wrong id as well; only a later try tells.
            return AdapterError(f"Telegram cannot hand out {self._shown} now: {error.description}")
        return MediaExpired(f"Telegram no longer hands out {self._shown} ({error.description or error.code})")

    def _over_http(self, path: str) -> str:
        """The path behind a link. A server with --local names a path on its own disk; we never open one."""
        if path.startswith("/"):
            # The folder has the bot's name; on a disk that takes no colons, with a tilde.
            name = self._token.reveal()
            folder = next((folder for folder in (f"/{name}/", f"/{name.replace(':', '~')}/") if folder in path), None)
            if folder is None:
                raise AdapterError(
                    "the Bot API server names a file on its own disk, which belino does not open; "
                    "serve its folder over HTTP as the page on Telegram says"
                )
            path = path.partition(folder)[2]
        if not path or any(step in ("", ".", "..") for step in path.split("/")) or "\\" in path:
            raise AdapterError("the Bot API named no file that can be fetched")
        return path

    def _check_size(self, size: int | None) -> None:
        if size is not None and size > self._limit:
            raise self._too_large(size)

    def _too_large(self, size: int | None) -> MediaTooLarge:
        megabytes = 1024 * 1024
        this = "this one is larger" if size is None else f"this one has {size / megabytes:.1f} MB"
        return MediaTooLarge(
            f"Telegram hands bots files of up to {self._limit // megabytes} MB, and {this}; "
            "ask the sender for a smaller copy",
            limit=self._limit,
        )

    @property
    def _shown(self) -> str:
        return self._ref.id or "this file"
