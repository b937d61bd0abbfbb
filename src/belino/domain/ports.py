"""The ports: what a platform or an agent must implement, and what it is given.

An adapter needs three methods. Every other capability is a protocol of its own, found by `isinstance`.
"""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal, Protocol, runtime_checkable

from belino.domain.commands import CommandSpec
from belino.domain.limits import Limits, SendAs
from belino.domain.media import TEXT_AND_PICTURES, AcceptedMedia, MediaRef
from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import Finding, MessageOutcome
from belino.domain.places import Places
from belino.domain.reply import OutgoingFile, Parcel, Receipt
from belino.domain.turn import ReplyPart, Turn


class Clock(Protocol):
    """Time, passed in so that tests need no sleeps."""

    def now(self) -> datetime:
        """The wall clock, in UTC: for timestamps."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards: for timers."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class HttpAnswer(Protocol):
    """The response to one HTTP request, its body not read yet."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self, limit: int) -> bytes:
        """The whole body; MediaTooLarge past `limit` bytes."""
        ...

    def chunks(self) -> AsyncIterator[bytes]: ...


class HttpClient(Protocol):
    """The only way an adapter reaches its platform over HTTP."""

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
    """A web socket frame: text or bytes; at the end, the close code, an error or nothing."""

    @property
    def data(self) -> object: ...


class WebSocket(Protocol):
    """The part of a web socket that adapters use."""

    async def receive(self) -> SocketFrame: ...

    async def send_str(self, data: str) -> None: ...


@runtime_checkable
class OpensSockets(Protocol):
    """An HTTP client that also opens web sockets."""

    def socket(
        self, url: str, *, timeout: float = 30.0, heartbeat: float | None = None
    ) -> AbstractAsyncContextManager[WebSocket]:
        """Open a web socket; it is closed at the end.

        With a `heartbeat` a ping is sent after that many seconds of silence, and a connection that does not answer is
        closed.
        """
        ...


Known = Callable[[], Mapping[str, object]]


class AdapterContext(Protocol):
    """What the gateway gives to an adapter."""

    @property
    def account(self) -> str: ...

    @property
    def http(self) -> HttpClient: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def places(self) -> Places: ...

    async def publish(self, file: OutgoingFile) -> str:
        """Publish a file under a signed, expiring public URL, for platforms that fetch from us."""
        ...

    async def publish_preview(self, file: OutgoingFile) -> str:
        """The same for a JPEG or PNG of at most 1 MB that shows a picture or video; MediaError if none can be made."""
        ...

    def open_below(self, folder: Path, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The bytes of a regular file below a folder that the operator names; no link or `..` leaves it."""
        ...

    def folder(self) -> Path:
        """The account's private folder, for what its platform's library keeps; ConfigError without a state folder."""
        ...

    def lend(self, folder: Path, file: OutgoingFile) -> AbstractAsyncContextManager[Path]:
        """A copy of a file below a folder that the operator names, for a platform's program that reads it there."""
        ...

    def parsed(self, payload: object, known: Known, arrivals: Sequence[Arrival]) -> None:
        """Report a parsed payload before it is handed in: the raw payload, its parse inputs, and its arrivals.

        `known` is called while a recording runs, and returns as JSON everything else that `Reparses.reparse` needs to
        produce the same arrivals. Both are recorded only for arrivals that are stored.
        """
        ...

    def report(self, part: str, problem: str = "", *, is_refusal: bool = False, is_note: bool = False) -> None:
        """Report that a part of the account does not work, with the reason; without a problem, that it works.

        `status` and the page show it until it works or the adapter connects again. What `run` and `send` raise is known
        without it. `is_refusal`: the platform refuses our credentials. `is_note`: the account works all the same. A
        report without a problem is cheap.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The outcome of an arrival, after its commit."""

    outcome: MessageOutcome
    reason: str = ""
    trace: str = ""
    refs: tuple[MediaRef, ...] = ()
    """The arrival's media, with their ids."""
    turn: int | None = None
    """The turn that answers it, if that is still to run."""
    completes: bool = False
    """It is a duplicate with more than the message that is stored, which has it now."""
    queued: int = 0
    """By how many turns the queue grew; below zero after a deletion, or a command that stops what waits."""


class Accept(Protocol):
    """Store an arrival. When it returns, arrival and cursor are on disk."""

    def __call__(self, arrival: Arrival, *, cursor: str | None = None) -> Awaitable[Taken]: ...


Incoming = tuple[Arrival, str | None]
"""An arrival, and the cursor that is stored with it, if any."""


@runtime_checkable
class AcceptsMany(Accept, Protocol):
    """Can store arrivals that came together with fewer commits."""

    def many(self, incoming: Sequence[Incoming]) -> Awaitable[tuple[Taken, ...]]:
        """Each is screened by itself, in order. If one fails, none after it is stored and no cursor is past it."""
        ...


@runtime_checkable
class KeepsCursor(Accept, Protocol):
    """Can store a cursor without an arrival."""

    def keep_cursor(self, cursor: str) -> Awaitable[None]:
        """When it returns, the cursor is on disk: later events are delivered again after a crash."""
        ...


@runtime_checkable
class RecallsHistory(Accept, Protocol):
    """Can store messages from before, which the platform sends by itself: context that starts no turn."""

    def recall(self, messages: Sequence[Message]) -> Awaitable[None]:
        """Messages that are stored already, or that the access rules deny, are left out."""
        ...


@runtime_checkable
class ReopensWindows(Accept, Protocol):
    """Can send what waited for a person to write (`WindowClosed`)."""

    def reopen(self, conversation: ConversationKey) -> Awaitable[None]:
        """The person has written: when it returns, parcels that were held until then are ready, in their order.

        A parcel that may have arrived all the same stays held.
        """
        ...


async def hand_in(accept: Accept, incoming: Sequence[Incoming]) -> None:
    """Hand in arrivals that came together: at once if that is supported, else one by one."""
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
        """Open the byte stream of a ref, always with a fresh URL."""
        ...


@runtime_checkable
class Connects(Protocol):
    """Has to connect to its platform before it can send; without this, a running adapter may send."""

    async def connected(self) -> None:
        """Wait until the platform has accepted our connection since `run` began."""
        ...


@runtime_checkable
class OpensDirects(Protocol):
    """Can write to a person directly who has not written first."""

    async def direct(self, sender: str) -> str:
        """The channel of the direct messages with a person, by their id. Undeliverable if the platform refuses."""
        ...


@runtime_checkable
class TakesOver(Protocol):
    """Can have the platform hand events to belino that it hands to another program; only the operator may want it."""

    async def rival(self) -> str:
        """Where the events go instead, in words; empty if nowhere."""
        ...

    async def take_over(self) -> None:
        """End that."""
        ...


@runtime_checkable
class ReadsHistory(Protocol):
    """Can read messages from before we connected, with one call each."""

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        """The newest messages of a channel (before a message), under the ids they would have arrived with."""
        ...

    async def thread(self, conversation: ConversationKey) -> Sequence[Message]:
        """The root of a thread and its replies; empty if this channel has no such thread."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A webhook request, raw, so that its signature can be checked over the exact bytes."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """The response to the platform; 200 only after commit."""

    status: int
    body: bytes = b""
    mime: str = "text/plain"


@runtime_checkable
class TakesHooks(Protocol):
    """Receives webhooks from its platform at /hooks/{platform}/{account}."""

    async def take_hook(self, hook: Hook) -> HookAnswer: ...


@runtime_checkable
class ScreensHooks(Protocol):
    """Can answer a request by its method, query and headers, before its body is read."""

    def screen_hook(self, hook: Hook) -> HookAnswer | None:
        """The refusal of a request, whose body is still empty here, or the answer to a handshake; None to read on."""
        ...


@runtime_checkable
class Reparses(Protocol):
    """Can parse a recorded payload again, as it was reported to `AdapterContext.parsed`."""

    def reparse(self, payload: object, known: Mapping[str, object], received: datetime) -> Sequence[Arrival]:
        """The payload's arrivals; pure, whatever the recording contains."""
        ...


@runtime_checkable
class ReadsBack(Protocol):
    """Can check whether a parcel arrived although its receipt was lost."""

    async def find_sent(self, parcel: Parcel) -> Receipt | None: ...


@runtime_checkable
class SendsUnkeyed(Protocol):
    """Makes some calls without an idempotency key, although its platform has them (`Once.KEY`)."""

    def was_unkeyed(self, parcel: Parcel) -> bool:
        """Whether such a call was made for the parcel, also before a restart: it may have arrived."""
        ...


@runtime_checkable
class Edits(Protocol):
    """Can edit a message it has sent; NothingToEdit if it is gone: the text is then sent as a new message."""

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt: ...


@runtime_checkable
class Deletes(Protocol):
    """Can delete a message it has sent."""

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete it; one that is gone already is no error. Undeliverable if the platform refuses."""
        ...


@runtime_checkable
class Reacts(Protocol):
    """Can react to a message with an emoji."""

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Add our reaction, or remove it; one that is there, or gone, already is no error.

        Undeliverable if the platform refuses, for example because it does not have the emoji.
        """
        ...


@runtime_checkable
class HasOwnName(Protocol):
    """Knows what people call our bot, as in `@name` and `/new@name`."""

    def own_name(self) -> str:
        """The name without `@`; empty before the platform has told it."""
        ...


@runtime_checkable
class AliasesCommands(Protocol):
    """Its clients send commands of their own, such as the one of a button that opens the bot's chat."""

    def command_aliases(self) -> Mapping[str, str]:
        """By their names, the names of belino's commands that they stand for."""
        ...


@runtime_checkable
class OffersCommands(Protocol):
    """Can offer commands in a menu of its platform."""

    async def offer_commands(self, commands: Sequence[CommandSpec]) -> None:
        """Offer these where they are not offered yet, and leave those of others; the adapter is connected."""
        ...


DraftsShown = Literal["direct", "always", "never"]
"""Where an adapter shows drafts, by its configuration."""


@runtime_checkable
class Drafts(Adapter, Edits, Protocol):
    """Can show an answer while it streams: a message that is edited until it is the answer."""

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        """Seconds between edits; None where drafts are not shown."""
        ...


@runtime_checkable
class StreamsDrafts(Protocol):
    """Can show an answer while it streams without a message: the preview vanishes, and the answer is sent whole."""

    def stream_pause(self, conversation: ConversationKey) -> float | None:
        """Seconds between changes of a preview; None where it has none, or the platform refused one before."""
        ...

    async def stream_draft(self, parcel: Parcel) -> None:
        """Show a draft as far as it is written, for half a minute; the same key changes the same preview.

        Undeliverable if the platform has none here: the draft is then a message, and is not tried as a preview again.
        """
        ...


def pause_between_drafts(shown: DraftsShown, *, direct: bool, pauses: tuple[float, float]) -> float | None:
    """The `draft_pause` for an adapter's setting: `pauses` are those in direct messages and elsewhere."""
    if shown == "never" or (shown == "direct" and not direct):
        return None
    return pauses[0] if direct else pauses[1]


@runtime_checkable
class ShowsTyping(Protocol):
    """Can show a typing indicator."""

    async def show_typing(self, conversation: ConversationKey, note: str | None = None) -> None:
        """Show it for about five seconds; `note` says what a tool is doing, where that can be shown."""
        ...


@runtime_checkable
class ShowsUpload(Protocol):
    """Can show that a file is being sent."""

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        """Show it for about five seconds; called while `send` runs."""
        ...


@runtime_checkable
class Checks(Protocol):
    """Can check for the doctor whether its platform works."""

    async def check(self) -> Sequence[Finding]: ...


@runtime_checkable
class ChecksChannels(Checks, Protocol):
    """Can check whether it receives messages from the channels that the operator listed."""

    async def check_channels(self, channels: Sequence[str]) -> Sequence[Finding]:
        """The problems found; empty if there are none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of `belino setup PLATFORM`. An adapter module lists its own as SETUP."""

    key: str
    ask: str
    secret: bool = False
    default: str | None = None
    tells: str = ""
    """What a person should do or know first, in one or more lines: shown before the question."""
    when: tuple[str, str] | None = None
    """A key and the value it must have for the question to be asked."""


class Agent(Protocol):
    """An agent, which answers. Constructed as `Agent(config)`."""

    remembers: bool
    """Whether it keeps the conversation itself; otherwise it gets the context every turn."""
    sees_images: bool

    def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """Answer; the last part is Final."""
        ...


@runtime_checkable
class AcceptsMedia(Protocol):
    """Reads documents or hears sounds itself, in their own formats."""

    accepts: AcceptedMedia


def accepted_by(agent: Agent) -> AcceptedMedia:
    """The blocks that an agent accepts besides text and pictures."""
    return agent.accepts if isinstance(agent, AcceptsMedia) else TEXT_AND_PICTURES


@runtime_checkable
class ChoosesModels(Protocol):
    """Can answer a turn with another model of its provider: `Turn.model`."""

    model: str
    """The model that answers if no other is chosen."""

    def why_not(self, model: str) -> str:
        """Why it cannot use a model; empty if it can."""
        ...


@runtime_checkable
class MeasuresMemory(Protocol):
    """Knows how much of a conversation is in its memory."""

    async def measure(self, memory: bytes | None) -> tuple[int, int]:
        """The tokens in what it saved, and how many there may be."""
        ...


@runtime_checkable
class CallsFromOutside(Protocol):
    """An agent whose tools are called from another process, at the address of its turn."""

    calls_over_mcp: bool


@runtime_checkable
class Prepares(Protocol):
    """An agent that loads what its first answer needs ahead of it."""

    async def prepare(self) -> None: ...


@runtime_checkable
class Closes(Protocol):
    """Holds resources between turns, and releases them when the gateway closes."""

    async def close(self) -> None: ...
