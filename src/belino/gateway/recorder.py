"""Recorder of conversations: arrivals, readings, prompts, answers, platform calls and outcomes.

Nothing is written before the access decision: an adapter reports what it parsed, and that is kept only if the arrival
is stored. Calls are written only for conversations in which an arrival was stored since the recording began.
"""

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from belino.cassette.file import arrival_json, as_json, part_json
from belino.cassette.journal import Journal, Wishes
from belino.cassette.pseudonyms import Secrets
from belino.domain.errors import BelinoError, ToolError
from belino.domain.media import AudioBlock, Block, DocumentBlock, FileBlock, ImageBlock, MediaRef, TextBlock
from belino.domain.message import Arrival, ConversationKey, Edit, Message
from belino.domain.outcome import Finding, MessageOutcome
from belino.domain.ports import Agent, Clock, Known, Taken, accepted_by
from belino.domain.reading import Read, ReadPiece
from belino.domain.reply import Parcel, ParcelState
from belino.domain.stored import ClaimedTurn, TurnEnd
from belino.domain.turn import ReplyPart, TextDelta, Toolbox, ToolSpec, Turn
from belino.gateway.recorded_readings import reading_record
from belino.net.tap import Call, behalf

log = logging.getLogger(__name__)

MOST_BYTES = 64 * 1024 * 1024
MOST_HOURS = 24
MOST_WAITING = 10_000
"""Parsed payloads whose arrivals are not screened yet."""
SEALED = "SEALED"
_UNKEPT = frozenset({MessageOutcome.DENIED, MessageOutcome.DUPLICATE})
_ENDS = frozenset({ParcelState.SENT, ParcelState.UNCERTAIN, ParcelState.HELD, ParcelState.DEAD})

Json = dict[str, Any]


class RecordingRefused(BelinoError):
    """A recording cannot start or stop now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The state of a recording."""

    started: str
    conversation: str | None
    bytes: int
    ended: str = ""
    """Why it stopped by itself; empty while it records."""


class Recorder:
    """One recording at a time; without one, each event costs one check."""

    def __init__(self, journal: Journal, *, secrets: Secrets, clock: Clock) -> None:
        self.journal = journal
        self._secrets = secrets
        """Removed from everything that is recorded."""
        self._clock = clock
        self._wishes: Wishes | None = None
        self._scope: ConversationKey | None = None
        self._open: set[ConversationKey] = set()
        """Conversations in which an arrival was stored since it began."""
        self._parsed: OrderedDict[int, tuple[Arrival, object, Mapping[str, object]]] = OrderedDict()

    @property
    def on(self) -> bool:
        """Whether anything is recorded."""
        return self._wishes is not None and not self._wishes.ended

    def learn_secrets(self, secrets: Secrets) -> None:
        """Remove these secrets too from now on: the configuration changed."""
        self._secrets = self._secrets.joined(secrets)

    def resume(self) -> None:
        """Continue the recording that was running when the last process ended."""
        try:
            wishes = self.journal.resume()
        except BelinoError as error:
            log.error("the recording cannot go on: %s", error)
            return
        if wishes is not None:
            for record in self.journal.records():
                if record.get("record") == "arrival":
                    self._open.add(ConversationKey.parse(str(record["conversation"])).whole_channel)
            self._begin(wishes)

    def start(self, wishes: Wishes) -> Recording:
        """Start; RecordingRefused if a recording runs already."""
        if self._wishes is not None:
            raise RecordingRefused("a recording runs already; `belino record stop` ends it")
        self.journal.begin(wishes)
        self._begin(wishes)
        state = self.state()
        assert state is not None
        return state

    def take(self) -> Wishes:
        """Stop the recording so that its cassette can be written; RecordingRefused if there is none."""
        if self._wishes is None:
            raise RecordingRefused("nothing is being recorded; `belino record start` begins")
        wishes, self._wishes = self._wishes, None
        self.journal.close()
        self._open.clear()
        self._parsed.clear()
        return wishes

    def state(self) -> Recording | None:
        """The state of the recording; None if there is none."""
        self._look_at_limits()
        wishes = self._wishes
        if wishes is None:
            return None
        return Recording(
            started=wishes.started, conversation=wishes.conversation, bytes=self.journal.size, ended=wishes.ended
        )

    def findings(self) -> tuple[Finding, ...]:
        """Findings about a recording for the doctor; none if there is none."""
        state = self.state()
        if state is None:
            return ()
        where = state.conversation or "every conversation"
        if state.ended:
            says, cure = f"stopped by itself: {state.ended}", "belino record stop writes the cassette"
            return (Finding(name="recording", ok=False, says=says, cure=cure),)
        return (Finding(name="recording", ok=True, says=f"{where} is being recorded since {state.started}"),)

    def wants(self, conversation: ConversationKey) -> bool:
        """Whether a conversation's events are recorded; calls only after the first arrival there."""
        return self.on and conversation.whole_channel in self._open and self._is_in_scope(conversation)

    def parsed(self, payload: object, known: Known, arrivals: Sequence[Arrival]) -> None:
        """Hold a payload that an adapter parsed until its arrivals are screened."""
        if not self.on:
            return
        told = known()
        for arrival in arrivals:
            self._parsed[id(arrival)] = (arrival, payload, told)
        while len(self._parsed) > MOST_WAITING:
            self._parsed.popitem(last=False)

    def arrived(self, arrival: Arrival, taken: Taken) -> None:
        """Record an arrival that was screened and stored, or drop it."""
        if not self.on:
            return
        _, payload, known = self._parsed.pop(id(arrival), (arrival, None, {}))
        where = arrival.conversation
        if (taken.outcome in _UNKEPT and not taken.completes) or not self._is_in_scope(where):
            return
        self._open.add(where.whole_channel)
        sealed = {value for ref in _media(arrival) for value in ref.sealed.values()}
        self._write(
            "arrival",
            where,
            arrival=arrival_json(arrival),
            payload=_without(payload, sealed),
            known=_without(known, sealed),
            outcome=str(taken.outcome),
            reason=taken.reason,
            refs=[ref.id for ref in taken.refs],
        )

    def recalled(self, where: ConversationKey, messages: Sequence[Message]) -> None:
        """Record history from a platform that the store has accepted."""
        if self.wants(where):
            self._write("recalled", where, messages=[arrival_json(message) for message in messages])

    def called(self, call: Call) -> None:
        """Record a platform call on behalf of a conversation."""
        platform, account = call.account
        self._write(
            "call",
            call.behalf.conversation,
            account=f"{platform}:{account}",
            trace=call.behalf.trace,
            kind=call.behalf.kind,
            method=call.method,
            url=call.url,
            body=call.body,
            status=call.status,
            headers=dict(call.headers),
            answer=call.answer,
            error=call.error,
        )

    def read(self, channel: ConversationKey, piece: ReadPiece, read: Read | str) -> None:
        """Record what a provider read for a conversation, or why it read nothing."""
        asked = behalf()
        where = channel if asked is None else asked.conversation
        if self.wants(where):
            self._write("reading", where, **reading_record(piece, read))

    def run_turn(self, agent: Agent, turn: Turn) -> AsyncIterator[ReplyPart]:
        """The agent's answer, recorded as it passes if the conversation is recorded."""
        return self._exchange(agent, turn) if self.wants(turn.conversation) else agent.run_turn(turn)

    def ended(self, claimed: ClaimedTurn, end: TurnEnd) -> None:
        """Record the end of a turn; `end` is the agent's answer before it is turned into a draft's last edit."""
        if self.wants(claimed.conversation):
            self._write(
                "turn",
                claimed.conversation,
                number=claimed.number,
                trace=claimed.trace,
                messages=[message.id for message in claimed.messages],
                state=str(end.state),
                reason=end.reason,
                parcels=[parcel_json(parcel) for parcel in end.parcels],
            )

    def parcel(self, conversation: ConversationKey, key: str, state: ParcelState, reason: str) -> None:
        """Record the end of a parcel."""
        if state in _ENDS and self.wants(conversation):
            self._write("parcel", conversation, key=key, state=str(state), reason=reason)

    async def _exchange(self, agent: Agent, turn: Turn) -> AsyncIterator[ReplyPart]:
        events: list[Json] = []
        toolbox = _NotedToolbox(turn.toolbox, events)
        parts = agent.run_turn(replace(turn, toolbox=toolbox))
        try:
            async for part in parts:
                _note_part(events, part)
                yield part
        except BelinoError as error:
            events.append({"failed": str(error), "error": type(error).__name__})
            raise
        finally:
            if isinstance(parts, AsyncGenerator):
                await parts.aclose()
            self._write(
                "exchange",
                turn.conversation,
                number=turn.number,
                remembers=agent.remembers,
                sees_images=agent.sees_images,
                accepts=accepted_by(agent),
                blocks=[block_json(block) for block in turn.blocks],
                events=events,
            )

    def _begin(self, wishes: Wishes) -> None:
        self._wishes = wishes
        self._scope = None if wishes.conversation is None else ConversationKey.parse(wishes.conversation)

    def _is_in_scope(self, conversation: ConversationKey) -> bool:
        scope = self._scope
        if scope is None:
            return True
        return conversation == scope if scope.thread is not None else conversation.whole_channel == scope

    def _write(self, record: str, conversation: ConversationKey, **content: object) -> None:
        if not self.on:
            return
        scrubbed = self._secrets.scrubbed(as_json(content))
        at = self._clock.now().isoformat()
        try:
            self.journal.append({"record": record, "at": at, "conversation": str(conversation), **scrubbed})
        except OSError as error:
            self._end(f"the disk cannot be written ({error.strerror})")
        self._look_at_limits()

    def _look_at_limits(self) -> None:
        if self._wishes is None or self._wishes.ended:
            return
        if self.journal.size > MOST_BYTES:
            self._end(f"it is over {MOST_BYTES // 1024**2} MB")
        elif self._clock.now() - datetime.fromisoformat(self._wishes.started) > timedelta(hours=MOST_HOURS):
            self._end(f"it ran for {MOST_HOURS} hours")

    def _end(self, why: str) -> None:
        assert self._wishes is not None
        log.warning("the recording stops itself: %s", why)
        self._wishes = self.journal.end(self._wishes, why)


class _NotedToolbox:
    """A toolbox whose calls are recorded."""

    def __init__(self, toolbox: Toolbox, events: list[Json]) -> None:
        self._toolbox = toolbox
        self._events = events

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._toolbox.specs

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        """Run a tool, and record its arguments and result."""
        event: Json = {"call": name, "arguments": as_json(arguments)}
        self._events.append(event)
        try:
            blocks = await self._toolbox.call(name, arguments)
        except ToolError as error:
            event["refused"] = str(error)
            raise
        event["result"] = [block_json(block) for block in blocks]
        return blocks


def block_json(block: Block) -> Json:
    """A content block; pictures and files by their hash."""
    match block:
        case TextBlock():
            return {"text": block.text}
        case ImageBlock():
            return {"block": "image", "sha256": block.sha256, "mime": block.mime, "ref": block.ref}
        case DocumentBlock():
            return {"block": "document", "sha256": block.sha256, "mime": block.mime, "ref": block.ref}
        case AudioBlock():
            return {"block": "audio", "sha256": block.sha256, "mime": block.mime, "ref": block.ref}
        case FileBlock():
            return {"block": "file", "sha256": block.sha256, "mime": block.mime, "ref": block.ref, "note": block.note}


def parcel_json(parcel: Parcel) -> Json:
    """The parts of a parcel that are compared: what people see of it."""
    return {
        "kind": str(parcel.kind),
        "text": parcel.text,
        "markup": str(parcel.markup),
        "reply_to": parcel.reply_to,
        "files": [
            {"name": file.name, "mime": file.mime, "size": file.size, "sha256": file.sha256,
             "send_as": str(file.send_as), "caption": file.caption}
            for file in parcel.files
        ],
    }  # fmt: skip


def _note_part(events: list[Json], part: ReplyPart) -> None:
    """Record a part; consecutive pieces of text become one."""
    last = events[-1] if events else {}
    if isinstance(part, TextDelta) and last.get("part") == "TextDelta":
        last["text"] += part.text
    else:
        events.append(part_json(part))


def _media(arrival: Arrival) -> Sequence[MediaRef]:
    if not isinstance(arrival, Message | Edit):
        return ()
    quotes = (arrival.quote, arrival.forward) if isinstance(arrival, Message) else ()
    return (*arrival.media, *(ref for quote in quotes if quote is not None for ref in quote.media))


def _without(value: Any, sealed: set[str]) -> Any:
    """A payload without the keys of its media."""
    match value:
        case Mapping():
            return {str(key): _without(inner, sealed) for key, inner in value.items()}
        case list() | tuple():
            return [_without(inner, sealed) for inner in value]
        case str():
            return SEALED if value in sealed else value
        case _:
            return value
