"""Client of the signal-cli daemon: JSON-RPC calls, files written into them, and files read out of their answers."""

import base64
import binascii
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode

from belino.adapters.signal.errors import LINK, error_of
from belino.domain.errors import AdapterError, MediaTooLarge, Unanswered, Unauthorized, Undeliverable, Unreached
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.domain.reply import SLOWEST_BYTES_A_SECOND, OutgoingFile
from belino.net.client import error_for, header, http_date
from belino.net.json_fields import Raw, as_table, from_json, table
from belino.net.rest import FileBody, as_upload_errors

CALL_SECONDS = 30.0
# A group of a thousand members with their labels, in the longest list.
ANSWER_BYTES = 32 * 1024 * 1024
HEAD_BYTES = 64 * 1024
# The daemon writes a comment every 15 seconds.
SILENCE_SECONDS = 45.0

_JSON = "application/json"
_DATA = re.compile(rb'"data"\s*:\s*"')
_FILES = "\x00files"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalAnswer:
    """The result of a call, and the daemon's time."""

    result: object
    date: datetime | None


class SignalClient:
    """The calls of one account; `account` is empty where the daemon has only one."""

    def __init__(self, http: HttpClient, clock: Clock, *, url: str, account: str, works: Callable[[], None]) -> None:
        """`works` is called with each successful call."""
        self.clock = clock
        self.account = account
        self._http = http
        self._url = url.rstrip("/")
        self._works = works

    async def call(self, method: str, params: Mapping[str, object] | None = None, *, wait: float = 0.0) -> object:
        """Call a method; `wait` is how long the daemon may take for it."""
        return (await self.ask(method, params, wait=wait)).result

    async def ask(
        self, method: str, params: Mapping[str, object] | None = None, *, wait: float = 0.0, own: bool = True
    ) -> SignalAnswer:
        """`own`: the method is one of an account's."""
        body = json.dumps(self._request(method, params or {}, own=own)).encode()
        async with self._post(body, {"Content-Type": _JSON}, wait) as answer:
            return await self._answered(method, answer)

    async def look(self, method: str, params: Mapping[str, object] | None = None) -> object:
        """Call a method that changes nothing: without an answer nothing has happened."""
        try:
            return await self.call(method, params)
        except Unanswered as error:
            raise Unreached(str(error)) from error

    async def upload(self, method: str, params: Mapping[str, object], files: Sequence[OutgoingFile]) -> object:
        """Call a method with files as its attachments, written into the request as they are read."""
        body = AttachmentBody(self._request(method, {**params, "attachments": [_FILES]}, own=True), files)
        with as_upload_errors(body):
            async with self._post(body.chunks(), body.headers, body.length / SLOWEST_BYTES_A_SECOND) as answer:
                return (await self._answered(method, answer)).result

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
            yield decoded(head[found.end() :], chunks)

    def events(self) -> AbstractAsyncContextManager[HttpAnswer]:
        """The stream of events; an account that the daemon does not serve is refused with 400."""
        query = f"?{urlencode({'account': self.account})}" if self.account else ""
        headers = {"Accept": "text/event-stream"}
        return self._http.request("GET", f"{self._url}/api/v1/events{query}", headers=headers, timeout=SILENCE_SECONDS)

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

    async def _answered(self, method: str, answer: HttpAnswer) -> SignalAnswer:
        try:
            told = from_json(await answer.read(ANSWER_BYTES))
        except MediaTooLarge:
            raise Unanswered(f"signal-cli's answer to {method} is over {ANSWER_BYTES} bytes") from None
        if "result" not in told:
            raise self._error(method, answer, told)
        self._works()
        return SignalAnswer(result=told["result"], date=http_date(header(answer.headers, "date")))

    def _error(self, method: str, answer: HttpAnswer, told: Raw) -> AdapterError:
        if raw := table(told, "error"):
            return error_of(method, as_table(raw))
        failed = error_for(answer.status, answer.headers, now=self.clock.now())
        if answer.status == 421:
            return AdapterError("the daemon refuses this name of its host; name it in url as in its --http")
        return failed or Unanswered(f"signal-cli's answer to {method} cannot be read")


def not_served(status: int) -> AdapterError | None:
    """The error of a refused stream of events."""
    if status == 400:
        return Unauthorized(f"the daemon does not serve this account; {LINK}")
    return AdapterError(f"the daemon hands out no events (status {status})") if status != 200 else None


async def decoded(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The bytes of a base64 text that ends with a quotation mark."""
    left, piece = b"", first
    while True:
        text, mark, _ = piece.partition(b'"')
        text = left + text.replace(b"\\", b"")
        whole = len(text) if mark else len(text) - len(text) % 4
        left = text[whole:]
        try:
            if whole:
                yield binascii.a2b_base64(text[:whole], strict_mode=True)
        except binascii.Error:
            raise AdapterError("signal-cli's file cannot be read: it is no base64") from None
        if mark:
            return
        if not (piece := await anext(chunks, b"")):
            raise AdapterError("signal-cli's answer broke off in the middle of the file")


class AttachmentBody:
    """A call with files as data URIs (RFC 2397), encoded as they are read, of a length known in advance."""

    def __init__(self, request: Mapping[str, object], files: Sequence[OutgoingFile]) -> None:
        before, _, after = json.dumps(request).partition(json.dumps(_FILES))
        self._before, self._after = before.encode(), after.encode()
        self._files = [(f'"{data_uri(file)}'.encode(), file) for file in files]
        self.trouble: Undeliverable | None = None
        self.written = False

    @property
    def length(self) -> int:
        """How many bytes `chunks` yields."""
        inside = sum(len(head) + (file.size + 2) // 3 * 4 + 1 for head, file in self._files)
        return len(self._before) + inside + len(self._files) - 1 + len(self._after)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Content-Type": _JSON, "Content-Length": str(self.length)}

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body, piece by piece."""
        yield self._before
        for number, (head, file) in enumerate(self._files):
            yield b"," + head if number else head
            body, left = FileBody(file), b""
            try:
                async for piece in body.chunks():
                    data = left + piece
                    whole = len(data) - len(data) % 3
                    left = data[whole:]
                    yield base64.b64encode(data[:whole])
            finally:
                self.trouble = body.trouble
            yield base64.b64encode(left) + b'"'
        self.written = True
        yield self._after


def data_uri(file: OutgoingFile) -> str:
    """The beginning of a file's data URI; the daemon decodes the name as in an address."""
    return f"data:{file.mime.partition(';')[0]};filename={quote(file.name, safe='')};base64,"
