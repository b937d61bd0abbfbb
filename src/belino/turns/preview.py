"""Preview of a prompt: what an agent would read if its session began with a message, and the cost."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, replace

from belino.context.budget import ContextConfig
from belino.context.history import History
from belino.context.json_format import json_text
from belino.context.manifest import if_compacted, session_json
from belino.context.prompt import Cost, costs, system_prompt
from belino.context.snapshot import StructuredContext, context_json
from belino.domain.errors import BelinoError, NoSuchMessage, SeveralMessages
from belino.domain.media import TextBlock
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.stored import ClaimedTurn, RefRecord, Session, StoredMessage
from belino.domain.tokens import estimate_tokens
from belino.domain.turn import ReplyPart, Turn
from belino.media.price import BLOCK_SIDE
from belino.storage.store import Store
from belino.tools.toolbox import SPECS
from belino.turns.attach import MediaAttacher, to_recover
from belino.turns.prompt import PromptBuilder

LOOKED_THROUGH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The whole prompt, and its cost."""

    conversation: ConversationKey
    message: StoredMessage
    """The message that would be answered."""
    system: str
    told: tuple[str, ...]
    costs: tuple[Cost, ...]
    context: StructuredContext
    session: Session
    """The current session."""
    again: tuple[RefRecord, ...]
    """The media that its next turn attaches again, or would after a compaction."""
    note: str = ""
    """What could not be read from the platform."""

    @property
    def tokens(self) -> int:
        return sum(cost.tokens for cost in self.costs)


class _Reader:
    """Takes the agent's place: it has a memory, and never runs a turn."""

    remembers = True

    def __init__(self, *, sees_images: bool) -> None:
        self.sees_images = sees_images

    def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        raise BelinoError("a preview is not answered")


async def preview(
    store: Store,
    conversation: ConversationKey,
    at: str | None,
    config: ContextConfig,
    *,
    clock: Clock,
    key: bytes,
    history: History | None = None,
    picture_side: int | None = BLOCK_SIDE,
) -> Preview:
    """Built like a turn's prompt. `at` names the message to answer, as if nothing had come after it.

    Without it, the last message from a person is answered. `picture_side` is None for an agent that sees no pictures.
    """
    messages = await _anchor(store, conversation, at)
    until = max(message.sent for message in messages) if at is not None else None
    note = await history.before_turn(messages[-1]) if history is not None else ""
    session = await store.session(conversation)
    claimed = _claimed(messages, session)
    builder = PromptBuilder(
        store,
        _Reader(sees_images=picture_side is not None),
        replace(config, attach_media="never"),  # a preview does not fetch what a turn would attach
        clock=clock,
        key=key,
        picture_side=picture_side or BLOCK_SIDE,
        until=until,
    )
    begun = Session(memory=None, turns=session.turns, manifest=(), begun=session.begun)
    prompt = await builder.build(claimed, begun, _no_pictures, is_whole=not note)
    context = await builder.structured_context(messages, is_whole=not note, since=session.begun)
    told = tuple(block.text for block in prompt.blocks if isinstance(block, TextBlock))
    return Preview(
        conversation=messages[0].conversation,
        message=messages[-1],
        system=system_prompt(),
        told=told,
        costs=(_tools(), *costs(context, config), _message(messages, told, config)),
        context=context,
        session=session,
        again=await to_recover(store, if_compacted(session), messages[0].conversation),
        note=note,
    )


def _claimed(messages: tuple[StoredMessage, ...], session: Session) -> ClaimedTurn:
    """The next turn of the session, as if it began with these messages."""
    return ClaimedTurn(
        id=0,
        conversation=messages[0].conversation,
        number=session.turns + 1,
        attempt=1,
        fence=0,
        messages=messages,
        trace=messages[0].trace,
    )


def as_json(preview: Preview) -> dict[str, object]:
    """The preview as plain JSON values."""
    return {
        "conversation": str(preview.conversation),
        "message_id": preview.message.id,
        "tokens": preview.tokens,
        "parts": [asdict(cost) | {"why": list(cost.why)} for cost in preview.costs],
        "system": preview.system,
        "told": list(preview.told),
        "context": context_json(preview.context),
        "session": session_json(preview.session, preview.again),
        "note": preview.note,
    }


async def _anchor(store: Store, conversation: ConversationKey, at: str | None) -> tuple[StoredMessage, ...]:
    """The message, with the other items of its album."""
    if at is not None:
        named = (await store.messages_named(conversation.whole_channel, [at]))[at]
        found = [one for one in named if one.deleted is None and conversation.thread in (None, one.conversation.thread)]
        if not found:
            raise NoSuchMessage(f"there is no message {at!r} in {conversation}")
        if len(found) > 1:
            names = ", ".join(one.short_id for one in found)
            raise SeveralMessages(f"{at!r} may mean several messages; write one of: {names}")
    else:
        recent = await store.history(conversation, limit=LOOKED_THROUGH)
        found = [one for one in recent if one.deleted is None and not one.author.is_agent]
        if not found:
            raise NoSuchMessage(f"there are no recent messages in {conversation}")
    # History from the platform has a high seq and an early time.
    anchor = max(found, key=lambda one: (one.sent, one.seq))
    if anchor.album is None:
        return (anchor,)
    near = await store.history(anchor.conversation, before=anchor.seq + LOOKED_THROUGH // 2, limit=LOOKED_THROUGH)
    album = [one for one in near if (one.album, one.author.id) == (anchor.album, anchor.author.id)]
    return tuple(sorted((one for one in album if one.deleted is None), key=lambda one: one.place_in_album))


def _tools() -> Cost:
    specs = [{"name": spec.name, "description": spec.description, "schema": spec.schema} for spec in SPECS]
    return Cost(part="tools", tokens=estimate_tokens(json_text(specs)), told=0)


def _message(messages: Sequence[StoredMessage], told: tuple[str, ...], config: ContextConfig) -> Cost:
    blocks = [text for text in told if text.startswith(("<<<message", "prices: "))]
    may_attach = config.attach_media != "never" and any(message.media for message in messages)
    why = ("media that is attached costs what list_media says of it",) if may_attach else ()
    return Cost(part="message", tokens=sum(map(estimate_tokens, blocks)), told=1, why=why)


def _no_pictures(again: bool) -> MediaAttacher:
    raise BelinoError("a preview attaches nothing")
