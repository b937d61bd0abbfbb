"""The channel tools: messages by id, in full."""

from collections.abc import Mapping, Sequence

from belino.context.compact import header, line, short_time
from belino.context.wire import iso_time, json_text, media_json
from belino.domain.errors import ToolError
from belino.domain.media import Block, MediaRef, TextBlock
from belino.domain.message import Quote
from belino.domain.outcome import MediaOutcome
from belino.domain.record import StoredMessage
from belino.domain.turn import ToolSpec
from belino.media.placeholder import clean_name, disarm, placeholder
from belino.tools.arguments import LIST_ITEMS, Arguments
from belino.tools.media import FORMATS, Shelf, fetch_one

MESSAGE_CHARS = 40_000

CHANNEL_MESSAGES = ToolSpec(
    name="channel_messages",
    description=(
        "Read messages of this channel in full by their ids (message_ids), or get a media item by its ref "
        "(media_artifact_id, as fetch_media gives it). Ids that are not of this channel are listed as not found."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "message_ids": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": LIST_ITEMS,
            },
            "media_artifact_id": {"type": "string"},
            "format": {"type": "string", "enum": list(FORMATS), "default": "compact"},
        },
    },
)


async def channel_messages(shelf: Shelf, given: Mapping[str, object]) -> tuple[Block, ...]:
    """Messages by id, or a media item the way `fetch_media` gives it."""
    arguments = Arguments(given, ("message_ids", "media_artifact_id", "format"))
    ids, artifact = arguments.texts("message_ids"), arguments.text("media_artifact_id")
    style = arguments.choice("format", FORMATS, "compact")
    if (ids is None) == (artifact is None):
        raise ToolError("give either message_ids or media_artifact_id")
    if artifact is not None:
        return await fetch_one(shelf, artifact, rendition="auto", again=False)
    assert ids is not None
    found = await shelf.library.messages(shelf.channel, ids)
    by_id = {message.id: message for message in found}
    messages = [by_id[name] for name in ids if name in by_id]
    missing = [name for name in ids if name not in by_id]
    text = _as_json(messages, missing) if style == "json" else await _as_lines(shelf, messages, missing)
    return (TextBlock(text=text),)


async def _as_lines(shelf: Shelf, messages: Sequence[StoredMessage], missing: Sequence[str]) -> str:
    lines = []
    if messages:
        lines.append(header(shelf.clock.now()))
        for message in messages:
            fields = (message.id, short_time(message.sent), clean_name(message.author.name))
            lines.append(line((*fields, await _told(shelf, message))))
    if missing:
        lines.append(f"Not found in this channel: {line([', '.join(clean_name(name) for name in missing)])}")
    return "\n".join(lines)


async def _told(shelf: Shelf, message: StoredMessage) -> str:
    """What it carries from elsewhere, its media, its words."""
    parts: list[str] = []
    for label, carried in (("in reply to", message.quote), ("forwarded from", message.forward)):
        if carried is not None:
            author = clean_name(carried.author.name) if carried.author else ""
            parts.append(f"({label} {author or 'somebody'}: {_cut(disarm(carried.text))})")
            parts += [await _placeholder(shelf, ref) for ref in carried.media]
    parts += [await _placeholder(shelf, ref) for ref in message.media]
    if message.text not in {ref.caption for ref in message.media} and (text := _text(message)):
        parts.append(text)
    return "\n".join(parts)


async def _placeholder(shelf: Shelf, ref: MediaRef) -> str:
    record = await shelf.library.ref(shelf.channel, ref.id)
    return placeholder(ref, record.outcome if record else MediaOutcome.NOT_FOUND)


def _text(message: StoredMessage) -> str:
    return "(deleted)" if message.deleted is not None else _cut(disarm(message.text))


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARS else f"{text[:MESSAGE_CHARS]}…"


def _as_json(messages: Sequence[StoredMessage], missing: Sequence[str]) -> str:
    return json_text({"messages": [_message_json(message) for message in messages], "not_found": list(missing)})


def _message_json(message: StoredMessage) -> dict[str, object]:
    author = message.author
    return {
        "message_id": message.id,
        "thread_id": message.conversation.thread,
        "ts": iso_time(message.sent),
        "author": {"name": clean_name(author.name), "is_bot": author.is_bot, "is_agent": author.is_agent},
        "standing": message.standing.value,
        "text": _text(message),
        "is_truncated": len(message.text) > MESSAGE_CHARS,
        "media": [media_json(ref) for ref in message.media],
        "reply_to": message.reply_to,
        "quote": _carried_json(message.quote),
        "forward": _carried_json(message.forward),
    }


def _carried_json(carried: Quote | None) -> dict[str, object] | None:
    if carried is None:
        return None
    return {
        "author": clean_name(carried.author.name) if carried.author else None,
        "text": _cut(disarm(carried.text)),
        "media": [media_json(ref) for ref in carried.media],
    }
