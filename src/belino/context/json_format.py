"""JSON format: the context as canonical JSON, for programs and `format="json"`."""

from datetime import UTC, datetime

import orjson

from belino.domain.context import (
    SCHEMA_VERSION,
    AdjacentMessage,
    ChannelSnapshot,
    ContextMessage,
    ThreadActivity,
    ThreadContext,
)
from belino.domain.media import MediaRef
from belino.domain.message import Author, Quote, SpokenText
from belino.domain.safe_text import clean_mime, clean_name, disarm


def iso_time(moment: datetime) -> str:
    """ISO 8601, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def media_json(ref: MediaRef) -> dict[str, object]:
    """A ref as JSON."""
    return {
        "artifact_id": ref.id,
        "media_type": clean_mime(ref.mime) or None,
        "filename": clean_name(ref.file_name) if ref.file_name else None,
        "byte_length": ref.size,
    }


def author_json(author: Author) -> dict[str, object]:
    """The author; our own agents are bots, and marked."""
    told: dict[str, object] = {
        "user_id": disarm(author.id),
        "display_name": clean_name(author.name),
        "is_bot": author.is_bot or author.is_agent,
    }
    return told | {"is_you": True} if author.is_agent else told


def trust(observed: bool) -> str:
    """The trust label: whether the author may command the agent, or is only observed."""
    return "observed" if observed else "may_command"


def spoken_json(spoken: SpokenText | None) -> dict[str, object]:
    """The keys of a text that was read from a voice message; a written one has none of them."""
    return {} if spoken is None else dict.fromkeys(("spoken", *spoken.doubts), True)


def message_json(message: ContextMessage) -> dict[str, object]:
    """A message in full."""
    return {
        "message_id": disarm(message.message_id),
        "ts": iso_time(message.ts),
        "author": author_json(message.author),
        "text": message.text,
        "is_truncated": message.is_truncated,
        "media": [media_json(ref) for ref in message.media],
        "thread_id": None if message.thread_id is None else disarm(message.thread_id),
        "trust": trust(message.observed),
        "reply_to": _quote_json(message.quote),
        "forward": _quote_json(message.forward),
        "edited_ts": None if message.edited is None else iso_time(message.edited),
        "deleted": message.deleted,
    } | spoken_json(message.spoken)


def adjacent_json(message: AdjacentMessage) -> dict[str, object]:
    """A message as a snippet."""
    return {
        "message_id": disarm(message.message_id),
        "ts": iso_time(message.ts),
        "author": author_json(message.author),
        "snippet": message.snippet,
        "thread_activity": activity_json(message.thread_activity),
        "has_media": bool(message.media),
        "media": [media_json(ref) for ref in message.media],
        "reactions": list(message.reactions),
        "trust": trust(message.observed),
    } | spoken_json(message.spoken)


def activity_json(activity: ThreadActivity | None) -> dict[str, object] | None:
    """How active a thread is; null without one."""
    if activity is None:
        return None
    last = activity.last_reply_ts
    return {
        "reply_count": activity.reply_count,
        "replies_last_1h": activity.replies_last_1h,
        "last_reply_ts": None if last is None else iso_time(last),
    }


def snapshot_json(snapshot: ChannelSnapshot) -> dict[str, object]:
    """A ChannelSnapshot as JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "channel": {
            "id": disarm(snapshot.channel.channel),
            "name": clean_name(snapshot.channel_name),
            "platform": snapshot.channel.platform,
        },
        "anchor": message_json(snapshot.anchor),
        "adjacent": [adjacent_json(message) for message in snapshot.adjacent],
        "adjacent_omitted": snapshot.omitted + snapshot.older,
        "replies_elsewhere": snapshot.replies_elsewhere,
        "threads_elsewhere": [
            {"thread_id": disarm(thread.thread_id), "replies": thread.replies} for thread in snapshot.threads_elsewhere
        ],
        "next_cursor": str(snapshot.cursor) if snapshot.omitted + snapshot.older else None,
    }


def thread_json(thread: ThreadContext) -> dict[str, object]:
    """A ThreadContext as JSON."""
    truncation = thread.truncation
    between = truncation.omitted_range_ts
    return {
        "schema_version": SCHEMA_VERSION,
        "thread_id": disarm(thread.thread_id),
        "root": None if thread.root is None else message_json(thread.root),
        "replies": [message_json(message) for message in thread.replies],
        "truncation": {
            "total_replies": truncation.total_replies,
            "included_replies": truncation.included_replies,
            "strategy": truncation.strategy,
            "omitted_range_ts": None if between is None else [iso_time(moment) for moment in between],
        },
    }


def json_text(value: object) -> str:
    """Canonical JSON without extra whitespace."""
    return orjson.dumps(value).decode()


def _quote_json(quote: Quote | None) -> dict[str, object] | None:
    if quote is None:
        return None
    return {
        "message_id": None if quote.message_id is None else disarm(quote.message_id),
        "author": clean_name(quote.author.name) if quote.author else None,
        "text": quote.text,
    } | spoken_json(quote.spoken)
