"""Second reading: the jobs of a provider for a sound that it read before, in another channel and after a restart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from belino import registry
from belino.bench._readings import BenchContext
from belino.domain.media import Blob, MediaKind, MediaRef
from belino.domain.message import Author, ChatType, ConversationKey, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.provider import ProviderContext
from belino.domain.reading import ReadingForm
from belino.domain.stored import RefRecord, Verdict
from belino.media.image.images import Images
from belino.media.render import make_renderer
from belino.media.sandbox.sandbox import Sandbox
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.understanding.config import MediaTools
from belino.understanding.read import ReadingRoom, Understanding
from belino.understanding.worker import JobUsage, ModelWorker

CHANNELS = ("first", "second")
SOUND_BYTES = 64 * 1024 * 1024


def jobs_of_readings(sound: Path, folder: Path) -> list[int]:
    """How many jobs each reading took: the first, then that in another channel after a restart."""
    return asyncio.run(_read_in_each_channel(sound, folder))


async def _read_in_each_channel(sound: Path, folder: Path) -> list[int]:
    counts = []
    for number, channel in enumerate(CHANNELS):
        used: list[JobUsage] = []
        worker = ModelWorker(used=used.append)
        store = await open_store(Home.at(folder), clock=SystemClock())
        try:
            async with Sandbox() as sandbox:
                record, blob = await _sent(store, sound, channel, number)
                await _understanding(store, sandbox, worker, blob).read_item(
                    record, blob, ReadingForm.TRANSCRIPT, conversation=record.conversation
                )
        finally:
            await worker.close()
            await store.close()
        counts.append(len(used))
    return counts


def _understanding(store: Store, sandbox: Sandbox, worker: ModelWorker, blob: Blob) -> Understanding:
    """As the gateway makes it, without any setting."""
    images = Images(sandbox, store.scratch, store.local)

    def make_context(plugin: registry.Plugin, config: Any) -> ProviderContext:
        return BenchContext(worker=worker, scratch=store.scratch, models=store.scratch)

    @asynccontextmanager
    async def hold(record: RefRecord) -> AsyncIterator[Blob]:
        yield blob

    room = ReadingRoom(
        store=store,
        sandbox=sandbox,
        scratch=store.scratch,
        renderer=lambda: make_renderer(sandbox, store.scratch, store, images=images),
        images=lambda: images,
        hold=hold,
        clock=SystemClock(),
        make_context=make_context,
        agent=lambda conversation: (),
    )
    return Understanding(MediaTools(), {}, room)


async def _sent(store: Store, sound: Path, channel: str, number: int) -> tuple[RefRecord, Blob]:
    """A voice note in a channel, whose bytes are stored."""
    where, sent = ConversationKey(platform="web", account="default", channel=channel), SystemClock().now()
    ref = MediaRef(
        platform="web", account="default", channel_id=channel, message_id=str(number), item="0", kind=MediaKind.VOICE,
        mime="audio/wav", created=sent, file_name="note.wav", size=sound.stat().st_size,
    )  # fmt: skip
    message = Message(
        conversation=where, id=str(number), author=Author(id="u", name="U"), sent=sent, text="", media=(ref,),
        chat_type=ChatType.GROUP,
    )  # fmt: skip
    taken = await store.take_in(message, Verdict(standing=Standing.OBSERVED, answer=False, reason="bench"))
    blob = await store.keep(_chunks(sound), mime="audio/wav", limit=SOUND_BYTES)
    await store.end_media(taken.refs[0].id, MediaOutcome.HELD, blob=blob)
    record = await store.find_ref(taken.refs[0].id)
    assert record is not None
    return record, blob


async def _chunks(sound: Path) -> AsyncIterator[bytes]:
    yield sound.read_bytes()
