"""Shapes of Discord's API: ids, users, channels, servers and messages as its documentation defines them."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any

from belino.domain.ports import Clock

Json = dict[str, Any]

EPOCH_MS = 1_420_070_400_000
EPOCH = datetime(2015, 1, 1, tzinfo=UTC)
# View, send, embed, attach, history, react, threads and voice messages: the usual permissions of a bot.
PERMISSIONS = str(1 << 10 | 1 << 11 | 1 << 14 | 1 << 15 | 1 << 16 | 1 << 6 | 1 << 35 | 1 << 38 | 1 << 46)

_USER = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EVERYONE = re.compile(r"@(?:everyone|here)\b")


class ChannelType(IntEnum):
    """The types of channels."""

    TEXT = 0
    DM = 1
    VOICE = 2
    GROUP_DM = 3
    CATEGORY = 4
    NEWS = 5
    NEWS_THREAD = 10
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    FORUM = 15


THREADS = frozenset({ChannelType.NEWS_THREAD, ChannelType.PUBLIC_THREAD, ChannelType.PRIVATE_THREAD})
WRITABLE = THREADS | {ChannelType.TEXT, ChannelType.DM, ChannelType.VOICE, ChannelType.GROUP_DM, ChannelType.NEWS}


class MessageType(IntEnum):
    """The message types used here."""

    DEFAULT = 0
    PINNED = 6
    THREAD_CREATED = 18
    REPLY = 19
    COMMAND = 20
    THREAD_STARTER = 21
    MENU_COMMAND = 23


class DiscordMessageFlag(IntEnum):
    """The message flags used here."""

    SUPPRESS_EMBEDS = 1 << 2
    HAS_THREAD = 1 << 5
    EPHEMERAL = 1 << 6
    LOADING = 1 << 7
    SUPPRESS_NOTIFICATIONS = 1 << 12
    VOICE = 1 << 13
    SNAPSHOT = 1 << 14
    COMPONENTS_V2 = 1 << 15


SNAPSHOT_FIELDS = (
    "type",
    "content",
    "embeds",
    "attachments",
    "timestamp",
    "edited_timestamp",
    "flags",
    "mentions",
    "mention_roles",
    "sticker_items",
    "components",
)


class Snowflakes:
    """Unique ids that contain their time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> str:
        made = (int(self._clock.now().timestamp() * 1000) - EPOCH_MS) << 22
        self._last = max(made, self._last + 1)
        return str(self._last)


def time_of(snowflake: str) -> datetime:
    """When an id was made."""
    return EPOCH + timedelta(milliseconds=int(snowflake) >> 22)


def stamp(moment: datetime) -> str:
    """A timestamp as Discord writes it."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def user_shape(number: str, username: str, *, bot: bool = False, **more: Any) -> Json:
    """A user."""
    user: Json = {
        "id": number,
        "username": username,
        "discriminator": "0",
        "global_name": None if bot else username.title(),
        "avatar": None,
        "avatar_decoration_data": None,
        "clan": None,
        "primary_guild": None,
        "public_flags": 0,
    }
    return {**user, **({"bot": True} if bot else {}), **more}


def member_shape(joined: str, roles: tuple[str, ...] = (), nick: str | None = None) -> Json:
    """A member of a server, without the user."""
    return {
        "avatar": None,
        "banner": None,
        "communication_disabled_until": None,
        "deaf": False,
        "flags": 0,
        "joined_at": joined,
        "mute": False,
        "nick": nick,
        "pending": False,
        "premium_since": None,
        "roles": list(roles),
    }


def role_shape(number: str, name: str, position: int = 0) -> Json:
    """A role; the one with the server's own id is @everyone."""
    return {
        "id": number,
        "name": name,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "icon": None,
        "unicode_emoji": None,
        "position": position,
        "permissions": PERMISSIONS,
        "managed": False,
        "mentionable": True,
        "flags": 0,
    }


def guild_shape(number: str, name: str, *, owner: str, tier: int) -> Json:
    """A server, as returned by GET /guilds."""
    return {
        "id": number,
        "name": name,
        "icon": None,
        "owner_id": owner,
        "premium_tier": tier,
        "roles": [role_shape(number, "@everyone")],
        "emojis": [],
        "stickers": [],
        "features": [],
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "mfa_level": 0,
        "nsfw_level": 0,
        "afk_timeout": 300,
        "afk_channel_id": None,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "rules_channel_id": None,
        "public_updates_channel_id": None,
        "preferred_locale": "en-US",
        "premium_subscription_count": 0,
        "vanity_url_code": None,
        "description": None,
        "application_id": None,
    }


def channel_shape(number: str, guild: str, name: str, kind: int) -> Json:
    """A channel of a server."""
    own: Json = {}
    if kind == ChannelType.VOICE:
        own = {"bitrate": 64_000, "user_limit": 0, "rtc_region": None}
    elif kind == ChannelType.FORUM:
        own = {"available_tags": [], "default_reaction_emoji": None, "default_sort_order": None}
        own["default_forum_layout"] = 0
    return own | {
        "id": number,
        "type": kind,
        "guild_id": guild,
        "name": name,
        "position": 0,
        "permission_overwrites": [],
        "parent_id": None,
        "topic": None,
        "nsfw": False,
        "last_message_id": None,
        "rate_limit_per_user": 0,
        "flags": 0,
    }


def thread_shape(number: str, parent: Mapping[str, Any], name: str, *, owner: str, kind: int, now: str) -> Json:
    """A thread: a channel whose parent is a channel."""
    return {
        "id": number,
        "type": kind,
        "guild_id": parent["guild_id"],
        "parent_id": parent["id"],
        "owner_id": owner,
        "name": name,
        "last_message_id": None,
        "rate_limit_per_user": 0,
        "message_count": 0,
        "member_count": 1,
        "total_message_sent": 0,
        "flags": 0,
        "thread_metadata": {
            "archived": False,
            "archive_timestamp": now,
            "auto_archive_duration": 1440,
            "locked": False,
            "create_timestamp": now,
        },
    }


def message_shape(number: str, channel: str, author: Json, content: str) -> Json:
    """A message with all mandatory fields."""
    return {
        "id": number,
        "channel_id": channel,
        "author": author,
        "content": content,
        "timestamp": stamp(time_of(number)),
        "edited_timestamp": None,
        "tts": False,
        "mention_everyone": bool(_EVERYONE.search(content)),
        "mentions": [],
        "mention_roles": list(dict.fromkeys(_ROLE.findall(content))),
        "attachments": [],
        "embeds": [],
        "components": [],
        "pinned": False,
        "flags": 0,
        "type": int(MessageType.DEFAULT),
    }


def mentioned_users(content: str) -> list[str]:
    """The ids of the users mentioned in a text."""
    return list(dict.fromkeys(_USER.findall(content)))


def emoji_shape(written: str) -> Json:
    """The emoji of a reaction: a character, or `name:id` of a server's own."""
    name, _, number = written.partition(":")
    return {"id": number, "name": name} if number else {"id": None, "name": written}
