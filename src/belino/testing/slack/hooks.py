"""Events over HTTP: signed with the app's secret, answered within three seconds or sent again."""

import asyncio
import hashlib
import hmac
import json
import secrets
from typing import Any
from urllib.parse import urlencode

from belino.delivery.deadline import deadline
from belino.domain.ports import Clock
from belino.testing.slack.deliveries import ACK_SECONDS, COMMANDS, NO_RETRY
from belino.testing.slack.shapes import Json

AGENT = "Slackbot 1.0 (+https://api.slack.com/robots)"
FORM = "application/x-www-form-urlencoded"
WHOLE_SECONDS = 30.0


class RequestUrl:
    """The app's own address, where Slack posts what happened."""

    def __init__(self, clock: Clock, secret: str) -> None:
        self._clock = clock
        self.secret = secret
        self.url = ""
        self.skew = 0.0
        """How many seconds off the clock is that stamps the calls."""
        self.attempts: list[tuple[int, int]] = []
        """Every attempt: which one it was for its event, and the status; 0 where there was no answer."""
        self.answers: list[bytes] = []
        """What the app answered, each time."""

    async def verify(self, url: str) -> bool:
        """Whether somebody at the address repeats the challenge, as Slack asks before it sends anything."""
        challenge = secrets.token_hex(16)
        asked = {"token": "deprecated-verification-token", "challenge": challenge, "type": "url_verification"}
        self.url = url
        if await self._post(json.dumps(asked).encode(), "application/json", {}) != 200:
            return False
        return challenge.encode() in self.answers[-1]

    async def attempt(self, kind: str, payload: Json, *, number: int, reason: str) -> str | None:
        """Post once; None once the app said 2xx in time."""
        headers = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": reason} if number else {}
        body, mime = json.dumps(payload).encode(), "application/json"
        if kind == COMMANDS:
            body, mime = urlencode(payload).encode(), FORM
        try:
            async with deadline(self._clock, ACK_SECONDS):
                status = await self._post(body, mime, headers)
        except TimeoutError:
            self.attempts.append((number, 0))
            return "http_timeout"
        self.attempts.append((number, abs(status)))
        if 200 <= status < 300:
            return None
        return NO_RETRY if status < 0 else "http_error" if status else "connection_failed"

    def signature(self, body: bytes, stamp: str) -> str:
        """What the header X-Slack-Signature says of a body."""
        signed = b"v0:" + stamp.encode() + b":" + body
        return "v0=" + hmac.new(self.secret.encode(), signed, hashlib.sha256).hexdigest()

    async def _post(self, body: bytes, mime: str, more: dict[str, str]) -> int:
        """The status, below zero if the app wants no second attempt, 0 without an answer."""
        from aiohttp import ClientError, ClientSession, ClientTimeout

        stamp = str(int(self._clock.now().timestamp() + self.skew))
        headers: dict[str, Any] = {"Content-Type": mime, "User-Agent": AGENT, **more}
        headers |= {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": self.signature(body, stamp)}
        try:
            async with (
                asyncio.timeout(WHOLE_SECONDS),
                ClientSession(timeout=ClientTimeout(total=WHOLE_SECONDS)) as session,
                session.post(self.url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                self.answers.append(await answer.read())
                final = answer.headers.get("X-Slack-No-Retry") == "1" and answer.status >= 300
                return -answer.status if final else answer.status
        except (ClientError, OSError):
            return 0
