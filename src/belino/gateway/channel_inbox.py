"""Channel inbox: give a client its messages until it acknowledges them, and ask people for the permissions it needs."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from belino.aio.deadline import deadline, ring
from belino.context.line_format import placeholder
from belino.context.readings import own_words
from belino.domain.choice import Choice
from belino.domain.errors import Busy, ToolError
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.reply import ParcelState
from belino.domain.safe_text import clean_name, disarm, one_line
from belino.domain.stored import StoredMessage
from belino.gateway.events import EventBus
from belino.gateway.unasked import UNDER_WAY, UnaskedMessages
from belino.storage.choices import ANYONE
from belino.storage.store import Store
from belino.turns.reply import Replies

AT_A_TIME = 50
RECEIPT_SECONDS = 15.0
QUOTE_CHARS = 500
DETAILS_CHARS = 1_000
QUESTION = "permission-"
"""Begins the id of a question for a permission; its code follows."""
CODE = re.compile(r"[a-km-z]{5}")
_ANSWER = re.compile(rf"\s*(y|yes|n|no)\s+({CODE.pattern})\s*", re.IGNORECASE)
_PRESS = re.compile(
    rf'(?:Allow|Deny)\nchoice \{{"question_id": "{QUESTION}({CODE.pattern})", "value": "(allow|deny)"\}}'
)
_TAG = re.compile(r"<(?=\s*/?\s*channel\b)", re.IGNORECASE)
_ATTRIBUTE = str.maketrans({'"': "＂", "<": "＜", ">": "＞"})
"""Values of meta become attributes of the client's tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelMessage:
    """A message as the client gets it."""

    seq: int
    content: str
    meta: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswer:
    """A person's answer to a question for a permission."""

    seq: int
    request_id: str
    behavior: Literal["allow", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """What the client wants to do."""

    request_id: str
    tool_name: str
    description: str
    input_preview: str


class ChannelInbox:
    """The messages of conversations whose agent is a connected client."""

    def __init__(
        self,
        store: Store,
        replies: Replies,
        unasked: UnaskedMessages,
        events: EventBus,
        clock: Clock,
        *,
        given: Callable[[ConversationKey], None],
    ) -> None:
        self._store = store
        self._replies = replies
        self._unasked = unasked
        self._events = events
        self._clock = clock
        self._given = given
        """Called when the client gets messages of a conversation."""
        self._stopping = False
        self._waiting: set[asyncio.Timeout] = set()

    def stop(self) -> None:
        """Let no client wait any longer."""
        self._stopping = True
        for scope in self._waiting:
            ring(scope)

    async def next(
        self, where: ConversationKey, *, after: int | None, seconds: float
    ) -> tuple[ChannelMessage | PermissionAnswer, ...]:
        """What the client has not got yet, waiting for some; without `after`, what it has not acknowledged."""
        if self._stopping:
            raise Busy("belino is stopping; ask again in a moment")
        async with self._events.subscribe(lambda other: other in (None, where)) as notices:
            if found := await self._found(where, after):
                return found
            try:
                async with deadline(self._clock, seconds) as scope, self._stoppable(scope):
                    async for _ in notices:
                        if found := await self._found(where, after):
                            return found
            except TimeoutError:
                pass
        return ()

    async def reply(self, where: ConversationKey, text: str, reply_to: str | None) -> str:
        """Send an answer, and wait a while for its receipts; returns a sentence with the ids of its messages."""
        sent = await self._unasked.send(where, text, reply_to=reply_to, seconds=RECEIPT_SECONDS)
        if any(record.state in UNDER_WAY for record in sent):
            return "It is in the outbox, and goes out as soon as the platform takes it."
        if failed := [record.reason or record.state for record in sent if record.state is not ParcelState.SENT]:
            raise ToolError(f"{len(failed)} of {len(sent)} messages did not arrive: {failed[0]}")
        return f"sent (id: {', '.join(record.message_id or '' for record in sent)})"

    async def acknowledge(self, where: ConversationKey, seq: int) -> None:
        """Keep messages up to this one from being given again."""
        await self._store.acknowledge(where, seq)

    async def ask(self, where: ConversationKey, request: PermissionRequest) -> None:
        """Ask the people of a conversation; only an answer of a sender who may command counts."""
        code = request.request_id
        details = one_line(request.input_preview)[:DETAILS_CHARS]
        words = [
            f"🔐 Permission to use {clean_name(request.tool_name)}: {one_line(request.description)[:DETAILS_CHARS]}"
        ]
        words += [f"`{details.replace('`', 'ˋ')}`"] if details else []
        words.append(f"Answer `yes {code}` or `no {code}`.")
        choices = (
            Choice(label="Allow", value="allow", style="primary", who=ANYONE),
            Choice(label="Deny", value="deny", style="danger", who=ANYONE),
        )
        await self._replies.put_question(where, f"{QUESTION}{code}", "\n\n".join(words), choices)

    async def _found(self, where: ConversationKey, after: int | None) -> tuple[ChannelMessage | PermissionAnswer, ...]:
        stored = await self._store.passed_on(where, after=after, limit=AT_A_TIME)
        told = tuple([await self._told(message) for message in stored])
        if any(isinstance(each, ChannelMessage) for each in told):
            self._given(where)
        return told

    async def _told(self, message: StoredMessage) -> ChannelMessage | PermissionAnswer:
        if pressed := _PRESS.fullmatch(message.text):
            return _permission(message, pressed[1], allow=pressed[2] == "allow")
        if answered := _ANSWER.fullmatch(message.text):
            code, allow = answered[2].lower(), answered[1].lower().startswith("y")
            if await self._chosen(message, code, "allow" if allow else "deny"):
                return _permission(message, code, allow=allow)
        return channel_message(message)

    async def _chosen(self, message: StoredMessage, code: str, value: str) -> bool:
        """Make a choice by its code; False if it was not asked, or is decided: then it is a sentence like any other."""
        where = message.conversation
        key = await self._store.choice_key(where, f"{QUESTION}{code}", value)
        if key is None:
            return False
        made = await self._store.choose(key, where, sender=message.author.id, message_id=message.id)
        self._replies.put(where)  # the edit of the question is in the outbox
        return not made.refused

    @asynccontextmanager
    async def _stoppable(self, scope: asyncio.Timeout) -> AsyncIterator[None]:
        self._waiting.add(scope)
        try:
            yield
        finally:
            self._waiting.discard(scope)


def channel_message(message: StoredMessage) -> ChannelMessage:
    """A message with its placeholders; what people wrote can neither end the client's tag nor begin another."""
    said = own_words(message)
    lines = [placeholder(ref) for ref in message.media]
    if message.spoken is not None:
        lines.append(f"(spoken) {disarm(message.spoken.text)}")
    lines += [disarm(said)] if said else []
    meta = {
        "chat_id": str(message.conversation),
        "message_id": message.short_id or message.id,
        "user": clean_name(message.author.name),
        "user_id": message.author.id,
        "ts": message.sent.isoformat(),
    }
    if message.media:
        meta["media_refs"] = ",".join(ref.id for ref in message.media)
    if message.quote is not None:
        quoted = [placeholder(ref) for ref in message.quote.media]
        meta["reply_to_text"] = " ".join((*quoted, disarm(one_line(message.quote.text))))[:QUOTE_CHARS]
    if message.reply_to:
        meta["reply_to_message_id"] = message.reply_to
    if message.edited is not None:
        meta["edited_ts"] = message.edited.isoformat()
    return ChannelMessage(
        seq=message.seq,
        content=_TAG.sub("＜", "\n".join(lines)),
        meta={name: value.translate(_ATTRIBUTE) for name, value in meta.items()},
    )


def as_json(told: ChannelMessage | PermissionAnswer) -> dict[str, object]:
    """An event for the client's process."""
    if isinstance(told, PermissionAnswer):
        return {"seq": told.seq, "permission": {"request_id": told.request_id, "behavior": told.behavior}}
    return {"seq": told.seq, "message": {"content": told.content, "meta": dict(told.meta)}}


def _permission(message: StoredMessage, code: str, *, allow: bool) -> PermissionAnswer:
    return PermissionAnswer(seq=message.seq, request_id=code, behavior="allow" if allow else "deny")
