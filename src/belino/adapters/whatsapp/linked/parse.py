"""Parse events of a linked device: WhatsApp's own messages as JSON in, arrivals out; pure.

An address is `number@s.whatsapp.net`, `id@lid` where people hide their number, or `id@g.us`, a group. Of a person an
event may bring both: the number is then their id. The id of a message here is WhatsApp's, and after a dot who wrote it:
a number, `L` and a hidden id, or `me`; nothing for the other person of a direct chat.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from belino.adapters.whatsapp.linked.content import VIEW_ONCE, media_refs, text_of, unwrapped, what_is_in
from belino.domain.errors import Undeliverable
from belino.domain.message import (
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
    SourceMessage,
    Unsupported,
    as_unsupported,
    edit_of,
)
from belino.net.json_fields import NOTHING, Raw, as_table, count, has, line, table, tables, texts, unix_time, words, yes

PLATFORM = "whatsapp"
PEOPLE, HIDDEN, GROUPS = "@s.whatsapp.net", "@lid", "@g.us"
OWN = "me"
_STATES = {"DELIVERED": DeliveryState.DELIVERED, "READ": DeliveryState.READ, "PLAYED": DeliveryState.READ}
_MEMBERS = {"Join": "someone joined", "Leave": "someone left", "Name": "the group has a new name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedView:
    """What parsing must know: the account, its number and hidden id as addresses, and the names of groups."""

    account: str = "default"
    me: str = ""
    lid: str = ""
    groups: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def is_me(self, address: str) -> bool:
        return bool(address) and address in (self.me, self.lid)

    def author_of(self, message_id: str, chat: str) -> str:
        """The address of a message's author, by its id."""
        author = message_id.partition(".")[2]
        if author == OWN:
            return self.me
        return f"{author[1:]}{HIDDEN}" if author.startswith("L") else f"{author}{PEOPLE}" if author else chat


def id_of(address: str) -> str:
    """The id of a channel or person here: a number alone, everything else with its server."""
    return address.removesuffix(PEOPLE)


def address_of(own_id: str) -> str:
    """The address of a channel or person; without the device that a message may name."""
    user, at, server = own_id.partition("@")
    return f"{user.partition(':')[0]}{at}{server}" if at else f"{user}{PEOPLE}"


def chat_of(conversation: ConversationKey) -> str:
    """The address of a conversation."""
    chat = address_of(conversation.channel)
    if not chat.endswith((PEOPLE, HIDDEN, GROUPS)):
        raise Undeliverable("this conversation is no chat of WhatsApp")
    return chat


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame(Origin):
    """The origin of an event, with WhatsApp's own addresses."""

    view: LinkedView
    chat: str
    sender: str
    is_own: bool

    def name_of(self, stanza: str, author: str) -> str:
        """The id of a message of this chat, by its author."""
        if self.view.is_me(author):
            return f"{stanza}.{OWN}"
        user = f"{'L' if author.endswith(HIDDEN) else ''}{author.partition('@')[0]}"
        return f"{stanza}.{user}" if self.chat_type is ChatType.GROUP else stanza

    def named(self, key: Raw) -> str:
        """The id of the message that a key names, as the sender of this event sees it."""
        by_other = address_of(words(key, "participant")) if has(key, "participant") else ""
        by_other = by_other or (self.chat if self.is_own else self.view.me)
        return self.name_of(words(key, "ID"), self.sender if yes(key, "fromMe") else by_other)


def parse(event: Raw, view: LinkedView) -> Sequence[Arrival]:
    """The arrivals of an event; those of `history` are messages from before."""
    told, name = table(event, "data"), words(event, "event")
    if name in ("message", "history"):
        return tuple(_said(each, view) for each in (tables(told, "messages") if name == "history" else (told,)))
    if name in ("group", "joined"):
        return (_membership(told, view),)
    if name == "undecryptable":
        says = "a message that this device cannot read, such as one to be viewed once: open it on the phone"
        return (as_unsupported(_message(NOTHING, _frame(table(told, "Info"), view)), says),)
    return tuple(_statuses(told, _frame(told, view))) if name == "receipt" else ()


def _frame(info: Raw, view: LinkedView) -> _Frame:
    source, is_own = table(info, "MessageSource"), yes(table(info, "MessageSource"), "IsFromMe")
    chat, sender = words(source, "Chat"), view.me if is_own else words(source, "Sender")
    person = next((each for each in (sender, words(source, "SenderAlt")) if each.endswith(PEOPLE)), sender)
    alternative = words(source, "RecipientAlt") if is_own else person
    peer = alternative if chat.endswith(HIDDEN) and alternative.endswith(PEOPLE) else chat
    # To others, what the owner writes on the phone is the agent's; a chat with oneself is where the owner asks it.
    is_agent = is_own and not view.is_me(chat) and not view.is_me(peer)
    return _Frame(
        view=view,
        chat=chat,
        sender=sender,
        where=ConversationKey(platform=PLATFORM, account=view.account, channel=id_of(peer) or "unknown"),
        author=Author(id=id_of(person) or "unknown", name=line(info, "Pushname") or UNKNOWN_NAME, is_agent=is_agent),
        chat_type=ChatType.GROUP if chat.endswith(GROUPS) else ChatType.DIRECT,
        is_own=is_own,
        own_id=words(info, "ID"),
        sent=datetime.fromtimestamp(min((count(info, "Timestamp") or 0) / 1000, 253_402_300_799), UTC),
    )


def _said(told: Raw, view: LinkedView) -> Arrival:
    frame, (content, once) = _frame(table(told, "Info"), view), unwrapped(table(told, "Message"))
    if not frame.chat.endswith((PEOPLE, HIDDEN, GROUPS)):
        return replace(as_unsupported(_message(NOTHING, frame), "a status, or a post in a channel"), is_event=True)
    if protocol := table(content, "protocolMessage"):
        return _protocol(protocol, frame)
    if reaction := table(content, "reactionMessage"):
        return frame.reaction(frame.named(table(reaction, "key")), words(reaction, "text"))
    message = _message(content, frame, once=once or any(yes(told, flag) for flag in VIEW_ONCE))
    if message.text or message.media or message.forward:
        return message
    what, is_event = what_is_in(content)
    return replace(as_unsupported(message, what), is_event=is_event)


def _message(content: Raw, frame: _Frame, *, once: bool = False) -> Message:
    view, parts = frame.view, [table(as_table(part), "contextInfo") for part in content.values()]
    around = next((part for part in parts if part), NOTHING)
    own_id, text, quote = frame.name_of(frame.own_id, frame.sender), text_of(content), _quote(around, frame)
    mentioned = [address_of(each) for each in texts(around, "mentionedJID")]
    names_me = any(view.is_me(each) for each in mentioned)
    media = media_refs(content, SourceMessage(where=frame.where, message_id=own_id, sent=frame.sent), once=once)
    forward = Quote(text=text, media=media) if yes(around, "isForwarded") and (text or media) else None
    answers_me = quote is not None and (quote.message_id or "").endswith(f".{OWN}")
    seconds = count(around, "expiration")
    return replace(
        frame.message("" if forward else text, () if forward else media),
        id=own_id,
        channel_name=view.groups.get(frame.chat),
        addressed=frame.chat_type is ChatType.DIRECT or names_me or answers_me,
        reply_to=None if quote is None else quote.message_id,
        quote=quote,
        forward=forward,
        album=_album(content, frame),
        mentions_another=bool(mentioned) and not names_me,
        expires=frame.sent + timedelta(seconds=seconds) if seconds else None,
    )


def _quote(around: Raw, frame: _Frame) -> Quote | None:
    if not (stanza := words(around, "stanzaID")):
        return None
    who, (content, once) = address_of(words(around, "participant")), unwrapped(table(around, "quotedMessage"))
    source = SourceMessage(where=frame.where, message_id=frame.name_of(stanza, who), sent=frame.sent)
    named = id_of(frame.view.me if frame.view.is_me(who) else who)
    author = Author(id=named, name=UNKNOWN_NAME) if words(around, "participant") else None
    refs = media_refs(content, source, once=once)
    return Quote(author=author, message_id=source.message_id, text=text_of(content), media=refs)


def _album(content: Raw, frame: _Frame) -> str | None:
    association = table(table(content, "messageContextInfo"), "messageAssociation")
    is_item = words(association, "associationType") == "MEDIA_ALBUM"
    return frame.named(table(association, "parentMessageKey")) if is_item else None


def _protocol(protocol: Raw, frame: _Frame) -> Arrival:
    about, kind, empty = frame.named(table(protocol, "key")), words(protocol, "type"), _message(NOTHING, frame)
    content, _ = unwrapped(table(protocol, "editedMessage"))
    if kind == "MESSAGE_EDIT" and content:
        return edit_of(replace(_message(content, frame), id=about), frame.own_id, frame.sent)
    if kind in ("", "REVOKE") and has(protocol, "key"):  # the first of its kinds is left out
        return frame.deletion(about)
    if kind == "EPHEMERAL_SETTING":
        return as_unsupported(empty, "the timer of disappearing messages was set", is_notice=True)
    return replace(as_unsupported(empty, "a message between devices"), is_event=True)


def _statuses(told: Raw, frame: _Frame) -> Iterator[DeliveryStatus]:
    """What became of messages of ours; what was read on the phone is no news."""
    state = _STATES.get(words(told, "Type") or "DELIVERED")
    for stanza in texts(told, "MessageIDs") if state is not None and not frame.is_own else ():
        report = replace(frame, own_id=f"{stanza}.{state}", sent=unix_time(told, "Timestamp"))  # one for all of a group
        yield report.status(f"{stanza}.{OWN}", state or DeliveryState.DELIVERED)


def _membership(told: Raw, view: LinkedView) -> Unsupported:
    """A change of a group; one that concerns us says whether the agent is in it."""
    group = table(told, "GroupInfo") or told
    address = words(group, "JID")
    joined = has(told, "GroupInfo") or any(view.is_me(each) for each in texts(told, "Join"))
    left = any(view.is_me(each) for each in texts(told, "Leave"))
    named = words(told, "SenderPN") or words(told, "Sender")
    what = next((says for key, says in _MEMBERS.items() if told.get(key)), "the group was changed")
    stamp = words(told, "ParticipantVersionID") or words(told, "CreateKey") or count(told, "Timestamp")
    return Unsupported(
        conversation=ConversationKey(platform=PLATFORM, account=view.account, channel=address or "unknown"),
        id=f"group.{stamp}",
        author=Author(id=id_of(named) or "unknown", name=UNKNOWN_NAME),
        sent=unix_time(told, "Timestamp"),
        what="the agent was added to the group" if joined else "the agent left the group" if left else what,
        chat_type=ChatType.GROUP,
        channel_name=line(table(group, "GroupName") or table(told, "Name"), "Name") or view.groups.get(address),
        is_notice=True,
        presence=Presence.ADDED if joined else Presence.REMOVED if left else None,
    )
