"""Bot API calls: the only place that knows the token, and where every refusal becomes an error of ours."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from belino.domain.delivery_doubt import SLOWEST_BYTES_A_SECOND
from belino.domain.errors import AdapterError, MediaTooLarge, RateLimited, Unanswered, Unauthorized, Unreached
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.net.client import error_for
from belino.net.form import Form
from belino.net.pace import LONGEST_WAIT
from belino.net.raw import Raw, as_table, line, real, table, whole
from belino.net.redact import Secret, redact

CALL_SECONDS = 30.0
# A hundred updates of the longest messages are some 4 MB.
ANSWER_BYTES = 32 * 1024 * 1024

# What a page without any JSON is believed: who asks, how much and how often is for proxies to refuse as well.
_BELIEVED = frozenset({401, 413, 429})

UNKNOWN_METHOD = "method not found"
"""What servers say that are older than a method."""

_RETRY_AFTER = re.compile(r"retry after (\d{1,9})\b")


class Refused(AdapterError):
    """Telegram answered and said no; what that means depends on what was asked."""

    def __init__(self, message: str, *, code: int, description: str, migrate_to: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.description = description
        self.migrate_to = migrate_to
        """Where the chat went that we tried to reach."""


class NotFound(Unauthorized):
    """Telegram does not know the token; a small server says the same of a method that it does not have."""


class OutOfOrder(AdapterError):
    """Telegram, or something before it, cannot serve us now."""


class NoSuchPage(OutOfOrder):
    """A 404 that is no word of Telegram's: a proxy's, or a small server's that does not have the method."""


class Conflict(AdapterError):
    """Somebody else gets this bot's updates."""


class Overlong(Unanswered):
    """Telegram's answer is longer than any that we read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a call brought, and what time it is at the other end."""

    result: object
    date: datetime | None


class Calls:
    """One bot's calls."""

    def __init__(self, http: HttpClient, clock: Clock, *, api_url: str, token: Secret) -> None:
        self._http = http
        self._clock = clock
        self._api_url = api_url.rstrip("/")
        self._token = token

    def now(self) -> datetime:
        """Our own time, where Telegram tells none."""
        return self._clock.now()

    async def call(self, method: str, fields: Mapping[str, object] | None = None, *, wait: float = 0.0) -> object:
        """The result of a method; `wait` is how long Telegram was asked to take its time."""
        return (await self.ask(method, fields, wait=wait)).result

    async def ask(self, method: str, fields: Mapping[str, object] | None = None, *, wait: float = 0.0) -> Answered:
        url = self._url("bot", method)
        async with self._http.request("POST", url, json=dict(fields or {}), timeout=CALL_SECONDS + wait) as answer:
            return await self._answered(method, answer)

    async def look(self, method: str, fields: Mapping[str, object] | None = None, *, wait: float = 0.0) -> object:
        """The result of a method that changes nothing: without an answer nothing has happened."""
        try:
            return await self.call(method, fields, wait=wait)
        except Overlong:
            raise
        except (OutOfOrder, Unanswered) as error:
            raise Unreached(str(error)) from error

    async def upload(self, method: str, form: Form) -> object:
        """The result of a method that files are given to."""
        seconds = CALL_SECONDS + form.length / SLOWEST_BYTES_A_SECOND
        try:
            async with self._http.request(
                "POST", self._url("bot", method), headers=form.headers, body=form.chunks(), timeout=seconds
            ) as answer:
                return (await self._answered(method, answer)).result
        except AdapterError as error:
            if form.trouble is not None:
                raise form.trouble from None
            if isinstance(error, Unanswered) and not form.written:
                raise Unreached("the upload broke off before its end") from None
            raise

    async def _answered(self, method: str, answer: HttpAnswer) -> Answered:
        try:
            body = await answer.read(ANSWER_BYTES)
        except MediaTooLarge:
            raise Overlong(f"Telegram's answer to {method} is over {ANSWER_BYTES} bytes") from None
        told = _read(body)
        if told.get("ok") is not True or "result" not in told:
            raise self._error(method, answer, told)
        return Answered(result=told["result"], date=_date(answer.headers))

    @asynccontextmanager
    async def file(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[HttpAnswer]:
        """The answer to a GET of a file that getFile named."""
        request: AbstractAsyncContextManager[HttpAnswer]
        request = self._http.request("GET", self._url("file/bot", path), headers=headers, timeout=CALL_SECONDS)
        async with request as answer:
            yield answer

    def _url(self, what: str, rest: str) -> str:
        # The token stands in the path. This is the only place that writes it, and nothing here is logged or raised.
        return f"{self._api_url}/{what}{quote(self._token.reveal(), safe=':')}/{quote(rest)}"

    def _error(self, method: str, answer: HttpAnswer, told: Raw) -> AdapterError:
        code = whole(told, "error_code") or answer.status
        description = redact(line(told, "description"))
        parameters = table(told, "parameters")
        wait = _wait(parameters, description)
        if code == 429 and wait is not None:
            wait = min(max(wait, 0.0), LONGEST_WAIT)
            return RateLimited(f"Telegram asks to wait {wait:g} seconds before {method}", retry_after=wait)
        if 400 <= code < 500 and code not in _BELIEVED and told.get("ok") is not False:
            # Telegram says no in JSON: this is a proxy's page, and what it says may pass.
            passing = NoSuchPage if code == 404 else OutOfOrder
            return passing(f"something before Telegram answered {method} with status {code}")
        if code == 401 or (code == 404 and UNKNOWN_METHOD not in description.lower()):
            unknown = NotFound if code == 404 else Unauthorized
            return unknown("Telegram does not know this bot token; take the right one from @BotFather")
        if code == 409:
            return Conflict(_conflict(description))
        if code < 400:
            unread = f"Telegram's answer to {method} cannot be read"
            # It did not say no: what it was asked for, it may have done.
            return AdapterError(unread) if code >= 300 or told.get("ok") is False else Unanswered(unread)
        if code == 429 or code >= 500:
            error = error_for(code, answer.headers, now=self._clock.now())
            return error if isinstance(error, RateLimited) else OutOfOrder(f"the platform answered with status {code}")
        return Refused(
            f"Telegram refused {method}: {description or f'status {code}'}",
            code=code,
            description=description,
            migrate_to=whole(parameters, "migrate_to_chat_id"),
        )


def _wait(parameters: Raw, description: str) -> float | None:
    """How long Telegram asks to wait: in seconds, and to the millisecond where it says so."""
    if (precise := real(parameters, "adaptive_retry")) is not None:
        return precise / 1000
    if (seconds := real(parameters, "retry_after")) is not None:
        return seconds
    said = _RETRY_AFTER.search(description)
    return float(said[1]) if said else None


def _conflict(description: str) -> str:
    if "webhook" in description:
        return (
            "a webhook is set for this bot, and Telegram hands out updates only one way; "
            'delete it with deleteWebhook, or set mode = "webhook"'
        )
    return "another program listens with this bot's token; stop it, or give belino a bot of its own"


def _read(body: bytes) -> Raw:
    try:
        return as_table(json.loads(body))
    except (ValueError, RecursionError):
        return {}  # a proxy's error page: its status says enough


def _date(headers: Mapping[str, str]) -> datetime | None:
    value = next((value for name, value in headers.items() if name.lower() == "date"), "")
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo is not None else None
