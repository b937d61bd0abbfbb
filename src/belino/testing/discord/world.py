"""World of a Discord bot: people, servers, channels and messages, and the payloads for each."""

import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from belino.domain.ports import Clock
from belino.testing.discord.gateway import DiscordSession, DiscordSessions
from belino.testing.discord.shapes import (
    PERMISSIONS,
    SNAPSHOT_FIELDS,
    STICKER_ENDINGS,
    THREADS,
    Cdn,
    ChannelType,
    DiscordMessageFlag,
    Json,
    MessageType,
    Snowflakes,
    channel_shape,
    emoji_shape,
    guild_shape,
    member_shape,
    mentioned_users,
    message_shape,
    role_shape,
    stamp,
    thread_shape,
    time_of,
    user_shape,
    voice_fields,
)
from belino.testing.file_server import FakeUpload, upload_of

PIECE = 1000
"""How many members are sent at once."""
# The type of a command's option by its value.
_OPTIONS = ((FakeUpload, 11), (bool, 5), (int, 4), (float, 10), (str, 3))


@dataclass(slots=True, kw_only=True)
class Interaction:
    """A slash command that was used, and the state of the bot's answer."""

    asked: Json
    user: Json
    channel: Json
    at: float
    acknowledged: bool = False
    flags: int = 0
    """Those of a deferred answer."""
    answer: Json | None = None


class DiscordState:
    """Everything that Discord stores, and the payloads it sends."""

    def __init__(self, clock: Clock, *, bot_id: str, bot_name: str) -> None:
        self.clock = clock
        self.ids = Snowflakes(clock)
        self.cdn = Cdn(clock)
        self.sessions = DiscordSessions(clock, self.without_content)
        self.bot = user_shape(bot_id, bot_name, bot=True)
        self.users: dict[str, Json] = {bot_id: self.bot}
        self.guilds: dict[str, Json] = {}
        self.channels: dict[str, Json] = {}
        self.stickers: dict[str, Json] = {}
        self.members: dict[tuple[str, str], Json] = {}
        """By server and user."""
        self.messages: defaultdict[str, dict[str, Json]] = defaultdict(dict)
        """By channel, then by id, oldest first; attachments without links, which are made when a message is sent."""
        self.reactions: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
        """By message: each emoji with the users who chose it."""
        self.pins: dict[str, str] = {}
        """By message: when it was last pinned or unpinned."""
        self.forbidden: defaultdict[str, set[str]] = defaultdict(set)
        """By channel: the permissions the bot lacks there, by their documented names."""
        self.blocked: set[str] = set()
        """Ids of users who accept no direct messages from the bot."""
        self.commands: dict[str, Json] = {}
        """The slash commands the bot registered."""
        self.interactions: dict[str, Interaction] = {}
        """Commands that were used, by their token."""
        self.sent: list[Json] = []
        """Every message the bot sent, oldest first."""
        self.edited: list[tuple[str, str]] = []
        """Every edit the bot made, oldest first: message id and text."""
        self.received: list[FakeUpload] = []
        """Every file the bot uploaded successfully, with its hash."""

    def may(self, channel: Json, permission: str) -> bool:
        """Whether the bot has a permission; a thread inherits its parent's."""
        places = (channel["id"], channel.get("parent_id"))
        return not any(permission in self.forbidden.get(str(place), ()) for place in places)

    def announce(self, event: str, channel_id: str, payload: Json) -> None:
        """Send an event to the bot, if it may see the channel."""
        if self.may(self.channels[channel_id], "VIEW_CHANNEL"):
            self.sessions.dispatch(event, payload)

    def send_created(self, message: Json, **more: Any) -> None:
        self.announce("MESSAGE_CREATE", message["channel_id"], self._event(message) | more)

    def send_updated(self, message: Json) -> Json:
        self.announce("MESSAGE_UPDATE", message["channel_id"], self._event(message) | {"tts": False})
        return self.payload(message)

    def payload(self, message: Json) -> Json:
        """A message as returned by GET: fresh links, its reactions, its reference, its thread."""
        told = self._bare(message)
        if message["type"] in (MessageType.REPLY, MessageType.THREAD_STARTER, MessageType.MENU_COMMAND):
            reference = message["message_reference"]
            answered = self.messages[reference["channel_id"]].get(reference.get("message_id", ""))
            told["referenced_message"] = None if answered is None else self._bare(answered)
        return told

    def without_content(self, told: Json) -> Json:
        """A message as sent to a bot without the message content intent."""
        to_bot = any(user["id"] == self.bot["id"] for user in told["mentions"])
        direct = self.channels[told["channel_id"]]["type"] == ChannelType.DM
        if to_bot or direct or told["author"]["id"] == self.bot["id"]:
            return told
        empty = {"content": "", "embeds": [], "attachments": [], "components": []}
        return {name: value for name, value in told.items() if name != "poll"} | empty

    def first_events(self, session: DiscordSession) -> list[tuple[str, Json]]:
        """The events at the start of a session, after READY."""
        told = [("GUILD_CREATE", self.guild_payload(guild)) for guild in self.guilds.values()]
        return [(event, payload) for event, payload in told if session.wants(event, in_guild=True)]

    def guild_payload(self, guild: Json) -> Json:
        """A server as in GUILD_CREATE: with its channels, its active threads, and the bot as its only member."""
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
        """The field `member`, in a server; `whole` includes the user."""
        if guild is None:
            return {}
        found = self.members.setdefault((guild, user["id"]), member_shape(stamp(time_of(user["id"]))))
        return {"member": {**found, "user": user} if whole else dict(found)}

    def member_chunks(self, asked: Json) -> list[Json]:
        """The members of a server, as requested over the gateway: all, by the beginning of a name, or by ids."""
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
        """The field `guild_id`, in a server."""
        channel = self.channels[channel_id]
        return {"guild_id": channel["guild_id"]} if "guild_id" in channel else {}

    def _event(self, message: Json) -> Json:
        where = self.channels[message["channel_id"]]
        # Ephemeral messages are sent without their server.
        guild = {} if message["flags"] & DiscordMessageFlag.EPHEMERAL else self.guild_of(where["id"])
        told = {**self.payload(message), **guild, "channel_type": where["type"]}
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
        if message["flags"] & DiscordMessageFlag.HAS_THREAD and message["id"] in self.channels:
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


LONG_AGO = timedelta(days=365)


class DiscordWorld(DiscordState):
    """Users, servers, channels and messages; every method sends its event, and returns what GET returns."""

    def user(self, username: str, *, bot: bool = False, **more: Any) -> Json:
        """A new user."""
        user = user_shape(self.ids.next(), username, bot=bot, **more)
        self.users[user["id"]] = user
        return user

    def guild(self, name: str, *people: Json, tier: int = 0, new: bool = False) -> Json:
        """A server with these people and the bot; its boost tier sets the file size limit.

        The bot has been there for long, unless it is `new`.
        """
        number = self.ids.next()
        guild = guild_shape(number, name, owner=people[0]["id"] if people else self.bot["id"], tier=tier)
        self.guilds[number] = guild
        role = role_shape(self.ids.next(), str(self.bot["username"]), position=1) | {"managed": True}
        guild["roles"].append(role | {"tags": {"bot_id": self.bot["id"]}})
        joined = self._now() if new else stamp(self.clock.now() - LONG_AGO)
        self.members[number, self.bot["id"]] = member_shape(joined, (role["id"],))
        for person in people:
            self.members[number, person["id"]] = member_shape(self._now())
        self.sessions.dispatch("GUILD_CREATE", self.guild_payload(guild))
        return guild

    def channel(self, guild: Json, name: str, kind: int = ChannelType.TEXT) -> Json:
        """A channel of a server."""
        channel = channel_shape(self.ids.next(), guild["id"], name, int(kind))
        self.channels[channel["id"]] = channel
        self.sessions.dispatch("CHANNEL_CREATE", dict(channel))
        return channel

    def dm(self, user: Json) -> Json:
        """The direct messages of a user and the bot."""
        for channel in self.channels.values():
            if channel["type"] == ChannelType.DM and channel["recipients"][0]["id"] == user["id"]:
                return channel
        channel = {"id": self.ids.next(), "type": int(ChannelType.DM), "last_message_id": None, "flags": 0}
        channel["recipients"] = [user]
        self.channels[channel["id"]] = channel
        return channel

    def thread(self, channel: Json, user: Json, name: str, *, message: Json | None = None, kind: int = 11) -> Json:
        """A thread in a channel, started at a message or without one."""
        number = message["id"] if message is not None else self.ids.next()
        thread = thread_shape(number, channel, name, owner=user["id"], kind=kind, now=self._now())
        self.channels[number] = thread
        if message is not None:
            self.messages[channel["id"]][number]["flags"] |= DiscordMessageFlag.HAS_THREAD
        self.sessions.dispatch("THREAD_CREATE", {**thread, "newly_created": True})
        where = {"channel_id": channel["id"], "guild_id": channel["guild_id"], "type": 0}
        if message is not None:
            self.say(
                thread, user, type=int(MessageType.THREAD_STARTER), message_reference={**where, "message_id": number}
            )
        elif channel["type"] == ChannelType.TEXT and kind == ChannelType.PUBLIC_THREAD:
            here = where | {"channel_id": number}
            self.say(channel, user, name, type=int(MessageType.THREAD_CREATED), message_reference=here)
        return thread

    def post(self, forum: Json, user: Json, name: str, text: str = "", /, **fields: Any) -> Json:
        """A post in a forum: a thread whose first message has its id."""
        thread = self.thread(forum, user, name)
        return self.say(thread, user, text, id=thread["id"], **fields)

    def say(self, place: Json, user: Json, text: str = "", /, **fields: Any) -> Json:
        """One message. `files` takes bytes and FakeUploads, `voice` one of them, `stickers` what `sticker` made,
        `reply_to` and `forward` messages; every other field is as Discord names it. A user where a channel is
        expected means the direct messages with the bot."""
        channel = self._place(place)
        message = self.compose(channel, user, text, **fields)
        self.send_created(message)
        return self.payload(message)

    def compose(self, channel: Json, user: Json, text: str = "", /, **fields: Any) -> Json:
        """A message, stored without an event."""
        message = message_shape(self.ids.next(), channel["id"], user, text)
        self._attach(message, fields.pop("files", ()), fields.pop("voice", None))
        if stickers := fields.pop("stickers", ()):
            message["sticker_items"] = [{k: s[k] for k in ("id", "name", "format_type")} for s in stickers]
        self._refer(message, fields.pop("reply_to", None), fields.pop("forward", None))
        message |= fields
        if "mentions" not in fields:
            message["mentions"] = self._mentioned(message)
        if channel["type"] in THREADS:
            message["position"] = channel["total_message_sent"]
            channel["message_count"] += message["type"] != MessageType.THREAD_STARTER
            channel["total_message_sent"] += 1
        channel["last_message_id"] = message["id"]
        self.messages[channel["id"]][message["id"]] = message
        return message

    def edit(self, message: Json, text: str | None = None, **fields: Any) -> Json:
        """The author edits a message; `files` are its remaining and new ones."""
        kept = self.messages[message["channel_id"]][message["id"]]
        if (files := fields.pop("files", None)) is not None:
            kept["attachments"] = []
            self._attach(kept, files, None)
        kept |= fields | {"edited_timestamp": self._now()} | ({} if text is None else {"content": text})
        kept["mentions"] = self._mentioned(kept)
        return self.send_updated(kept)

    def unfurl(self, message: Json, *embeds: Json) -> Json:
        """Discord adds link previews to a message: an update that is no edit."""
        kept = self.messages[message["channel_id"]][message["id"]]
        kept["embeds"] = list(embeds)
        return self.send_updated(kept)

    def delete(self, *messages: Json) -> None:
        """Messages of one channel are deleted: one, or many at once."""
        where = messages[0]["channel_id"]
        for message in messages:
            self.messages[where].pop(message["id"], None)
            self.reactions.pop(message["id"], None)
        named = {"channel_id": where, **self.guild_of(where)}
        if len(messages) == 1:
            self.announce("MESSAGE_DELETE", where, {"id": messages[0]["id"], **named})
        else:
            self.announce("MESSAGE_DELETE_BULK", where, {"ids": [m["id"] for m in messages], **named})

    def react(self, message: Json, user: Json, emoji: str, *, remove: bool = False) -> None:
        """A user adds a reaction to a message (`name:id` for a server's own emoji), or removes it."""
        chosen = self.reactions[message["id"]].setdefault(emoji, [])
        if remove == (user["id"] not in chosen):
            return
        chosen.remove(user["id"]) if remove else chosen.append(user["id"])
        if not chosen:
            del self.reactions[message["id"]][emoji]
        where = message["channel_id"]
        told: Json = {"user_id": user["id"], "channel_id": where, "message_id": message["id"]} | self.guild_of(where)
        told |= {"emoji": emoji_shape(emoji), "burst": False, "type": 0}
        if not remove:
            told["message_author_id"] = self.messages[where][message["id"]]["author"]["id"]
            told |= self.member_of(told.get("guild_id"), user, whole=True)
        self.announce("MESSAGE_REACTION_REMOVE" if remove else "MESSAGE_REACTION_ADD", where, told)

    def type(self, place: Json, user: Json) -> None:
        """A user types."""
        where = self._place(place)["id"]
        told = {"channel_id": where, "user_id": user["id"], "timestamp": int(self.clock.now().timestamp())}
        self.announce("TYPING_START", where, {**told, **self.guild_of(where)})

    def sticker(self, name: str, content: bytes, *, form: int = 1) -> Json:
        """A sticker that can be sent: PNG (1), APNG (2), Lottie (3) or GIF (4)."""
        number = self.ids.next()
        self.cdn.put_plain(f"/stickers/{number}.{STICKER_ENDINGS[form]}", content)
        made = {"id": number, "name": name, "format_type": form, "type": 2, "tags": "smile", "description": None}
        return self.stickers.setdefault(number, made)

    def command(self, place: Json, user: Json, name: str, **options: Any) -> Json:
        """A user runs a slash command; a FakeUpload among the options is a file."""
        channel = self._place(place)
        given, files = [], {}
        for option, value in options.items():
            kind = next(number for kinds, number in _OPTIONS if isinstance(value, kinds))
            if isinstance(value, FakeUpload):
                file = self.cdn.put(channel["id"], self.ids.next(), value, ephemeral=True)
                files[file["id"]] = self.cdn.signed(channel["id"], file)
                value = file["id"]
            given.append({"name": option, "type": kind, "value": value})
        known = next((c["id"] for c in self.commands.values() if c["name"] == name), self.ids.next())
        asked: Json = {"id": known, "name": name, "type": 1} | ({"options": given} if given else {})
        return self._interact(channel, user, asked | ({"resolved": {"attachments": files}} if files else {}))

    def press(self, message: Json, user: Json, label: str) -> Json:
        """A user presses a button of a message, by its label."""
        kept = self.messages[message["channel_id"]][message["id"]]
        buttons = [button for row in kept.get("components") or [] for button in row["components"]]
        (own,) = (button["custom_id"] for button in buttons if button["label"] == label)
        asked = {"custom_id": own, "component_type": 2, "id": 2}
        channel = self.channels[message["channel_id"]]
        return self._interact(channel, user, asked, type=3, message=self.payload(kept))

    def emoji(self, name: str, content: bytes, *, animated: bool = False) -> str:
        """A server's own emoji, as written in a message."""
        number = self.ids.next()
        for ending in ("webp", "gif" if animated else "png"):
            self.cdn.put_plain(f"/emojis/{number}.{ending}", content)
        return f"<{'a' if animated else ''}:{name}:{number}>"

    def forbid(self, channel: Json, *permissions: str) -> None:
        """The bot loses permissions in a channel; with none named it gets all of them back."""
        self.forbidden[channel["id"]] = set(permissions)

    def kick(self, guild: Json) -> None:
        """The bot is removed from a server."""
        del self.guilds[guild["id"]]
        for channel in [c for c in self.channels.values() if c.get("guild_id") == guild["id"]]:
            self.forbid(channel, "VIEW_CHANNEL")
        self.sessions.dispatch("GUILD_DELETE", {"id": guild["id"]})

    def _interact(self, channel: Json, user: Json, asked: Json, **more: Any) -> Json:
        number, guild = self.ids.next(), self.guild_of(channel["id"])
        owner = {"0": guild.get("guild_id", "0")}
        told: Json = {
            "id": number,
            "application_id": self.bot["id"],
            "type": 2,
            "data": asked,
            "token": secrets.token_urlsafe(40),
            "version": 1,
            "channel_id": channel["id"],
            "channel": {"id": channel["id"], "type": channel["type"]},
            "app_permissions": PERMISSIONS,
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": owner,
            "context": 0 if guild else 1,
            "attachment_size_limit": 10 * 1024 * 1024,
            **more,
        }
        told |= guild | (self.member_of(guild.get("guild_id"), user, whole=True) or {"user": user})
        if guild:
            told["member"]["permissions"] = PERMISSIONS
        self.interactions[told["token"]] = Interaction(
            asked=told, user=user, channel=channel, at=self.clock.monotonic()
        )
        self.sessions.dispatch("INTERACTION_CREATE", told)
        return told

    def _place(self, place: Json) -> Json:
        return self.dm(place) if place["id"] in self.users else self.channels[place["id"]]

    def _attach(
        self, message: Json, files: Sequence[bytes | FakeUpload | Json], voice: bytes | FakeUpload | None
    ) -> None:
        where = message["channel_id"]
        for file in files:
            if isinstance(file, dict):
                message["attachments"].append({k: v for k, v in file.items() if k not in ("url", "proxy_url")})
            else:
                message["attachments"].append(self.cdn.put(where, self.ids.next(), upload_of(file)))
        if voice is not None:
            upload = voice if isinstance(voice, FakeUpload) else FakeUpload(content=voice)
            named = FakeUpload(content=upload.content, size=upload.size, name="voice-message.ogg", mime="audio/ogg")
            message["attachments"].append(self.cdn.put(where, self.ids.next(), named, **voice_fields(upload)))
            message["flags"] |= DiscordMessageFlag.VOICE

    def _refer(self, message: Json, reply_to: Json | None, forward: Json | None) -> None:
        other = reply_to or forward
        if other is None:
            return
        where = other["channel_id"]
        reference = {"message_id": other["id"], "channel_id": where, **self.guild_of(where)}
        if reply_to is not None:
            message |= {"type": int(MessageType.REPLY), "message_reference": {"type": 0, **reference}}
        else:
            snapshot = {name: other[name] for name in SNAPSHOT_FIELDS if name in other}
            message |= {"message_reference": {"type": 1, **reference}, "message_snapshots": [{"message": snapshot}]}
            message["flags"] |= DiscordMessageFlag.SNAPSHOT

    def _mentioned(self, message: Json) -> list[Json]:
        named = mentioned_users(message["content"])
        if message["type"] == MessageType.REPLY:
            reference = message["message_reference"]
            answered = self.messages[reference["channel_id"]].get(reference["message_id"])
            named += [answered["author"]["id"]] if answered else []
        return [self.users[number] for number in dict.fromkeys(named) if number in self.users]

    def _now(self) -> str:
        return stamp(self.clock.now())
