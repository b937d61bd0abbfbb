"""Model APIs over HTTP: requests that stream their files from disk, bounded answers, and errors without content.

No error contains the key, an address, or anything that was sent or read: of an error body only the code is shown, where
it looks like one.
"""

import asyncio
import json
import re
import secrets
from binascii import b2a_base64
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from belino.aio.deadline import deadline
from belino.domain.errors import (
    AdapterError,
    AddressRefused,
    MediaError,
    MediaRefused,
    MediaTooLarge,
    ProviderError,
    RateLimited,
    Unauthorized,
)
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.domain.reading import Material
from belino.domain.reply import OutgoingFile
from belino.net.client import DEFAULT_RETRY_AFTER, header, retry_after
from belino.net.guard import host_of, parse_url
from belino.net.json_fields import NOTHING, Raw, from_json, mime, table, tables, words
from belino.net.redact import Secret, redact
from belino.net.rest import FileBody, check_base_url

ANSWER_BYTES = 5 * 1024 * 1024
ERROR_BYTES = 64 * 1024
# A multiple of three: base64 of the pieces is then base64 of the whole.
PIECE = 3 * 256 * 1024

# "No credit" counts too: another key may have some.
REFUSED_KEY = frozenset({401, 402, 403})
KEY_CODES = frozenset({"API_KEY_INVALID", "invalid_api_key", "authentication_error", "INVALID_AUTH"})
BUSY = frozenset({429, 529})

NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_CODE = re.compile(r"[A-Za-z]+(?:[_.-][A-Za-z]+)*")
_LONGEST_CODE = 64
_DELAY = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
_ENDINGS = {
    "audio/flac": "flac",
    "audio/wav": "wav",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteConfig:
    """What the settings of every remote provider contain."""

    model: str | None = field(default=None, metadata={"says": "The model; if unset, the provider's default."})
    base_url: str = field(default="", metadata={"says": "The URL of the API."})
    key: Secret | None = field(
        default=None, metadata={"says": "The key, if it is not in a profile; a server of your own may need none."}
    )

    def __post_init__(self) -> None:
        check_base_url("base_url", self.base_url)


def hosts(config: RemoteConfig) -> tuple[str, ...]:
    """The host that gets the key and the media. One that the operator named with its port may be private."""
    return (host_of(config.base_url),)


def file_name(material: Material) -> str:
    """A name for an upload: APIs recognise the type by its ending; the sender's own name is not sent."""
    kind, _, subtype = material.mime.partition("/")
    return f"{kind}.{_ENDINGS.get(material.mime, subtype)}"


class RequestBody(Protocol):
    """The body of a request, written piece by piece."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def trouble(self) -> AdapterError | None:
        """Why it could not be written."""
        ...

    def chunks(self) -> AsyncIterator[bytes]: ...


class FileUpload:
    """A file as the whole body."""

    def __init__(self, material: Material) -> None:
        self._body = FileBody(outgoing(material))
        self.headers = {"Content-Type": material.mime, "Content-Length": str(material.size)}

    @property
    def trouble(self) -> AdapterError | None:
        return self._body.trouble

    def chunks(self) -> AsyncIterator[bytes]:
        return self._body.chunks()


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineFile:
    """A file inside a JSON body: it stands for a string of its base64, after `prefix`."""

    material: Material
    prefix: str = ""

    @property
    def length(self) -> int:
        return len(self.prefix) + (self.material.size + 2) // 3 * 4


def data_url(material: Material) -> InlineFile:
    """A file as a data URL."""
    return InlineFile(material=material, prefix=f"data:{material.mime};base64,")


class JsonBody:
    """A JSON value whose files are encoded while they are sent; its length is known in advance."""

    def __init__(self, value: object) -> None:
        self._files: list[InlineFile] = []
        self._mark = f"file-{secrets.token_hex(16)}"
        text = json.dumps(value, ensure_ascii=False, default=self._note)
        self._parts = [part.encode(errors="replace") for part in text.split(self._mark)]
        length = sum(map(len, self._parts)) + sum(file.length for file in self._files)
        self.headers = {"Content-Type": "application/json", "Content-Length": str(length)}
        self.trouble: AdapterError | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._parts[0]
        for file, part in zip(self._files, self._parts[1:], strict=True):
            yield file.prefix.encode()
            body = FileBody(outgoing(file.material))
            try:
                async for piece in body.chunks():
                    yield b2a_base64(piece, newline=False)
            finally:
                self.trouble = body.trouble
            yield part

    def _note(self, value: object) -> str:
        if not isinstance(value, InlineFile):
            raise TypeError(f"{type(value).__name__} is not JSON")
        self._files.append(value)
        return self._mark


def outgoing(material: Material) -> OutgoingFile:
    """A material as a file to send."""
    return OutgoingFile(
        name=file_name(material),
        mime=material.mime,
        size=material.size,
        sha256="",
        chunks=lambda: _pieces(material.path),
    )


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece
    except OSError as error:
        raise MediaRefused(f"the file cannot be opened ({type(error).__name__})") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """A complete answer that is not an error."""

    headers: Mapping[str, str]
    body: bytes


class ApiContext(Protocol):
    """The part of a provider's context that calls need."""

    @property
    def http(self) -> HttpClient: ...

    @property
    def clock(self) -> Clock: ...


def bearer(key: str) -> Mapping[str, str]:
    """The header of a key, as most APIs expect it."""
    return {"Authorization": f"Bearer {key}"}


class ModelApi:
    """One API with one key: makes calls, and raises ProviderError, RateLimited or Unauthorized."""

    def __init__(
        self,
        name: str,
        config: RemoteConfig,
        context: ApiContext,
        *,
        own_url: str,
        sign: Callable[[str], Mapping[str, str]] = bearer,
        task: str = "read this",
    ) -> None:
        """`sign` makes the headers of a key; at `own_url` a key is required; `task` names in errors what it does."""
        self.name = name
        self.base_url = config.base_url.rstrip("/")
        self.is_official = self.base_url == own_url
        self._key = config.key
        self._http = context.http
        self._clock = context.clock
        self._sign = sign
        self._task = task

    def __repr__(self) -> str:
        return f"ModelApi({self.name!r})"

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """A time limit for all calls of a reading; ProviderError when it is over."""
        try:
            async with deadline(self._clock, seconds):
                yield
        except TimeoutError:
            raise ProviderError(f"{self.name} did not finish within {seconds:g} seconds") from None

    async def post(
        self, path: str, body: RequestBody, *, seconds: float, headers: Mapping[str, str] = NO_HEADERS
    ) -> Raw:
        """The JSON object that answers a POST."""
        return self.parsed(await self.call("POST", path, body, seconds=seconds, headers=headers))

    async def get(self, path: str, *, seconds: float) -> Raw:
        """The JSON object that answers a GET."""
        return self.parsed(await self.call("GET", path, None, seconds=seconds))

    async def call(
        self,
        method: str,
        path: str,
        body: RequestBody | None,
        *,
        seconds: float,
        headers: Mapping[str, str] = NO_HEADERS,
        fine: frozenset[int] = frozenset(),
        most_bytes: int = ANSWER_BYTES,
    ) -> ApiAnswer:
        """One call; `path` may be a whole URL, checked with `is_own`; the statuses in `fine` are no error."""
        url = path if "://" in path else f"{self.base_url}{path}"
        sent = {**self._signed(), "Accept": "application/json", **(body.headers if body else {}), **headers}
        with self._as_provider_errors(body, most_bytes):
            chunks = None if body is None else body.chunks()
            async with self._http.request(method, url, headers=sent, body=chunks, timeout=seconds) as answer:
                if answer.status >= 300 and answer.status not in fine:
                    raise self.refusal(answer.status, answer.headers, await _error_body(answer))
                return ApiAnswer(headers=answer.headers, body=await answer.read(most_bytes))

    def is_own(self, url: str) -> bool:
        """Whether a URL that the API returned is at its own host."""
        try:
            return parse_url(url).origin == parse_url(self.base_url).origin
        except AddressRefused:
            return False

    def parsed(self, answer: ApiAnswer) -> Raw:
        """The JSON object of an answer."""
        kind = _mime(answer.headers)
        if not kind.endswith("json"):
            raise self.error(f"it answered with {kind} instead of JSON")
        if not answer.body.strip():
            raise self.error("its answer is empty")
        try:
            value = json.loads(answer.body)
        except (ValueError, RecursionError):
            raise self.error("its answer is not valid JSON, or breaks off") from None
        if not isinstance(value, dict):
            raise self.error("its answer is not a JSON object")
        return value

    def error(self, why: str) -> ProviderError:
        """The error of this API, in a sentence that contains nothing of its answer."""
        return ProviderError(f"{self.name} cannot {self._task}: {why}")

    def check_sizes(self, material: Sequence[Material], most: int) -> None:
        """Refuse files that the API would refuse, before they are sent."""
        largest = max((file.size for file in material), default=0)
        if self.is_official and largest > most:
            raise self.error(f"the file is {largest} bytes, and at most {most} are accepted; send a smaller part")

    def _signed(self) -> Mapping[str, str]:
        if self._key is not None:
            return self._sign(self._key.reveal())
        if self.is_official:
            raise Unauthorized(f"{self.name} needs a key; set `profile`, `key` or its environment variable")
        return NO_HEADERS

    @contextmanager
    def _as_provider_errors(self, body: RequestBody | None, most_bytes: int) -> Iterator[None]:
        try:
            yield
        except (RateLimited, Unauthorized):
            raise
        except MediaTooLarge:
            raise self.error(f"its answer is over {most_bytes} bytes") from None
        except (AdapterError, MediaError) as error:
            trouble = body.trouble if body is not None else None
            raise ProviderError(f"{self.name} gave no answer: {trouble or error}") from None

    def refusal(self, status: int, headers: Mapping[str, str], body: Raw) -> ProviderError | RateLimited | Unauthorized:
        """The error for a status and its body."""
        codes = [*_codes(body)]
        told = ", ".join([f"status {status}", *codes[:1]])
        if status in REFUSED_KEY or KEY_CODES.intersection(codes):
            return Unauthorized(f"{self.name} refused the key ({told}); check its profile and the account's credit")
        wait = _wait(headers, body, self._clock.now())
        if status in BUSY or (status == 503 and wait is not None):
            wait = DEFAULT_RETRY_AFTER if wait is None else wait
            return RateLimited(f"{self.name} asks to wait {wait:g} seconds ({told})", retry_after=wait)
        return ProviderError(f"{self.name} refused the request ({told}){_REMEDIES.get(status, '')}")


_REMEDIES = {
    404: "; check `model` and `base_url`",
    413: "; the file is too large for it: set `max_bytes`",
    415: "; it does not accept files of this type",
}


def _mime(headers: Mapping[str, str]) -> str:
    return mime({"type": header(headers, "Content-Type")}, "type", "an unknown type")


async def _error_body(answer: HttpAnswer) -> Raw:
    """The error as JSON; empty if it is none."""
    if not _mime(answer.headers).endswith("json"):
        return NOTHING
    try:
        return from_json(await answer.read(ERROR_BYTES))
    except (AdapterError, MediaError):
        return NOTHING


def _codes(body: Raw) -> Iterator[str]:
    """The codes of an error body that are single words; a message may repeat the key or the content."""
    error = table(body, "error")
    said = [words(detail, "reason") for detail in tables(error, "details")]
    said += [words(error, key) for key in ("code", "status", "type")]
    said += [words(body, key) for key in ("err_code", "category", "code", "type")]
    for code in said:
        if len(code) <= _LONGEST_CODE and _CODE.fullmatch(code) and redact(code) == code:
            yield code


def _wait(headers: Mapping[str, str], body: Raw, now: datetime) -> float | None:
    wait = retry_after(headers, now=now)
    if wait is not None:
        return wait
    # Google has no header for it: https://cloud.google.com/apis/design/errors (RetryInfo)
    for detail in tables(table(body, "error"), "details"):
        if delay := _DELAY.fullmatch(words(detail, "retryDelay")):
            return float(delay[1])
    return None
