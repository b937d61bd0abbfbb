"""REST client: calls with the bot's token, refused calls as errors, and the rate limits of routes."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from math import isfinite
from urllib.parse import quote, urlencode

from belino.domain.errors import AdapterError, MediaTooLarge, PlaceClosed, RateLimited, Unauthorized, Undeliverable
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.domain.reply import SLOWEST_BYTES_A_SECOND
from belino.net.client import DEFAULT_RETRY_AFTER, LONGEST_WAIT, error_for, header, retry_after
from belino.net.json_fields import NOTHING, Raw, as_table, line, measure, table, whole
from belino.net.redact import Secret, redact
from belino.net.rest import Form, RateLimits, as_upload_errors

CALL_SECONDS = 30.0
# Answers to interactions do not count for the global limit: the sender of a command waits three seconds.
UNCOUNTED = "/interactions/"
# Statuses of a proxy in front of Discord, which may be temporary.
PASSING = frozenset({403, 408})
# A hundred messages of maximum length with embeds are about 4 MB.
ANSWER_BYTES = 16 * 1024 * 1024
# Discord requires this form of User-Agent and blocks clients without it.
USER_AGENT = "DiscordBot (https://belino.invalid, 1)"

NOT_PERMITTED = 50013
UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, UNKNOWN_EMOJI = 10003, 10008, 10014
INVALID_FORM = 50035
VOICE_REFUSED = frozenset({50159, 50160, 50161, 50173})
# Deleted, not our own, or a system message; in an archived thread, or edited too often.
NOT_TO_EDIT = frozenset({UNKNOWN_MESSAGE, 50005, 50021, 50083, 30046})
# The message replied to is deleted, or the bot cannot read earlier messages.
REPLY_REFUSED = frozenset({UNKNOWN_MESSAGE, 160002})
# Deleted, archived and locked, or locked; a channel that is gone has no parent to go to.
CLOSED_THREAD = frozenset({UNKNOWN_CHANNEL, 50083, 160005})
_SENTENCES = {
    UNKNOWN_CHANNEL: "the channel or thread is gone",
    UNKNOWN_MESSAGE: "the message is gone",
    20026: "Discord marked this bot's messages as spam",
    30010: "the message has as many kinds of reactions as Discord allows",
    40005: "Discord takes no file that large here",
    50001: "the bot does not see this channel; invite it there, or give its role View Channel",
    50007: "this person takes no direct messages from the bot",
    50008: "this channel takes no text",
    NOT_PERMITTED: "the bot may not do this here; its role needs Send Messages, Attach Files and Read Message History",
    50083: "the thread is archived and locked",
    160005: "the thread is locked",
    200000: "the server's moderation rules block this text",
    400001: "Discord takes no files in this server for now",
    240000: "Discord blocks a link in this text",
}


class DiscordClient:
    """The REST calls of one bot."""

    def __init__(
        self,
        http: HttpClient,
        clock: Clock,
        *,
        api_url: str,
        token: Secret,
        works: Callable[[], None] = lambda: None,
    ) -> None:
        """`works` is called with each successful call."""
        self._http = http
        self._clock = clock
        self._api_url = api_url.rstrip("/")
        self._token = token
        self._works = works
        self._limits = RateLimits("Discord", clock)

    def now(self) -> datetime:
        """The local time, for answers without a date."""
        return self._clock.now()

    async def call(
        self, method: str, route: str, *ids: str, query: Mapping[str, object] | None = None, fields: object = None
    ) -> object:
        """Call a route like `/channels/{}/messages`; its rate limit is counted by the first id."""
        return await self._ask(method, route, ids, query=query, fields=fields)

    async def upload(self, route: str, *ids: str, form: Form) -> object:
        """POST with files."""
        with as_upload_errors(form):
            return await self._ask("POST", route, ids, form=form)

    def file(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
        """GET a file, without the token."""
        return self._http.request("GET", url, headers=headers, timeout=CALL_SECONDS)

    async def _ask(
        self,
        method: str,
        route: str,
        ids: tuple[str, ...],
        *,
        query: Mapping[str, object] | None = None,
        fields: object = None,
        form: Form | None = None,
    ) -> object:
        bucket = f"{method} {route} {ids[0] if ids else ''}"
        self._limits.check(bucket, counts=not route.startswith(UNCOUNTED))
        url = self._api_url + route.format(*(quote(each, safe="") for each in ids))
        headers = {"Authorization": f"Bot {self._token.reveal()}", "User-Agent": USER_AGENT}
        seconds = CALL_SECONDS + (form.length / SLOWEST_BYTES_A_SECOND if form is not None else 0.0)
        async with self._http.request(
            method,
            f"{url}?{urlencode(query)}" if query else url,
            headers={**headers, **(form.headers if form is not None else {})},
            json=fields,
            body=None if form is None else form.chunks(),
            timeout=seconds,
        ) as answer:
            return await self._answered(f"{method} {route}", bucket, answer)

    async def _answered(self, what: str, bucket: str, answer: HttpAnswer) -> object:
        try:
            body = await answer.read(ANSWER_BYTES)
        except MediaTooLarge:
            raise AdapterError(f"Discord's answer to {what} is over {ANSWER_BYTES} bytes") from None
        self._learn(bucket, answer.headers)
        told, readable = _read(body)
        if answer.status >= 400:
            raise self._error(what, bucket, answer, as_table(told) if readable else None)
        if not readable and answer.status != 204:
            raise AdapterError(f"Discord's answer to {what} cannot be read")
        self._works()
        return told

    def _learn(self, bucket: str, headers: Mapping[str, str]) -> None:
        """Close a bucket that is empty by the answer's headers. Buckets are learned from answers, never assumed."""
        after = _seconds(header(headers, "x-ratelimit-reset-after"))
        if header(headers, "x-ratelimit-remaining") == "0" and after is not None:
            self._limits.close(bucket, after)

    def _error(self, what: str, bucket: str, answer: HttpAnswer, told: Raw | None) -> AdapterError:
        status = answer.status
        if status == 429:
            return self._limited(what, bucket, answer, told or NOTHING)
        if status == 401:
            return Unauthorized(
                "Discord does not know this bot token; reset it in the developer portal and set the new one"
            )
        if status >= 500:
            return error_for(status, answer.headers, now=self._clock.now()) or AdapterError(f"{what} failed")
        if told is None and status in PASSING:
            return AdapterError(f"{what} was answered by a proxy before Discord, with status {status}")
        told = told or NOTHING
        description = redact(line(told, "message"))
        return DiscordRefused(
            f"Discord refused {what}: {description or f'status {status}'}",
            status=status,
            code=whole(told, "code") or 0,
            description=description,
            fields=frozenset(table(told, "errors")),
        )

    def _limited(self, what: str, bucket: str, answer: HttpAnswer, told: Raw) -> RateLimited:
        """How long to wait: the body says so to the millisecond, a proxy's error page in a header."""
        wait = measure(told, "retry_after")
        if wait is None:
            wait = retry_after(answer.headers, now=self._clock.now())
        wait = min(DEFAULT_RETRY_AFTER if wait is None else wait, LONGEST_WAIT)
        scope = answer.headers.get("X-RateLimit-Scope", "")
        everything = told.get("global") is True or scope == "global" or "retry_after" not in told
        self._limits.close(bucket, wait, everything=everything)
        return RateLimited(f"Discord asks to wait {wait:g} seconds before {what}", retry_after=wait)


def _read(body: bytes) -> tuple[object, bool]:
    """The JSON of an answer; empty for a proxy's error page, whose status is enough."""
    try:
        return json.loads(body), True
    except (ValueError, RecursionError):
        return None, False


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if isfinite(seconds) else None


class DiscordRefused(AdapterError):
    """Discord refused a call; the meaning depends on the call."""

    def __init__(
        self, message: str, *, status: int, code: int, description: str, fields: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """The JSON error code of Discord's list."""
        self.description = description
        self.fields = fields
        """The names of the invalid fields."""


def refusal(error: DiscordRefused, *, in_thread: bool = False) -> Undeliverable:
    """A refused call as a domain error; without the permission for a thread, its channel may still accept it."""
    if error.status == 413:
        return Undeliverable(_SENTENCES[40005])
    if in_thread and error.code == NOT_PERMITTED:
        return PlaceClosed("the bot may not write in this thread; its role needs Send Messages in Threads")
    known = _SENTENCES.get(error.code)
    if known and error.code in CLOSED_THREAD:
        return PlaceClosed(known)
    return Undeliverable(known or f"Discord will not deliver it: {error.description or error.status}")


def has_nothing_to_edit(error: DiscordRefused) -> bool:
    """Whether the message to edit is deleted or no longer editable."""
    return error.code in NOT_TO_EDIT


def refuses_reply(error: DiscordRefused) -> bool:
    """Whether the message can be sent without the reply."""
    return error.code in REPLY_REFUSED or (error.code == INVALID_FORM and "message_reference" in error.fields)


def refuses_voice(error: DiscordRefused) -> bool:
    """Whether a sound can be sent as a plain file."""
    return error.code in VOICE_REFUSED
