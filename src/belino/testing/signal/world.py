"""World of a Signal account: people, groups and envelopes in the shapes of signal-cli's JSON."""

import asyncio
import itertools
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from belino.domain.ports import Clock
from belino.testing.file_server import FakeUpload, upload_of
from belino.testing.files import make_jpeg
from belino.testing.platform_server import Json

NUMBER = "+4915100000000"
OTHER_DEVICE = 1
_MIMES = {"image.png": "image/png", "image.jpg": "image/jpeg", "image.gif": "image/gif", "image.webp": "image/webp"}


class SignalWorld:
    """People who write to the account; each act is an event, in the order of its time."""

    def __init__(self, clock: Clock, *, number: str) -> None:
        self.clock = clock
        self.number = number
        self.me: Json = {"number": number, "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, number)), "name": "belino"}
        self.people: dict[str, Json] = {self.me["uuid"]: self.me}
        self.groups: dict[str, Json] = {}
        self.attachments: dict[str, FakeUpload] = {}
        """What the daemon downloaded, by its id."""
        self.stickers: dict[tuple[str, int], bytes] = {}
        self.waiting: deque[Json] = deque()
        """Events that the stream has not handed out yet."""
        self.sent: list[Json] = []
        """What the account made visible."""
        self.received: list[FakeUpload] = []
        """The files that it sent."""
        self.news: Callable[[], None] = lambda: None
        self._last = 0
        self._numbers = itertools.count(1)

    def user(self, name: str, *, number: str | None = None) -> Json:
        """A person on Signal."""
        number = number or f"+49152{next(self._numbers):08}"
        person: Json = {"number": number, "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, number)), "name": name, "timer": 0}
        self.people[person["uuid"]] = person
        return person

    def group(self, name: str, *members: Json) -> Json:
        """A group that the account is in."""
        own = f"{uuid.uuid5(uuid.NAMESPACE_URL, name).hex}{name.encode().hex()[:11]:0<11}="
        group: Json = {"id": own, "name": name, "members": [self.me, *members], "timer": 0, "isMember": True}
        self.groups[own] = group
        return group

    def stamp(self) -> int:
        """The next time in milliseconds, by which Signal names a message."""
        self._last = max(self._last + 1, int(self.clock.now().timestamp() * 1000))
        return self._last

    def say(
        self,
        place: Json,
        sender: Json,
        text: str | None = None,
        *,
        files: Sequence[bytes | FakeUpload] = (),
        quote: Json | None = None,
        mentions: Sequence[Json] = (),
        sticker: tuple[str, int] | None = None,
        **more: Any,
    ) -> Json:
        """A person writes: to the account, where `place` is the person, or in a group."""
        stamp = self.stamp()
        data: Json = {"timestamp": stamp, "message": text, "expiresInSeconds": place["timer"], "viewOnce": False}
        if files:
            data["attachments"] = [self.attachment(file) for file in files]
        if quote is not None:
            data["quote"] = self.quote(quote)
        if mentions:
            data["mentions"] = list(mentions)
        if sticker is not None:
            data["sticker"] = {"packId": sticker[0], "stickerId": sticker[1]}
        data |= self._group_fields(place) | more
        self.tell(sender, stamp, dataMessage=data)
        return {"sender": sender, "place": place, **data}

    def mention(self, person: Json, start: int) -> Json:
        """A mention, for a placeholder at a place of the text."""
        return {
            "name": person["number"],
            "number": person["number"],
            "uuid": person["uuid"],
            "start": start,
            "length": 1,
        }

    def edit(self, message: Mapping[str, Any], text: str) -> Json:
        """Its author edits a message."""
        stamp = self.stamp()
        kept = ("attachments", "quote", "groupInfo", "expiresInSeconds")
        data = {key: message[key] for key in kept if key in message} | {"timestamp": stamp, "message": text}
        edit = {"targetSentTimestamp": message["timestamp"], "dataMessage": data}
        self.tell(message["sender"], stamp, editMessage=edit)
        return {**message, **data}

    def delete(self, message: Mapping[str, Any]) -> None:
        """Its author deletes a message for everyone."""
        self._change(message["sender"], message["place"], remoteDelete={"timestamp": message["timestamp"]})

    def react(self, sender: Json, message: Mapping[str, Any], emoji: str, *, remove: bool = False) -> None:
        """A person reacts."""
        who = message.get("sender", self.me)
        target = {"targetAuthorNumber": who["number"], "targetAuthorUuid": who["uuid"], "targetAuthor": who["number"]}
        target |= {"targetSentTimestamp": message["timestamp"], "emoji": emoji, "isRemove": remove}
        self._change(sender, message["place"], reaction=target)

    def receipt(self, sender: Json, *stamps: int, read: bool = False) -> None:
        """A person's app reports that messages arrived, or were read."""
        told = {"when": self.stamp(), "isDelivery": not read, "isRead": read, "isViewed": False}
        self.tell(sender, told["when"], receiptMessage={**told, "timestamps": list(stamps)})

    def type(self, sender: Json) -> None:
        stamp = self.stamp()
        self.tell(sender, stamp, typingMessage={"action": "STARTED", "timestamp": stamp})

    def post_story(self, sender: Json) -> None:
        self.tell(sender, self.stamp(), storyMessage={"allowsReplies": True, "textAttachment": {"text": "A story"}})

    def set_timer(self, place: Json, sender: Json, seconds: int) -> None:
        """A person changes the timer of disappearing messages."""
        place["timer"] = seconds
        self._change(sender, place, message=None, isExpirationUpdate=True)

    def sync(self, place: Json, text: str | None, **more: Any) -> Json:
        """The account's person writes with the phone, which tells its linked devices."""
        stamp = self.stamp()
        data: Json = {"timestamp": stamp, "message": text, "expiresInSeconds": place.get("timer", 0)}
        data |= self._group_fields(place) | more
        if "id" not in place:
            data |= {"destination": place["number"], "destinationNumber": place["number"]}
            data["destinationUuid"] = place["uuid"]
        self.tell(self.me, stamp, syncMessage={"sentMessage": data})
        return {"sender": self.me, "place": place, **data}

    def change_key(self, sender: Json) -> None:
        """A person reinstalls Signal: their messages cannot be read until the new safety number is trusted."""
        sender["trust"] = "UNTRUSTED"
        failure = {
            "message": "org.signal.libsignal.protocol.UntrustedIdentityException",
            "type": "UntrustedIdentityException",
        }
        self.tell(sender, self.stamp(), exception=failure)

    def attachment(self, file: bytes | FakeUpload, *, caption: str | None = None) -> Json:
        """The JSON of an attachment, which the daemon has downloaded."""
        upload = upload_of(file)
        mime = upload.mime or _MIMES.get(upload.name or "", "application/octet-stream")
        own = f"{uuid.uuid5(uuid.NAMESPACE_OID, str(next(self._numbers))).hex[:20]}.{mime.rpartition('/')[2]}"
        self.attachments[own] = upload
        is_visual = mime.startswith(("image/", "video/"))
        told: Json = {"contentType": mime, "filename": upload.name, "id": own, "size": upload.announced}
        told |= {"width": upload.width if is_visual else None, "height": upload.height if is_visual else None}
        return told | {"caption": caption, "uploadTimestamp": self._last, **upload.extra}

    def quote(self, message: Mapping[str, Any]) -> Json:
        """The quote of a message, with a thumbnail for each picture."""
        who = message.get("sender", self.me)
        shown = [
            {"contentType": each["contentType"], "filename": each["filename"]}
            | ({"thumbnail": self._thumbnail()} if each["contentType"].startswith("image/") else {})
            for each in message.get("attachments", [])
        ]
        told = {"id": message["timestamp"], "author": who["number"], "authorNumber": who["number"]}
        return told | {"authorUuid": who["uuid"], "text": message.get("message") or "", "attachments": shown}

    def tell(self, sender: Json, stamp: int, *, exception: Json | None = None, **content: Any) -> None:
        """Queue an event for the stream."""
        envelope = {
            "source": sender["number"],
            "sourceNumber": sender["number"],
            "sourceUuid": sender["uuid"],
            "sourceName": sender["name"],
            "sourceDevice": OTHER_DEVICE,
            "timestamp": stamp,
            "serverReceivedTimestamp": stamp + 1,
            "serverDeliveredTimestamp": stamp + 2,
            **content,
        }
        event: Json = {"account": self.number, "envelope": envelope}
        self.waiting.append(event if exception is None else {**event, "exception": exception})
        self.news()

    def _thumbnail(self) -> Json:
        return self.attachment(FakeUpload(content=make_jpeg(32, 24), mime="image/jpeg", width=32, height=24))

    def _change(self, sender: Json, place: Json, **fields: Any) -> None:
        stamp = self.stamp()
        data = {"timestamp": stamp, "message": None, "expiresInSeconds": place.get("timer", 0), "viewOnce": False}
        self.tell(sender, stamp, dataMessage={**data, **self._group_fields(place), **fields})

    def _group_fields(self, place: Json) -> Json:
        if "id" not in place:
            return {}
        told = {"groupId": place["id"], "groupName": place["name"], "revision": 1, "type": "DELIVER"}
        return {"groupInfo": told}


async def first_of(*waits: Coroutine[object, object, object]) -> None:
    """Wait until one of several has happened; the others are cancelled."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait) for wait in waits]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
