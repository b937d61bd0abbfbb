"""A Telegram beside the browser's tests: strangers who write, and a group that sends files."""

import asyncio
import re
import threading
import time
from typing import Any, Self

from belino.testing import TelegramServer
from belino.testing.faults import CannedAnswer, Faults
from belino.testing.telegram.updates import WEBHOOK_SET

START_SECONDS = 60.0


class Telegram:
    """A Telegram with a loop and a thread of its own, because the browser keeps this one busy."""

    server: TelegramServer
    group: dict[str, Any]
    ann: dict[str, Any]

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_SECONDS)

    def write(self, name: str) -> None:
        """Somebody writes to the bot directly."""
        self._loop.call_soon_threadsafe(self._say, name)

    def post(self, **fields: Any) -> None:
        """Ann sends something to the group."""
        self._loop.call_soon_threadsafe(lambda: self.server.say(self.group, self.ann, **fields))

    def invite(self) -> None:
        """Ann adds the bot to the group."""
        self._loop.call_soon_threadsafe(lambda: self.server.invite(self.group, self.ann))

    def refuse(self, method: str) -> None:
        """Every call of a method is refused, as with a revoked token, until `accept`."""
        refusal = CannedAnswer(status=401, description="Unauthorized")
        self._loop.call_soon_threadsafe(lambda: self.server.fail(method, refusal, times=1_000))

    def hook(self, url: str) -> None:
        """Another program sets a webhook."""

        def set_webhook() -> None:
            self.server.updates.webhook.url = url
            self.server.updates.interrupt(WEBHOOK_SET)

        self._loop.call_soon_threadsafe(set_webhook)

    def accept(self) -> None:
        """Calls are answered again."""
        done = threading.Event()

        def forget() -> None:
            self.server.faults = Faults()
            done.set()

        self._loop.call_soon_threadsafe(forget)
        assert done.wait(START_SECONDS)

    def code(self) -> str:
        """The code the last stranger was told, once that is so: the page may know of them before."""
        deadline, pause = time.monotonic() + START_SECONDS, threading.Event()
        while True:
            told = [str(call.fields["text"]) for call in self.server.requests if call.method.lower() == "sendmessage"]
            if codes := re.findall(r"belino pair (\S+)", "\n".join(told)):
                return str(codes[-1])
            assert time.monotonic() < deadline, "nobody was told a code"
            pause.wait(0.02)

    def _say(self, name: str) -> None:
        user = self.server.user(name)
        self.server.say(user, user, "hello?")

    async def _serve(self) -> None:
        async with TelegramServer() as self.server:
            self.group, self.ann = self.server.group("Harbour"), self.server.user("Ann")
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            self._ready.set()
            await self._stop.wait()
