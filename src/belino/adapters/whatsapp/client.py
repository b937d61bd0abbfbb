"""Cloud API client: calls of one phone number with its token, their errors, and the pace that Meta asks for."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from urllib.parse import quote, urlencode

from belino.adapters.whatsapp.errors import PairLimited, refusal
from belino.domain.errors import AdapterError, RateLimited, Unanswered, Unauthorized
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.domain.reply import SLOWEST_BYTES_A_SECOND
from belino.net.client import error_for, header, http_date, retry_after
from belino.net.json_fields import Raw, as_tables, from_json, table, whole
from belino.net.redact import Secret
from belino.net.rest import Form, Latest, RateLimits, as_upload_errors, changing_nothing, read_answer

CALL_SECONDS = 30.0
ANSWER_BYTES = 1024 * 1024
USAGE = "x-business-use-case-usage"
LONGEST_PAIR_WAIT = 4.0**5

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudAnswer:
    """The answer to a call, and the server's time."""

    told: Raw
    date: datetime | None


class CloudClient:
    """The calls of one phone number."""

    def __init__(
        self, http: HttpClient, clock: Clock, *, api_url: str, token: Secret, number: str, works: Callable[[], None]
    ) -> None:
        """`works` is called with each successful call."""
        self.clock = clock
        self.number = number
        self._http = http
        self._api_url = api_url.rstrip("/")
        self._token = token
        self._works = works

    async def look(self, path: str, **fields: str) -> CloudAnswer:
        """A GET, which changes nothing: without an answer nothing has happened."""
        url = f"{self._api_url}/{quote(path)}{'?' if fields else ''}{urlencode(fields)}"
        with changing_nothing():
            async with self._http.request("GET", url, headers=self._bearer(), timeout=CALL_SECONDS) as answer:
                return await self._answered(path, answer)

    async def post(self, edge: str, fields: Mapping[str, object]) -> Raw:
        """A POST to an edge of the phone number, or with an empty one to itself."""
        url = f"{self._api_url}/{quote(self.number)}{'/' if edge else ''}{edge}"
        async with self._http.request(
            "POST", url, headers=self._bearer(), json=dict(fields), timeout=CALL_SECONDS
        ) as answer:
            return (await self._answered(edge or "the number", answer)).told

    async def upload(self, form: Form) -> Raw:
        """Upload a file, which is invisible until a message names it."""
        url = f"{self._api_url}/{quote(self.number)}/media"
        seconds = CALL_SECONDS + form.length / SLOWEST_BYTES_A_SECOND
        headers = {**form.headers, **self._bearer()}
        request = self._http.request("POST", url, headers=headers, body=form.chunks(), timeout=seconds)
        with changing_nothing(), as_upload_errors(form):
            async with request as answer:
                return (await self._answered("media", answer)).told

    def file(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
        """GET a file's URL; the token is sent to Meta's own hosts only."""
        return self._http.request("GET", url, headers={**headers, **self._bearer()}, timeout=CALL_SECONDS)

    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token.reveal()}"}

    async def _answered(self, name: str, answer: HttpAnswer) -> CloudAnswer:
        told = from_json(await read_answer(answer, limit=ANSWER_BYTES, whose=f"Meta's answer to {name}"))
        if answer.status >= 300 or not told or "error" in told:
            raise self._error(name, answer, table(told, "error"))
        self._works()
        return CloudAnswer(told=told, date=http_date(header(answer.headers, "date")))

    def _error(self, name: str, answer: HttpAnswer, error: Raw) -> AdapterError:
        now = self.clock.now()
        wait = retry_after(answer.headers, now=now)
        known = refusal(name, error, wait=_regained(answer.headers) if wait is None else wait)
        if known is not None and not (answer.status == 429 and not isinstance(known, RateLimited)):
            return known
        if answer.status == 401:
            return Unauthorized("Meta does not accept the access token; make a new one under System users")
        failed = error_for(answer.status, answer.headers, now=now)
        return failed or Unanswered(f"Meta's answer to {name} cannot be read")


def _regained(headers: Mapping[str, str]) -> float | None:
    """The seconds until an account may make calls again, which Meta tells in minutes; None if it does not."""
    usage = from_json(header(headers, USAGE) or "{}")
    minutes = [
        whole(each, "estimated_time_to_regain_access") or 0 for told in usage.values() for each in as_tables(told)
    ]
    return max(minutes) * 60.0 if any(minutes) else None


class CloudPacing:
    """Holds back messages: to one person after 131056, each time four times as long; to all after other limits.

    https://developers.facebook.com/documentation/business-messaging/whatsapp/messages/send-messages
    """

    def __init__(self, clock: Clock) -> None:
        self._limits = RateLimits("WhatsApp", clock)
        self._in_a_row: Latest[str, int] = Latest()
        """How often in a row messages to a person were too many."""

    async def call(self, to: str, work: Callable[[], Awaitable[T]]) -> T:
        """Make a call that a person sees. RateLimited, and no call, while they get too much."""
        self._limits.check(to)
        try:
            done = await work()
        except PairLimited as error:
            raise RateLimited(str(error), retry_after=self.too_fast(to, error.retry_after)) from error
        except RateLimited as error:
            self._limits.close(to, error.retry_after, everything=True)
            raise
        self._in_a_row.pop(to, None)
        return done

    def too_fast(self, to: str, least: float = 1.0) -> float:
        """A person got too much: nothing more for so many seconds."""
        times = self._in_a_row.get(to, 0)
        wait = max(min(4.0**times, LONGEST_PAIR_WAIT), least)
        self._in_a_row.keep(to, times + 1)
        self._limits.close(to, wait)
        return wait
