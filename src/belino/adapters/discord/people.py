"""Who said it, and where: users, webhooks, channels and threads as our own values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from belino.adapters.discord.raw import identity
from belino.domain.message import Author, ChatType, ConversationKey
from belino.net.raw import Raw, count, line, table, yes

PLATFORM = "discord"

DIRECT, GROUP_DIRECT, CATEGORY, ANNOUNCEMENTS = 1, 3, 4, 5
THREADS = frozenset({10, 11, 12})
FORUMS = frozenset({15, 16})
"""Channels of posts and of media: all that is said there is said in threads."""

SOMEBODY = Author(id="unknown", name="somebody")
ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Which bot we are: what tells a message to us from one to somebody else."""

    id: str = ""
    name: str = ""
    roles: frozenset[str] = frozenset()
    """The roles that stand for this bot alone, one in each server."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """The names of all other roles we were told of."""

    def role(self, own: str) -> str:
        """The name of a role; the bot's, if it stands for it."""
        return (self.name if own in self.roles else "") or self.titles.get(own, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is known of a channel; a thread is a channel with a parent."""

    kind: int
    name: str = ""
    parent: str = ""
    newest: str = ""
    """The id of its last message, when we were told of it."""

    @property
    def is_thread(self) -> bool:
        return self.kind in THREADS and bool(self.parent)


Places = Mapping[str, Place]


def place_of(channel: Raw) -> Place | None:
    """A channel as Discord tells it; None if it does not say of what kind."""
    kind = count(channel, "type")
    if kind is None:
        return None
    return Place(
        kind=kind,
        name=line(channel, "name", most=100),
        parent=identity(channel, "parent_id"),
        newest=identity(channel, "last_message_id"),
    )


def conversation(account: str, channel: str, places: Places) -> ConversationKey:
    """Where something was said: a channel, or a thread in the channel it belongs to."""
    place = places.get(channel)
    if place is not None and place.is_thread:
        return ConversationKey(platform=PLATFORM, account=account, channel=place.parent, thread=channel)
    return ConversationKey(platform=PLATFORM, account=account, channel=channel or ELSEWHERE)


def chat_type(raw: Raw, places: Places) -> ChatType:
    """What sort of place an event is about: whatever is not in a server is between a few people."""
    place = places.get(identity(raw, "channel_id"))
    told = count(raw, "channel_type")
    kind = told if told is not None else place.kind if place is not None else None
    if kind == GROUP_DIRECT:
        return ChatType.GROUP
    if kind == DIRECT:
        return ChatType.DIRECT
    if kind is None and not identity(raw, "guild_id"):
        return ChatType.DIRECT if identity(raw, "channel_id") else ChatType.CHANNEL
    return ChatType.CHANNEL if kind == ANNOUNCEMENTS else ChatType.GROUP


def channel_name(channel: str, places: Places) -> str | None:
    place = places.get(channel)
    if place is not None and place.is_thread:
        place = places.get(place.parent)
    return (place.name or None) if place is not None else None


def author_of(message: Raw, me: Me) -> Author:
    """Who sent a message. A webhook speaks under any name, and is told by its own id."""
    author, webhook = table(message, "author"), identity(message, "webhook_id")
    # The answer to a command is told as a webhook's, and is its bot's own.
    if webhook and identity(author, "id") != me.id:
        return Author(id=webhook, name=_name(author, {}), is_bot=True)
    return user(author, me, member=table(message, "member")) or SOMEBODY


def user(raw: Raw, me: Me, *, member: Raw | None = None) -> Author | None:
    """A user, by the name people see in this place; only the id counts."""
    own = identity(raw, "id")
    if not own:
        return None
    return Author(
        id=own,
        name=_name(raw, member or {}),
        is_bot=yes(raw, "bot") or yes(raw, "system"),
        is_agent=own == me.id,
    )


def name_of(user: Raw) -> str:
    """The name of somebody a message mentions."""
    return _name(user, table(user, "member"))


def _name(user: Raw, member: Raw) -> str:
    return line(member, "nick") or line(user, "global_name") or line(user, "username") or "somebody"
