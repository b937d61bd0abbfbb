"""World of a Slack app: people, conversations, messages and files, and the payloads for each."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from belino.domain.ports import Clock
from belino.testing.file_server import FakeUpload, upload_of
from belino.testing.slack.events import Deliveries, SocketModeServer
from belino.testing.slack.files import SlackFiles, voice_upload
from belino.testing.slack.shapes import (
    APP,
    BOT,
    BOT_USER,
    DOMAIN,
    TEAM,
    Json,
    SlackNumbers,
    Stamps,
    channel_shape,
    im_shape,
    kind_of,
    mentioned,
    mpim_shape,
    permalink,
    rich_text,
    user_shape,
)

_SUBSCRIPTIONS = {
    "channel": ("message.channels", "channels:history"),
    "group": ("message.groups", "groups:history"),
    "im": ("message.im", "im:history"),
    "mpim": ("message.mpim", "mpim:history"),
}
ALL_SCOPES = frozenset(
    {
        "app_mentions:read", "channels:history", "channels:read", "chat:write", "commands", "files:read",
        "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history",
        "mpim:read", "reactions:read", "reactions:write", "team:read", "users:read",
    }
)  # fmt: skip

RESPONSE_SECONDS, MOST_RESPONSES = 30 * 60.0, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """What a response URL accepts."""

    channel: str
    user: str
    until: float
    posts: int = MOST_RESPONSES


class SlackState:
    """Everything that Slack stores, and the payloads it sends."""

    def __init__(self, clock: Clock, *, bot_name: str) -> None:
        self.clock = clock
        self.stamps = Stamps(clock)
        self.numbers = SlackNumbers()
        self.files = SlackFiles(clock)
        self.socket_mode = SocketModeServer(clock)
        self.deliveries = Deliveries(clock, self.socket_mode)
        self.responses: dict[str, Responses] = {}
        """By the path of a response URL: what it still accepts."""
        self.ephemeral: list[tuple[str, str, str]] = []
        """Lines for one person: channel, user and text."""
        self.scopes: set[str] = set(ALL_SCOPES)
        """The scopes of the bot's token."""
        self.bot = user_shape(BOT_USER, bot_name, bot=True)
        self.users: dict[str, Json] = {BOT_USER: self.bot}
        self.channels: dict[str, Json] = {}
        self.members: defaultdict[str, set[str]] = defaultdict(set)
        self.messages: defaultdict[str, dict[str, Json]] = defaultdict(dict)
        """By channel, then by ts, oldest first; files by their ids, which are resolved when a message is sent."""
        self.threads: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """By channel and first message: the ts of every reply."""
        self.reactions: defaultdict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
        self.sent: list[Json] = []
        """Every message the bot sent, oldest first, with its channel."""
        self.unfurled: list[bool] = []
        """For every posted message, whether links in it may be unfurled; Slack does so unless told otherwise."""
        self.edited: list[tuple[str, str]] = []
        self.streaming: list[str] = []
        """The ts of messages that grow."""
        self.streamed: list[tuple[str, str]] = []
        """Each time one has grown: its ts and its text."""
        """Every edit the bot made, oldest first: ts and text."""
        self.received: list[FakeUpload] = []
        """Every file the bot uploaded and completed, with its hash."""
        self.mentions_first = False
        """Whether a mention is reported before the message that holds it: Slack promises no order."""
        self.statuses: list[tuple[str, str, str]] = []
        """Every status the bot showed: channel, thread, text."""

    def send_posted(self, channel: Json, message: Json) -> None:
        """Send a message event, and a mention event if it names the bot in a channel."""
        event = self._event(channel, message)
        if not self.mentions_first:
            self._send_to_members(channel, event)
        if BOT_USER in mentioned(message.get("text", "")) and not channel.get("is_im"):
            names = ("user", "ts", "client_msg_id", "text", "team", "blocks", "thread_ts", "parent_user_id")
            mention = {"type": "app_mention", **{name: event[name] for name in names if name in event}}
            mention |= {"channel": channel["id"], "event_ts": message["ts"]}
            if {"app_mentions:read"} <= self.scopes and self.is_member(channel):
                self.deliveries.event(mention, "app_mention", shared=channel.get("is_ext_shared", False))
        if self.mentions_first:
            self._send_to_members(channel, event)

    def send_changed(self, channel: Json, message: Json, before: Json) -> Json:
        told = self.payload(channel, message)
        event: Json = {"type": "message", "subtype": "message_changed", "message": self._pushed(channel, told)}
        event |= {"previous_message": before, "channel": channel["id"], "hidden": True}
        self._send_to_members(channel, self._stamped(channel, event))
        return told | {"channel": channel["id"]}

    def remove(self, channel: Json, message: Json) -> None:
        """A message is deleted, by its author or by the bot."""
        before = self.payload(channel, message)
        if self.threads.get((channel["id"], message["ts"])):
            words = "This message was deleted."
            for name in ("files", "blocks", "attachments", "client_msg_id", "edited", "metadata"):
                message.pop(name, None)
            message |= {"subtype": "tombstone", "text": words, "user": "USLACKBOT", "hidden": True}
            self.send_changed(channel, message, before)
            return
        del self.messages[channel["id"]][message["ts"]]
        self.reactions.pop((channel["id"], message["ts"]), None)
        for replies in self.threads.values():
            if message["ts"] in replies:
                replies.remove(message["ts"])
        event = {"type": "message", "subtype": "message_deleted", "previous_message": before, "channel": channel["id"]}
        self._send_to_members(channel, self._stamped(channel, event | {"hidden": True, "deleted_ts": message["ts"]}))

    def change_reaction(self, channel: Json, message: Json, user: str, emoji: str, *, remove: bool) -> bool:
        """Whether anything changed."""
        chosen = self.reactions[channel["id"], message["ts"]].setdefault(emoji, [])
        if remove == (user not in chosen):
            return False
        chosen.remove(user) if remove else chosen.append(user)
        item = {"type": "message", "channel": channel["id"], "ts": message["ts"]}
        kind = "reaction_removed" if remove else "reaction_added"
        event = {"type": kind, "user": user, "reaction": emoji, "item": item, "event_ts": self.stamps.next()}
        if "user" in message:
            event["item_user"] = message["user"]
        if "reactions:read" in self.scopes and self.is_member(channel):
            self.deliveries.event(event, kind)
        return True

    def payload(self, channel: Json, message: Json, *, metadata: bool = False) -> Json:
        """A message as in history: its files as they are now, its reactions, its thread."""
        told = {name: value for name, value in message.items() if name != "metadata" or metadata}
        if "files" in message:
            told["files"] = [self.file_payload(number) for number in message["files"]]
        chosen = self.reactions.get((channel["id"], message["ts"]), {})
        if shown := [{"name": e, "users": list(u), "count": len(u)} for e, u in chosen.items() if u]:
            told["reactions"] = shown
        if replies := self.threads.get((channel["id"], message["ts"])):
            users = list(dict.fromkeys(self.messages[channel["id"]][ts].get("user", "") for ts in replies))
            told |= {"thread_ts": message["ts"], "reply_count": len(replies), "reply_users_count": len(users)}
            told |= {"latest_reply": replies[-1], "reply_users": users[:5], "is_locked": False, "subscribed": False}
        return told

    def file_payload(self, number: str) -> Json:
        public = {name: bool(channel.get("is_channel")) for name, channel in self.channels.items()}
        return self.files.payload(number, public=public)

    def is_member(self, channel: Json) -> bool:
        return BOT_USER in self.members[channel["id"]]

    def attach(self, channel: Json, message: Json, files: Sequence[str]) -> None:
        """Attach files to a message, and record the message at each file."""
        if not files:
            return
        message |= {"files": list(files), "upload": False, "display_as_bot": False}
        message.setdefault("subtype", "file_share")
        share: Json = {"reply_users": [], "reply_users_count": 0, "reply_count": 0, "ts": message["ts"]}
        if "thread_ts" in message:
            share["thread_ts"] = message["thread_ts"]
        if "name" in channel:
            share["channel_name"] = channel["name"]
        for number in files:
            self.files.by_id[number].shares.setdefault(channel["id"], []).append(dict(share))

    def keep(self, channel: Json, message: Json) -> Json:
        self.messages[channel["id"]][message["ts"]] = message
        thread = message.get("thread_ts")
        if thread and thread != message["ts"]:
            self.threads[channel["id"], thread].append(message["ts"])
        return message

    def _event(self, channel: Json, message: Json) -> Json:
        told = self._pushed(channel, self.payload(channel, message))
        return {**told, "channel": channel["id"], "event_ts": message["ts"], "channel_type": kind_of(channel)}

    def _stamped(self, channel: Json, event: Json) -> Json:
        now = self.stamps.next()
        return {**event, "ts": now, "event_ts": now, "channel_type": kind_of(channel)}

    def _pushed(self, channel: Json, told: Json) -> Json:
        """In a Slack Connect channel an event contains only the ids of files."""
        if not channel.get("is_ext_shared") or "files" not in told:
            return told
        stubs = [
            {"id": file["id"], "created": 0, "timestamp": 0, "user": "", "file_access": "check_file_info"}
            for file in told["files"]
        ]
        return {**told, "files": stubs}

    def _send_to_members(self, channel: Json, event: Json) -> None:
        subscription, scope = _SUBSCRIPTIONS[kind_of(channel)]
        if scope in self.scopes and self.is_member(channel):
            self.deliveries.event(event, subscription, shared=channel.get("is_ext_shared", False))


def bot_fields(user: Json) -> Json:
    """Fields that only an app's message has."""
    own = user["id"] == BOT_USER
    bot, app = (BOT, APP) if own else (f"B{user['id'][1:]}", f"A{user['id'][1:]}")
    profile = {"id": bot, "deleted": False, "name": user["real_name"], "updated": 1767225600, "app_id": app}
    return {"bot_id": bot, "app_id": app, "bot_profile": {**profile, "user_id": user["id"], "team_id": TEAM}}


class SlackWorld(SlackState):
    """Users, conversations and messages; every method sends the event that Slack would send."""

    def user(self, name: str, *, bot: bool = False, team: str = TEAM, **more: Any) -> Json:
        """A new user; of another workspace if a team is named."""
        user = user_shape(self.numbers.next("U"), name, bot=bot, team=team, **more)
        if team != TEAM:
            user["is_stranger"] = True
        self.users[user["id"]] = user
        return user

    def channel(
        self, name: str, *people: Json, private: bool = False, shared: bool = False, member: bool = True
    ) -> Json:
        """A channel with these people, and with the bot if it is a member; `shared` is one of Slack Connect."""
        creator = people[0]["id"] if people else BOT_USER
        number, now = self.numbers.next("C"), int(self.clock.now().timestamp())
        channel = channel_shape(number, name, private=private, shared=shared, created=now, creator=creator)
        return self._keep(channel, people, member=member)

    def dm(self, user: Json) -> Json:
        """The direct conversation of a user with the bot."""
        for channel in self.channels.values():
            if channel.get("user") == user["id"]:
                return channel
        channel = im_shape(self.numbers.next("D"), user["id"], int(self.clock.now().timestamp()))
        return self._keep(channel, (user,), member=True)

    def group(self, *people: Json) -> Json:
        """A direct conversation of several people with the bot."""
        names, now = [person["name"] for person in people], int(self.clock.now().timestamp())
        return self._keep(mpim_shape(self.numbers.next("G"), names, now), people, member=True)

    def invite(self, channel: Json, by: Json | None = None) -> None:
        """The bot becomes a member; of its own accord, if no user invites it."""
        self.members[channel["id"]].add(BOT_USER)
        invited = {} if by is None else {"inviter": by["id"]}
        self.deliveries.event(self._membership("member_joined_channel", channel) | invited, "member_joined_channel")

    def kick(self, channel: Json) -> None:
        """The bot is removed."""
        self.members[channel["id"]].discard(BOT_USER)
        self.deliveries.event(self._membership("member_left_channel", channel), "member_left_channel")

    def archive(self, channel: Json) -> None:
        channel["is_archived"] = True

    def say(self, place: Json, user: Json, text: str = "", /, **fields: Any) -> Json:
        """One message. `thread` takes a message, `broadcast` shows the reply in the channel too, `files` takes bytes
        and FakeUploads, `voice` one of them, `share` a message that is forwarded; every other field is as Slack names
        it, and None leaves it out. A user where a channel is expected means the direct conversation with the bot."""
        channel = self._place(place)
        message = self.compose(channel, user, text, **fields)
        self.send_posted(channel, message)
        return self.payload(channel, message) | {"channel": channel["id"]}

    def compose(self, channel: Json, user: Json, text: str = "", /, **fields: Any) -> Json:
        """A message, stored without an event."""
        message = self._head(user, text)
        files = [self._file(user, upload_of(file)) for file in fields.pop("files", ())]
        if (voice := fields.pop("voice", None)) is not None:
            upload, more = voice_upload(voice)
            files.append(self._file(user, upload, **more))
        self._enter_thread(channel, message, fields.pop("thread", None), broadcast=fields.pop("broadcast", False))
        if (share := fields.pop("share", None)) is not None:
            message["attachments"] = [self._forwarded(share)]
        self.attach(channel, message, files)
        message = {name: value for name, value in (message | fields).items() if value is not None}
        return self.keep(channel, message)

    def edit(self, message: Json, text: str | None = None, **fields: Any) -> Json:
        """The author edits a message; `files` are its remaining files."""
        channel, kept = self._find(message)
        before = self.payload(channel, kept)
        if "files" in fields:
            fields["files"] = [file["id"] for file in fields["files"]]
        changed = {} if text is None else {"text": text, "blocks": rich_text(text)}
        kept |= changed | fields | {"edited": {"user": kept.get("user", BOT), "ts": self.stamps.next()}}
        return self.send_changed(channel, kept, before)

    def unfurl(self, message: Json, *attachments: Json) -> Json:
        """Slack adds link previews to a message: a change that is no edit."""
        channel, kept = self._find(message)
        before = self.payload(channel, kept)
        kept["attachments"] = [{"id": number, **shown} for number, shown in enumerate(attachments, 1)]
        return self.send_changed(channel, kept, before)

    def delete(self, *messages: Json) -> None:
        """Messages are deleted; one with replies leaves a tombstone, so that its thread can still be read."""
        for message in messages:
            channel, kept = self._find(message)
            self.remove(channel, kept)

    def react(self, message: Json, user: Json, emoji: str, *, remove: bool = False) -> None:
        """A user adds a reaction (an emoji's name, without colons) to a message, or removes it."""
        channel, kept = self._find(message)
        self.change_reaction(channel, kept, user["id"], emoji, remove=remove)

    def command(self, place: Json, user: Json, command: str, text: str = "") -> None:
        """A user runs a slash command."""
        channel = self._place(place)
        number = self.numbers.next("")
        self.deliveries.command(
            {
                "token": "deprecated-verification-token",
                "team_id": TEAM,
                "team_domain": DOMAIN,
                "channel_id": channel["id"],
                "channel_name": "directmessage" if channel.get("is_im") else channel["name"],
                "user_id": user["id"],
                "user_name": user["name"],
                "command": command,
                "text": text,
                "api_app_id": APP,
                "is_enterprise_install": "false",
                "response_url": self._response_url(channel["id"], user["id"], number),
                "trigger_id": f"{number}.0123456789.abcdef",
            }
        )

    def _response_url(self, channel: str, user: str, number: str) -> str:
        path = f"/commands/{TEAM}/{number}"
        self.responses[path] = Responses(channel=channel, user=user, until=self.clock.monotonic() + RESPONSE_SECONDS)
        return self.files.url + path

    def press(self, message: Json, user: Json, label: str) -> None:
        """A user presses a button of a message, by its label."""
        channel, kept = self._find(message)
        elements = [each for block in kept["blocks"] if block["type"] == "actions" for each in block["elements"]]
        (action,) = (each for each in elements if each["text"]["text"] == label)
        number, place = self.numbers.next(""), {"channel_id": channel["id"], "message_ts": kept["ts"]}
        if "thread_ts" in kept:
            place["thread_ts"] = kept["thread_ts"]
        self.deliveries.interaction(
            {
                "type": "block_actions",
                "user": {"id": user["id"], "username": user["name"], "name": user["name"], "team_id": TEAM},
                "api_app_id": APP,
                "token": "deprecated-verification-token",
                "container": {"type": "message", "is_ephemeral": False, **place},
                "trigger_id": f"{number}.0123456789.abcdef",
                "team": {"id": TEAM, "domain": DOMAIN},
                "channel": {"id": channel["id"], "name": "directmessage" if channel.get("is_im") else channel["name"]},
                "message": self.payload(channel, kept),
                "response_url": self._response_url(channel["id"], user["id"], number),
                "actions": [{**action, "block_id": "b1", "action_ts": self.stamps.next()}],
            }
        )

    def shortcut(self, message: Json, user: Json, callback: str) -> None:
        """A user picks a shortcut of the app in the menu of a message."""
        channel, kept = self._find(message)
        number = self.numbers.next("")
        self.deliveries.interaction(
            {
                "type": "message_action",
                "token": "deprecated-verification-token",
                "action_ts": self.stamps.next(),
                "team": {"id": TEAM, "domain": DOMAIN},
                "user": {"id": user["id"], "username": user["name"], "name": user["name"], "team_id": TEAM},
                "channel": {"id": channel["id"], "name": "directmessage" if channel.get("is_im") else channel["name"]},
                "is_enterprise_install": False,
                "callback_id": callback,
                "trigger_id": f"{number}.0123456789.abcdef",
                "response_url": self._response_url(channel["id"], user["id"], number),
                "message_ts": kept["ts"],
                "message": self.payload(channel, kept),
            }
        )

    def delete_file(self, number: str) -> None:
        """A file is deleted; messages still name it."""
        self.files.by_id[number].gone = True

    def hide_file(self, number: str) -> None:
        """The free plan's limit hides a file."""
        self.files.by_id[number].hidden = True

    def move_file(self, number: str) -> None:
        """A file gets another private link; the old one becomes invalid."""
        file = self.files.by_id[number]
        file.link_name = f"moved_{file.link_name}"

    def _membership(self, kind: str, channel: Json) -> Json:
        sort = "G" if channel.get("is_private") else "C"
        event = {"type": kind, "user": BOT_USER, "channel": channel["id"], "channel_type": sort, "team": TEAM}
        return event | {"event_ts": self.stamps.next()}

    def _keep(self, channel: Json, people: Iterable[Json], *, member: bool) -> Json:
        number = channel["id"]
        self.channels[number] = channel
        self.members[number] = {person["id"] for person in people} | ({BOT_USER} if member else set())
        return channel

    def _place(self, place: Json) -> Json:
        return self.dm(place) if place["id"] in self.users else self.channels[place["id"]]

    def _find(self, message: Json) -> tuple[Json, Json]:
        channel = self.channels[message["channel"]]
        return channel, self.messages[channel["id"]][message["ts"]]

    def _head(self, user: Json, text: str) -> Json:
        head: Json = {"user": user["id"], "type": "message", "ts": self.stamps.next()}
        if user["is_bot"]:
            head |= bot_fields(user)
        else:
            head["client_msg_id"] = str(uuid.uuid4())
        head |= {"text": text, "team": user["team_id"]}
        if text:
            head["blocks"] = rich_text(text)
        if user["team_id"] != TEAM:
            names = {"name": user["name"], "real_name": user["real_name"], "team": user["team_id"]}
            head |= {"user_team": user["team_id"], "source_team": user["team_id"], "user_profile": names}
        return head

    def _file(self, user: Json, upload: FakeUpload, **more: Any) -> str:
        return self.files.put(self.numbers.next("F"), upload, user["id"], **more).id

    def _enter_thread(self, channel: Json, message: Json, thread: Json | str | None, *, broadcast: bool) -> None:
        if thread is None:
            return
        stamp = thread if isinstance(thread, str) else str(thread.get("thread_ts") or thread["ts"])
        message["thread_ts"] = stamp
        parent = self.messages[channel["id"]].get(stamp)
        if parent is not None and "user" in parent:
            message["parent_user_id"] = parent["user"]
        if broadcast:
            message["subtype"] = "thread_broadcast"
            if parent is not None:
                message["root"] = self.payload(channel, parent)

    def _forwarded(self, share: Json) -> Json:
        channel, kept = self._find(share)
        told, author = self.payload(channel, kept), self.users.get(kept.get("user", ""), self.bot)
        link = permalink(channel["id"], kept["ts"], kept.get("thread_ts"))
        attachment: Json = {
            "ts": kept["ts"],
            "author_id": author["id"],
            "channel_id": channel["id"],
            "channel_team": TEAM,
            "is_msg_unfurl": True,
            "is_share": True,
            "fallback": f"[{kept['ts']}] {author['name']}: {kept['text']}",
            "message_blocks": [{"team": TEAM, "channel": channel["id"], "ts": kept["ts"]}],
            "from_url": link,
            "original_url": link,
            "color": "D0D0D0",
            "mrkdwn_in": ["text"],
            "id": 1,
            "author_name": author["real_name"],
            "author_subname": author["real_name"],
            "author_link": f"https://{DOMAIN}.slack.com/team/{author['id']}",
            "text": kept["text"],
            "footer": "Slack Conversation",
        }
        attachment["message_blocks"][0]["message"] = {"blocks": kept.get("blocks", [])}
        return attachment | ({"files": told["files"]} if "files" in told else {})
