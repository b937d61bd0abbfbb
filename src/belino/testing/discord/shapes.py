"""Shapes of Discord's API: ids, users, channels, servers, messages, and files with the signed links of its CDN."""

import hashlib
import hmac
import mimetypes
import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any
from urllib.parse import quote

from belino.domain.ports import Clock
from belino.testing.file_server import FakeUpload, HostedFile

Json = dict[str, Any]

EPOCH_MS = 1_420_070_400_000
EPOCH = datetime(2015, 1, 1, tzinfo=UTC)
# View, send, embed, attach, history, react, threads and voice messages: the usual permissions of a bot.
PERMISSIONS = str(1 << 10 | 1 << 11 | 1 << 14 | 1 << 15 | 1 << 16 | 1 << 6 | 1 << 35 | 1 << 38 | 1 << 46)

_USER = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EVERYONE = re.compile(r"@(?:everyone|here)\b")

LINK_SECONDS = 24 * 3600
_KEY = b"only this server signs its links"
_UNFIT = re.compile(r"[^\w.\-]+")
_LINK = re.compile(r"/attachments/(?P<channel>\d+)/(?P<file>\d+)/(?P<name>[^/?]+)")
_FLAT = bytes([0, 64, 128, 192, 255, 192, 128, 64])
# The sticker formats and their file extensions; APNG uses png too.
STICKER_ENDINGS = {1: "png", 2: "png", 3: "json", 4: "gif"}


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


class Cdn:
    """Every file, by its path."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.url = ""
        self.link_seconds = LINK_SECONDS
        self.files: dict[str, HostedFile] = {}

    def put(self, channel: str, number: str, upload: FakeUpload, **more: object) -> Json:
        """Store a file; returns its attachment for a message, without links."""
        name = _UNFIT.sub("_", upload.name or "file").strip(".") or "file"
        path = f"/attachments/{channel}/{number}/{quote(name)}"
        self.files[path] = HostedFile(file_id=number, unique_id=number, upload=upload, path=path, size=upload.announced)
        mime = upload.mime or mimetypes.guess_type(name)[0]
        shape: Json = {"id": number, "filename": name, "size": upload.announced}
        if mime:
            shape["content_type"] = mime
        if mime and mime.startswith(("image/", "video/")):
            shape |= {"width": upload.width, "height": upload.height, "placeholder": "3PcNNYSFeXh/d3eld0iHZoZgVwh2"}
            shape["placeholder_version"] = 1
        if upload.name and upload.name != name:
            shape["title"] = upload.name.rpartition(".")[0] or upload.name
        return {**shape, **upload.extra, **more}

    def put_plain(self, path: str, content: bytes) -> None:
        """Store a file under a link that never expires: stickers, emojis."""
        size = len(content)
        upload = FakeUpload(content=content)
        self.files[path] = HostedFile(file_id=path, unique_id=path, upload=upload, path=path, size=size)

    def signed(self, channel: str, attachment: Mapping[str, object]) -> Json:
        """The attachment with fresh links."""
        path = f"/attachments/{channel}/{attachment['id']}/{quote(str(attachment['filename']))}"
        link = f"{self.url}{path}?{self._signature(path)}"
        return {**attachment, "url": link, "proxy_url": link}

    def shown(self, channel: str, message: Json) -> Json:
        """The files of a message, and its cards and components with those that they show by `attachment://name`.

        Files shown there are listed nowhere else.
        """
        files = [self.signed(channel, file) for file in message["attachments"]]
        used: set[str] = set()
        embeds = _resolved(message["embeds"], files, used, named=False)
        components = _resolved(message["components"], files, used, named=True)
        return {
            "embeds": embeds,
            "components": components,
            "attachments": [file for file in files if file["id"] not in used],
        }

    def refreshed(self, link: str) -> str | None:
        """A new signature for an old link; None for anything that is not our attachment."""
        found = _LINK.search(link)
        if found is None or found.group() not in self.files:
            return None
        return f"{self.url}{found.group()}?{self._signature(found.group())}"

    def find(self, path: str, query: Mapping[str, str]) -> HostedFile | None:
        """The file, if its link is signed and has not expired."""
        stored = self.files.get(path)
        if stored is None or not path.startswith("/attachments/"):
            return stored
        expires, issued = query.get("ex", ""), query.get("is", "")
        if not hmac.compare_digest(query.get("hm", ""), _sign(path, expires, issued)):
            return None
        return stored if int(expires, 16) > self._clock.now().timestamp() else None

    def _signature(self, path: str) -> str:
        now = int(self._clock.now().timestamp())
        expires, issued = f"{now + self.link_seconds:x}", f"{now:x}"
        return f"ex={expires}&is={issued}&hm={_sign(path, expires, issued)}&"


def _resolved(part: Any, files: list[Json], used: set[str], *, named: bool) -> Any:
    """Components name the id of the file that they show, cards do not."""
    if isinstance(part, list):
        return [_resolved(each, files, used, named=named) for each in part]
    if not isinstance(part, dict):
        return part
    link = str(part.get("url", ""))
    file = next((each for each in files if link == f"attachment://{each['filename']}"), None)
    if file is None:
        return {name: _resolved(value, files, used, named=named) for name, value in part.items()}
    used.add(file["id"])
    told = {name: file[name] for name in ("url", "proxy_url", "width", "height", "content_type") if name in file}
    return {**part, **told, **({"attachment_id": file["id"]} if named else {})}


def _sign(path: str, expires: str, issued: str) -> str:
    return hmac.new(_KEY, f"{path}?{expires}&{issued}".encode(), hashlib.sha256).hexdigest()


def voice_fields(upload: FakeUpload) -> Json:
    """Fields that only the attachment of a voice message has."""
    return {"duration_secs": float(upload.duration), "waveform": b64encode(_FLAT * 4).decode()}
