"""Turn runner: build the prompt, run the agent, end the turn in one transaction."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from belino.aio.deadline import deadline, or_abandon, ring
from belino.aio.retry import Retry
from belino.config import Config
from belino.context.history import History
from belino.context.prompt import system_prompt
from belino.delivery.send import ParcelNews
from belino.delivery.typing import keep_showing
from belino.domain.errors import AgentError, MemoryLost, StoreError, place_of, reason_of
from belino.domain.failpoints import failpoint
from belino.domain.media import TEXT_AND_PICTURES, AcceptedMedia, MediaBlock
from belino.domain.message import ConversationKey
from belino.domain.outcome import Counters, Stage, Step, TurnState
from belino.domain.ports import Adapter, Agent, Clock, Drafts, ShowsTyping, accepted_by
from belino.domain.reply import Parcel
from belino.domain.stored import ClaimedTurn, RefRecord, Session, TurnEnd
from belino.domain.turn import (
    Accepted,
    Compacted,
    Final,
    Refused,
    ReplyPart,
    TextDelta,
    Toolbox,
    ToolNote,
    Turn,
    Usage,
)
from belino.media.fetch import Fetcher
from belino.media.render import Renderer
from belino.net.tap import on_behalf
from belino.storage.home import Home
from belino.storage.store import Store
from belino.tools.tool_context import ToolContext
from belino.tools.toolbox import make_toolbox
from belino.turns.agents import Agents
from belino.turns.attach import MediaAttacher
from belino.turns.drafts import Draft, DraftWriter, TurnEvents
from belino.turns.prompt import PromptBuilder, Withdrawn
from belino.turns.reading import ADDRESSED, NOT_ADDRESSED, TurnReader, TurnReadings, is_unheard, names
from belino.turns.reply import Replies
from belino.turns.state import RecordingFetcher, TurnProgress, repaired

if TYPE_CHECKING:
    from belino.understanding.read import Understanding

log = logging.getLogger(__name__)

CANCEL_SECONDS = 5.0
"""How long a cancelled agent may take to end before it is abandoned."""
NOTE_CHARS = 500
"""Characters of a tool's progress note that people see."""


class RecordsTurns(Protocol):
    """The part of the recorder that a running turn needs."""

    def run_turn(self, agent: Agent, turn: Turn) -> AsyncIterator[ReplyPart]: ...
    def ended(self, claimed: ClaimedTurn, end: TurnEnd) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMedia:
    """Where a turn's tools get media from."""

    fetcher: Fetcher
    renderer: Callable[[], Renderer]
    """Made with the first toolbox: its cache costs start-up time."""
    understanding: "Callable[[], Understanding | None]"
    """Made with the first media that is to be read."""
    wake_words: Callable[[ConversationKey], Awaitable[Sequence[str]]]
    """The words that address the agent in a conversation like its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnObservers:
    """The parts of the gateway that are notified of a turn's progress."""

    events: TurnEvents
    counters: Counters
    recorder: RecordsTurns
    replied: Callable[[ConversationKey], None]
    """Called when parcels of a conversation are in the outbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The environment that turns run in."""

    config: Config
    home: Home
    clock: Clock
    insist: Retry
    """Retries a store call until it succeeds."""


class TurnRunner:
    """Runs turns, each with the agent of its conversation."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        media: TurnMedia,
        history: History,
        replies: Replies,
        environment: Environment,
        observers: TurnObservers,
    ) -> None:
        self._store = store
        self._agents = agents
        self._adapters = adapters
        self._fetcher = media.fetcher
        self._renderer = media.renderer
        self._understanding = media.understanding
        self._wake_words = media.wake_words
        self._reader = TurnReader(
            store,
            media.understanding,
            agents,
            seconds=environment.config.tools.media.turn_seconds,
            attaches=attaches(environment.config),
            clock=environment.clock,
            watch=observers.events.reading,
        )
        self._history = history
        self._replies = replies
        self._config = environment.config
        self._home = environment.home
        self._clock = environment.clock
        self._insist = environment.insist
        self._events = observers.events
        self._counters = observers.counters
        self._recorder = observers.recorder
        self._replied = observers.replied
        self._key = environment.home.key_file.read_bytes()
        self._underway: dict[int, asyncio.Event] = {}
        """By turn, what is set when it ends."""
        self._running: dict[ConversationKey, asyncio.Timeout] = {}
        self._aborted: set[ConversationKey] = set()
        self._doing: dict[ConversationKey, str] = {}
        """What a running tool is doing, shown beside the typing indicator."""
        self._drafts: dict[ConversationKey, DraftWriter] = {}

    def abort(self, conversation: ConversationKey) -> bool:
        """Stop the agent during its turn; False if none runs here."""
        scope = self._running.get(conversation)
        if scope is None:
            return False
        self._aborted.add(conversation)
        ring(scope)
        return True

    async def run(self, claimed: ClaimedTurn) -> None:
        """Run one turn to its end, with the agents of now. If cancelled, requeue the turn unchanged."""
        ended = self._underway[claimed.id] = asyncio.Event()
        try:
            async with self._agents.turn():
                await self._run(claimed)
        finally:
            del self._underway[claimed.id]
            ended.set()

    async def drained(self) -> None:
        """Wait until the turns that run now have ended."""
        for ended in tuple(self._underway.values()):
            await ended.wait()

    def reconfigure(self, config: Config) -> None:
        """Use other settings from now on."""
        self._config = config
        self._reader.seconds = config.tools.media.turn_seconds
        self._reader.attaches = attaches(config)

    async def _run(self, claimed: ClaimedTurn) -> None:
        log.info("turn %d in %s begins (trace %s)", claimed.id, claimed.conversation, claimed.trace)
        failpoint("turn.begin")
        if is_unheard(claimed):
            heard = await self._hear(claimed)
            if heard is None:
                return
            claimed = heard
        self._events.turn(claimed.conversation, claimed.id, TurnState.RUNNING)
        for message in claimed.messages:
            self._events.message(message)
        try:
            drafting = await self._begin_draft(claimed)
            async with asyncio.TaskGroup() as group:
                signs = [group.create_task(self._keep_typing(claimed.conversation))]
                if drafting is not None:
                    signs.append(group.create_task(drafting.show()))
                with on_behalf(claimed.conversation):
                    end = answered = await self._answer(claimed)
                if drafting is not None:
                    await drafting.stop()
                for sign in signs:
                    sign.cancel()
            end = await self._finish(claimed, self._drafted(claimed, end))
        except BaseException:
            # Cancelled, or an error outside the agent: a turn left as running would block its conversation.
            await self._give_back(claimed)
            raise
        finally:
            self._replies.done(claimed.id)
            self._drafts.pop(claimed.conversation, None)
        self._recorder.ended(claimed, answered)
        if end.parcels:
            self._replied(claimed.conversation)
        self._counters.turns[end.state] += 1
        log.info("turn %d in %s is %s (trace %s)", claimed.id, claimed.conversation, end.state, claimed.trace)
        await self._tell_end(claimed, end)

    async def _finish(self, claimed: ClaimedTurn, end: TurnEnd) -> TurnEnd:
        """Commit the end; an end that the store can never accept must not block the conversation forever."""
        what = f"turn {claimed.id}"
        failpoint("turn.finish.before")
        try:
            await self._insist(what, lambda: self._store.finish_turn(claimed.id, end))
            failpoint("turn.finish.after")
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - an answer that cannot be stored still ends its turn
            log.error("turn %d (trace %s) cannot be kept: %s", claimed.id, claimed.trace, place_of(error))
            reason = f"its answer could not be kept ({type(error).__name__})"
            plain = TurnEnd(state=TurnState.FAILED, reason=reason, parcels=self._apology(claimed, reason))
            plain = self._drafted(claimed, plain)
            await self._insist(what, lambda: self._store.finish_turn(claimed.id, plain))
            return plain
        return end

    def parcel_news(self, news: ParcelNews) -> None:
        """Handle a parcel's new state: a draft may wait for it."""
        if drafting := self._drafts.get(news.conversation):
            drafting.news(news)

    def toolbox(self, conversation: ConversationKey) -> Toolbox:
        """A conversation's tools outside a turn."""
        return self._toolbox(conversation, self._fetcher)

    async def _answer(self, claimed: ClaimedTurn) -> TurnEnd:
        found = await self._insist(f"turn {claimed.id}", lambda: self._store.session(claimed.conversation))
        failpoint("turn.session.loaded")
        session = found.found_by(self._agents.kind(claimed.conversation))
        progress = self._begin_progress(claimed, session)
        allowed = self._config.sessions
        if claimed.interruptions >= allowed.attempts:
            times = "once" if claimed.interruptions == 1 else f"{claimed.interruptions} times"
            return await self._failed(claimed, progress, f"belino stopped {times} while this ran alone")
        if claimed.suspect:
            log.info("turn %d was interrupted by a crash and runs alone; others wait", claimed.id)
            await progress.runs_alone()
        scope = None
        try:
            read = await self._read(claimed, progress)
            async with deadline(self._clock, allowed.turn_seconds) as scope:
                self._running[claimed.conversation] = scope
                heard = self._heard(claimed, progress, session, read)
                text = await or_abandon(heard, self._clock, grace=CANCEL_SECONDS)
        except Withdrawn as error:
            return await progress.end(TurnState.ABORTED, str(error))
        except Exception as error:  # noqa: BLE001 - any error of an agent ends its turn visibly
            reason = _reason(error)
            if scope is not None and scope.expired():
                reason = f"the agent did not finish within {allowed.turn_seconds} seconds"
            if claimed.conversation in self._aborted:
                return await progress.end(TurnState.ABORTED, "stopped by a person")
            log.warning("turn %d (trace %s) fails: %s", claimed.id, claimed.trace, place_of(error))
            return await self._failed(claimed, progress, reason)
        finally:
            progress.needed.close()
            self._running.pop(claimed.conversation, None)
            self._doing.pop(claimed.conversation, None)
            aborted = claimed.conversation in self._aborted
            self._aborted.discard(claimed.conversation)
        if aborted:
            return await progress.end(TurnState.ABORTED, "stopped by a person")
        parcels = await self._replies.parcels(claimed, text, progress.offers, progress.note)
        reason = "" if parcels else "the agent had nothing to say"
        return await progress.end(TurnState.ANSWERED, reason, parcels)

    def _begin_progress(self, claimed: ClaimedTurn, session: Session) -> TurnProgress:
        return TurnProgress(
            claimed,
            session,
            self._store,
            clock=self._clock,
            counters=self._counters,
            agent=self._agents.kind(claimed.conversation),
            remembers=self._agents.at(claimed.conversation).remembers,
        )

    async def _hear(self, claimed: ClaimedTurn) -> ClaimedTurn | None:
        """Read a voice message before the gate: the turn, now of a command; or None, and it has ended, observed."""
        note = partial(self._store.note, claimed.trace)
        try:
            read = await self._reader.read(claimed, note, self._running, self._aborted)
            called = (self._agents.author(claimed.conversation).name, *await self._wake_words(claimed.conversation))
            if any(names(read.transcript, name) for name in called):
                messages = await self._store.let_command(claimed.id, ADDRESSED)
                return replace(claimed, messages=messages)
        except TimeoutError:
            self._aborted.discard(claimed.conversation)
        except BaseException:
            await self._give_back(claimed)
            raise
        end = TurnEnd(state=TurnState.ABORTED, reason=NOT_ADDRESSED)
        await self._insist(f"turn {claimed.id}", lambda: self._store.finish_turn(claimed.id, end))
        await self._tell_messages(claimed.conversation, [message.id for message in claimed.messages])
        return None

    async def _read(self, claimed: ClaimedTurn, progress: TurnProgress) -> TurnReadings:
        """What the message's media say; a transcript is posted first, if that is wanted."""
        read = await self._reader.read(claimed, progress.note, self._running, self._aborted)
        failpoint("turn.media.read")
        tools = self._config.tools.media
        if tools.echo_transcript and read.transcript:
            try:
                await self._replies.post_transcript(claimed, read.transcript, tools.echo_format)
            except StoreError as error:
                step = Step(at=self._clock.now(), stage=Stage.READING, outcome="not posted", reason=reason_of(error))
                await progress.note(step)
        if read.decisions:
            await self._tell_messages(claimed.conversation, [message.id for message in claimed.messages])
        return read

    async def _heard(self, claimed: ClaimedTurn, progress: TurnProgress, session: Session, read: TurnReadings) -> str:
        try:
            return await self._listen(claimed, progress, session, read)
        except MemoryLost as error:
            log.warning("the agent of %s begins again without memory (trace %s)", claimed.conversation, claimed.trace)
            await progress.forget(reason_of(error))
        return await self._listen(claimed, progress, session.forgotten(), read)

    async def _listen(self, claimed: ClaimedTurn, progress: TurnProgress, session: Session, read: TurnReadings) -> str:
        if note := await self._history.before_turn(claimed.messages[-1]):
            await progress.note(Step(at=self._clock.now(), stage=Stage.TURN, outcome="history incomplete", reason=note))
        turn = await self._build(claimed, progress, session, read, is_whole=not note)
        failpoint("turn.prompt.built")
        parts = self._recorder.run_turn(self._agents.at(claimed.conversation), turn)
        draft = Draft(claimed.conversation, claimed.id, self._events, self._clock)
        length = Length(self._config.sessions.max_reply_chars)
        try:
            async for part in parts:
                length.add(part)
                await asyncio.sleep(0)  # an agent that never awaits must not keep the deadline from firing
                failpoint("turn.agent.part")
                if isinstance(part, Final):
                    failpoint("turn.agent.final")
                    if drafting := self._drafts.get(claimed.conversation):
                        drafting.hush()
                    return repaired(part.text)
                if isinstance(part, TextDelta):
                    draft.write(repaired(part.text))
                else:
                    draft.flush()
                await self._take(part, claimed, progress)
        finally:
            if isinstance(parts, AsyncGenerator):
                await parts.aclose()
        raise AgentError("the agent ended without an answer")

    async def _take(self, part: ReplyPart, claimed: ClaimedTurn, progress: TurnProgress) -> None:
        match part:
            case ToolNote():
                note = repaired(part.text[:NOTE_CHARS])
                self._events.turn(claimed.conversation, claimed.id, "note", note)
                self._doing[claimed.conversation] = note
            case Accepted():
                progress.accepted()
            case Compacted():
                await progress.compacted(part)
            case Usage():
                progress.spent(part)
            case Refused():
                await progress.refused(part)
            case TextDelta():
                if drafting := self._drafts.get(claimed.conversation):
                    drafting.write(repaired(part.text))
            case Final():
                pass

    def _prompt_builder(self, conversation: ConversationKey) -> PromptBuilder:
        agent = self._agents.at(conversation)
        side = self._config.media.image_block_side
        return PromptBuilder(
            self._store, agent, self._config.context, clock=self._clock, key=self._key, picture_side=side
        )

    async def _build(
        self, claimed: ClaimedTurn, progress: TurnProgress, session: Session, read: TurnReadings, *, is_whole: bool
    ) -> Turn:
        conversation = claimed.conversation
        builder = self._prompt_builder(conversation)
        attaching = partial(self._attaching, claimed, progress)
        prompt = await builder.build(claimed, session, attaching, read, is_whole=is_whole)
        progress.tells(prompt.told, recovers=prompt.recovers, gives_context=prompt.gives_context)
        for step in prompt.steps:
            await progress.note(step)
        return Turn(
            conversation=conversation,
            number=claimed.number,
            system=system_prompt(),
            blocks=prompt.blocks,
            messages=prompt.messages,
            toolbox=self._toolbox(
                conversation,
                RecordingFetcher(self._fetcher, progress, self._tell_media),
                progress=progress,
                fence=builder.fence(claimed),
            ),
            memory=progress,
            folder=self._home.incoming(conversation),
            outgoing=self._home.outgoing(conversation) / "pending",
            deadline=self._clock.now() + timedelta(seconds=self._config.sessions.turn_seconds),
        )

    def _attaching(self, claimed: ClaimedTurn, progress: TurnProgress, again: bool) -> MediaAttacher:
        """Attaches media with the agent's own tools; the agent did not call them, so the calls are not recorded."""
        agent = self._agents.at(claimed.conversation)
        why = "attached again after compaction" if again else "attached with the message"
        fetcher = RecordingFetcher(self._fetcher, progress, self._tell_media, why=why)
        return MediaAttacher(
            library=self._store,
            channel=claimed.conversation.whole_channel,
            toolbox=self._toolbox(
                claimed.conversation,
                fetcher,
                progress=progress,
                shown=progress.shown_again if again else progress.shown,
            ),
            context=progress.context,
            sees_images=agent.sees_images,
            accepts=accepted_by(agent),
            fence=self._prompt_builder(claimed.conversation).fence(claimed),
            again=again,
        )

    def _toolbox(
        self,
        conversation: ConversationKey,
        fetcher: Fetcher,
        *,
        progress: TurnProgress | None = None,
        shown: Callable[[MediaBlock], None] | None = None,
        fence: str = "",
    ) -> Toolbox:
        """The channel's tools: for an agent, recorded in its turn's progress; with `shown`, for belino itself."""
        noted, agent = progress if shown is None else None, self._agents.at(conversation)
        context = ToolContext(
            conversation=conversation,
            library=self._store,
            archive=self._store,
            fetcher=fetcher,
            history=self._history,
            folder=self._home.incoming(conversation),
            notes=noted.note if noted else None,
            shown=noted.shown if noted else shown,
            clock=self._clock,
            renderer=self._renderer(),
            understanding=self._understanding(),
            fence=fence or self._prompt_builder(conversation).fence_outside(conversation),
            sees_images=agent.sees_images,
            accepts=_accepted(agent, in_prompt=shown is not None) if progress else TEXT_AND_PICTURES,
            image_block_bytes=self._config.media.image_block_bytes,
            image_block_side=self._config.media.image_block_side,
            manifest=progress.context if progress else (),
            shown_now=progress.shown_now if progress else set(),
            answers=progress.answers if progress else (),
        )
        offers = progress.offers if progress else None
        outlet = partial(self._replies.outlet, conversation, offers) if shown is None else None
        return make_toolbox(context, outlet, speaker=self._replies.speaker)

    async def _failed(self, claimed: ClaimedTurn, progress: TurnProgress, reason: str) -> TurnEnd:
        return await progress.end(TurnState.FAILED, reason, self._apology(claimed, reason))

    def _apology(self, claimed: ClaimedTurn, reason: str) -> tuple[Parcel, ...]:
        return self._replies.words(claimed, f"Sorry, I could not answer that: {reason}.")

    async def _begin_draft(self, claimed: ClaimedTurn) -> DraftWriter | None:
        """The draft writer of this turn, if the platform supports drafts and the operator wants them."""
        where = claimed.conversation
        adapter = self._adapters.get((where.platform, where.account))
        pause = adapter.draft_pause(where) if isinstance(adapter, Drafts) else None
        if not isinstance(adapter, Drafts) or pause is None:
            return None
        drafting = self._drafts[where] = DraftWriter(
            claimed,
            adapter,
            adapter.limits,
            self._store,
            pause=pause,
            clean=partial(_without_folders, self._home.folder(where)),
            clock=self._clock,
            put=lambda: self._replied(where),
        )
        await self._insist(f"turn {claimed.id}", drafting.resume)
        return drafting

    def _drafted(self, claimed: ClaimedTurn, end: TurnEnd) -> TurnEnd:
        drafting = self._drafts.get(claimed.conversation)
        return end if drafting is None else drafting.finish(end)

    async def _give_back(self, claimed: ClaimedTurn) -> None:
        try:
            await self._store.release_turn(claimed.id)
        except StoreError as error:
            # The turn is still marked as running, and the next start requeues it.
            log.warning("turn %d could not be given back: %s", claimed.id, place_of(error))
            return
        self._events.turn(claimed.conversation, claimed.id, TurnState.WAITING)

    async def _tell_end(self, claimed: ClaimedTurn, end: TurnEnd) -> None:
        await self._tell_messages(claimed.conversation, [message.id for message in claimed.messages])
        self._events.turn(claimed.conversation, claimed.id, end.state, end.reason)

    async def _tell_media(self, record: RefRecord) -> None:
        """Publish the message whose media was fetched or failed."""
        await self._tell_messages(record.conversation, [record.ref.message_id])

    async def _tell_messages(self, conversation: ConversationKey, ids: Sequence[str]) -> None:
        if not self._events.watched(conversation):
            self._events.changed(conversation)
            return
        try:
            for message in await self._store.messages(conversation.whole_channel, ids):
                self._events.message(message)
        except StoreError:
            self._events.lost()

    async def _keep_typing(self, conversation: ConversationKey) -> None:
        adapter = self._adapters.get((conversation.platform, conversation.account))
        if isinstance(adapter, ShowsTyping):
            await keep_showing(lambda: adapter.show_typing(conversation, self._doing.get(conversation)), self._clock)


def attaches(config: Config) -> bool:
    """Whether media of the message is attached as far as the agent takes it."""
    return config.context.attach_media in ("message", "thread")


class Length:
    """The length of an answer, streamed and complete; over the limit, the turn ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._written = 0

    def add(self, part: ReplyPart) -> None:
        """Count a part; AgentError if the answer is too long."""
        if isinstance(part, TextDelta):
            self._written += len(part.text)
        if self._written > self._limit or (isinstance(part, Final) and len(part.text) > self._limit):
            raise AgentError(
                f"the agent's answer is over {self._limit} characters; ask for less, or for a file, "
                "or raise sessions.max_reply_chars"
            )


def _accepted(agent: Agent, *, in_prompt: bool) -> AcceptedMedia:
    """The blocks that an agent accepts in its prompt, or in the result of a tool."""
    accepts = accepted_by(agent)
    return accepts if in_prompt or accepts.in_results else TEXT_AND_PICTURES


def _without_folders(folder: Path, text: str) -> str:
    """The text with file names instead of local paths, like the finished answer."""
    for place in ("outgoing/pending/", "outgoing/", "incoming/"):
        text = text.replace(f"{folder}/{place}", "")
    return text


def _reason(error: Exception) -> str:
    return repaired(reason_of(error)) if isinstance(error, AgentError | StoreError) else type(error).__name__
