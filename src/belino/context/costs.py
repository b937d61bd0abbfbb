"""Costs of the structured context, part by part, and what was left out of it and why."""

from dataclasses import dataclass

from belino.context.assemble import StructuredContext
from belino.context.budget import ContextConfig
from belino.context.prompt import context_blocks, system_prompt
from belino.domain.context import ChannelSnapshot, ThreadContext
from belino.domain.tokens import estimate_tokens

_FENCE = "0" * 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One part of the context at the start of a session."""

    part: str
    tokens: int
    told: int
    """The number of messages included."""
    left_out: int = 0
    why: tuple[str, ...] = ()
    """A sentence for everything that was left out or cut."""


def costs(context: StructuredContext, config: ContextConfig) -> tuple[Cost, ...]:
    """The estimated cost of each part."""
    blocks = context_blocks(context, fence=_FENCE, format=config.format)
    tokens = [estimate_tokens(block.text) for block in blocks]
    parts = [
        Cost(part="instructions", tokens=estimate_tokens(system_prompt()), told=0),
        _channel(context.snapshot, config, tokens[0]),
    ]
    if context.thread is not None:
        parts.append(_thread(context.thread, config, tokens[1]))
    return tuple(parts)


def _channel(snapshot: ChannelSnapshot, config: ContextConfig, tokens: int) -> Cost:
    why = []
    if snapshot.omitted:
        why.append(f"the oldest {snapshot.omitted} did not fit into context.snapshot_tokens = {config.snapshot_tokens}")
    if snapshot.replies_elsewhere:
        why.append(f"{snapshot.replies_elsewhere} replies in other threads are counted, not listed")
    if snapshot.anchor.is_truncated:
        why.append(f"the message itself is longer than context.message_chars = {config.message_chars}")
    return Cost(
        part="channel",
        tokens=tokens,
        told=len(snapshot.adjacent),
        left_out=snapshot.omitted + snapshot.replies_elsewhere,
        why=tuple(why),
    )


def _thread(thread: ThreadContext, config: ContextConfig, tokens: int) -> Cost:
    truncation = thread.truncation
    omitted = truncation.total_replies - truncation.included_replies
    cut = sum(message.is_truncated for message in thread.replies)
    why = []
    if omitted:
        why.append(f"the oldest {omitted} replies did not fit into context.thread_tokens = {config.thread_tokens}")
    if cut:
        why.append(f"{cut} of the replies told {'is' if cut == 1 else 'are'} cut")
    if thread.root is None:
        why.append("the thread's first message is not known")
    elif thread.root.is_truncated:
        why.append(f"the thread's first message is longer than context.message_chars = {config.message_chars}")
    return Cost(
        part="thread",
        tokens=tokens,
        told=truncation.included_replies + (thread.root is not None),
        left_out=omitted,
        why=tuple(why),
    )
