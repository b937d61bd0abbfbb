"""Prompt of a turn: the channel once, then only changes, and always the message itself."""

import hmac
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from belino.context.budget import ContextConfig
from belino.context.prompt import carried_media, context_blocks, meanwhile_blocks, message_blocks
from belino.context.readings import own_words, words_of
from belino.context.snapshot import StructuredContext, assemble
from belino.domain.errors import BelinoError
from belino.domain.media import TEXT_AND_PICTURES, Block, MediaRef, TextBlock
from belino.domain.message import ChatType, ConversationKey, Quote
from belino.domain.outcome import MediaOutcome, Stage, Step
from belino.domain.ports import Agent, Clock, accepted_by
from belino.domain.stored import ClaimedTurn, MissedChanges, ReadPosition, RefRecord, Session, StoredMessage
from belino.domain.tokens import estimate_tokens
from belino.domain.turn import TurnMessage
from belino.media.price import BLOCK_SIDE, is_picture
from belino.storage.store import Store
from belino.turns.attach import ATTACHED_AT_MOST, AttachedMedia, MediaAttacher, to_recover
from belino.turns.reading import NOTHING as NOTHING_READ
from belino.turns.reading import TurnReadings

FENCE_HEX = 24
RECOVERY = "[Post-compaction context recovery: re-attaching {} media items from this thread]"
LEFT_OUT = (
    "[Earlier turns of this conversation were left out: they are no longer in your memory. channel_context and "
    "channel_messages find what was said.]"
)
ALBUM_LOOK = 50
ATTACHED_BY_ITSELF = 3
"""The most pictures of a message that `auto` attaches."""
ALL_CHANGES = 2**62
"""Higher than any change number: from here on, no change is missed."""


class Withdrawn(BelinoError):
    """The message to answer was deleted before its turn began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPrompt:
    """A turn's content, and what becomes true once the agent has accepted it."""

    blocks: tuple[Block, ...]
    told: ReadPosition | None
    """The agent's read position in its channel after this turn; None leaves it unchanged."""
    recovers: bool
    gives_context: bool
    """Whether it has the structured context."""
    steps: tuple[Step, ...]
    """For `explain`: what was attached, and what was left out."""
    messages: tuple[TurnMessage, ...]


class PromptBuilder:
    """Builds an agent's prompt from the store, without a model."""

    def __init__(
        self,
        store: Store,
        agent: Agent,
        config: ContextConfig,
        *,
        clock: Clock,
        key: bytes,
        picture_side: int = BLOCK_SIDE,
        until: datetime | None = None,
    ) -> None:
        """`picture_side` is that of the pictures it is given. `until`: as if nothing had come after that time."""
        self._store = store
        self._remembers = agent.remembers
        self._takes_media = agent.sees_images or accepted_by(agent) != TEXT_AND_PICTURES
        self._picture_side = picture_side if agent.sees_images else None
        self._until = until
        self._config = config
        self._clock = clock
        self._fence_key = hmac.digest(key, b"belino fence", "sha256")

    def _now(self) -> datetime:
        return self._until or self._clock.now()

    def fence(self, claimed: ClaimedTurn) -> str:
        """The fence marker around outside content: the same for the same turn, and not guessable."""
        return self._marker(f"{claimed.conversation} {claimed.number}")

    def fence_outside(self, conversation: ConversationKey) -> str:
        """The marker for tools that are called outside a turn: one per conversation."""
        return self._marker(str(conversation))

    def _marker(self, name: str) -> str:
        return hmac.digest(self._fence_key, name.encode(), "sha256").hex()[:FENCE_HEX]

    async def build(
        self,
        claimed: ClaimedTurn,
        session: Session,
        attaching: Callable[[bool], MediaAttacher],
        read: TurnReadings = NOTHING_READ,
        *,
        is_whole: bool = True,
    ) -> TurnPrompt:
        """Build this turn's prompt. `attaching` makes an attacher: of new media, or after a compaction (True).

        `read` is what was read from the media of the messages. `is_whole` is False if the platform could not be asked
        for earlier messages.
        """
        until = max(message.seq for message in claimed.messages)
        told = session.told if self._remembers else None
        # Both are read before the messages: what arrives in between is listed twice rather than never.
        gives_context = told is None or not session.context_turn
        newest = await self._newest(claimed.conversation) if gives_context else 0
        news = await self._store.missed_changes(
            claimed.conversation, told or ReadPosition(seq=until, change=ALL_CHANGES), until=until
        )
        messages = await self._messages(claimed)
        unclaimed = await self._unclaimed(claimed)
        pieces = [await self._recovery(claimed, session, attaching), self._left_out(session)]
        context = None
        if gives_context:
            context = await self.structured_context(messages, is_whole=is_whole, since=session.begun)
            pieces.append(await self._context(context, self.fence(claimed)))
            # The context has what arrived; of what changed, the turns that stayed in its memory may hold the old form.
            news = replace(news, arrived=(), total_arrived=0, replies_elsewhere=0, said_in_channel=0)
        pieces.append(self._news(news, self.fence(claimed)))
        pieces.append(await self._message(messages, unclaimed, self.fence(claimed), read))
        refs, most = _to_attach(self._config.attach_media, claimed.chat_type, messages, unclaimed, context, news)
        if refs and self._takes_media:
            pieces.append(_attached("media attached", await attaching(False).attach(refs, most=most)))
        return TurnPrompt(
            blocks=tuple(block for piece in pieces for block in piece.blocks),
            told=replace(news.now, seq=max(news.now.seq, newest)) if self._remembers else None,
            recovers=session.compacted and self._remembers,
            gives_context=gives_context,
            steps=tuple(self._step(claimed, piece) for piece in pieces if piece.outcome),
            messages=_as_sent(messages, unclaimed),
        )

    async def structured_context(
        self, messages: Sequence[StoredMessage], *, is_whole: bool, since: int = 0
    ) -> StructuredContext:
        """The channel and the thread of these messages, as far as they have a seq after `since`."""
        return await assemble(
            self._store,
            messages,
            self._config,
            now=self._now(),
            until=self._until,
            since=since,
            is_whole=is_whole,
            picture_side=self._picture_side,
        )

    async def _newest(self, conversation: ConversationKey) -> int:
        """The seq of a thread's last message, since a thread is given in full; 0 for a channel."""
        last = await self._store.history(conversation, limit=1) if conversation.thread is not None else ()
        return last[0].seq if last else 0

    def _step(self, claimed: ClaimedTurn, piece: "_Piece") -> Step:
        return Step(
            at=self._clock.now(),
            stage=Stage.TURN,
            outcome=piece.outcome,
            reason=piece.reason,
            subject=f"turn {claimed.number}",
        )

    async def _messages(self, claimed: ClaimedTurn) -> tuple[StoredMessage, ...]:
        """The messages to answer in their current state, each with the message it replies to."""
        ids, seqs = [message.id for message in claimed.messages], {message.seq for message in claimed.messages}
        found = await self._store.messages(claimed.conversation.whole_channel, ids)
        living = [message for message in found if message.seq in seqs and message.deleted is None]
        if not living:
            raise Withdrawn("deleted before it was answered")
        living.sort(key=lambda message: message.place_in_album)
        return tuple([await self._with_quote(message) for message in living])

    async def _with_quote(self, message: StoredMessage) -> StoredMessage:
        """The message with what it replies to, also where the platform gave only the id."""
        quote = message.quote
        is_root = message.reply_to == message.conversation.thread
        if message.reply_to is None or is_root or (quote is not None and quote.media):
            return message
        found = await self._store.messages(message.conversation.whole_channel, [message.reply_to])
        replied = next((other for other in found if other.deleted is None), None)
        if replied is None:
            return message
        if quote is not None:
            return replace(message, quote=replace(quote, media=replied.media, spoken=replied.spoken))
        whole = Quote(
            author=replied.author,
            message_id=replied.id,
            text=replied.text,
            sent=replied.sent,
            media=replied.media,
            spoken=replied.spoken,
        )
        return replace(message, quote=whole)

    async def _unclaimed(self, claimed: ClaimedTurn) -> tuple[RefRecord, ...]:
        """Recent pictures of the same sender that no turn has used."""
        anchor = claimed.messages[-1]
        found = await self._store.unclaimed_refs(
            claimed.conversation,
            anchor.author.id,
            since=anchor.received - timedelta(minutes=self._config.unclaimed_minutes),
            limit=self._config.unclaimed_refs,
        )
        own = {message.id for message in claimed.messages}
        return tuple(record for record in found if record.ref.message_id not in own and record.sent <= anchor.sent)

    async def _message(
        self, messages: Sequence[StoredMessage], unclaimed: Sequence[RefRecord], fence: str, read: TurnReadings
    ) -> "_Piece":
        refs = [ref for message in messages for ref in carried_media(message)]
        outcomes = await self._outcomes(messages[0].conversation.whole_channel, refs)
        limit = self._config.message_chars
        album = await self._album_before(messages)
        texts = {message.id: text for message in messages if (text := read.of(message)) is not None}
        blocks = message_blocks(
            messages,
            unclaimed,
            fence=fence,
            outcomes=outcomes,
            message_chars=limit,
            album=album,
            read=texts,
            picture_side=self._picture_side,
        )
        return _Piece(blocks=blocks)

    async def _album_before(self, messages: Sequence[StoredMessage]) -> str | None:
        """The first message of an album, if its other items were answered before these came."""
        late = messages[0]
        if late.album is None:
            return None
        before = min(message.seq for message in messages)
        found = await self._store.history(late.conversation, before=before, limit=ALBUM_LOOK)
        return next((one.id for one in found if (one.album, one.author.id) == (late.album, late.author.id)), None)

    async def _context(self, context: StructuredContext, fence: str) -> "_Piece":
        outcomes = await self._outcomes(context.snapshot.channel.whole_channel, _media_in(context))
        blocks = context_blocks(context, fence=fence, format=self._config.format, outcomes=outcomes)
        return _Piece(blocks=blocks, outcome="context attached", reason=f"{_tokens(blocks)} tokens: {_told(context)}")

    def _news(self, news: MissedChanges, fence: str) -> "_Piece":
        blocks = meanwhile_blocks(news, self._config, fence=fence, now=self._now())
        if not blocks:
            return _Piece()
        return _Piece(blocks=blocks, outcome="told meanwhile", reason=f"{_tokens(blocks)} tokens: {_happened(news)}")

    def _left_out(self, session: Session) -> "_Piece":
        """A line about turns that are not in the agent's memory any more: it was shortened, or lost."""
        is_lost = session.told is None and bool(session.agent)
        if not self._remembers or not (session.compacted or is_lost):
            return _Piece()
        reason = "the agent's memory was shortened" if session.compacted else "the agent has no memory of them"
        return _Piece(blocks=(TextBlock(text=LEFT_OUT),), outcome="earlier turns left out", reason=reason)

    async def _recovery(
        self, claimed: ClaimedTurn, session: Session, attaching: Callable[[bool], MediaAttacher]
    ) -> "_Piece":
        """Media of this thread that a compaction removed, newest first; the prompt begins with them."""
        lost = await to_recover(self._store, session, claimed.conversation) if self._remembers else ()
        if not lost or not self._takes_media:
            return _Piece()
        attached = await attaching(True).attach([record.ref for record in lost])
        piece = _attached("recovered after compaction", attached)
        if not attached.items:
            return piece
        return replace(piece, blocks=(TextBlock(text=RECOVERY.format(attached.items)), *piece.blocks))

    async def _outcomes(self, channel: ConversationKey, refs: Iterable[MediaRef]) -> Mapping[str, MediaOutcome]:
        wanted = dict.fromkeys(ref.id for ref in refs)
        records = [await self._store.ref(channel, ref) for ref in wanted]
        return {record.ref.id: record.outcome for record in records if record is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A part of the prompt, and the step that `explain` shows for it."""

    blocks: tuple[Block, ...] = ()
    outcome: str = ""
    reason: str = ""


def _attached(outcome: str, attached: AttachedMedia) -> _Piece:
    if not attached.blocks:
        return _Piece()
    counts = (
        (attached.items, "attached"),
        (attached.known, "shown before"),
        (attached.texts, "given as text"),
        (attached.failed, "not to be had"),
        (attached.left, "left to be asked for"),
    )
    return _Piece(blocks=attached.blocks, outcome=outcome, reason=_counted(counts))


def _as_sent(messages: Sequence[StoredMessage], unclaimed: Sequence[RefRecord]) -> tuple[TurnMessage, ...]:
    """The messages as values; media that was sent shortly before belongs to the last."""
    before = tuple(record.ref for record in unclaimed)
    return tuple(
        TurnMessage(
            id=message.id,
            author=message.author,
            sent=message.sent,
            text=words_of(message),
            media=message.media + (before if message is messages[-1] else ()),
            quote=message.quote,
            forward=message.forward,
        )
        for message in messages
    )


def _told(context: StructuredContext) -> str:
    """What the context holds and what it leaves out, in numbers."""
    snapshot, thread = context.snapshot, context.thread
    counts = [(len(snapshot.adjacent), "messages before it"), (snapshot.omitted + snapshot.older, "left out")]
    if thread is not None:
        cut = thread.truncation
        counts.append((cut.included_replies, "replies of its thread"))
        counts.append((cut.omitted or 0, "left out"))
    return _counted(counts) or "nothing was said before it"


def _happened(news: MissedChanges) -> str:
    changes = Counter(str(what) for _, what in news.changed)
    said = ((news.total_arrived, "arrived"), *((changes[what], what) for what in sorted(changes)))
    return _counted((*said, (news.replies_elsewhere, "in other threads")))


def _counted(counts: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{number} {what}" for number, what in counts if number)


def _tokens(blocks: Iterable[Block]) -> int:
    return sum(estimate_tokens(block.text) for block in blocks if isinstance(block, TextBlock))


def _to_attach(
    wish: str,
    chat_type: ChatType,
    messages: Sequence[StoredMessage],
    unclaimed: Sequence[RefRecord],
    context: StructuredContext | None,
    news: MissedChanges,
) -> tuple[list[MediaRef], int]:
    """The media to attach without a tool call, and how many items at most: the message's own first, then its thread's.

    By itself, `auto` attaches only pictures that are the question: of a message that has words, or is direct.
    """
    if wish == "never":
        return [], 0
    if wish == "auto":
        is_question = chat_type is ChatType.DIRECT or any(map(own_words, messages))
        own = [ref for message in messages for ref in message.media if is_picture(ref.kind, ref.mime)]
        return own if is_question else [], ATTACHED_BY_ITSELF
    refs = [ref for message in messages for ref in carried_media(message)]
    refs += [record.ref for record in unclaimed]
    if wish == "thread":
        thread = messages[0].root or messages[0].id
        since = [message for message in reversed(news.arrived) if thread in (message.root, message.id)]
        refs += [ref for message in since for ref in message.media]
        refs += reversed(list(_media_in(context))) if context is not None else ()
    return refs, ATTACHED_AT_MOST


def _media_in(context: StructuredContext) -> Iterator[MediaRef]:
    if context.thread is not None:
        told = (context.thread.root, *context.thread.replies)
        yield from (ref for message in told if message is not None for ref in message.media)
