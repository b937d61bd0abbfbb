"""Recorded platforms, agent and clock: they answer from a cassette."""

import json as json_format
import time
from asyncio import Event, sleep
from collections import defaultdict, deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from belino.cassette.file import Cassette, read, read_arrival, read_part
from belino.cassette.journal import Journal, Wishes
from belino.domain.errors import (
    AdapterError,
    AgentError,
    BelinoError,
    ConfigError,
    MediaExpired,
    MediaTooLarge,
    MemoryLost,
    ToolError,
    Unanswered,
    Unreached,
)
from belino.domain.media import AcceptedMedia, Block, TextBlock
from belino.domain.message import ConversationKey, Message
from belino.domain.places import NoPlaces
from belino.domain.ports import Adapter, Clock, Drafts, HttpAnswer, Known, WebSocket
from belino.domain.reply import OutgoingFile, Parcel, Receipt
from belino.domain.turn import Compacted, Final, Refused, ReplyPart, Turn
from belino.net.tap import SentBody, TappedClient
from belino.storage.short_ids import IN_TEXT

Json = dict[str, Any]

PIECE_BYTES = 64 * 1024
ERRORS = {"ToolError": ToolError, "MemoryLost": MemoryLost}
"""Errors of an agent besides AgentError, each of which ends a turn in its own way."""


class NotRecorded(AdapterError):
    """A platform call that the cassette has no answer to."""


class RecordedClock:
    """The time of the recording: set for each record, and running in between."""

    def __init__(self) -> None:
        self._anchor = datetime.now(UTC)
        self._read = time.monotonic()

    def set(self, moment: datetime) -> None:
        """Set the time; it never goes back."""
        if moment > self.now():
            self._anchor, self._read = moment, time.monotonic()

    def begin(self, moment: datetime) -> None:
        """Start at the recording's first moment."""
        self._anchor, self._read = moment, time.monotonic()

    def now(self) -> datetime:
        return self._anchor + timedelta(seconds=time.monotonic() - self._read)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await sleep(seconds)


class Tape(Journal):
    """A journal in memory: what the replay does, to be compared with the recording."""

    def __init__(self) -> None:
        self.written: list[Json] = []
        self.news = Event()
        self.size = 0

    def begin(self, wishes: Wishes) -> None:
        """Start empty."""

    def resume(self) -> Wishes | None:
        """None: there is no recording to resume."""
        return None

    def append(self, record: Json) -> None:
        self.written.append(record)
        self.news.set()

    def close(self) -> None:
        """Nothing is open."""


class RecordedAnswer:
    """An answer from a cassette."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def read(self, limit: int) -> bytes:
        """The whole body; MediaTooLarge past `limit` bytes."""
        if len(self._body) > limit:
            raise MediaTooLarge(f"the platform's answer is over {limit} bytes", limit=limit)
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body piece by piece."""
        for start in range(0, len(self._body), PIECE_BYTES):
            yield self._body[start : start + PIECE_BYTES]


class RecordedClient:
    """An HTTP client without a network: it returns the recorded answer to the same call."""

    def __init__(self, calls: Iterable[Json], media: Mapping[str, bytes]) -> None:
        self._media = media
        self._unused: defaultdict[tuple[str, str], deque[Json]] = defaultdict(deque)
        self._used: dict[tuple[str, str], Json] = {}
        for call in calls:
            self._unused[str(call.get("method")), urlsplit(str(call.get("url"))).path].append(call)

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: object = None,
        body: bytes | AsyncIterable[bytes] | None = None,
        timeout: float = 30.0,
    ) -> AsyncIterator[HttpAnswer]:
        """The recorded answer; NotRecorded if there is none."""
        sent = SentBody(headers or {}, json, body)
        await sent.consume()
        call = self._found((method, urlsplit(url).path), sent.described())
        if error := call.get("error"):
            raise (
                Unreached("the recorded call did not reach the platform")
                if error == "Unreached"
                else Unanswered("the recorded call was not answered")
            )
        answer = self._body(call)
        # Pseudonyms may have changed the length.
        yield RecordedAnswer(_status(call), {**_headers(call), "content-length": str(len(answer))}, answer)

    @asynccontextmanager
    async def socket(
        self, url: str, *, timeout: float = 30.0, heartbeat: float | None = None
    ) -> AsyncIterator[WebSocket]:
        """Refused: a cassette has no sockets."""
        raise NotRecorded("a cassette has no web sockets")
        yield

    async def close(self) -> None:
        """Nothing is open."""

    def _found(self, endpoint: tuple[str, str], body: Json) -> Json:
        waiting = self._unused[endpoint]
        same = next((call for call in waiting if call.get("body") == body), None)
        call = same or (waiting[0] if waiting else None)
        if call is not None:
            waiting.remove(call)
            self._used[endpoint] = call
            return call
        last = self._used.get(endpoint)
        if last is None or last.get("body") != body:
            raise NotRecorded(f"the cassette has no answer to this {endpoint[0]}")
        return last

    def _body(self, call: Json) -> bytes:
        answer = call.get("answer")
        if not isinstance(answer, Mapping):
            return b""
        if "json" in answer:
            return json_format.dumps(answer["json"]).encode()
        if "text" in answer:
            return str(answer["text"]).encode()
        held = self._media.get(str(answer.get("sha256")))
        if held is None and answer.get("bytes"):
            raise MediaExpired("the cassette was made without these bytes")
        return held or b""


class RecordedContext:
    """The adapter context of one account, offline."""

    def __init__(self, account: str, clock: Clock, http: TappedClient) -> None:
        self.account = account
        self.clock = clock
        self.http = http
        self.places = NoPlaces()

    async def publish(self, file: OutgoingFile) -> str:
        """Refused: nothing is published from a cassette."""
        raise ConfigError(f"{file.name} cannot be published: a replay is offline")

    async def publish_preview(self, file: OutgoingFile) -> str:
        """Refused as well."""
        return await self.publish(file)

    def folder(self) -> Path:
        """Refused: a replay has no session."""
        raise ConfigError("a replay is offline")

    @asynccontextmanager
    async def open_below(self, folder: Path, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Refused: a cassette has the bytes it was made with."""
        raise MediaExpired("the cassette was made without these bytes")
        yield  # pragma: no cover - makes this a generator

    @asynccontextmanager
    async def lend(self, folder: Path, file: OutgoingFile) -> AsyncIterator[Path]:
        """Refused: a replay sends nothing."""
        raise ConfigError(f"{file.name} cannot be lent: a replay is offline")
        yield  # pragma: no cover - makes this a generator

    def parsed(self, payload: object, known: Known, arrivals: Sequence[object]) -> None:
        """Ignored: the replay passes arrivals in itself."""

    def report(self, part: str, problem: str = "", *, is_refusal: bool = False, is_note: bool = False) -> None:
        """Ignored: a replay has no platform."""


def silenced(adapter: Adapter, clock: Clock, recalled: Iterable[Json]) -> Adapter:
    """The adapter without its connection: arrivals and history come from the cassette."""
    send, history = adapter.send, RecordedHistory(recalled)

    async def listen(accept: object, cursor: str | None) -> None:
        await Event().wait()

    async def at_once(*_arguments: object, **_named: object) -> None:
        """Do nothing: typing signs are not shown, and there is no connection to wait for."""

    async def send_recorded(parcel: Parcel) -> Receipt:
        try:
            return await send(parcel)
        except NotRecorded:
            return Receipt(message_id=f"replayed-{parcel.key}", sent=clock.now())

    replaced: dict[str, object] = {
        "run": listen,
        "send": send_recorded,
        "connected": at_once,
        "show_typing": at_once,
        "show_upload": at_once,
        "history": history.history,
        "thread": history.thread,
    }
    if isinstance(adapter, Drafts):
        replaced["draft_pause"] = lambda _conversation: None
    for name, method in replaced.items():
        if hasattr(adapter, name):
            setattr(adapter, name, method)
    return adapter


class RecordedHistory:
    """History as the platforms returned it."""

    def __init__(self, recalled: Iterable[Json]) -> None:
        self._told: defaultdict[str, list[Message]] = defaultdict(list)
        for record in recalled:
            messages = record.get("messages")
            for told in messages if isinstance(messages, list) else ():
                if isinstance(message := read_arrival(told), Message):
                    self._told[str(record.get("conversation"))].append(message)

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        """The recorded history of a channel."""
        return self._told[str(channel)][:limit]

    async def thread(self, conversation: ConversationKey) -> Sequence[Message]:
        """The recorded messages of a thread."""
        return self._told[str(conversation)]


class RecordedAgent:
    """Repeats in each turn the recorded agent's tool calls and text."""

    def __init__(self, cassette: Cassette) -> None:
        self._exchanges: defaultdict[str, deque[Json]] = defaultdict(deque)
        exchanges = [record for record in cassette.records if record.get("record") == "exchange"]
        for exchange in exchanges:
            self._exchanges[str(exchange.get("conversation"))].append(exchange)
        first = exchanges[0] if exchanges else {}
        self.remembers = bool(first.get("remembers"))
        self.sees_images = bool(first.get("sees_images", True))
        self.accepts: AcceptedMedia = read(AcceptedMedia, first.get("accepts") or {})
        self.refs: dict[str, str] = {}
        """Ref ids of the recording to those of the replay."""
        self._short_ids: dict[str, str] = {}
        """The same for short ids of messages, learned from prompts and results, which have them in the same order."""

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """Replay the conversation's next exchange."""
        waiting = self._exchanges[str(turn.conversation)]
        exchange = waiting.popleft() if waiting else {}
        events, ended = exchange.get("events"), False
        self._learn(exchange.get("blocks"), turn.blocks)
        for event in events if isinstance(events, list) else ():
            if "call" in event:
                with suppress(BelinoError):  # the refusal is compared with what was recorded
                    result = await turn.toolbox.call(str(event["call"]), self._here(event.get("arguments") or {}))
                    self._learn(event.get("result"), result)
            elif "failed" in event:
                raise ERRORS.get(str(event.get("error")), AgentError)(str(event["failed"]))
            else:
                part = self._part(read_part(event))
                ended = isinstance(part, Final)
                yield part
        if not ended:
            raise AgentError("the recorded agent gave no answer")

    def _part(self, part: ReplyPart) -> ReplyPart:
        match part:
            case Refused():
                return replace(part, ref=self.refs.get(part.ref, part.ref))
            case Compacted():
                return replace(part, only=self._refs_here(part.only), kept=self._refs_here(part.kept))
            case _:
                return part

    def _refs_here(self, refs: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.refs.get(ref, ref) for ref in refs)

    def _learn(self, recorded: object, replayed: Sequence[Block]) -> None:
        blocks = recorded if isinstance(recorded, list) else []
        before = [short for block in blocks for short in IN_TEXT.findall(str(block.get("text", "")))]
        after = [short for block in replayed if isinstance(block, TextBlock) for short in IN_TEXT.findall(block.text)]
        self._short_ids.update(zip(before, after, strict=False))

    def _here(self, arguments: Mapping[str, object]) -> dict[str, object]:
        return {name: self._value_here(value) for name, value in arguments.items()}

    def _value_here(self, value: object) -> object:
        match value:
            case str():
                return self.refs.get(value) or self._short_ids.get(value, value)
            case list():
                return [self._value_here(each) for each in value]
            case _:
                return value


def _status(call: Json) -> int:
    status = call.get("status")
    return status if isinstance(status, int) and 100 <= status <= 599 else 500


def _headers(call: Json) -> dict[str, str]:
    headers = call.get("headers")
    return {str(name): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {}
