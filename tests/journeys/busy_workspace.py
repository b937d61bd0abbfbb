"""A workspace on a Slack of our own and a gateway that listens to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belino.domain.message import ConversationKey
from belino.testing import SlackServer
from belino.testing.slack.shapes import BOT_USER, Json
from journeys.busy_place import BusyPlace

BOT = f"<@{BOT_USER}>"


class BusyWorkspace(BusyPlace):
    """One Slack, one channel in it."""

    platform = "slack"

    def __init__(self, slack: SlackServer, path: Path, **settings: Any) -> None:
        super().__init__(path)
        self.slack = slack
        self.ann, self.bob = slack.user("Ann"), slack.user("Bob")
        self.room = slack.channel("trips", self.ann, self.bob)
        self.settings = settings

    @property
    def environment(self) -> dict[str, str]:
        return {"BELINO_TEST_BOT": self.slack.bot_token, "BELINO_TEST_APP": self.slack.app_token}

    def adapter(self) -> dict[str, Any]:
        access = {"senders": [self.ann["id"]], "channels": {self.room["id"]: {"senders": ["*"], "mention": True}}}
        tokens = {"bot_token": "env:BELINO_TEST_BOT", "app_token": "env:BELINO_TEST_APP"}
        return {**tokens, "api_url": self.slack.api_url, "access": access, **self.settings}

    def is_heard(self) -> bool:
        return bool(self.slack.socket_mode.connections)

    def channel(self, place: Json | None = None, thread: Json | None = None) -> ConversationKey:
        where = self.slack.dm(place) if place is not None and place["id"] in self.slack.users else place
        own = None if thread is None else str(thread["ts"])
        return ConversationKey(platform="slack", account="default", channel=(where or self.room)["id"], thread=own)

    @property
    def private(self) -> ConversationKey:
        return self.channel(self.ann)

    def write(self, text: str, **more: Any) -> Json:
        return self.slack.say(self.ann, self.ann, text, **more)

    @property
    def sent(self) -> Sequence[Json]:
        return self.slack.sent

    def answers(self) -> list[str]:
        """What the app made visible."""
        return [message["text"] for message in self.slack.sent]

    @property
    def downloads(self) -> int:
        return self.slack.calls["file"]
