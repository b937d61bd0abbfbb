"""Unasked messages: sent through the outbox without a turn, with a wait for their receipts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from belino.aio.deadline import deadline, ring
from belino.delivery.outgoing_files import Keeper
from belino.domain.errors import Busy, MediaError, MediaNotFound, ToolError
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.reply import Offer, ParcelState
from belino.domain.stored import ParcelRecord, StoredMessage, Upload
from belino.gateway.events import EventBus
from belino.storage.store import Store
from belino.tools.sending import speak_words
from belino.turns.reply import Replies

UNDER_WAY = (ParcelState.READY, ParcelState.SENDING)
NEWEST = 100
_PIECE = 1024 * 1024


class UnaskedMessages:
    """Sends what scripts and clients say, and reports what became of it."""

    def __init__(
        self, store: Store, replies: Replies, events: EventBus, clock: Clock, keeper: Callable[[], Keeper]
    ) -> None:
        self._store = store
        self._replies = replies
        self._events = events
        self._clock = clock
        self._keeper = keeper
        self._stopping = False
        self._waiting: set[asyncio.Timeout] = set()

    def stop(self) -> None:
        """Let no client wait any longer; what is in the outbox stays there."""
        self._stopping = True
        for scope in self._waiting:
            ring(scope)

    async def send(
        self,
        where: ConversationKey,
        text: str,
        offers: Sequence[Offer] = (),
        *,
        reply_to: str | None = None,
        seconds: float,
    ) -> tuple[ParcelRecord, ...]:
        """Send a text and files, and wait a while for their receipts; MediaError if a file cannot be sent here.

        `reply_to` is the id of a message of the channel, ToolError if there is none.
        """
        if self._stopping:
            raise Busy("belino is stopping; nothing was sent")
        target = await self._message(where, reply_to) if reply_to else None
        keys = await self._replies.say(where, text, target.id if target else None, offers)
        return await self._ended(where, keys, seconds)

    async def offer(self, upload: Upload, wanted: SendAs | None) -> Offer:
        """A finished upload as a file to send, typed by its bytes."""
        assert upload.sha256 is not None
        try:
            async with self._store.local(upload.sha256) as path:
                pieces, name = _pieces(path), upload.file_name or "file"
                offer = await self._keeper().keep(pieces, name=name, declared=upload.mime)
        except (MediaNotFound, FileNotFoundError):
            raise MediaError("an upload is gone; upload it again") from None
        return replace(offer, wanted=wanted)

    async def spoken(self, where: ConversationKey, text: str) -> Offer:
        """The text as a voice message; ToolError if it cannot be spoken."""
        if self._replies.speaker is None:
            raise ToolError("no voice is configured; send a sound file, or set [tools.media.speech]")
        spoken, _ = await speak_words(self._replies.speaker, text, where)
        return spoken.offer()

    async def _ended(self, where: ConversationKey, keys: Sequence[str], seconds: float) -> tuple[ParcelRecord, ...]:
        channel = where.whole_channel
        # Of the whole channel: what is sent to a closed thread goes there.
        async with self._events.subscribe(lambda other: other is None or other.whole_channel == channel) as notices:
            try:
                async with deadline(self._clock, seconds) as scope, self._stoppable(scope):
                    while any(record.state in UNDER_WAY for record in await self._records(where, keys)):
                        await anext(notices)
            except TimeoutError:
                pass
        return await self._records(where, keys)

    async def _records(self, where: ConversationKey, keys: Sequence[str]) -> tuple[ParcelRecord, ...]:
        """The parcels, and those that an album was taken apart into."""
        own = [record for key in keys if (record := await self._store.parcel(key)) is not None]
        newest = await self._store.parcels(limit=NEWEST, conversation=where)
        parts = [each for each in newest if each.key not in keys and each.trace in {one.trace for one in own}]
        return (*own, *reversed(parts))

    @asynccontextmanager
    async def _stoppable(self, scope: asyncio.Timeout) -> AsyncIterator[None]:
        self._waiting.add(scope)
        try:
            yield
        finally:
            self._waiting.discard(scope)

    async def _message(self, where: ConversationKey, name: str) -> StoredMessage:
        found = (await self._store.messages_named(where.whole_channel, [name]))[name]
        if len(found) != 1:
            raise ToolError("reply_to must be the id of one message of this channel")
        return found[0]


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece
