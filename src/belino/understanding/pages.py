"""Pages of a document, each read by the method that fits it: its own text, or a picture of it by an entry."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from belino.domain.errors import MediaRefused
from belino.domain.media import DocumentText, DocumentUnit, Part, Unread
from belino.domain.ports import Clock
from belino.domain.reading import Material, Read, ReadingForm
from belino.domain.tokens import estimate_tokens
from belino.media.documents import scanned_pages
from belino.understanding.calls import model_of
from belino.understanding.pictures import SeenText, as_document, find_stored, first_certain, keep_text, seen_by, text_of
from belino.understanding.pieces import NotRead, PieceReader, Source, Wanted, reader_key
from belino.understanding.policy import EntryChoice

PAGES_AT_ONCE = 200
PAGES = "pages"
"""The window of the pages of a document: each is a part of one reading."""

Tell = Callable[[str, float, float | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """How far a request goes."""

    last: int | None = None
    until: float | None = None
    max_chars: int | None = None


@dataclass(slots=True)
class _PagesRead:
    """The pages that were read so far."""

    usable: list[EntryChoice]
    """Entries that have not failed."""
    notes: dict[str, None]
    reason: str
    parts: list[Part] = field(default_factory=list)
    seen: SeenText | None = None
    """The last page that an entry read."""


class PageReader:
    """Reads documents page by page."""

    def __init__(self, pieces: PieceReader, clock: Clock) -> None:
        self._pieces = pieces
        self._clock = clock

    async def read(
        self,
        source: Source,
        choices: Sequence[EntryChoice],
        *,
        pages: tuple[int, int | None] | None = None,
        until: float | None = None,
        max_chars: int | None = None,
        tell: Tell,
    ) -> SeenText:
        """The pages from … to, as far as one request goes; scanned ones by the first entry that can."""
        first, last = pages or (1, None)
        own = await _own_text(source, first, last or first + PAGES_AT_ONCE - 1)
        if not scanned_pages(own) or not choices:
            return SeenText(document=own, next=_next(own, last))
        limits = PageLimits(last=last, until=until, max_chars=max_chars)
        return await self._mixed(source, choices, own, limits, tell)

    async def _mixed(
        self, source: Source, choices: Sequence[EntryChoice], own: DocumentText, limits: PageLimits, tell: Tell
    ) -> SeenText:
        done = _PagesRead(list(choices), dict.fromkeys(own.notes), own.reason)
        for part in own.parts:
            if done.parts and self._ends(done, part, limits):
                break
            if part.scanned and done.usable:
                tell(done.usable[0].candidate.entry.provider, part.number - 1, own.total)
                part = await self._recognised(source, done, part, own.total)
            done.parts.append(part)
        await _learn_pages(source, choices)
        more = own.parts[len(done.parts)].number if len(done.parts) < len(own.parts) else _next(own, limits.last)
        text = any(part.text.strip() for part in done.parts)
        document = replace(
            own,
            parts=tuple(done.parts),
            notes=tuple(done.notes),
            reason=done.reason,
            unread=None if text else own.unread or Unread.NO_TEXT,
        )
        if done.seen is None:
            return SeenText(document=document, next=more)
        return SeenText(document=document, choice=done.seen.choice, model=done.seen.model, next=more)

    def _ends(self, done: _PagesRead, part: Part, limits: PageLimits) -> bool:
        if limits.max_chars is not None and sum(len(each.text) for each in done.parts) >= limits.max_chars:
            return True
        if part.scanned and limits.until is not None and self._clock.monotonic() >= limits.until:
            done.reason = "the time for one request was up"
            return True
        return False

    async def _recognised(self, source: Source, done: _PagesRead, own: Part, total: int) -> Part:
        """A scanned page as it is recognised; as it is if nothing is recognised in it."""
        try:
            seen = await self._page(source, done.usable, own.number, total)
        except NotRead as error:
            done.reason = str(error)
            return own
        done.seen = seen
        done.notes |= dict.fromkeys(seen.document.notes)
        (page,) = seen.document.parts
        assert seen.choice is not None
        if not page.text.strip():
            return own
        return replace(own, text=page.text, read_by=seen.choice.candidate.entry.provider)

    async def _page(self, source: Source, usable: list[EntryChoice], number: int, total: int) -> SeenText:
        """A scanned page, as one of the entries read it before, or by the first that can.

        Those that cannot are not asked for further pages.
        """
        stored = [choice for choice in usable if await _is_stored(source, choice, number)]

        async def read(choice: EntryChoice) -> SeenText:
            try:
                return await self._part(source, choice, number, total)
            except NotRead:
                usable.remove(choice)
                raise

        return await first_certain([*stored, *(choice for choice in usable if choice not in stored)], read)

    async def _part(self, source: Source, choice: EntryChoice, number: int, total: int) -> SeenText:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Sequence[Material]]:
            made = source.materials.page(
                source.blob, number, local=choice.candidate.local, max_bytes=choice.limits.max_bytes
            )
            async with made as page:
                yield (page,)

        async def find(key: str) -> DocumentText | None:
            known = await find_stored(source, key, (number, number))
            return known if known is not None and known.parts else None

        async def keep(key: str, read: Read) -> DocumentText:
            return await keep_text(source, key, as_document(read, text_of(read), DocumentUnit.PAGE, number, total))

        wanted = Wanted(
            form=ReadingForm.TEXT,
            window=PAGES,
            place=str(number),
            find=find,
            material=opened,
            keep=keep,
            pages=1,
        )
        return seen_by(choice, await self._pieces.read(source, choice, wanted))


async def _own_text(source: Source, first: int, last: int) -> DocumentText:
    """The text that a document holds as such; the pages of a TIFF hold none."""
    if (total := await source.materials.pages(source.blob)) > 1:
        if first > total:
            raise MediaRefused(f"there is no page {first}, only {total}")
        if source.store is not None:
            learn = source.materials.renderer.learn
            await learn(source.blob.sha256, text_tokens=0, unit=DocumentUnit.PAGE, parts=total, scans=total)
        numbers = range(first, min(last, total) + 1)
        parts = tuple(Part(number=number, text="", scanned=True) for number in numbers)
        return DocumentText(unit=DocumentUnit.PAGE, total=total, parts=parts, unread=Unread.NO_TEXT)
    return await source.materials.renderer.reading(
        source.blob, mime=source.blob.mime, name=source.name, first=first, last=last
    )


def key_of_pages(choice: EntryChoice) -> str:
    """The key under which an entry's pages of a document are stored."""
    return reader_key(ReadingForm.TEXT, choice, model_of(choice.candidate.readers[0], choice), PAGES)


async def _is_stored(source: Source, choice: EntryChoice, number: int) -> bool:
    known = await find_stored(source, key_of_pages(choice), (number, number))
    return known is not None and bool(known.parts)


async def _learn_pages(source: Source, choices: Sequence[EntryChoice]) -> None:
    """Note which scanned pages need no provider any more, so that the price tells it."""
    if source.store is None:
        return
    tokens: dict[int, int] = {}
    for choice in choices:
        stored = await find_stored(source, key_of_pages(choice))
        for part in stored.parts if stored is not None else ():
            tokens.setdefault(part.number, estimate_tokens(part.text))
    await source.materials.renderer.learn(
        source.blob.sha256,
        recogniser=key_of_pages(choices[0]),
        recognised=len(tokens),
        recognised_tokens=sum(tokens.values()),
        blank=sum(not count for count in tokens.values()),
    )


def _next(document: DocumentText, last: int | None) -> int | None:
    reached = document.parts[-1].number if document.parts else 0
    return reached + 1 if 0 < reached < document.total and (last is None or reached < last) else None
