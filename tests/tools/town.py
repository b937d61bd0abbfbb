"""A real store with a channel in it, and a platform that counts what it is asked for."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Never

from belino.context.history import History
from belino.domain.errors import AdapterError, MediaError, MediaRefused
from belino.domain.media import (
    TEXT_AND_PICTURES,
    AcceptedMedia,
    Blob,
    DocumentText,
    DocumentUnit,
    MediaBlock,
    MediaKind,
    MediaRef,
    Part,
    kind_of,
)
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import MediaOutcome, Standing, Step
from belino.domain.reading import ReadSegment, TranscriptWindow
from belino.domain.stored import ManifestEntry, Verdict
from belino.domain.turn import Toolbox
from belino.media.fetch import Fetcher, MediaConfig
from belino.media.image.images import Fitted, ImageFacts
from belino.media.price import within
from belino.media.render import Draws, Makers, Renderer
from belino.net.rest import PaceConfig
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from belino.testing.files import make_jpeg
from belino.tools.tool_context import ToolContext
from belino.tools.toolbox import make_toolbox
from belino.understanding.read import Understanding

HERE = ConversationKey(platform="telegram", account="default", channel="here")
THERE = ConversationKey(platform="telegram", account="default", channel="there")
SECRET = "canary-5f0c1b"
FENCE = "0f1e2d3c4b5a69788796a5b4"
ANA = Author(id="7", name="Ana")


@dataclass(slots=True, kw_only=True)
class File:
    """A file as somebody sends it."""

    content: bytes | MediaError
    name: str | None = None
    mime: str = "image/png"
    kind: MediaKind | None = None
    caption: str | None = None
    size: int | None = None
    duration: float | None = None
    file_id: str | None = None


@dataclass(slots=True, kw_only=True)
class Pencil:
    """Stands in for the decoder: knows the size of every picture, and notes what it was asked to draw."""

    size: tuple[int, int] = (4000, 3000)
    fails: MediaError | None = None
    asked: list[tuple[int, int | None]] = field(default_factory=list)

    async def probe(self, blob: Blob) -> ImageFacts:
        if self.fails:
            raise self.fails
        width, height = self.size
        return ImageFacts(mime=blob.mime, width=width, height=height, frames=1, has_alpha=False)

    async def fit(self, blob: Blob, *, max_bytes: int, max_side: int | None = None) -> Fitted:
        self.asked.append((max_bytes, max_side))
        if self.fails:
            raise self.fails
        width, height = within(*self.size, max_side or 10_000)
        return Fitted(data=make_jpeg(width, height), mime="image/jpeg", width=width, height=height)


class _Nobody:
    """Where nothing but pictures is decoded: whoever asks for more is told so."""

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Never]]:
        return self._refuse

    async def _refuse(self, *given: object, **named: object) -> Never:
        raise MediaRefused("nobody decodes this here")


@dataclass(slots=True, kw_only=True)
class Annals:
    """Stands in for a platform that can be asked for the past, and counts how often it is."""

    threads: dict[str, list[Message]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    fails: AdapterError | None = None

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        return self._told(str(channel), "")

    async def thread(self, conversation: ConversationKey) -> Sequence[Message]:
        return self._told(str(conversation), conversation.thread or "")

    def _told(self, asked: str, thread: str) -> Sequence[Message]:
        self.asked.append(asked)
        if self.fails:
            raise self.fails
        return self.threads.get(thread, [])


@dataclass(slots=True, kw_only=True)
class Town:
    """Everything a toolbox needs, and what happened meanwhile."""

    store: Store
    clock: FakeClock
    folder: Path
    config: MediaConfig = field(default_factory=MediaConfig)
    images: Draws = field(default_factory=Pencil)
    renderer: Renderer | None = None
    """Set where more than pictures is decoded."""
    understanding: Understanding | None = None
    files: dict[str, bytes | MediaError] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    shown: list[MediaBlock] = field(default_factory=list)
    accepts: AcceptedMedia = TEXT_AND_PICTURES
    annals: Annals | None = None
    """None: the platform has no history."""
    counts: Counter[str] = field(default_factory=Counter)
    pace: PaceConfig = field(default_factory=PaceConfig)
    numbers: Callable[[], int] = field(default_factory=lambda: count(1).__next__)

    async def say(
        self,
        text: str,
        *files: File,
        where: ConversationKey = HERE,
        author: Author = ANA,
        sent: datetime | None = None,
        standing: Standing = Standing.MAY_COMMAND,
        reply_to: str | None = None,
        language: str | None = None,
    ) -> tuple[str, tuple[str, ...]]:
        """Somebody says something: its message id and the ids of its refs."""
        number = str(self.numbers())
        sent = sent or self.clock.now()
        media = tuple(self.ref(file, where, number, position, sent) for position, file in enumerate(files))
        message = Message(
            conversation=where,
            id=number,
            author=author,
            sent=sent,
            text=text,
            media=media,
            reply_to=reply_to,
            language=language,
        )
        taken = await self.store.take_in(message, Verdict(standing=standing, reason="test"))
        self.clock.shift(60)
        return number, tuple(ref.id for ref in taken.refs)

    async def hear(self, ref: str, words: str, *, uncertain: bool = False) -> None:
        """A provider reads a voice message, and what it heard is stored."""
        blob = await self.store.keep(_pieces(words.encode()), mime="audio/ogg", limit=1 << 20)
        await self.store.end_media(ref, MediaOutcome.HELD, blob=blob)
        said = (ReadSegment(text=words, start=0.0, end=2.0),)
        window = TranscriptWindow(start=0.0, end=2.0, segments=said, uncertain=uncertain)
        text = DocumentText(unit=DocumentUnit.SECOND, total=2, parts=(Part(number=1, text=words),))
        assert await self.store.keep_transcript(blob.sha256, "transcript.1:p:m:d:2s-0", window, text)

    def ref(self, file: File, where: ConversationKey, number: str, position: int, sent: datetime) -> MediaRef:
        item = f"{where.channel}-{number}-{position}"
        self.files[item] = file.content
        return MediaRef(
            platform=where.platform,
            account=where.account,
            channel_id=where.channel,
            message_id=number,
            item=item,
            kind=file.kind or kind_of(file.mime),
            mime=file.mime,
            created=sent,
            file_name=file.name,
            caption=file.caption,
            duration=file.duration,
            size=file.size if file.size is not None else len(file.content) if isinstance(file.content, bytes) else None,
            locator={"item": item},
            sealed={"media_key": SECRET},
            file_id=file.file_id,
        )

    @asynccontextmanager
    async def open_media(self, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        self.opened.append(ref.id)
        content = self.files[ref.locator["item"]]
        if isinstance(content, MediaError):
            raise content
        yield _pieces(content)

    async def note(self, step: Step) -> None:
        self.steps.append(step)

    def rendering(self) -> Renderer:
        nobody: Any = _Nobody()
        makers = Makers(
            images=self.images, documents=nobody, videos=nobody, sounds=nobody, windows=nobody, sheets=nobody
        )
        return self.renderer or Renderer(makers, self.store)

    def history(self) -> History:
        adapters = {} if self.annals is None else {("telegram", "default"): self.annals}
        return History(self.store, adapters, config=self.pace, clock=self.clock, counts=self.counts)  # type: ignore[arg-type]

    def toolbox(
        self,
        where: ConversationKey = HERE,
        *,
        sees_images: bool = True,
        manifest: Sequence[ManifestEntry] = (),
        answers: Sequence[str] = (),
    ) -> Toolbox:
        fetcher = Fetcher(self.store, self.store, self.open_media, self.config, self.clock)
        context = ToolContext(
            conversation=where,
            library=self.store,
            archive=self.store,
            fetcher=fetcher,
            history=self.history(),
            folder=self.folder,
            notes=self.note,
            shown=self.shown.append,
            clock=self.clock,
            sees_images=sees_images,
            accepts=self.accepts,
            renderer=self.rendering(),
            understanding=self.understanding,
            fence=FENCE,
            image_block_bytes=self.config.image_block_bytes,
            image_block_side=self.config.image_block_side,
            manifest=manifest,
            answers=answers,
        )
        return make_toolbox(context)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 4096):
        yield content[start : start + 4096]


@asynccontextmanager
async def settled(folder: Path) -> AsyncIterator[Town]:
    """A town with a real store in this folder."""
    home = Home.at(folder)
    clock = FakeClock()
    store = await open_store(home, clock=clock)
    try:
        yield Town(store=store, clock=clock, folder=home.incoming(HERE))
    finally:
        await store.close()
