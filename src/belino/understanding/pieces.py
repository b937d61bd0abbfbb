"""Pieces of media: a window, a page or a picture, read by one entry, once, and stored."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

from belino.domain.errors import BelinoError, MediaNotFound, StoreError, reason_of
from belino.domain.failpoints import failpoint
from belino.domain.media import Blob, DocumentText
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.reading import (
    Attempt,
    AttemptRecord,
    Material,
    Read,
    ReadingForm,
    ReadingOutcome,
    ReadPiece,
    TranscriptWindow,
)
from belino.media.render import RenditionCache
from belino.storage.transcripts import TranscriptVerbs
from belino.understanding.calls import REASON_CHARS, CallResult, Calls, model_of, sent_to
from belino.understanding.material import Materials
from belino.understanding.policy import EntryChoice
from belino.understanding.spending import ReadingCost, Spending, cost_of

log = logging.getLogger(__name__)

T = TypeVar("T")

UNCERTAIN = "The provider is not confident of this text."
LATE = "it was not ready when the time was up"
GAVE_WAY = "it gave way to a reading that is waited for"

Listen = Callable[[ConversationKey, ReadPiece, Read | str], None]
"""Called with every piece that is read or found in the store, and with the reason why one is not read."""
Answers = Callable[[ReadPiece], Read | str]
"""What a provider said before, or why it said nothing; asked in place of providers."""


def _ignore(channel: ConversationKey, piece: ReadPiece, read: Read | str) -> None:
    """Nothing listens."""


class NotRead(Exception):
    """An entry could not read a piece; the reason is in its last attempt."""


@dataclass(slots=True, kw_only=True)
class Source:
    """A file that is read, for whom, and everything that was tried so far."""

    blob: Blob
    channel: ConversationKey
    materials: Materials
    ref: str = ""
    name: str = ""
    store: TranscriptVerbs | None = None
    """None if nothing is to be stored."""
    ahead: bool = False
    """Whether it is read in the background; that gives way to every other reading."""
    attempts: list[Attempt] = field(default_factory=list)
    unnoted: list[AttemptRecord] = field(default_factory=list)
    """Attempts that the store does not know yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(Generic[T]):
    """One piece: how it is found, made, and stored."""

    form: ReadingForm
    window: str
    """Its place in the whole, as a part of its key."""
    find: Callable[[str], Awaitable[T | None]]
    material: Callable[[], AbstractAsyncContextManager[Sequence[Material]]]
    keep: Callable[[str, Read], Awaitable[T]]
    place: str = ""
    """Its number, where several pieces are stored under one key."""
    start: float = 0.0
    """Where the material begins in the sound."""
    seconds: float = 0.0
    pages: int = 0


def reader_key(form: ReadingForm, choice: EntryChoice, model: str, window: str) -> str:
    """The key under which a piece is stored with the hash of its bytes."""
    told = "\0".join((choice.prompt or "", choice.language or "", choice.skill))
    digest = hashlib.sha256(told.encode()).hexdigest()[:12]
    return f"{form}.1:{choice.candidate.entry.provider}:{model}:{digest}:{window}"


class PieceReader:
    """Reads pieces: one at a time for each key, and only if the channel may spend it."""

    def __init__(
        self,
        calls: Calls,
        spending: Spending,
        clock: Clock,
        *,
        listen: Listen | None = None,
        answers: Answers | None = None,
    ) -> None:
        self._calls = calls
        self._listen = listen or _ignore
        self._answers = answers
        self._spending = spending
        self._clock = clock
        self._alone = RenditionCache(None)

    async def read(self, source: Source, choice: EntryChoice, wanted: Wanted[T]) -> T:
        """The piece, stored or read now; NotRead if the entry cannot read it.

        Attempts that an exception or a cancellation leaves unstored are in `source.unnoted`.
        """
        model = model_of(choice.candidate.readers[0], choice)
        key = reader_key(wanted.form, choice, model, wanted.window)
        piece = _piece(source, choice, wanted, model)
        tell = partial(self._listen, source.channel, piece)
        async with self._alone.alone(source.blob.sha256, key):
            found = await wanted.find(key)
            if found is not None:
                source.attempts.append(self._attempt(choice, model, ReadingOutcome.SUCCESS, cached=True))
                tell(_as_read(found, model, wanted.start))
                return found
            cost = cost_of(
                choice.candidate.entry, local=choice.candidate.local, seconds=wanted.seconds, pages=wanted.pages
            )
            async with self._spending.reserve(source.channel, cost) as refused:
                if refused:
                    skipped = self._attempt(choice, model, ReadingOutcome.SKIPPED, reason=refused)
                    await self._note(source, wanted, skipped, ReadingCost())
                    tell(refused)
                    raise NotRead(refused)
                read = await self._ask(source, choice, wanted, piece)
                kept = await wanted.keep(key, read)
                failpoint("reading.kept")
                return kept

    async def _call(self, piece: ReadPiece, choice: EntryChoice, material: Sequence[Material]) -> CallResult:
        """Ask the provider, or what answers in its place."""
        if self._answers is None:
            return await self._calls.call(choice, material)
        said = self._answers(piece)
        read, reason = (said, "") if isinstance(said, Read) else (None, said)
        outcome = ReadingOutcome.FAILED if read is None else ReadingOutcome.SUCCESS
        return CallResult(read=read, attempts=(self._attempt(choice, piece.model, outcome, reason=reason),))

    async def _ask(self, source: Source, choice: EntryChoice, wanted: Wanted[T], piece: ReadPiece) -> Read:
        model = piece.model
        begun: float | None = None
        try:
            async with self._calls.room, wanted.material() as material:
                begun = self._clock.monotonic()
                failpoint("reading.asked")
                result = await self._call(piece, choice, material)
        except BelinoError as error:
            failed = self._attempt(choice, model, ReadingOutcome.FAILED, reason=reason_of(error)[:REASON_CHARS])
            await self._note(source, wanted, failed, ReadingCost())
            raise NotRead(str(error)) from error
        except asyncio.CancelledError:
            # The time is up. What a provider has got by then may still be charged; one that reads ahead is local.
            outcome, reason = (ReadingOutcome.SKIPPED, GAVE_WAY) if source.ahead else (ReadingOutcome.FAILED, LATE)
            late = self._attempt(choice, model, outcome, reason=reason)
            cost = ReadingCost() if begun is None or source.ahead else self._cost(choice, wanted, None)
            spent = 0 if begun is None else round((self._clock.monotonic() - begun) * 1000)
            self._remember(source, wanted, replace(late, milliseconds=spent, usd=cost.usd), cost)
            self._listen(source.channel, piece, late.reason)
            raise
        self._listen(source.channel, piece, result.read or result.attempts[-1].reason)
        for attempt in result.attempts:
            worked = attempt.outcome is ReadingOutcome.SUCCESS
            paid = self._cost(choice, wanted, result.read) if worked else ReadingCost(usd=None)
            self._remember(source, wanted, replace(attempt, usd=paid.usd), paid)
        if result.read is None:
            await note_attempts(source)
            raise NotRead(result.attempts[-1].reason)
        return result.read

    def _cost(self, choice: EntryChoice, wanted: Wanted[T], read: Read | None) -> ReadingCost:
        return cost_of(
            choice.candidate.entry,
            local=choice.candidate.local,
            seconds=wanted.seconds,
            pages=wanted.pages,
            tokens=None if read is None else read.tokens,
        )

    def _attempt(
        self, choice: EntryChoice, model: str, outcome: ReadingOutcome, *, reason: str = "", cached: bool = False
    ) -> Attempt:
        return Attempt(
            provider=choice.candidate.entry.provider,
            model=model,
            outcome=outcome,
            reason=reason,
            cached=cached,
            sent_to="" if cached or outcome is ReadingOutcome.SKIPPED else sent_to(choice.candidate),
            usd=0.0 if cached else None,
        )

    def _remember(self, source: Source, wanted: Wanted[T], attempt: Attempt, cost: ReadingCost) -> None:
        source.attempts.append(attempt)
        if source.store is not None:
            source.unnoted.append(
                AttemptRecord(
                    ref=source.ref,
                    sha256=source.blob.sha256,
                    channel=source.channel,
                    at=self._clock.now(),
                    form=wanted.form,
                    attempt=attempt,
                    seconds=cost.seconds,
                    pages=cost.pages,
                    ahead=source.ahead,
                )
            )

    async def _note(self, source: Source, wanted: Wanted[T], attempt: Attempt, cost: ReadingCost) -> None:
        self._remember(source, wanted, attempt, cost)
        await note_attempts(source)


def _piece(source: Source, choice: EntryChoice, wanted: Wanted[T], model: str) -> ReadPiece:
    return ReadPiece(
        sha256=source.blob.sha256,
        form=wanted.form,
        provider=choice.candidate.entry.provider,
        model=model,
        window=f"{wanted.window}:{wanted.place}" if wanted.place else wanted.window,
    )


def _as_read(found: object, model: str, start: float) -> Read:
    """A stored piece, as its provider read it; `start` is where its material began."""
    match found:
        case TranscriptWindow():
            segments = tuple(replace(each, start=each.start - start, end=each.end - start) for each in found.segments)
            text = " ".join(each.text for each in segments)
            return Read(text=text, model=model, segments=segments, language=found.language, uncertain=found.uncertain)
        case DocumentText():
            text = "\n\n".join(part.text for part in found.parts)
            return Read(text=text, model=model, uncertain=UNCERTAIN in found.notes)
    raise AssertionError("a piece is a transcript or a text")


async def keep_piece(source: Source, keep: Callable[[Sequence[AttemptRecord]], Awaitable[bool]]) -> None:
    """Store a piece and the attempts at it together: after a crash there are both or neither.

    MediaNotFound if the bytes were deleted in the meantime.
    """
    records, source.unnoted = source.unnoted, []
    try:
        is_kept = await keep(records)
    except StoreError:
        source.unnoted = records
        raise
    if not is_kept:
        raise MediaNotFound("the bytes it was read from were deleted in the meantime")


async def note_attempts(source: Source) -> None:
    """Store the attempts that are not stored yet; a reading matters more than its record."""
    if source.store is None or not source.unnoted:
        return
    records, source.unnoted = source.unnoted, []
    try:
        await source.store.note_attempts(records)
    except StoreError as error:
        log.warning("%d attempts to read %s are not recorded: %s", len(records), source.ref, type(error).__name__)
