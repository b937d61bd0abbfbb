"""Client of the signal-cli daemon: JSON-RPC calls, files written into them, and files read out of their answers."""

import json
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from urllib.parse import urlencode

from belino.adapters.signal.errors import LINK, error_of
from belino.domain.errors import AdapterError, Unanswered, Unauthorized
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.domain.reply import SLOWEST_BYTES_A_SECOND, OutgoingFile
from belino.net.client import error_for, header, http_date
from belino.net.json_fields import Raw, as_table, from_json, table
from belino.net.rest import FILES, JsonFiles, as_upload_errors, changing_nothing, read_answer
from belino.net.stream import base64_decoded, sent_events

CALL_SECONDS = 30.0
# A group of a thousand members with their labels, in the longest list.
ANSWER_BYTES = 32 * 1024 * 1024
HEAD_BYTES = 64 * 1024
# The daemon writes a comment every 15 seconds.
SILENCE_SECONDS = 45.0

_JSON = "application/json"
_DATA = re.compile(rb'"data"\s*:\s*"')


class SignalClient:
    """The calls of one account; `account` is empty where the daemon has only one."""

    def __init__(self, http: HttpClient, clock: Clock, *, url: str, account: str, works: Callable[[], None]) -> None:
        """`works` is called with each successful call."""
        self.clock = clock
        self.account = account
        self._http = http
        self._url = url.rstrip("/")
        self._works = works

    async def call(
        self, method: str, params: Mapping[str, object] | None = None, *, wait: float = 0.0, own: bool = True
    ) -> object:
        """Call a method, of an account if `own`; `wait` is how long the daemon may take for it."""
        body = json.dumps(self._request(method, params or {}, own=own)).encode()
        async with self._post(body, {"Content-Type": _JSON}, wait) as answer:
            return await self._answered(method, answer)

    async def look(self, method: str, params: Mapping[str, object] | None = None) -> object:
        """Call a method that changes nothing: without an answer nothing has happened."""
        with changing_nothing():
            return await self.call(method, params)

    async def upload(self, method: str, params: Mapping[str, object], files: Sequence[OutgoingFile]) -> object:
        """Call a method with files as its attachments, written into the request as they are read."""
        body = JsonFiles(self._request(method, {**params, "attachments": [FILES]}, own=True), files)
        with as_upload_errors(body):
            async with self._post(body.chunks(), body.headers, body.length / SLOWEST_BYTES_A_SECOND) as answer:
                return await self._answered(method, answer)

    @asynccontextmanager
    async def open_file(self, method: str, params: Mapping[str, object]) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a file that a call returns, decoded as they arrive; they are never held as a whole."""
        body = json.dumps(self._request(method, params, own=True)).encode()
        async with self._post(body, {"Content-Type": _JSON}, 0.0) as answer:
            chunks, head, found = answer.chunks(), b"", None
            while answer.status == 200 and found is None and len(head) < HEAD_BYTES:
                if not (piece := await anext(chunks, b"")):
                    break
                head += piece
                found = _DATA.search(head)
            if found is None:
                raise self._error(method, answer, from_json(head))
            self._works()
            yield base64_decoded(head[found.end() :], chunks)

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """The stream of events, each as JSON."""
        query = f"?{urlencode({'account': self.account})}" if self.account else ""
        headers = {"Accept": "text/event-stream"}
        async with self._http.request(
            "GET", f"{self._url}/api/v1/events{query}", headers=headers, timeout=SILENCE_SECONDS
        ) as answer:
            if answer.status == 400:
                raise Unauthorized(f"the daemon does not serve this account; {LINK}")
            if answer.status != 200:
                raise AdapterError(f"the daemon hands out no events (status {answer.status})")
            yield sent_events(answer.chunks())

    async def check(self) -> datetime | None:
        """The daemon's time, if it runs."""
        async with self._http.request("GET", f"{self._url}/api/v1/check", timeout=CALL_SECONDS) as answer:
            if (error := error_for(answer.status, answer.headers, now=self.clock.now())) is not None:
                raise error
            return http_date(header(answer.headers, "date"))

    def _request(self, method: str, params: Mapping[str, object], *, own: bool) -> dict[str, object]:
        named = {"account": self.account} if self.account and own else {}
        return {"jsonrpc": "2.0", "id": secrets.token_hex(8), "method": method, "params": {**named, **params}}

    def _post(
        self, body: bytes | AsyncIterator[bytes], headers: Mapping[str, str], wait: float
    ) -> AbstractAsyncContextManager[HttpAnswer]:
        url = f"{self._url}/api/v1/rpc"
        return self._http.request("POST", url, headers=headers, body=body, timeout=CALL_SECONDS + wait)

    async def _answered(self, method: str, answer: HttpAnswer) -> object:
        told = from_json(await read_answer(answer, limit=ANSWER_BYTES, whose=f"signal-cli's answer to {method}"))
        if "result" not in told:
            raise self._error(method, answer, told)
        self._works()
        return told["result"]

    def _error(self, method: str, answer: HttpAnswer, told: Raw) -> AdapterError:
        if raw := table(told, "error"):
            return error_of(method, as_table(raw))
        failed = error_for(answer.status, answer.headers, now=self.clock.now())
        if answer.status == 421:
            return AdapterError("the daemon refuses this name of its host; name it in url as in its --http")
        return failed or Unanswered(f"signal-cli's answer to {method} cannot be read")
