"""Changes since a session's last turn, listed once: new messages, edits, deletions."""

from dataclasses import replace
from datetime import datetime

from belino.context.budget import ContextConfig
from belino.context.fit import newest_lines
from belino.context.line_format import TimeColumn, fenced, header, message_line, shown_id
from belino.context.prompt import replies_elsewhere
from belino.context.snapshot import context_message, reactions_of, snippet
from belino.domain.context import ContextMessage
from belino.domain.media import TextBlock
from belino.domain.stored import Happening, MissedChanges, StoredMessage

REACTED_CHARS = 80


def meanwhile_blocks(
    missed: MissedChanges, config: ContextConfig, *, fence: str, now: datetime
) -> tuple[TextBlock, ...]:
    """A list of the changes, within their budget; empty if there are none."""
    short_ids = {message.id: message.short_id for message in missed.arrived}
    news = [(context_message(message, config.message_chars, told=short_ids), "") for message in missed.arrived]
    news += [_change(message, happening, config) for message, happening in missed.changed]
    if not news and not missed.replies_elsewhere and not missed.said_in_channel:
        return ()
    told = newest_lines([message for message, _ in reversed(news)], config.updates_tokens, today=now)
    left_out = len(news) - len(told)
    lines = [_summary(missed, left_out=left_out)]
    if told:
        times, marks = TimeColumn(now), [[mark] if mark else [] for _, mark in news[left_out:]]
        lines.append(header(now))
        lines += [
            message_line(message, times.write(message.ts), marks=own) for message, own in zip(told, marks, strict=True)
        ]
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
    """What happened in numbers, with the calls for what is not listed."""
    shown = missed.arrived[left_out:]
    oldest = shown[0].seq if shown else missed.now.seq
    left_out += missed.total_arrived - len(missed.arrived)
    thread = f"thread_id={shown_id(missed.thread)}, " if missed.thread else ""
    elsewhere = replies_elsewhere(missed.replies_elsewhere, missed.threads_elsewhere)
    counts = (
        (missed.total_arrived, f"{missed.total_arrived} arrived"),
        (len(missed.changed), f"{len(missed.changed)} changed"),
        (left_out, f"{left_out} of these left out, the oldest: channel_messages({thread}cursor={oldest})"),
        (
            missed.said_in_channel,
            f"{missed.said_in_channel} said in the channel itself: channel_messages(cursor={missed.now.seq})",
        ),
        (missed.replies_elsewhere, elsewhere),
    )
    return f"Since your last turn: {'; '.join(words for number, words in counts if number)}."
