"""Client of the signal-cli daemon: JSON-RPC calls, files written into them, and files read out of their answers."""

import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from urllib.parse import urlencode

from belino.adapters.signal.errors import LINK, error_of
from belino.domain.errors import AdapterError, Unanswered, Unauthorized
from belino.domain.ports import AdapterContext, HttpAnswer
from belino.domain.reply import SLOWEST_BYTES_A_SECOND, OutgoingFile
from belino.net.client import error_for, header, http_date
from belino.net.json_fields import NOTHING, Raw, from_json, table
from belino.net.rest import FILES, JsonFiles, as_upload_errors, changing_nothing, read_answer
from belino.net.stream import base64_decoded, sent_events

API = "signal-cli"
CALL_SECONDS = 30.0
# A group of a thousand members with their labels, in the longest list.
ANSWER_BYTES = 32 * 1024 * 1024
HEAD_BYTES = 64 * 1024
# The daemon writes a comment every 15 seconds.
SILENCE_SECONDS = 45.0

_OF_NO_ACCOUNT = frozenset({"listAccounts", "version", "startLink", "finishLink"})
_SECONDS = {"finishLink": 300.0}  # until a person has scanned the code
_DATA = re.compile(rb'"data"\s*:\s*"')


class SignalClient:
    """The calls of one account; `account` is empty where the daemon has only one."""

    def __init__(self, context: AdapterContext, *, url: str, account: str) -> None:
        self.clock = context.clock
        self.account = account
        self._http = context.http
        self._url = url.rstrip("/")
        self._works = partial(context.report, API)

    async def call(self, method: str, params: Raw = NOTHING, files: Sequence[OutgoingFile] = ()) -> object:
        """Call a method, with files as its attachments, which are written into the request as they are read."""
        async with self._post(method, params, files) as answer:
            told = from_json(await read_answer(answer, limit=ANSWER_BYTES, whose=f"signal-cli's answer to {method}"))
            if "result" not in told:
                raise self._error(method, answer, told)
        self._works()
        return told["result"]

    async def look(self, method: str, params: Raw = NOTHING) -> object:
        """Call a method that changes nothing: without an answer nothing has happened."""
        with changing_nothing():
            return await self.call(method, params)

    @asynccontextmanager
    async def open_file(self, method: str, params: Raw) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a file that a call returns, decoded as they arrive; they are never held as a whole."""
        async with self._post(method, params) as answer:
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

    @asynccontextmanager
    async def _post(self, method: str, params: Raw, files: Sequence[OutgoingFile] = ()) -> AsyncIterator[HttpAnswer]:
        named = {"account": self.account} if self.account and method not in _OF_NO_ACCOUNT else {}
        told = {**named, **params, **({"attachments": [FILES]} if files else {})}
        request = {"jsonrpc": "2.0", "id": secrets.token_hex(8), "method": method, "params": told}
        url, body = f"{self._url}/api/v1/rpc", JsonFiles(request, files)
        seconds = _SECONDS.get(method, CALL_SECONDS) + body.length / SLOWEST_BYTES_A_SECOND
        with as_upload_errors(body):
            async with self._http.request(
                "POST", url, headers=body.headers, body=body.chunks(), timeout=seconds
            ) as answer:
                yield answer

    def _error(self, method: str, answer: HttpAnswer, told: Raw) -> AdapterError:
        if raw := table(told, "error"):
            return error_of(method, raw)
        failed = error_for(answer.status, answer.headers, now=self.clock.now())
        if answer.status == 421:
            return AdapterError("the daemon refuses this name of its host; name it in url as in its --http")
        return failed or Unanswered(f"signal-cli's answer to {method} cannot be read")
