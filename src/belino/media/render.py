"""Render a blob: text, pages, frames, sheets, a waveform; each made once, in the sandbox, and cached."""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from belino.domain.errors import MediaNotFound, MediaRefused, StoreError
from belino.domain.failpoints import failpoint
from belino.domain.media import Blob, DocumentText, DocumentUnit, OpenBlob, Unread
from belino.domain.outcome import CacheSize
from belino.domain.safe_text import one_line
from belino.domain.tokens import estimate_tokens
from belino.domain.units import NUMBER_MOST
from belino.media.documents import scanned_pages
from belino.media.image.formats import PictureNote
from belino.media.image.header import BLOCK_MIMES, image_size
from belino.media.paging import whole_price
from belino.media.price import Facts
from belino.storage.deletions import OF_SEVERAL
from belino.storage.readings import ReadingVerbs

if TYPE_CHECKING:
    from belino.media.image.images import Fitted, ImageFacts, Images, Runs
    from belino.media.image_hash import Likenesses
    from belino.media.samples import Samples
    from belino.media.stream_header import SoundFacts
    from belino.media.video import Frame, VideoFacts

log = logging.getLogger(__name__)

READER = "document.5"
"""The version of the document reader; it changes with its output."""
PARTS_AT_ONCE = 200
JSON = "application/json"
GIF = "image/gif"
WAVE_POINTS = 40

ANSWER_TOKENS = 80
"""Approximate cost of our words and the markers around a text."""

_FACTS = "facts.5"
_FACTS_KEPT = 4096
_REASON_CHARS = 200
_FINAL = frozenset({Unread.UNSUPPORTED, Unread.NOT_ALLOWED, Unread.TOO_LARGE})

F = TypeVar("F")
Make = Callable[[], Awaitable[tuple[bytes, str]]]


class Draws(Protocol):
    """Decodes pictures in the sandbox; see media/image/images.py."""

    async def probe(self, blob: Blob) -> "ImageFacts": ...

    async def fit(self, blob: Blob, *, max_bytes: int, max_side: int | None = None) -> "Fitted": ...


class Reads(Protocol):
    """Extracts the text of documents; see media/documents.py."""

    async def read(
        self, blob: Blob, *, mime: str, name: str = "", parts: tuple[int, int] | None = None
    ) -> DocumentText: ...

    async def page(self, blob: Blob, number: int, *, max_bytes: int, max_side: int) -> "Fitted": ...


class Films(Protocol):
    """Extracts frames of videos; see media/video.py."""

    async def probe(self, blob: Blob) -> "VideoFacts": ...

    async def frames(
        self, blob: Blob, *, count: int, start: float | None, end: float | None, max_side: int, max_bytes: int
    ) -> "tuple[Frame, ...]": ...

    async def sheet(
        self, blob: Blob, *, count: int, start: float | None, end: float | None, max_side: int, max_bytes: int
    ) -> "Fitted": ...

    async def poster(self, blob: Blob) -> "Fitted": ...


class Hears(Protocol):
    """Measures sounds; see media/audio.py."""

    async def probe(self, blob: Blob) -> "SoundFacts": ...

    async def waveform(self, blob: Blob, *, points: int) -> tuple[int, ...]: ...


class Cuts(Protocol):
    """Cuts windows out of sounds; see media/samples.py."""

    def samples(self, blob: Blob, *, start: float, end: float, mime: str) -> "AbstractAsyncContextManager[Samples]": ...


class Lays(Protocol):
    """Arranges pictures on a sheet; see media/sheet.py."""

    async def album(self, items: Sequence[tuple[str, Blob]], *, max_side: int, max_bytes: int) -> "Fitted": ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Makers:
    """The makers of renditions."""

    images: Draws
    documents: Reads
    videos: Films
    sounds: Hears
    windows: Cuts
    sheets: Lays


def make_renderer(sandbox: "Runs", scratch: Path, store: ReadingVerbs, *, images: "Images | None" = None) -> "Renderer":
    """A renderer of stored blobs that uses this sandbox. `images` shares a cache of pictures."""
    from belino.media.image.agreement import CloseComparison
    from belino.media.image_hash import Likenesses

    likenesses = Likenesses(sandbox, store, CloseComparison(sandbox, scratch, store.local))
    return Renderer(make_makers(sandbox, scratch, store.local, images=images), store, likenesses)


def make_makers(sandbox: "Runs", scratch: Path, open_blob: OpenBlob, *, images: "Images | None" = None) -> Makers:
    """The makers of renditions that use this sandbox."""
    from belino.media.audio import Sounds
    from belino.media.documents import Documents
    from belino.media.image.images import Images
    from belino.media.samples import Windows
    from belino.media.sheet import Sheets
    from belino.media.video import Videos

    images, videos = images or Images(sandbox, scratch, open_blob), Videos(sandbox, scratch, open_blob)
    return Makers(
        images=images,
        documents=Documents(sandbox, scratch, open_blob),
        videos=videos,
        sounds=Sounds(sandbox, scratch, open_blob),
        windows=Windows(sandbox, scratch, open_blob),
        sheets=Sheets(images, sandbox, scratch, videos),
    )


class Renderer:
    """Makes renditions, or returns cached ones."""

    def __init__(
        self, makers: Makers, store: ReadingVerbs | None = None, likenesses: "Likenesses | None" = None
    ) -> None:
        self._makers = makers
        self._kept = RenditionCache(store)
        self.likenesses = likenesses
        """Recognises pictures that were sent before; None without a store."""
        self._facts: dict[str, dict[str, Any]] = {}

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """The caches of media."""
        return {"media_facts": CacheSize.of_entries(len(self._facts), most=_FACTS_KEPT, each=800)}

    async def probe(self, blob: Blob) -> "ImageFacts":
        """The facts of a picture."""
        facts = await self._refusable(blob, self._makers.images.probe(blob))
        await self.saw(blob.sha256, (facts.width, facts.height))
        if facts.mime == GIF and facts.frames == 1:
            await self.learn(blob.sha256, still=True)
        return facts

    async def fit(self, blob: Blob, *, max_bytes: int, max_side: int | None = None) -> "Fitted":
        """The best copy of a picture within the limits."""
        name = f"image-{max_bytes}-{max_side or 0}"
        made = self._makers.images.fit
        return await self._picture(
            blob, name, lambda: self._refusable(blob, made(blob, max_bytes=max_bytes, max_side=max_side))
        )

    async def page(self, blob: Blob, number: int, *, max_bytes: int, max_side: int) -> "Fitted":
        """A page of a PDF as a picture."""
        name = f"page-{number}-{max_bytes}-{max_side}"
        made = self._makers.documents.page
        return await self._picture(blob, name, lambda: made(blob, number, max_bytes=max_bytes, max_side=max_side))

    async def frames(
        self, blob: Blob, *, count: int, start: float | None, end: float | None, max_side: int, max_bytes: int
    ) -> "tuple[Frame, ...]":
        """Frames of a video, each with its time."""

        async def make() -> tuple[bytes, str]:
            found = await self._makers.videos.frames(
                blob, count=count, start=start, end=end, max_side=max_side, max_bytes=max_bytes
            )
            return _packed(found), "application/vnd.belino.frames"

        name = f"frames-{count}-{_moment(start)}-{_moment(end)}-{max_bytes}-{max_side}"
        data, _ = await self._kept.once(blob.sha256, name, make)
        return _unpacked(data)

    async def sheet(
        self, blob: Blob, *, count: int, start: float | None, end: float | None, max_side: int, max_bytes: int
    ) -> "Fitted":
        """One picture of many frames of a video, each with its time."""
        name = f"sheet-{count}-{_moment(start)}-{_moment(end)}-{max_bytes}-{max_side}"
        made = self._makers.videos.sheet
        return await self._picture(
            blob,
            name,
            lambda: made(blob, count=count, start=start, end=end, max_side=max_side, max_bytes=max_bytes),
        )

    async def poster(self, blob: Blob, *, cached: bool = True) -> "Fitted":
        """One small picture of a video; only that of a ref is cached."""
        if not cached:
            return await self._makers.videos.poster(blob)
        return await self._picture(blob, "poster.1", lambda: self._makers.videos.poster(blob))

    async def album(self, items: Sequence[tuple[str, Blob]], *, max_side: int, max_bytes: int) -> "Fitted":
        """One picture of several, each with its label."""
        what = "\n".join(f"{label} {blob.sha256}" for label, blob in items)
        name = f"{OF_SEVERAL}{hashlib.sha256(what.encode()).hexdigest()[:16]}-{max_bytes}-{max_side}"
        made = self._makers.sheets.album
        return await self._picture(
            items[0][1],
            name,
            lambda: made(items, max_side=max_side, max_bytes=max_bytes),
            also=[blob.sha256 for _, blob in items[1:]],
        )

    async def video(self, blob: Blob) -> "VideoFacts":
        """Length, size and encoding of a video."""
        from belino.media.video import VideoFacts

        facts = await self._refusable(
            blob, self._known(blob, "video.2", VideoFacts, lambda: self._makers.videos.probe(blob))
        )
        await self.learn(
            blob.sha256,
            seconds=facts.seconds,
            width=facts.width,
            height=facts.height,
            subtitled=True if facts.subtitles else None,
            soundless=None if facts.audio_codec else True,
        )
        return facts

    async def sound(self, blob: Blob) -> "SoundFacts":
        """Length and encoding of a sound."""
        from belino.media.stream_header import SoundFacts

        facts = await self._known(blob, "sound.1", SoundFacts, lambda: self._makers.sounds.probe(blob))
        await self.learn(blob.sha256, seconds=facts.seconds)
        return facts

    async def samples(self, blob: Blob, *, start: float, end: float, mime: str) -> bytes:
        """A sound from `start` to `end` seconds as WAV or FLAC, without metadata."""

        async def make() -> tuple[bytes, str]:
            async with self._makers.windows.samples(blob, start=start, end=end, mime=mime) as made:
                return await asyncio.to_thread(made.path.read_bytes), mime

        name = f"samples-{mime.rpartition('/')[2]}-{_moment(start)}-{_moment(end)}"
        data, _ = await self._kept.once(blob.sha256, name, make)
        return data

    async def waveform(self, blob: Blob) -> tuple[int, ...]:
        """Loudness of a sound from beginning to end, 0 to 100."""

        async def make() -> tuple[bytes, str]:
            points = await self._makers.sounds.waveform(blob, points=WAVE_POINTS)
            return json.dumps(points).encode(), JSON

        data, _ = await self._kept.once(blob.sha256, f"waveform-{WAVE_POINTS}", make)
        return tuple(json.loads(data))

    async def reading(
        self, blob: Blob, *, mime: str, name: str = "", first: int = 1, last: int = NUMBER_MOST
    ) -> DocumentText:
        """The parts of a document from `first` on, as far as they are read at once; or why there are none."""
        async with self._kept.alone(blob.sha256, READER):
            known = await self._kept.reading(blob.sha256, READER, (first, last))
            if known is not None and _settles(known, first):
                return known
            begin = first - (first - 1) % PARTS_AT_ONCE
            # From a round number, so that requests for neighbouring parts find them read; unless that read did not
            # reach this part.
            tried = await self._kept.reading(blob.sha256, READER, (begin, begin))
            if tried is None or not _settles(tried, begin):
                read = await self._read(blob, mime, name, begin)
                if _settles(read, first) or read.unread is Unread.UNREADABLE:
                    return _between(read, first, last)
            return _between(await self._read(blob, mime, name, first), first, last)

    async def _read(self, blob: Blob, mime: str, name: str, first: int) -> DocumentText:
        wanted = None if first == 1 else (first, first + PARTS_AT_ONCE - 1)
        read = await self._makers.documents.read(blob, mime=mime, name=name, parts=wanted)
        # A failure may not recur when the machine is less busy; everything else is permanent.
        if read.unread is not Unread.UNREADABLE:
            await self._kept.keep_reading(blob.sha256, READER, read)
            await self._learn_text(blob.sha256, read)
        return read

    async def beginnings(self, sha256s: Sequence[str], chars: int) -> Mapping[str, str]:
        """How the stored text of these hashes begins."""
        return await self._kept.beginnings(sha256s, chars)

    async def known(self, facts: Facts, sha256: str | None) -> Facts:
        """The declared facts of a file, corrected by what its bytes showed."""
        if sha256 is None:
            return facts
        learned = await self._learned(sha256)
        return replace(facts, **learned) if learned else facts

    async def saw(self, sha256: str, size: tuple[int, int]) -> None:
        """Cache the size of a picture in memory only, as its first bytes contain it."""
        learned = await self._learned(sha256)
        self._remember(sha256, learned | {"width": size[0], "height": size[1]})

    async def learn(self, sha256: str, **found: object) -> None:
        """Store the facts found in bytes, so that later prices are exact."""
        news = {name: value for name, value in found.items() if value is not None}
        before = await self._learned(sha256)
        if news.items() <= before.items():
            return
        self._remember(sha256, before | news)
        await self._kept.keep(sha256, _FACTS, json.dumps(before | news).encode(), JSON)

    async def _learn_text(self, sha256: str, read: DocumentText) -> None:
        if not read.parts or read.parts[0].number != 1:
            return  # only the beginning determines the price of the whole
        scans = len(scanned_pages(read))
        tokens = 0
        if any(part.text for part in read.parts):
            tokens = await asyncio.to_thread(whole_price, read, estimate_tokens)
            tokens = tokens * read.total // len(read.parts) + ANSWER_TOKENS + estimate_tokens("\n".join(read.notes))
        await self.learn(sha256, text_tokens=tokens, unit=read.unit, parts=read.total, scans=scans)

    async def _learned(self, sha256: str) -> dict[str, Any]:
        """The facts found in these bytes."""
        if sha256 not in self._facts:
            found = await self._kept.found(sha256, _FACTS)
            self._remember(sha256, _read_facts(found[0]) if found else {})
        return self._facts[sha256]

    def _remember(self, sha256: str, facts: dict[str, Any]) -> None:
        self._facts.pop(sha256, None)
        self._facts[sha256] = facts
        while len(self._facts) > _FACTS_KEPT:
            self._facts.pop(next(iter(self._facts)))

    async def note(self, sha256: str) -> str:
        """What to know about the picture that was made of a file, in a sentence."""
        name = (await self._learned(sha256)).get("note", "")
        return PictureNote(name).words if name in [*PictureNote] else ""

    async def _refusable(self, blob: Blob, attempt: Awaitable[F]) -> F:
        """The same; a refusal is kept in memory, so that its price is not quoted again."""
        try:
            return await attempt
        except MediaRefused as error:
            learned = await self._learned(blob.sha256)
            self._remember(blob.sha256, learned | {"unseen": one_line(str(error))[:_REASON_CHARS]})
            raise

    async def _picture(
        self, blob: Blob, name: str, make: "Callable[[], Awaitable[Fitted]]", *, also: Sequence[str] = ()
    ) -> "Fitted":
        async def made() -> tuple[bytes, str]:
            fitted = await make()
            if fitted.note:
                await self.learn(blob.sha256, note=fitted.note)
            return fitted.data, fitted.mime

        data, _ = await self._kept.once(blob.sha256, name, made, also=also)
        return _fitted(data)

    async def _known(self, blob: Blob, name: str, kind: type[F], probe: Callable[[], Awaitable[F]]) -> F:
        async def made() -> tuple[bytes, str]:
            return json.dumps(asdict(await probe())).encode(), JSON  # type: ignore[call-overload]

        data, _ = await self._kept.once(blob.sha256, name, made)
        return kind(**json.loads(data))


class RenditionCache:
    """Renditions and readings by the hash of their source; without a store nothing is kept."""

    def __init__(self, store: ReadingVerbs | None) -> None:
        self._store = store
        self._makers: dict[tuple[str, str], _Maker] = {}

    async def once(self, sha256: str, name: str, make: Make, *, also: Sequence[str] = ()) -> tuple[bytes, str]:
        """The rendition of this name and its type: cached, or made now and cached; `also` are its other sources."""
        async with self.alone(sha256, name):
            found = await self.found(sha256, name)
            if found is not None:
                return found
            data, mime = await make()
            failpoint("rendition.made")
            await self.keep(sha256, name, data, mime, also=also)
            failpoint("rendition.kept")
            return data, mime

    async def found(self, sha256: str, name: str) -> tuple[bytes, str] | None:
        """The cached rendition, if it exists and is intact."""
        blob = await self._store.rendition(sha256, name) if self._store else None
        if self._store is None or blob is None:
            return None
        try:
            async with self._store.local(blob.sha256) as path:
                data = await asyncio.to_thread(path.read_bytes)
        except (OSError, MediaNotFound):
            return None
        if hashlib.sha256(data).hexdigest() != blob.sha256:
            log.warning("the rendition %s of %s is damaged; it is made again", name, sha256)
            return None
        return data, blob.mime

    async def keep(self, sha256: str, name: str, data: bytes, mime: str, *, also: Sequence[str] = ()) -> None:
        """Store a rendition; if that fails, it is made again next time."""
        if self._store is None:
            return
        try:
            await self._store.keep_rendition(sha256, name, data, mime, also=also)
        except MediaNotFound:
            raise  # deleted while it was made: it may no longer be used
        except StoreError as error:
            log.warning("the rendition %s of %s is not kept: %s", name, sha256, type(error).__name__)

    async def reading(self, sha256: str, reader: str, parts: tuple[int, int]) -> DocumentText | None:
        """The stored reading of these bytes, with its parts from … to."""
        return None if self._store is None else await self._store.reading(sha256, reader, parts=parts)

    async def beginnings(self, sha256s: Sequence[str], chars: int) -> Mapping[str, str]:
        """How the stored text of these hashes begins."""
        return await self._store.beginnings(sha256s, chars) if self._store and sha256s else {}

    async def keep_reading(self, sha256: str, reader: str, text: DocumentText) -> None:
        """Store a reading beside earlier ones."""
        if self._store is None:
            return
        try:
            named = await self._store.keep_reading(sha256, reader, text)
        except StoreError as error:
            log.warning("the text of %s is not kept: %s", sha256, type(error).__name__)
            return
        if not named:
            raise MediaNotFound("the bytes it was read from were deleted in the meantime")

    @asynccontextmanager
    async def alone(self, sha256: str, name: str) -> AsyncIterator[None]:
        """Concurrent callers wait, and find it made."""
        key = (sha256, name)
        maker = self._makers.setdefault(key, _Maker())
        maker.users += 1
        try:
            async with maker.lock:
                yield
        finally:
            maker.users -= 1
            if not maker.users:
                self._makers.pop(key, None)


class _Maker:
    """A rendition being made, and its number of waiters."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


def _settles(known: DocumentText, first: int) -> bool:
    """Whether an earlier read covers this part."""
    if known.unread in _FINAL or known.total == 0 or first > known.total:
        return True
    return any(part.number == first for part in known.parts)


def _between(text: DocumentText, first: int, last: int) -> DocumentText:
    return replace(text, parts=tuple(part for part in text.parts if first <= part.number <= last))


def _moment(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3f}"


def _fitted(data: bytes) -> "Fitted":
    from belino.media.image.images import Fitted

    found = image_size(data)
    if found is None or found[0] not in BLOCK_MIMES:
        raise MediaRefused("drawing it gave no picture")
    mime, width, height = found
    return Fitted(data=data, mime=mime, width=width, height=height)


def _packed(frames: "Sequence[Frame]") -> bytes:
    """Several pictures in one blob: a line with their times and lengths, then the pictures."""
    told = json.dumps([[frame.at, len(frame.picture.data)] for frame in frames])
    return told.encode() + b"\n" + b"".join(frame.picture.data for frame in frames)


def _unpacked(data: bytes) -> "tuple[Frame, ...]":
    from belino.media.video import Frame

    head, _, rest = data.partition(b"\n")
    frames: list[Frame] = []
    for at, length in json.loads(head):
        frames.append(Frame(at=at, picture=_fitted(rest[:length])))
        rest = rest[length:]
    return tuple(frames)


def _read_facts(data: bytes) -> dict[str, Any]:
    """Stored facts; unknown fields of another version are dropped."""
    names = {field.name for field in fields(Facts)}
    found: Mapping[str, Any] = json.loads(data)
    facts = {name: value for name, value in found.items() if name in names}
    if "unit" in facts:
        facts["unit"] = DocumentUnit(facts["unit"])
    return facts
