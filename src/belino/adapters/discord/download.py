"""A file's bytes: a fresh link from the message that holds it, then the stream, continued where it broke off."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from belino.adapters.discord.calls import Calls, Refused
from belino.adapters.discord.files import carried, files_in
from belino.adapters.discord.raw import as_identity, identity
from belino.domain.errors import AddressRefused, MediaExpired, MediaTooLarge
from belino.domain.media import MediaRef
from belino.domain.ports import Clock, HttpAnswer
from belino.net.raw import as_table, tables, words
from belino.net.stream import range_headers, resumed, retried

CDN_HOSTS = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
# Of stickers only GIFs live with the media, see "Image formatting" in the reference.
GIF_URL = "https://media.discordapp.net"

# What a link answers when its day is over, or its signature is not right.
_GONE = frozenset({401, 403, 404, 410})


class Download:
    """One file on its way."""

    def __init__(self, calls: Calls, clock: Clock, ref: MediaRef, *, limit: int, cdn_url: str, official: bool) -> None:
        self._calls = calls
        self._clock = clock
        self._ref = ref
        self._limit = limit
        self._cdn_url = cdn_url.rstrip("/")
        self._official = official
        self._url: str | None = None

    async def prepare(self) -> None:
        """Get the link; a file that is too large by what Discord said of it is refused without a call."""
        if self._ref.size is not None and self._ref.size > self._limit:
            raise MediaTooLarge(f"the file is over {self._limit} bytes", limit=self._limit)
        self._url = await retried(self._link, clock=self._clock)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async for chunk in resumed(self._open_at, clock=self._clock):
            yield chunk

    @asynccontextmanager
    async def _open_at(self, offset: int, validator: str | None) -> AsyncIterator[HttpAnswer]:
        headers = range_headers(offset, validator)
        url, self._url = self._url or await self._link(), None
        async with self._calls.file(url, headers) as answer:
            if answer.status not in _GONE:
                yield answer
                return
        async with self._calls.file(await self._link(), headers) as answer:
            if answer.status in _GONE:
                raise self._expired()
            yield answer

    async def _link(self) -> str:
        where = self._ref.locator
        if sticker := as_identity(where.get("sticker")):
            return self._sticker_link(sticker, where.get("ending", ""))
        if path := where.get("path"):
            return self._checked(await self._refreshed(path))
        return self._checked(await self._from_message(where.get("channel", ""), where.get("message", "")))

    def _sticker_link(self, sticker: str, ending: str) -> str:
        if ending not in ("png", "gif", "json"):
            raise self._expired()
        base = GIF_URL if ending == "gif" and self._official else self._cdn_url
        return f"{base}/stickers/{sticker}.{ending}"

    async def _from_message(self, channel: str, message: str) -> str:
        """The link in the message as it is now: who deleted it, or took the file out, is obeyed."""
        try:
            told = as_table(await self._calls.call("GET", "/channels/{}/messages/{}", channel, message))
        except Refused as error:
            raise self._refusal(error) from error
        wanted = self._ref.locator.get("attachment", "")
        for holder in (told, *carried(told)):
            for file in files_in(holder):
                if identity(file, "id") == wanted:
                    return words(file, "url")
        raise self._expired()

    async def _refreshed(self, path: str) -> str:
        """A new signature for a file that no message holds; Discord's documentation does not promise to give one."""
        plain = f"{self._cdn_url}/{path}"
        try:
            told = as_table(
                await self._calls.call("POST", "/attachments/refresh-urls", fields={"attachment_urls": [plain]})
            )
        except Refused as error:
            if error.status == 404:
                return plain
            raise self._refusal(error) from error
        return next((words(each, "refreshed") for each in tables(told, "refreshed_urls")), "")

    def _checked(self, url: str) -> str:
        """A link of Discord's own; a server of the operator's may name any place that the guard lets through."""
        if not url:
            raise self._expired()
        parts = urlsplit(url)
        if self._official and (parts.scheme != "https" or parts.netloc.lower() not in CDN_HOSTS):
            raise AddressRefused("Discord named a file outside its own servers, which belino does not fetch")
        return url

    def _refusal(self, error: Refused) -> Exception:
        if error.status == 403:
            return MediaExpired(
                f"the bot no longer sees the message with {self._shown}; its role needs View Channel and "
                "Read Message History"
            )
        return self._expired()

    def _expired(self) -> MediaExpired:
        return MediaExpired(f"Discord no longer has {self._shown}; ask the sender to send it again")

    @property
    def _shown(self) -> str:
        return self._ref.id or "this file"
