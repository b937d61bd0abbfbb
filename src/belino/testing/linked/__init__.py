"""Linked devices of WhatsApp on loopback: people with phones, messages and encrypted files, by the rules of its apps.

Facts are from the documentation and issues of whatsmeow and neonize, and from WhatsApp's help pages.
"""

import asyncio
import hashlib
import secrets
import sys
from base64 import b64decode, b64encode, urlsafe_b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.ports import Clock
from belino.net.clock import SystemClock
from belino.testing.faults import FILE, CannedAnswer, Reset, Stall
from belino.testing.file_server import FakeUpload, HostedFile, keep_upload, upload_of
from belino.testing.linked.crypto import check, encrypt, fields_of
from belino.testing.platform_server import PlatformServer

if TYPE_CHECKING:
    from aiohttp import web

Json = dict[str, Any]
PROGRAM = Path(__file__).with_name("program.py")
PEOPLE, HIDDEN, GROUPS = "@s.whatsapp.net", "@lid", "@g.us"
ME = f"4915550001{PEOPLE}"
MY_LID = f"100000000000001{HIDDEN}"
TEXT_CHARS = 65_536
EDIT_SECONDS = 15 * 60.0
TYPES = {
    "imageMessage": "image",
    "videoMessage": "video",
    "audioMessage": "audio",
    "documentMessage": "document",
    "stickerMessage": "image",
}
UPLOAD = "upload"
"""The key of a fault for the next upload."""


class CallRefused(Exception):
    """The kind and the words with which a call is refused."""

    def __init__(self, kind: str, says: str) -> None:
        super().__init__(says)
        self.kind = kind


class LinkedWorld(PlatformServer[Json]):
    """A fake WhatsApp for linked devices: inside `async with`, configure `linked_program` and `media_url`.

    `scan` links the device that shows a code; people act by `say` and the like. An event comes again to the next
    program until it is acknowledged. `end` ends the session. `expire_files` makes links invalid; the phone uploads a
    file again while `phone_has_files`.
    """

    platform = "whatsapp"
    upload_bytes = 2**31

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(clock or SystemClock())
        self.sent: list[Json] = []
        """Messages of the device that people see, with `to`, `id` and, of a file, `plain` bytes' hash and size."""
        self.reactions: list[Json] = []
        """Those of the device, in the form of its messages."""
        self.read: list[Json] = []
        self.typing: list[Json] = []
        self.groups: dict[str, str] = {}
        self.members: dict[str, list[str]] = {}
        self.events: list[Json] = []
        """Not acknowledged yet."""
        self.acknowledged: list[Json] = []
        self.linked: set[str] = set()
        self.devices: dict[str, Json] = {}
        self.phone_has_files = True
        self.ticket = "ticket-1"
        self.gone: set[str] = set()
        self._numbers = 0
        self._files: dict[str, HostedFile] = {}
        self._said: dict[str, Json] = {}
        self._uploads: dict[str, FakeUpload] = {}
        self._news = asyncio.Event()

    @property
    def linked_program(self) -> list[str]:
        return [sys.executable, "-P", str(PROGRAM), self.url]

    @property
    def media_url(self) -> str:
        return self.url

    def link(self) -> str:
        """A session that is linked, as the content of its file."""
        session = secrets.token_hex(8)
        self.linked.add(session)
        return session

    def person(self, number: str) -> str:
        return f"{number}{PEOPLE}"

    def group(self, name: str, *members: str) -> str:
        self._numbers += 1
        address = f"1203630000000{self._numbers:04d}{GROUPS}"
        self.groups[address], self.members[address] = name, [ME, *members]
        return address

    def say(self, sender: str, chat: str | None = None, text: str = "", **more: Any) -> Json:
        """Someone writes: to the device alone, or in a chat. `more`: file, name, voice, once, quote, mention, …"""
        content = self._content(text, **more)
        event = self.message(
            sender, chat or sender, content, pushname=more.get("pushname", "Ann"), alt=more.get("alt", "")
        )
        self.tell("message", event)
        return event

    def message(self, sender: str, chat: str, content: Json, *, pushname: str = "Ann", alt: str = "") -> Json:
        """A message as an event tells it."""
        self._numbers += 1
        own_id = f"3A{self._numbers:018X}"
        source = {"Chat": chat, "Sender": sender, "IsFromMe": sender == ME, "IsGroup": chat.endswith(GROUPS)}
        info = {
            "MessageSource": source | ({"SenderAlt": alt} if alt else {}),
            "ID": own_id,
            "Type": "text",
            "Pushname": pushname,
            "Timestamp": int(self.clock.now().timestamp() * 1000),
        }
        self._said[own_id] = {"chat": chat, "sender": sender, "message": content}
        return {"Info": info, "Message": content}

    def _content(self, text: str, **more: Any) -> Json:
        around: Json = {}
        if (quoted := more.get("quote")) is not None:
            around |= {"stanzaID": quoted["Info"]["ID"], "participant": quoted["Info"]["MessageSource"]["Sender"]}
            around["quotedMessage"] = quoted["Message"]
        if mentioned := more.get("mention"):
            around["mentionedJID"] = list(mentioned)
        if seconds := more.get("expiration"):
            around["expiration"] = seconds
        if more.get("forwarded"):
            around |= {"isForwarded": True, "forwardingScore": 1}
        context = {"contextInfo": around} if around else {}
        if (file := more.get("file")) is None:
            content: Json = {"extendedTextMessage": {"text": text, **context}} if around else {"conversation": text}
        else:
            content = self._file_content(upload_of(file), text, context, **more)
        if album := more.get("album"):
            key = {"remoteJID": album["Info"]["MessageSource"]["Chat"], "fromMe": True, "ID": album["Info"]["ID"]}
            association = {"associationType": "MEDIA_ALBUM", "parentMessageKey": key}
            content["messageContextInfo"] = {"messageAssociation": association}
        return content

    def _file_content(self, upload: FakeUpload, caption: str, context: Json, **more: Any) -> Json:
        part = more.get("part", "imageMessage")
        fields = self.put(upload, TYPES[part])
        shown = {
            "mimetype": upload.mime
            or {"imageMessage": "image/png", "audioMessage": "audio/ogg; codecs=opus"}.get(part, ""),
            **({"caption": caption} if caption else {}),
            **({"fileName": upload.name} if part == "documentMessage" else {}),
            **({"width": upload.width, "height": upload.height} if part == "imageMessage" else {}),
            **({"seconds": upload.duration} if part in ("audioMessage", "videoMessage") else {}),
            **({"PTT": True} if more.get("voice") else {}),
        }
        content = {part: {**shown, **fields, **context}}
        return {"viewOnceMessageV2": {"message": content}} if more.get("once") else content

    def put(self, upload: FakeUpload, media_type: str) -> Json:
        """Encrypt a file with a new key and host it; returns the fields that name it."""
        made = upload.content if isinstance(upload.content, bytes) else upload.content()
        key = secrets.token_bytes(32)
        encrypted = encrypt(made, key, media_type)
        fields = fields_of(made, encrypted, key)
        path = self._host(encrypted, fields["fileEncSHA256"], media_type)
        return {**fields, "directPath": path, "URL": f"{self.url}{path}"}

    def _host(self, encrypted: bytes, digest: str, media_type: str) -> str:
        self._numbers += 1
        name = f"{self._numbers:08d}_n.enc"
        path = f"/v/t62.7118-24/{name}?ccb=11-4&oh=01_Q5Aa&oe=66F0C0DE"
        file = HostedFile(
            file_id=digest, unique_id=media_type, upload=FakeUpload(content=encrypted), path=path, size=len(encrypted)
        )
        self._files[name] = file
        return path

    def expire_files(self) -> None:
        """WhatsApp deletes what it hosts."""
        self.gone |= set(self._files)

    def tell(self, event: str, data: Json) -> None:
        """An event for the device."""
        self._numbers += 1
        self.events.append({"number": self._numbers, "event": event, "data": data})
        self._news.set()

    def scan(self) -> None:
        """The owner scans the code that a device shows."""
        for device in self.devices.values():
            if device["wants"] == "link":
                session = self.link()
                device |= {"wants": "connect", "session": session}
                device["own"].append(
                    {"number": 0, "event": "paired", "data": {"Status": "SUCCESS", "session": session}}
                )
        self._news.set()

    def end(self, event: str, data: Json | None = None) -> None:
        """The session ends: `logged out`, `banned`, `replaced` or `outdated`."""
        if event == "logged out":
            self.linked.clear()
        for device in self.devices.values():
            device["own"].append({"number": 0, "event": event, "data": data or {}})
        self._news.set()

    def is_connected(self) -> bool:
        return any(device["wants"] == "nothing" for device in self.devices.values())

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_post("/device/{what}", self._take_device)
        app.router.add_post("/mms/{type}/{token}", self._take_upload)
        app.router.add_get("/v/{folder}/{name}", self._take_file)

    async def closing(self) -> None:
        self._news.set()

    def fault_response(self, fault: CannedAnswer) -> "web.Response":
        from aiohttp import web

        return web.Response(status=fault.status, headers=fault.headers)

    async def _take_device(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        told, what = await request.json(), request.match_info["what"]
        if what == "open":
            return web.json_response({"device": self._open(told)})
        device = self.devices.get(told["device"])
        if device is None:
            return web.Response(status=409)
        if what == "next":
            event = await self._next(device)
            return web.Response(status=409) if event is None else web.json_response(event)
        if what == "ack":
            done = [event for event in self.events if event["number"] == told["number"]]
            self.acknowledged += done
            self.events = [event for event in self.events if event not in done]
            return web.json_response({})
        return await self._take_call(request, told)

    def _open(self, told: Json) -> str:
        """One program has a session at a time: another one replaces it."""
        known = told["session"] in self.linked
        device = {"wants": "connect" if known else "link", "session": told["session"], "own": []}
        if not known:
            device["own"].append({"number": 0, "event": "qr", "data": {"code": f"2@{secrets.token_hex(16)}"}})
            if told["phone"]:
                device["own"].append({"number": 0, "event": "pairing", "data": {"code": "ABCD-EFGH"}})
        self.devices = {own: other for own, other in self.devices.items() if other["session"] != told["session"]}
        self.devices[own := secrets.token_hex(8)] = device
        self._news.set()
        return own

    async def _next(self, device: Json) -> Json | None:
        while device in self.devices.values() and not self._stopped.is_set():
            self._news.clear()
            if device["own"]:
                return device["own"].pop(0)  # type: ignore[no-any-return]
            if device["wants"] == "connect":
                device["wants"] = "nothing"
                return {"number": 0, "event": "connected", "data": {"JID": ME, "LID": MY_LID, "PushName": "belino"}}
            if device["wants"] == "nothing" and self.events:
                return self.events[0]
            await self._news.wait()
        return None

    async def _take_call(self, request: "web.Request", told: Json) -> "web.StreamResponse":
        from aiohttp import web

        name, arguments = told["name"], told["arguments"]
        self.calls[name] += 1
        self.record(told)
        fault = self.faults.take(name)
        if isinstance(fault, CannedAnswer):
            otherwise = "refused" if 400 <= fault.status < 500 else "failed"
            kind = {429: "limited", 401: "unlinked", 503: "unreached"}.get(fault.status, otherwise)
            return web.json_response(
                {"error": kind, "says": fault.description or f"server returned error {fault.status}"}
            )
        if (answer := await self.misbehave(request, fault)) is not None:
            return answer
        try:
            result = await self._done(name, arguments)
        except CallRefused as error:
            return web.json_response({"error": error.kind, "says": str(error)})
        if isinstance(fault, Reset):
            return web.Response(status=502)
        return web.json_response({"result": result})

    async def _done(self, name: str, told: Json) -> object:
        match name:
            case "groups":
                return self.groups
            case "media":
                return {"auth": self.ticket}
            case "read":
                self.read.append(told)
            case "typing":
                self.typing.append(told)
            case "reupload":
                return self._upload_again(told)
            case "send":
                return await self._send(told["to"], told["message"])
        return None

    def _upload_again(self, told: Json) -> Json:
        said = self._said.get(told["id"].partition(".")[0])
        if said is None or not self.phone_has_files:
            raise CallRefused("refused", "the phone does not have the file")
        content = said["message"]
        part = next(part for part in TYPES if part in content)
        (name,) = [name for name, file in self._files.items() if file.path == content[part]["directPath"]]
        old = self._files[name]
        assert isinstance(old.upload.content, bytes)
        return {"path": self._host(old.upload.content, old.file_id, old.unique_id)}

    async def _send(self, to: str, message: Json) -> Json:
        if not to.endswith((PEOPLE, HIDDEN, GROUPS)):
            raise CallRefused("refused", "can't send message to unknown server")
        (kind,) = [key for key in message if key != "messageContextInfo"]
        entry: Json = {"to": to, "kind": kind, "message": message, "id": ""}
        self._check_content(kind, message[kind], to, entry)
        self._numbers += 1
        entry["id"] = f"3EB0{self._numbers:016X}"
        now = self.clock.now().timestamp()
        self._said[entry["id"]] = {"chat": to, "sender": ME, "message": message, "at": now}
        (self.reactions if kind == "reactionMessage" else self.sent).append(entry)
        return {"id": entry["id"], "time": int(now)}

    def _check_content(self, kind: str, content: Any, to: str, entry: Json) -> None:
        """What WhatsApp's apps show; anything else would be sent and seen by no one."""
        if kind == "conversation":
            entry["text"] = content
        elif kind == "extendedTextMessage":
            entry["text"] = content["text"]
        elif kind in TYPES:
            self._check_file(kind, content, entry)
        elif kind == "reactionMessage":
            self._known(content["key"], to)
        elif kind == "protocolMessage":
            assert content["type"] == "REVOKE", "the type of a message between devices"
            assert self._known(content["key"], to)["sender"] == ME, "only own messages can be deleted"
        elif kind == "editedMessage":
            protocol = content["message"]["protocolMessage"]
            about = self._known(protocol["key"], to)
            assert about["sender"] == ME, "only own messages can be edited"
            if self.clock.now().timestamp() - about["at"] > EDIT_SECONDS:
                raise CallRefused("refused", "server returned error 490")
            entry["text"] = protocol["editedMessage"]["conversation"]
        else:
            raise AssertionError(f"no app shows {kind}")
        assert len(entry.get("text", "")) <= TEXT_CHARS, "the text is too long"
        if isinstance(content, dict) and (around := content.get("contextInfo")):
            said = self._said[around["stanzaID"]]
            assert (said["chat"], said["sender"]) == (to, around["participant"]), "the quote names another message"

    def _known(self, key: Json, to: str) -> Json:
        said = self._said[key["ID"]]
        assert (said["chat"], key["remoteJID"]) == (to, to), "the key names a message of another chat"
        assert key["fromMe"] == (said["sender"] == ME), "the key says the wrong thing about who wrote it"
        if to.endswith(GROUPS) and not key["fromMe"]:
            assert key["participant"] == said["sender"], "the key names another author"
        return said

    def _check_file(self, kind: str, content: Json, entry: Json) -> None:
        upload = self._uploads[content["directPath"]]
        made = upload.content if isinstance(upload.content, bytes) else upload.content()
        plain = check(made, content, TYPES[kind])
        assert "/" in content["mimetype"], "a file has a type"
        entry |= {"sha256": hashlib.sha256(plain).hexdigest(), "size": len(plain), "text": content.get("caption", "")}
        entry["head"] = plain[:64]

    async def _take_upload(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        self.calls[UPLOAD] += 1
        fault = self.faults.take(UPLOAD)
        if isinstance(fault, Stall):
            await self.stall(request, fault)
        if (answer := await self.misbehave(request, fault)) is not None:
            return answer
        token = request.match_info["token"]
        if request.query.get("auth") != self.ticket or request.query.get("token") != token:
            return web.Response(status=401)
        if request.content_length is None or request.headers.get("Origin") != "https://web.whatsapp.com":
            return web.Response(status=400)
        upload = await keep_upload(request.content.iter_chunked(256 * 1024), self.folder, name=None)
        if urlsafe_b64encode(bytes.fromhex(upload.sha256)).decode() != token:
            return web.Response(status=400)
        self._numbers += 1
        path = f"/v/t62.7119-24/{self._numbers:08d}_n.enc?ccb=11-4&oh=01_Q5Aa&oe=66F0C0DE"
        self._uploads[path] = upload
        digest = b64encode(bytes.fromhex(upload.sha256)).decode()
        self._files[path.rpartition("/")[2].partition("?")[0]] = HostedFile(
            file_id=digest, unique_id=request.match_info["type"], upload=upload, path=path, size=upload.announced
        )
        return web.json_response({"url": f"{self.url}{path}", "direct_path": path, "handle": ""})

    async def _take_file(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        self.calls[FILE] += 1
        fault = self.faults.take(FILE)
        if (answer := await self.misbehave(request, fault)) is not None:
            return answer
        file = self._files.get(request.match_info["name"])
        if file is None:
            return web.Response(status=404)
        if request.match_info["name"] in self.gone:
            return web.Response(status=410)
        named = urlsafe_b64encode(b64decode(file.file_id)).decode()
        if (request.query.get("hash"), request.query.get("mms-type")) != (named, file.unique_id):
            return web.Response(status=403)
        return await self.serve(request, file, fault)
