"""JSON API of a platform: calls with a bearer token, whose refusals its client explains."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from belino.domain.errors import AdapterError
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.domain.reply import SLOWEST_BYTES_A_SECOND
from belino.net.client import header, http_date
from belino.net.json_fields import Raw, from_json
from belino.net.redact import Secret
from belino.net.rest import Form, as_upload_errors, changing_nothing, read_answer

CALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonAnswer:
    """The answer to a call."""

    status: int
    headers: Mapping[str, str]
    told: Raw
    is_empty: bool
    """Whether it says nothing, as some calls do that are carried out."""

    @property
    def date(self) -> datetime | None:
        """The server's time."""
        return http_date(header(self.headers, "date"))


class JsonApi(ABC):
    """The calls with one token."""

    platform: ClassVar[str]
    """Who answers, in errors."""
    answer_bytes: ClassVar[int] = 1024 * 1024

    def __init__(self, http: HttpClient, clock: Clock, *, token: Secret, works: Callable[[], None]) -> None:
        """`works` is called with each successful call."""
        self.clock = clock
        self._http = http
        self._token = token
        self._works = works

    @abstractmethod
    def error_of(self, name: str, answer: JsonAnswer) -> AdapterError | None:
        """The error of a refused or unreadable answer; None if the call was carried out."""

    def file(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
        """GET a file's URL; the token is sent to the platform's own hosts only."""
        return self._http.request("GET", url, headers={**headers, **self._bearer}, timeout=CALL_SECONDS)

    async def _get(self, name: str, url: str) -> JsonAnswer:
        """A GET, which changes nothing: without an answer nothing has happened."""
        with changing_nothing():
            async with self._http.request("GET", url, headers=self._bearer, timeout=CALL_SECONDS) as answer:
                return await self._answered(name, answer)

    async def _post(
        self, name: str, url: str, fields: Mapping[str, object], headers: Mapping[str, str] | None = None
    ) -> Raw:
        given = {**(headers or {}), **self._bearer}
        async with self._http.request("POST", url, headers=given, json=dict(fields), timeout=CALL_SECONDS) as answer:
            return (await self._answered(name, answer)).told

    async def _upload(self, name: str, url: str, form: Form) -> Raw:
        """Upload a file, which is invisible until a message names it: without an answer nothing has happened."""
        seconds, headers = CALL_SECONDS + form.length / SLOWEST_BYTES_A_SECOND, {**form.headers, **self._bearer}
        request = self._http.request("POST", url, headers=headers, body=form.chunks(), timeout=seconds)
        with changing_nothing(), as_upload_errors(form):
            async with request as answer:
                return (await self._answered(name, answer)).told

    @property
    def _bearer(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self._token.reveal()}"}

    async def _answered(self, name: str, answer: HttpAnswer) -> JsonAnswer:
        body = await read_answer(answer, limit=self.answer_bytes, whose=f"{self.platform}'s answer to {name}")
        told, is_empty = from_json(body), body.strip() in (b"", b"{}")
        read = JsonAnswer(status=answer.status, headers=answer.headers, told=told, is_empty=is_empty)
        if (error := self.error_of(name, read)) is not None:
            raise error
        self._works()
        return read
