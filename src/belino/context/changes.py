"""Changes since a session's last turn, listed once: new messages, edits, deletions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from belino.context.budget import ContextConfig
from belino.context.line_format import fenced, header, message_line
from belino.context.snapshot import context_message, newest_told, reactions_of, snippet
from belino.domain.context import ContextMessage
from belino.domain.media import TextBlock
from belino.domain.stored import Happening, MissedChanges, StoredMessage

REACTED_CHARS = 80


def meanwhile_blocks(
    missed: MissedChanges, config: ContextConfig, *, fence: str, now: datetime
) -> tuple[TextBlock, ...]:
    """A list of the changes, within the budget of a thread; empty if there are none."""
    compact = replace(config, format="compact")  # this list has no JSON form
    ids = {message.id for message in missed.arrived}
    news = [(context_message(message, config.message_chars, told=ids), "") for message in missed.arrived]
    news += [_change(message, happening, config) for message, happening in missed.changed]
    if not news and not missed.replies_elsewhere:
        return ()
    told = newest_told([message for message, _ in reversed(news)], compact, today=now)
    left_out = len(news) - len(told)
    lines = [_summary(missed, left_out=left_out)]
    if told:
        lines.append(header(now))
        marks = [[mark] if mark else [] for _, mark in news[left_out:]]
        lines += [message_line(message, today=now, marks=own) for message, own in zip(told, marks, strict=True)]
    return (TextBlock(text=fenced("meanwhile", lines, fence)),)


def _change(message: StoredMessage, happening: Happening, config: ContextConfig) -> tuple[ContextMessage, str]:
    told = context_message(message, config.message_chars)
    match happening:
        case Happening.EDITED:
            return replace(told, quote=None, forward=None, edited=None), "now reads"
        case Happening.DELETED:
            told = replace(told, text="", media=(), quote=None, forward=None, deleted=False, spoken=None)
            return told, "deleted"
        case Happening.REACTED:
            mark = ", ".join(("reactions", *(reactions_of(message) or ("none",))))
            return replace(told, text=snippet(told.text, REACTED_CHARS), media=(), quote=None, forward=None), mark


def _summary(missed: MissedChanges, *, left_out: int) -> str:
    left_out += missed.total_arrived - len(missed.arrived)
    counts = (
        (missed.total_arrived, "arrived"),
        (len(missed.changed), "changed"),
        (missed.replies_elsewhere, "in other threads, not listed"),
        (left_out, "of these left out, the oldest: channel_context finds them"),
    )
    return f"Since your last turn: {_counted(counts)}."


def _counted(counts: Sequence[tuple[int, str]]) -> str:
    return "; ".join(f"{number} {what}" for number, what in counts if number)
