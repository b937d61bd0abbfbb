"""Gateway events as arrivals: pure, fetches nothing, never fails; what it cannot read it says."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from belino.adapters.discord.commands import command_of, is_command
from belino.adapters.discord.content import text_of
from belino.adapters.discord.files import Bearer, carried, refs_of, refs_of_all
from belino.adapters.discord.people import (
    SOMEBODY,
    Me,
    Places,
    author_of,
    channel_name,
    chat_type,
    conversation,
    user,
)
from belino.adapters.discord.raw import identities, identity, made_at, moment
from belino.adapters.discord.wordless import FORWARD, SAID, kind_of_event, what_it_is
from belino.domain.message import (
    Arrival,
    Author,
    ChatType,
    ConversationKey,
    Deletion,
    Edit,
    Message,
    Quote,
    Reaction,
    Unsupported,
)
from belino.net.raw import Raw, as_table, count, line, table, tables, whole, words

# What tells of servers, channels, people and calls; nothing in it was said to anybody.
_QUIET = (
    "READY RESUMED GUILD_ CHANNEL_ THREAD_ USER_ TYPING_ PRESENCE VOICE_ STAGE_ INTEGRATION_ INVITE_ WEBHOOKS_ AUTO_"
    " ENTITLEMENT_ SUBSCRIPTION_ SOUNDBOARD_ APPLICATION_ RATE_LIMITED MESSAGE_POLL_VOTE_"
)
_QUIET_BEGINNINGS = tuple(_QUIET.split())
MENTION = re.compile(r"<@!?(\d{1,20})>")
LOADING = 1 << 7
UNFINISHED = (1, 4)
"""The types of interactions nobody gave yet: a ping, and a command that is still being typed."""
ANSWERS = frozenset({20, 23})
"""The types of what bots answer to slash and menu commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What an event is read with: whose account, which bot, which channels, and when it reached us."""

    account: str
    me: Me
    places: Places
    received: datetime
    session: str = ""

    def number(self, event: Raw) -> str:
        """What tells an event from every other, and is the same when it is told again: each session counts anew."""
        number = whole(event, "s")
        return f"{self.received.timestamp():.6f}" if number is None else f"{self.session[:8]}{number}"

    def where(self, raw: Raw) -> ConversationKey:
        return conversation(self.account, identity(raw, "channel_id"), self.places)


def is_news(event: object) -> bool:
    """Whether an event tells what people said or did. A preview that Discord adds to a message later does not."""
    raw = as_table(event)
    name, told = words(raw, "t"), table(raw, "d")
    if name == "MESSAGE_UPDATE":
        edited = moment(told, "edited_timestamp") is not None and "content" in told
        return edited or _is_late(told)
    if name == "MESSAGE_CREATE":
        return not (count(told, "flags") or 0) & LOADING
    if name == "INTERACTION_CREATE":
        return count(told, "type") not in UNFINISHED
    return bool(name) and not name.startswith(_QUIET_BEGINNINGS)


def parse(event: object, known: Known) -> tuple[Arrival, ...]:
    """One event of the gateway as arrivals, at least one: what we cannot read is Unsupported and names what it was."""
    raw = as_table(event)
    told = table(raw, "d")
    found: tuple[Arrival, ...] = ()
    match words(raw, "t"):
        case "MESSAGE_CREATE" if told:
            found = (parse_message(told, known),)
        case "MESSAGE_UPDATE" if _is_late(told):
            found = (parse_message(told, known),)
        case "MESSAGE_UPDATE" if is_news(raw):
            found = (_edited(told, known),)
        case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
            found = tuple(_deletions(told, known))
        case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE" as name:
            found = tuple(_reactions(raw, told, known, added=name.endswith("ADD")))
        case "INTERACTION_CREATE" if is_command(told):
            found = (command_of(told, known.where(told), known.me, known.places, known.received),)
    return found or (_unread(raw, told, known),)


def _is_late(message: Raw) -> bool:
    """Whether an update is the answer to a command, which another bot was still thinking about when it was told of.

    It may have been told at once, and only its preview be new; then it is the same message again.
    """
    thinks = (count(message, "flags") or 0) & LOADING
    return count(message, "type") in ANSWERS and not thinks and moment(message, "edited_timestamp") is None


def parse_message(raw: Raw, known: Known) -> Message | Unsupported:
    """One message, as the gateway or a call for history tells it."""
    where, channel, own = known.where(raw), identity(raw, "channel_id"), identity(raw, "id") or "unnamed"
    author, sort, name = author_of(raw, known.me), chat_type(raw, known.places), channel_name(channel, known.places)
    sent, addressed = _sent(raw, known), _is_addressed(raw, known)
    text = text_of(raw, known.places, known.me)
    refs = refs_of(raw, Bearer(where=where, channel=channel, message_id=own, sent=sent))
    forward = _forward(raw, known)
    shows = text or refs or (forward is not None and (forward.text or forward.media))
    if (count(raw, "type") or 0) not in SAID or not shows:
        return Unsupported(
            conversation=where,
            id=own,
            author=author,
            sent=sent,
            what=what_it_is(raw),
            chat_type=sort,
            channel_name=name,
            addressed=addressed and sort is ChatType.DIRECT,
        )
    return Message(
        conversation=where,
        id=own,
        author=author,
        sent=sent,
        text=text,
        media=refs,
        chat_type=sort,
        channel_name=name,
        addressed=addressed,
        reply_to=_replied_to(raw) or None,
        quote=_quote(raw, known),
        forward=forward,
        edited=moment(raw, "edited_timestamp"),
    )


def _edited(raw: Raw, known: Known) -> Edit | Unsupported:
    said, edited = parse_message(raw, known), moment(raw, "edited_timestamp") or known.received
    own = f"{said.id}@{edited.timestamp():.6f}"
    if isinstance(said, Unsupported):
        return replace(said, id=own, what=f"an edit: {said.what}", addressed=False)
    return Edit(
        conversation=said.conversation,
        id=own,
        message_id=said.id,
        author=said.author,
        sent=edited,
        text=said.text,
        media=said.media,
        chat_type=said.chat_type,
    )


def _deletions(raw: Raw, known: Known) -> Iterator[Deletion]:
    """Discord does not say who deleted a message, or when."""
    for own in identities(raw, "ids") or ((identity(raw, "id"),) if identity(raw, "id") else ()):
        yield Deletion(
            conversation=known.where(raw), id=f"{own}@deleted", message_id=own, author=None, sent=known.received
        )


def _reactions(event: Raw, raw: Raw, known: Known, *, added: bool) -> Iterator[Reaction]:
    message, emoji, by = identity(raw, "message_id"), table(raw, "emoji"), identity(raw, "user_id")
    if not message or not by:
        return
    member = table(raw, "member")
    told = {**table(member, "user"), "id": by}
    name = line(emoji, "name", most=64) or "unknown"
    custom = identity(emoji, "id")
    yield Reaction(
        conversation=known.where(raw),
        # The same emoji may come and go: the event's number tells one time from the next.
        id=f"{message}.{by}.{custom or name}.{known.number(event)}",
        message_id=message,
        author=user(told, known.me, member=member) or SOMEBODY,
        sent=known.received,
        emoji=f":{name}:" if custom else name,
        added=added,
    )


def _unread(event: Raw, raw: Raw, known: Known) -> Unsupported:
    """An event we do not know, or one that is none of ours to tell."""
    by = table(table(raw, "member"), "user") or table(raw, "user") or table(raw, "author")
    return Unsupported(
        conversation=known.where(raw),
        id=f"event-{identity(raw, 'id') or identity(raw, 'message_id')}-{known.number(event)}",
        author=user(by, known.me) or SOMEBODY,
        sent=known.received,
        what=kind_of_event(event),
        # Without a channel nobody spoke to us anywhere: never the start of a direct conversation.
        chat_type=chat_type(raw, known.places),
        channel_name=channel_name(identity(raw, "channel_id"), known.places),
    )


def _sent(raw: Raw, known: Known) -> datetime:
    return moment(raw, "timestamp") or made_at(identity(raw, "id")) or known.received


def _replied_to(raw: Raw) -> str:
    """The message this one answers, in the same channel; what was taken over from another server answers nothing."""
    reference = table(raw, "message_reference")
    here = identity(reference, "channel_id") in ("", identity(raw, "channel_id"))
    return identity(reference, "message_id") if here and count(reference, "type") != FORWARD else ""


def _quote(raw: Raw, known: Known) -> Quote | None:
    """What a message answers, with its files, which are the same items as when that message came itself."""
    answered, own = table(raw, "referenced_message"), _replied_to(raw)
    if not own:
        return None
    if not answered:
        return Quote(message_id=own)
    channel = identity(answered, "channel_id") or identity(raw, "channel_id")
    bearer = Bearer(where=known.where(raw), channel=channel, message_id=own, sent=_sent(answered, known))
    return Quote(
        author=author_of(answered, known.me),
        message_id=own,
        text=_said_in((answered, *carried(answered)), known),
        sent=moment(answered, "timestamp"),
        media=refs_of_all((answered, *carried(answered)), bearer),
    )


def _forward(raw: Raw, known: Known) -> Quote | None:
    """The message carried inside, of which Discord says where it was said, and not by whom.

    Its files come with the message that brings it.
    """
    inside = carried(raw)
    if not inside:
        return None
    own = identity(raw, "id") or "unnamed"
    bearer = Bearer(where=known.where(raw), channel=identity(raw, "channel_id"), message_id=own, sent=_sent(raw, known))
    return Quote(
        author=_origin(raw, known),
        message_id=identity(table(raw, "message_reference"), "message_id") or None,
        text=_said_in(inside, known),
        sent=moment(inside[0], "timestamp"),
        media=refs_of_all(inside, bearer),
    )


def _said_in(messages: tuple[Raw, ...], known: Known) -> str:
    return "\n".join(filter(None, (text_of(each, known.places, known.me) for each in messages)))


def _origin(raw: Raw, known: Known) -> Author | None:
    """The channel a forward comes from, if it is in the same server: of others not even the name is told."""
    reference = table(raw, "message_reference")
    channel, guild = identity(reference, "channel_id"), identity(reference, "guild_id")
    place = known.places.get(channel)
    if place is None or not place.name or not guild or guild != identity(raw, "guild_id"):
        return None
    return Author(id=channel, name=f"#{place.name}")


def _is_addressed(raw: Raw, known: Known) -> bool:
    """Whether a message speaks to this bot: in private, by its name or role, or by answering it."""
    me = known.me
    if chat_type(raw, known.places) is ChatType.DIRECT:
        return True
    if not me.id:
        return False
    named = {identity(each, "id") for each in tables(raw, "mentions")}
    if "mentions" not in raw:
        named |= set(MENTION.findall(words(raw, "content")))
    answered = identity(table(table(raw, "referenced_message"), "author"), "id") if _replied_to(raw) else ""
    return me.id in named or answered == me.id or not me.roles.isdisjoint(identities(raw, "mention_roles"))
