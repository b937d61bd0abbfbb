"""Pictures, pages and videos: described, or their text read, with the first entry that can."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from belino.domain.errors import MediaRefused
from belino.domain.media import DocumentText, DocumentUnit, Part, Unread
from belino.domain.ports import Clock
from belino.domain.reading import Material, Read, ReadingForm, ReadSegment, Skill
from belino.domain.units import clock_time
from belino.media.price import PDF
from belino.understanding.calls import model_of
from belino.understanding.page_text import page_text
from belino.understanding.pieces import UNCERTAIN, NotRead, PieceReader, Source, Wanted, keep_piece, reader_key
from belino.understanding.policy import EntryChoice

SCANNED_LETTERS = 16
"""A page with fewer letters is most likely a scan with a stamp or a page number."""
PAGES_AT_ONCE = 200
WHOLE = "all"
"""The window of a reading that is not of a part."""

OpenMaterial = Callable[[], AbstractAsyncContextManager[Sequence[Material]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenText:
    """What was read from pictures or pages, and by whom; nobody for a document's own text."""

    document: DocumentText
    choice: EntryChoice | None = None
    model: str = ""
    next: int | None = None
    """The page to read on from."""

    @property
    def text(self) -> str:
        """The text of all parts."""
        return "\n\n".join(part.text for part in self.document.parts if part.text.strip())

    @property
    def uncertain(self) -> bool:
        return UNCERTAIN in self.document.notes


class PictureReader:
    """Reads pictures, pages and frames."""

    def __init__(self, pieces: PieceReader, clock: Clock) -> None:
        self._pieces = pieces
        self._clock = clock

    async def picture(self, source: Source, form: ReadingForm, choices: Sequence[EntryChoice]) -> SeenText:
        """A picture, described or its text read."""

        def material(choice: EntryChoice) -> OpenMaterial:
            @asynccontextmanager
            async def opened() -> AsyncIterator[Sequence[Material]]:
                made = source.materials.picture(
                    source.blob, local=choice.candidate.local, max_bytes=choice.limits.max_bytes
                )
                async with made as picture:
                    yield (picture,)

            return opened

        ranked = await _stored_first(source, form, choices)
        return await self._first(source, ranked, lambda choice: self._whole(source, form, choice, material(choice)))

    async def video(
        self,
        source: Source,
        form: ReadingForm,
        choices: Sequence[EntryChoice],
        times: tuple[float, float | None] | None,
    ) -> SeenText:
        """A video: as a whole, or by frames between two times."""

        async def read(choice: EntryChoice) -> SeenText:
            if choice.skill is Skill.DESCRIBE_VIDEO and times is None:
                return await self._film(source, choice)
            seen = choice if choice.skill is not Skill.DESCRIBE_VIDEO else replace(choice, skill=Skill.DESCRIBE)
            if seen.skill not in seen.candidate.skills:
                raise NotRead("it reads videos only as a whole")
            return await self._frames(source, form, seen, times)

        return await self._first(source, await _stored_first(source, form, choices), read)

    async def pages(
        self,
        source: Source,
        choices: Sequence[EntryChoice],
        *,
        pages: tuple[int, int | None] | None = None,
        until: float | None = None,
        max_chars: int | None = None,
        tell: Callable[[str, float, float | None], None],
    ) -> SeenText:
        """A document: its own text, and that of scanned pages by an entry."""
        first, last = pages or (1, None)
        own = await source.materials.renderer.reading(
            source.blob, mime=source.blob.mime, name=source.name, first=first, last=last or first + PAGES_AT_ONCE - 1
        )
        scans = _scans(own) if source.blob.mime == PDF else ()
        if not scans or not choices:
            return SeenText(document=own, next=_next(own, last))
        return await self._scanned(source, choices, own, scans, last=last, until=until, max_chars=max_chars, tell=tell)

    async def _scanned(
        self,
        source: Source,
        choices: Sequence[EntryChoice],
        own: DocumentText,
        scans: Sequence[int],
        *,
        last: int | None,
        until: float | None,
        max_chars: int | None,
        tell: Callable[[str, float, float | None], None],
    ) -> SeenText:
        """The pages of a document in order, each read by the method that fits it."""
        usable = list(choices)
        read: list[Part] = []
        reader: SeenText | None = None
        notes, reason, length = dict.fromkeys(own.notes), own.reason, 0
        for part in own.parts:
            enough = max_chars is not None and length >= max_chars
            late = until is not None and self._clock.monotonic() >= until and part.number in scans
            if read and (enough or late):
                reason = reason if enough else "the time for one request was up"
                break
            if part.number in scans and usable:
                tell(usable[0].candidate.entry.provider, part.number - 1, own.total)
                try:
                    reader = await self._page(source, usable, part.number, own.total)
                    part = max(part, reader.document.parts[0], key=lambda each: len(each.text))
                    notes |= dict.fromkeys(reader.document.notes)
                except NotRead as error:
                    usable, reason = [], str(error)
            read.append(part)
            length += len(part.text)
        more = own.parts[len(read)].number if len(read) < len(own.parts) else _next(own, last)
        text = any(part.text.strip() for part in read)
        document = replace(
            own,
            parts=tuple(read),
            notes=tuple(notes),
            reason=reason,
            unread=None if text else own.unread or Unread.NO_TEXT,
        )
        if reader is None:
            return SeenText(document=document, next=more)
        return SeenText(document=document, choice=reader.choice, model=reader.model, next=more)

    async def _page(self, source: Source, usable: list[EntryChoice], number: int, total: int) -> SeenText:
        """A scanned page, by the first entry that can; those that cannot are not asked for further pages."""
        failed = NotRead("no provider can read scanned pages")
        while usable:
            choice = usable[0]

            @asynccontextmanager
            async def opened(choice: EntryChoice = choice) -> AsyncIterator[Sequence[Material]]:
                made = source.materials.page(
                    source.blob, number, local=choice.candidate.local, max_bytes=choice.limits.max_bytes
                )
                async with made as page:
                    yield (page,)

            try:
                return await self._part(source, choice, opened, number, total)
            except NotRead as error:
                failed = error
                usable.pop(0)
        raise failed

    async def _part(
        self, source: Source, choice: EntryChoice, opened: OpenMaterial, number: int, total: int
    ) -> SeenText:
        async def find(key: str) -> DocumentText | None:
            known = await _stored(source, key, (number, number))
            return known if known is not None and known.parts else None

        async def keep(key: str, read: Read) -> DocumentText:
            return await _kept(source, key, _document(read, _written(read), DocumentUnit.PAGE, number, total))

        wanted = Wanted(
            form=ReadingForm.TEXT,
            window="pages",
            place=str(number),
            find=find,
            material=opened,
            keep=keep,
            pages=1,
        )
        document = await self._pieces.read(source, choice, wanted)
        return _seen(document, choice)

    async def _whole(self, source: Source, form: ReadingForm, choice: EntryChoice, opened: OpenMaterial) -> SeenText:
        async def find(key: str) -> DocumentText | None:
            return await _stored(source, key)

        async def keep(key: str, read: Read) -> DocumentText:
            text = _written(read) if form is ReadingForm.TEXT else read.text
            return await _kept(source, key, _document(read, text, DocumentUnit.PART, 1, 1))

        wanted = Wanted(form=form, window=WHOLE, find=find, material=opened, keep=keep, pages=1)
        return _seen(await self._pieces.read(source, choice, wanted), choice)

    async def _film(self, source: Source, choice: EntryChoice) -> SeenText:
        seconds = await source.materials.seconds_or_none(source.blob)

        @asynccontextmanager
        async def opened() -> AsyncIterator[Sequence[Material]]:
            async with source.materials.video(source.blob, max_bytes=choice.limits.max_bytes) as film:
                yield (film,)

        async def find(key: str) -> DocumentText | None:
            return await _stored(source, key)

        async def keep(key: str, read: Read) -> DocumentText:
            return await _kept(source, key, _document(read, read.text, DocumentUnit.PART, 1, 1))

        wanted = Wanted(
            form=ReadingForm.DESCRIPTION, window=WHOLE, find=find, material=opened, keep=keep, seconds=seconds or 0.0
        )
        return _seen(await self._pieces.read(source, choice, wanted), choice)

    async def _frames(
        self,
        source: Source,
        form: ReadingForm,
        choice: EntryChoice,
        times: tuple[float, float | None] | None,
    ) -> SeenText:
        start, end = times or (None, None)
        window = WHOLE if times is None else f"{clock_time(start or 0.0)}-{'' if end is None else clock_time(end)}"
        made = source.materials.frames(
            source.blob, start=start, end=end, local=choice.candidate.local, max_bytes=choice.limits.max_bytes
        )
        try:
            async with made as frames:
                if form is ReadingForm.TEXT:
                    return await self._shown(source, choice, frames, window)
                return await self._piece(source, form, choice, frames, window)
        except MediaRefused as error:
            raise NotRead(str(error)) from error

    async def _piece(
        self, source: Source, form: ReadingForm, choice: EntryChoice, material: Sequence[Material], window: str
    ) -> SeenText:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Sequence[Material]]:
            yield material

        async def find(key: str) -> DocumentText | None:
            return await _stored(source, key)

        async def keep(key: str, read: Read) -> DocumentText:
            text = _written(read) if form is ReadingForm.TEXT else read.text
            return await _kept(source, key, _document(read, text, DocumentUnit.PART, 1, 1))

        wanted = Wanted(form=form, window=window, find=find, material=opened, keep=keep, pages=len(material))
        return _seen(await self._pieces.read(source, choice, wanted), choice)

    async def _shown(self, source: Source, choice: EntryChoice, frames: Sequence[Material], window: str) -> SeenText:
        """The text on the frames of a video, one after the other; what stays on the screen is told once."""
        shown: list[ReadSegment] = []
        notes: dict[str, None] = {}
        for number, frame in enumerate(frames):
            seen = await self._piece(source, ReadingForm.TEXT, choice, (frame,), f"{window}:{number}")
            notes |= dict.fromkeys(seen.document.notes)
            if seen.text and (not shown or shown[-1].text != seen.text):
                shown.append(ReadSegment(text=seen.text, start=frame.at or 0.0, end=frame.at or 0.0))
        seconds = await source.materials.seconds_or_none(source.blob)
        parts = tuple(
            Part(number=number, text="\n".join(each.text for each in shown if int(each.start) + 1 == number))
            for number in sorted({int(each.start) + 1 for each in shown})
        )
        document = DocumentText(
            unit=DocumentUnit.SECOND,
            total=max(math.ceil(seconds or 0.0), parts[-1].number if parts else 1),
            parts=parts,
            unread=None if parts else Unread.NO_TEXT,
            notes=tuple(notes),
        )
        return _seen(document, choice)

    async def _first(
        self, source: Source, choices: Sequence[EntryChoice], read: Callable[[EntryChoice], Awaitable[SeenText]]
    ) -> SeenText:
        failed = NotRead("no provider can read it")
        for choice in choices:
            try:
                return await read(choice)
            except NotRead as error:
                failed = error
        raise failed


def _scans(document: DocumentText) -> tuple[int, ...]:
    """The pages without text worth the name."""
    if document.unit is not DocumentUnit.PAGE:
        return ()
    return tuple(part.number for part in document.parts if sum(char.isalnum() for char in part.text) < SCANNED_LETTERS)


def _next(document: DocumentText, last: int | None) -> int | None:
    reached = document.parts[-1].number if document.parts else 0
    return reached + 1 if 0 < reached < document.total and (last is None or reached < last) else None


async def _stored_first(source: Source, form: ReadingForm, choices: Sequence[EntryChoice]) -> Sequence[EntryChoice]:
    """The choices in order; one whose text is stored comes first."""
    for choice in choices:
        key = reader_key(form, choice, model_of(choice.candidate.readers[0], choice), WHOLE)
        if await _stored(source, key) is not None:
            return [choice, *(other for other in choices if other is not choice)]
    return choices


async def _stored(source: Source, key: str, parts: tuple[int, int] | None = None) -> DocumentText | None:
    return None if source.store is None else await source.store.reading(source.blob.sha256, key, parts=parts)


async def _kept(source: Source, key: str, document: DocumentText) -> DocumentText:
    if source.store is not None:
        await keep_piece(source, partial(source.store.keep_reading, source.blob.sha256, key, document))
    return document


def _written(read: Read) -> str:
    """The text of a picture in reading order."""
    return page_text(read.segments) if any(segment.box is not None for segment in read.segments) else read.text


def _document(read: Read, text: str, unit: DocumentUnit, number: int, total: int) -> DocumentText:
    return DocumentText(
        unit=unit,
        total=total,
        parts=(Part(number=number, text=text.strip()),),
        unread=None if text.strip() else Unread.NO_TEXT,
        notes=(UNCERTAIN,) if read.uncertain else (),
    )


def _seen(document: DocumentText, choice: EntryChoice) -> SeenText:
    return SeenText(document=document, choice=choice, model=model_of(choice.candidate.readers[0], choice))
