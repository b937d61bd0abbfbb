"""Parse events into arrivals: pure, fetches nothing, never fails; what it cannot read it reports as unsupported.

https://developers.line.biz/en/reference/messaging-api/#webhook-event-objects
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from belino.adapters.line.authors import (
    ELSEWHERE,
    LineBot,
    NameBook,
    author_of,
    channel_of,
    chat_type,
    conversation,
)
from belino.adapters.line.hooks import sent_at
from belino.adapters.line.media import refs_of
from belino.domain.choice import KEY
from belino.domain.message import (
    Arrival,
    ChatType,
    Deletion,
    Edit,
    Message,
    Presence,
    SourceMessage,
    Unsupported,
    as_unsupported,
    language_tag,
)
from belino.net.json_fields import (
    Raw,
    as_table,
    line,
    number_id,
    one_line,
    real,
    table,
    tables,
    texts,
    texts_by_key,
    words,
    yes,
)
from belino.net.message_lines import place_line

_NOTICES: Mapping[str, tuple[str, Presence | None]] = {
    "follow": ("the person added the account", Presence.ADDED),
    "unfollow": ("the person blocked the account", Presence.REMOVED),
    "join": ("the account was added", Presence.ADDED),
    "leave": ("the account was removed", Presence.REMOVED),
    "memberJoined": ("people joined", None),
    "memberLeft": ("people left", None),
    "videoPlayComplete": ("a person watched a video to its end", None),
    "beacon": ("a person came near a beacon", None),
    "accountLink": ("a person linked an account of another service", None),
    "membership": ("a person's membership changed", None),
    "botSuspended": ("LINE suspended the account", None),
    "botResumed": ("LINE resumed the account", None),
}
STANDBY = "standby"
"""Another module answers on this channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineParseContext:
    """What parsing an event needs to know."""

    account: str
    me: LineBot
    book: NameBook = field(default_factory=NameBook)
    own: Container[str] = ()
    """The ids of messages that the account sent lately."""
    received: datetime


def parse(event: object, view: LineParseContext) -> tuple[Arrival, ...]:
    """One event as arrivals, at least one: an unreadable event is Unsupported, with its type."""
    raw = as_table(event)
    match words(raw, "type"):
        case "message" if words(table(raw, "message"), "id"):
            return (_said(raw, view),)
        case "messageEdited" if words(table(raw, "message"), "id"):
            return (_edited(raw, view),)
        case "unsend" if words(table(raw, "unsend"), "messageId"):
            return (_unsent(raw, view),)
        case "postback" if words(table(raw, "postback"), "data"):
            return (_postback(raw, view),)
        case kind:
            return (_notice(raw, kind, view),)


def context_to_json(view: LineParseContext, event: Raw) -> dict[str, object]:
    """What `parse` needs to know of the world for one event."""
    source = table(event, "source")
    ids = [own for own in (channel_of(source), words(source, "userId")) if own]
    quoted = words(table(event, "message"), "quotedMessageId")
    return {
        "me": {"user": view.me.user, "name": view.me.name},
        "names": {own: view.book.names[own] for own in ids if own in view.book.names},
        "languages": {own: view.book.languages[own] for own in ids if own in view.book.languages},
        "own": [quoted] if quoted and quoted in view.own else [],
    }


def context_from_json(known: Raw, account: str, received: datetime) -> LineParseContext:
    """The same from a recording."""
    me = table(known, "me")
    return LineParseContext(
        account=account,
        me=LineBot(user=words(me, "user"), name=words(me, "name")),
        book=NameBook(names=texts_by_key(table(known, "names")), languages=texts_by_key(table(known, "languages"))),
        own=texts(known, "own"),
        received=received,
    )


def _said(raw: Raw, view: LineParseContext) -> Message | Unsupported:
    message, source = table(raw, "message"), table(raw, "source")
    own, sent, quoted = words(message, "id"), sent_at(raw, view.received), words(message, "quotedMessageId")
    where = conversation(view.account, source)
    refs = tuple(refs_of(message, SourceMessage(where=where, message_id=own, sent=sent)))
    text, sort = "\n".join(_texts(message)), chat_type(source)
    mentions = tables(table(message, "mention"), "mentionees")
    said = Message(
        conversation=where,
        id=own,
        author=author_of(source, view.book),
        sent=sent,
        text=text,
        media=refs,
        chat_type=sort,
        channel_name=_channel_name(source, view),
        addressed=words(raw, "mode") != STANDBY
        and (sort is ChatType.DIRECT or quoted in view.own or any(_is_me(each, view.me) for each in mentions)),
        reply_to=quoted or None,
        album=words(table(message, "imageSet"), "id") or None,
        language=language_tag(view.book.languages.get(words(source, "userId"))),
        mentions_another=any(not _is_me(each, view.me) for each in mentions),
    )
    kind = line(message, "type", most=64) or "unknown"
    return said if text or refs else as_unsupported(said, f"a message of the kind {kind}")


def _texts(message: Raw) -> Iterator[str]:
    """The text of a message, and what a place or sticker says, a line each."""
    match words(message, "type"):
        case "text":
            yield from filter(None, (words(message, "text"),))
        case "location":
            labels = line(message, "title"), line(message, "address")
            yield place_line(real(message, "latitude"), real(message, "longitude"), *labels)
        case "sticker":
            said = line(message, "text") or one_line(", ".join(texts(message, "keywords")))
            yield f"Sticker{f': {said}' if said else ''}"


def _is_me(mentionee: Raw, me: LineBot) -> bool:
    return yes(mentionee, "isSelf") or bool(me.user and words(mentionee, "userId") == me.user)


def _edited(raw: Raw, view: LineParseContext) -> Edit:
    """Texts are edited in groups only; of edits that overtake each other the latest counts."""
    message, source, sent = table(raw, "message"), table(raw, "source"), sent_at(raw, view.received)
    return Edit(
        conversation=conversation(view.account, source),
        id=_event_id(raw, view),
        message_id=words(message, "id"),
        author=author_of(source, view.book),
        sent=sent,
        text="\n".join(_texts(message)),
        chat_type=chat_type(source),
    )


def _unsent(raw: Raw, view: LineParseContext) -> Deletion:
    source = table(raw, "source")
    return Deletion(
        conversation=conversation(view.account, source),
        id=_event_id(raw, view),
        message_id=words(table(raw, "unsend"), "messageId"),
        author=author_of(source, view.book) if words(source, "userId") else None,
        sent=sent_at(raw, view.received),
        chat_type=chat_type(source),
    )


def _postback(raw: Raw, view: LineParseContext) -> Message:
    """A press: of a choice of ours by its key, or of what the operator put into a menu, by its data."""
    source, postback = table(raw, "source"), table(raw, "postback")
    data, params = line(postback, "data"), table(postback, "params")
    picked = " ".join(words(params, key) for key in ("date", "time", "datetime") if words(params, key))
    is_ours = KEY.fullmatch(data) is not None
    return Message(
        conversation=conversation(view.account, source),
        id=_event_id(raw, view),
        author=author_of(source, view.book),
        sent=sent_at(raw, view.received),
        text="" if is_ours else f"Menu: {data}{f' ({picked})' if picked else ''}",
        chat_type=chat_type(source),
        channel_name=_channel_name(source, view),
        addressed=words(raw, "mode") != STANDBY,
        language=language_tag(view.book.languages.get(words(source, "userId"))),
        press=data if is_ours else None,
    )


def _notice(raw: Raw, kind: str, view: LineParseContext) -> Unsupported:
    """An event that is no message, or that we do not know."""
    source = table(raw, "source")
    what, presence = _NOTICES.get(kind, (f"an event of the kind {line(raw, 'type', most=64) or 'nothing'}", None))
    if channel_of(source) == ELSEWHERE:
        presence = None
    return Unsupported(
        conversation=conversation(view.account, source),
        id=_event_id(raw, view),
        author=author_of(source, view.book),
        sent=sent_at(raw, view.received),
        what=what,
        chat_type=chat_type(source),
        channel_name=_channel_name(source, view),
        is_notice=True,
        is_event=True,
        presence=presence,
    )


def _channel_name(source: Raw, view: LineParseContext) -> str | None:
    return view.book.names.get(channel_of(source)) if chat_type(source) is ChatType.GROUP else None


def _event_id(raw: Raw, view: LineParseContext) -> str:
    """The id of an event, which stays the same when it is delivered again."""
    own = line(raw, "webhookEventId", most=64)
    return own or f"{words(raw, 'type') or 'event'}-{number_id(raw, 'timestamp') or view.received.timestamp()}"
