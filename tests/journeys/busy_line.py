"""An account on a LINE of our own, and a gateway that LINE calls."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from belino.domain.message import ConversationKey
from belino.gateway.gateway import Gateway
from belino.testing import LineServer
from belino.testing.line.world import place_id
from belino.testing.platform_server import Json
from belino.web.server import serve
from journeys.busy_place import BusyPlace, until

BOT = "@belino"
PUBLIC = "https://belino.example"
"""Where the gateway is for LINE."""
HOOK = "/hooks/line/default"


class BusyLine(BusyPlace):
    """One LINE, one group in it."""

    platform = "line"

    def __init__(self, line: LineServer, path: Path, *, public: bool = True) -> None:
        super().__init__(path)
        self.line = line
        self.ann, self.bob = line.user("Ann"), line.user("Bob")
        self.room = line.group("trips", self.ann, self.bob)
        self.public = public
        line.webhook.url = self._hook

    @property
    def environment(self) -> dict[str, str]:
        return {"BELINO_TEST_LINE": self.line.token, "BELINO_TEST_SECRET": self.line.channel_secret}

    def adapter(self) -> dict[str, Any]:
        room = {place_id(self.room): {"senders": ["*"], "mention": True}}
        secrets = {"channel_access_token": "env:BELINO_TEST_LINE", "channel_secret": "env:BELINO_TEST_SECRET"}
        urls = {"api_url": self.line.url, "stickers_url": self.line.url}
        return {**secrets, **urls, "access": {"senders": [self.ann["userId"]], "channels": room}}

    def table(self) -> dict[str, Any]:
        return super().table() | {"server": {"port": 0} | ({"public_url": PUBLIC} if self.public else {})}

    @asynccontextmanager
    async def reachable(self, gateway: Gateway) -> AsyncIterator[None]:
        """The gateway's web door, which LINE knows under its public address."""
        async with asyncio.TaskGroup() as group:
            ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            door = group.create_task(serve(gateway, ready=ready.set_result))
            await ready
            adapter: Any = gateway.adapters["line", "default"]
            await until(lambda: adapter._hooks.is_open)
            try:
                yield
            finally:
                door.cancel()

    def _hook(self) -> str:
        """The webhook of the gateway that runs, by the file that it writes."""
        try:
            run = json.loads((self.home.path / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ""
        address = str(run["url"]).rstrip("/")
        self.line.origins[PUBLIC] = address
        return f"{address}{HOOK}"

    def channel(self, place: Json | None = None) -> ConversationKey:
        return ConversationKey(platform="line", account="default", channel=place_id(place or self.room))

    @property
    def private(self) -> ConversationKey:
        return self.channel(self.ann)

    def write(self, text: str, **more: Any) -> Json:
        for file in more.pop("files", ()):
            self.line.say(self.ann, self.ann, file=file)
        return self.line.say(self.ann, self.ann, text, **more)

    @property
    def sent(self) -> Sequence[Json]:
        return self.line.sent

    def answers(self) -> list[str]:
        """The texts that the account sent."""
        return [message["text"] for message in self.line.sent if message["type"] == "text"]

    @property
    def downloads(self) -> int:
        return self.line.calls["file"]
