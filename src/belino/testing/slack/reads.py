"""Reads of the Web API: the methods that change nothing, for conversations, history, users and files."""

from collections.abc import Mapping, Sequence
from typing import Any

from belino.testing.slack.request import SlackCall, SlackRefusal, missing_scope
from belino.testing.slack.shapes import APP, BOT, BOT_USER, DOMAIN, TEAM, Json, kind_of, permalink
from belino.testing.slack.world import SlackWorld

MOST = 1000
PAGE = 100
_READ = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
_TYPES = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}


class SlackReads:
    """The methods that change nothing."""

    def __init__(self, world: SlackWorld, *, page: int | None) -> None:
        self._world = world
        self._page = page
        """The most messages per history call, for apps limited below 1000."""

    def channel(self, call: SlackCall, *, member: bool = True, name: str = "channel") -> Json:
        """The conversation of a call, if it is visible to the bot."""
        channel = self._world.channels.get(call.needed(name))
        if channel is None:
            raise SlackRefusal("channel_not_found")
        inside = self._world.is_member(channel)
        if not inside and kind_of(channel) != "channel":
            raise SlackRefusal("channel_not_found")
        if not inside and member:
            raise SlackRefusal("not_in_channel")
        return channel

    def message(self, call: SlackCall, channel: Json, name: str = "ts") -> Json:
        found = self._world.messages[channel["id"]].get(call.needed(name))
        if found is None:
            raise SlackRefusal("message_not_found")
        return found

    def need(self, scope: str) -> None:
        if scope not in self._world.scopes:
            raise missing_scope(scope, self._world.scopes)

    async def auth_test(self, call: SlackCall) -> Json:
        names = {"url": f"https://{DOMAIN}.slack.com/", "team": "Belino Test", "user": self._world.bot["name"]}
        ids = {"team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT}
        return {**names, **ids, "is_enterprise_install": False}

    async def history(self, call: SlackCall) -> Json:
        channel = self.channel(call)
        self.need(f"{_READ[kind_of(channel)]}:history")
        shown = [
            message
            for message in self._world.messages[channel["id"]].values()
            if message.get("thread_ts", message["ts"]) == message["ts"] or message.get("subtype") == "thread_broadcast"
        ]
        newest_first = sorted(self._between(call, shown), key=lambda message: stamp(message["ts"]), reverse=True)
        page, more, cursor = self._cut(call, newest_first, PAGE, newest_first=True)
        told = [self._payload(call, channel, message) for message in page]
        head = {"messages": told, "has_more": more, "pin_count": 0, "channel_actions_ts": None}
        return {**head, "channel_actions_count": 0, **cursor}

    async def replies(self, call: SlackCall) -> Json:
        channel = self.channel(call)
        self.need(f"{_READ[kind_of(channel)]}:history")
        messages = self._world.messages[channel["id"]]
        asked = call.needed("ts")
        parent = messages.get(asked)
        if parent is None:
            raise SlackRefusal("thread_not_found")
        if parent.get("thread_ts", asked) != asked:
            return {"messages": [self._payload(call, channel, parent)], "has_more": False}
        replies = [messages[ts] for ts in self._world.threads.get((channel["id"], asked), [])]
        oldest_first = sorted(self._between(call, replies), key=lambda message: stamp(message["ts"]))
        # Every page begins with the thread's first message, which counts as one of its messages.
        page, more, cursor = self._cut(call, oldest_first, MOST, newest_first=False, less=1)
        return {"messages": [self._payload(call, channel, m) for m in (parent, *page)], "has_more": more, **cursor}

    async def conversations(self, call: SlackCall) -> Json:
        """conversations.list; users.conversations lists only those the bot is in."""
        mine = call.method == "users.conversations"
        kinds = [_TYPES.get(name.strip()) for name in (call.text("types") or "public_channel").split(",")]
        if None in kinds:
            raise SlackRefusal("invalid_types")
        for kind in kinds:
            self.need(f"{_READ[str(kind)]}:read")
        shown = [
            self._summary(channel)
            for channel in self._world.channels.values()
            if kind_of(channel) in kinds
            and (self._world.is_member(channel) or (kind_of(channel) == "channel" and not mine))
            and not (call.flag("exclude_archived") and channel["is_archived"])
        ]
        return _page(call, "channels", shown, PAGE)

    async def conversation(self, call: SlackCall) -> Json:
        channel = self.channel(call, member=False)
        self.need(f"{_READ[kind_of(channel)]}:read")
        return {"channel": self._summary(channel)}

    async def members(self, call: SlackCall) -> Json:
        channel = self.channel(call, member=False)
        self.need(f"{_READ[kind_of(channel)]}:read")
        return _page(call, "members", sorted(self._world.members[channel["id"]]), PAGE)

    async def user(self, call: SlackCall) -> Json:
        found = self._world.users.get(call.needed("user"))
        if found is None:
            raise SlackRefusal("user_not_found")
        return {"user": _user(call, found)}

    async def users(self, call: SlackCall) -> Json:
        return _page(call, "members", [_user(call, user) for user in self._world.users.values()], MOST)

    async def bot(self, call: SlackCall) -> Json:
        named = call.text("bot") or BOT
        for user in self._world.users.values():
            if user["is_bot"] and named in (BOT if user["id"] == BOT_USER else f"B{user['id'][1:]}",):
                made = {"id": named, "deleted": False, "name": user["real_name"], "updated": 1767225600}
                return {"bot": {**made, "app_id": APP, "user_id": user["id"]}}
        raise SlackRefusal("bot_not_found")

    async def team(self, call: SlackCall) -> Json:
        return {"team": {"id": TEAM, "name": "Belino Test", "domain": DOMAIN, "email_domain": "", "icon": {}}}

    async def file(self, call: SlackCall) -> Json:
        number = call.needed("file")
        file = self._world.files.by_id.get(number)
        if file is None:
            raise SlackRefusal("file_not_found")
        if file.gone:
            raise SlackRefusal("file_deleted")
        told = self._world.file_payload(number)
        return {"file": told, "comments": [], "response_metadata": {"next_cursor": ""}}

    async def reactions(self, call: SlackCall) -> Json:
        channel = self.channel(call)
        told = self._world.payload(channel, self.message(call, channel, "timestamp"))
        return {"type": "message", "channel": channel["id"], "message": told}

    async def link(self, call: SlackCall) -> Json:
        channel = self.channel(call, member=False)
        message = self.message(call, channel, "message_ts")
        link = permalink(channel["id"], message["ts"], message.get("thread_ts"))
        return {"channel": channel["id"], "permalink": link}

    def _payload(self, call: SlackCall, channel: Json, message: Json) -> Json:
        return self._world.payload(channel, message, metadata=call.flag("include_all_metadata"))

    def _summary(self, channel: Json) -> Json:
        if channel.get("is_im"):
            return channel
        number = channel["id"]
        return channel | {"is_member": self._world.is_member(channel), "num_members": len(self._world.members[number])}

    def _between(self, call: SlackCall, messages: list[Json]) -> list[Json]:
        oldest = _bound(call.text("oldest") or "0", "invalid_ts_oldest")
        latest = _bound(call.text("latest") or "9999999999", "invalid_ts_latest")
        inclusive = call.flag("inclusive")
        return [
            message
            for message in messages
            if oldest < stamp(message["ts"]) < latest or (inclusive and stamp(message["ts"]) in (oldest, latest))
        ]

    def _cut(
        self, call: SlackCall, messages: list[Json], default: int, *, newest_first: bool, less: int = 0
    ) -> tuple[list[Json], bool, Mapping[str, Any]]:
        """One page; a cursor names the first message of the next one, so that new messages shift nothing."""
        limit = min(call.whole("limit", default, MOST), self._page or MOST) - less
        if written := call.text("cursor"):
            at = _stamp_cursor(written)
            stamps = [stamp(message["ts"]) for message in messages]
            behind = [ts <= at if newest_first else ts >= at for ts in stamps]
            messages = [message for message, later in zip(messages, behind, strict=True) if later]
        page, rest = messages[: max(limit, 0)], messages[max(limit, 0) :]
        cursor = {"response_metadata": {"next_cursor": f"next_ts:{rest[0]['ts'].replace('.', '')}"}} if rest else {}
        return page, bool(rest), cursor


def stamp(ts: str) -> int:
    """A ts in microseconds."""
    seconds, _, rest = ts.partition(".")
    return int(seconds) * 1_000_000 + int(rest.ljust(6, "0")[:6] or 0)


def _bound(written: str, error: str) -> int:
    try:
        return stamp(written)
    except ValueError:
        raise SlackRefusal(error) from None


def _stamp_cursor(written: str) -> int:
    number = written.removeprefix("next_ts:")
    if number == written or not number.isdecimal():
        raise SlackRefusal("invalid_cursor")
    return int(number)


def _user(call: SlackCall, user: Json) -> Json:
    """A user; their locale only if the call asks for it."""
    return {key: value for key, value in user.items() if key != "locale" or call.flag("include_locale")}


def _page(call: SlackCall, name: str, items: Sequence[Any], default: int) -> Json:
    """Some of the items, and the cursor for those after them; empty after the last."""
    start, limit = _start(call.text("cursor")), call.whole("limit", default, MOST)
    end = start + limit
    return {name: items[start:end], "response_metadata": {"next_cursor": f"after:{end}" if end < len(items) else ""}}


def _start(written: str) -> int:
    number = written.removeprefix("after:")
    if written and (number == written or not number.isdecimal()):
        raise SlackRefusal("invalid_cursor")
    return int(number or 0)
