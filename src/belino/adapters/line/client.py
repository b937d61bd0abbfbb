"""Messaging API client: calls with the channel's access token, and the errors of refused calls.

https://developers.line.biz/en/reference/messaging-api/
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from belino.domain.errors import AdapterError, Unanswered, Unauthorized
from belino.domain.ports import AdapterContext, HttpAnswer
from belino.net.client import error_for, header, http_date
from belino.net.json_fields import Raw, from_json, line, tables
from belino.net.redact import redact
from belino.net.rest import read_answer

if TYPE_CHECKING:
    from belino.adapters.line import Config

API = "Messaging API"
CALL_SECONDS = 30.0
ANSWER_BYTES = 4 * 1024 * 1024
RETRY_KEY = "X-Line-Retry-Key"
_MONTHLY = "monthly limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineAnswer:
    """The JSON of a call, and the server's time."""

    told: Raw
    date: datetime | None


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


class LineClient:
    """The calls of one channel of the Messaging API."""

    def __init__(self, context: AdapterContext, config: "Config") -> None:
        self._http = context.http
        self.clock = context.clock
        self._api_url = config.api_url.rstrip("/")
        self._data_url = config.files_url.rstrip("/")
        self._token = config.channel_access_token
        self._works = partial(context.report, API)

    def now(self) -> datetime:
        """The local time, as LINE reports none for what it sent."""
        return self.clock.now()

    async def get(self, *path: str, is_content: bool = False) -> Raw:
        """A call that changes nothing."""
        return (await self.ask(*path, is_content=is_content)).told

    async def ask(self, *path: str, is_content: bool = False) -> LineAnswer:
        """The same, with the server's time; `is_content` for paths of the other host, which has the files."""
        url = self._url(path, self._data_url if is_content else self._api_url)
        async with self._http.request("GET", url, headers=self._headers(), timeout=CALL_SECONDS) as answer:
            return await self._answered(answer, path)

    async def post(self, *path: str, fields: Mapping[str, object], retry_key: str = "") -> Raw:
        """A call that does something; one that was accepted under the same `retry_key` is a LineRefused, 409."""
        headers = self._headers() | ({RETRY_KEY: retry_key} if retry_key else {})
        url = self._url(path, self._api_url)
        async with self._http.request("POST", url, headers=headers, json=fields, timeout=CALL_SECONDS) as answer:
            return (await self._answered(answer, path)).told

    def content_url(self, message_id: str) -> str:
        """Where the bytes of a message are."""
        return self._url(("message", message_id, "content"), self._data_url)

    def content(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
        """GET the bytes of a message from LINE."""
        return self._http.request("GET", url, headers={**headers, **self._headers()}, timeout=CALL_SECONDS)

    def foreign(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
        """GET a file from elsewhere, without the token: the URL is another's, and the guard checks its address."""
        return self._http.request("GET", url, headers=headers, timeout=CALL_SECONDS)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token.reveal()}"}

    def _url(self, path: tuple[str, ...], host: str) -> str:
        return "/".join((host, "v2/bot", *(quote(step, safe="") for step in path)))

    async def _answered(self, answer: HttpAnswer, path: tuple[str, ...]) -> LineAnswer:
        body = await read_answer(answer, limit=ANSWER_BYTES, whose="LINE's answer")
        told = from_json(body)
        if answer.status >= 300:
            raise self._error(answer, told, path[-1])
        if not told and body.strip() not in (b"{}", b""):
            raise Unanswered("LINE's answer cannot be read")
        self._works()
        return LineAnswer(told=told, date=http_date(header(answer.headers, "date")))

    def _error(self, answer: HttpAnswer, told: Raw, what: str) -> AdapterError:
        status = answer.status
        if status == 401:
            return Unauthorized(
                "LINE does not accept this channel access token; issue one in the LINE Developers Console, your "
                "channel, Messaging API"
            )
        refused = LineRefused("", status=status, told=told)
        if 400 <= status < 500 and line(told, "message") and (status != 429 or refused.is_quota):
            return LineRefused(f"LINE refused {what}: {refused.description}", status=status, told=told)
        error = error_for(status, answer.headers, now=self.clock.now())
        return error or AdapterError(f"something before LINE answered with status {status}")
