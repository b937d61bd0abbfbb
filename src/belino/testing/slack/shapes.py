"""Shapes of Slack's Web API and events: ids, users, conversations and messages as Slack writes them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from belino.domain.ports import Clock

Json = dict[str, Any]

TEAM = "T0BLN000001"
DOMAIN = "belino-test"
APP = "A0BLN000001"
BOT = "B0BLN000001"
BOT_USER = "U0BLN000001"
STRANGERS_TEAM = "T0STRANGERS"
"""The workspace on the other side of a Slack Connect channel."""

_TOKEN = re.compile(
    r"<@(?P<user>[UW]\w+)(?:\|[^>]*)?>|<#(?P<channel>C\w+)(?:\|[^>]*)?>|<!subteam\^(?P<group>\w+)(?:\|[^>]*)?>"
    r"|<!(?P<range>here|channel|everyone)(?:\|[^>]*)?>|<(?P<url>(?:https?|mailto)[^|>]*)(?:\|(?P<label>[^>]*))?>"
    r"|:(?P<emoji>[a-z0-9_+\-]+):"
)
_BARE_LINK = re.compile(r"(?<![<|\w])https?://[^\s<>|]+")
_MENTION = re.compile(r"<@([UW]\w+)(?:\|[^>]*)?>")


class Stamps:
    """Message ids: the time in microseconds, unique in a workspace."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> str:
        now = int(self._clock.now().timestamp() * 1_000_000)
        self._last = max(now, self._last + 100)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06}"


class SlackNumbers:
    """Ids of everything else: a letter for the kind, then a number."""

    def __init__(self) -> None:
        self._next = 1

    def next(self, letter: str) -> str:
        self._next += 1
        return f"{letter}0BLN{self._next:06}"


def user_shape(number: str, name: str, *, bot: bool = False, team: str = TEAM, **more: Any) -> Json:
    """A user as returned by users.info with the locale."""
    return {
        "id": number,
        "team_id": team,
        "name": name.lower().replace(" ", "."),
        "deleted": False,
        "color": "9f69e7",
        "real_name": name,
        "tz": "Europe/Berlin",
        "tz_label": "Central European Time",
        "tz_offset": 3600,
        "locale": "en-US",
        "profile": {
            "title": "",
            "real_name": name,
            "real_name_normalized": name,
            "display_name": "" if bot else name.split(" ")[0],
            "display_name_normalized": "" if bot else name.split(" ")[0],
            "status_text": "",
            "status_emoji": "",
            "avatar_hash": "ge3b51ca72de",
            "team": team,
        }
        | ({"bot_id": BOT, "api_app_id": APP} if number == BOT_USER else {}),
        "is_admin": False,
        "is_owner": False,
        "is_primary_owner": False,
        "is_restricted": False,
        "is_ultra_restricted": False,
        "is_bot": bot,
        "is_app_user": False,
        "updated": 1767225600,
        "who_can_share_contact_card": "EVERYONE",
        **more,
    }


def channel_shape(number: str, name: str, *, private: bool, shared: bool, created: int, creator: str) -> Json:
    """A public or private channel as returned by conversations.info."""
    empty = {"value": "", "creator": "", "last_set": 0}
    return {
        "id": number,
        "name": name,
        "is_channel": not private,
        "is_group": private,
        "is_im": False,
        "is_mpim": False,
        "is_private": private,
        "created": created,
        "is_archived": False,
        "is_general": False,
        "unlinked": 0,
        "name_normalized": name,
        "is_shared": shared,
        "is_org_shared": False,
        "is_pending_ext_shared": False,
        "pending_shared": [],
        "context_team_id": TEAM,
        "updated": created * 1000,
        "parent_conversation": None,
        "creator": creator,
        "is_ext_shared": shared,
        "shared_team_ids": [TEAM, STRANGERS_TEAM] if shared else [TEAM],
        "pending_connected_team_ids": [],
        "is_member": True,
        "topic": dict(empty),
        "purpose": dict(empty),
        "previous_names": [],
    }


def im_shape(number: str, user: str, created: int) -> Json:
    """A direct conversation of one user with the bot."""
    return {
        "id": number,
        "created": created,
        "is_archived": False,
        "is_im": True,
        "is_org_shared": False,
        "context_team_id": TEAM,
        "updated": created * 1000,
        "user": user,
        "is_user_deleted": False,
        "priority": 0,
    }


def mpim_shape(number: str, names: Iterable[str], created: int) -> Json:
    """A direct conversation of several people and the bot."""
    joined = f"mpdm-{'--'.join(names)}-1"
    shape = channel_shape(number, joined, private=True, shared=False, created=created, creator=BOT_USER)
    return shape | {"is_mpim": True, "is_group": False}


def kind_of(channel: Mapping[str, Any]) -> str:
    """Its type in events: channel, group, im or mpim."""
    if channel.get("is_im"):
        return "im"
    if channel.get("is_mpim"):
        return "mpim"
    return "group" if channel.get("is_private") else "channel"


def rich_text(text: str) -> list[Json]:
    """The blocks that Slack's own clients add to a text."""
    parts: list[Json] = []
    at = 0
    for found in _TOKEN.finditer(text):
        _add_words(parts, text[at : found.start()])
        parts.append(_element(found))
        at = found.end()
    _add_words(parts, text[at:])
    section = {"type": "rich_text_section", "elements": parts}
    return [{"type": "rich_text", "block_id": "bLn1x", "elements": [section]}]


def _add_words(parts: list[Json], words: str) -> None:
    if words:
        parts.append({"type": "text", "text": plain(words)})


def _element(found: re.Match[str]) -> Json:
    match found.lastgroup:
        case "user":
            return {"type": "user", "user_id": found["user"]}
        case "channel":
            return {"type": "channel", "channel_id": found["channel"]}
        case "group":
            return {"type": "usergroup", "usergroup_id": found["group"]}
        case "range":
            return {"type": "broadcast", "range": found["range"]}
        case "emoji":
            return {"type": "emoji", "name": found["emoji"]}
        case _:
            label = {"text": plain(found["label"])} if found["label"] else {}
            return {"type": "link", "url": plain(found["url"]), **label}


def plain(text: str) -> str:
    """Slack escapes three characters of a text as entities, and no others."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def linked(text: str) -> str:
    """A text as Slack stores it: bare links in angle brackets."""
    return _BARE_LINK.sub(lambda found: f"<{found.group()}>", text)


def mentioned(text: str) -> list[str]:
    """The users mentioned in a text."""
    return _MENTION.findall(text)


def permalink(channel: str, stamp: str, thread: str | None = None) -> str:
    """The permalink of a message."""
    link = f"https://{DOMAIN}.slack.com/archives/{channel}/p{stamp.replace('.', '')}"
    return link if thread in (None, stamp) else f"{link}?thread_ts={thread}&cid={channel}"
