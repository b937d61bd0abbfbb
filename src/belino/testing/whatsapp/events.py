"""Events as webhooks: signed, verified by a handshake first, delivered in order and repeated until acknowledged."""

import asyncio
import hashlib
import hmac
import json
import secrets
from collections import deque
from typing import Any
from urllib.parse import urlencode

from belino.aio.deadline import deadline
from belino.domain.ports import Clock
from belino.testing.whatsapp.shapes import Json

CALL_SECONDS = 20.0
KEPT_SECONDS = 7 * 86_400.0
"""Meta repeats a call with less and less frequency for seven days."""


class CloudWebhook:
    """One phone number's callback, and the events that wait for it."""

    def __init__(self, clock: Clock, secret: str) -> None:
        self._clock = clock
        self.secret = secret
        self.url = ""
        self.longest_delay = 3600.0
        """Between two tries of a call."""
        self.deliveries: list[int] = []
        """The status of each call; 0 without an answer."""
        self.bodies: list[bytes] = []
        self._waiting: deque[tuple[bytes, float]] = deque()
        self._more = asyncio.Event()
        self._verified = asyncio.Event()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, payload: Json) -> None:
        """Deliver a payload once there is a callback."""
        self._waiting.append((json.dumps(payload).encode(), self._clock.monotonic()))
        self._more.set()

    async def verify(self, url: str, token: str) -> bool:
        """Ask an address whether it expects our calls, and use it if it repeats the challenge."""
        challenge = str(secrets.randbelow(10**10))
        asked = {"hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": token}
        status, body = await self._call("GET", f"{url}?{urlencode(asked)}", None)
        if status != 200 or body != challenge.encode():
            return False
        self.url = url
        self._more.set()
        self._verified.set()
        return True

    def sign(self, body: bytes) -> dict[str, str]:
        """The header of a signed call."""
        made = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        return {"X-Hub-Signature-256": f"sha256={made}", "Content-Type": "application/json"}

    async def push(self) -> None:
        """Deliver until cancelled."""
        delay = min(1.0, self.longest_delay)
        while True:
            while not (self._waiting and self.url):
                self._more.clear()
                await self._more.wait()
            body, since = self._waiting[0]
            status, _ = await self._call("POST", self.url, body)
            self.deliveries.append(status)
            if status == 200 or self._clock.monotonic() - since >= KEPT_SECONDS:
                self.bodies = [*self.bodies[-99:], body]
                self._waiting.popleft()
                delay = min(1.0, self.longest_delay)
                continue
            self._verified.clear()
            try:
                async with deadline(self._clock, delay):
                    await self._verified.wait()
            except TimeoutError:
                delay = min(delay * 2, self.longest_delay)

    async def _call(self, method: str, url: str, body: bytes | None) -> tuple[int, bytes]:
        from aiohttp import ClientError, ClientSession, ClientTimeout

        headers = self.sign(body) if body is not None else {}
        session: Any
        try:
            async with (
                ClientSession(timeout=ClientTimeout(total=CALL_SECONDS)) as session,
                session.request(method, url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                return answer.status, await answer.read()
        except (ClientError, TimeoutError, OSError):
            return 0, b""
