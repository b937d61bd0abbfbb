"""A business on a WhatsApp of our own and a gateway that it calls."""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from belino.domain.message import ConversationKey
from belino.gateway.gateway import Gateway
from belino.testing import CloudPace, WhatsAppServer
from belino.testing.whatsapp.shapes import NUMBER, Json
from belino.web.server import serve
from journeys.busy_place import BusyPlace

BOT = f"@{NUMBER}"
ENDURING = CloudPace(pair_burst=100_000, per_second=100_000)


class BusyBusiness(BusyPlace):
    """One WhatsApp, one person who writes directly, one group; the number registers its own address."""

    platform = "whatsapp"

    def __init__(self, server: WhatsAppServer, path: Path, **settings: Any) -> None:
        super().__init__(path)
        self.server = server
        server.hook.longest_delay = 0.5
        self.ann, self.bob = server.user("Ann"), server.user("Bob")
        self.room = server.group("Hikers", self.ann, self.bob)
        self.settings = settings
        self.port = free_port()
        self.arguments = ("--port", str(self.port))
        self.more = {"server": {"port": self.port}}

    @property
    def environment(self) -> dict[str, str]:
        server = self.server
        return {"BELINO_TOKEN": server.token, "BELINO_APP": server.app_secret, "BELINO_VERIFY": server.verify_token}

    def adapter(self) -> dict[str, Any]:
        access = {"senders": [self.ann["id"]], "channels": {self.room["id"]: {"senders": ["*"], "mention": True}}}
        secrets = {"token": "env:BELINO_TOKEN", "app_secret": "env:BELINO_APP", "verify_token": "env:BELINO_VERIFY"}
        url = f"http://127.0.0.1:{self.port}"
        return {**secrets, **self.server.settings, "public_url": url, "access": access, **self.settings}

    async def open_door(self, gateway: Gateway) -> None:
        await serve(gateway, ready=lambda _: None)

    def is_heard(self) -> bool:
        return bool(self.server.hook.url)

    def channel(self, place: Json | None = None) -> ConversationKey:
        return ConversationKey(platform="whatsapp", account="default", channel=(place or self.room)["id"])

    @property
    def private(self) -> ConversationKey:
        return self.channel(self.ann)

    def write(self, text: str, **more: Any) -> Json:
        return self.server.say(self.ann, self.ann, text, **more)

    @property
    def sent(self) -> Sequence[Json]:
        return self.server.sent

    def answers(self) -> list[str]:
        """What the business made visible."""
        return [message["text"] for message in self.server.sent]

    @property
    def downloads(self) -> int:
        return self.server.calls["file"]


def free_port() -> int:
    """A port that nothing listens at, now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
