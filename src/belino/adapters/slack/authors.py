"""Authors and conversations: users, bots and channels as domain values, message ids, and a cache of names."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite

from belino.adapters.slack.client import SlackClient
from belino.domain.errors import AdapterError
from belino.domain.message import UNKNOWN_AUTHOR, Author, ChatType, ConversationKey, language_tag
from belino.net.json_fields import Raw, count, line, table, tables, words
from belino.net.rest import RateLimits

PLATFORM = "slack"
SLACKBOT = "USLACKBOT"

# Slack uses U or W and capitals; the user ids of other servers are accepted too.
_MENTION = re.compile(r"<@([A-Za-z0-9_-]{1,64})(?:\|[^<>]*)?>")
_CHAT_TYPES = {
    "im": ChatType.DIRECT,
    "app_home": ChatType.DIRECT,
    "mpim": ChatType.GROUP,
    "group": ChatType.CHANNEL,
    "channel": ChatType.CHANNEL,
}

# A message's id and time: seconds since 1970, a dot, and a part that makes it unique in its channel.
_TS = re.compile(r"(\d{1,11})\.(\d{1,9})", re.ASCII)

MOST_NAMES = 20_000
MOST_IN_PAGE = 999
"""Slack's limit is below a thousand."""
MOST_ASKED = 5
"""Names fetched at once: a message that mentions more shows ids for the others."""
LEARN_SECONDS = 2.0
SLOW_SECONDS = 30.0
"""After a timeout no name is fetched for so long: events must be acknowledged within three seconds."""
AGAIN_SECONDS = 300.0
"""After this time a failed name is fetched again."""
CHANNELS_ASKED = {
    "types": "public_channel,private_channel,mpim",
    "exclude_archived": "true",
    "limit": str(MOST_IN_PAGE),
}
"""The fields of a users.conversations call for the channels that the app is in."""
DIRECTS_ASKED = {**CHANNELS_ASKED, "types": "im"}
"""The same for direct messages, apart: an app may lack the scope `im:read`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackApp:
    """The app's identity, which decides whether a message is addressed to us, and who is from another workspace."""

    user: str = ""
    bot: str = ""
    name: str = ""
    teams: frozenset[str] = frozenset()
    """The workspace and its organisation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """The known names of ids, and what else is known of users; makes no calls."""

    users: Mapping[str, str] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)
    locales: Mapping[str, str] = field(default_factory=dict)
    """The languages of users, such as `en-US`."""
    other_names: Mapping[str, str] = field(default_factory=dict)
    """The names of users that are not shown, one per line."""


def author_of(message: Raw, me: SlackApp, directory: Directory) -> Author:
    """The author of a message. Names may be anything and may change; only the id counts."""
    user, bot = words(message, "user"), words(message, "bot_id")
    if not user and not bot:
        is_bot = words(message, "subtype") == "bot_message"
        return (
            replace(UNKNOWN_AUTHOR, name=line(message, "username") or UNKNOWN_AUTHOR.name, is_bot=True)
            if is_bot
            else UNKNOWN_AUTHOR
        )
    if _is_me(user, bot, me):
        return Author(id=me.user or bot, name=me.name or "belino", is_bot=True, is_agent=True)
    name = _profile_name(message) or directory.users.get(user, "")
    if bot:
        name = line(table(message, "bot_profile"), "name") or line(message, "username") or name
    is_bot = bool(bot) or user == SLACKBOT
    others = tuple(directory.other_names.get(user, "").splitlines())
    return Author(id=qualified(user, message, me) or bot, name=name or user or bot, is_bot=is_bot, other_names=others)


def user_named(user: str, me: SlackApp, directory: Directory) -> Author:
    """A user of whom only the id is known."""
    if not user:
        return UNKNOWN_AUTHOR
    if user == me.user:
        return Author(id=user, name=me.name or "belino", is_bot=True, is_agent=True)
    return Author(id=user, name=directory.users.get(user) or user, is_bot=user == SLACKBOT)


def qualified(user: str, message: Raw, me: SlackApp) -> str:
    """A user's id; of a user from elsewhere with the workspace, so that no allow-list matches it by chance."""
    home = words(message, "user_team") or words(message, "source_team")
    is_stranger = bool(user and home and me.teams) and home not in me.teams
    return f"{user}@{home}" if is_stranger else user


def chat_type(channel: str, kind: str = "") -> ChatType:
    """The chat type; derived from the id where an event does not contain it."""
    return _CHAT_TYPES.get(kind) or (ChatType.DIRECT if channel.startswith("D") else ChatType.CHANNEL)


def conversation(account: str, channel: str, thread: str | None = None) -> ConversationKey:
    return ConversationKey(platform=PLATFORM, account=account, channel=channel or "elsewhere", thread=thread or None)


def shown_name(user: Raw) -> str:
    """A user's name: the display name, else the real name, else the login name."""
    profile = table(user, "profile")
    return (
        line(profile, "display_name")
        or line(profile, "real_name")
        or line(user, "real_name")
        or line(user, "name")
        or line(user, "id")
    )


def other_names(user: Raw) -> str:
    """The names of a user that are not shown, one per line."""
    told = (line(table(user, "profile"), "real_name"), line(user, "real_name"), line(user, "name"))
    return "\n".join(dict.fromkeys(name for name in told if name and name != shown_name(user)))


def _profile_name(message: Raw) -> str:
    profile = table(message, "user_profile")
    return line(profile, "display_name") or line(profile, "real_name") or line(profile, "name")


def _is_me(user: str, bot: str, me: SlackApp) -> bool:
    return bool(me.user and user == me.user) or bool(me.bot and bot == me.bot)


def mentioned(text: str) -> Iterator[str]:
    """The ids of the users a text mentions."""
    return (found[1] for found in _MENTION.finditer(text))


def stamp(raw: Raw, key: str) -> str:
    """A message's ts; empty for anything else. Some fields hold it as a number, which has lost its trailing zeros."""
    value = raw.get(key)
    text = f"{value:.6f}" if type(value) is float and isfinite(value) else value
    return text if isinstance(text, str) and _TS.fullmatch(text) else ""


def moment(ts: str) -> datetime | None:
    """The time of a ts; None for anything else."""
    found = _TS.fullmatch(ts)
    if found is None:
        return None
    return datetime.fromtimestamp(int(found[1]), UTC).replace(microsecond=int(found[2][:6].ljust(6, "0")))


def changed_at(channel: Raw) -> float:
    """When Slack made a conversation or last changed its settings, in seconds: its list tells of no messages."""
    return max((count(channel, "updated") or 0) / 1000, count(channel, "created") or 0)


class NameCache:
    """Cache of the names of a workspace's users and channels, filled by calls."""

    def __init__(self, client: SlackClient, limits: RateLimits) -> None:
        self._client = client
        self._limits = limits
        self._users: dict[str, str] = {}
        self._channels: dict[str, str] = {}
        self._locales: dict[str, str] = {}
        self._other_names: dict[str, str] = {}
        self._not_before: dict[str, float] = {}
        self._listed = False
        self._slow_until = 0.0
        self.joined: Mapping[str, float] = {}
        """The channels that the app is in, and when Slack last changed each; messages are no change."""

    @property
    def directory(self) -> Directory:
        return Directory(
            users=self._users, channels=self._channels, locales=self._locales, other_names=self._other_names
        )

    def know(self, user: str, name: str) -> None:
        """Keep a name that is known without a call."""
        self._keep(self._users, user, name)

    async def learn_channels(self) -> int:
        """Fetch the channels that the app is in, by one call, and return their number."""
        told = await self._ask("users.conversations", CHANNELS_ASKED)
        self.joined = {words(channel, "id"): changed_at(channel) for channel in tables(told, "channels")}
        for channel in tables(told, "channels"):
            self._keep(self._channels, words(channel, "id"), line(channel, "name"))
        return len(tables(told, "channels"))

    async def directs(self) -> dict[str, float]:
        """The direct conversations with the app, and when Slack last changed each."""
        told = await self._ask("users.conversations", DIRECTS_ASKED)
        return {words(channel, "id"): changed_at(channel) for channel in tables(told, "channels")}

    async def learn(self, channel: str, messages: Iterable[Raw]) -> None:
        """Fetch the names of author and mentioned users, within a short time; after a failure ids are shown instead."""
        wanted = [user for user in dict.fromkeys(_users_in(messages)) if self._is_wanted(user, self._users)]
        if not wanted and not self._is_wanted(channel, self._channels):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LEARN_SECONDS):
                await self._learn_users(wanted)
                if channel[:1] in ("C", "G") and self._is_wanted(channel, self._channels):
                    await self._learn_channel(channel)
                return
        self._slow_until = self._client.clock.monotonic() + SLOW_SECONDS
        for own in (*wanted, channel):
            self._not_again_soon(own)  # or every event would wait for a name that cannot be fetched

    async def _learn_users(self, wanted: list[str]) -> None:
        if wanted and not self._listed:
            # One call for nearly a thousand people: after a start many of them speak at once.
            self._listed = True
            asked = {"limit": str(MOST_IN_PAGE), "include_locale": "true"}
            for member in tables(await self._ask("users.list", asked), "members"):
                self._keep_user(words(member, "id"), member)
        for user in [user for user in wanted if user not in self._users][:MOST_ASKED]:
            found = table(await self._ask("users.info", {"user": user, "include_locale": "true"}), "user")
            self._keep_user(user, found)
            if not found:
                self._not_again_soon(user)

    async def _learn_channel(self, channel: str) -> None:
        told = await self._ask("conversations.info", {"channel": channel})
        self._settle(self._channels, channel, line(table(told, "channel"), "name"))

    async def _ask(self, method: str, fields: Mapping[str, object]) -> Raw:
        try:
            return await self._limits.call(method, lambda: self._client.call(method, fields))
        except AdapterError:
            return {}

    def _is_wanted(self, own: str, kept: dict[str, str]) -> bool:
        not_before = max(self._not_before.get(own, 0.0), self._slow_until)
        return bool(own) and own not in kept and not_before <= self._client.clock.monotonic()

    def _keep_user(self, own: str, user: Raw) -> None:
        self._keep(self._users, own, shown_name(user))
        self._keep(self._other_names, own, other_names(user))
        self._keep(self._locales, own, language_tag(user.get("locale")) or "")

    def _settle(self, kept: dict[str, str], own: str, name: str) -> None:
        if name:
            self._keep(kept, own, name)
        else:
            self._not_again_soon(own)

    def _not_again_soon(self, own: str) -> None:
        while len(self._not_before) >= MOST_NAMES:
            self._not_before.pop(next(iter(self._not_before)))
        self._not_before[own] = self._client.clock.monotonic() + AGAIN_SECONDS

    def _keep(self, kept: dict[str, str], own: str, name: str) -> None:
        if own and name:
            while len(kept) >= MOST_NAMES:
                kept.pop(next(iter(kept)))
            kept[own] = name


def _users_in(messages: Iterable[Raw]) -> Iterator[str]:
    for message in messages:
        for one in (message, table(message, "message")):
            if words(one, "user") and not words(one, "bot_id") and not table(one, "user_profile"):
                yield words(one, "user")
            yield from filter(None, (words(one, "inviter"),))
            yield from mentioned(words(one, "text"))
