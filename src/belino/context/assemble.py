"""Assemble the structured context of a turn from the store: its channel and its thread."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from belino.context.budget import ContextConfig
from belino.context.json_format import snapshot_json, thread_json
from belino.context.snapshot import take_snapshot
from belino.context.thread import replies_wanted, thread_context
from belino.domain.context import ChannelSnapshot, ThreadContext
from belino.domain.stored import StoredMessage
from belino.storage.library_verbs import LibraryVerbs


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredContext:
    """The context at the start of a session: a snapshot of the channel, and the thread."""

    snapshot: ChannelSnapshot
    thread: ThreadContext | None
    answers: tuple[str, ...]
    """The ids of the message being answered: one, or those of an album's items."""
    now: datetime


async def assemble(
    library: LibraryVerbs, anchor: Sequence[StoredMessage], config: ContextConfig, *, now: datetime
) -> StructuredContext:
    """The context of a message, or of an album's items: two reads of the store, no platform, no model."""
    anchor = sorted(anchor, key=lambda message: (message.sent, message.seq))
    around = await library.around(anchor[0], now=now, limit=config.snapshot_messages)
    return StructuredContext(
        snapshot=take_snapshot(around, anchor, config, today=now),
        thread=await _thread(library, anchor, config, now),
        answers=tuple(message.id for message in anchor),
        now=now,
    )


def context_json(context: StructuredContext) -> dict[str, object]:
    """Both values as JSON."""
    thread = context.thread
    return {
        "snapshot": snapshot_json(context.snapshot),
        "thread": None if thread is None else thread_json(thread),
    }


async def _thread(
    library: LibraryVerbs, anchor: Sequence[StoredMessage], config: ContextConfig, now: datetime
) -> ThreadContext | None:
    """The anchor's thread: the one it is in, or the one under it."""
    first = anchor[0]
    above = next((message.root for message in anchor if message.root is not None), first.conversation.thread)
    thread_id, answers = above or first.id, {message.id for message in anchor}
    for limit in replies_wanted(config):
        known = await library.thread(first.conversation.whole_channel, thread_id, limit=limit)
        if known is None or (above is None and not known.total):
            return None
        thread = thread_context(thread_id, known, answers, config, today=now)
        if len(known.replies) == known.total or len(thread.replies) < len(known.replies) - 1:
            break
    return thread
