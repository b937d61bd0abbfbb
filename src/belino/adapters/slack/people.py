"""Who said it, and where: users, bots and conversations as our own values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from belino.domain.message import Author, ChatType, ConversationKey
from belino.net.raw import Raw, line, table, words

PLATFORM = "slack"
SLACKBOT = "USLACKBOT"
SOMEBODY = Author(id="unknown", name="somebody")

_CHAT_TYPES = {
    "im": ChatType.DIRECT,
    "app_home": ChatType.DIRECT,
    "mpim": ChatType.GROUP,
    "group": ChatType.CHANNEL,
    "channel": ChatType.CHANNEL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who we are: what tells a message to us from one to somebody else, and a stranger from a colleague."""

    user: str = ""
    bot: str = ""
    name: str = ""
    teams: frozenset[str] = frozenset()
    """The workspace, and the organisation it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """What ids are called, as far as it is known; nothing is asked for in here."""

    users: Mapping[str, str] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)


def author_of(message: Raw, me: Me, directory: Directory) -> Author:
    """Who sent a message. Names may be anything and may change; only the id counts."""
    user, bot = words(message, "user"), words(message, "bot_id")
    if not user and not bot:
        is_bot = words(message, "subtype") == "bot_message"
        return replace(SOMEBODY, name=line(message, "username") or SOMEBODY.name, is_bot=True) if is_bot else SOMEBODY
    if _is_me(user, bot, me):
        return Author(id=me.user or bot, name=me.name or "belino", is_bot=True, is_agent=True)
    name = _profile_name(message) or directory.users.get(user, "")
    if bot:
        name = line(table(message, "bot_profile"), "name") or line(message, "username") or name
    is_bot = bool(bot) or user == SLACKBOT
    return Author(id=qualified(user, message, me) or bot, name=name or user or bot, is_bot=is_bot)


def user_named(user: str, me: Me, directory: Directory) -> Author:
    """A user of whom only the id was told."""
    if not user:
        return SOMEBODY
    if user == me.user:
        return Author(id=user, name=me.name or "belino", is_bot=True, is_agent=True)
    return Author(id=user, name=directory.users.get(user) or user, is_bot=user == SLACKBOT)


def qualified(user: str, message: Raw, me: Me) -> str:
    """A user's id; a stranger's with the workspace it counts in, so that no list of ours names him by chance."""
    home = words(message, "user_team") or words(message, "source_team")
    is_stranger = bool(user and home and me.teams) and home not in me.teams
    return f"{user}@{home}" if is_stranger else user


def chat_type(channel: str, kind: str = "") -> ChatType:
    """What sort of place a conversation is; where an event does not say, its id does."""
    return _CHAT_TYPES.get(kind) or (ChatType.DIRECT if channel.startswith("D") else ChatType.CHANNEL)


def place(account: str, channel: str, thread: str | None = None) -> ConversationKey:
    return ConversationKey(platform=PLATFORM, account=account, channel=channel or "elsewhere", thread=thread or None)


def shown_name(user: Raw) -> str:
    """What a user is called: the name they chose, else their own, else the one they log in with."""
    profile = table(user, "profile")
    return (
        line(profile, "display_name")
        or line(profile, "real_name")
        or line(user, "real_name")
        or line(user, "name")
        or line(user, "id")
    )


def _profile_name(message: Raw) -> str:
    profile = table(message, "user_profile")
    return line(profile, "display_name") or line(profile, "real_name") or line(profile, "name")


def _is_me(user: str, bot: str, me: Me) -> bool:
    return bool(me.user and user == me.user) or bool(me.bot and bot == me.bot)
