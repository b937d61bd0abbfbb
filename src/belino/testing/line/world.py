"""World of a LINE account: people, groups and rooms, what they send, and the webhook events about it."""

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from belino.domain.ports import Clock
from belino.testing.file_server import FakeUpload, HostedFile, upload_of
from belino.testing.platform_server import Json

REPLY_SECONDS = 60.0
"""How long a reply token is valid after its event was delivered."""
KEPT_SECONDS = 14 * 24 * 3600.0
"""How long files are kept; LINE does not say how long it does."""
REDELIVERY_SECONDS = 1.0
FIRST_MESSAGE = 580_000_000_000_000_001
BOT_NAME = "belino"
MEDIA = ("image", "video", "audio", "file")

_MENTION = re.compile(r"@[\w-]+")


def own_id(letter: str, seed: str) -> str:
    """An id as LINE writes it: a letter and 32 hexadecimal digits."""
    return letter + hashlib.sha256(f"{letter}{seed}".encode()).hexdigest()[:32]


def units(text: str) -> int:
    """Length in UTF-16 code units, which is how LINE counts."""
    return len(text.encode("utf-16-le")) // 2


@dataclass(slots=True, kw_only=True)
class IssuedToken:
    """A reply token, and until when it is valid; that is known once its event is delivered."""

    place: str
    until: float | None = None
    used: bool = False


@dataclass(slots=True, kw_only=True)
class LineWebhook:
    """Where events are delivered, and how the deliveries went."""

    url: str | Callable[[], str] = ""
    """Empty while none is set; a function where the address changes."""
    active: bool = True
    redelivers: bool = True
    deliveries: list[int] = field(default_factory=list)
    """The status of every attempt, 0 if the connection failed."""

    @property
    def address(self) -> str:
        return self.url if isinstance(self.url, str) else self.url()


class LineWorld:
    """People act through these methods; each returns the message or event as LINE writes it, and queues its event."""

    def __init__(self, clock: Clock, *, secret: str) -> None:
        self.bot: Json = {"userId": own_id("U", "bot"), "displayName": BOT_NAME, "basicId": "@216belino"}
        self.channel_secret = secret
        self.users: dict[str, Json] = {}
        self.groups: dict[str, Json] = {}
        """Groups and rooms, with their members."""
        self.messages: dict[str, Json] = {}
        self.files: dict[str, HostedFile] = {}
        """The bytes of messages, by message id."""
        self.preparing: dict[str, int] = {}
        """How often the preparation of a message's file is still reported as processing; below 0, as failed."""
        self.sent: list[Json] = []
        """Every message that the account sent, oldest first, with `to`, `id` and the number of its `call`."""
        self.loading: list[tuple[str, int]] = []
        """Every loading animation: for whom, and how long."""
        self.tokens: dict[str, IssuedToken] = {}
        self.quotes: dict[str, str] = {}
        """Quote tokens, and the place that each is valid in."""
        self.webhook = LineWebhook()
        self.left: set[str] = set()
        """Groups that the account is not in."""
        self._clock = clock
        self._number = FIRST_MESSAGE
        self._queue: asyncio.Queue[Json] = asyncio.Queue()

    def user(self, name: str, *, language: str = "en") -> Json:
        """A person who has added the account."""
        user: Json = {"userId": own_id("U", f"{name}{len(self.users)}"), "displayName": name, "language": language}
        self.users[user["userId"]] = user
        return user

    def group(self, name: str, *members: Json) -> Json:
        """A group that the account is in."""
        group: Json = {"groupId": own_id("C", f"{name}{len(self.groups)}"), "groupName": name, "members": members}
        self.groups[group["groupId"]] = group
        return group

    def room(self, *members: Json) -> Json:
        """A chat of several people that is no group."""
        room: Json = {"roomId": own_id("R", str(len(self.groups))), "members": members}
        self.groups[room["roomId"]] = room
        return room

    def say(self, place: Json, user: Json, text: str = "", /, **fields: Any) -> Json:
        """One message: a text, or `image`, `video`, `audio`, `file` with bytes or a FakeUpload, or `raw` fields.

        `quote` is the message that is quoted; further fields are those of LINE's message object. A user as the place
        is the chat with the account.
        """
        quoted, raw = fields.pop("quote", None), fields.pop("raw", None)
        kind = next((kind for kind in MEDIA if kind in fields), "text")
        message: Json = {"id": self.next_id(), "type": kind, "quoteToken": self.new_quote(place_id(place))}
        if raw is not None:
            message |= raw
        elif kind == "text":
            message |= {"text": text, **self._mention(text)}
        else:
            message |= self._file(message["id"], kind, upload_of(fields.pop(kind)))
        if quoted is not None:
            message["quotedMessageId"] = quoted["id"]
        message |= fields
        self.messages[message["id"]] = {**message, "_place": place, "_user": user}
        self.event("message", place, user, message=message)
        return message

    def edit(self, message: Json, text: str) -> Json:
        """A person edits a text in a group."""
        kept = self.messages[message["id"]]
        edited = {**message, "text": text, **self._mention(text)}
        return self.event("messageEdited", kept["_place"], kept["_user"], message=edited)

    def unsend(self, message: Json) -> Json:
        """A person withdraws a message: its file is gone, too."""
        kept = self.messages[message["id"]]
        self.files.pop(message["id"], None)
        return self.event("unsend", kept["_place"], kept["_user"], unsend={"messageId": message["id"]})

    def event(self, kind: str, place: Json | None = None, user: Json | None = None, **fields: Any) -> Json:
        """Queue an event; people's events bring a reply token, except what needs no answer."""
        event: Json = {
            "type": kind,
            "mode": "active",
            "timestamp": round(self._clock.now().timestamp() * 1000),
            "webhookEventId": secrets.token_hex(13).upper(),
            "deliveryContext": {"isRedelivery": False},
            **fields,
        }
        if place is not None:
            event["source"] = source_of(place, user)
            if kind not in ("unsend", "leave", "unfollow", "memberLeft", "messageEdited"):
                event["replyToken"] = token = secrets.token_hex(16)
                self.tokens[token] = IssuedToken(place=place_id(place))
        self._queue.put_nowait(event)
        return event

    def next_id(self) -> str:
        self._number += 1
        return str(self._number)

    def new_quote(self, place: str) -> str:
        token = secrets.token_urlsafe(24)
        self.quotes[token] = place
        return token

    def signed(self, events: Sequence[Json]) -> tuple[bytes, dict[str, str]]:
        """The body of a call with these events, and its headers."""
        body = json.dumps({"destination": self.bot["userId"], "events": events}, ensure_ascii=False).encode()
        return body, {"Content-Type": "application/json; charset=utf-8", "x-line-signature": self.signature(body)}

    def signature(self, body: bytes) -> str:
        return base64.b64encode(hmac.new(self.channel_secret.encode(), body, hashlib.sha256).digest()).decode()

    async def deliver_events(self) -> None:
        """Deliver to the webhook; what was not acknowledged comes again, after what was said since."""
        from aiohttp import ClientSession, ClientTimeout

        async with ClientSession(timeout=ClientTimeout(total=10)) as session, asyncio.TaskGroup() as group:
            while True:
                event = await self._queue.get()
                if not self.webhook.active:
                    continue
                token = self.tokens.get(event.get("replyToken", ""))
                if token is not None and token.until is None:
                    token.until = self._clock.monotonic() + REPLY_SECONDS
                if not await self.posted(session, [event]) and self.webhook.redelivers:
                    group.create_task(self._again(event))

    async def posted(self, session: Any, events: Sequence[Json]) -> bool:
        """One call of the webhook: whether it was acknowledged."""
        from aiohttp import ClientError

        body, headers = self.signed(events)
        try:
            async with session.post(self.webhook.address, data=body, headers=headers, allow_redirects=False) as answer:
                status: int = answer.status
        except (ClientError, TimeoutError, OSError, ValueError):  # also where no address is set
            status = 0
        self.webhook.deliveries.append(status)
        return 200 <= status <= 299

    async def _again(self, event: Json) -> None:
        await self._clock.sleep(REDELIVERY_SECONDS)
        self._queue.put_nowait({**event, "deliveryContext": {"isRedelivery": True}})

    def _mention(self, text: str) -> Json:
        mentionees = []
        for found in _MENTION.finditer(text):
            name = found.group()[1:]
            place = {"index": units(text[: found.start()]), "length": units(found.group())}
            user = next((each for each in self.users.values() if each["displayName"] == name), None)
            if name == BOT_NAME:
                mentionees.append({**place, "type": "user", "userId": self.bot["userId"], "isSelf": True})
            elif user is not None:
                mentionees.append({**place, "type": "user", "userId": user["userId"], "isSelf": False})
            elif name == "All":
                mentionees.append({**place, "type": "all"})
        return {"mention": {"mentionees": mentionees}} if mentionees else {}

    def _file(self, own: str, kind: str, upload: FakeUpload) -> Json:
        now = self._clock.monotonic()
        self.files[own] = HostedFile(
            file_id=own, unique_id=own, upload=upload, path=own, size=upload.announced, opened_at=now
        )
        if kind == "file":
            return {"fileName": upload.name or "file.bin", "fileSize": upload.announced}
        told: Json = {"contentProvider": {"type": "line"}}
        return told if kind == "image" else {**told, "duration": upload.duration * 1000}


def place_id(place: Mapping[str, Any]) -> str:
    """The id of a user, group or room."""
    return str(place.get("groupId") or place.get("roomId") or place["userId"])


def source_of(place: Mapping[str, Any], user: Mapping[str, Any] | None) -> Json:
    """The source of an event."""
    kind = "group" if "groupId" in place else "room" if "roomId" in place else "user"
    source: Json = {"type": kind, f"{kind}Id": place_id(place)}
    return source if user is None else {**source, "userId": user["userId"]}
