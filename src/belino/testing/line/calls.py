"""Calls of the Messaging API: messages are checked by the documented rules, sent once, and counted.

https://developers.line.biz/en/reference/messaging-api/#messages
"""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from belino.domain.ports import Clock
from belino.testing.line.world import LineWorld, units
from belino.testing.platform_server import Json, SlidingWindow

MESSAGES, TEXT_UNITS, URL_CHARS = 5, 5_000, 2_000
KEY_SECONDS = 24 * 3600.0
PER_SECOND = 2_000
"""Of calls that have no lower limit."""
STICKERS = frozenset({("446", "1988"), ("446", "1989"), ("789", "10855"), ("11537", "52002734")})
"""Some of those that accounts may send."""
INVALID = "A message (messages[{}]) in the request body is invalid"


class LineRefusal(Exception):
    """An error answer of LINE."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        details: list[Json] | None = None,
        sent: list[Json] | None = None,
        accepted: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.told: Json = {"message": message}
        if details:
            self.told["details"] = details
        if sent:
            self.told["sentMessages"] = sent
        self.accepted = accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCall:
    """One call: its documented name, its fields and its headers in lower case."""

    name: str
    path: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedPush:
    """What was sent under a retry key."""

    request_id: str
    sent: list[Json]
    at: float


class LineCalls:
    """Answers calls for a world."""

    def __init__(self, world: LineWorld, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self._accepted: dict[str, AcceptedPush] = {}
        self._pace = SlidingWindow(clock)
        self._number = 0
        self.quota: int | None = None
        """The messages of a month; None without a limit."""
        self.used = 0

    def keep_pace(self, name: str) -> None:
        """Count a call, or refuse it."""
        if self._pace.wait(name, 100 if name == "loading" else PER_SECOND, 1.0) > 0:
            raise LineRefusal(429, "The API rate limit has been exceeded. Try again later.")
        self._pace.add(name)

    def reply(self, call: LineCall) -> Json:
        """Reply with a token: once, soon after its event, and free."""
        if "x-line-retry-key" in call.headers:
            raise LineRefusal(400, "The retry key is not supported for this API")
        token = self._world.tokens.get(str(call.fields.get("replyToken")))
        now = self._clock.monotonic()
        if token is None or token.used or token.until is None or token.until <= now:
            raise LineRefusal(400, "Invalid reply token")
        messages = self._checked(call, token.place)
        token.used = True
        return {"sentMessages": self._send(token.place, messages)}

    def push(self, call: LineCall) -> Json:
        """Push, once under a retry key, and within the month's messages."""
        key, to = call.headers.get("x-line-retry-key", ""), str(call.fields.get("to"))
        if key and (before := self._known(key)) is not None:
            raise LineRefusal(409, "The retry key is already accepted", sent=before.sent, accepted=before.request_id)
        if to not in self._world.users and (to not in self._world.groups or to in self._world.left):
            raise LineRefusal(400, "Failed to send messages")
        messages = self._checked(call, to)
        people = len(self._world.groups[to]["members"]) if to in self._world.groups else 1
        if self.quota is not None and self.used + people > self.quota:
            raise LineRefusal(429, "You have reached your monthly limit.")
        self.used += people
        sent = self._send(to, messages)
        if key:
            at = self._clock.monotonic()
            self._accepted[key] = AcceptedPush(request_id=call.request_id, sent=sent, at=at)
        return {"sentMessages": sent}

    def load(self, call: LineCall) -> Json:
        """Show the loading animation to one person."""
        who, seconds = str(call.fields.get("chatId")), call.fields.get("loadingSeconds", 20)
        if who not in self._world.users:
            raise LineRefusal(400, "The property, 'chatId', in the request body is invalid (line: -, column: -)")
        if not isinstance(seconds, int) or not 5 <= seconds <= 60 or seconds % 5:
            raise LineRefusal(400, "The property, 'loadingSeconds', in the request body is invalid")
        self._world.loading.append((who, seconds))
        return {}

    def _known(self, key: str) -> AcceptedPush | None:
        try:
            uuid.UUID(key)
        except ValueError:
            raise LineRefusal(400, "Invalid X-Line-Retry-Key header") from None
        before = self._accepted.get(key)
        return before if before is not None and self._clock.monotonic() - before.at < KEY_SECONDS else None

    def _checked(self, call: LineCall, place: str) -> list[Json]:
        messages = call.fields.get("messages")
        if not isinstance(messages, list) or not 0 < len(messages) <= MESSAGES:
            detail = {"message": f"Size must be between 1 and {MESSAGES}", "property": "messages"}
            raise LineRefusal(400, "The request body has 1 error(s)", details=[detail])
        for number, message in enumerate(messages):
            if wrong := self._wrong(message, place):
                where, why = wrong
                detail = {"message": why, "property": f"messages[{number}].{where}"}
                raise LineRefusal(400, INVALID.format(number), details=[detail])
        return messages

    def _wrong(self, message: Json, place: str) -> tuple[str, str] | None:
        """The first property that is invalid, and why."""
        if (token := message.get("quoteToken")) and (
            message["type"] not in ("text", "sticker") or self._world.quotes.get(token) != place
        ):
            return "quoteToken", "Invalid quote token"
        match message.get("type"):
            case "text":
                size = units(str(message.get("text", "")))
                return None if 0 < size <= TEXT_UNITS else ("text", f"Length must be between 0 and {TEXT_UNITS}")
            case "image" | "video":
                return _bad_url(message, "originalContentUrl") or _bad_url(message, "previewImageUrl")
            case "audio":
                length = message.get("duration")
                fits = isinstance(length, int) and length > 0
                return _bad_url(message, "originalContentUrl") or (None if fits else ("duration", "May not be null"))
            case "sticker":
                known = (message.get("packageId"), message.get("stickerId")) in STICKERS
                return None if known else ("stickerId", "Invalid sticker")
            case _:
                return "type", "Must be one of the following values: [text, sticker, image, video, audio, …]"

    def _send(self, to: str, messages: list[Json]) -> list[Json]:
        self._number += 1
        told = []
        for message in messages:
            own = self._world.next_id()
            self._world.sent.append({**message, "id": own, "to": to, "call": self._number})
            quote = {"quoteToken": self._world.new_quote(to)} if message["type"] != "audio" else {}
            told.append({"id": own, **quote})
        return told


def _bad_url(message: Json, name: str) -> tuple[str, str] | None:
    url = message.get(name)
    if not isinstance(url, str) or not re.fullmatch(r"\S{1,2000}", url):
        return name, f"Length must be between 1 and {URL_CHARS}"
    return None if urlsplit(url).scheme == "https" else (name, "Must be a valid HTTPS URL")
