"""Pictures, pages and videos: described, or their text read, with the first entry that can."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from belino.domain.errors import MediaRefused
from belino.domain.media import DocumentText, DocumentUnit, Part, Unread
from belino.domain.reading import Material, Read, ReadingForm, ReadSegment, Skill
from belino.domain.units import clock_time
from belino.media.paging import under_headings
from belino.readers.parts import HIDDEN_NOTE, hidden
from belino.understanding.calls import model_of
from belino.understanding.pieces import UNCERTAIN, NotRead, PieceReader, Source, Wanted, keep_piece, reader_key
from belino.understanding.policy import EntryChoice

WHOLE = "all"
"""The window of a reading that is not of a part."""

OpenMaterial = Callable[[], AbstractAsyncContextManager[Sequence[Material]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenText:
    """What was read from pictures or pages, and by whom; unset for a document's own text."""

    document: DocumentText
    choice: EntryChoice | None = None
    model: str = ""
    next: int | None = None
    """The page to read on from."""

    @property
    def text(self) -> str:
        """The text of all parts; pages of several have headings."""
        if self.document.unit is DocumentUnit.PAGE and self.document.total > 1:
            return under_headings(self.document) if any(part.text.strip() for part in self.document.parts) else ""
        return "\n\n".join(part.text for part in self.document.parts if part.text.strip())

    @property
    def uncertain(self) -> bool:
        return UNCERTAIN in self.document.notes


class PictureReader:
    """Reads pictures, pages and frames."""

    def __init__(self, pieces: PieceReader) -> None:
        self._pieces = pieces

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
        return await first_certain(ranked, lambda choice: self._whole(source, form, choice, material(choice)))

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

        return await first_certain(await _stored_first(source, form, choices), read)

    async def _whole(self, source: Source, form: ReadingForm, choice: EntryChoice, opened: OpenMaterial) -> SeenText:
        async def find(key: str) -> DocumentText | None:
            return await find_stored(source, key)

        async def keep(key: str, read: Read) -> DocumentText:
            text = text_of(read) if form is ReadingForm.TEXT else read.text
            return await keep_text(source, key, as_document(read, text, DocumentUnit.PART, 1, 1))

        wanted = Wanted(form=form, window=WHOLE, find=find, material=opened, keep=keep, pages=1)
        return seen_by(choice, await self._pieces.read(source, choice, wanted))

    async def _film(self, source: Source, choice: EntryChoice) -> SeenText:
        seconds = await source.materials.seconds_or_none(source.blob)

        @asynccontextmanager
        async def opened() -> AsyncIterator[Sequence[Material]]:
            async with source.materials.video(source.blob, max_bytes=choice.limits.max_bytes) as film:
                yield (film,)

        async def find(key: str) -> DocumentText | None:
            return await find_stored(source, key)

        async def keep(key: str, read: Read) -> DocumentText:
            return await keep_text(source, key, as_document(read, read.text, DocumentUnit.PART, 1, 1))

        wanted = Wanted(
            form=ReadingForm.DESCRIPTION, window=WHOLE, find=find, material=opened, keep=keep, seconds=seconds or 0.0
        )
        return seen_by(choice, await self._pieces.read(source, choice, wanted))

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
            return await find_stored(source, key)

        async def keep(key: str, read: Read) -> DocumentText:
            text = text_of(read) if form is ReadingForm.TEXT else read.text
            return await keep_text(source, key, as_document(read, text, DocumentUnit.PART, 1, 1))

        wanted = Wanted(form=form, window=window, find=find, material=opened, keep=keep, pages=len(material))
        return seen_by(choice, await self._pieces.read(source, choice, wanted))

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
        return seen_by(choice, document)


async def first_certain(choices: Sequence[EntryChoice], read: Callable[[EntryChoice], Awaitable[SeenText]]) -> SeenText:
    """What the first entry reads that can; if that is uncertain or nothing, what another one on this machine reads.

    NotRead if none can.
    """
    failed, doubtful = NotRead("no provider can read it"), None
    for choice in choices:
        if doubtful is not None and not choice.candidate.local:
            continue
        try:
            seen = await read(choice)
        except NotRead as error:
            failed = error
            continue
        if not seen.uncertain and seen.text:
            return seen
        doubtful = doubtful if doubtful is not None and (doubtful.text or not seen.text) else seen
    if doubtful is None:
        raise failed
    return doubtful


async def _stored_first(source: Source, form: ReadingForm, choices: Sequence[EntryChoice]) -> Sequence[EntryChoice]:
    """The choices in order; one whose text is stored comes first."""
    for choice in choices:
        key = reader_key(form, choice, model_of(choice.candidate.readers[0], choice), WHOLE)
        if await find_stored(source, key) is not None:
            return [choice, *(other for other in choices if other is not choice)]
    return choices


async def find_stored(source: Source, key: str, parts: tuple[int, int] | None = None) -> DocumentText | None:
    """What was read before under this key, or the parts of it from … to."""
    return None if source.store is None else await source.store.reading(source.blob.sha256, key, parts=parts)


async def keep_text(source: Source, key: str, document: DocumentText) -> DocumentText:
    """Store what was read; an error if its bytes were deleted in the meantime."""
    if source.store is not None:
        await keep_piece(source, partial(source.store.keep_reading, source.blob.sha256, key, document))
    return document


def text_of(read: Read) -> str:
    """The text of a picture; what a person does not see in it follows, marked."""
    unseen = [hidden(segment.text) for segment in read.segments if segment.hidden]
    return "\n".join([read.text, *unseen]) if unseen else read.text


def as_document(read: Read, text: str, unit: DocumentUnit, number: int, total: int) -> DocumentText:
    """What a provider read, as one part of so many."""
    return DocumentText(
        unit=unit,
        total=total,
        parts=(Part(number=number, text=text.strip()),),
        unread=None if text.strip() else Unread.NO_TEXT,
        notes=_notes(read),
    )


def _notes(read: Read) -> tuple[str, ...]:
    unseen = any(segment.hidden for segment in read.segments)
    return (*((UNCERTAIN,) if read.uncertain else ()), *((HIDDEN_NOTE,) if unseen else ()))


def seen_by(choice: EntryChoice, document: DocumentText) -> SeenText:
    """What an entry read."""
    return SeenText(document=document, choice=choice, model=model_of(choice.candidate.readers[0], choice))
