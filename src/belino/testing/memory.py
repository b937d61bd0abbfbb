"""Memory platform: a complete small adapter for a platform in memory, for tests and as an example."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from belino.domain.errors import MediaExpired, Unanswered, Unreached
from belino.domain.limits import Limits, Once, SendAs
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import Arrival, Author, ChatType, ConversationKey, Message, SourceMessage, Unsupported
from belino.domain.ports import Accept, AdapterContext, Question
from belino.domain.reply import OutgoingFile, Parcel, Receipt, StoredFile
from belino.net.client import error_for
from belino.net.redact import Secret

SETUP = (Question(key="token", ask="Which token did the platform give you?", secret=True),)

CHUNK = 64 * 1024


class Loss(StrEnum):
    """How a connection may fail."""

    NOT_REACHED = "not reached"
    RESET = "reset"
    """Broken before the platform had the whole request."""
    HANG = "hang"
    """Never answered, and never carried out."""
    ANSWER_LOST = "answer lost"
    """Carried out, and the answer lost."""
    ANSWER_GARBLED = "answer garbled"
    """Carried out, and the answer unreadable."""


class MemoryPlatform:
    """The server side: the data of a real platform."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.acknowledged: int = 0
        """How many updates the adapter has acknowledged."""
        self.sent: dict[str, Parcel] = {}
        """Every visible message by id, as our users see them."""
        self.files: dict[str, bytes] = {}
        self.refusals: list[tuple[int, Mapping[str, str]]] = []
        """Statuses and headers that the next calls are answered with."""
        self.losses: list[Loss] = []
        """Faults of the next parcels' connections, whatever the platform does with them."""
        self.past: list[dict[str, Any]] = []
        """Messages from before the adapter ran: never delivered, returned by history."""
        self.asked: list[str] = []
        """Every conversation whose history was requested, one entry per call."""
        self.reactions: list[tuple[str, str, bool]] = []
        """Every reaction of ours that was added or removed: message, emoji, and whether it was added."""
        self._more = asyncio.Event()
        self._acknowledgement = asyncio.Event()

    def offer(self, update: dict[str, Any]) -> None:
        """Queue an update."""
        self.updates.append(update)
        self._more.set()

    async def next_update(self, after: int) -> dict[str, Any]:
        """The next update after this many, once there is one."""
        while len(self.updates) <= after:
            self._more.clear()
            await self._more.wait()
        return self.updates[after]

    def acknowledge(self, count: int) -> None:
        """Acknowledge the first `count` updates."""
        self.acknowledged = count
        self._acknowledgement.set()

    async def until_acknowledged(self, count: int) -> None:
        while self.acknowledged < count:
            self._acknowledgement.clear()
            await self._acknowledgement.wait()

    def answer(self) -> tuple[int, Mapping[str, str]]:
        """The status and headers of the next call."""
        return self.refusals.pop(0) if self.refusals else (200, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The platform to connect to."""

    far_side: MemoryPlatform = field(default_factory=MemoryPlatform)
    token: Secret | None = field(default=None, metadata={"says": "What the platform knows us by."})


def parse(raw: Mapping[str, Any], *, account: str) -> tuple[Arrival, ...]:
    """One update as arrivals. Pure: it fetches nothing, and reports what it cannot read."""
    where = ConversationKey(platform="memory", account=account, channel=str(raw["channel"]), thread=raw.get("thread"))
    author = Author(id=str(raw["from"]["id"]), name=str(raw["from"]["name"]))
    sent = datetime.fromtimestamp(raw["date"], UTC)
    direct = raw.get("direct", True)
    place = ChatType.DIRECT if direct else ChatType.GROUP
    if "text" not in raw and "files" not in raw:
        what = (
            ", ".join(sorted(set(raw) - {"id", "channel", "thread", "from", "date", "direct", "reply_to"})) or "nothing"
        )
        return (
            Unsupported(conversation=where, id=str(raw["id"]), author=author, sent=sent, what=what, chat_type=place),
        )
    text = str(raw.get("text", ""))
    return (
        Message(
            conversation=where,
            id=str(raw["id"]),
            author=author,
            sent=sent,
            text=text,
            media=tuple(_ref(item, raw, where, sent) for item in raw.get("files", ())),
            chat_type=place,
            addressed=direct or text.startswith("@belino"),
            reply_to=raw.get("reply_to"),
        ),
    )


def _ref(item: Mapping[str, Any], raw: Mapping[str, Any], where: ConversationKey, sent: datetime) -> MediaRef:
    mime = str(item.get("mime", "application/octet-stream"))
    return MediaRef(
        platform=where.platform,
        account=where.account,
        channel_id=where.channel,
        message_id=str(raw["id"]),
        item=str(item["file"]),
        kind=kind_of(mime),
        mime=mime,
        created=sent,
        file_name=item.get("name"),
        size=item.get("size"),
        # The platform finds the file by its id; its URL and our token stay out of every ref.
        locator={"file": str(item["file"])},
    )


class MemoryAdapter:
    """Reads updates in order, and acknowledges each only when it is on our disk."""

    platform: ClassVar[str] = "memory"
    limits = Limits(text_chars=4096, split_chars=4096, once=Once.KEY)

    def __init__(self, config: Config, context: AdapterContext) -> None:
        self._far_side = config.far_side
        self._context = context

    async def run(self, accept: Accept, cursor: str | None) -> None:
        """Listen until cancelled, from the cursor on."""
        position = int(cursor or 0)
        while True:
            update = await self._far_side.next_update(position)
            position += 1
            for arrival in parse(update, account=self._context.account):
                await accept(arrival, cursor=str(position))
            self._far_side.acknowledge(position)

    async def send(self, parcel: Parcel) -> Receipt:
        """One call; the platform deduplicates by our key."""
        status, headers = self._far_side.answer()
        error = error_for(status, headers, now=self._context.clock.now())
        if error is not None:
            raise error
        loss = self._far_side.losses.pop(0) if self._far_side.losses else None
        await _before(loss)
        message_id = self._keep(parcel)
        _after(loss)
        sent = self._context.clock.now()
        source = SourceMessage(where=parcel.conversation, message_id=message_id, sent=sent)
        stored = tuple([await self._store(file, source) for file in parcel.files])
        return Receipt(message_id=message_id, sent=sent, stored=stored)

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        """Delete a message that we sent."""
        self._far_side.sent.pop(message_id, None)

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        """Add our reaction to a message, or remove it."""
        self._far_side.reactions.append((message_id, emoji, added))

    async def _store(self, file: OutgoingFile, source: SourceMessage) -> StoredFile:
        """Keep a file as a platform does, under an id of its own."""
        own = f"{source.message_id}-{file.sha256[:12]}"
        self._far_side.files[own] = b"".join([piece async for piece in file.chunks()])
        ref = source.ref(
            item=own,
            kind=MediaKind.VOICE if file.send_as is SendAs.VOICE else kind_of(file.mime),
            mime=file.mime,
            locator={"file": own},
            size=file.size,
            width=file.width,
            height=file.height,
        )
        return StoredFile(form=file.send_as, size=file.size, name=file.name, ref=ref)

    def _keep(self, parcel: Parcel) -> str:
        message_id = f"sent-{parcel.key}"
        self._far_side.sent.setdefault(message_id, parcel)
        return message_id

    async def history(
        self, channel: ConversationKey, *, before: str | None = None, limit: int = 50
    ) -> Sequence[Message]:
        """The newest messages of a channel outside threads, before a message; oldest first."""
        told = [message for message in self._told(channel) if message.conversation.thread is None]
        ids = [message.id for message in told]
        return told[: ids.index(before) if before in ids else None][-limit:]

    async def thread(self, conversation: ConversationKey) -> Sequence[Message]:
        """A thread's messages, its first message first; empty if the channel has no such thread."""
        return [
            message
            for message in self._told(conversation)
            if conversation.thread in (message.id, message.conversation.thread, message.reply_to)
        ]

    def _told(self, conversation: ConversationKey) -> list[Message]:
        self._far_side.asked.append(str(conversation))
        status, headers = self._far_side.answer()
        error = error_for(status, headers, now=self._context.clock.now())
        if error is not None:
            raise error
        arrivals = [
            arrival
            for update in (*self._far_side.past, *self._far_side.updates)
            for arrival in parse(update, account=self._context.account)
        ]
        here = conversation.whole_channel
        told = [one for one in arrivals if isinstance(one, Message) and one.conversation.whole_channel == here]
        return sorted(told, key=lambda message: message.sent)

    @asynccontextmanager
    async def open_media(self, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        """The file's bytes in chunks, never all at once."""
        status, headers = self._far_side.answer()
        error = error_for(status, headers, now=self._context.clock.now())
        if error is not None:
            raise error
        held = self._far_side.files.get(ref.locator["file"])
        if held is None:
            raise MediaExpired(f"the platform no longer has {ref.id or ref.item}")
        yield _chunks(held)


class ReadableMemoryAdapter(MemoryAdapter):
    """The same platform without keys: a repeated parcel appears twice, but history can be searched."""

    limits = replace(MemoryAdapter.limits, once=Once.READ_BACK)

    async def find_sent(self, parcel: Parcel) -> Receipt | None:
        """Whether a parcel arrived although its receipt was lost."""
        status, headers = self._far_side.answer()
        error = error_for(status, headers, now=self._context.clock.now())
        if error is not None:
            raise error
        for message_id, kept in self._far_side.sent.items():
            if kept.key == parcel.key:
                return Receipt(message_id=message_id, sent=self._context.clock.now())
        return None

    def _keep(self, parcel: Parcel) -> str:
        return _keep_another(self._far_side, parcel)


class ForgetfulMemoryAdapter(MemoryAdapter):
    """The same platform without keys and without history: a repeated parcel appears twice."""

    limits = replace(MemoryAdapter.limits, once=Once.UNCERTAIN)

    def _keep(self, parcel: Parcel) -> str:
        return _keep_another(self._far_side, parcel)


def _keep_another(far_side: MemoryPlatform, parcel: Parcel) -> str:
    message_id = f"sent-{len(far_side.sent) + 1}"
    far_side.sent[message_id] = parcel
    return message_id


async def _before(loss: Loss | None) -> None:
    if loss is Loss.NOT_REACHED:
        raise Unreached("a POST did not reach the platform: ClientConnectorError")
    if loss is Loss.RESET:
        raise Unanswered("a POST to the platform failed: ClientOSError")
    if loss is Loss.HANG:
        await asyncio.Event().wait()


def _after(loss: Loss | None) -> None:
    if loss is Loss.ANSWER_LOST:
        raise Unanswered("a POST to the platform failed: ServerDisconnectedError")
    if loss is Loss.ANSWER_GARBLED:
        raise ValueError("<html>")


async def _chunks(held: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(held), CHUNK):
        yield held[start : start + CHUNK]


Adapter = MemoryAdapter
