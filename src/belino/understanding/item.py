"""Item of a message, or a file on request: every form of it that is wanted, by the readers of sounds and pictures."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from belino.domain.errors import BelinoError, MediaTooLarge, place_of, reason_of
from belino.domain.media import OWN_READER, Blob, DocumentText, Unread
from belino.domain.reading import (
    KINDS,
    Attempt,
    MediaCapability,
    Reading,
    ReadingForm,
    ReadingOutcome,
    Skill,
)
from belino.domain.stored import RefRecord
from belino.domain.transcript import in_seconds, whole_text
from belino.domain.units import clock_time
from belino.understanding.config import DEFAULTS
from belino.understanding.decisions import ItemOutcome, skipped
from belino.understanding.pages import PageReader
from belino.understanding.pictures import PictureReader, SeenText
from belino.understanding.pieces import NotRead, Source
from belino.understanding.policy import EntryChoice, ItemPlan, ReadingJob, is_tiny, tiny_reason, too_large
from belino.understanding.request import ItemReading, Note, ReadingNews, ReadingState
from belino.understanding.transcribe import Heard, Transcriber

log = logging.getLogger(__name__)

MakeSource = Callable[[RefRecord, Blob], Source]


class ItemReader:
    """Reads one file in one form."""

    def __init__(self, transcriber: Transcriber, pictures: PictureReader, pages: PageReader) -> None:
        self._transcriber = transcriber
        self._pictures = pictures
        self._pages = pages

    def run(
        self, capability: MediaCapability, plan: ItemPlan, record: RefRecord, note: Note, *, until: float
    ) -> "ItemRun":
        """The reading of one attachment for a turn; no further page of a document is begun after `until`."""
        return ItemRun(self, capability, plan, record, note, until)

    async def get(
        self,
        source: Source,
        capability: MediaCapability,
        form: ReadingForm,
        choices: Sequence[EntryChoice],
        *,
        pages: tuple[int, int | None] | None = None,
        times: tuple[float, float | None] | None = None,
        until: float | None = None,
        max_chars: int | None = None,
        note: Note | None = None,
        heard: Heard | None = None,
    ) -> Heard | SeenText:
        """What is heard or seen; NotRead if no entry can read it, MediaError if the file cannot be decoded."""

        def tell(provider: str, done: float, total: float | None) -> None:
            if note is not None:
                note(
                    ReadingNews(
                        ref=source.ref,
                        capability=capability,
                        state=ReadingState.READING,
                        provider=provider,
                        done=done,
                        total=total,
                    )
                )

        if form is ReadingForm.TRANSCRIPT:
            heard = heard if heard is not None else Heard()
            await self._transcriber.read(
                source, choices, times=times or (0.0, None), until=until, heard=heard, tell=tell
            )
            return heard
        if await may_be_subtitled(source, capability, form, times):
            own = await self._pages.read(source, (), pages=pages, tell=tell)
            if own.document.parts:
                return own
        if choices:
            tell(choices[0].candidate.entry.provider, 0.0, None)
        is_paged = form is ReadingForm.TEXT and await source.materials.pages(source.blob) > 1
        if capability is MediaCapability.DOCUMENT or is_paged:
            return await self._pages.read(source, choices, pages=pages, until=until, max_chars=max_chars, tell=tell)
        if capability is MediaCapability.VIDEO:
            return await self._pictures.video(source, form, choices, times)
        return await self._pictures.picture(source, form, choices)


class ItemRun:
    """The reading of one attachment for a turn; what is done when it is cancelled counts."""

    def __init__(
        self,
        reader: ItemReader,
        capability: MediaCapability,
        plan: ItemPlan,
        record: RefRecord,
        note: Note,
        until: float,
    ) -> None:
        self.source: Source | None = None
        # A sound is heard until it is cancelled: what was heard by then counts.
        self._until = until if capability in (MediaCapability.DOCUMENT, MediaCapability.IMAGE) else None
        self._reader = reader
        self._capability = capability
        self._plan = plan
        self._record = record
        self._note = note
        self._readings: list[Reading] = []
        self._skipped: list[Attempt] = []
        self._heard: Heard | None = None
        self._reason = ""
        self._unread: Unread | None = Unread.UNREADABLE
        self._done = False

    async def read(
        self, hold: Callable[[RefRecord], AbstractAsyncContextManager[Blob]], make_source: MakeSource
    ) -> None:
        """Read every form; raises only if it is cancelled."""
        self._tell(ReadingState.READING)
        try:
            async with hold(self._record) as blob:
                self.source = make_source(self._record, blob)
                await self._read(self.source)
        except MediaTooLarge as error:
            self._fail(reason_of(error), Unread.TOO_LARGE)
        except BelinoError as error:
            self._fail(reason_of(error), Unread.UNREADABLE)
        except Exception as error:  # noqa: BLE001 - an error in one attachment must not keep the turn from its text
            log.error("%s was not read: %s", self._record.ref.id, place_of(error))
            self._fail(reason_of(error), Unread.UNREADABLE)
        self._done = True
        self._tell(ReadingState.READ if self._readings else ReadingState.UNREAD)

    def outcome(self) -> ItemOutcome:
        """What came of it so far."""
        if not self._done:
            self._settle_late()
        source = self.source
        return ItemOutcome(
            plan=self._plan,
            attempts=(*self._skipped, *(source.attempts if source is not None else ())),
            readings=tuple(self._readings),
            reason=self._reason,
            unread=None if self._readings else self._unread,
        )

    async def _read(self, source: Source) -> None:
        if is_tiny(self._capability, source.blob.size):
            self._fail(tiny_reason(source.blob.size), Unread.NO_TEXT)
            return
        for job in self._plan.jobs:
            if job.form is ReadingForm.TRANSCRIPT and self._saw_all(source):
                continue
            await self._job(source, job)

    async def _job(self, source: Source, job: ReadingJob) -> None:
        # The platform may not have told the size.
        choices = [
            replace(choice, skip=choice.skip or too_large(choice.limits, source.blob.size)) for choice in job.choices
        ]
        self._skipped += [skipped(choice) for choice in choices if choice.skip]
        usable = [choice for choice in choices if not choice.skip]
        if not usable and self._capability is not MediaCapability.DOCUMENT:
            if choices:
                large = all(too_large(choice.limits, source.blob.size) for choice in choices)
                self._fail(choices[-1].skip, Unread.TOO_LARGE if large else Unread.UNREADABLE)
            return
        most = usable[0].limits.max_chars if usable else DEFAULTS[self._capability].max_chars
        heard = self._heard = Heard() if job.form is ReadingForm.TRANSCRIPT else None
        try:
            got = await self._reader.get(
                source,
                self._capability,
                job.form,
                usable,
                until=self._until,
                max_chars=most,
                note=self._note,
                heard=heard,
            )
        except NotRead as error:
            self._fail(str(error), Unread.UNREADABLE)
            return
        self._take(job.form, got, most)

    def _take(self, form: ReadingForm, got: Heard | SeenText, max_chars: int | None) -> None:
        item = item_reading(self.source, self._capability, form, got)
        if not item.text:
            self._unread = item.document.unread or Unread.NO_TEXT
            self._reason = self._reason or item.document.reason or self._unread
            return
        text, cut = _cut(item.text, max_chars)
        self._readings.append(
            Reading(
                kind=f"{self._capability}.{KINDS[form]}",
                text=text,
                provider=item.provider,
                model=item.model,
                attachment_index=self._plan.item.index,
                segments=item.segments,
                uncertain=item.uncertain,
            )
        )
        self._reason = _rest(item, cut)

    def _settle_late(self) -> None:
        """The time was up: what was heard so far is better than nothing."""
        self._done = True
        self._reason = "it was not ready when the time was up (tools.media.turn_seconds)"
        if self._heard is not None and self._heard.windows:
            self._heard.reason = "the time was up"
            self._take(ReadingForm.TRANSCRIPT, self._heard, None)
        self._tell(ReadingState.READ if self._readings else ReadingState.UNREAD)

    def _saw_all(self, source: Source) -> bool:
        """Whether a video was read as a whole, with its sound."""
        whole = {
            (choice.candidate.entry.provider)
            for job in self._plan.jobs
            for choice in job.choices
            if choice.skill is Skill.DESCRIBE_VIDEO
        }
        return bool(self._readings) and any(
            each.provider in whole and each.outcome is ReadingOutcome.SUCCESS for each in source.attempts
        )

    def _fail(self, reason: str, unread: Unread) -> None:
        if not self._readings:
            self._reason, self._unread = reason, unread

    def _tell(self, state: ReadingState) -> None:
        reason = self._reason if state is ReadingState.UNREAD else ""
        self._note(ReadingNews(ref=self._record.ref.id, capability=self._capability, state=state, reason=reason))


async def may_be_subtitled(
    source: Source, capability: MediaCapability, form: ReadingForm, times: tuple[float, float | None] | None
) -> bool:
    """Whether a video's text may be its subtitles: between two times, what is written in its frames is meant."""
    is_whole = capability is MediaCapability.VIDEO and form is ReadingForm.TEXT and times is None
    return is_whole and await source.materials.has_subtitles(source.blob)


def item_reading(
    source: Source | None,
    capability: MediaCapability,
    form: ReadingForm,
    got: Heard | SeenText,
    *,
    times: tuple[float, float | None] | None = None,
    attempts: Sequence[Attempt] = (),
) -> ItemReading:
    """What was heard or seen, as its caller gets it."""
    cached = bool(attempts) and all(each.cached for each in attempts if each.outcome is ReadingOutcome.SUCCESS)
    if isinstance(got, SeenText):
        parts = got.document.parts
        return ItemReading(
            form=form,
            capability=capability,
            text=got.text,
            document=got.document,
            provider=got.choice.candidate.entry.provider if got.choice is not None else OWN_READER,
            model=got.model,
            uncertain=got.uncertain,
            cached=cached,
            attempts=() if cached else tuple(attempts),
            read_from=parts[0].number if parts else 0.0,
            read_to=parts[-1].number if parts else None,
            next=got.next,
        )
    start, end = times or (0.0, None)
    segments = got.segments(start, end)
    more = got.next
    if end is not None and (more is None or more > end):
        more = end if got.seconds is None or end < got.seconds else None
    document: DocumentText = in_seconds(segments, got.seconds)
    return ItemReading(
        form=form,
        capability=capability,
        text=whole_text(segments),
        document=document,
        provider=got.choice.candidate.entry.provider if got.choice is not None else "",
        model=got.model,
        segments=segments,
        language=got.language,
        uncertain=got.uncertain,
        cached=cached,
        attempts=() if cached else tuple(attempts),
        seconds=got.seconds,
        read_from=start,
        read_to=more if more is not None else got.seconds,
        next=more,
    )


def _cut(text: str, max_chars: int | None) -> tuple[str, bool]:
    if max_chars is None or len(text) <= max_chars:
        return text, False
    return text[: max_chars - 1].rstrip() + "…", True


def _rest(item: ItemReading, cut: bool) -> str:
    """What is missing from a text; empty if nothing is."""
    if item.next is not None and item.form is ReadingForm.TRANSCRIPT:
        whole = f" of {clock_time(item.seconds)}" if item.seconds is not None else ""
        return f"read up to {clock_time(item.next)}{whole}"
    if item.next is not None:
        return f"read up to page {int(item.next) - 1} of {item.document.total}"
    return "cut at max_chars" if cut else ""
