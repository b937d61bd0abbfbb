"""What a bot does besides talking: reactions of others, pins, polls that end, threads that are archived or left."""

from collections.abc import Callable, Sequence

from belino.testing.discord.request import GONE, Answered, DiscordCall, DiscordRefusal, invalid
from belino.testing.discord.shapes import THREADS, Json, MessageType, emoji_shape, stamp
from belino.testing.discord.world import DiscordWorld

MOST_PINS = 50
CHANGEABLE = frozenset({"name", "topic", "nsfw", "rate_limit_per_user", "position", "parent_id"})
THREAD_STATES = frozenset({"archived", "locked", "auto_archive_duration"})


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
        world.tell_updated(message)
        guild = world.guild_of(where)
        world.announce("CHANNEL_PINS_UPDATE", where, {"channel_id": where, "last_pin_timestamp": now, **guild})
        if pinned:
            named = {"message_id": message["id"], "channel_id": where, "type": 0, **guild}
            world.say(channel, world.bot, type=int(MessageType.PINNED), message_reference=named)
        return GONE

    def _pinned(self, channel: Json) -> list[Json]:
        """Pinned last first."""
        found = [message for message in self._world.messages[channel["id"]].values() if message["pinned"]]
        return sorted(found, key=lambda message: self._world.pins[message["id"]], reverse=True)

    def _pins(self, call: DiscordCall) -> Json:
        found = [
            {"pinned_at": self._world.pins[message["id"]], "message": self._world.told(message)}
            for message in self._pinned(self._at(call))
        ]
        return {"items": found, "has_more": False}

    def _old_pins(self, call: DiscordCall) -> list[Json]:
        return [self._world.told(message) for message in self._pinned(self._at(call))]

    def _end_poll(self, call: DiscordCall) -> Json:
        _, message = self._kept(call)
        poll = message.get("poll")
        if poll is None or message["author"]["id"] != self._world.bot["id"]:
            raise DiscordRefusal(403, 50013, "Missing Permissions")
        poll |= {"expiry": stamp(self._world.clock.now()), "results": {"is_finalized": True, "answer_counts": []}}
        return self._world.tell_updated(message)

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
