"""Turn runner: build the prompt, run the agent, end the turn in one transaction."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from belino.aio.deadline import deadline, or_abandon
from belino.config import Config
from belino.context.history import History
from belino.context.prompt import system_prompt
from belino.delivery.send import ParcelNews
from belino.domain.choice import Choice
from belino.domain.commands import ChatCommand
from belino.domain.errors import AgentError, MemoryLost, StoreError, place_of, reason_of
from belino.domain.failpoints import failpoint
from belino.domain.media import TEXT_AND_PICTURES, Block, MediaBlock
from belino.domain.message import ConversationKey
from belino.domain.outcome import Stage, Step, TurnState
from belino.domain.ports import Adapter, Drafts, accepted_by
from belino.domain.stored import ClaimedTurn, RefRecord, Session, TurnEnd
from belino.domain.turn import (
    Accepted,
    Compacted,
    Final,
    Mishap,
    Refused,
    ReplyPart,
    TextDelta,
    Toolbox,
    ToolNote,
    Turn,
    Usage,
)
from belino.media.fetch import Fetcher
from belino.media.session_files import IPC_MEDIA
from belino.net.tap import on_behalf
from belino.storage.store import Store
from belino.tools.acting import Acting
from belino.tools.tool_context import ToolContext, as_in_container
from belino.tools.toolbox import make_toolbox
from belino.turns.agents import Agents, accepted_in, agent_may
from belino.turns.attach import MediaAttacher, attaches
from belino.turns.attachments import AttachmentOpener
from belino.turns.client_notes import ClientNotes
from belino.turns.drafts import Draft, DraftWriter, without_folders
from belino.turns.environment import Environment, TurnMedia, TurnObservers
from belino.turns.failure import Length, TurnFailure, TurnFailures, empty, failure_of, not_kept
from belino.turns.prompt import PromptBuilder, TurnPrompt, Withdrawn
from belino.turns.reading import (
    ADDRESSED,
    NOT_ADDRESSED,
    TurnReader,
    TurnReadings,
    command_in_speech,
    is_unheard,
    names,
)
from belino.turns.reply import Replies
from belino.turns.state import RecordingFetcher, TurnProgress, repaired
from belino.turns.underway import Underway

log = logging.getLogger(__name__)

CANCEL_SECONDS = 5.0
"""How long a cancelled agent may take to end before it is abandoned."""
NOTE_CHARS = 500
"""Characters of a tool's progress note that people see."""


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
        self._link = media.link
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
        self._tools = environment.tools
        self._events = observers.events
        self._counters = observers.counters
        self._recorder = observers.recorder
        self._failures = TurnFailures(observers.owners)
        self._replied = observers.replied
        self._signs = observers.signs
        self._commanded = observers.commanded
        self._begins = observers.begins
        self._key = environment.home.key_file.read_bytes()
        self._client_notes = ClientNotes(store)
        self.underway = Underway()
        self._doing: dict[ConversationKey, str] = {}
        """What a running tool is doing, shown beside the typing indicator."""
        self._drafts: dict[ConversationKey, DraftWriter] = {}

    def abort(self, conversation: ConversationKey) -> bool:
        """Stop the agent during its turn; False if none runs here."""
        return self.underway.abort(conversation)

    async def run(self, claimed: ClaimedTurn) -> None:
        """Run one turn to its end, with the agents of now. If cancelled, requeue the turn unchanged."""
        self._signs.begin(claimed.conversation, claimed.messages)
        state = TurnState.WAITING
        with self.underway.turn(claimed):
            try:
                async with self._agents.turn():
                    state = await self._run(claimed)
            finally:
                self._signs.end(claimed.conversation, claimed.messages[-1], state)

    async def drained(self) -> None:
        """Wait until the turns that run now have ended."""
        await self.underway.drained()

    def reconfigure(self, config: Config) -> None:
        """Use other settings from now on."""
        self._config = config
        self._reader.seconds = config.tools.media.turn_seconds
        self._reader.attaches = attaches(config)

    async def _run(self, claimed: ClaimedTurn) -> TurnState:
        log.info("turn %d in %s begins (trace %s)", claimed.id, claimed.conversation, claimed.trace)
        failpoint("turn.begin")
        if is_unheard(claimed):
            heard = await self._hear(claimed)
            if heard is None:
                return TurnState.ABORTED
            claimed = heard
        self._events.turn(claimed.conversation, claimed.id, TurnState.RUNNING)
        for message in claimed.messages:
            self._events.message(message)
        doing = partial(self._doing.get, claimed.conversation)
        try:
            drafting = await self._begin_draft(claimed)
            async with asyncio.TaskGroup() as group:
                signs = [group.create_task(self._signs.show(claimed.conversation, claimed.messages[-1], doing))]
                if drafting is not None:
                    signs.append(group.create_task(drafting.show()))
                with on_behalf(claimed.conversation):
                    answered = await self._answer(claimed)
                if drafting is not None:
                    await drafting.stop()
                for sign in signs:
                    sign.cancel()
            end = None if answered is None else await self._finish(claimed, await self._drafted(claimed, answered))
        except BaseException:
            # Cancelled, or an error outside the agent: a turn left as running would block its conversation.
            await self._give_back(claimed)
            raise
        finally:
            self._replies.done(claimed.id)
            self._drafts.pop(claimed.conversation, None)
        if answered is None or end is None:
            log.info("turn %d in %s starts again, with what came since", claimed.id, claimed.conversation)
            return TurnState.WAITING
        self._recorder.ended(claimed, answered)
        if end.parcels:
            self._replied(claimed.conversation)
        self._counters.turns[end.state] += 1
        log.info("turn %d in %s is %s (trace %s)", claimed.id, claimed.conversation, end.state, claimed.trace)
        await self._tell_end(claimed, end)
        return end.state

    async def _finish(self, claimed: ClaimedTurn, end: TurnEnd) -> TurnEnd | None:
        """Commit the end; an end that the store can never accept must not block the conversation forever.

        None if the turn starts again, because a message joined it.
        """
        what = f"turn {claimed.id}"
        failpoint("turn.finish.before")
        try:
            is_over = await self._insist(what, lambda: self._store.finish_turn(claimed.id, end))
            failpoint("turn.finish.after")
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - an answer that cannot be stored still ends its turn
            log.error("turn %d (trace %s) cannot be kept: %s", claimed.id, claimed.trace, place_of(error))
            failure = not_kept(error)
            await self._failures.tell(self._agents.author(claimed.conversation).name, failure)
            words = self._replies.words(claimed, failure.apology)
            plain = await self._drafted(claimed, TurnEnd(state=TurnState.FAILED, reason=failure.reason, parcels=words))
            is_over, end = await self._insist(what, lambda: self._store.finish_turn(claimed.id, plain)), plain
        return None if is_over is False else end

    def parcel_news(self, news: ParcelNews) -> None:
        """Handle a parcel's new state: a draft may wait for it."""
        if drafting := self._drafts.get(news.conversation):
            drafting.news(news)

    def toolbox(self, conversation: ConversationKey) -> Toolbox:
        """A conversation's tools outside a turn."""
        return self._toolbox(self._client_context(conversation))

    def container_toolbox(self, conversation: ConversationKey, *, of_turn: bool) -> Toolbox:
        """The same for an agent in a container: of the turn that runs there, if it is asked for."""
        make = self.underway.tools.get(conversation) if of_turn else None
        return (make or partial(self._toolbox, self._client_context(conversation)))(in_container=True)

    def _client_context(self, conversation: ConversationKey) -> ToolContext:
        context = self._tool_context(conversation, self._fetcher)
        return replace(context, notes=partial(self._client_notes.note, conversation))

    async def _answer(self, claimed: ClaimedTurn) -> TurnEnd | None:
        """The end of the turn; None if it starts again with a message that joined it."""
        found = await self._insist(f"turn {claimed.id}", lambda: self._store.session(claimed.conversation))
        failpoint("turn.session.loaded")
        session = found.found_by(self._agents.kind(claimed.conversation))
        progress = self._begin_progress(claimed, session)
        allowed = self._config.sessions
        if claimed.interruptions >= allowed.attempts:
            times = "once" if claimed.interruptions == 1 else f"{claimed.interruptions} times"
            return await self._failed(claimed, progress, TurnFailure(f"belino stopped {times} while this ran alone"))
        if claimed.suspect:
            log.info("turn %d was interrupted by a crash and runs alone; others wait", claimed.id)
            await progress.runs_alone()
        scope = None
        try:
            read = await self._read(claimed, progress)
            if command := command_in_speech(claimed, read):
                return await self._carry_out(claimed, progress, command)
            async with deadline(self._clock, allowed.turn_seconds) as scope:
                self.underway.begins(claimed, scope)
                heard = self._heard(claimed, progress, session, read)
                final = await or_abandon(heard, self._clock, grace=CANCEL_SECONDS)
        except Withdrawn as error:
            return await progress.end(TurnState.ABORTED, str(error))
        except Exception as error:  # noqa: BLE001 - any error of an agent ends its turn visibly
            if self.underway.is_restarted(claimed.id):
                return None
            is_late = scope is not None and scope.expired()
            late = TurnFailure(f"the agent did not finish within {allowed.turn_seconds} seconds")
            return await self._broken(claimed, progress, late if is_late else failure_of(error), error)
        finally:
            progress.needed.close()
            self._doing.pop(claimed.conversation, None)
            aborted = self.underway.aborted.get(claimed.conversation)
            self.underway.answered(claimed)
        if aborted:
            return await progress.end(TurnState.ABORTED, aborted)
        return None if self.underway.is_restarted(claimed.id) else await self._said(claimed, progress, final)

    async def _broken(
        self, claimed: ClaimedTurn, progress: TurnProgress, failure: TurnFailure, error: Exception
    ) -> TurnEnd:
        """The end of a turn whose agent was stopped, or failed."""
        if why := self.underway.aborted.get(claimed.conversation):
            return await progress.end(TurnState.ABORTED, why)
        log.warning("turn %d (trace %s) fails: %s", claimed.id, claimed.trace, failure.trace or place_of(error))
        return await self._failed(claimed, progress, failure)

    async def _said(self, claimed: ClaimedTurn, progress: TurnProgress, final: Final) -> TurnEnd:
        """The end of a turn whose agent came to its end."""
        if progress.silence is not None:
            return await progress.chose_silence()
        text, note = repaired(final.text), progress.note
        parcels = await self._replies.parcels(claimed, text, progress.offers, note, progress.choices)
        if not parcels and not progress.asked:
            return await self._failed(claimed, progress, empty(final.why))
        await self._failures.ended(self._agents.author(claimed.conversation).name)
        reason = repaired(final.why) or ("" if parcels else "asked a question")
        return await progress.end(TurnState.ANSWERED, reason, parcels)

    async def _carry_out(self, claimed: ClaimedTurn, progress: TurnProgress, command: ChatCommand) -> TurnEnd:
        """End the turn of a spoken command with what belino answers."""
        effect = await self._commanded(command, claimed)
        return TurnEnd(state=TurnState.ANSWERED, reason=effect.reason, parcels=effect.answer)

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
            read = await self._reader.read(claimed, note, self.underway)
            called = (self._agents.author(claimed.conversation).name, *await self._wake_words(claimed.conversation))
            if any(names(read.transcript, name) for name in called):
                messages = await self._store.let_command(claimed.id, ADDRESSED)
                return replace(claimed, messages=messages)
        except TimeoutError:
            self.underway.aborted.pop(claimed.conversation, None)
        except BaseException:
            await self._give_back(claimed)
            raise
        end = TurnEnd(state=TurnState.ABORTED, reason=NOT_ADDRESSED)
        await self._insist(f"turn {claimed.id}", lambda: self._store.finish_turn(claimed.id, end))
        await self._tell_messages(claimed.conversation, [message.id for message in claimed.messages])
        return None

    async def _read(self, claimed: ClaimedTurn, progress: TurnProgress) -> TurnReadings:
        """What the message's media say; a transcript is posted first, if that is wanted."""
        read = await self._reader.read(claimed, progress.note, self.underway)
        failpoint("turn.media.read")
        tools = self._config.tools.media
        if tools.echo_transcript and read.transcript:
            self.underway.seen(claimed.id)
            try:
                await self._replies.post_transcript(claimed, read.transcript, tools.echo_format)
            except StoreError as error:
                step = Step(at=self._clock.now(), stage=Stage.READING, outcome="not posted", reason=reason_of(error))
                await progress.note(step)
        if read.decisions:
            await self._tell_messages(claimed.conversation, [message.id for message in claimed.messages])
        return read

    async def _heard(self, claimed: ClaimedTurn, progress: TurnProgress, session: Session, read: TurnReadings) -> Final:
        try:
            return await self._listen(claimed, progress, session, read)
        except MemoryLost as error:
            log.warning("the agent of %s begins again without memory (trace %s)", claimed.conversation, claimed.trace)
            await progress.forget(reason_of(error))
        return await self._listen(claimed, progress, session.forgotten(), read)

    async def _listen(
        self, claimed: ClaimedTurn, progress: TurnProgress, session: Session, read: TurnReadings
    ) -> Final:
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
                    progress.choices += part.choices
                    if part.silent:
                        progress.stay_silent(part.text or progress.silence or "")
                    return part
                if isinstance(part, TextDelta | ToolNote):
                    self.underway.seen(claimed.id)
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
            case Mishap():
                await progress.mishap(part)
            case Choice():
                progress.choices.append(part)
            case TextDelta():
                if (drafting := self._drafts.get(claimed.conversation)) and progress.silence is None:
                    drafting.write(repaired(part.text))

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
        await self._begins(conversation)
        builder = self._prompt_builder(conversation)
        attaching = partial(self._attaching, claimed, progress)
        prompt = await builder.build(claimed, session, attaching, read, is_whole=is_whole)
        progress.tells(prompt.told, recovers=prompt.recovers, gives_context=prompt.gives_context)
        for step in prompt.steps:
            await progress.note(step)
        fetcher = RecordingFetcher(self._fetcher, progress, self._tell_media)
        context = self._tool_context(conversation, fetcher, progress=progress, fence=builder.fence(claimed))
        own = partial(self._toolbox, context, progress=progress)
        toolbox = self.underway.watched(claimed, own)()
        return Turn(
            conversation=conversation,
            number=claimed.number,
            system=system_prompt(),
            blocks=prompt.blocks + await self._prefetched(claimed, progress, prompt),
            messages=AttachmentOpener(context=context, opened=progress.opened).messages(prompt),
            toolbox=toolbox,
            tools_at=partial(self._tools.open, conversation, toolbox),
            memory=progress,
            folder=self._home.incoming(conversation),
            outgoing=self._home.outgoing(conversation) / "pending",
            deadline=self._clock.now() + timedelta(seconds=self._config.sessions.turn_seconds),
            model=self._agents.usable_model(conversation, (await self._store.chat_settings(conversation)).model),
            recover=partial(self._recover, claimed, progress, session),
        )

    async def _prefetched(self, claimed: ClaimedTurn, progress: TurnProgress, prompt: TurnPrompt) -> tuple[Block, ...]:
        """Put the message's files into the session's folder, if the operator wants it and the agent opens files."""
        if self._config.media.prefetch == "never" or not accepted_by(self._agents.at(claimed.conversation)).files:
            return ()
        refs = [ref for message in prompt.messages for ref in message.media]
        put = await self._attaching(claimed, progress, why="put into the session's folder").prefetch(refs)
        if put.blocks:
            reason = f"{put.items} in the session's folder, {put.failed} not to be had, {put.left} left out"
            await progress.note(Step(at=self._clock.now(), stage=Stage.TURN, outcome="files prefetched", reason=reason))
        return put.blocks

    async def _recover(self, claimed: ClaimedTurn, progress: TurnProgress, session: Session) -> tuple[Block, ...]:
        """The media that a compaction in this turn removed."""
        builder, attaching = self._prompt_builder(claimed.conversation), partial(self._attaching, claimed, progress)
        blocks, steps = await builder.recover(claimed, session, attaching)
        for step in steps:
            await progress.note(step)
        return blocks

    def _attaching(
        self, claimed: ClaimedTurn, progress: TurnProgress, again: bool = False, why: str = "attached with the message"
    ) -> MediaAttacher:
        """Attaches media with the agent's own tools; the agent did not call them, so the calls are not recorded."""
        agent = self._agents.at(claimed.conversation)
        why = "attached again after compaction" if again else why
        fetcher = RecordingFetcher(self._fetcher, progress, self._tell_media, why=why)
        shown = progress.shown_again if again else progress.shown
        context = self._tool_context(claimed.conversation, fetcher, progress=progress, shown=shown)
        return MediaAttacher(
            library=self._store,
            channel=claimed.conversation.whole_channel,
            toolbox=make_toolbox(context),
            context=progress.context,
            sees_images=agent.sees_images,
            accepts=accepted_by(agent),
            fence=self._prompt_builder(claimed.conversation).fence(claimed),
            again=again,
        )

    def _tool_context(
        self,
        conversation: ConversationKey,
        fetcher: Fetcher,
        *,
        progress: TurnProgress | None = None,
        shown: Callable[[MediaBlock], None] | None = None,
        fence: str = "",
    ) -> ToolContext:
        """What tools work on: for an agent, recorded in its turn's progress; with `shown`, for belino itself."""
        noted, agent = progress if shown is None else None, self._agents.at(conversation)
        return ToolContext(
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
            accepts=accepted_in(agent, in_prompt=shown is not None) if progress else TEXT_AND_PICTURES,
            image_block_bytes=self._config.media.image_block_bytes,
            image_block_side=self._config.media.image_block_side,
            manifest=progress.context if progress else (),
            shown_now=progress.shown_now if progress else set(),
            answers=progress.answers if progress else (),
            link=self._link,
        )

    def _toolbox(
        self, context: ToolContext, *, progress: TurnProgress | None = None, in_container: bool = False
    ) -> Toolbox:
        """The tools of an agent, or of a client outside a turn."""
        if in_container:
            folder = self._home.bridged(context.conversation) / IPC_MEDIA
            context = as_in_container(context, folder, timedelta(minutes=self._config.media.ref_ttl_minutes))
        outlet = partial(self._replies.outlet, context.conversation, progress.offers if progress else None)
        acting = self._acting(context.conversation, progress)
        return make_toolbox(context, outlet, speaker=self._replies.speaker, acting=acting)

    def _acting(self, conversation: ConversationKey, progress: TurnProgress | None) -> Acting:
        replies = self._replies
        return Acting(
            adapter=self._adapters.get((conversation.platform, conversation.account)),
            may=agent_may(self._config, conversation),
            author=self._agents.author(conversation),
            told=self._tell_messages,
            silence=progress.stay_silent if progress else None,
            ask=partial(replies.ask, progress.turn, progress.asked) if progress else replies.asks_all(conversation),
            say=None if progress else replies.say,
        )

    async def _failed(self, claimed: ClaimedTurn, progress: TurnProgress, failure: TurnFailure) -> TurnEnd:
        """End the turn as failed: people are told in words for them, the owners if they must act."""
        await self._failures.tell(self._agents.author(claimed.conversation).name, failure)
        return await progress.end(TurnState.FAILED, failure.reason, self._replies.words(claimed, failure.apology))

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
            self._store,
            pause=pause,
            clean=partial(without_folders, self._home.folder(where)),
            clock=self._clock,
            put=lambda: self._replied(where),
            told=self._tell_messages,
        )
        await self._insist(f"turn {claimed.id}", drafting.resume)
        return drafting

    async def _drafted(self, claimed: ClaimedTurn, end: TurnEnd) -> TurnEnd:
        drafting = self._drafts.get(claimed.conversation)
        return end if drafting is None else await drafting.finish(end)

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
