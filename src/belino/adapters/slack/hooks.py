"""Hooks: events over HTTP, whose signature over the raw bytes is checked first, and answers by a command's own URL."""

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qsl

from belino.adapters.slack.client import SlackClient, SlackRefused
from belino.adapters.slack.send import text_fields
from belino.domain.errors import AddressRefused, Undeliverable
from belino.domain.ports import Hook
from belino.domain.reply import Parcel, ParcelKind, Receipt
from belino.net.guard import host_of
from belino.net.json_fields import Raw, from_json, words
from belino.net.redact import Secret
from belino.net.rest import HookSignature
from belino.net.tap import on_behalf

SIGNATURE, TIMESTAMP = HookSignature(header="x-slack-signature", prefix="v0="), "x-slack-request-timestamp"
WINDOW_SECONDS = 300
CERTIFICATE_BYTES = 1_024
RESPONSE_SECONDS, MOST_RESPONSES = 29 * 60.0, 5
"""Slack accepts five answers within thirty minutes by a command's URL."""
COMMANDS_KEPT = 1_000
SIGNS = {"👀": "I am on it.", "⏳": "I am still busy; this comes next."}
_FIELDS = 100
_SIZE = re.compile(r"[0-9]{1,6}")


def may_be_signed(hook: Hook, now: datetime) -> bool:
    """Whether the headers claim a signature of the last five minutes."""
    at = hook.headers.get(TIMESTAMP, "")
    if not (at.isascii() and at.isdecimal() and len(at) < 16):
        return False
    return abs(now.timestamp() - int(at)) <= WINDOW_SECONDS and SIGNATURE.may_be(hook)


def is_signed(hook: Hook, secret: Secret | None, now: datetime) -> bool:
    """Whether Slack signed these bytes within the last five minutes."""
    before = f"v0:{hook.headers.get(TIMESTAMP, '')}:".encode()
    return may_be_signed(hook, now) and SIGNATURE.is_of(hook, secret, before=before)


def read_hook(hook: Hook) -> Raw | None:
    """The payload: an event as JSON, a command as a form, an interaction as JSON in a form; None if neither."""
    if "json" in hook.headers.get("content-type", "") or hook.body[:1] == b"{":
        return from_json(hook.body) or None
    try:
        fields = dict(parse_qsl(hook.body.decode(), max_num_fields=_FIELDS))
    except ValueError:
        return None
    return (from_json(fields["payload"]) if "payload" in fields else fields) or None


def looks_at_certificate(hook: Hook) -> bool:
    """Whether Slack only checks the server's certificate, as it does from time to time, and expects a 200."""
    return b"ssl_check=1" in (*hook.query.encode().split(b"&"), *hook.body.split(b"&", _FIELDS))


def may_look_at_certificate(hook: Hook) -> bool:
    """Whether an unsigned call may be one that `looks_at_certificate`: a short form, by its headers."""
    size = _SIZE.fullmatch(hook.headers.get("content-length", ""))
    is_short = size is not None and int(size.group()) <= CERTIFICATE_BYTES
    return looks_at_certificate(hook) or (is_short and "form" in hook.headers.get("content-type", ""))


def challenge_of(payload: Raw) -> bytes | None:
    """The answer to the challenge that Slack sends before it delivers events to a URL."""
    if words(payload, "type") != "url_verification":
        return None
    return json.dumps({"challenge": words(payload, "challenge")}).encode()


@dataclass(slots=True, kw_only=True)
class _Invocation:
    """A slash command that can be answered by its URL."""

    url: Secret
    until: float
    posts: int = MOST_RESPONSES


class SlashAnswers:
    """Answers to slash commands, visible to their sender only; the URLs for them are kept in memory alone.

    https://docs.slack.dev/interactivity/implementing-slash-commands
    """

    def __init__(self, client: SlackClient, hosts: frozenset[str]) -> None:
        """`hosts` are those that an answer may be posted to."""
        self._client = client
        self._hosts = hosts
        self._open: OrderedDict[str, _Invocation] = OrderedDict()
        """By the id of the command's message."""

    def expect(self, command: str, url: str) -> None:
        """A command is about to be stored."""
        try:
            is_ours = host_of(url) in self._hosts
        except AddressRefused:
            is_ours = False
        if not is_ours:
            return
        until = self._client.clock.monotonic() + RESPONSE_SECONDS
        self._open[command] = _Invocation(url=Secret("response_url", url), until=until)
        while len(self._open) > COMMANDS_KEPT:
            self._open.popitem(last=False)

    def knows(self, message_id: str) -> bool:
        """Whether a message is a command, to which no one can react: people do not see it."""
        return message_id in self._open

    async def show_sign(self, command: str, emoji: str) -> None:
        """Tell the sender of a command, in private, what a reaction says elsewhere."""
        if (words := SIGNS.get(emoji)) is None:
            raise Undeliverable("people do not see this command, so that there is nothing to react to")
        await self._tell(command, {"text": words})

    async def send(self, parcel: Parcel) -> Receipt | None:
        """Show a text to the sender alone, also where the app is no member; None if it cannot be."""
        if parcel.files or parcel.buttons or parcel.kind is ParcelKind.EDIT:
            return None
        if await self._respond(parcel) or await self._post(parcel):
            return Receipt(message_id=f"private-{parcel.key}", sent=self._client.now())
        return None

    async def _respond(self, parcel: Parcel) -> bool:
        return await self._tell(parcel.reply_to or "", text_fields(parcel))

    async def _tell(self, command: str, text: Mapping[str, object]) -> bool:
        given = self._open.get(command)
        if given is None or given.posts < 1 or given.until <= self._client.clock.monotonic():
            return False
        given.posts -= 1
        fields = {**text, "response_type": "ephemeral", "replace_original": False}
        try:
            with on_behalf(None):  # calls whose path is a secret are not recorded
                await self._client.respond(given.url.reveal(), fields)
        except SlackRefused:
            return False  # it was used up, or has ended
        return True

    async def _post(self, parcel: Parcel) -> bool:
        if parcel.only_to is None:
            return False
        where = parcel.conversation
        fields = {"channel": where.channel, "user": parcel.only_to, "thread_ts": where.thread, **text_fields(parcel)}
        await self._client.call("chat.postEphemeral", fields)
        return True
