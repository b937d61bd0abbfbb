"""Messaging API client: calls with the channel's access token, and the errors of refused calls.

https://developers.line.biz/en/reference/messaging-api/
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from belino.domain.errors import AdapterError, Unanswered, Unauthorized
from belino.domain.ports import AdapterContext, HttpAnswer
from belino.net.client import error_for
from belino.net.json_api import CALL_SECONDS, JsonAnswer, JsonApi
from belino.net.json_fields import Raw, line, tables
from belino.net.redact import redact

if TYPE_CHECKING:
    from belino.adapters.line import Config

API = "Messaging API"
RETRY_KEY = "X-Line-Retry-Key"
_MONTHLY = "monthly limit"


class LineRefused(AdapterError):
    """LINE refused a call; the meaning depends on the call."""

    def __init__(self, message: str, *, status: int, told: Raw) -> None:
        super().__init__(message)
        self.status = status
        self.told = told

    @property
    def description(self) -> str:
        """What LINE says, with its details."""
        details = [line(each, "message") for each in tables(self.told, "details")]
        return redact("; ".join(part for part in (line(self.told, "message"), *details) if part))

    @property
    def is_quota(self) -> bool:
        """Whether the account has sent as many messages as its plan has in a month."""
        return self.status == 429 and _MONTHLY in self.description.lower()


class LineClient(JsonApi):
    """The calls of one channel of the Messaging API."""

    platform = "LINE"
    answer_bytes = 4 * 1024 * 1024

    def __init__(self, context: AdapterContext, config: "Config") -> None:
        works = partial(context.report, API)
        super().__init__(context.http, context.clock, token=config.channel_access_token, works=works)
        self._api_url = config.api_url.rstrip("/")
        self._data_url = config.files_url.rstrip("/")

    def now(self) -> datetime:
        """The local time, as LINE reports none for what it sent."""
        return self.clock.now()

    async def get(self, *path: str, is_content: bool = False) -> Raw:
        """A call that changes nothing."""
        return (await self.ask(*path, is_content=is_content)).told

    async def ask(self, *path: str, is_content: bool = False) -> JsonAnswer:
        """The same, with the server's time; `is_content` for paths of the other host, which has the files."""
        return await self._get(path[-1], self._url(path, self._data_url if is_content else self._api_url))

    async def post(self, *path: str, fields: Mapping[str, object], retry_key: str = "") -> Raw:
        """A call that does something; one that was accepted under the same `retry_key` is a LineRefused, 409."""
        headers = {RETRY_KEY: retry_key} if retry_key else {}
        return await self._post(path[-1], self._url(path, self._api_url), fields, headers)

    def content_url(self, message_id: str) -> str:
        """Where the bytes of a message are."""
        return self._url(("message", message_id, "content"), self._data_url)

    def foreign(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
        """GET a file from elsewhere, without the token: the URL is another's, and the guard checks its address."""
        return self._http.request("GET", url, headers=headers, timeout=CALL_SECONDS)

    def _url(self, path: tuple[str, ...], host: str) -> str:
        return "/".join((host, "v2/bot", *(quote(step, safe="") for step in path)))

    def error_of(self, name: str, answer: JsonAnswer) -> AdapterError | None:
        """The error of a refused call."""
        status, told = answer.status, answer.told
        if status < 300:
            return None if told or answer.is_empty else Unanswered("LINE's answer cannot be read")
        if status == 401:
            return Unauthorized(
                "LINE does not accept this channel access token; issue one in the LINE Developers Console, your "
                "channel, Messaging API"
            )
        refused = LineRefused("", status=status, told=told)
        if 400 <= status < 500 and line(told, "message") and (status != 429 or refused.is_quota):
            return LineRefused(f"LINE refused {name}: {refused.description}", status=status, told=told)
        error = error_for(status, answer.headers, now=self.clock.now())
        return error or AdapterError(f"something before LINE answered with status {status}")
