"""A real store with files in it, and an Understanding whose providers are scripted; the sandbox's jobs run here."""

import io
import wave
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from belino import registry
from belino.config import from_table
from belino.domain.media import Blob, MediaKind, MediaRef
from belino.domain.message import Author, ChatType, ConversationKey, Deletion, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.ports import HttpClient
from belino.domain.provider import LocalWorker, ProviderContext
from belino.domain.reading import ReadingForm
from belino.domain.stored import RefRecord, Verdict
from belino.media.image.images import Images
from belino.media.render import make_renderer
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from belino.understanding.config import ModelEntry
from belino.understanding.read import ReadingRoom, Understanding
from belino.understanding.request import ItemReading, MessageMedia, MessageReadings, ReadingNews
from media.videos import Here

MAIN = ConversationKey(platform="web", account="default", channel="main")
SIDE = ConversationKey(platform="web", account="default", channel="side")
ANNA = Author(id="u-anna", name="Anna")
OBSERVE = Verdict(standing=Standing.OBSERVED, answer=False, reason="overheard")


@dataclass(frozen=True, kw_only=True)
class NoContext:
    """Scripted providers need nothing of the gateway."""

    clock: FakeClock
    scratch: Path
    models: Path

    @property
    def http(self) -> HttpClient:
        raise AssertionError("a scripted provider calls nobody")

    @property
    def worker(self) -> LocalWorker:
        raise AssertionError("a scripted provider needs no worker")


def sound(seconds: float, rate: int = 16_000) -> bytes:
    """A WAV file: a ramp in every second, so that samples tell their time."""
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(rate)
        made.writeframes(bytes(2 * int(seconds * rate)))
    return file.getvalue()


@dataclass(kw_only=True)
class ReadingHouse:
    """The store, the clock, and what was told while readings ran."""

    home: Home
    store: Store
    clock: FakeClock
    sandbox: Any = field(default_factory=Here)
    news: list[ReadingNews] = field(default_factory=list)
    holds: int = 0
    numbers: Any = field(default_factory=lambda: count(1))
    agent: Sequence[ModelEntry] = ()

    @property
    def scratch(self) -> Path:
        return self.store.scratch

    def understanding(self, **media: Any) -> Understanding:
        """With these keys of `tools.media`; `profiles` are those of the file."""
        config = from_table({"tools": {"media": media}, "profiles": media.pop("profiles", {})})
        images = Images(self.sandbox, self.scratch, self.store.local)
        room = ReadingRoom(
            store=self.store,
            sandbox=self.sandbox,
            scratch=self.scratch,
            renderer=lambda: make_renderer(self.sandbox, self.scratch, self.store, images=images),
            images=lambda: images,
            hold=self.hold,
            clock=self.clock,
            make_context=self._context,
            agent=lambda _: self.agent,
        )
        return Understanding(config.tools.media, config.profiles, room)

    async def send(
        self,
        content: bytes,
        mime: str = "audio/wav",
        *,
        kind: MediaKind = MediaKind.DOCUMENT,
        where: ConversationKey = MAIN,
        name: str | None = None,
        told: bool = True,
        verdict: Verdict = OBSERVE,
        author: Author = ANNA,
    ) -> RefRecord:
        """A message with one file, whose bytes are here."""
        number = str(next(self.numbers))
        ref = MediaRef(
            platform="web",
            account="default",
            channel_id=where.channel,
            message_id=number,
            item="0",
            kind=kind,
            mime=mime,
            created=self.clock.now(),
            file_name=name,
            size=len(content) if told else None,
        )
        message = Message(
            conversation=where,
            id=number,
            author=author,
            sent=self.clock.now(),
            text="",
            media=(ref,),
            chat_type=ChatType.GROUP,
        )
        taken = await self.store.take_in(message, verdict)
        blob = await self.store.keep(_chunks(content), mime=mime, limit=1 << 28)
        await self.store.end_media(taken.refs[0].id, MediaOutcome.HELD, blob=blob)
        record = await self.store.find_ref(taken.refs[0].id)
        assert record is not None
        return record

    async def delete(self, record: RefRecord) -> None:
        """As its sender does."""
        await self.store.take_in(
            Deletion(
                conversation=record.conversation,
                id=f"d{record.ref.message_id}",
                message_id=record.ref.message_id,
                author=None,
                sent=self.clock.now(),
            ),
            OBSERVE,
        )

    async def read(self, understanding: Understanding, *records: RefRecord, **facts: Any) -> MessageReadings:
        """As a turn does."""
        message = MessageMedia(conversation=MAIN, chat_type=ChatType.GROUP, media=records)
        return await understanding.read_message(replace(message, **facts), self.news.append)

    async def item(
        self, understanding: Understanding, record: RefRecord, form: ReadingForm = ReadingForm.TRANSCRIPT, **more: Any
    ) -> ItemReading:
        """As a tool does."""
        async with self.hold(record) as blob:
            return await understanding.read_item(
                record, blob, form, conversation=record.conversation, note=self.news.append, **more
            )

    def leftovers(self) -> list[str]:
        """Files that are still in the making."""
        return sorted(path.name for path in self.scratch.iterdir()) if self.scratch.exists() else []

    @asynccontextmanager
    async def hold(self, record: RefRecord) -> AsyncIterator[Blob]:
        """The bytes of a ref."""
        self.holds += 1
        found = await self.store.find_ref(record.ref.id)
        assert found is not None and found.ref.sha256 is not None
        blob = await self.store.blob(found.ref.sha256)
        assert blob is not None
        yield blob

    def _context(self, plugin: registry.Plugin, config: Any) -> ProviderContext:
        return NoContext(clock=self.clock, scratch=self.scratch, models=self.home.path / "models")


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[ReadingHouse]:
    """A house in this folder."""
    home, clock = Home.at(path), FakeClock()
    store = await open_store(home, clock=clock)
    try:
        yield ReadingHouse(home=home, store=store, clock=clock)
    finally:
        await store.close()
