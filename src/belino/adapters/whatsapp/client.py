"""Cloud API client: calls of one phone number with its token, their errors, and the pace that Meta asks for."""

from collections.abc import Callable, Mapping
from urllib.parse import quote, urlencode

from belino.adapters.whatsapp.errors import refusal
from belino.domain.errors import AdapterError, RateLimited, Unanswered, Unauthorized
from belino.domain.ports import Clock, HttpClient
from belino.net.client import error_for, header, retry_after
from belino.net.json_api import JsonAnswer, JsonApi
from belino.net.json_fields import Raw, as_tables, from_json, table, whole
from belino.net.redact import Secret
from belino.net.rest import Form, HookSignature

SIGNATURE = HookSignature(header="x-hub-signature-256", prefix="sha256=")  # of Meta's own calls, the webhooks
USAGE = "x-business-use-case-usage"


class CloudClient(JsonApi):
    """The calls of one phone number."""

    platform = "Meta"

    def __init__(
        self, http: HttpClient, clock: Clock, *, api_url: str, token: Secret, number: str, works: Callable[[], None]
    ) -> None:
        super().__init__(http, clock, token=token, works=works)
        self.number = number
        self._api_url = api_url.rstrip("/")

    async def look(self, path: str, **fields: str) -> JsonAnswer:
        """A GET, which changes nothing."""
        return await self._get(path, f"{self._api_url}/{quote(path)}{'?' if fields else ''}{urlencode(fields)}")

    async def post(self, edge: str, fields: Mapping[str, object]) -> Raw:
        """A POST to an edge of the phone number, or with an empty one to itself."""
        return await self._post(edge or "the number", self._url(edge), fields)

    async def upload(self, form: Form) -> Raw:
        """Upload a file."""
        return await self._upload("media", self._url("media"), form)

    def _url(self, edge: str) -> str:
        return f"{self._api_url}/{quote(self.number)}{'/' if edge else ''}{edge}"

    def error_of(self, name: str, answer: JsonAnswer) -> AdapterError | None:
        """The error of a refused call, by Meta's code or else by its status."""
        if answer.status < 300 and answer.told and "error" not in answer.told:
            return None
        now = self.clock.now()
        wait = retry_after(answer.headers, now=now)
        wait = _regained(answer.headers) if wait is None else wait
        known = refusal(name, table(answer.told, "error"), wait=wait)
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
