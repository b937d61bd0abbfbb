"""Parse gateway events and commands into arrivals: pure, fetches nothing, never fails."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from belino.adapters.discord.authors import (
    PLATFORM,
    DiscordBot,
    DiscordChannel,
    DiscordChannels,
    as_identity,
    author_of,
    channel_name,
    chat_type,
    conversation,
    identities,
    identity,
    made_at,
    name_of,
    server_of,
    user,
)
from belino.adapters.discord.content import FORWARD, SAID, is_notice, kind_of_event, text_of, what_it_is
from belino.adapters.discord.media import UPLOADED, DiscordSource, attachment_ref, carried, refs_of, refs_of_all
from belino.domain.choice import KEY
from belino.domain.commands import parse_command
from belino.domain.media import MediaRef
from belino.domain.message import (
    SERVER,
    UNKNOWN_AUTHOR,
    Arrival,
    Author,
    ChatType,
    ConversationKey,
    Deletion,
    Edit,
    Message,
    Presence,
    Quote,
    Reaction,
    ThreadReport,
    Unsupported,
    as_edit,
    as_unsupported,
)
from belino.net.json_fields import Raw, as_table, count, iso_time, line, table, tables, whole, words, yes

# Events about servers, channels, members and calls, which are not messages.
_QUIET = (
    "READY RESUMED GUILD_ CHANNEL_ THREAD_ USER_ TYPING_ PRESENCE VOICE_ STAGE_ INTEGRATION_ INVITE_ WEBHOOKS_ AUTO_"
    " ENTITLEMENT_ SUBSCRIPTION_ SOUNDBOARD_ APPLICATION_ RATE_LIMITED MESSAGE_POLL_VOTE_"
)
_QUIET_BEGINNINGS = tuple(_QUIET.split())
MENTION = re.compile(r"<@!?(\d{1,20})>")
LOADING = 1 << 7
UNFINISHED = (1, 4)
"""Interaction types that are not complete commands: a ping, and autocompletion."""
ANSWERS = frozenset({20, 23})
"""Message types of answers to slash and menu commands."""

JUST_ADDED = timedelta(days=1)
"""How long ago the bot may have been added, if it was not connected then."""
COMMAND, COMPONENT = 2, 3
MOST_OPTIONS = 25
ON_PERSON, ON_MESSAGE = 2, 3
NAMING = frozenset({6, 7, 8, 9, 11})
"""Option types that hold an id: of a user, a channel, a role, one of these, a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordParseContext:
    """What parsing an event needs to know: account, bot, channels, and when it was received."""

    account: str
    me: DiscordBot
    channels: DiscordChannels
    received: datetime
    session: str = ""

    def number(self, event: Raw) -> str:
        """A number that is unique and the same on redelivery: each session counts from one."""
        number = whole(event, "s")
        return f"{self.received.timestamp():.6f}" if number is None else f"{self.session[:8]}{number}"

    def where(self, raw: Raw) -> ConversationKey:
        return conversation(self.account, identity(raw, "channel_id"), self.channels)


def is_news(event: object) -> bool:
    """Whether an event reports what people said or did. A preview that Discord adds later does not count."""
    raw = as_table(event)
    name, told = words(raw, "t"), table(raw, "d")
    if name == "MESSAGE_UPDATE":
        edited = iso_time(told, "edited_timestamp") is not None and "content" in told
        return edited or _is_late(told)
    if name == "MESSAGE_CREATE":
        return not (count(told, "flags") or 0) & LOADING
    if name == "INTERACTION_CREATE":
        return count(told, "type") not in UNFINISHED
    return bool(name) and not name.startswith(_QUIET_BEGINNINGS)


def parse(event: object, known: DiscordParseContext) -> tuple[Arrival, ...]:
    """One gateway event as arrivals, at least one: an unreadable event is Unsupported, with its type."""
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
            found = (command_of(told, known.where(told), known.me, known.channels, known.received),)
        case "INTERACTION_CREATE" if is_press(told):
            found = (_press(told, known),)
        case "GUILD_CREATE" | "GUILD_DELETE" if is_membership(raw, known.received):
            found = (_membership(raw, told, known),)
    return found or (_unread(raw, told, known),)


def is_membership(event: object, received: datetime) -> bool:
    """Whether an event says that the bot was just added to a server, or removed from it.

    Discord sends GUILD_CREATE for every server at the start, and GUILD_DELETE during an outage too:
    https://discord.com/developers/docs/events/gateway-events#guild-create
    """
    raw = as_table(event)
    name, told = words(raw, "t"), table(raw, "d")
    if name == "GUILD_DELETE":
        return not yes(told, "unavailable")
    joined = iso_time(told, "joined_at")
    return name == "GUILD_CREATE" and joined is not None and received - joined < JUST_ADDED


def _membership(event: Raw, raw: Raw, known: DiscordParseContext) -> Unsupported:
    """Our own membership in a server; Discord does not say who added the bot."""
    added = words(event, "t") == "GUILD_CREATE"
    own = identity(raw, "id") or "unnamed"
    return Unsupported(
        conversation=ConversationKey(platform=PLATFORM, account=known.account, channel=f"{SERVER}{own}"),
        id=f"event-{own}-{known.number(event)}",
        author=UNKNOWN_AUTHOR,
        sent=known.received,
        what="the bot was added to a server" if added else "the bot was removed from a server",
        chat_type=ChatType.GROUP,
        channel_name=line(raw, "name", most=100) or None,
        is_notice=True,
        is_event=True,
        presence=Presence.ADDED if added else Presence.REMOVED,
    )


def _is_late(message: Raw) -> bool:
    """Whether an update completes another bot's deferred answer to a command.

    If the answer was complete from the start and only its preview is new, it is the same message again.
    """
    thinks = (count(message, "flags") or 0) & LOADING
    return count(message, "type") in ANSWERS and not thinks and iso_time(message, "edited_timestamp") is None


def parse_message(raw: Raw, known: DiscordParseContext) -> Message | Unsupported:
    """One message, from the gateway or from history."""
    where, channel, own = known.where(raw), identity(raw, "channel_id"), identity(raw, "id") or "unnamed"
    author, sort, name = author_of(raw, known.me), chat_type(raw, known.channels), channel_name(channel, known.channels)
    sent, addressed = _sent(raw, known), _is_addressed(raw, known)
    text = text_of(raw, known.channels, known.me)
    refs = refs_of(raw, DiscordSource(where=where, channel=channel, message_id=own, sent=sent))
    forward = _forward(raw, known)
    shows = text or refs or (forward is not None and (forward.text or forward.media))
    message = Message(
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
        edited=iso_time(raw, "edited_timestamp"),
        thread_report=_thread_report(table(raw, "thread")),
        mentions_another=_mentions_another(raw, known.me),
        server=server_of(raw, known.channels),
    )
    if (count(raw, "type") or 0) in SAID and shows:
        return message
    silent = replace(message, addressed=addressed and sort is ChatType.DIRECT)
    return as_unsupported(silent, what_it_is(raw), is_notice=is_notice(raw))


def _thread_report(thread: Raw) -> ThreadReport | None:
    """What Discord reports about the thread under a message in its history; its first message does not count."""
    replies = count(thread, "message_count")
    return ThreadReport(replies=replies, last=made_at(identity(thread, "last_message_id"))) if replies else None


def _edited(raw: Raw, known: DiscordParseContext) -> Edit | Unsupported:
    said, edited = parse_message(raw, known), iso_time(raw, "edited_timestamp") or known.received
    own = f"{said.id}@{edited.timestamp():.6f}"
    return as_edit(said, own, edited)


def _deletions(raw: Raw, known: DiscordParseContext) -> Iterator[Deletion]:
    """Discord does not say who deleted a message, or when."""
    for own in identities(raw, "ids") or ((identity(raw, "id"),) if identity(raw, "id") else ()):
        yield Deletion(
            conversation=known.where(raw), id=f"{own}@deleted", message_id=own, author=None, sent=known.received
        )


def _reactions(event: Raw, raw: Raw, known: DiscordParseContext, *, added: bool) -> Iterator[Reaction]:
    message, emoji, by = identity(raw, "message_id"), table(raw, "emoji"), identity(raw, "user_id")
    if not message or not by:
        return
    member = table(raw, "member")
    told = {**table(member, "user"), "id": by}
    name = line(emoji, "name", most=64) or "unknown"
    custom = identity(emoji, "id")
    yield Reaction(
        conversation=known.where(raw),
        # The same emoji may be added and removed repeatedly: the event's number makes each one unique.
        id=f"{message}.{by}.{custom or name}.{known.number(event)}",
        message_id=message,
        author=user(told, known.me, member=member) or UNKNOWN_AUTHOR,
        sent=known.received,
        emoji=f":{name}:" if custom else name,
        added=added,
    )


def _unread(event: Raw, raw: Raw, known: DiscordParseContext) -> Unsupported:
    """An unknown event, or one that is not for us."""
    by = table(table(raw, "member"), "user") or table(raw, "user") or table(raw, "author")
    return Unsupported(
        conversation=known.where(raw),
        id=f"event-{identity(raw, 'id') or identity(raw, 'message_id')}-{known.number(event)}",
        author=user(by, known.me) or UNKNOWN_AUTHOR,
        sent=known.received,
        what=kind_of_event(event),
        # An event without a channel is not addressed to us, and never starts a direct conversation.
        chat_type=chat_type(raw, known.channels),
        channel_name=channel_name(identity(raw, "channel_id"), known.channels),
        is_event=not words(event, "t").startswith("MESSAGE_"),
        server=server_of(raw, known.channels),
    )


def _sent(raw: Raw, known: DiscordParseContext) -> datetime:
    return iso_time(raw, "timestamp") or made_at(identity(raw, "id")) or known.received


def _replied_to(raw: Raw) -> str:
    """The message this one replies to, in the same channel; a crosspost from another server is no reply."""
    reference = table(raw, "message_reference")
    here = identity(reference, "channel_id") in ("", identity(raw, "channel_id"))
    return identity(reference, "message_id") if here and count(reference, "type") != FORWARD else ""


def _quote(raw: Raw, known: DiscordParseContext) -> Quote | None:
    """The replied-to message with its files, which have the same ids as when that message arrived."""
    answered, own = table(raw, "referenced_message"), _replied_to(raw)
    if not own:
        return None
    if not answered:
        return Quote(message_id=own)
    channel = identity(answered, "channel_id") or identity(raw, "channel_id")
    source = DiscordSource(where=known.where(raw), channel=channel, message_id=own, sent=_sent(answered, known))
    return Quote(
        author=author_of(answered, known.me),
        message_id=own,
        text=_said_in((answered, *carried(answered)), known),
        sent=iso_time(answered, "timestamp"),
        media=refs_of_all((answered, *carried(answered)), source),
    )


def _forward(raw: Raw, known: DiscordParseContext) -> Quote | None:
    """A forwarded message: Discord says where it was written, but not by whom.

    Its files belong to the message that forwards it.
    """
    inside = carried(raw)
    if not inside:
        return None
    own = identity(raw, "id") or "unnamed"
    source = DiscordSource(
        where=known.where(raw), channel=identity(raw, "channel_id"), message_id=own, sent=_sent(raw, known)
    )
    return Quote(
        author=_origin(raw, known),
        message_id=identity(table(raw, "message_reference"), "message_id") or None,
        text=_said_in(inside, known),
        sent=iso_time(inside[0], "timestamp"),
        media=refs_of_all(inside, source),
    )


def _said_in(messages: tuple[Raw, ...], known: DiscordParseContext) -> str:
    return "\n".join(filter(None, (text_of(each, known.channels, known.me) for each in messages)))


def _origin(raw: Raw, known: DiscordParseContext) -> Author | None:
    """The channel a forward comes from, if it is in the same server; other servers' channels are not named."""
    reference = table(raw, "message_reference")
    channel, guild = identity(reference, "channel_id"), identity(reference, "guild_id")
    place = known.channels.get(channel)
    if place is None or not place.name or not guild or guild != identity(raw, "guild_id"):
        return None
    return Author(id=channel, name=f"#{place.name}")


def _is_addressed(raw: Raw, known: DiscordParseContext) -> bool:
    """Whether a message is addressed to this bot: in private, by its name or role, or as a reply to it."""
    me = known.me
    if chat_type(raw, known.channels) is ChatType.DIRECT:
        return True
    if not me.id:
        return False
    named = {identity(each, "id") for each in tables(raw, "mentions")}
    if "mentions" not in raw:
        named |= set(MENTION.findall(words(raw, "content")))
    answered = identity(table(table(raw, "referenced_message"), "author"), "id") if _replied_to(raw) else ""
    return me.id in named or answered == me.id or not me.roles.isdisjoint(identities(raw, "mention_roles"))


def _mentions_another(raw: Raw, me: DiscordBot) -> bool:
    """Whether the text names another; a reply notifies the author of the message it answers, which is no mention."""
    named = {as_identity(own) for own in MENTION.findall(words(raw, "content"))} - {me.id}
    roles = set(identities(raw, "mention_roles")) - me.roles
    return bool(named or roles) or yes(raw, "mention_everyone")


def is_command(interaction: Raw) -> bool:
    """Whether an interaction is a complete command, in a place we can answer in."""
    named = words(table(interaction, "data"), "name")
    return count(interaction, "type") == COMMAND and bool(named and identity(interaction, "channel_id"))


def is_press(interaction: Raw) -> bool:
    """Whether an interaction is a press of one of our buttons."""
    key = words(table(interaction, "data"), "custom_id")
    is_ours = KEY.fullmatch(key) is not None and bool(identity(interaction, "channel_id"))
    return count(interaction, "type") == COMPONENT and is_ours


def _press(interaction: Raw, known: DiscordParseContext) -> Message:
    pressed = command_of(interaction, known.where(interaction), known.me, known.channels, known.received)
    message, key = identity(table(interaction, "message"), "id"), words(table(interaction, "data"), "custom_id")
    return replace(pressed, text="", reply_to=message or None, press=key)


def command_of(
    interaction: Raw, where: ConversationKey, me: DiscordBot, channels: DiscordChannels, received: datetime
) -> Message:
    """The command as a message; its files are available as long as Discord keeps them for the command."""
    own, given, channel = identity(interaction, "id"), table(interaction, "data"), identity(interaction, "channel_id")
    member = table(interaction, "member")
    sent = made_at(own) or received
    source = DiscordSource(where=where, channel=channel, message_id=own, sent=sent)
    told = {**interaction, "channel_type": table(interaction, "channel").get("type")}
    return Message(
        conversation=where,
        id=own or "unnamed",
        author=user(table(member, "user") or table(interaction, "user"), me, member=member) or UNKNOWN_AUTHOR,
        sent=sent,
        text=" ".join(_words(given)),
        media=tuple(_files(table(given, "resolved"), source)),
        chat_type=chat_type(told, channels),
        channel_name=channel_name(channel, channels),
        addressed=True,
        server=server_of(interaction, channels),
        quote=_target(given, source, me, channels),
        invoked=True,
    )


def _words(given: Raw) -> Iterator[str]:
    resolved = table(given, "resolved")
    yield f"/{line(given, 'name', most=64)}"
    if parse_command(f"/{line(given, 'name', most=64)}") is not None:
        yield from (line(option, "value") for option in tables(given, "options"))
        return
    yield from _options(tables(given, "options"), resolved)
    if count(given, "type") == ON_PERSON:
        yield _named(words(given, "target_id"), resolved)


def _named(own: str, resolved: Raw) -> str:
    """The name of what an option refers to: the command includes everything that it names."""
    for kind, sign in (("users", "@"), ("roles", "@"), ("channels", "#")):
        if found := table(table(resolved, kind), own):
            member = table(table(resolved, "members"), own)
            return sign + (name_of({**found, "member": member}) if kind == "users" else line(found, "name", most=100))
    return line(table(table(resolved, "attachments"), own), "filename") or own


def _options(options: tuple[Raw, ...], resolved: Raw, depth: int = 0) -> Iterator[str]:
    """The values of the options; commands may have groups and subcommands."""
    for option in options[:MOST_OPTIONS]:
        name, value = line(option, "name", most=64), option.get("value")
        inner = tables(option, "options")
        if count(option, "type") in (1, 2):
            yield name
            if depth < 2:
                yield from _options(inner, resolved, depth + 1)
        elif isinstance(value, str | int | float):
            shown = words(option, "value") if isinstance(value, str) else str(value).lower()
            yield f"{name}: {_named(shown, resolved) if count(option, 'type') in NAMING else shown}"


def _files(resolved: Raw, source: DiscordSource) -> Iterator[MediaRef]:
    """Files that no message holds: a fresh link is obtained by the path of the old one."""
    for file in map(as_table, table(resolved, "attachments").values()):
        ref = attachment_ref(file, source)
        path = UPLOADED.match(words(file, "url"))
        if ref is not None and path is not None:
            yield replace(ref, locator={"path": path["path"]})


def _target(given: Raw, command: DiscordSource, me: DiscordBot, channels: DiscordChannels) -> Quote | None:
    """The message that a menu command was used on, with its files."""
    message = table(table(table(given, "resolved"), "messages"), words(given, "target_id"))
    own = identity(message, "id")
    if count(given, "type") != ON_MESSAGE or not own:
        return None
    channel, sent = identity(message, "channel_id") or command.channel, iso_time(message, "timestamp")
    holder = replace(command, channel=channel, message_id=own, sent=sent or command.sent)
    messages = (message, *carried(message))
    return Quote(
        author=author_of(message, me),
        message_id=own,
        text="\n".join(filter(None, (text_of(each, channels, me) for each in messages))),
        sent=sent,
        media=refs_of_all(messages, holder),
    )


def context_to_json(known: DiscordParseContext, event: Raw) -> Mapping[str, object]:
    """The context of an event for a recording, reduced to the channels and roles it names."""
    told = json.dumps(dict(event))
    channels = {own: place for own, place in known.channels.items() if own in told}
    parents = {place.parent for place in channels.values()}
    channels |= {own: place for own, place in known.channels.items() if own in parents}
    return {
        "me": {
            "id": known.me.id,
            "name": known.me.name,
            "roles": [own for own in sorted(known.me.roles) if own in told],
            "titles": [{"id": own, "name": name} for own, name in known.me.titles.items() if own in told],
        },
        "places": [
            {
                "id": own,
                "kind": place.kind,
                "name": place.name,
                "parent_id": place.parent,
                "guild_id": place.server,
            }
            for own, place in channels.items()
        ],
        "session_id": known.session,
    }


def context_from_json(told: Mapping[str, object], *, account: str, received: datetime) -> DiscordParseContext:
    """The context that `context_to_json` wrote."""
    raw = as_table(told)
    me, roles = table(raw, "me"), table(raw, "me").get("roles")
    return DiscordParseContext(
        account=account,
        me=DiscordBot(
            id=identity(me, "id"),
            name=line(me, "name"),
            roles=frozenset(str(own) for own in roles) if isinstance(roles, list) else frozenset(),
            titles={identity(title, "id"): line(title, "name") for title in tables(me, "titles")},
        ),
        channels={
            identity(place, "id"): DiscordChannel(
                kind=count(place, "kind") or 0,
                name=line(place, "name"),
                parent=identity(place, "parent_id"),
                server=identity(place, "guild_id"),
            )
            for place in tables(raw, "places")
        },
        received=received,
        session=words(raw, "session_id"),
    )
