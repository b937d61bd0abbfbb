"""A linked device on a signal-cli daemon of our own and a gateway that listens to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belino.domain.message import ConversationKey
from belino.testing import SignalServer
from belino.testing.platform_server import Json
from journeys.busy_place import BusyPlace


class BusyDevice(BusyPlace):
    """One daemon with one account, and a group that it is in."""

    platform = "signal"

    def __init__(self, daemon: SignalServer, path: Path, **settings: Any) -> None:
        super().__init__(path)
        self.daemon = daemon
        self.ann, self.bob = daemon.user("Ann"), daemon.user("Bob")
        self.room = daemon.group("Hikers", self.ann, self.bob)
        self.settings = settings

    @property
    def environment(self) -> dict[str, str]:
        return {}

    def adapter(self) -> dict[str, Any]:
        group = {f"group.{self.room['id']}": {"senders": ["*"], "mention": True}}
        access = {"senders": [self.ann["uuid"]], "channels": group}
        return {"url": self.daemon.url, "access": access, **self.settings}

    def is_heard(self) -> bool:
        return bool(self.daemon.streams)

    def channel(self, place: Json | None = None) -> ConversationKey:
        where = place or self.room
        own = f"group.{where['id']}" if "id" in where else where["uuid"]
        return ConversationKey(platform="signal", account="default", channel=own)

    @property
    def private(self) -> ConversationKey:
        return self.channel(self.ann)

    def write(self, text: str, **more: Any) -> Json:
        return self.daemon.say(self.ann, self.ann, text, **more)

    def ask(self, text: str, sender: Json | None = None, **more: Any) -> Json:
        """A person writes to the agent in the group."""
        mentions = [self.daemon.mention(self.daemon.me, 0)]
        return self.daemon.say(self.room, sender or self.ann, f"\ufffc {text}", mentions=mentions, **more)

    @property
    def sent(self) -> Sequence[Json]:
        return self.daemon.sent

    def answers(self) -> list[str]:
        """What the account made visible."""
        return [message["message"] for message in self.daemon.sent]

    @property
    def downloads(self) -> int:
        return self.daemon.calls["getAttachment"]
