"""The web chat as a platform: an in-process hub between our own pages and the gateway."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar

from belino.domain.errors import Busy, MediaExpired
from belino.domain.limits import YES, Capabilities, Capability, FileLimit, Limits, Markup, Once, SendAs
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey, Message
from belino.domain.ports import Accept, AdapterContext, Question, Taken
from belino.domain.reply import Parcel, Receipt, StoredFile

# How long a page waits for the adapter to start before it is asked to retry.
LISTEN_SECONDS = 10.0

FILE_BYTES = 100 * 1024 * 1024
# What browsers show and play; any file is a document.
_PICTURES = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif", "image/avif"})
_VIDEOS = frozenset({"video/mp4", "video/webm", "video/ogg", "video/quicktime"})
_SOUNDS = frozenset({"audio/mpeg", "audio/mp4", "audio/ogg", "audio/wav", "audio/flac", "audio/aac", "audio/webm"})
_SHOWN = {
    SendAs.PHOTO: _PICTURES,
    SendAs.ANIMATION: _PICTURES | _VIDEOS,
    SendAs.STICKER: frozenset({"image/webp", "image/png"}),
    SendAs.VIDEO: _VIDEOS,
    SendAs.AUDIO: _SOUNDS,
    SendAs.VOICE: _SOUNDS,
}

SETUP: tuple[Question, ...] = ()

_EVERY_FILE = "yes, up to `media.max_bytes`"
_WORKS = (
    Capabilities(thing=Capability.TEXT, comes=YES, goes="yes, with its Markdown"),
    Capabilities(thing=Capability.PICTURE, comes=_EVERY_FILE, goes=YES),
    Capabilities(thing=Capability.VIDEO, comes=_EVERY_FILE, goes="yes; what browsers do not play is a file"),
    Capabilities(thing=Capability.SOUND, comes=_EVERY_FILE, goes="yes; what browsers do not play is a file"),
    Capabilities(thing=Capability.VOICE, comes="yes, recorded in the page", goes=YES),
    Capabilities(thing=Capability.FILE, comes=_EVERY_FILE, goes=YES),
    Capabilities(thing=Capability.STICKER, goes=YES),
    Capabilities(
        thing=Capability.ALBUM, comes="yes, by button, drag-and-drop or paste", goes="yes, up to 10 to a message"
    ),
    Capabilities(thing=Capability.EDIT, goes="answers that grow while they are written"),
    Capabilities(thing=Capability.REACTION, goes="yes, as the agent decides"),
    Capabilities(thing=Capability.TYPING, goes="while a turn runs, with the tool it uses"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The web chat has no settings of its own; `[server]` says where it listens."""


class Adapter:
    """For the web, "sent" means stored: pages catch up from history, and a parcel's key is its message id."""

    platform: ClassVar[str] = "web"
    trusts_senders: ClassVar[bool] = True
    """Every author here has logged in: that is the web's pairing."""
    limits = Limits(
        text_chars=100_000,
        once=Once.KEY,
        markup=Markup.MARKDOWN,
        caption_chars=4_000,
        files={form: FileLimit(max_bytes=FILE_BYTES, mimes=_SHOWN.get(form, frozenset())) for form in SendAs},
        album_items=10,
        album_mixes=(frozenset(SendAs),),
        scrolls_code=True,
    )
    works = _WORKS

    def __init__(self, config: Config, context: AdapterContext) -> None:
        self._context = context
        self._accept: Accept | None = None
        self._started = asyncio.Event()

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled; there is no cursor: a page posts again under the same id."""
        self._accept = accept
        self._started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._accept = None

    async def post(self, message: Message) -> Taken:
        """Accept a page's message; on return it is on disk. Busy if the adapter does not start in time."""
        try:
            async with asyncio.timeout(LISTEN_SECONDS):
                await self._started.wait()
        except TimeoutError:
            raise Busy("the web chat is starting; send it again in a moment") from None
        if self._accept is None:
            raise Busy("belino is stopping; send it again once it has started")
        return await self._accept(message)

    async def send(self, parcel: Parcel) -> Receipt:
        """Confirm the parcel under its key: it is then stored as a message, which pages show."""
        stored = tuple(StoredFile(form=file.send_as, size=file.size, name=file.name) for file in parcel.files)
        return Receipt(message_id=parcel.key, sent=self._context.clock.now(), stored=stored)

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        """Confirm an edit: pages show the stored text."""
        return Receipt(message_id=message_id, sent=self._context.clock.now())

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Confirm a deletion: pages show what is stored."""

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Confirm a reaction: pages show the stored ones."""

    @asynccontextmanager
    async def open_media(self, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        """Web uploads are held from the start; a ref whose bytes are gone cannot be opened again."""
        raise MediaExpired(f"{ref.id} was uploaded here and its bytes are no longer held; ask the sender to upload it")
        yield  # makes this a generator, as the port requires
