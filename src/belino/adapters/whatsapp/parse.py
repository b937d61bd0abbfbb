"""Parse webhooks into arrivals: pure, fetches nothing, never fails; what it cannot read it reports as unsupported."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from belino.adapters.whatsapp.content import group_event, text_of, what_it_is
from belino.adapters.whatsapp.errors import FAILURES, in_words
from belino.adapters.whatsapp.media import refs_of
from belino.domain.message import (
    SERVER,
    UNKNOWN_AUTHOR,
    UNKNOWN_NAME,
    Arrival,
    Author,
    ChatType,
    ConversationKey,
    DeliveryState,
    DeliveryStatus,
    Message,
    Origin,
    Presence,
    Quote,
    Unsupported,
    as_edit,
    as_unsupported,
)
from belino.net.json_fields import Raw, as_table, line, table, tables, whole, words, yes
from belino.net.message_lines import joined

PLATFORM = "whatsapp"
_STATES = {
    "sent": DeliveryState.SENT,
    "delivered": DeliveryState.DELIVERED,
    "read": DeliveryState.READ,
    "played": DeliveryState.READ,
    "failed": DeliveryState.FAILED,
}
_PRESENCE = {"group_create": Presence.ADDED, "group_delete": Presence.REMOVED}
_MENTION = re.compile(r"(?<!\w)@([0-9]{7,})\b")
_ECHOES = ("message_echoes", "smb_message_echoes")


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudNumber:
    """Our own phone number: Meta's id of it, its digits, and its name."""

    id: str
    digits: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudParseContext:
    """What parsing needs to know: the account, our number, when it was received, and what can be sent otherwise."""

    account: str
    me: CloudNumber
    received: datetime
    texts: frozenset[str] = frozenset()  # the ids of our messages that can be sent as a template

    def conversation(self, channel: str) -> ConversationKey:
        return ConversationKey(platform=PLATFORM, account=self.account, channel=channel)

    def when(self, raw: Raw) -> datetime:
        """The time of an item, which Meta writes as text; without one, the time it was received."""
        at = words(raw, "timestamp")
        is_time = at.isascii() and at.isdigit() and len(at) < 12
        return datetime.fromtimestamp(int(at), UTC) if is_time else self.received


def parse(payload: object, view: CloudParseContext) -> tuple[Arrival, ...]:
    """A webhook's arrivals, at least one: what is not known is Unsupported."""
    raw, found = as_table(payload), list[Arrival]()
    for owner, change in _changes(raw):
        found += _change(change, owner, view) or (_event(change, owner, view),)
    return tuple(found) or (_event(raw, words(raw, "object"), view),)


def _changes(payload: Raw) -> Iterator[tuple[str, Raw]]:
    """The changes in a webhook, each with the id of its account."""
    for entry in tables(payload, "entry"):
        yield from ((words(entry, "id"), change) for change in tables(entry, "changes"))


def notes(payload: Raw, me: CloudNumber) -> Iterator[tuple[str, str]]:
    """What the operator should know of a webhook: events of other numbers, and restrictions of the account."""
    for _, change in _changes(payload):
        value = table(change, "value")
        number, event = words(table(value, "metadata"), "phone_number_id"), line(value, "event", most=64)
        if number and number != me.id:
            says = f"events of the phone number {number[:32]} come here and are not read"
            yield "other numbers", f"{says}; give it an account of its own with public_url"
        if words(change, "field") == "account_update" and event:
            kinds = joined(*(line(each, "restriction_type", most=64) for each in tables(value, "restriction_info")))
            news = joined(event, kinds, by=": ").lower().replace("_", " ")
            yield "account", f"Meta reports {news}; see WhatsApp Manager"


def _change(change: Raw, owner: str, view: CloudParseContext) -> tuple[Arrival, ...]:
    value, field_name = table(change, "value"), words(change, "field")
    number = words(table(value, "metadata"), "phone_number_id")
    if number and number != view.me.id:
        what = f"an event of the phone number {number[:32]}, which is not this account's"
        return (_event(change, owner, view, what=what),)
    people = _people(value)
    found: list[Arrival] = [_incoming(message, people, view) for message in tables(value, "messages")]
    for key in _ECHOES:
        found += [_echo(message, view) for message in tables(value, key)]
    found += [_status(status, view) for status in tables(value, "statuses")]
    if field_name.startswith("group_"):
        found += [_group(group, view) for group in tables(value, "groups")]
    found += [_event(error, owner, view, what=f"an error: {in_words(error)}") for error in tables(value, "errors")]
    return tuple(found)


def _event(raw: Raw, owner: str, view: CloudParseContext, *, what: str = "") -> Unsupported:
    """An event about the account as a whole, or one that is not known."""
    written = json.dumps(raw, sort_keys=True, default=str, ensure_ascii=True)
    kind = line(raw, "field", most=64).replace("_", " ")
    origin = Origin(
        where=view.conversation(f"{SERVER}{owner[:64] or 'unknown'}"),
        own_id=f"event-{hashlib.sha256(written.encode()).hexdigest()[:24]}",
        author=UNKNOWN_AUTHOR,
        sent=view.received,
        chat_type=ChatType.CHANNEL,
    )
    return origin.report(what or (f"an event of the kind {kind}" if kind else "a call of unknown form"), is_event=True)


def _people(value: Raw) -> Mapping[str, Author]:
    """The people of a webhook, by each of their ids."""
    found: dict[str, Author] = {}
    for contact in tables(value, "contacts"):
        profile = table(contact, "profile")
        for own in filter(None, (words(contact, "wa_id"), words(contact, "user_id"))):
            name, user = line(profile, "name"), line(profile, "username")
            found[own] = Author(id=own, name=name or user or own, other_names=(user,) if user and name else ())
    return found


def _sender(message: Raw, people: Mapping[str, Author]) -> Author:
    """The sender, by the phone number; people who hide it have an id of Meta's for this business."""
    own = words(message, "from") or words(message, "from_user_id")
    return people.get(own) or (Author(id=own, name=own) if own else UNKNOWN_AUTHOR)


def _incoming(raw: Raw, people: Mapping[str, Author], view: CloudParseContext) -> Arrival:
    author, group = _sender(raw, people), words(raw, "group_id")
    return _said(raw, _origin(raw, group or author.id, author, view, is_group=bool(group)), view.me)


def _said(raw: Raw, origin: Origin, me: CloudNumber) -> Arrival:
    kind = words(raw, "type")
    content = table(raw, kind)
    match kind:
        case "reaction" if target := words(content, "message_id"):
            return origin.reaction(target, words(content, "emoji"))
        case "revoke" if target := words(content, "original_message_id"):
            return origin.deletion(target)
        case "edit" if target := words(content, "original_message_id"):
            now = _message(table(content, "message"), replace(origin, own_id=target), me)
            return as_edit(now, origin.own_id, origin.sent)
    return _message(raw, origin, me)


def _message(raw: Raw, origin: Origin, me: CloudNumber) -> Message | Unsupported:
    text, context, is_direct = text_of(raw), table(raw, "context"), origin.chat_type is ChatType.DIRECT
    refs = refs_of(raw, origin.source)
    is_forwarded = yes(context, "forwarded") or yes(context, "frequently_forwarded")
    named = set(_MENTION.findall(text))
    answers_me = bool(me.digits) and words(context, "from") == me.digits
    message = replace(
        origin.message(text, refs),
        channel_name=origin.author.name if is_direct and origin.author.name != UNKNOWN_NAME else None,
        addressed=is_direct or answers_me or me.digits in named,
        reply_to=words(context, "id") or None,
        forward=Quote() if is_forwarded else None,
        mentions_another=not is_direct and bool(named - {me.digits}),
    )
    if tables(raw, "errors") or not (text or refs):
        return as_unsupported(message, what_it_is(raw), is_notice=words(raw, "type") in ("system", "request_welcome"))
    return message


def _echo(raw: Raw, view: CloudParseContext) -> Arrival:
    """What a person of the business did in WhatsApp's own app."""
    to = words(raw, "to") or words(raw, "to_user_id") or UNKNOWN_AUTHOR.id
    own = words(raw, "from") or view.me.digits or UNKNOWN_AUTHOR.id
    said = _said(raw, _origin(raw, to, Author(id=own, name=view.me.name or own), view), view.me)
    return replace(said, addressed=False, channel_name=None) if isinstance(said, Message | Unsupported) else said


def _origin(raw: Raw, channel: str, author: Author, view: CloudParseContext, *, is_group: bool = False) -> Origin:
    return Origin(
        where=view.conversation(channel),
        own_id=words(raw, "id") or _event(raw, channel, view).id,
        author=author,
        sent=view.when(raw),
        chat_type=ChatType.GROUP if is_group else ChatType.DIRECT,
    )


def _status(raw: Raw, view: CloudParseContext) -> DeliveryStatus | Unsupported:
    """A report about a message of ours; in a group there is one for each person."""
    own, status = words(raw, "id"), words(raw, "status")
    channel = words(raw, "recipient_id") or words(raw, "recipient_user_id")
    state = _STATES.get(status)
    if not own or not channel or state is None:
        return _event(raw, channel, view, what=f"a status of the kind {line(raw, 'status', most=64) or 'unknown'}")
    person = words(raw, "recipient_participant_id") or words(raw, "recipient_participant_user_id")
    errors = tables(raw, "errors")
    if state is DeliveryState.FAILED and errors:
        state = FAILURES.get(whole(errors[0], "code") or 0, state)
        if own in view.texts and state in (DeliveryState.WINDOW_CLOSED, DeliveryState.HELD):
            state = DeliveryState.AGAIN
    return DeliveryStatus(
        conversation=view.conversation(channel),
        id=":".join(filter(None, (own, status, person))),
        message_id=own,
        sent=view.when(raw),
        state=state,
        reason=in_words(errors[0]) if errors else "",
    )


def _group(raw: Raw, view: CloudParseContext) -> Unsupported:
    """A change of a group, of which only its creation and its end are about ourselves."""
    group, failed = words(raw, "group_id"), bool(tables(raw, "errors"))
    return replace(
        _event(raw, group, view, what=group_event(raw)),
        conversation=view.conversation(group or f"{SERVER}groups"),
        sent=view.when(raw),
        chat_type=ChatType.GROUP,
        channel_name=line(raw, "subject") or None,
        is_notice=True,
        presence=None if failed or not group else _PRESENCE.get(words(raw, "type")),
    )
