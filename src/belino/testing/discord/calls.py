"""Calls of the REST API: the routes of `/api/v10` that a bot may use."""

import re
from collections.abc import Callable, Sequence

from belino.testing.discord.gateway import MEMBERS, MESSAGE_CONTENT, PRESENCES
from belino.testing.discord.request import GONE, Answered, DiscordCall, DiscordRefusal, invalid
from belino.testing.discord.sends import DiscordSends, Interactions
from belino.testing.discord.shapes import (
    PERMISSIONS,
    THREADS,
    ChannelType,
    DiscordMessageFlag,
    Json,
    MessageType,
    emoji_shape,
    stamp,
)
from belino.testing.discord.world import DiscordWorld

MOST_HISTORY = 100
MOST_REACTIONS = 20
MOST_LINKS = 50
# The application's flags for enabled privileged intents, for a bot in fewer than a hundred servers.
INTENT_FLAGS = {PRESENCES: 1 << 13, MEMBERS: 1 << 15, MESSAGE_CONTENT: 1 << 19}
MOST_PINS = 50
CHANGEABLE = frozenset({"name", "topic", "nsfw", "rate_limit_per_user", "position", "parent_id"})
THREAD_STATES = frozenset({"archived", "locked", "auto_archive_duration"})


class DiscordCalls:
    """Every route, matched in this order."""

    def __init__(self, world: DiscordWorld) -> None:
        self.world = world
        self.allowed = MESSAGE_CONTENT | MEMBERS | PRESENCES
        self.gateway_url = ""
        self.links_refreshed = 0
        self._sends = DiscordSends(world)
        message = "/channels/{channel}/messages/{message}"
        self._routes: Sequence[tuple[str, str, Callable[[DiscordCall], Answered]]] = [
            ("GET", "/gateway", self._gateway),
            ("GET", "/gateway/bot", self._gateway),
            ("GET", "/users/@me", self._me),
            ("GET", "/users/@me/guilds", self._my_guilds),
            ("POST", "/users/@me/channels", self._open_dm),
            ("GET", "/users/{user}", self._user),
            ("GET", "/applications/@me", self._application),
            ("GET", "/oauth2/applications/@me", self._application),
            ("GET", "/channels/{channel}", self._channel),
            ("GET", "/channels/{channel}/messages", self._history),
            ("POST", "/channels/{channel}/messages", self._create),
            ("POST", "/channels/{channel}/messages/bulk-delete", self._delete_many),
            ("GET", message, self._message),
            ("PATCH", message, self._edit),
            ("DELETE", message, self._delete),
            ("GET", f"{message}/reactions/{{emoji}}", self._who_reacted),
            ("PUT", f"{message}/reactions/{{emoji}}/@me", self._react),
            ("DELETE", f"{message}/reactions/{{emoji}}/@me", self._react),
            ("POST", f"{message}/threads", self._start_thread),
            ("POST", "/channels/{channel}/threads", self._start_thread),
            ("PUT", "/channels/{channel}/thread-members/@me", self._join_thread),
            ("POST", "/channels/{channel}/typing", self._typing),
            ("POST", "/attachments/refresh-urls", self._refresh),
            ("GET", "/guilds/{guild}", self._guild),
            ("GET", "/guilds/{guild}/channels", self._guild_channels),
            ("GET", "/guilds/{guild}/threads/active", self._active_threads),
            ("GET", "/guilds/{guild}/members/{user}", self._member),
            *Interactions(world, self._sends).routes,
            *Moderation(world, self._at, self._kept).routes,
        ]
        self._patterns = [(method, route, _pattern(route), answer) for method, route, answer in self._routes]

    def find(self, method: str, path: str) -> tuple[DiscordCall, Callable[[DiscordCall], Answered]]:
        """The route of a path, with its ids."""
        known = False
        for wanted, route, pattern, answer in self._patterns:
            if found := pattern.fullmatch(path):
                known = True
                if wanted == method:
                    return DiscordCall(method=method, route=route, ids=found.groupdict()), answer
        raise DiscordRefusal(405, 0, "405: Method Not Allowed") if known else DiscordRefusal(404, 0, "404: Not Found")

    # The bot itself.

    def _gateway(self, call: DiscordCall) -> Json:
        if call.route == "/gateway":
            return {"url": self.gateway_url}
        started = len(self.world.sessions.identified)
        limit = {"total": 1000, "remaining": 1000 - started, "reset_after": 14_400_000, "max_concurrency": 1}
        return {"url": self.gateway_url, "shards": 1, "session_start_limit": limit}

    def _me(self, call: DiscordCall) -> Json:
        return {**self.world.bot, "verified": True, "mfa_enabled": False, "locale": "en-US", "email": None, "flags": 0}

    def _my_guilds(self, call: DiscordCall) -> list[Json]:
        mine = {"owner": False, "permissions": PERMISSIONS}
        guilds = self.world.guilds.values()
        return [{n: guild[n] for n in ("id", "name", "icon", "features")} | mine for guild in guilds]

    def application_flags(self) -> int:
        return sum(flag for intent, flag in INTENT_FLAGS.items() if self.allowed & intent)

    def _application(self, call: DiscordCall) -> Json:
        bot, flags = self.world.bot, self.application_flags()
        return {
            "id": bot["id"],
            "name": bot["username"],
            "icon": None,
            "description": "",
            "summary": "",
            "type": None,
            "bot": bot,
            "bot_public": True,
            "bot_require_code_grant": False,
            "verify_key": "0" * 64,
            "flags": flags,
            "flags_new": str(flags),
            "approximate_guild_count": len(self.world.guilds),
            "owner": next((user for user in self.world.users.values() if not user.get("bot")), bot),
            "team": None,
            "rpc_origins": [],
            "redirect_uris": [],
            "interactions_endpoint_url": None,
            "install_params": None,
        }

    def _user(self, call: DiscordCall) -> Json:
        if (user := self.world.users.get(call.ids["user"])) is None:
            raise DiscordRefusal(404, 10013, "Unknown User")
        return user

    def _open_dm(self, call: DiscordCall) -> Json:
        user = self.world.users.get(str(call.fields.get("recipient_id")))
        if user is None or user["id"] == self.world.bot["id"]:
            raise DiscordRefusal(400, 50033, "Invalid Recipient(s)")
        return self.world.dm(user)

    # Channels and messages.

    def _at(self, call: DiscordCall) -> Json:
        channel = self.world.channels.get(call.ids["channel"])
        if channel is None:
            raise DiscordRefusal(404, 10003, "Unknown Channel")
        if not self.world.may(channel, "VIEW_CHANNEL"):
            raise DiscordRefusal(403, 50001, "Missing Access")
        return channel

    def _kept(self, call: DiscordCall) -> tuple[Json, Json]:
        channel = self._at(call)
        message = self.world.messages[channel["id"]].get(call.ids["message"])
        if message is None:
            raise DiscordRefusal(404, 10008, "Unknown Message")
        return channel, message

    def _seen(self, message: Json) -> Json:
        told = self.world.payload(message)
        return told if self.allowed & MESSAGE_CONTENT else self.world.without_content(told)

    def _channel(self, call: DiscordCall) -> Json:
        return dict(self._at(call))

    def _history(self, call: DiscordCall) -> list[Json]:
        channel = self._at(call)
        limit = _number(call, "limit", 50)
        if not 1 <= limit <= MOST_HISTORY:
            raise invalid("limit", "NUMBER_TYPE_MAX", f"int value should be between 1 and {MOST_HISTORY}.")
        anchors = [name for name in ("before", "after", "around") if name in call.query]
        if not self.world.may(channel, "READ_MESSAGE_HISTORY"):
            return []
        kept = [m for m in self.world.messages[channel["id"]].values() if not m["flags"] & DiscordMessageFlag.EPHEMERAL]
        return [self._seen(message) for message in reversed(_page(kept, anchors, call, limit))]

    def _message(self, call: DiscordCall) -> Json:
        channel, message = self._kept(call)
        if not self.world.may(channel, "READ_MESSAGE_HISTORY"):
            raise DiscordRefusal(403, 50001, "Missing Access")
        return self._seen(message)

    def _create(self, call: DiscordCall) -> Json:
        return self._sends.create(call, self._at(call))

    def _edit(self, call: DiscordCall) -> Json:
        channel, message = self._kept(call)
        return self._sends.edit(call, channel, message)

    def _delete(self, call: DiscordCall) -> Json:
        channel, message = self._kept(call)
        if message["author"]["id"] != self.world.bot["id"] and not self._moderates(channel):
            raise DiscordRefusal(403, 50013, "Missing Permissions")
        self.world.delete(message)
        return GONE

    def _delete_many(self, call: DiscordCall) -> Json:
        channel = self._at(call)
        if not self._moderates(channel):
            raise DiscordRefusal(403, 50013, "Missing Permissions")
        ids = call.fields.get("messages") or []
        if not 2 <= len(ids) <= 100:
            raise invalid("messages", "BASE_TYPE_BAD_LENGTH", "Must be between 2 and 100 in length.")
        kept = self.world.messages[channel["id"]]
        self.world.delete(*[kept.get(str(number), {"id": str(number), "channel_id": channel["id"]}) for number in ids])
        return GONE

    def _moderates(self, channel: Json) -> bool:
        return "guild_id" in channel and self.world.may(channel, "MANAGE_MESSAGES")

    def _who_reacted(self, call: DiscordCall) -> list[Json]:
        _, message = self._kept(call)
        chosen = self.world.reactions[message["id"]].get(call.ids["emoji"], [])
        return [self.world.users[number] for number in chosen]

    def _react(self, call: DiscordCall) -> Json:
        channel, message = self._kept(call)
        emoji, there = call.ids["emoji"], self.world.reactions[message["id"]]
        if emoji.isascii() and ":" not in emoji:
            raise DiscordRefusal(400, 10014, "Unknown Emoji")
        # Adding to a reaction that is there needs no permission of its own, and removing none at all.
        permission = "READ_MESSAGE_HISTORY" if emoji in there else "ADD_REACTIONS"
        if call.method == "PUT" and not self.world.may(channel, permission):
            raise DiscordRefusal(403, 50013, "Missing Permissions")
        if call.method == "PUT" and emoji not in there and len(there) >= MOST_REACTIONS:
            raise DiscordRefusal(400, 30010, f"Maximum number of reactions reached ({MOST_REACTIONS})")
        self.world.react(message, self.world.bot, emoji, remove=call.method == "DELETE")
        return GONE

    def _typing(self, call: DiscordCall) -> Json:
        channel = self._at(call)
        self.world.type(channel, self.world.bot)
        return GONE

    # Threads.

    def _start_thread(self, call: DiscordCall) -> Json:
        channel = self._at(call)
        message = self._kept(call)[1] if "message" in call.ids else None
        name = call.fields.get("name")
        if not isinstance(name, str) or not 1 <= len(name) <= 100:
            raise invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
        if channel["type"] == ChannelType.FORUM:
            return self._post_in_forum(call, channel, name)
        if channel["type"] not in (ChannelType.TEXT, ChannelType.NEWS):
            raise DiscordRefusal(400, 50024, "Cannot execute action on this channel type")
        if message is not None and message["flags"] & DiscordMessageFlag.HAS_THREAD:
            raise DiscordRefusal(400, 160004, "A thread has already been created for this message")
        if not self.world.may(channel, "CREATE_PUBLIC_THREADS"):
            raise DiscordRefusal(403, 50013, "Missing Permissions")
        kind = (
            ChannelType.PUBLIC_THREAD
            if message is not None
            else int(call.fields.get("type", ChannelType.PRIVATE_THREAD))
        )
        return self.world.thread(channel, self.world.bot, name, message=message, kind=int(kind))

    def _post_in_forum(self, call: DiscordCall, forum: Json, name: str) -> Json:
        """A thread with its first message in one call; both have the same id."""
        if not self.world.may(forum, "SEND_MESSAGES"):
            raise DiscordRefusal(403, 50013, "Missing Permissions")
        fields = call.fields.get("message")
        if not isinstance(fields, dict):
            raise invalid("message", "BASE_TYPE_REQUIRED", "This field is required")
        thread = self.world.thread(forum, self.world.bot, name)
        try:
            first = self._sends.post(call, fields, thread, id=thread["id"])
        except DiscordRefusal:
            gone = self.world.channels.pop(thread["id"])
            self.world.sessions.dispatch("THREAD_DELETE", {n: gone[n] for n in ("id", "guild_id", "parent_id", "type")})
            raise
        return {**thread, "message": first}

    def _join_thread(self, call: DiscordCall) -> Json:
        channel = self._at(call)
        if channel["type"] not in THREADS:
            raise DiscordRefusal(400, 50024, "Cannot execute action on this channel type")
        return GONE

    # Links and servers.

    def _refresh(self, call: DiscordCall) -> Json:
        links = call.fields.get("attachment_urls")
        if not isinstance(links, list) or not 1 <= len(links) <= MOST_LINKS:
            raise invalid("attachment_urls", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {MOST_LINKS} in length.")
        self.links_refreshed += len(links)
        told = [{"original": link, "refreshed": self.world.cdn.refreshed(str(link))} for link in links]
        return {"refreshed_urls": told}

    def _at_guild(self, call: DiscordCall) -> Json:
        if (guild := self.world.guilds.get(call.ids["guild"])) is None:
            raise DiscordRefusal(404, 10004, "Unknown Guild")
        return guild

    def _guild(self, call: DiscordCall) -> Json:
        return self._at_guild(call)

    def _guild_channels(self, call: DiscordCall) -> list[Json]:
        return list(self.world.guild_payload(self._at_guild(call))["channels"])

    def _active_threads(self, call: DiscordCall) -> Json:
        return {"threads": self.world.guild_payload(self._at_guild(call))["threads"], "members": []}

    def _member(self, call: DiscordCall) -> Json:
        key = (self._at_guild(call)["id"], call.ids["user"])
        if key not in self.world.members:
            raise DiscordRefusal(404, 10007, "Unknown Member")
        return {**self.world.members[key], "user": self.world.users[call.ids["user"]]}


def _pattern(route: str) -> re.Pattern[str]:
    def group(found: re.Match[str]) -> str:
        return f"(?P<{found[1]}>{'[^/]+' if found[1] in ('emoji', 'token') else '[0-9]{1,20}'})"

    return re.compile(re.sub(r"\\\{(\w+)\\\}", group, re.escape(route)))


def _number(call: DiscordCall, name: str, default: int) -> int:
    written = call.query.get(name, str(default))
    if not written.isdigit():
        raise invalid(name, "NUMBER_TYPE_COERCE", f'Value "{written}" is not int.')
    return int(written)


def _page(kept: list[Json], anchors: list[str], call: DiscordCall, limit: int) -> list[Json]:
    """So many messages on one side of an id, or around it, oldest first."""
    if not anchors:
        return kept[-limit:]
    anchor = _number(call, anchors[0], 0)
    older = [message for message in kept if int(message["id"]) < anchor]
    newer = [message for message in kept if int(message["id"]) > anchor]
    if anchors[0] == "before":
        return older[-limit:]
    if anchors[0] == "after":
        return newer[:limit]
    middle = [message for message in kept if int(message["id"]) == anchor]
    half = limit // 2
    return [*older[max(len(older) - half, 0) :], *middle, *newer[: max(limit - half - len(middle), 0)]]


class Moderation:
    """These routes; `at` and `kept` find the channel and the message of a call, or refuse it."""

    def __init__(
        self, world: DiscordWorld, at: Callable[[DiscordCall], Json], kept: Callable[[DiscordCall], tuple[Json, Json]]
    ) -> None:
        self._world = world
        self._at = at
        self._kept = kept
        chosen = "/channels/{channel}/messages/{message}/reactions"
        pins, old_pins = "/channels/{channel}/messages/pins", "/channels/{channel}/pins"
        self.routes: Sequence[tuple[str, str, Callable[[DiscordCall], Answered]]] = [
            ("DELETE", chosen, self._clear),
            ("DELETE", f"{chosen}/{{emoji}}", self._clear),
            ("DELETE", f"{chosen}/{{emoji}}/{{user}}", self._take_away),
            ("GET", pins, self._pins),
            ("GET", old_pins, self._old_pins),
            *((method, f"{each}/{{message}}", self._pin) for method in ("PUT", "DELETE") for each in (pins, old_pins)),
            ("POST", "/channels/{channel}/polls/{message}/expire", self._end_poll),
            ("PATCH", "/channels/{channel}", self._change),
            ("DELETE", "/channels/{channel}", self._remove),
            ("DELETE", "/channels/{channel}/thread-members/@me", self._leave),
            ("GET", "/guilds/{guild}/roles", self._roles),
        ]

    def _clear(self, call: DiscordCall) -> Json:
        message = self._moderated(call)
        there, emoji = self._world.reactions[message["id"]], call.ids.get("emoji")
        where = message["channel_id"]
        told: Json = {"channel_id": where, "message_id": message["id"], **self._world.guild_of(where)}
        if emoji is None:
            there.clear()
            self._world.announce("MESSAGE_REACTION_REMOVE_ALL", where, told)
        elif there.pop(emoji, None) is not None:
            self._world.announce("MESSAGE_REACTION_REMOVE_EMOJI", where, told | {"emoji": emoji_shape(emoji)})
        return GONE

    def _take_away(self, call: DiscordCall) -> Json:
        message = self._moderated(call)
        if (user := self._world.users.get(call.ids["user"])) is None:
            raise DiscordRefusal(404, 10013, "Unknown User")
        self._world.react(message, user, call.ids["emoji"], remove=True)
        return GONE

    def _moderated(self, call: DiscordCall) -> Json:
        channel, message = self._kept(call)
        self._permit(channel, "MANAGE_MESSAGES")
        return message

    def _permit(self, channel: Json, permission: str) -> None:
        if not self._world.may(channel, permission):
            raise DiscordRefusal(403, 50013, "Missing Permissions")

    def _pin(self, call: DiscordCall) -> Json:
        channel, message = self._kept(call)
        self._permit(channel, "PIN_MESSAGES")
        pinned = call.method == "PUT"
        if pinned == message["pinned"]:
            return GONE
        if pinned and len(self._pinned(channel)) >= MOST_PINS:
            raise DiscordRefusal(400, 30003, f"Maximum number of pins reached for the channel ({MOST_PINS})")
        world, where, now = self._world, channel["id"], stamp(self._world.clock.now())
        message["pinned"] = pinned
        world.pins[message["id"]] = now
        world.send_updated(message)
        guild = world.guild_of(where)
        world.announce("CHANNEL_PINS_UPDATE", where, {"channel_id": where, "last_pin_timestamp": now, **guild})
        if pinned:
            named = {"message_id": message["id"], "channel_id": where, "type": 0, **guild}
            world.say(channel, world.bot, type=int(MessageType.PINNED), message_reference=named)
        return GONE

    def _pinned(self, channel: Json) -> list[Json]:
        """Latest pin first."""
        found = [message for message in self._world.messages[channel["id"]].values() if message["pinned"]]
        return sorted(found, key=lambda message: self._world.pins[message["id"]], reverse=True)

    def _pins(self, call: DiscordCall) -> Json:
        found = [
            {"pinned_at": self._world.pins[message["id"]], "message": self._world.payload(message)}
            for message in self._pinned(self._at(call))
        ]
        return {"items": found, "has_more": False}

    def _old_pins(self, call: DiscordCall) -> list[Json]:
        return [self._world.payload(message) for message in self._pinned(self._at(call))]

    def _end_poll(self, call: DiscordCall) -> Json:
        _, message = self._kept(call)
        poll = message.get("poll")
        if poll is None or message["author"]["id"] != self._world.bot["id"]:
            raise DiscordRefusal(403, 50013, "Missing Permissions")
        poll |= {"expiry": stamp(self._world.clock.now()), "results": {"is_finalized": True, "answer_counts": []}}
        return self._world.send_updated(message)

    def _change(self, call: DiscordCall) -> Json:
        channel, fields = self._at(call), call.fields
        if "guild_id" not in channel:
            raise DiscordRefusal(403, 50003, "Cannot execute action on a DM channel")
        in_thread = channel["type"] in THREADS
        mine = in_thread and channel["owner_id"] == self._world.bot["id"]
        if not mine:
            self._permit(channel, "MANAGE_THREADS" if in_thread else "MANAGE_CHANNELS")
        if not 1 <= len(str(fields.get("name", channel["name"]))) <= 100:
            raise invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
        channel |= {name: value for name, value in fields.items() if name in CHANGEABLE}
        if in_thread:
            channel["thread_metadata"] |= {name: fields[name] for name in THREAD_STATES & set(fields)}
        self._world.announce("THREAD_UPDATE" if in_thread else "CHANNEL_UPDATE", channel["id"], dict(channel))
        return dict(channel)

    def _remove(self, call: DiscordCall) -> Json:
        channel = self._at(call)
        if "guild_id" not in channel:
            raise DiscordRefusal(403, 50003, "Cannot execute action on a DM channel")
        in_thread = channel["type"] in THREADS
        self._permit(channel, "MANAGE_THREADS" if in_thread else "MANAGE_CHANNELS")
        told = {name: channel[name] for name in ("id", "guild_id", "parent_id", "type")} if in_thread else dict(channel)
        self._world.announce("THREAD_DELETE" if in_thread else "CHANNEL_DELETE", channel["id"], told)
        del self._world.channels[channel["id"]]
        self._world.messages.pop(channel["id"], None)
        return dict(channel)

    def _leave(self, call: DiscordCall) -> Json:
        if self._at(call)["type"] not in THREADS:
            raise DiscordRefusal(400, 50024, "Cannot execute action on this channel type")
        return GONE

    def _roles(self, call: DiscordCall) -> list[Json]:
        if (guild := self._world.guilds.get(call.ids["guild"])) is None:
            raise DiscordRefusal(404, 10004, "Unknown Guild")
        return list(guild["roles"])
