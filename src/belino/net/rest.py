"""REST APIs and webhooks of platforms: URL checks, pace, rate limits, fresh-link downloads, findings, uploads."""

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from typing import ClassVar, Literal, Protocol, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

from belino.domain.errors import (
    AdapterError,
    ConfigError,
    MediaError,
    MediaTooLarge,
    RateLimited,
    Unanswered,
    Unauthorized,
    Undeliverable,
    Unreached,
)
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey
from belino.domain.outcome import Finding
from belino.domain.ports import Accept, Clock, Hook, HookAnswer, HttpAnswer
from belino.domain.reply import OutgoingFile
from belino.net.client import LONGEST_WAIT
from belino.net.redact import Secret, same_secret
from belino.net.stream import range_headers, resumed, retried, verified

# The longest wait for a turn; it also bounds how many calls wait.
QUEUE_SECONDS = 30.0
MINUTE = 60.0
MOST_LIMITED = 1_000
SKEW_SECONDS = 60.0
LONGEST_GROWN = 1_024.0
MOST_TAKEN = 10_000

FILES = "\x00files"

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Get = Callable[[str, Mapping[str, str]], AbstractAsyncContextManager[HttpAnswer]]
"""(link, headers) → the answer to its GET."""

_SPELLINGS = {"hex": re.compile(r"[0-9a-f]{64}"), "base64": re.compile(r"[A-Za-z0-9+/]{43}=")}
"""Those of a SHA-256."""

_CHALLENGE = re.compile(r"[\w.~-]{1,256}", re.ASCII)

# Browsers encode names this way (HTML, "multipart/form-data"): plain UTF-8, with quotes and line breaks escaped.
_QUOTED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A", "\0": ""})


def check_base_url(key: str, text: str, *, plain_nearby: bool = True) -> None:
    """Refuse a configured URL that would send the token in the clear, or hides another host in it."""
    try:
        url = urlsplit(text)
        name, _ = url.hostname or "", url.port
    except ValueError:
        raise ConfigError(f"{key} is not a URL; write https://host") from None
    if url.scheme not in ("https", "http") or not name or "@" in url.netloc or url.query or url.fragment:
        raise ConfigError(f"{key} must be https://host[:port][/path], without a login, ? or #")
    if url.scheme == "http" and not (plain_nearby and _is_nearby(name)):
        raise ConfigError(
            f"{key} must be encrypted (https, wss); plain http is for a server on this machine or network"
        )


def check_secret(key: str, secret: Secret | None, where: str) -> None:
    """Refuse a configured secret that is missing, or cannot be one; `where` says where it comes from."""
    text = "" if secret is None else secret.reveal()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigError(f"{key} is needed, as one word without spaces; {where}")


def hook_path(platform: str, account: str, *, base: str = "") -> str:
    """Where an account's platform calls us, below our own URL."""
    return f"{base.rstrip('/')}/hooks/{platform}/{quote(account, safe='')}"


def _is_nearby(name: str) -> bool:
    """Whether a name can only mean a local machine: a private address, or a name without a dot."""
    try:
        return not ip_address(name).is_global
    except ValueError:
        return "." not in name or name.endswith((".local", ".localhost", ".internal"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceConfig:
    """Rate limit of history calls."""

    calls_per_minute: int = field(
        default=40, metadata={"says": "How many history calls an account may make per minute.", "least": 1}
    )
    overflow: Literal["queue", "degrade"] = field(
        default="queue",
        metadata={
            "says": "Above that: `queue` waits for its turn, `degrade` answers from stored messages and says so."
        },
    )
    stale_minutes: int = field(
        default=60, metadata={"says": "The greatest age of stored messages that `degrade` uses instead of a call."}
    )


class Pace:
    """Limits one account's calls per minute, and makes none while its platform asks to wait."""

    def __init__(self, calls_per_minute: int, clock: Clock) -> None:
        self._clock = clock
        self._calls: deque[float] = deque()
        """The times of calls in the last minute and of waiting ones, in order."""
        self._allowed = calls_per_minute
        self._closed_until = 0.0

    @property
    def wait(self) -> float:
        """Seconds until a new call may be made; 0 if at once."""
        return max(self._next() - self._clock.monotonic(), 0.0)

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Make a call in its turn. RateLimited, and no call, if the wait is too long."""
        await self._turn()
        try:
            return await work()
        except RateLimited as error:
            self._closed_until = max(self._closed_until, self._clock.monotonic() + min(error.retry_after, LONGEST_WAIT))
            raise

    async def _turn(self) -> None:
        wait = self.wait
        if wait > QUEUE_SECONDS:
            raise RateLimited("too many calls wait for their turn", retry_after=wait)
        at = self._clock.monotonic() + wait
        self._calls.append(at)
        if not wait:
            return
        is_due = False
        try:
            await self._clock.sleep(wait)
            if (closed := self._closed_until - self._clock.monotonic()) > 0:  # an earlier call was asked to wait
                raise RateLimited("the platform asks for patience", retry_after=closed)
            is_due = True
        finally:
            if not is_due:
                self._calls.remove(at)  # a call that was not made frees its turn

    def _next(self) -> float:
        while self._calls and self._calls[0] + MINUTE <= self._clock.monotonic():
            self._calls.popleft()
        busy = self._calls[-self._allowed] + MINUTE if len(self._calls) >= self._allowed else 0.0
        return max(busy, self._closed_until)


class RateLimits:
    """Holds back calls that a platform would refuse: those under a closed key, or all of them."""

    def __init__(self, platform: str, clock: Clock, *, growth: float = 0.0) -> None:
        """Each further refusal of a key in a row closes it `growth` times as long, from a second on."""
        self._platform = platform
        self._clock = clock
        self._growth = growth
        self._in_a_row: Latest[str, int] = Latest()
        self._closed: dict[str, float] = {}
        self._all_closed = 0.0

    async def call(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Make a call. RateLimited, and no call, while its key is closed."""
        self.check(key)
        try:
            done = await work()
        except RateLimited as error:
            if error.is_global:
                self.close(key, error.retry_after, everything=True)
            else:
                error.retry_after = self.slow_down(key, error.retry_after)
            raise
        self._in_a_row.pop(key, None)
        return done

    def slow_down(self, key: str, least: float = 0.0) -> float:
        """Close a key that was refused for its pace. Returns for how many seconds."""
        times = self._in_a_row.get(key, 0)
        wait = max(least, min(self._growth ** min(times, 9), LONGEST_GROWN)) if self._growth else least
        self._in_a_row.keep(key, times + 1)
        self.close(key, wait)
        return wait

    def check(self, key: str, *, counts: bool = True) -> None:
        """RateLimited while the key is closed, or all are and the call `counts` for the global limit."""
        left = max(self._closed.get(key, 0.0), self._all_closed if counts else 0.0) - self._clock.monotonic()
        if left > 0:
            raise RateLimited(f"{self._platform} asks to wait {left:.3f} seconds", retry_after=left)

    def close(self, key: str, seconds: float, *, everything: bool = False) -> None:
        """Close this key, or all, for so many seconds."""
        now = self._clock.monotonic()
        until = now + min(max(seconds, 0.0), LONGEST_WAIT)
        if everything:
            self._all_closed = max(self._all_closed, until)
            return
        if len(self._closed) >= MOST_LIMITED:
            self._closed = {name: at for name, at in self._closed.items() if at > now}
        self._closed[key] = max(self._closed.get(key, 0.0), until)


class Latest(OrderedDict[K, V]):
    """The newest items by their keys; older ones are forgotten."""

    def __init__(self, most: int = MOST_LIMITED) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: K, value: V) -> None:
        """Remember an item as the newest."""
        self[key] = value
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)


class OnlyReactions:
    """Our reactions on a platform that shows one of ours to a message: a later one replaces it."""

    def __init__(self) -> None:
        self._shown: Latest[tuple[ConversationKey, str], str] = Latest()

    async def change(
        self, where: ConversationKey, message_id: str, emoji: str, *, added: bool, call: Callable[[], Awaitable[object]]
    ) -> None:
        """Make the call that sets or removes a reaction; one that another has replaced is not there any more."""
        place = (where, message_id)
        if not added and self._shown.get(place, emoji) != emoji:
            return
        await call()
        self._shown.pop(place, None)
        if added:
            self._shown.keep(place, emoji)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSignature:
    """How a platform signs its webhook calls: by an HMAC-SHA256 over the raw bytes.

    The same signature in another spelling does not count.
    """

    header: str
    """Its header, in lower case."""
    prefix: str = ""
    spelled: Literal["hex", "base64"] = "hex"

    def of(self, hook: Hook) -> str:
        """The signature of a call, as it is written there."""
        return hook.headers.get(self.header, "")

    def may_be(self, hook: Hook) -> bool:
        """Whether the header has the form of a signature."""
        told = self.of(hook)
        return told.startswith(self.prefix) and bool(_SPELLINGS[self.spelled].fullmatch(told[len(self.prefix) :]))

    def is_of(self, hook: Hook, secret: Secret | None, *, before: bytes = b"") -> bool:
        """Whether these very bytes, after those that are signed `before` them, were signed with the secret."""
        key = secret.reveal() if secret is not None else ""
        if not key or not self.may_be(hook):
            return False
        digest = hmac.new(key.encode(), before + hook.body, hashlib.sha256).digest()
        made = digest.hex() if self.spelled == "hex" else base64.b64encode(digest).decode()
        return same_secret(self.of(hook), f"{self.prefix}{made}")


class HookInbox:
    """Processes a platform's webhook calls one by one, in order, while its adapter runs."""

    def __init__(self) -> None:
        self._accept: Accept | None = None
        self._one_by_one = asyncio.Lock()
        self._taken: Latest[str, None] = Latest(MOST_TAKEN)
        """The signatures of calls that were stored."""

    @property
    def is_open(self) -> bool:
        """Whether calls are accepted."""
        return self._accept is not None

    async def run(self, accept: Accept) -> None:
        """Accept calls until cancelled."""
        self._accept = accept
        try:
            await asyncio.Event().wait()
        finally:
            self._accept = None

    def handshake(self, hook: Hook, token: Secret | None) -> HookAnswer:
        """The answer to who asks whether we expect calls, and knows the token.

        https://www.w3.org/TR/websub/#hub-verifies-intent
        """
        try:
            asked = dict(parse_qsl(hook.query, max_num_fields=20))
        except ValueError:
            return HookAnswer(status=400)
        challenge = asked.get("hub.challenge", "")
        if not same_secret(asked.get("hub.verify_token", ""), token.reveal() if token is not None else ""):
            return HookAnswer(status=403)
        if asked.get("hub.mode") != "subscribe" or not _CHALLENGE.fullmatch(challenge):
            return HookAnswer(status=400)
        return HookAnswer(status=200, body=challenge.encode())

    def has_taken(self, signature: str) -> bool:
        """Whether a call is a replay, or a repetition of one that was acknowledged."""
        return signature in self._taken

    async def take(self, work: Callable[[Accept], Awaitable[object]], *, signature: str = "") -> HookAnswer:
        """Process one call: 200 once its arrivals are committed, 503 while the adapter does not run."""
        async with self._one_by_one:
            if self._accept is None:
                return HookAnswer(status=503)
            await work(self._accept)
        self._taken.keep(signature, None)
        return HookAnswer(status=200)


class LinkedFile(ABC):
    """A file behind short-lived links: downloaded by a fresh one, resumed if it breaks off.

    A dead link is replaced once per request.
    """

    gone: ClassVar[frozenset[int]]
    """The statuses of an expired link."""
    lasts: ClassVar[bool] = False
    """Whether a link is used until it is gone; otherwise each request gets a fresh one."""
    lasting: ClassVar[tuple[type[AdapterError], ...]] = ()
    """Errors of the first link that no other try helps against."""

    def __init__(self, ref: MediaRef, clock: Clock, *, get: Get) -> None:
        self._ref = ref
        self._clock = clock
        self._get = get
        self._link: str | None = None
        self._checksums: set[str] = set()
        """Those that the platform tells; the bytes must have each."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes; files that the platform never provides are refused before the first one."""
        self._link = await self.first_link()
        async with (
            aclosing(resumed(self._open_at, clock=self._clock)) as chunks,
            aclosing(verified(chunks, self._checksums, self.shown)) as checked,
        ):
            yield checked if self._checksums else chunks

    @abstractmethod
    async def link(self) -> str:
        """A fresh link."""

    async def first_link(self) -> str:
        """The first link, retried after temporary failures."""
        return await retried(self.link, clock=self._clock, lasting=self.lasting)

    @abstractmethod
    def dead(self, status: int) -> Exception:
        """The error if a fresh link is not valid."""

    def check(self, answer: HttpAnswer) -> None:  # noqa: B027 - most platforms have nothing to check
        """Refuse an answer that is not the file."""

    @property
    def shown(self) -> str:
        """The file's name in errors."""
        return self._ref.id or "this file"

    @asynccontextmanager
    async def _open_at(self, offset: int, validator: str | None) -> AsyncIterator[HttpAnswer]:
        headers = range_headers(offset, validator)
        link = self._link or await self.link()
        self._link = link if self.lasts else None
        async with self._get(link, headers) as answer:
            if answer.status not in self.gone:
                self.check(answer)
                yield answer
                return
        fresh = await self.link()
        self._link = fresh if self.lasts else None
        async with self._get(fresh, headers) as answer:
            if answer.status in self.gone:
                raise self.dead(answer.status)
            self.check(answer)
            yield answer


def token_finding(name: str, error: AdapterError, *, renew: str, api: str) -> Finding:
    """The doctor's finding if the first call fails: the token is refused, or the API is unreachable."""
    cure = renew if isinstance(error, Unauthorized) else f"Check that this machine reaches {api}."
    return Finding(name=f"{name} token", ok=False, says=str(error), cure=cure)


def clock_findings(name: str, platform: str, *, theirs: datetime | None, ours: datetime) -> tuple[Finding, ...]:
    """The doctor's finding about the local clock; none if the platform sends no date."""
    if theirs is None:
        return ()
    skew = abs((ours - theirs).total_seconds())
    good = skew <= SKEW_SECONDS
    says = f"it agrees with {platform}'s" if good else f"it is {skew:.0f} seconds away from {platform}'s"
    return (
        Finding(name=f"{name} clock", ok=good, says=says, cure="" if good else "Synchronise the local clock (NTP)."),
    )


@contextmanager
def changing_nothing() -> Iterator[None]:
    """The errors of a call that changes nothing visible: without an answer nothing has happened."""
    try:
        yield
    except Unanswered as error:
        raise Unreached(str(error)) from error


async def read_answer(answer: HttpAnswer, *, limit: int, whose: str) -> bytes:
    """The body of the answer to a call that may have had its effect."""
    try:
        return await answer.read(limit)
    except MediaTooLarge:
        raise Unanswered(f"{whose} is over {limit} bytes") from None


class UploadBody(Protocol):
    """The body of a call that takes effect only once it is complete."""

    @property
    def trouble(self) -> Undeliverable | None:
        """Why it could not be written completely: the platform has not received the whole call."""
        ...

    @property
    def written(self) -> bool:
        """Whether all of it was sent; before that, the platform cannot have acted."""
        ...


@contextmanager
def as_upload_errors(body: UploadBody) -> Iterator[None]:
    """The errors of a call with a body: its own failure first, and Unreached where nothing can have happened."""
    try:
        yield
    except AdapterError as error:
        if body.trouble is not None:
            raise body.trouble from None
        if isinstance(error, Unanswered) and not body.written:
            raise Unreached("the upload broke off before its end") from None
        raise


class FileBody:
    """A file's bytes, exactly as many as announced; the upload alone shows nothing until a later call."""

    written = False

    def __init__(self, file: OutgoingFile) -> None:
        self._file = file
        self.trouble: Undeliverable | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        left, name = self._file.size, self._file.name
        try:
            async for piece in self._file.chunks():
                left -= len(piece)
                yield piece[:left] if left < 0 else piece
        except MediaError as error:
            raise self._cannot(f"the bytes of {name} cannot be read: {error}") from error
        if left:
            raise self._cannot(f"{name} is no longer the file that was to be sent")

    def _cannot(self, why: str) -> Undeliverable:
        self.trouble = Undeliverable(why)
        return self.trouble


class Form:
    """The fields and files of one call; its length is known in advance, and it is written once."""

    def __init__(self, fields: Mapping[str, object], files: Mapping[str, OutgoingFile]) -> None:
        self._boundary = f"belino-{secrets.token_hex(16)}"
        self._fields = b"".join(self._field(name, value) for name, value in fields.items())
        self._files = [(self._head(name, file), file) for name, file in files.items()]
        self._end = f"--{self._boundary}--\r\n".encode()
        self.trouble: Undeliverable | None = None
        self.written = False

    @property
    def length(self) -> int:
        """How many bytes `chunks` yields."""
        return len(self._fields) + sum(len(head) + file.size + 2 for head, file in self._files) + len(self._end)

    @property
    def headers(self) -> Mapping[str, str]:
        return {
            "Content-Type": f"multipart/form-data; boundary={self._boundary}",
            "Content-Length": str(self.length),
        }

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body, piece by piece."""
        yield self._fields
        for head, file in self._files:
            yield head
            body = FileBody(file)
            try:
                async for piece in body.chunks():
                    yield piece
            finally:
                self.trouble = body.trouble
            yield b"\r\n"
        self.written = True
        yield self._end

    def _field(self, name: str, value: object) -> bytes:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        head = f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
        return f"{head}{text}\r\n".encode(errors="replace")

    def _head(self, name: str, file: OutgoingFile) -> bytes:
        head = (
            f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"; '
            f'filename="{file.name.translate(_QUOTED)}"\r\nContent-Type: {file.mime}\r\n\r\n'
        )
        return head.encode(errors="replace")


class JsonFiles:
    """A JSON body with files as data URIs (RFC 2397), encoded as they are read; its length is known in advance."""

    def __init__(self, body: Mapping[str, object], files: Sequence[OutgoingFile]) -> None:
        """In a list of `body`, `FILES` stands for the files; there may be none."""
        before, _, after = json.dumps(body).rpartition(json.dumps(FILES))
        self._before, self._after = before.encode(), after.encode()
        self._files = [(f'"{data_uri(file)}'.encode(), file) for file in files]
        self.trouble: Undeliverable | None = None
        self.written = False

    @property
    def length(self) -> int:
        """How many bytes `chunks` yields."""
        inside = sum(len(head) + (file.size + 2) // 3 * 4 + 1 for head, file in self._files)
        return len(self._before) + inside + max(len(self._files) - 1, 0) + len(self._after)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Content-Type": "application/json", "Content-Length": str(self.length)}

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body, piece by piece."""
        for number, (head, file) in enumerate(self._files):
            yield (b"," if number else self._before) + head
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
    """The beginning of a file's data URI, with its name encoded as in an address."""
    return f"data:{file.mime.partition(';')[0]};filename={quote(file.name, safe='')};base64,"
