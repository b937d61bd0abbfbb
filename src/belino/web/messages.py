"""Messages: post one and read the history, the same for the chat socket and for HTTP.

On another platform the page posts by impersonation, where an adapter allows it, as in the demo.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from starlette.responses import Response

from belino.domain.choice import KEY, KEY_CHARS
from belino.domain.errors import Busy, StoreError
from belino.domain.message import Author, ConversationKey, Message, language_tag
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.domain.stored import GrantKind, StoredMessage
from belino.gateway.events import Notice
from belino.web.attachments import ATTACHMENTS, PendingAttachments, as_ref, parse_attachments
from belino.web.auth import Visitor
from belino.web.fields import Fields, parse_json
from belino.web.request_context import JSON_BYTES, RouteCall, Site
from belino.web.responses import Code, Refusal, answer, bad_request
from belino.web.wire import Json, message_json

log = logging.getLogger(__name__)

_IGNORED = ("session_key", "session_id", "thinking", "deliver", "timeout_ms")
"""What clients of other servers send with the same method; it has no meaning here."""
SAY_FIELDS = (
    "conversation",
    "message",
    "attachments",
    "id",
    "idempotency_key",
    "reply_to",
    "language",
    "press",
    *_IGNORED,
)
HISTORY_FIELDS = ("conversation", "before", "after", "limit")
PAGE = 200
# The size limit of a page of history: two hundred of the longest messages are too large for one answer.
PAGE_CHARS = 2_000_000
# Shorter than the page's own timeout, so that it gets an error instead.
POST_SECONDS = 25.0
LARGE_BODY_SECONDS = 120.0
HEARD_SECONDS = 20.0

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@runtime_checkable
class Impersonates(Protocol):
    """A platform on which the page's user has an identity."""

    visitor: str
    """The author id of the page's user."""

    async def speak(self, conversation: ConversationKey, text: str, *, key: str, reply_to: str | None = None) -> str:
        """Send it on the platform and return the message's id there; the same key is sent once."""
        ...


async def post_message(call: RouteCall) -> Response:
    """Post a message over HTTP; answered when it is on disk."""
    announced = call.request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) <= JSON_BYTES:
        said = await say(call.site, call.visitor, await call.fields(*SAY_FIELDS))
    else:
        said = await _say_at_length(call)
    del said["message"]
    return answer(said)


async def get_messages(call: RouteCall) -> Response:
    """A page of history over HTTP."""
    return answer(await history(call.site, call.visitor, call.query(*HISTORY_FIELDS)))


async def say(site: Site, visitor: Visitor, fields: Fields) -> Json:
    """Accept a message, with all its attachments or not at all; the same id is the same message."""
    conversation = fields.conversation()
    visitor.must_see(conversation)
    if conversation.platform != "web":
        return await _say_elsewhere(site, conversation, fields)
    if fields.has("reply_to"):
        raise bad_request(
            "reply_to is for other platforms; in a web conversation every message is meant for the agent."
        )
    await site.must_exist(conversation)
    text = _text(fields, site.gateway.config.sessions.max_text_chars)
    message_id = _message_id(fields)
    limit = site.gateway.config.server.frame_attachment_bytes
    attachments = parse_attachments(fields.items("attachments", most=ATTACHMENTS), limit=limit)
    press = _press(fields)
    if press is not None and (text or attachments):
        raise bad_request("A press is sent alone, without a message and attachments.")
    if press is None and not text.strip() and not attachments:
        raise Refusal(400, Code.EMPTY, "There is nothing to send.")
    if first := await _stored(site, conversation, message_id):
        return await _said(site, first)
    pending, taken = PendingAttachments(site.store, conversation, site.upload_limits), None
    try:
        uploads = await pending.pack(attachments)
        now = site.gateway.clock.now()
        refs = [
            await as_ref(site.store, upload, attachment, message_id=message_id, clock=site.gateway.clock)
            for upload, attachment in zip(uploads, attachments, strict=True)
        ]
        message = Message(
            conversation=conversation,
            id=message_id,
            author=_author(visitor),
            sent=now,
            text=text,
            media=tuple(refs),
            language=language_tag(fields.text("language", most=64, default="")),
            press=press,
        )
        taken = await _post(site, message)
    finally:
        await _release(pending, taken=taken is not None and taken.outcome is not MessageOutcome.DUPLICATE)
    stored = await _stored(site, conversation, message_id)
    if stored is None:
        return {**_outcome(taken), "message_id": message_id, "message": None}
    return await _said(site, stored)


async def _say_at_length(call: RouteCall) -> Json:
    """Post a message with large attachments: few such bodies at once, parsed one at a time like large frames."""
    # Base64 takes four bytes for three.
    limit = call.site.gateway.config.server.frame_attachment_bytes * 4 // 3 + JSON_BYTES
    with call.site.large_bodies.enter(call.visitor.grant.id):
        body = await call.json_body(limit=limit, seconds=LARGE_BODY_SECONDS)
        async with call.site.heavy:
            return await say(call.site, call.visitor, Fields(parse_json(body), known=SAY_FIELDS))


async def _say_elsewhere(site: Site, conversation: ConversationKey, fields: Fields) -> Json:
    text = _text(fields, site.gateway.config.sessions.max_text_chars)
    reply_to = fields.text("reply_to", most=64) if fields.has("reply_to") else None
    if fields.has("press"):
        raise bad_request("Buttons can only be pressed here in web conversations.")
    if fields.items("attachments", most=ATTACHMENTS):
        raise bad_request("Files can only be sent in web conversations.")
    if not text.strip():
        raise Refusal(400, Code.EMPTY, "There is nothing to send.")
    return await _said(site, await speak(site, conversation, text, key=_message_id(fields), reply_to=reply_to))


async def history(site: Site, visitor: Visitor, fields: Fields) -> Json:
    """Oldest to newest: the newest before a seq, or the first after one."""
    conversation = fields.conversation()
    visitor.must_see(conversation)
    before = fields.number("before", least=0, most=2**63 - 1)
    after = fields.number("after", least=0, most=2**63 - 1)
    limit = fields.number("limit", least=1, most=PAGE) or 50
    found = list(await site.store.history(conversation, before=before, after=after, limit=limit + 1))
    forwards = after is not None
    chosen: list[StoredMessage] = []
    chars = 0
    for message in found if forwards else reversed(found):
        chars += len(message.text)
        if len(chosen) == limit or (chosen and chars > PAGE_CHARS):
            break
        chosen.append(message)
    if not forwards:
        chosen.reverse()
    messages = [await message_json(site.store, message) for message in chosen]
    return {"messages": messages, "more": len(chosen) < len(found)}


async def abort(site: Site, visitor: Visitor, fields: Fields) -> Json:
    """Stop the running turn of a conversation."""
    conversation = fields.conversation()
    visitor.must_see(conversation)
    return {"aborted": await site.gateway.abort(conversation)}


async def _post(site: Site, message: Message) -> Taken:
    if site.gateway.web is None:
        raise bad_request("The web chat is turned off ([adapters.web] enabled = false).")
    try:
        async with asyncio.timeout(POST_SECONDS):
            return await site.gateway.web.post(message)
    except TimeoutError:
        raise Busy("Too much is waiting; send it again under the same id.") from None


async def _release(pending: PendingAttachments, *, taken: bool) -> None:
    try:
        await pending.release(taken=taken)
    except StoreError as error:
        # The message does not depend on this; leftovers are swept with other abandoned uploads.
        log.warning("uploads could not be released: %s", type(error).__name__)


async def _stored(site: Site, conversation: ConversationKey, message_id: str) -> StoredMessage | None:
    for message in await site.store.messages(conversation.whole_channel, [message_id]):
        if message.author.is_agent or message.conversation != conversation:
            raise Refusal(409, Code.CONFLICT, "This id belongs to another message; choose a new one.")
        return message
    return None


async def _said(site: Site, message: StoredMessage) -> Json:
    return {
        "message_id": message.id,
        "outcome": message.outcome,
        "reason": message.reason,
        "trace": message.trace,
        "message": await message_json(site.store, message),
    }


def _outcome(taken: Taken) -> Json:
    return {"outcome": taken.outcome, "reason": taken.reason, "trace": taken.trace}


def _author(visitor: Visitor) -> Author:
    """The logged-in person; a channel's token has its own name, never theirs."""
    if visitor.grant.kind is GrantKind.CHANNEL:
        return Author(id=f"token:{visitor.grant.id}", name=visitor.grant.note or "Program", is_bot=True)
    return Author(id="owner", name="You")


def _text(fields: Fields, most: int) -> str:
    text = fields.text("message", most=2**31, default="")
    if len(text) > most:
        raise Refusal(413, Code.TOO_LARGE, f"The message is over {most} characters; attach it as a file.")
    return text


def _press(fields: Fields) -> str | None:
    if not fields.has("press"):
        return None
    key = fields.text("press", most=KEY_CHARS)
    if not KEY.fullmatch(key):
        raise bad_request("press must be the key of a button.")
    return key


def _message_id(fields: Fields) -> str:
    name = "id" if fields.has("id") else "idempotency_key"
    if not fields.has(name):
        return secrets.token_hex(16)
    message_id = fields.text(name, most=64)
    if not _ID.fullmatch(message_id):
        raise bad_request(f"{name} must be 1 to 64 of A–Z, a–z, 0–9, _ and -.")
    return message_id


def visitor_of(site: Site, conversation: ConversationKey) -> str | None:
    """The author under which the page may speak here; None if it may only read."""
    voice = _voice(site, conversation)
    return None if voice is None else voice.visitor


async def speak(
    site: Site, conversation: ConversationKey, text: str, *, key: str, reply_to: str | None
) -> StoredMessage:
    """Send it there, and wait until it arrives like any other message."""
    voice = _voice(site, conversation)
    if voice is None:
        raise bad_request("Only web conversations take messages here; write to the others on their own platform.")
    await site.must_exist(conversation)
    channel = conversation.whole_channel
    async with site.gateway.notices.subscribe(lambda one: one is not None and one.whole_channel == channel) as notices:
        said = await voice.speak(conversation, text, key=key, reply_to=reply_to)
        for message in await site.store.messages(channel, [said]):
            return message
        try:
            async with asyncio.timeout(HEARD_SECONDS):
                return await _heard(notices, said)
        except TimeoutError:
            raise Busy("The message was sent but has not arrived here yet; send it again under the same id.") from None


def _voice(site: Site, conversation: ConversationKey) -> Impersonates | None:
    adapter: object = site.gateway.adapters.get((conversation.platform, conversation.account))
    return adapter if isinstance(adapter, Impersonates) else None


async def _heard(notices: AsyncIterator[Notice], said: str) -> StoredMessage:
    async for notice in notices:
        message = notice.payload
        if isinstance(message, StoredMessage) and message.id == said:
            return message
    raise TimeoutError
