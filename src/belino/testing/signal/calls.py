"""Calls of the daemon's methods, by signal-cli's man pages and its JSON classes."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from belino.domain.ports import Clock
from belino.testing.platform_server import Json, SlidingWindow, retry_after
from belino.testing.signal.request import (
    INTERNAL,
    INVALID_PARAMS,
    NO_METHOD,
    RATE_LIMIT,
    UNTRUSTED_KEY,
    USER_ERROR,
    SignalCall,
    SignalRefusal,
    check_styles,
    read_files,
)
from belino.testing.signal.world import SignalWorld, first_of

VERSION = "0.14.6"
FILE_BYTES = 100 * 1024 * 1024
CODE_SECONDS = 90.0
MOST_PER_MINUTE = 60
_WITHOUT_ACCOUNT = frozenset({"version"})
_MULTI_ONLY = frozenset({"listAccounts", "startLink", "finishLink"})

Answer = Callable[[SignalCall], Awaitable[Any]]


class SignalCalls:
    """Answers calls; `single` is a daemon that was started for one account."""

    def __init__(self, world: SignalWorld, clock: Clock, *, single: bool, linked: bool, per_minute: int) -> None:
        self.linked = linked
        self.data_folder = Path("/nonexistent")
        self.scanned = asyncio.Event()
        self.codes: list[str] = []
        """The codes that were handed out, the last of which is valid."""
        self.ignores_attachments = False
        self._world = world
        self._clock = clock
        self._single = single
        self._per_minute = per_minute
        self._sends = SlidingWindow(clock)
        self._answers: dict[str, Answer] = {
            "finishLink": self._finish_link,
            "getAttachment": self._get_attachment,
            "getSticker": self._get_sticker,
            "listAccounts": self._list_accounts,
            "listContacts": self._list_contacts,
            "listGroups": self._list_groups,
            "listIdentities": self._list_identities,
            "remoteDelete": self._remote_delete,
            "send": self._send,
            "sendReaction": self._send_reaction,
            "sendReceipt": self._send_receipt,
            "sendTyping": self._send_typing,
            "startLink": self._start_link,
            "version": self._version,
        }

    async def answer(self, call: SignalCall) -> Any:
        """The result of a call; SignalRefusal as the daemon refuses it."""
        answer = self._answers.get(call.method)
        if answer is None or (self._single and call.method in _MULTI_ONLY):
            raise SignalRefusal(NO_METHOD, "Method not implemented")
        account = call.params.pop("account", None)
        if call.method not in _MULTI_ONLY | _WITHOUT_ACCOUNT and not self._single:
            if account is not None and account not in (self._world.number, self._world.me["uuid"]):
                raise SignalRefusal(INVALID_PARAMS, "Specified account does not exist")
            if not self.linked:
                raise SignalRefusal(INVALID_PARAMS, "Method requires valid account parameter")
        return await answer(call)

    async def _version(self, _: SignalCall) -> Json:
        return {"version": VERSION}

    async def _list_accounts(self, _: SignalCall) -> list[Json]:
        return [{"number": self._world.number}] if self.linked else []

    async def _start_link(self, _: SignalCall) -> Json:
        self.codes.append(f"sgnl://linkdevice?uuid=canary-code-{len(self.codes)}%3D%3D&pub_key=BQ{'x' * 40}")
        self.scanned.clear()
        return {"deviceLinkUri": self.codes[-1]}

    async def _finish_link(self, call: SignalCall) -> Json:
        """Wait for the phone, as long as the code is valid."""
        if call.text("deviceLinkUri") not in self.codes[-1:]:
            raise SignalRefusal(USER_ERROR, "Unknown device link uri.")
        await first_of(self.scanned.wait(), self._clock.sleep(CODE_SECONDS))
        if not self.scanned.is_set():
            raise SignalRefusal(USER_ERROR, "Link request timed out, please try again.")
        self.linked = True
        return {"number": self._world.number}

    async def _list_contacts(self, _: SignalCall) -> list[Json]:
        return [
            {
                "number": person["number"],
                "uuid": person["uuid"],
                "name": person["name"],
                "messageExpirationTime": person.get("timer", 0),
                "profile": {"givenName": person["name"], "familyName": None},
            }
            for person in self._world.people.values()
        ]

    async def _list_groups(self, _: SignalCall) -> list[Json]:
        return [
            {
                "id": group["id"],
                "name": group["name"],
                "isMember": group["isMember"],
                "messageExpirationTime": group["timer"],
                "members": [{"number": each["number"], "uuid": each["uuid"]} for each in group["members"]],
            }
            for group in self._world.groups.values()
        ]

    async def _list_identities(self, _: SignalCall) -> list[Json]:
        return [
            {"number": each["number"], "uuid": each["uuid"], "trustLevel": each.get("trust", "TRUSTED_UNVERIFIED")}
            for each in self._world.people.values()
        ]

    async def _get_attachment(self, call: SignalCall) -> Json:
        if not call.text("recipient") and not call.text("groupId"):
            raise SignalRefusal(USER_ERROR, "one of the arguments --recipient -g/--group-id is required")
        upload = self._world.attachments.get(call.text("id"))
        if upload is None or self.ignores_attachments:
            raise SignalRefusal(USER_ERROR, f"Could not find attachment with ID: {call.text('id')}")
        content = upload.content if isinstance(upload.content, bytes) else await asyncio.to_thread(upload.content)
        return {"data": base64.b64encode(content).decode()}

    async def _get_sticker(self, call: SignalCall) -> Json:
        content = self._world.stickers.get((call.text("packId"), call.number("stickerId") or 0))
        if content is None:
            raise SignalRefusal(USER_ERROR, "Could not find sticker")
        return {"data": base64.b64encode(content).decode()}

    async def _send(self, call: SignalCall) -> Json:
        place, people = self._place(call)
        call.files = await asyncio.to_thread(read_files, call, data_folder=self.data_folder)
        if not call.text("message") and not call.files and not call.text("sticker"):
            raise SignalRefusal(
                USER_ERROR,
                "Sending empty message is not allowed, either a message, attachment or sticker must be given.",
            )
        if call.number("quoteTimestamp") is not None and not call.text("quoteAuthor"):
            raise SignalRefusal(USER_ERROR, "Quote author parameter is missing")
        check_styles(call)
        if any(file.announced > FILE_BYTES for file in call.files):
            raise SignalRefusal(INTERNAL, "Failed to send message: [413] (NonSuccessfulResponseCodeException)")
        result = self._delivered(people, place)
        self._show(call, place, result["timestamp"])
        return result

    def _show(self, call: SignalCall, place: Json, stamp: int) -> None:
        edits = call.number("editTimestamp")
        if edits is not None:
            for message in self._world.sent:
                if message["timestamp"] == edits:
                    message["message"] = call.text("message")
                    message["edits"] = [*message.get("edits", []), stamp]
            return
        self._world.received += call.files
        channel = f"group.{place['id']}" if "id" in place else place["uuid"]
        names = ("quoteTimestamp", "quoteAuthor", "quoteMessage", "textStyle", "voiceNote")
        told = {name: call.params[name] for name in names if name in call.params}
        shown = {"timestamp": stamp, "channel": channel, "message": call.text("message"), "files": call.files}
        self._world.sent.append({**shown, "place": place, **told})

    async def _remote_delete(self, call: SignalCall) -> Json:
        place, people = self._place(call)
        result = self._delivered(people, place)
        for message in self._world.sent:
            if message["timestamp"] == call.number("targetTimestamp"):
                message["deleted"] = True
        return result

    async def _send_reaction(self, call: SignalCall) -> Json:
        place, people = self._place(call)
        if not call.text("emoji") or call.number("targetTimestamp") is None or not call.text("targetAuthor"):
            raise SignalRefusal(USER_ERROR, "argument is required")
        return self._delivered(people, place)

    async def _send_receipt(self, call: SignalCall) -> Json:
        if self._person(call.text("recipient")) is None or call.text("type") not in ("read", "viewed"):
            raise SignalRefusal(USER_ERROR, "Invalid receipt")
        return {"timestamp": self._world.stamp(), "results": []}

    async def _send_typing(self, call: SignalCall) -> Json:
        self._place(call)
        return {"timestamp": self._world.stamp(), "results": []}

    def _place(self, call: SignalCall) -> tuple[Json, list[Json]]:
        """Where a call sends something, and to whom."""
        if group_id := next(iter(call.several("groupId")), None):
            group = self._world.groups.get(str(group_id))
            if group is None:
                raise SignalRefusal(USER_ERROR, f"Group not found: {group_id}")
            if not group["isMember"]:
                raise SignalRefusal(USER_ERROR, f"User is not a group member: {group_id}")
            return group, [each for each in group["members"] if each is not self._world.me]
        recipient = next(iter(call.several("recipient")), None)
        if recipient is None:
            raise SignalRefusal(USER_ERROR, "No recipients given")
        person = self._person(str(recipient))
        if person is None:
            raise SignalRefusal(USER_ERROR, f"The user {recipient} is not registered.")
        return person, [person]

    def _person(self, own: str) -> Json | None:
        people = self._world.people
        return people.get(own) or next((each for each in people.values() if each["number"] == own), None)

    def _delivered(self, people: Sequence[Json], place: Json) -> Json:
        """The results for each recipient; an error if it reached none."""
        key = place.get("id") or place["uuid"]
        wait = self._sends.wait(key, self._per_minute, 60.0)
        if not wait:
            self._sends.add(key)
        stamp, seconds = self._world.stamp(), retry_after(wait) if wait else 0
        results = [self._result(person, seconds) for person in people]
        kinds = {result["type"] for result in results}
        if not results or "SUCCESS" in kinds:
            return {"timestamp": stamp, "results": results}
        if kinds == {"IDENTITY_FAILURE"}:
            said, code = "Failed to send message due to untrusted identities", UNTRUSTED_KEY
        elif kinds == {"RATE_LIMIT_FAILURE"}:
            said, code = "Failed to send message due to rate limiting", RATE_LIMIT
        else:
            said, code = "Failed to send message", USER_ERROR
        raise SignalRefusal(code, said, results=results, stamp=stamp)

    def _result(self, person: Json, seconds: int) -> Json:
        address = {"uuid": person["uuid"], "number": person["number"], "username": None}
        if seconds:
            return {"recipientAddress": address, "type": "RATE_LIMIT_FAILURE", "retryAfterSeconds": seconds}
        untrusted = person.get("trust") == "UNTRUSTED"
        kind = "UNREGISTERED_FAILURE" if person.get("left") else "IDENTITY_FAILURE" if untrusted else "SUCCESS"
        return {"recipientAddress": address, "type": kind}
