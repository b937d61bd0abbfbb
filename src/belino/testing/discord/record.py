"""What Discord knows — people, servers, channels, messages — and how it tells each of them to a bot."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from belino.domain.ports import Clock
from belino.testing.discord.files import Cdn
from belino.testing.discord.sessions import Session, Sessions
from belino.testing.discord.shapes import (
    THREADS,
    ChannelType,
    Json,
    MessageFlag,
    MessageType,
    Snowflakes,
    emoji_shape,
    member_shape,
    stamp,
    time_of,
    user_shape,
)
from belino.testing.file_server import FakeUpload

PIECE = 1000
"""How many members are told at once."""


@dataclass(slots=True, kw_only=True)
class Interaction:
    """A slash command that somebody used, and how far the bot's answer is."""

    asked: Json
    user: Json
    channel: Json
    at: float
    acknowledged: bool = False
    answer: Json | None = None


class DiscordState:
    """Everything that is kept."""

    def __init__(self, clock: Clock, *, bot_id: str, bot_name: str) -> None:
        self.clock = clock
        self.ids = Snowflakes(clock)
        self.cdn = Cdn(clock)
        self.sessions = Sessions(clock, self.veiled)
        self.bot = user_shape(bot_id, bot_name, bot=True)
        self.users: dict[str, Json] = {bot_id: self.bot}
        self.guilds: dict[str, Json] = {}
        self.channels: dict[str, Json] = {}
        self.stickers: dict[str, Json] = {}
        self.members: dict[tuple[str, str], Json] = {}
        """By server and user."""
        self.messages: defaultdict[str, dict[str, Json]] = defaultdict(dict)
        """By channel, then by id, oldest first; attachments without links, which are made when a message is told."""
        self.reactions: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
        """By message: each emoji with the users who chose it."""
        self.pins: dict[str, str] = {}
        """By message: when it was pinned or taken down last."""
        self.forbidden: defaultdict[str, set[str]] = defaultdict(set)
        """By channel: the permissions the bot lacks there, by their documented names."""
        self.blocked: set[str] = set()
        """Ids of users who take no direct messages from the bot."""
        self.commands: dict[str, Json] = {}
        """The slash commands the bot registered."""
        self.interactions: dict[str, Interaction] = {}
        """Commands that were used, by their token."""
        self.sent: list[Json] = []
        """Every message the bot made visible, oldest first."""
        self.edited: list[tuple[str, str]] = []
        """Every change the bot made, oldest first: message id and text."""
        self.received: list[FakeUpload] = []
        """Every file the bot uploaded and Discord took, with its hash."""

    def may(self, channel: Json, permission: str) -> bool:
        """Whether the bot has a permission; a thread takes its parent's."""
        places = (channel["id"], channel.get("parent_id"))
        return not any(permission in self.forbidden.get(str(place), ()) for place in places)

    def announce(self, event: str, channel_id: str, payload: Json) -> None:
        """Tell the bot, if it may see the channel."""
        if self.may(self.channels[channel_id], "VIEW_CHANNEL"):
            self.sessions.dispatch(event, payload)

    def tell_created(self, message: Json, **more: Any) -> None:
        self.announce("MESSAGE_CREATE", message["channel_id"], self._event(message) | more)

    def tell_updated(self, message: Json) -> Json:
        self.announce("MESSAGE_UPDATE", message["channel_id"], self._event(message) | {"tts": False})
        return self.told(message)

    def told(self, message: Json) -> Json:
        """A message as a GET tells it: fresh links, its reactions, what it answers, its thread."""
        told = self._bare(message)
        if message["type"] in (MessageType.REPLY, MessageType.THREAD_STARTER, MessageType.MENU_COMMAND):
            reference = message["message_reference"]
            answered = self.messages[reference["channel_id"]].get(reference.get("message_id", ""))
            told["referenced_message"] = None if answered is None else self._bare(answered)
        return told

    def veiled(self, told: Json) -> Json:
        """What a bot without the message content intent is told of other people's words."""
        to_bot = any(user["id"] == self.bot["id"] for user in told["mentions"])
        direct = self.channels[told["channel_id"]]["type"] == ChannelType.DM
        if to_bot or direct or told["author"]["id"] == self.bot["id"]:
            return told
        empty = {"content": "", "embeds": [], "attachments": [], "components": []}
        return {name: value for name, value in told.items() if name != "poll"} | empty

    def beginning(self, session: Session) -> list[tuple[str, Json]]:
        """What a session begins with, behind its READY."""
        told = [("GUILD_CREATE", self.guild_told(guild)) for guild in self.guilds.values()]
        return [(event, payload) for event, payload in told if session.wants(event, in_guild=True)]

    def guild_told(self, guild: Json) -> Json:
        """A server as GUILD_CREATE tells it: with its channels, its living threads, and of its members the bot."""
        number = guild["id"]
        places = [dict(channel) for channel in self.channels.values() if channel.get("guild_id") == number]
        active = [p for p in places if p["type"] in THREADS and not p["thread_metadata"]["archived"]]
        me = self.members[number, self.bot["id"]]
        return {
            **guild,
            "joined_at": me["joined_at"],
            "large": False,
            "unavailable": False,
            "member_count": sum(where == number for where, _ in self.members),
            "members": [{**me, "user": self.bot}],
            "channels": [place for place in places if place["type"] not in THREADS],
            "threads": active,
            "voice_states": [],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }

    def member_of(self, guild: str | None, user: Json, *, whole: bool = False) -> Json:
        """The field `member`, where there is a server; `whole` with the user in it."""
        if guild is None:
            return {}
        found = self.members.setdefault((guild, user["id"]), member_shape(stamp(time_of(user["id"]))))
        return {"member": {**found, "user": user} if whole else dict(found)}

    def member_pieces(self, asked: Json) -> list[Json]:
        """Who is in a server, as somebody asked over the gateway: all, by the beginning of a name, or by ids."""
        guild, wanted = str(asked.get("guild_id")), asked.get("user_ids")
        ids = None if wanted is None else [str(one) for one in (wanted if isinstance(wanted, list) else [wanted])]
        here = {
            who: {**member, "user": self.users[who]} for (where, who), member in self.members.items() if where == guild
        }
        if ids is not None:
            found = [here[own] for own in ids if own in here]
        else:
            beginning = str(asked.get("query") or "").lower()
            found = [member for member in here.values() if member["user"]["username"].lower().startswith(beginning)]
        found = found[: asked.get("limit") or None]
        pieces = [found[at : at + PIECE] for at in range(0, len(found), PIECE)] or [[]]
        told: Json = {
            "guild_id": guild,
            "chunk_count": len(pieces),
            "not_found": [o for o in ids or () if o not in here],
        }
        told |= {"nonce": asked["nonce"]} if "nonce" in asked else {}
        return [{**told, "chunk_index": number, "members": piece} for number, piece in enumerate(pieces)]

    def guild_of(self, channel_id: str) -> Json:
        """The field `guild_id`, where there is a server."""
        channel = self.channels[channel_id]
        return {"guild_id": channel["guild_id"]} if "guild_id" in channel else {}

    def _event(self, message: Json) -> Json:
        where = self.channels[message["channel_id"]]
        # What only one person sees does not go through the server, so it names none.
        guild = {} if message["flags"] & MessageFlag.EPHEMERAL else self.guild_of(where["id"])
        told = {**self.told(message), **guild, "channel_type": where["type"]}
        if "webhook_id" not in message:
            told |= self.member_of(guild.get("guild_id"), message["author"])
        told["mentions"] = [{**user, **self.member_of(guild.get("guild_id"), user)} for user in message["mentions"]]
        return told

    def _bare(self, message: Json) -> Json:
        where = message["channel_id"]
        told = {**message, **self.cdn.shown(where, message)}
        if "message_snapshots" in message:
            source = message["message_reference"]["channel_id"]
            told["message_snapshots"] = [
                {"message": s["message"] | self.cdn.shown(source, s["message"])} for s in message["message_snapshots"]
            ]
        if chosen := self.reactions.get(message["id"]):
            told["reactions"] = [self._reaction(emoji, users) for emoji, users in chosen.items()]
        if message["flags"] & MessageFlag.HAS_THREAD and message["id"] in self.channels:
            told["thread"] = dict(self.channels[message["id"]])
        return told

    def _reaction(self, emoji: str, users: list[str]) -> Json:
        return {
            "emoji": emoji_shape(emoji),
            "count": len(users),
            "count_details": {"burst": 0, "normal": len(users)},
            "burst_colors": [],
            "me": self.bot["id"] in users,
            "me_burst": False,
        }
