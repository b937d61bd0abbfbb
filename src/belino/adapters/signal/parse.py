"""Parse envelopes into arrivals: pure, fetches nothing, never fails; what it cannot read it reports as unsupported."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from belino.adapters.signal.authors import SignalAccount, address, author, chat_type, conversation, message_id
from belino.adapters.signal.content import is_notice, mentioned, text_of, what_it_is
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
from belino.net.json_fields import Raw, as_table, count, has, line, table, tables, words, yes

CHANGED_KEY = "UntrustedIdentityException"
_LAST = 253_402_300_799_000
# Housekeeping between devices, and what people are not told either.
_SILENT = ("typingMessage", "storyMessage")
MOST_RECEIPTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalParseContext:
    """What parsing an envelope needs to know besides it."""

    account: str
    me: SignalAccount
    received: datetime
    names: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The first id of messages that were edited, by the id of each edition."""
    places: Mapping[str, str] = field(default_factory=dict)
    """The channels of messages that we sent, by their id: receipts do not name their group."""

    def known(self, own: str) -> str:
        """The id under which a message is stored."""
        return self.aliases.get(own, own)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """One message in an envelope: by whom, where, and of what time."""

    raw: Raw
    view: SignalParseContext
    writer: Author
    envelope: Raw
    where: ConversationKey
    stamp: int

    @property
    def sent(self) -> datetime:
        return moment(self.stamp, self.view.received)

    def id_of(self, stamp: int) -> str:
        """The id of another message of this author."""
        return self.view.known(message_id(stamp, self.envelope, "source", self.view.me))

    @property
    def chat_type(self) -> ChatType:
        return chat_type(self.where)


def parse(payload: object, view: SignalParseContext) -> tuple[Arrival, ...]:
    """One event as arrivals; none for typing, stories and housekeeping between our own devices."""
    told = as_table(payload)
    envelope, failure = table(told, "envelope"), table(told, "exception")
    if failure:
        return (_failed(envelope, failure, view),)
    if data := table(envelope, "dataMessage"):
        return _arrivals(_received(envelope, data, view))
    if edit := table(envelope, "editMessage"):
        return (_edit(_received(envelope, table(edit, "dataMessage"), view), edit),)
    if receipt := table(envelope, "receiptMessage"):
        return tuple(_receipts(receipt, envelope, view))
    if sync := table(envelope, "syncMessage"):
        return _synced(envelope, sync, view)
    if any(has(envelope, key) for key in _SILENT):
        return ()
    what = "a call" if has(envelope, "callMessage") else "an envelope without content"
    return (_unread(envelope, view, what, is_event=not has(envelope, "callMessage")),)


def timer_of(payload: object, view: SignalParseContext) -> tuple[str, int] | None:
    """The channel of a message and its timer in seconds; None if the event says nothing about it."""
    envelope = table(as_table(payload), "envelope")
    sent = table(table(envelope, "syncMessage"), "sentMessage")
    data = table(envelope, "dataMessage") or sent
    seconds = count(data, "expiresInSeconds")
    if not data or seconds is None or has(data, "reaction") or has(data, "remoteDelete") or table(sent, "editMessage"):
        return None
    other = address(sent, "destination") if sent else address(envelope, "source")
    return conversation(view.account, data, other).channel, seconds


def edition_of(payload: object, view: SignalParseContext) -> tuple[str, str] | None:
    """The ids of an edition and of the message that it changes: later events may name either."""
    envelope = table(as_table(payload), "envelope")
    sent = table(table(envelope, "syncMessage"), "sentMessage")
    edit = table(envelope, "editMessage") or table(sent, "editMessage")
    stamp, target = count(table(edit, "dataMessage"), "timestamp"), count(edit, "targetSentTimestamp")
    if stamp is None or target is None:
        return None
    first = view.known(message_id(target, envelope, "source", view.me))
    return message_id(stamp, envelope, "source", view.me), first


def _received(envelope: Raw, data: Raw, view: SignalParseContext) -> _Frame:
    return _Frame(
        raw=data,
        view=view,
        writer=author(envelope, "source", view.me, view.names),
        envelope=envelope,
        where=conversation(view.account, data, address(envelope, "source") or "elsewhere"),
        stamp=count(data, "timestamp") or count(envelope, "timestamp") or 0,
    )


def _synced(envelope: Raw, sync: Raw, view: SignalParseContext) -> tuple[Arrival, ...]:
    """What another device of the account sent. To ourselves it is a note: then its author is a person."""
    sent = table(sync, "sentMessage")
    if not sent:
        return ()
    edit = table(sent, "editMessage")
    data = table(edit, "dataMessage") if edit else sent
    to_self = view.me.is_me(sent, "destination") and not table(data, "groupInfo")
    writer = author(envelope, "source", view.me, view.names)
    frame = _Frame(
        raw=data,
        view=view,
        writer=replace(writer, is_agent=not to_self),
        envelope=envelope,
        where=conversation(view.account, data, view.me.id if to_self else address(sent, "destination") or "elsewhere"),
        stamp=count(data, "timestamp") or count(envelope, "timestamp") or 0,
    )
    return (_edit(frame, edit),) if edit else _arrivals(frame)


def _arrivals(frame: _Frame) -> tuple[Arrival, ...]:
    raw, view = frame.raw, frame.view
    if (deleted := table(raw, "remoteDelete")) and (target := count(deleted, "timestamp")) is not None:
        return (_deletion(frame, frame.id_of(target), frame.writer),)
    if deleted := table(raw, "adminDelete"):
        target = count(deleted, "targetSentTimestamp")
        return (_deletion(frame, view.known(message_id(target, deleted, "targetAuthor", view.me)), None),)
    if reaction := table(raw, "reaction"):
        return (_reaction(frame, reaction),)
    return (_said(frame),)


def _said(frame: _Frame) -> Message | Unsupported:
    raw, view = frame.raw, frame.view
    text, own = text_of(raw, view.names), message_id(frame.stamp, frame.envelope, "source", view.me)
    source = SourceMessage(where=frame.where, message_id=own, sent=frame.sent, caption=words(raw, "message"))
    refs = () if yes(raw, "viewOnce") else refs_of(raw, source)
    quote = table(raw, "quote")
    direct = frame.chat_type is ChatType.DIRECT
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
        addressed=not frame.writer.is_agent and (direct or _names_me(frame)),
        reply_to=_quoted_id(quote, view) or None,
        quote=_quote(frame, quote, own),
        mentions_another=any(not view.me.is_me(mark) for mark in tables(raw, "mentions")),
        expires=view.received + timedelta(seconds=seconds) if seconds else None,
    )
    if not (text or refs):
        return as_unsupported(message, what_it_is(raw), is_notice=is_notice(raw))
    return message


def _channel_name(frame: _Frame) -> str | None:
    told = line(table(frame.raw, "groupInfo"), "groupName") or frame.view.names.get(frame.where.channel, "")
    if not told and frame.chat_type is ChatType.DIRECT and not frame.writer.is_agent:
        told = frame.writer.name
    return told or None


def _names_me(frame: _Frame) -> bool:
    """Whether a message in a group mentions us or answers us."""
    me = frame.view.me
    quoted = me.is_me(table(frame.raw, "quote"), "author")
    return quoted or any(me.is_me(mark) for mark in tables(frame.raw, "mentions"))


def _quoted_id(quote: Raw, view: SignalParseContext) -> str:
    stamp = count(quote, "id")
    return view.known(message_id(stamp, quote, "author", view.me)) if stamp else ""


def _quote(frame: _Frame, raw: Raw, own: str) -> Quote | None:
    """The quoted message, with the thumbnails that its quote carries."""
    view = frame.view
    if not raw:
        story = table(frame.raw, "storyContext")
        return Quote(author=author(story, "author", view.me, view.names), text="a story") if story else None
    stamp = count(raw, "id") or 0
    quoted, sent = _quoted_id(raw, view) or own, moment(stamp, frame.sent)
    source = SourceMessage(where=frame.where, message_id=quoted, sent=sent)
    refs = tuple(thumbnails_of(raw, source))
    text = mentioned(words(raw, "text"), raw, view.names)
    return Quote(
        author=author(raw, "author", view.me, view.names),
        message_id=_quoted_id(raw, view) or None,
        text=text or named_in(raw),
        sent=sent if stamp else None,
        media=refs,
    )


def _edit(frame: _Frame, edit: Raw) -> Arrival:
    target = frame.id_of(count(edit, "targetSentTimestamp") or 0)
    said = _said(frame)
    if isinstance(said, Message):
        media = tuple(replace(ref, message_id=target) for ref in said.media)
        said = replace(said, id=target, media=media)
    return as_edit(said, f"{target}@{frame.stamp}", frame.sent)


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
    view = frame.view
    target = view.known(message_id(count(raw, "targetSentTimestamp"), raw, "targetAuthor", view.me))
    return Reaction(
        conversation=frame.where,
        id=f"{target}@{frame.writer.id}.{frame.stamp}",
        message_id=target,
        author=frame.writer,
        sent=frame.sent,
        emoji=words(raw, "emoji")[:64] or "?",
        added=not yes(raw, "isRemove"),
        chat_type=frame.chat_type,
    )


def _receipts(receipt: Raw, envelope: Raw, view: SignalParseContext) -> Iterator[DeliveryStatus]:
    """Receipts name the times of our messages: https://github.com/AsamK/signal-cli, JsonReceiptMessage."""
    read = yes(receipt, "isRead") or yes(receipt, "isViewed")
    state = DeliveryState.READ if read else DeliveryState.DELIVERED
    reader = author(envelope, "source", view.me, view.names)
    stamps = receipt.get("timestamps")
    for stamp in stamps[:MOST_RECEIPTS] if isinstance(stamps, list) else ():
        if type(stamp) is not int or not 0 < stamp <= _LAST:
            continue
        own = view.known(str(stamp))
        where = conversation(view.account, {}, view.places.get(own) or reader.id)
        yield DeliveryStatus(
            conversation=where,
            id=f"{stamp}.{reader.id}.{state}",
            message_id=own,
            sent=moment(count(receipt, "when") or 0, view.received),
            state=state,
            author=reader,
        )


def _failed(envelope: Raw, failure: Raw, view: SignalParseContext) -> Unsupported:
    """A message that the daemon could not open; one under a new key it opens once that is trusted."""
    if words(failure, "type") == CHANGED_KEY:
        who = author(envelope, "source", view.me, view.names).name
        what = f"a message under a new safety number of {who}, which is read once the number is trusted"
    else:
        what = f"a message that signal-cli could not read ({line(failure, 'type', most=100) or 'unknown reason'})"
    return _unread(envelope, view, what, is_event=False)


def _unread(envelope: Raw, view: SignalParseContext, what: str, *, is_event: bool) -> Unsupported:
    stamp = count(envelope, "timestamp") or 0
    other = address(envelope, "source")
    where = conversation(view.account, {}, other or "elsewhere")
    return Unsupported(
        conversation=where,
        id=f"envelope-{stamp}.{other or 'unknown'}",
        author=author(envelope, "source", view.me, view.names),
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
        "names": {own: name for own, name in view.names.items() if own.removeprefix("group.") in told},
        "aliases": {own: first for own, first in view.aliases.items() if own.partition(".")[0] in told},
        "places": {own: channel for own, channel in view.places.items() if own in told},
    }


def context_from_json(told: Mapping[str, object], view: SignalParseContext) -> SignalParseContext:
    """The context that `context_to_json` wrote."""
    raw = as_table(dict(told))
    me = table(raw, "me")
    return replace(
        view,
        me=SignalAccount(number=words(me, "number"), uuid=words(me, "uuid")),
        names=_texts(raw, "names"),
        aliases=_texts(raw, "aliases"),
        places=_texts(raw, "places"),
    )


def _texts(raw: Raw, key: str) -> Mapping[str, str]:
    return {own: words(table(raw, key), own) for own in table(raw, key)}
