"""What Slack knows — people, conversations, messages, files — and how it tells each of them to an app."""

from collections import defaultdict
from collections.abc import Sequence

from belino.domain.ports import Clock
from belino.testing.file_server import FakeUpload
from belino.testing.slack.deliveries import Deliveries
from belino.testing.slack.files import SlackFiles
from belino.testing.slack.shapes import APP, BOT, BOT_USER, TEAM, Json, Numbers, Stamps, kind_of, mentioned, user_shape
from belino.testing.slack.socket import SocketModeServer

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


class SlackState:
    """Everything that is kept."""

    def __init__(self, clock: Clock, *, bot_name: str) -> None:
        self.clock = clock
        self.stamps = Stamps(clock)
        self.numbers = Numbers()
        self.files = SlackFiles(clock)
        self.socket_mode = SocketModeServer(clock)
        self.deliveries = Deliveries(clock, self.socket_mode)
        self.scopes: set[str] = set(ALL_SCOPES)
        """What the bot's token may do."""
        self.bot = user_shape(BOT_USER, bot_name, bot=True)
        self.users: dict[str, Json] = {BOT_USER: self.bot}
        self.channels: dict[str, Json] = {}
        self.members: defaultdict[str, set[str]] = defaultdict(set)
        self.messages: defaultdict[str, dict[str, Json]] = defaultdict(dict)
        """By channel, then by ts, oldest first; files by their ids, which are looked up when a message is told."""
        self.threads: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """By channel and first message: the ts of every reply."""
        self.reactions: defaultdict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
        self.sent: list[Json] = []
        """Every message the bot made visible, oldest first, with its channel."""
        self.edited: list[tuple[str, str]] = []
        """Every change the bot made, oldest first: ts and text."""
        self.received: list[FakeUpload] = []
        """Every file the bot uploaded and completed, with its hash."""
        self.statuses: list[tuple[str, str, str]] = []
        """Every status the bot showed: channel, thread, words."""

    def tell_posted(self, channel: Json, message: Json) -> None:
        """A message, and a mention of its own if it names the bot in a channel."""
        event = self._event(channel, message)
        self._tell_members(channel, event)
        if BOT_USER in mentioned(message.get("text", "")) and not channel.get("is_im"):
            names = ("user", "ts", "client_msg_id", "text", "team", "blocks", "files", "thread_ts", "parent_user_id")
            mention = {"type": "app_mention", **{name: event[name] for name in names if name in event}}
            mention |= {"channel": channel["id"], "event_ts": message["ts"]}
            if {"app_mentions:read"} <= self.scopes and self.is_member(channel):
                self.deliveries.event(mention, "app_mention", shared=channel.get("is_ext_shared", False))

    def tell_changed(self, channel: Json, message: Json, before: Json) -> Json:
        told = self.told(channel, message)
        event: Json = {"type": "message", "subtype": "message_changed", "message": self._pushed(channel, told)}
        event |= {"previous_message": before, "channel": channel["id"], "hidden": True}
        self._tell_members(channel, self._stamped(channel, event))
        return told | {"channel": channel["id"]}

    def remove(self, channel: Json, message: Json) -> None:
        """A message is deleted, by its author or by the bot."""
        before = self.told(channel, message)
        if self.threads.get((channel["id"], message["ts"])):
            words = "This message was deleted."
            for name in ("files", "blocks", "attachments", "client_msg_id", "edited", "metadata"):
                message.pop(name, None)
            message |= {"subtype": "tombstone", "text": words, "user": "USLACKBOT", "hidden": True}
            self.tell_changed(channel, message, before)
            return
        del self.messages[channel["id"]][message["ts"]]
        self.reactions.pop((channel["id"], message["ts"]), None)
        for replies in self.threads.values():
            if message["ts"] in replies:
                replies.remove(message["ts"])
        event = {"type": "message", "subtype": "message_deleted", "previous_message": before, "channel": channel["id"]}
        self._tell_members(channel, self._stamped(channel, event | {"hidden": True, "deleted_ts": message["ts"]}))

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

    def told(self, channel: Json, message: Json, *, metadata: bool = False) -> Json:
        """A message as history tells it: its files as they are now, its reactions, its thread."""
        told = {name: value for name, value in message.items() if name != "metadata" or metadata}
        if "files" in message:
            told["files"] = [self.file_told(number) for number in message["files"]]
        chosen = self.reactions.get((channel["id"], message["ts"]), {})
        if shown := [{"name": e, "users": list(u), "count": len(u)} for e, u in chosen.items() if u]:
            told["reactions"] = shown
        if replies := self.threads.get((channel["id"], message["ts"])):
            users = list(dict.fromkeys(self.messages[channel["id"]][ts].get("user", "") for ts in replies))
            told |= {"thread_ts": message["ts"], "reply_count": len(replies), "reply_users_count": len(users)}
            told |= {"latest_reply": replies[-1], "reply_users": users[:5], "is_locked": False, "subscribed": False}
        return told

    def file_told(self, number: str) -> Json:
        public = {name: bool(channel.get("is_channel")) for name, channel in self.channels.items()}
        return self.files.told(number, public=public)

    def is_member(self, channel: Json) -> bool:
        return BOT_USER in self.members[channel["id"]]

    def attach(self, channel: Json, message: Json, files: Sequence[str]) -> None:
        """A message carries files, and each file knows where it is."""
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
        told = self._pushed(channel, self.told(channel, message))
        return {**told, "channel": channel["id"], "event_ts": message["ts"], "channel_type": kind_of(channel)}

    def _stamped(self, channel: Json, event: Json) -> Json:
        now = self.stamps.next()
        return {**event, "ts": now, "event_ts": now, "channel_type": kind_of(channel)}

    def _pushed(self, channel: Json, told: Json) -> Json:
        """In a channel of Slack Connect an event names files and says nothing of them."""
        if not channel.get("is_ext_shared") or "files" not in told:
            return told
        stubs = [
            {"id": file["id"], "created": 0, "timestamp": 0, "user": "", "file_access": "check_file_info"}
            for file in told["files"]
        ]
        return {**told, "files": stubs}

    def _tell_members(self, channel: Json, event: Json) -> None:
        subscription, scope = _SUBSCRIPTIONS[kind_of(channel)]
        if scope in self.scopes and self.is_member(channel):
            self.deliveries.event(event, subscription, shared=channel.get("is_ext_shared", False))


def bot_fields(user: Json) -> Json:
    """What only a message of an app has."""
    own = user["id"] == BOT_USER
    bot, app = (BOT, APP) if own else (f"B{user['id'][1:]}", f"A{user['id'][1:]}")
    profile = {"id": bot, "deleted": False, "name": user["real_name"], "updated": 1767225600, "app_id": app}
    return {"bot_id": bot, "app_id": app, "bot_profile": {**profile, "user_id": user["id"], "team_id": TEAM}}
