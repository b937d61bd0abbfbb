"""A server on a Discord of our own and a gateway that listens to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belino.domain.message import ConversationKey
from belino.testing.discord import BOT_ID, DiscordServer
from belino.testing.discord.request import CDN
from belino.testing.discord.shapes import Json
from journeys.busy_place import BusyPlace

BOT = f"<@{BOT_ID}>"


class BusyServer(BusyPlace):
    """One Discord, one server with a channel in it."""

    platform = "discord"

    def __init__(self, discord: DiscordServer, path: Path, **settings: Any) -> None:
        super().__init__(path)
        self.discord = discord
        self.ann, self.bob = discord.user("ann"), discord.user("bob")
        self.club = discord.guild("Hikers", self.ann, self.bob, tier=2)
        self.room = discord.channel(self.club, "trips")
        self.settings = settings

    @property
    def environment(self) -> dict[str, str]:
        return {"BELINO_TEST_TOKEN": self.discord.token}

    def adapter(self) -> dict[str, Any]:
        access = {"senders": [self.ann["id"]], "channels": {self.room["id"]: {"senders": ["*"], "mention": True}}}
        urls = {"api_url": self.discord.api_url, "cdn_url": self.discord.cdn.url}
        return {"token": "env:BELINO_TEST_TOKEN", **urls, "access": access, **self.settings}

    def is_heard(self) -> bool:
        return any(connection.session is not None for connection in self.discord.gateway.connections)

    def channel(self, place: Json | None = None, thread: Json | None = None) -> ConversationKey:
        where = self.discord.dm(place) if place is not None and place["id"] in self.discord.users else place
        own = None if thread is None else thread["id"]
        return ConversationKey(platform="discord", account="default", channel=(where or self.room)["id"], thread=own)

    @property
    def private(self) -> ConversationKey:
        return self.channel(self.ann)

    def write(self, text: str, **more: Any) -> Json:
        return self.discord.say(self.ann, self.ann, text, **more)

    @property
    def sent(self) -> Sequence[Json]:
        return self.discord.sent

    def answers(self) -> list[str]:
        """What the bot made visible."""
        return [message["content"] for message in self.discord.sent]

    @property
    def downloads(self) -> int:
        return self.discord.calls[CDN]
