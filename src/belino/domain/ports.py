"""The ports: what a platform, an agent or a provider must be, and what it is given.

An adapter needs three methods. Everything else it may be able to do is a protocol of its own, found by `isinstance`.
"""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal, Protocol, runtime_checkable

from belino.domain.limits import Limits, SendAs
from belino.domain.media import Blob, MediaKind, MediaRef, Reading
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import Finding, MessageOutcome
from belino.domain.reply import OutgoingFile, Parcel, Receipt
from belino.domain.turn import ReplyPart, Turn


class Clock(Protocol):
    """Time, passed in so that tests need no sleeps."""

    def now(self) -> datetime:
        """The wall clock, in UTC: for stamps."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: for timers."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class HttpAnswer(Protocol):
    """The answer to one HTTP request, its body not read yet."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self, limit: int) -> bytes:
        """The whole body; MediaTooLarge past `limit` bytes."""
        ...

    def chunks(self) -> AsyncIterator[bytes]: ...


class HttpClient(Protocol):
    """The one way an adapter reaches its platform over HTTP."""

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: object = None,
        body: bytes | AsyncIterable[bytes] | None = None,
        timeout: float = 30.0,
    ) -> AbstractAsyncContextManager[HttpAnswer]: ...


class SocketFrame(Protocol):
    """What came over a web socket: text or bytes; the close code, an error or nothing when it ends."""

    @property
    def data(self) -> object: ...


class WebSocket(Protocol):
    """What adapters use of a web socket."""

    async def receive(self) -> SocketFrame: ...

    async def send_str(self, data: str) -> None: ...


@runtime_checkable
class OpensSockets(Protocol):
    """An HTTP client that opens web sockets too."""

    def socket(
        self, url: str, *, timeout: float = 30.0, heartbeat: float | None = None
    ) -> AbstractAsyncContextManager[WebSocket]:
        """A web socket, closed in the end.

        With a `heartbeat` a ping is sent every so many seconds of silence, and a line that answers none has ended.
        """
        ...


Known = Callable[[], Mapping[str, object]]


class AdapterContext(Protocol):
    """What an adapter is given to work with."""

    @property
    def account(self) -> str: ...

    @property
    def http(self) -> HttpClient: ...

    @property
    def clock(self) -> Clock: ...

    async def publish(self, file: OutgoingFile) -> str:
        """Offer a file under a signed, expiring public URL, for platforms that fetch from us."""
        ...

    def parsed(self, payload: object, known: Known, arrivals: Sequence[Arrival]) -> None:
        """Report what was parsed, before it is handed in: a raw payload, what it was parsed with, and its arrivals.

        `known` is called while a recording runs, and tells as JSON everything else that `Reparses.reparse` needs to
        come to the same arrivals. Both are kept for arrivals that are taken in, and for no other.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of an arrival once it was committed."""

    outcome: MessageOutcome
    reason: str = ""
    trace: str = ""
    refs: tuple[MediaRef, ...] = ()
    """The arrival's media, with their ids."""


class Accept(Protocol):
    """Take an arrival in. When it returns, arrival and cursor are on disk."""

    def __call__(self, arrival: Arrival, *, cursor: str | None = None) -> Awaitable[Taken]: ...


Incoming = tuple[Arrival, str | None]
"""An arrival, and the cursor that moves along with it, if any."""


@runtime_checkable
class AcceptsMany(Accept, Protocol):
    """Can take in what came together with fewer commits."""

    def many(self, incoming: Sequence[Incoming]) -> Awaitable[tuple[Taken, ...]]:
        """Each judged by itself, in order. Should one fail, none after it is taken in and no cursor is past it."""
        ...


@runtime_checkable
class KeepsCursor(Accept, Protocol):
    """Can store a cursor without an arrival."""

    def keep_cursor(self, cursor: str) -> Awaitable[None]:
        """When it returns, the cursor is on disk: what the platform tells from now on is told again after a crash."""
        ...


async def hand_in(accept: Accept, incoming: Sequence[Incoming]) -> None:
    """Hand in what came together, at once if that can be taken, one after the other otherwise."""
    if isinstance(accept, AcceptsMany):
        await accept.many(incoming)
    else:
        for arrival, cursor in incoming:
            await accept(arrival, cursor=cursor)


@runtime_checkable
class Adapter(Protocol):
    """A platform. Constructed as `Adapter(config, context)`; parsing is pure and fetches nothing."""

    platform: ClassVar[str]
    limits: Limits

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled. Acknowledge to the platform only what `accept` has returned for."""
        ...

    async def send(self, parcel: Parcel) -> Receipt:
        """Make one visible platform call."""
        ...

    def open_media(self, ref: MediaRef) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Start the byte stream of a ref, always by a fresh URL."""
        ...


@runtime_checkable
class Connects(Protocol):
    """Has to be let in by its platform before it can send; without this, an adapter that runs may send."""

    async def connected(self) -> None:
        """Wait until the platform has let us in since `run` began."""
        ...


@runtime_checkable
class ReadsHistory(Protocol):
    """Can be asked for what was said before we came, with one call each."""

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        """The newest messages of a channel, under the ids they would have arrived with; those before a message."""
        ...

    async def thread(self, conversation: ConversationKey) -> Sequence[Message]:
        """The message a thread began with and its replies; nothing if this channel has no such thread."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A webhook call, raw, so that its signature can be checked over the very bytes."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """What to tell the platform; 200 only after commit."""

    status: int
    body: bytes = b""
    mime: str = "text/plain"


@runtime_checkable
class TakesHooks(Protocol):
    """Is called by its platform at /hooks/{platform}/{account}."""

    async def take_hook(self, hook: Hook) -> HookAnswer: ...


@runtime_checkable
class ScreensHooks(Protocol):
    """Can refuse a call by its method, query and headers, before its body is read."""

    def screen_hook(self, hook: Hook) -> HookAnswer | None:
        """The refusal of a call whose body is still empty here; None to have its body read."""
        ...


@runtime_checkable
class Reparses(Protocol):
    """Can parse a recorded payload again, as it was reported to `AdapterContext.parsed`."""

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The payload's arrivals; pure, whatever a stranger put into the recording."""
        ...


@runtime_checkable
class ReadsBack(Protocol):
    """Can look whether a parcel arrived although its receipt was lost."""

    async def find_sent(self, parcel: Parcel) -> Receipt | None: ...


@runtime_checkable
class Edits(Protocol):
    """Can change a message it has sent; NothingToEdit where it is gone, and its words are said anew."""

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt: ...


DraftsShown = Literal["direct", "always", "never"]
"""Where an adapter shows drafts, by its configuration."""


@runtime_checkable
class Drafts(Adapter, Edits, Protocol):
    """Can show an answer while it is written: a message that is changed until it is the answer."""

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        """How many seconds apart the changes are to be; None where answers come whole."""
        ...


def pause_between_drafts(shown: DraftsShown, *, direct: bool, pauses: tuple[float, float]) -> float | None:
    """A `draft_pause` by an adapter's setting: `pauses` are those in direct messages and elsewhere."""
    if shown == "never" or (shown == "direct" and not direct):
        return None
    return pauses[0] if direct else pauses[1]


@runtime_checkable
class ShowsTyping(Protocol):
    """Can show that an answer is on its way."""

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """For some five seconds; `note` says what a tool is at work on, where that can be shown."""
        ...


@runtime_checkable
class ShowsUpload(Protocol):
    """Can show that a file is being sent."""

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        """For some five seconds; it is called while `send` runs."""
        ...


@runtime_checkable
class Checks(Protocol):
    """Can tell the doctor whether its platform works."""

    async def check(self) -> Sequence[Finding]: ...


@runtime_checkable
class ChecksChannels(Checks, Protocol):
    """Can tell whether it hears what is said in the channels that the operator listed."""

    async def check_channels(self, channels: Sequence[str]) -> Sequence[Finding]:
        """What is wrong with any of them; nothing where nothing is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of `belino setup PLATFORM`. An adapter module lists its own as SETUP."""

    key: str
    ask: str
    secret: bool = False
    default: str | None = None
    tells: str = ""
    """What a person should do or know first, in as many lines as it takes: shown before the question."""
    when: tuple[str, str] | None = None
    """A key and the value it must have; otherwise the question is not asked."""


class Agent(Protocol):
    """Who answers. Constructed as `Agent(config)`."""

    remembers: bool
    """Keeps the conversation itself; otherwise it is told the context every turn."""
    sees_images: bool

    def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """Answer; the last part is Final."""
        ...


@runtime_checkable
class Closes(Protocol):
    """Holds something open between turns, and lets go of it when the gateway closes."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """What a reading should be like."""

    prompt: str | None = None
    language: str | None = None
    pages: tuple[int, int] | None = None
    time_range: tuple[float, float] | None = None
    max_chars: int | None = None
    timeout: float = 60.0


class Provider(Protocol):
    """A service that reads media. Constructed as `Provider(config)`."""

    reads: frozenset[MediaKind]

    async def read(self, blob: Blob, wish: ReadingOptions) -> Reading: ...
