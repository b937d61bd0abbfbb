"""Preview of a prompt: what an agent would read if its session began with a message, and the cost."""

from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, replace

from belino.context.budget import ContextConfig
from belino.context.history import History
from belino.context.json_format import json_text
from belino.context.prompt import Cost, costs, system_prompt
from belino.context.snapshot import StructuredContext, assemble, context_json
from belino.domain.errors import BelinoError, NoSuchMessage
from belino.domain.media import TextBlock
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.stored import ClaimedTurn, Session, StoredMessage
from belino.domain.tokens import estimate_tokens
from belino.domain.turn import ReplyPart, Turn
from belino.storage.store import Store
from belino.tools.toolbox import SPECS
from belino.turns.attach import PictureAttacher
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
    note: str = ""
    """What could not be read from the platform."""

    @property
    def tokens(self) -> int:
        return sum(cost.tokens for cost in self.costs)


class _Reader:
    """Takes the agent's place: it has a memory, and never runs a turn."""

    remembers = True
    sees_images = False

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
) -> Preview:
    """Built like a turn's prompt. `at` names the message to answer; None means the last one from a person."""
    messages = await _anchor(store, conversation, at)
    note = await history.before_turn(messages[-1]) if history is not None else ""
    session = await store.session(conversation)
    claimed = ClaimedTurn(
        id=0,
        conversation=messages[0].conversation,
        number=session.turns + 1,
        attempt=1,
        fence=0,
        messages=messages,
        trace=messages[0].trace,
    )
    # A preview does not fetch the pictures that a turn would attach.
    looking = replace(config, attach_media="never")
    builder = PromptBuilder(store, _Reader(), looking, clock=clock, key=key)
    prompt = await builder.build(claimed, Session(memory=None, turns=session.turns, manifest=()), _no_pictures)
    context = await assemble(store, messages, config, now=clock.now())
    told = tuple(block.text for block in prompt.blocks if isinstance(block, TextBlock))
    return Preview(
        conversation=messages[0].conversation,
        message=messages[-1],
        system=system_prompt(),
        told=told,
        costs=(_tools(), *costs(context, config), _message(told, config)),
        context=context,
        session=session,
        note=note,
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
        "session": {"turns": preview.session.turns, "has_context": preview.session.told is not None},
        "note": preview.note,
    }


async def _anchor(store: Store, conversation: ConversationKey, at: str | None) -> tuple[StoredMessage, ...]:
    """The message, with the other items of its album."""
    if at is not None:
        found = [one for one in await store.messages(conversation.whole_channel, [at]) if one.deleted is None]
        if conversation.thread is not None:
            found = [one for one in found if one.conversation == conversation]
        if not found:
            raise NoSuchMessage(f"there is no message {at!r} in {conversation}")
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


def _message(told: tuple[str, ...], config: ContextConfig) -> Cost:
    blocks = [text for text in told if text.startswith("<<<message")]
    why = () if config.attach_media == "never" else ("pictures that are attached cost what list_media says of them",)
    return Cost(part="message", tokens=sum(map(estimate_tokens, blocks)), told=1, why=why)


def _no_pictures(again: bool) -> PictureAttacher:
    raise BelinoError("a preview attaches nothing")
