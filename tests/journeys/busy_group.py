"""A group on a Telegram of our own and a gateway that listens to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belino.domain.message import ConversationKey
from belino.testing import TelegramServer
from journeys.busy_place import BusyPlace

BOT = "@belino_bot"


class BusyGroup(BusyPlace):
    """One Telegram server, one group in it."""

    platform = "telegram"

    def __init__(self, server: TelegramServer, path: Path) -> None:
        super().__init__(path)
        self.server = server
        self.chat = server.group("Hikers")
        self.ann = server.user("Ann", username="ann_w")
        self.bob = server.user("Bob")

    @property
    def environment(self) -> dict[str, str]:
        return {"BELINO_TEST_TOKEN": self.server.token}

    def adapter(self) -> dict[str, Any]:
        access = {
            "senders": [str(self.ann["id"])],
            "channels": {str(self.chat["id"]): {"senders": ["*"], "mention": True}},
        }
        return {"token": "env:BELINO_TEST_TOKEN", "api_url": self.server.url, "access": access}

    def channel(self, chat: dict[str, Any] | None = None) -> ConversationKey:
        return ConversationKey(platform="telegram", account="default", channel=str((chat or self.chat)["id"]))

    @property
    def private(self) -> ConversationKey:
        return self.channel(self.ann)

    def write(self, text: str, **more: Any) -> dict[str, Any]:
        return self.server.say(self.ann, self.ann, text, **more)

    @property
    def sent(self) -> Sequence[dict[str, Any]]:
        return self.server.sent

    def answers(self) -> list[str]:
        """What the bot made visible."""
        return [message.get("text", "") for message in self.server.sent]

    @property
    def downloads(self) -> int:
        return self.server.calls["file"]
