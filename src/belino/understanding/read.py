"""Read media as text: the one way in for turns, tools, the command line and the page."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from belino.aio.deadline import deadline, or_abandon, ring
from belino.domain.errors import MediaError, MediaRefused, ProviderError
from belino.domain.media import Blob, MediaKind, open_files
from belino.domain.message import ChatType, ConversationKey
from belino.domain.outcome import Finding, MediaOutcome
from belino.domain.ports import Clock
from belino.domain.reading import MediaCapability, ReadingDecision, ReadingForm, SenderLanguage
from belino.domain.stored import RefRecord
from belino.media.price import Facts, has_text
from belino.media.render import Renderer
from belino.storage.transcripts import TranscriptVerbs
from belino.understanding.calls import GRACE_SECONDS, Calls
from belino.understanding.check import check_entries
from belino.understanding.config import MediaTools, Profile
from belino.understanding.decisions import ItemOutcome, decision_of, markers_of, merged, skipped
from belino.understanding.entries import AgentEntries, Entries, MakeContext
from belino.understanding.item import ItemReader, ItemRun, item_reading, may_be_subtitled
from belino.understanding.material import Materials
from belino.understanding.pages import PageReader
from belino.understanding.pictures import PictureReader, SeenText
from belino.understanding.pieces import Answers, Listen, NotRead, PieceReader, Source, note_attempts
from belino.understanding.policy import (
    SKILLS,
    Candidate,
    CapabilityPlan,
    EntryChoice,
    MediaItem,
    Situation,
    capability_of,
    choices_for,
    decide,
    is_tiny,
    tiny_reason,
    why_not,
)
from belino.understanding.prices import price_of
from belino.understanding.request import ItemReading, MessageMedia, MessageReadings, Note, ReadingPrice, ReadRange
from belino.understanding.spending import Spending
from belino.understanding.stored import CAPABILITIES
from belino.understanding.told import note_told, told_item, with_told
from belino.understanding.transcribe import Heard, Transcriber

if TYPE_CHECKING:
    from belino.media.image.images import Images, Runs

Hold = Callable[[RefRecord], AbstractAsyncContextManager[Blob]]
"""Fetches the bytes of a ref, and keeps them as long as the block lasts."""

CLOSING_SECONDS = 6.0
"""How long providers may take to finish when belino ends."""
PAGES_SHARE = 0.5
"""The share of a turn's time in which the pages of a document are begun; the last one needs the rest."""
OWN_FILE = ConversationKey(platform="cli", account="default", channel="file")
"""Where a local file is read: for its owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRoom:
    """What readings need of the gateway."""

    store: TranscriptVerbs | None
    """None where only local files are read, and nothing is stored."""
    sandbox: "Runs"
    scratch: Path
    renderer: Callable[[], Renderer]
    images: "Callable[[], Images]"
    hold: Hold
    clock: Clock
    make_context: MakeContext
    agent: AgentEntries
    listen: Listen | None = None
    answers: Answers | None = None
    """Answers in place of every provider."""
    closes: Sequence[Callable[[], object]] = ()
    """Called in the end; a coroutine is awaited."""


class GaveWay(Exception):
    """A reading in the background ended because another one is waited for."""


class Understanding:
    """Reads media with the configured providers, each at most once, and stores what they read."""

    def __init__(
        self,
        tools: MediaTools,
        profiles: Mapping[str, Profile],
        room: ReadingRoom,
        *,
        entries: Entries | None = None,
    ) -> None:
        """`entries` are those of the configuration, unless others are passed."""
        self._tools = tools
        self._room = room
        self._entries = entries or Entries(tools, profiles, room.make_context, room.agent)
        self._calls = Calls(room.clock, tools.concurrency)
        spending = Spending(room.store, tools.limits, room.clock)
        pieces = PieceReader(self._calls, spending, room.clock, listen=room.listen, answers=room.answers)
        self._transcriber = Transcriber(pieces, room.clock)
        self._items = ItemReader(self._transcriber, PictureReader(pieces), PageReader(pieces, room.clock))
        self._made: Materials | None = None
        self._ahead: tuple[str, asyncio.Timeout] | None = None
        """What is read in the background, and the hash of its bytes."""
        self._waiting = 0

    async def read_message(self, message: MessageMedia, note: Note) -> MessageReadings:
        """Decide about the attachments of a message that is being answered, and read them, within `turn_seconds`.

        A provider's fault is part of the result, and never raised. What was read when the time is up is in it, too.
        """
        situation = Situation(
            conversation=message.conversation,
            chat_type=message.chat_type,
            sees_images=message.sees_images,
            attached=message.attached,
            language=message.language,
            recent_texts=message.recent_texts,
        )
        told = {
            index: record
            for index, record in enumerate(message.media)
            if record.ref.transcript and self._may_tell(record, situation)
        }
        items = [_item(index, record) for index, record in enumerate(message.media) if index not in told]
        candidates = partial(self._entries.candidates, conversation=message.conversation)
        plans = decide(items, self._tools, candidates, situation)
        until = self._room.clock.monotonic() + PAGES_SHARE * self._tools.turn_seconds
        runs = [
            self._items.run(plan.capability, each, message.media[each.item.index], note, until=until)
            for plan in plans
            if plan.outcome is None
            for each in plan.items
            if not each.reason
        ]
        with self._waited_for(*(record.ref.sha256 for record in message.media)):
            await self._run(runs)
        if self._room.store is not None:
            await note_told(self._room.store, message.conversation, told.values(), self._room.clock.now())
        return with_told(_result(plans, [run.outcome() for run in runs]), told)

    async def _run(self, runs: Sequence[ItemRun]) -> None:
        """Read attachments at the same time, until the time is up."""
        with suppress(TimeoutError):
            async with deadline(self._room.clock, self._tools.turn_seconds), asyncio.TaskGroup() as group:
                for run in runs:
                    group.create_task(run.read(self._room.hold, self._source))
        for run in runs:
            if run.source is not None:
                await note_attempts(run.source)

    async def told(self, record: RefRecord, conversation: ConversationKey) -> ItemReading | None:
        """The platform's own whole transcript, where this kind of media is read; None if there is none."""
        if (heard := told_item(record.ref)) is None:
            return None
        store = self._room.store
        kind = await store.chat_type(conversation.whole_channel) if store is not None else None
        situation = Situation(conversation=conversation, chat_type=kind or ChatType.DIRECT)
        return heard if self._may_tell(record, situation) else None

    def _may_tell(self, record: RefRecord, situation: Situation) -> bool:
        return why_not(CAPABILITIES[record.ref.kind], self._tools, situation) is None

    async def read_item(
        self,
        record: RefRecord,
        blob: Blob,
        form: ReadingForm,
        *,
        pages: tuple[int, int | None] | None = None,
        times: tuple[float, float | None] | None = None,
        conversation: ConversationKey,
        language: str | None = None,
        recent_texts: tuple[str, ...] = (),
        max_chars: int | None = None,
        note: Note | None = None,
    ) -> ItemReading:
        """Read one file on request: the stored text, else a provider's, from a page or time on as far as one call goes.

        `language` and `recent_texts` are the sender's, as for a message. No page is read once there are `max_chars`.
        MediaError if the file cannot be read in this form, ProviderError if no provider could read it; both say why.
        """
        source = self._source(record, blob)
        kind = await source.store.chat_type(conversation.whole_channel) if source.store is not None else None
        situation = Situation(
            conversation=conversation,
            chat_type=kind or ChatType.DIRECT,
            language=language,
            recent_texts=recent_texts,
        )
        capability = capability_of(blob.mime, record.ref.file_name, record.ref.kind)
        asked = ReadRange(pages=pages, times=times, max_chars=max_chars)
        with self._waited_for(blob.sha256):
            return await self._read(source, capability, form, situation, asked, note)

    def forms_ahead(self, record: RefRecord, blob: Blob) -> tuple[ReadingForm, ...]:
        """The forms of a file that are read on this machine: the text of a document, and what local providers read."""
        capability = capability_of(blob.mime, record.ref.file_name, record.ref.kind)
        if not self._tools.of(capability).enabled or is_tiny(capability, blob.size):
            return ()
        if capability is MediaCapability.DOCUMENT:
            return (ReadingForm.TEXT,) if has_text(blob.mime) else ()
        situation = Situation(conversation=record.conversation, chat_type=ChatType.DIRECT)
        return tuple(
            form
            for form in (ReadingForm.TRANSCRIPT, ReadingForm.TEXT)
            if (capability, form) in SKILLS and any(not c.skip for c in self._local(capability, form, situation))
        )

    async def read_ahead(
        self, record: RefRecord, blob: Blob, form: ReadingForm, place: float, sender: SenderLanguage
    ) -> ItemReading:
        """Read one piece of a file in the background, from a page or second on, on this machine.

        GaveWay if another reading is asked for by then; the errors are those of `read_item`.
        """
        if self._waiting:
            raise GaveWay
        try:
            async with asyncio.timeout(None) as scope:
                self._ahead = (blob.sha256, scope)
                return await self._read_ahead(record, blob, form, place, sender)
        except TimeoutError:
            if scope.expired():
                raise GaveWay from None
            raise
        finally:
            self._ahead = None

    async def _read_ahead(
        self, record: RefRecord, blob: Blob, form: ReadingForm, place: float, sender: SenderLanguage
    ) -> ItemReading:
        source = self._source(record, blob)
        assert source.store is not None
        source.ahead = True
        chat_type = await source.store.chat_type(record.conversation.whole_channel)
        situation = Situation(
            conversation=record.conversation,
            chat_type=chat_type or ChatType.DIRECT,
            language=sender.reported,
            recent_texts=sender.recent_texts,
        )
        capability = capability_of(blob.mime, record.ref.file_name, record.ref.kind)
        asked = ReadRange(
            pages=(max(1, round(place)), None) if form is ReadingForm.TEXT else None,
            times=(place, None) if form is ReadingForm.TRANSCRIPT and place else None,
            seconds=0.0,
        )
        return await self._read(source, capability, form, situation, asked, None)

    @contextmanager
    def _waited_for(self, *sha256s: str | None) -> Iterator[None]:
        """A reading that a turn or a person waits for: one ahead gives way, unless it reads the same bytes."""
        if self._ahead is not None and self._ahead[0] not in sha256s:
            ring(self._ahead[1])
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def read_file(
        self,
        path: Path,
        mime: str,
        form: ReadingForm,
        *,
        pages: tuple[int, int | None] | None = None,
        times: tuple[float, float | None] | None = None,
        note: Note | None = None,
    ) -> ItemReading:
        """Read a local file, for its owner; nothing is stored. Errors are those of `read_item`."""
        sha256 = await asyncio.to_thread(_hash, path)
        blob = Blob(sha256=sha256, mime=mime, size=path.stat().st_size)
        room = self._room
        materials = Materials(room.sandbox, room.scratch, open_files({sha256: path}))
        source = Source(blob=blob, channel=OWN_FILE, materials=materials, name=path.name)
        situation = Situation(conversation=OWN_FILE, chat_type=ChatType.DIRECT)
        capability = capability_of(mime, path.name, MediaKind.DOCUMENT)
        return await self._read(source, capability, form, situation, ReadRange(pages=pages, times=times), note)

    def prices(self, facts: Facts, conversation: ConversationKey) -> Mapping[ReadingForm, ReadingPrice]:
        """The forms in which a file can be read here, each with its price; known without a call."""
        capability = capability_of(facts.mime, None, facts.kind)
        situation = Situation(conversation=conversation, chat_type=ChatType.DIRECT)
        found: dict[ReadingForm, ReadingPrice] = {}
        if not self._tools.of(capability).enabled or is_tiny(capability, facts.size):
            return found
        for form in ReadingForm:
            possible = (capability, form) in SKILLS and not _known_empty(facts, capability, form)
            choices = self._choices(capability, form, situation) if possible else ()
            usable = [choice for choice in choices if not choice.skip]
            if usable:
                found[form] = price_of(usable[0], form, facts)
        return found

    def candidates(self) -> Mapping[MediaCapability, tuple[Candidate, ...]]:
        """The entries that may read each kind of media, in order."""
        return {capability: self._entries.candidates(capability) for capability in MediaCapability}

    async def check(self) -> Sequence[Finding]:
        """Try every configured entry on a sample of our own."""
        return await check_entries(self._entries, self._calls, self._room.sandbox, self._room.scratch)

    async def close(self) -> None:
        """Let providers finish, within some seconds, and release what they hold."""
        clock = self._room.clock
        with suppress(TimeoutError):
            async with deadline(clock, CLOSING_SECONDS):
                await or_abandon(self._entries.close(), clock, grace=GRACE_SECONDS)
        for close in self._room.closes:
            released = close()
            if asyncio.iscoroutine(released):
                await released

    async def _read(
        self,
        source: Source,
        capability: MediaCapability,
        form: ReadingForm,
        situation: Situation,
        asked: ReadRange,
        note: Note | None,
    ) -> ItemReading:
        if (capability, form) not in SKILLS:
            raise MediaRefused(f"{_named(capability)} has no {form}")
        refused = why_not(capability, self._tools, situation)
        if refused is not None:
            raise MediaError(refused[1])
        if is_tiny(capability, source.blob.size):
            raise MediaRefused(tiny_reason(source.blob.size))
        choices = (self._local if source.ahead else self._choices)(capability, form, situation)
        source.attempts += [skipped(choice) for choice in choices if choice.skip]
        usable = [choice for choice in choices if not choice.skip]
        if (
            not usable
            and capability is not MediaCapability.DOCUMENT
            and not await may_be_subtitled(source, capability, form, asked.times)
        ):
            raise ProviderError(_no_provider(capability, form, choices))
        seconds = self._tools.turn_seconds if asked.seconds is None else asked.seconds
        try:
            got: Heard | SeenText = await self._items.get(
                source,
                capability,
                form,
                usable,
                pages=asked.pages,
                times=asked.times,
                until=self._room.clock.monotonic() + seconds,
                max_chars=asked.max_chars,
                note=note,
            )
        except NotRead as error:
            raise ProviderError(_failed(source, str(error))) from error
        finally:
            await note_attempts(source)
        return item_reading(source, capability, form, got, times=asked.times, attempts=merged(source.attempts))

    def _local(self, capability: MediaCapability, form: ReadingForm, situation: Situation) -> tuple[EntryChoice, ...]:
        """Entries that surely send nothing away; what a command does is not known."""
        choices = self._choices(capability, form, situation)
        return tuple(each for each in choices if each.candidate.local and each.candidate.entry.type != "cli")

    def _choices(self, capability: MediaCapability, form: ReadingForm, situation: Situation) -> tuple[EntryChoice, ...]:
        candidates = self._entries.candidates(capability, situation.conversation)
        return choices_for(capability, form, self._tools, candidates, situation)

    def _source(self, record: RefRecord, blob: Blob) -> Source:
        room = self._room
        assert room.store is not None, "refs are read from a store"
        if self._made is None:
            self._made = Materials(room.sandbox, room.scratch, room.store.local, room.renderer(), room.images())
        return Source(
            blob=blob,
            channel=record.conversation.whole_channel,
            materials=self._made,
            ref=record.ref.id,
            name=record.ref.file_name or "",
            store=room.store,
        )


def _item(index: int, record: RefRecord) -> MediaItem:
    ref = record.ref
    return MediaItem(
        index=index,
        ref=ref.id,
        mime=ref.mime,
        kind=ref.kind,
        name=ref.file_name,
        size=ref.size,
        held=record.outcome is MediaOutcome.HELD,
    )


def _result(plans: Sequence[CapabilityPlan], done: Sequence[ItemOutcome]) -> MessageReadings:
    markers, uncounted = markers_of(plans, done)
    order = list(MediaCapability)
    readings = sorted(
        (reading for each in done for reading in each.readings),
        key=lambda each: (order.index(MediaCapability(each.kind.partition(".")[0])), each.attachment_index),
    )
    return MessageReadings(
        decisions=tuple(_decided(plan, done) for plan in plans),
        readings=tuple(readings),
        markers=markers,
        uncounted=uncounted,
    )


def _decided(plan: CapabilityPlan, done: Sequence[ItemOutcome]) -> ReadingDecision:
    own = {each.item.index for each in plan.items}
    return decision_of(plan, [each for each in done if each.plan.item.index in own])


def _named(capability: MediaCapability) -> str:
    return {"image": "a picture", "audio": "a sound", "video": "a video", "document": "a document"}[capability]


def _no_provider(capability: MediaCapability, form: ReadingForm, choices: Sequence[EntryChoice]) -> str:
    told = "; ".join(f"{choice.candidate.entry.provider}: {choice.skip}" for choice in choices)
    return f"no provider can make a {form} of {_named(capability)} here{f' ({told})' if told else ''}"


def _failed(source: Source, reason: str) -> str:
    told = [f"{each.provider}: {each.reason}" for each in source.attempts if each.reason]
    return "no provider could read it: " + ("; ".join(dict.fromkeys(told)) or reason)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _known_empty(facts: Facts, capability: MediaCapability, form: ReadingForm) -> bool:
    """Whether a file is known to have nothing that this form could be made of."""
    if form is ReadingForm.TRANSCRIPT:
        return facts.soundless
    return bool(facts.unseen) and capability is not MediaCapability.DOCUMENT
