"""Parse envelopes into arrivals: pure, fetches nothing, never fails; what it cannot read it reports as unsupported."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from belino.adapters.signal.authors import GROUP, SignalAccount, SignalParseContext, address
from belino.adapters.signal.content import mentioned, text_of, what_it_is
from belino.adapters.signal.media import named_in, refs_of, thumbnails_of
from belino.domain.message import (
    Arrival,
    Author,
    ChatType,
    ConversationKey,
    Deletion,
    DeliveryState,
    DeliveryStatus,
    Message,
    Quote,
    Reaction,
    SourceMessage,
    Unsupported,
    as_edit,
    as_unsupported,
)
from belino.net.json_fields import Raw, as_table, count, has, line, table, tables, texts_by_key, words, yes

CHANGED_KEY = "UntrustedIdentityException"
_LAST = 253_402_300_799_000
# Housekeeping between devices, and what people are not told either.
_SILENT = ("typingMessage", "storyMessage", "syncMessage")
MOST_RECEIPTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """One message in an envelope: by whom, where, and of what time; and the edit that brings it, if one does."""

    raw: Raw
    edit: Raw
    view: SignalParseContext
    writer: Author
    envelope: Raw
    where: ConversationKey
    stamp: int

    @property
    def sent(self) -> datetime:
        return moment(self.stamp, self.view.received)

    @property
    def id(self) -> str:
        return self.view.message_id(self.stamp, self.envelope, "source")

    def id_of(self, stamp: int | None) -> str:
        """The id of another message of this author."""
        return self.view.stored_id(stamp, self.envelope, "source")

    @property
    def chat_type(self) -> ChatType:
        return ChatType.GROUP if self.where.channel.startswith(GROUP) else ChatType.DIRECT


def parse(payload: object, view: SignalParseContext) -> tuple[Arrival, ...]:
    """One event as arrivals; none for typing, stories and housekeeping between our own devices."""
    told = as_table(payload)
    envelope, failure = table(told, "envelope"), table(told, "exception") or table(told, "error")
    if failure:  # older daemons name it an error
        return (_failed(envelope, failure, view),)
    if (frame := _frame(envelope, view)) is not None:
        return (_arrival(frame),)
    if receipt := table(envelope, "receiptMessage"):
        return tuple(_receipts(receipt, envelope, view))
    if any(has(envelope, key) for key in _SILENT):
        return ()
    called = has(envelope, "callMessage")
    return (_unread(envelope, view, "a call" if called else "an envelope without content", is_event=not called),)


def timer_of(payload: object, view: SignalParseContext) -> tuple[str, int] | None:
    """The channel of a message and its timer in seconds; None if the event says nothing about it."""
    frame = _frame(table(as_table(payload), "envelope"), view)
    if frame is None or frame.edit or has(frame.raw, "reaction") or has(frame.raw, "remoteDelete"):
        return None
    seconds = count(frame.raw, "expiresInSeconds")
    return None if seconds is None else (frame.where.channel, seconds)


def _frame(envelope: Raw, view: SignalParseContext) -> _Frame | None:
    """The message in an envelope, also one of another device of ours: to ourselves it is a note, by a person."""
    own = table(table(envelope, "syncMessage"), "sentMessage")
    edit = table(own or envelope, "editMessage")
    data = table(edit, "dataMessage") if edit else own or table(envelope, "dataMessage")
    if not (data or edit):
        return None
    writer, other = view.author(envelope, "source"), address(envelope, "source")
    if own:
        to_self = view.me.is_me(own, "destination") and not table(data, "groupInfo")
        writer = replace(writer, is_agent=not to_self)
        other = view.me.id if to_self else address(own, "destination")
    return _Frame(
        raw=data,
        edit=edit,
        view=view,
        writer=writer,
        envelope=envelope,
        where=view.conversation(data, other),
        stamp=count(data, "timestamp") or count(envelope, "timestamp") or 0,
    )


def _arrival(frame: _Frame) -> Arrival:
    raw, view = frame.raw, frame.view
    if frame.edit:
        return _edit(frame)
    if (deleted := table(raw, "remoteDelete")) and (target := count(deleted, "timestamp")) is not None:
        return _deletion(frame, frame.id_of(target), frame.writer)
    if deleted := table(raw, "adminDelete"):
        target_id = view.stored_id(count(deleted, "targetSentTimestamp"), deleted, "targetAuthor")
        return _deletion(frame, target_id, None)
    reaction = table(raw, "reaction")
    return _reaction(frame, reaction) if reaction else _said(frame, frame.id)


def _said(frame: _Frame, own: str) -> Message | Unsupported:
    raw, view = frame.raw, frame.view
    text = text_of(raw, view.names)
    source = SourceMessage(where=frame.where, message_id=own, sent=frame.sent, caption=words(raw, "message"))
    refs = () if yes(raw, "viewOnce") else refs_of(raw, source)
    quote = _quote(frame, table(raw, "quote"), own)
    mentions = [view.me.is_me(mark) for mark in tables(raw, "mentions")]
    for_me = frame.chat_type is ChatType.DIRECT or any(mentions) or view.me.is_me(table(raw, "quote"), "author")
    seconds = count(raw, "expiresInSeconds") or 0
    message = Message(
        conversation=frame.where,
        id=own,
        author=frame.writer,
        sent=frame.sent,
        text=text,
        media=refs,
        chat_type=frame.chat_type,
        channel_name=_channel_name(frame),
        addressed=for_me and not frame.writer.is_agent,
        reply_to=quote.message_id if quote else None,
        quote=quote,
        mentions_another=not all(mentions),
        expires=view.received + timedelta(seconds=seconds) if seconds else None,
    )
    if text or refs:
        return message
    what, is_notice = what_it_is(raw)
    return as_unsupported(message, what, is_notice=is_notice)


def _channel_name(frame: _Frame) -> str | None:
    told = line(table(frame.raw, "groupInfo"), "groupName") or frame.view.names.get(frame.where.channel, "")
    if not told and frame.chat_type is ChatType.DIRECT and not frame.writer.is_agent:
        told = frame.writer.name
    return told or None


def _quote(frame: _Frame, raw: Raw, own: str) -> Quote | None:
    """The quoted message, with the thumbnails that its quote carries."""
    view, stamp = frame.view, count(raw, "id")
    if not raw:
        story = table(frame.raw, "storyContext")
        return Quote(author=view.author(story, "author"), text="a story") if story else None
    quoted, sent = view.stored_id(stamp, raw, "author") if stamp else None, moment(stamp or 0, frame.sent)
    return Quote(
        author=view.author(raw, "author"),
        message_id=quoted,
        text=mentioned(words(raw, "text"), raw, view.names) or named_in(raw),
        sent=sent if stamp else None,
        media=tuple(thumbnails_of(raw, SourceMessage(where=frame.where, message_id=quoted or own, sent=sent))),
    )


def _edit(frame: _Frame) -> Arrival:
    """The edit has the id of its edition, which later events may name."""
    target = frame.id_of(count(frame.edit, "targetSentTimestamp"))
    return as_edit(_said(frame, target), frame.id, frame.sent)


def _deletion(frame: _Frame, target: str, by: Author | None) -> Deletion:
    return Deletion(
        conversation=frame.where,
        id=f"{target}@{frame.stamp}",
        message_id=target,
        author=by,
        sent=frame.sent,
        chat_type=frame.chat_type,
    )


def _reaction(frame: _Frame, raw: Raw) -> Reaction:
    target = frame.view.stored_id(count(raw, "targetSentTimestamp"), raw, "targetAuthor")
    return Reaction(
        conversation=frame.where,
        id=f"{target}@{frame.writer.id}.{frame.stamp}",
        message_id=target,
        author=frame.writer,
        sent=frame.sent,
        emoji=words(raw, "emoji")[:64] or "?",
        added=not yes(raw, "isRemove"),
        chat_type=frame.chat_type,
        replaces=True,
    )


def _receipts(receipt: Raw, envelope: Raw, view: SignalParseContext) -> Iterator[DeliveryStatus]:
    """Receipts name the times of our messages; those of a group's members for one message are one.

    https://github.com/AsamK/signal-cli, JsonReceiptMessage.
    """
    read = yes(receipt, "isRead") or yes(receipt, "isViewed")
    state = DeliveryState.READ if read else DeliveryState.DELIVERED
    listed = receipt.get("timestamps")
    for stamp in listed[:MOST_RECEIPTS] if isinstance(listed, list) else ():
        own = view.aliases.get(str(stamp), str(stamp))
        if type(stamp) is int and 0 < stamp <= _LAST:
            yield DeliveryStatus(
                conversation=view.conversation({}, view.places.get(own) or address(envelope, "source")),
                id=f"{stamp}.{state}",
                message_id=own,
                sent=moment(count(receipt, "when") or 0, view.received),
                state=state,
            )


def _failed(envelope: Raw, failure: Raw, view: SignalParseContext) -> Unsupported:
    """A message that the daemon could not open; one under a new key it opens once that is trusted."""
    what = f"a message that signal-cli could not read ({line(failure, 'type', most=100) or 'unknown reason'})"
    if words(failure, "type") == CHANGED_KEY:
        who = view.author(envelope, "source").name
        what = f"a message under a new safety number of {who}, which is read once the number is trusted"
    return _unread(envelope, view, what, is_event=False)


def _unread(envelope: Raw, view: SignalParseContext, what: str, *, is_event: bool) -> Unsupported:
    stamp, other = count(envelope, "timestamp") or 0, address(envelope, "source")
    return Unsupported(
        conversation=view.conversation({}, other),
        id=f"envelope-{stamp}.{other or 'unknown'}",
        author=view.author(envelope, "source"),
        sent=moment(stamp, view.received),
        what=what,
        chat_type=ChatType.DIRECT if other else ChatType.CHANNEL,
        is_event=is_event,
        is_notice=True,
    )


def moment(stamp: int, otherwise: datetime) -> datetime:
    """Signal's milliseconds as a time."""
    return datetime.fromtimestamp(stamp / 1000, UTC) if 0 < stamp <= _LAST else otherwise


def context_to_json(view: SignalParseContext, payload: object) -> Mapping[str, object]:
    """The context of an event for a recording, reduced to what the event names."""
    told = json.dumps(payload)
    return {
        "me": {"number": view.me.number, "uuid": view.me.uuid},
        "names": {own: name for own, name in view.names.items() if own.removeprefix(GROUP) in told},
        "aliases": {own: first for own, first in view.aliases.items() if own.partition(".")[0] in told},
        "places": {own: channel for own, channel in view.places.items() if own in told},
    }


def context_from_json(raw: Mapping[str, object], view: SignalParseContext) -> SignalParseContext:
    """The context that `context_to_json` wrote."""
    me = SignalAccount(number=words(table(raw, "me"), "number"), uuid=words(table(raw, "me"), "uuid"))
    kept = {key: texts_by_key(table(raw, key)) for key in ("names", "aliases", "places")}
    return SignalParseContext(account=view.account, received=view.received, me=me, **kept)
