"""State of a running turn, collected so that one transaction can end it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from belino.context.manifest import in_context
from belino.domain.choice import Choice
from belino.domain.errors import StoreError
from belino.domain.media import Blob, MediaBlock
from belino.domain.outcome import Counters, MediaOutcome, Stage, Step, TurnState
from belino.domain.ports import Clock
from belino.domain.reply import Offer, Parcel
from belino.domain.stored import ClaimedTurn, ManifestEntry, ReadPosition, RefRecord, Session, TurnEnd
from belino.domain.turn import Compacted, Refused, Usage
from belino.media.fetch import Fetcher, Progress
from belino.storage.store import Store

CHOSE_SILENCE = "chose silence"


class TurnProgress:
    """Steps for `explain`, pictures shown, cost, and the agent's memory: it is also the turn's SessionMemory."""

    def __init__(
        self,
        turn: ClaimedTurn,
        session: Session,
        store: Store,
        *,
        clock: Clock,
        counters: Counters,
        agent: str = "",
        remembers: bool = True,
    ) -> None:
        self.turn = turn
        self._store = store
        self._clock = clock
        self._counters = counters
        self._agent = agent
        self._remembers = remembers
        self._found = session.memory
        self._saved: bytes | None = None
        self._given: dict[str, MediaBlock] = {}
        self._accepted: dict[str, MediaBlock] = {}
        self._again: set[str] = set()
        """The refs among them that a compaction had removed."""
        self._recovers = False
        self._gives_context = False
        self._context_turn = session.context_turn
        self._told: ReadPosition | None = None
        self._took = False
        self._compacted = False
        self._forgot = False
        self._lost: dict[str, None] = {}
        self._usage = Usage()
        self._unwritten: list[Step] = []
        self.context = list(in_context(session)) if remembers else []
        """Media in the agent's context from earlier turns; a compaction empties it at once."""
        self.shown_now: set[str] = set()
        """Refs and hashes of the pictures the agent got in this turn."""
        self.offers: list[Offer] = []
        """Files the agent passed to be sent."""
        self.choices: list[Choice] = []
        """Choices that the answer offers."""
        self.asked: list[str] = []
        """Questions that the agent sent; an answer besides them may be empty."""
        self.silence: str | None = None
        """Why nothing is sent, if the agent chose that."""
        self.answers = tuple(message.id for message in turn.messages)
        self.needed = ExitStack()
        """Closed with the turn; until then, the blobs it fetched are not evicted."""

    async def load(self) -> bytes | None:
        """What the agent saved last, in this turn or an earlier one."""
        return self._found if self._saved is None else self._saved

    async def save(self, memory: bytes) -> None:
        """Save with the turn's end; a turn that fails leaves the memory unchanged."""
        self._saved = memory

    async def note(self, step: Step) -> None:
        """Store a step; if the store fails, store it with the next one: a note never fails a turn."""
        self._unwritten.append(replace(step, reason=repaired(step.reason), subject=repaired(step.subject)))
        steps = tuple(self._unwritten)
        try:
            await self._store.note(self.turn.trace, *steps)
        except StoreError:
            return
        del self._unwritten[: len(steps)]

    async def runs_alone(self) -> None:
        """Record that no other turn runs beside this one, because belino stopped during an earlier attempt at it."""
        await self._note_turn("runs alone", f"attempt {self.turn.attempt}: belino stopped during an earlier one")

    def stay_silent(self, reason: str) -> None:
        """End the turn without an answer."""
        self.silence = repaired(reason)

    async def chose_silence(self) -> TurnEnd:
        """The end of a turn whose agent chose to send nothing; files that it offered are not sent."""
        reason = self.silence or "it gave no reason"
        await self.note(Step(at=self._clock.now(), stage=Stage.REPLY, outcome=CHOSE_SILENCE, reason=reason))
        return await self.end(TurnState.ANSWERED, f"{CHOSE_SILENCE}: {reason}")

    async def media_ended(self, record: RefRecord, why: str) -> None:
        """Record the outcome of a requested ref."""
        try:
            current = await self._store.ref(record.conversation.whole_channel, record.ref.id) or record
        except StoreError:
            return
        self._counters.media[current.outcome] += 1
        await self._note_media(current.ref.id, current.outcome, current.reason or why)

    async def refused(self, part: Refused) -> None:
        """Record that the model refused a picture: it does not count as shown."""
        for refused in (self._given.pop(part.ref, None), self._accepted.pop(part.ref, None)):
            if refused is not None:
                self.shown_now.difference_update((part.ref, refused.sha256))
        self._counters.media[MediaOutcome.REFUSED] += 1
        await self._note_media(part.ref, "refused by the model", part.why)

    def tells(self, told: ReadPosition | None, *, recovers: bool, gives_context: bool) -> None:
        """Set the read position after this turn, and what the turn restores after a compaction."""
        self._told = told
        self._recovers = recovers
        self._gives_context = gives_context

    def shown(self, block: MediaBlock) -> None:
        """A picture was given to the agent; it counts as shown once the agent has accepted it."""
        self._given[block.ref] = block
        self._again.discard(block.ref)

    def shown_again(self, block: MediaBlock) -> None:
        """A picture that a compaction removed was given again: the manifest has it already."""
        self._given[block.ref] = block
        self._again.add(block.ref)

    def accepted(self) -> None:
        """Mark the pictures given so far, and the structured context, as in the model's context."""
        if self._gives_context and not self._took:
            self._context_turn = self.turn.number
        self._took = True
        self._accepted.update(self._given)
        for ref in self._given:
            self._lost.pop(ref, None)
        self._given.clear()

    async def compacted(self, part: Compacted) -> None:
        """Remove what the agent's memory dropped from its context: some media, or turns with all that they held."""
        known = (*self._accepted, *(entry.artifact_id for entry in self.context))
        gone = set(part.only or known).difference(part.kept)
        for ref in gone.intersection(self._accepted):
            self.shown_now.discard(self._accepted[ref].sha256)
        self.shown_now -= gone
        self._lost.update(dict.fromkeys(ref for ref in part.only or known if ref in gone))
        self.context[:] = [entry for entry in self.context if entry.artifact_id not in gone]
        if part.only:
            await self._note_turn("memory shortened", f"{len(part.only)} media removed from it")
            return
        self._compacted = True
        if part.first is None or self._context_turn < part.first:
            self._context_turn = 0
        turns = "all earlier turns" if part.first is None else f"the turns before turn {part.first}"
        await self._note_turn("memory shortened", f"{turns} removed from it, with {len(gone)} media")

    async def forget(self, why: str) -> None:
        """Reset the agent's state: it remembers nothing, and the turn is run as the conversation's first."""
        self._forgot = True
        self._compacted = self._took = False
        self._context_turn = 0
        self._found = self._saved = None
        for known in (self._given, self._accepted, self._again, self.shown_now, self.context):
            known.clear()
        await self.note(Step(at=self._clock.now(), stage=Stage.TURN, outcome="memory lost", reason=why))

    def spent(self, usage: Usage) -> None:
        self._usage = usage

    async def end(self, state: TurnState, reason: str = "", parcels: tuple[Parcel, ...] = ()) -> TurnEnd:
        """The turn's end; only an answered turn keeps memory and pictures shown."""
        if state is not TurnState.ANSWERED:
            return TurnEnd(state=state, reason=reason, parcels=parcels, usage=self._usage)
        again = tuple(ref for ref in self._accepted if ref in self._again and ref not in self._lost)
        shown = await self._manifest()
        return TurnEnd(
            state=state,
            reason=reason,
            parcels=parcels,
            shown=shown,
            compacted=self._compacted,
            # An agent without memory loses what it saw as soon as it has answered.
            lost=tuple(self._lost) if self._remembers else tuple(entry.artifact_id for entry in shown),
            told=self._told if self._took else None,
            context_turn=self._context_turn if self._remembers else 0,
            recovered=again if self._recovers and self._took else None,
            forgot=self._forgot,
            memory=self._saved,
            agent=self._agent,
            usage=self._usage,
        )

    async def _manifest(self) -> tuple[ManifestEntry, ...]:
        channel = self.turn.conversation.whole_channel
        try:
            shown = [block for ref, block in self._accepted.items() if ref not in self._again]
            records = [(block, await self._store.ref(channel, block.ref)) for block in shown]
        except StoreError:
            return ()  # at worst, a picture is shown twice
        return tuple(self._entry(block, record) for block, record in records if record is not None)

    def _entry(self, block: MediaBlock, record: RefRecord) -> ManifestEntry:
        return ManifestEntry(
            artifact_id=block.ref,
            display_name=record.ref.file_name or str(record.ref.kind),
            media_type=block.mime,
            content_hash=block.sha256,
            source_message_id=record.ref.message_id,
            source_thread_id=record.conversation.thread,
            included_at_turn=self.turn.number,
        )

    async def _note_turn(self, outcome: str, reason: str) -> None:
        subject = f"turn {self.turn.number}"
        await self.note(Step(at=self._clock.now(), stage=Stage.TURN, outcome=outcome, reason=reason, subject=subject))

    async def _note_media(self, ref: str, outcome: str, reason: str) -> None:
        step = Step(at=self._clock.now(), stage=Stage.MEDIA, outcome=outcome, reason=reason, subject=ref)
        await self.note(step)


def repaired(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced: they can be neither stored nor sent."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class RecordingFetcher(Fetcher):
    """A fetcher that records every outcome in one turn's progress; the shared fetcher does the work."""

    def __init__(
        self,
        shared: Fetcher,
        turn: TurnProgress,
        told: Callable[[RefRecord], Awaitable[None]],
        *,
        why: str = "the agent asked for it",
    ) -> None:
        self._shared = shared
        self.turn = turn
        self._told = told
        self._why = why

    async def fetch(self, record: RefRecord, *, progress: Progress | None = None) -> Blob:
        """Fetch the bytes of a ref, and record a step with the outcome."""
        try:
            blob = await self._shared.fetch(record, progress=progress)
            self.turn.needed.enter_context(self._shared.pin(blob.sha256))
            return blob
        finally:
            await self.turn.media_ended(record, self._why)
            await self._told(record)

    async def read(self, blob: Blob, limit: int) -> bytes:
        return await self._shared.read(blob, limit)

    def pin(self, sha256: str) -> AbstractContextManager[None]:
        return self._shared.pin(sha256)

    async def sweep(self) -> int:
        return await self._shared.sweep()
