"""Authors and channels: Discord's ids, users and conversations as domain values, and a cache of servers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from belino.domain.message import UNKNOWN_AUTHOR, UNKNOWN_NAME, Author, ChatType, ConversationKey
from belino.net.json_fields import MOST, Raw, count, line, table, tables, words, yes

PLATFORM = "discord"

DIRECT, GROUP_DIRECT, CATEGORY, ANNOUNCEMENTS = 1, 3, 4, 5
THREADS = frozenset({10, 11, 12})
FORUMS = frozenset({15, 16})
"""Types of forum and media channels: all messages there are in threads."""

ELSEWHERE = "elsewhere"

MOST_CACHED = 20_000
MOST_YOUNG = 100
EPHEMERAL = 1 << 6
"""Ephemeral messages come without their server, wherever they are."""

# An id's first 42 bits are milliseconds since 2015; see "Snowflakes" in the reference.
_EPOCH = datetime(2015, 1, 1, tzinfo=UTC)


def as_identity(value: object) -> str:
    """A snowflake as text; empty if it is none. Discord writes them as strings, some servers as numbers."""
    digits = str(value) if type(value) is int else value
    if not isinstance(digits, str) or not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return ""
    return str(int(digits)) if 0 < int(digits) <= MOST else ""


def identity(raw: Raw, key: str) -> str:
    return as_identity(raw.get(key))


def identities(raw: Raw, key: str) -> tuple[str, ...]:
    """The snowflakes in the list under a key."""
    value = raw.get(key)
    return tuple(own for item in value if (own := as_identity(item))) if isinstance(value, list) else ()


def made_at(own: str) -> datetime | None:
    """When a snowflake was made."""
    try:
        return _EPOCH + timedelta(milliseconds=int(own) >> 22) if own else None
    except OverflowError:
        return None


def first_at(moment: datetime) -> str:
    """A lower bound of the snowflakes made from a moment on."""
    return str(max(int((moment - _EPOCH) / timedelta(milliseconds=1)), 0) << 22)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordBot:
    """The bot's identity, which decides whether a message is addressed to us."""

    id: str = ""
    name: str = ""
    roles: frozenset[str] = frozenset()
    """The bot's own managed roles, one in each server."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """The names of all other known roles."""

    def role(self, own: str) -> str:
        """The name of a role; the bot's name for its own role."""
        return (self.name if own in self.roles else "") or self.titles.get(own, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordChannel:
    """What is known of a channel; a thread is a channel with a parent."""

    kind: int
    name: str = ""
    parent: str = ""
    newest: str = ""
    """The id of its last message, if known."""
    server: str = ""
    """The id of its server, if it is in one and that is known."""

    @property
    def is_thread(self) -> bool:
        return self.kind in THREADS and bool(self.parent)


DiscordChannels = Mapping[str, DiscordChannel]


def read_channel(channel: Raw, server: str = "") -> DiscordChannel | None:
    """A channel from Discord's JSON, which does not name the server in the server's own; None without a type."""
    kind = count(channel, "type")
    if kind is None:
        return None
    return DiscordChannel(
        kind=kind,
        name=line(channel, "name", most=100),
        parent=identity(channel, "parent_id"),
        newest=identity(channel, "last_message_id"),
        server=identity(channel, "guild_id") or server,
    )


def conversation(account: str, channel: str, channels: DiscordChannels) -> ConversationKey:
    """The conversation of an event: a channel, or a thread in its parent channel."""
    place = channels.get(channel)
    if place is not None and place.is_thread:
        return ConversationKey(platform=PLATFORM, account=account, channel=place.parent, thread=channel)
    return ConversationKey(platform=PLATFORM, account=account, channel=channel or ELSEWHERE)


def chat_type(raw: Raw, channels: DiscordChannels) -> ChatType:
    """The chat type of an event; without a server it is a direct chat or a group."""
    place = channels.get(identity(raw, "channel_id"))
    told = count(raw, "channel_type")
    kind = told if told is not None else place.kind if place is not None else None
    if kind == GROUP_DIRECT:
        return ChatType.GROUP
    if kind == DIRECT:
        return ChatType.DIRECT
    if kind is None and not identity(raw, "guild_id"):
        return ChatType.DIRECT if identity(raw, "channel_id") else ChatType.CHANNEL
    return ChatType.CHANNEL if kind == ANNOUNCEMENTS else ChatType.GROUP


def server_of(raw: Raw, channels: DiscordChannels) -> str:
    """The id of an event's server; messages of the history do not name it."""
    place = channels.get(identity(raw, "channel_id"))
    return identity(raw, "guild_id") or (place.server if place is not None else "")


def channel_name(channel: str, channels: DiscordChannels) -> str | None:
    place = channels.get(channel)
    if place is not None and place.is_thread:
        place = channels.get(place.parent)
    return (place.name or None) if place is not None else None


def author_of(message: Raw, me: DiscordBot) -> Author:
    """The author of a message. A webhook may use any name and is identified by its own id."""
    author, webhook = table(message, "author"), identity(message, "webhook_id")
    # The answer to a command is marked as a webhook's, and is its bot's own.
    if webhook and identity(author, "id") != me.id:
        return Author(id=webhook, name=_name(author, {}), is_bot=True)
    return user(author, me, member=table(message, "member")) or UNKNOWN_AUTHOR


def user(raw: Raw, me: DiscordBot, *, member: Raw | None = None) -> Author | None:
    """A user, by the name shown in this server; only the id identifies a user."""
    own = identity(raw, "id")
    if not own:
        return None
    name, *others = dict.fromkeys(_names(raw, member or {}))
    return Author(
        id=own,
        name=name,
        is_bot=yes(raw, "bot") or yes(raw, "system"),
        is_agent=own == me.id,
        other_names=tuple(others),
    )


def name_of(user: Raw) -> str:
    """The name of a user that a message mentions."""
    return _name(user, table(user, "member"))


def _name(user: Raw, member: Raw) -> str:
    return _names(user, member)[0]


def _names(user: Raw, member: Raw) -> Sequence[str]:
    """The names of a user, that of this server first."""
    told = (line(member, "nick"), line(user, "global_name"), line(user, "username"))
    return [name for name in told if name] or [UNKNOWN_NAME]


class GuildCache:
    """Cache of servers: channel types, parents of threads, and our roles; kept up to date by gateway events."""

    def __init__(self, me: DiscordBot, channels: dict[str, DiscordChannel]) -> None:
        self.me = me
        self.channels = dict(channels)

    def learn(self, event: Raw) -> None:
        """Update from a channel, thread or role event."""
        told, name = table(event, "d"), words(event, "t")
        if name.startswith("GUILD_ROLE_"):
            self._add_roles([table(told, "role")])
        elif name == "GUILD_CREATE":
            self._add_roles(list(tables(told, "roles")))
            for channel in channels_in(told):
                self.add(channel, identity(told, "id"))
        elif name == "THREAD_LIST_SYNC":
            for channel in tables(told, "threads"):
                self.add(channel, identity(told, "guild_id"))
        elif name in ("CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE"):
            self.add(told)
        elif name in ("CHANNEL_DELETE", "THREAD_DELETE"):
            self.channels.pop(identity(told, "id"), None)

    def add(self, channel: Raw, server: str = "") -> DiscordChannel | None:
        own, place = identity(channel, "id"), read_channel(channel, server)
        if not own or place is None:
            return None
        self.channels.pop(own, None)
        self.channels[own] = place
        while len(self.channels) > MOST_CACHED:
            del self.channels[next(iter(self.channels))]
        return place

    def unknown(self, event: Raw) -> str:
        """The id of an event's channel if it has to be fetched; a direct channel is never a thread."""
        told = table(event, "d")
        channel = identity(told, "channel_id")
        if not channel or channel in self.channels:
            return ""
        if not identity(told, "guild_id") and not (count(told, "flags") or 0) & EPHEMERAL:
            self.channels[channel] = DiscordChannel(kind=DIRECT)
            return ""
        return channel

    def to_ask(self, event: Raw, newest: Mapping[str, str]) -> dict[str, str]:
        """Channels with messages newer than the last one received, with that message, when a session or server begins.

        Discord does not list private channels or archived threads.
        """
        if words(event, "t") == "READY":
            return {own: newest[own] for own in newest if own in self.channels and self.channels[own].kind == DIRECT}
        here = {identity(each, "id"): identity(each, "last_message_id") for each in channels_in(table(event, "d"))}
        grown = {own: heard for own, heard in newest.items() if int(here.get(own) or 0) > int(heard)}
        archived = {own: heard for own, heard in newest.items() if own not in here and self._parent(own) in here}
        return grown | archived | self._begun(here, newest)

    def _begun(self, here: Mapping[str, str], newest: Mapping[str, str]) -> dict[str, str]:
        """New threads in channels we received messages from, with messages since."""
        beside: dict[str, str] = {}
        for own, heard in newest.items():
            channel = self._parent(own) or own
            beside[channel] = max(beside.get(channel, "0"), heard, key=int)
        unheard = {own: beside.get(self._parent(own) or "") for own in here if own not in newest}
        young = {own: heard for own, heard in unheard.items() if heard and int(here[own] or 0) > int(heard)}
        return dict(list(young.items())[-MOST_YOUNG:])

    def _parent(self, channel: str) -> str | None:
        place = self.channels.get(channel)
        return place.parent if place is not None and place.is_thread else None

    def _add_roles(self, roles: list[Raw]) -> None:
        own = {identity(role, "id") for role in roles if self._is_mine(role)}
        titles = {identity(role, "id"): line(role, "name", most=100) for role in roles}
        known = list({**self.me.titles, **titles}.items())[-MOST_CACHED:]
        self.me = replace(self.me, roles=self.me.roles | (own - {""}), titles=dict(known))

    def _is_mine(self, role: Raw) -> bool:
        """Whether this is the role that Discord made for this bot alone."""
        return yes(role, "managed") and identity(table(role, "tags"), "bot_id") == self.me.id


def channels_in(guild: Raw) -> Iterator[Raw]:
    """The channels and active threads of a server."""
    yield from tables(guild, "channels")
    yield from tables(guild, "threads")
