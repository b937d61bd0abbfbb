"""What one turn gathers on its way, so that one transaction can end it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from belino.domain.errors import StoreError
from belino.domain.media import Blob, ImageBlock
from belino.domain.outcome import MediaOutcome, Stage, Step, TurnState
from belino.domain.ports import Clock
from belino.domain.record import ClaimedTurn, ManifestEntry, RefRecord, Session, TurnEnd
from belino.domain.reply import Parcel
from belino.domain.store import Store
from belino.domain.turn import Refused, Usage
from belino.gateway.counters import Counters
from belino.media.fetch import Fetcher, Progress


class Ledger:
    """Steps for `explain`, pictures shown, what it cost, and the agent's memory: it is the turn's SessionMemory too."""

    def __init__(self, turn: ClaimedTurn, session: Session, store: Store, *, clock: Clock, counters: Counters) -> None:
        self._turn = turn
        self._store = store
        self._clock = clock
        self._counters = counters
        self._found = session.memory
        self._saved: bytes | None = None
        self._given: dict[str, ImageBlock] = {}
        self._accepted: dict[str, ImageBlock] = {}
        self._compacted = False
        self._usage = Usage()
        self._unwritten: list[Step] = []
        self.needed = ExitStack()
        """Closed with the turn; until then, what it fetched makes room for nothing else."""

    async def load(self) -> bytes | None:
        """What the agent saved last, in this turn or an earlier one."""
        return self._found if self._saved is None else self._saved

    async def save(self, memory: bytes) -> None:
        """Kept with the turn's end; a turn that fails leaves the memory as it was."""
        self._saved = memory

    async def note(self, step: Step) -> None:
        """Keep a step; a store that cannot take it now gets it with the next one, for a note fails no turn."""
        self._unwritten.append(replace(step, reason=repaired(step.reason), subject=repaired(step.subject)))
        steps = tuple(self._unwritten)
        try:
            await self._store.note(self._turn.trace, *steps)
        except StoreError:
            return
        del self._unwritten[: len(steps)]

    async def cut_off(self) -> None:
        """An earlier attempt at this turn did not come to its end."""
        attempt = f"attempt {self._turn.attempt - 1} did not end before belino did"
        subject = f"turn {self._turn.number}"
        await self.note(
            Step(at=self._clock.now(), stage=Stage.TURN, outcome="cut off", reason=attempt, subject=subject)
        )

    async def media_ended(self, record: RefRecord) -> None:
        """A ref was asked for: note what became of it."""
        try:
            current = await self._store.ref(record.conversation.whole_channel, record.ref.id) or record
        except StoreError:
            return
        self._counters.media[current.outcome] += 1
        await self._note_media(current.ref.id, current.outcome, current.reason or "the agent asked for it")

    async def refused(self, part: Refused) -> None:
        """The model would not take a picture: it does not count as shown."""
        self._given.pop(part.ref, None)
        self._counters.media[MediaOutcome.REFUSED] += 1
        await self._note_media(part.ref, "refused by the model", part.why)

    def shown(self, block: ImageBlock) -> None:
        """A picture was handed to the agent; it counts once the agent accepted it."""
        self._given[block.ref] = block

    def accepted(self) -> None:
        """What was handed over so far is in the model's context."""
        self._accepted.update(self._given)
        self._given.clear()

    def compacted(self) -> None:
        """Nothing shown before is in the model's context any more."""
        self._accepted.clear()
        self._compacted = True

    def spent(self, usage: Usage) -> None:
        self._usage = usage

    async def end(self, state: TurnState, reason: str = "", parcels: tuple[Parcel, ...] = ()) -> TurnEnd:
        """The turn's end; only an answered turn keeps memory and pictures shown."""
        answered = state is TurnState.ANSWERED
        return TurnEnd(
            state=state,
            reason=reason,
            parcels=parcels,
            shown=await self._manifest() if answered else (),
            compacted=answered and self._compacted,
            memory=self._saved if answered else None,
            usage=self._usage,
        )

    async def _manifest(self) -> tuple[ManifestEntry, ...]:
        channel = self._turn.conversation.whole_channel
        try:
            records = [(block, await self._store.ref(channel, block.ref)) for block in self._accepted.values()]
        except StoreError:
            return ()  # the worst is a picture shown twice
        return tuple(self._entry(block, record) for block, record in records if record is not None)

    def _entry(self, block: ImageBlock, record: RefRecord) -> ManifestEntry:
        return ManifestEntry(
            artifact_id=block.ref,
            display_name=record.ref.file_name or str(record.ref.kind),
            media_type=block.mime,
            content_hash=block.sha256,
            source_message_id=record.ref.message_id,
            source_thread_id=record.conversation.thread,
            included_at_turn=self._turn.number,
        )

    async def _note_media(self, ref: str, outcome: str, reason: str) -> None:
        step = Step(at=self._clock.now(), stage=Stage.MEDIA, outcome=outcome, reason=reason, subject=ref)
        await self.note(step)


def repaired(text: str) -> str:
    """The text with surrogate pairs joined and halves of one replaced: nobody could store or send them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class NotedFetcher(Fetcher):
    """A fetcher whose every end is written into one turn's ledger; the work is done by the one all turns share."""

    def __init__(self, shared: Fetcher, ledger: Ledger, told: Callable[[RefRecord], Awaitable[None]]) -> None:
        self._shared = shared
        self._ledger = ledger
        self._told = told

    async def fetch(self, record: RefRecord, *, progress: Progress | None = None) -> Blob:
        """The bytes of a ref, and a step that says how it ended."""
        try:
            blob = await self._shared.fetch(record, progress=progress)
            self._ledger.needed.enter_context(self._shared.pin(blob.sha256))
            return blob
        finally:
            await self._ledger.media_ended(record)
            await self._told(record)

    async def read(self, blob: Blob, limit: int) -> bytes:
        return await self._shared.read(blob, limit)

    def pin(self, sha256: str) -> AbstractContextManager[None]:
        return self._shared.pin(sha256)

    async def sweep(self) -> int:
        return await self._shared.sweep()
