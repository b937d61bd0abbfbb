"""Web API client: calls with the app's tokens, and refused calls as errors."""

import json as json_format
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from belino.domain.errors import AdapterError, MediaTooLarge, RateLimited, Unanswered, Unauthorized
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.domain.reply import SLOWEST_BYTES_A_SECOND
from belino.net.client import DEFAULT_RETRY_AFTER, error_for, header, http_date, retry_after
from belino.net.json_fields import Raw, from_json, line
from belino.net.redact import Secret, redact

CALL_SECONDS = 30.0
# A thousand messages of maximum length.
ANSWER_BYTES = 64 * 1024 * 1024

JSON = "application/json; charset=utf-8"
FORM = "application/x-www-form-urlencoded"
# Slack accepts JSON only for methods that write; the others take forms.
_TAKE_JSON = frozenset(
    {
        "chat.postMessage", "chat.update", "chat.delete", "chat.postEphemeral", "assistant.threads.setStatus",
        "reactions.add", "reactions.remove",
    }
)  # fmt: skip
# Slack accepts reads by POST and documents them as GET: a self-hosted server may accept either.
_QUESTIONS = frozenset(
    {
        "conversations.history", "conversations.replies", "conversations.info", "users.conversations", "users.info",
        "users.list", "files.info",
    }
)  # fmt: skip
_NO_POST = frozenset({404, 405, 501})

_UNAUTHORIZED = frozenset(
    {
        "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type",
        "team_access_not_granted", "two_factor_setup_required",
    }
)  # fmt: skip
# Slack failed, and may have done what was asked nevertheless.
_TROUBLE = frozenset(
    {
        "fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org",
        "org_login_required",
    }
)  # fmt: skip
_TOO_MANY = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})


class SlackRefused(AdapterError):
    """Slack refused a call; the meaning depends on the call."""

    def __init__(self, message: str, *, error: str, needed: str = "") -> None:
        super().__init__(message)
        self.error = error
        self.needed = needed
        """The missing scope, if that is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackAnswer:
    """The answer to a call, the token's scopes, and the server's time."""

    told: Raw
    scopes: frozenset[str]
    date: datetime | None


class SlackClient:
    """The Web API calls of one app."""

    def __init__(
        self,
        http: HttpClient,
        clock: Clock,
        *,
        api_url: str,
        bot_token: Secret,
        app_token: Secret | None,
        works: Callable[[], None],
    ) -> None:
        """`works` is called with each successful call with the bot token."""
        self.clock = clock
        self._works = works
        self._http = http
        self._api_url = api_url.rstrip("/")
        self._bot_token = bot_token
        self._app_token = app_token

    def now(self) -> datetime:
        """The local time, for answers without a date."""
        return self.clock.now()

    async def call(self, method: str, fields: Mapping[str, object] | None = None) -> Raw:
        """Call a method."""
        return (await self.ask(method, fields)).told

    async def ask(
        self, method: str, fields: Mapping[str, object] | None = None, *, as_app: bool = False
    ) -> SlackAnswer:
        """Call a method and return its headers' facts too; `as_app` uses the app-level token."""
        given = {name: value for name, value in (fields or {}).items() if value is not None}
        token = self._app_token if as_app else self._bot_token
        if token is None:
            raise Unauthorized("app_token is missing, which Socket Mode needs")
        takes_json = method in _TAKE_JSON
        body = json_format.dumps(given, ensure_ascii=False) if takes_json else urlencode(_as_form(given))
        bearer, kind = {"Authorization": f"Bearer {token.reveal()}"}, {"Content-Type": JSON if takes_json else FORM}
        url, sent = f"{self._api_url}/{method}", body.encode(errors="replace")
        async with self._http.request("POST", url, headers=bearer | kind, body=sent, timeout=CALL_SECONDS) as answer:
            if method not in _QUESTIONS or answer.status not in _NO_POST:
                return await self._answered(method, answer, counts=not as_app)
        async with self._http.request("GET", f"{url}?{body}", headers=bearer, timeout=CALL_SECONDS) as answer:
            return await self._answered(method, answer, counts=not as_app)

    async def upload(self, url: str, body: AsyncIterator[bytes], size: int) -> None:
        """Upload a file's bytes to Slack's URL, which is the credential; no token is sent."""
        seconds = CALL_SECONDS + size / SLOWEST_BYTES_A_SECOND
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        async with self._http.request("POST", url, headers=headers, body=body, timeout=seconds) as answer:
            if answer.status != 200:
                refusal = error_for(answer.status, answer.headers, now=self.clock.now())
                raise refusal or AdapterError(f"Slack did not take the file (status {answer.status})")

    def file(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
        """GET a private link; the token is sent to Slack's own hosts only."""
        bearer = {"Authorization": f"Bearer {self._bot_token.reveal()}"}
        return self._http.request("GET", url, headers={**headers, **bearer}, timeout=CALL_SECONDS)

    async def _answered(self, method: str, answer: HttpAnswer, *, counts: bool) -> SlackAnswer:
        try:
            told = from_json(await answer.read(ANSWER_BYTES))
        except MediaTooLarge:
            raise AdapterError(f"Slack's answer to {method} is over {ANSWER_BYTES} bytes") from None
        if told.get("ok") is not True:
            raise self._error(method, answer, told)
        if counts:
            self._works()
        scopes = header(answer.headers, "x-oauth-scopes").split(",")
        return SlackAnswer(
            told=told,
            scopes=frozenset(scope.strip() for scope in scopes if scope.strip()),
            date=http_date(header(answer.headers, "date")),
        )

    def _error(self, method: str, answer: HttpAnswer, told: Raw) -> AdapterError:
        error = redact(line(told, "error", most=100))
        if answer.status == 429 or error in _TOO_MANY:
            wait = retry_after(answer.headers, now=self.clock.now())
            wait = DEFAULT_RETRY_AFTER if wait is None else wait
            return RateLimited(f"Slack asks to wait {wait:g} seconds before {method}", retry_after=wait)
        if error in _UNAUTHORIZED:
            return Unauthorized(f"Slack does not accept this token ({error}); copy it again from api.slack.com/apps")
        if error in _TROUBLE or answer.status >= 500:
            return Unanswered(f"Slack failed at {method} ({error or f'status {answer.status}'})")
        if not error:
            failed = error_for(answer.status, answer.headers, now=self.clock.now())
            return failed or Unanswered(f"Slack's answer to {method} cannot be read")
        needed = line(told, "needed", most=200)
        says = f"the scope {needed} is missing" if error == "missing_scope" and needed else error
        return SlackRefused(f"Slack refused {method}: {says}", error=error, needed=needed)


def _as_form(fields: Mapping[str, object]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json_format.dumps(value, ensure_ascii=False)
        for name, value in fields.items()
    }
