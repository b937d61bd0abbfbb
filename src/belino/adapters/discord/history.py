"""History: a channel's messages, a thread, missed messages, a lost receipt, and the cursor."""

import json
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import timedelta

from belino.adapters.discord.authors import FORUMS, DiscordChannel, as_identity, first_at, identity
from belino.adapters.discord.client import UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, DiscordClient, DiscordRefused
from belino.adapters.discord.parse import DiscordParseContext, parse_message
from belino.adapters.discord.send import MESSAGE, MESSAGES, channel_of, nonce_of
from belino.adapters.discord.socket import GatewaySession
from belino.domain.errors import RateLimited, Unauthorized
from belino.domain.message import ConversationKey, Message
from belino.domain.ports import Clock
from belino.domain.reply import Parcel, Receipt
from belino.net.json_fields import Raw, as_table, as_tables, count, from_json, iso_time, table, tables, words
from belino.net.stream import retried

log = logging.getLogger(__name__)

PAGE = 100
MOST_PAGES = 10
MOST_MISSED = PAGE * MOST_PAGES
LONGEST_WAIT = 60.0

_CLOSED = frozenset({UNKNOWN_CHANNEL, 50001, 50013})

MOST_SENT_PAGES = 5
# Allowed difference between Discord's clock and ours.
SKEW = timedelta(seconds=60)

MOST_CHANNELS = 100
MOST_ROLES = 100


async def channel_history(
    client: DiscordClient, known: DiscordParseContext, channel: ConversationKey, *, before: str | None, limit: int
) -> Sequence[Message]:
    """The newest messages of a channel (or those before a message), oldest first. A forum itself has no messages."""
    if is_forum(known, channel.channel):
        return ()
    query: dict[str, object] = {"limit": min(max(limit, 1), PAGE)}
    if anchor := as_identity(before):
        query["before"] = anchor
    return _messages(await _page(client, channel.channel, query), known)


async def thread_history(
    client: DiscordClient, known: DiscordParseContext, conversation: ConversationKey
) -> Sequence[Message]:
    """A thread's newest messages and its starter message, which the first message quotes or which is fetched."""
    thread = as_identity(conversation.thread)
    page = await _page(client, thread, {"limit": PAGE})
    found = _messages(page, known)
    starter = next((told for raw in page if (told := _starter(raw, thread))), None)
    if starter is None and not any(message.id == thread for message in found):
        starter = await _asked_for(client, known, conversation.channel, thread)
    return (*(_messages([starter], known) if starter else ()), *found)


async def missed(client: DiscordClient, clock: Clock, channel: str, newest: str) -> AsyncIterator[Sequence[Raw]]:
    """Messages in a channel since a message, oldest first, a page at a time.

    Of more than ten pages only the latest are returned: the most recent senders still wait for an answer.
    """
    pages: list[Sequence[Raw]] = []
    query: dict[str, object] = {"limit": PAGE}
    while len(pages) < MOST_PAGES:
        page = await patient_page(client, clock, channel, query)
        pages.append([raw for raw in page if int(identity(raw, "id")) > int(newest)])
        if len(pages[-1]) < PAGE:
            break
        query["before"] = identity(page[0], "id")
    else:
        log.warning("in channel %s more than %d messages were missed; the oldest are not told", channel, MOST_MISSED)
    for page in reversed(pages):
        if page:
            yield page


async def patient_page(client: DiscordClient, clock: Clock, channel: str, query: dict[str, object]) -> Sequence[Raw]:
    """A page, after the waits that Discord asks for; empty for a channel that is closed to us."""
    while True:
        try:
            return await retried(
                lambda: _page(client, channel, query), clock=clock, lasting=(DiscordRefused, RateLimited, Unauthorized)
            )
        except RateLimited as error:
            if error.retry_after > LONGEST_WAIT:
                raise
            await clock.sleep(error.retry_after)
        except DiscordRefused as error:
            if error.code in _CLOSED or error.status in (403, 404):
                return ()
            raise


async def fetch_channel(client: DiscordClient, clock: Clock, channel: str) -> Raw | None:
    """A channel that the gateway did not send; None if it is gone or closed to us."""
    while True:
        try:
            return as_table(await client.call("GET", "/channels/{}", channel))
        except RateLimited as error:
            if error.retry_after > LONGEST_WAIT:
                raise
            await clock.sleep(error.retry_after)
        except DiscordRefused:
            return None


async def _page(client: DiscordClient, channel: str, query: dict[str, object]) -> list[Raw]:
    """Messages, oldest first."""
    told = as_tables(await client.call("GET", MESSAGES, channel, query=query))
    return sorted((raw for raw in told if identity(raw, "id")), key=lambda raw: int(identity(raw, "id")))


async def _asked_for(client: DiscordClient, known: DiscordParseContext, channel: str, thread: str) -> Raw | None:
    """The starter message of a thread, which is in its parent channel; a post's first message is in the post itself."""
    holders = (thread,) if is_forum(known, channel) else (channel,) if channel in known.channels else (channel, thread)
    for holder in holders:
        try:
            return as_table(await client.call("GET", MESSAGE, holder, thread))
        except DiscordRefused as error:
            if error.code != UNKNOWN_MESSAGE and error.status not in (400, 403, 404):
                raise
    return None  # not every thread has a starter message


def is_forum(known: DiscordParseContext, channel: str) -> bool:
    place = known.channels.get(channel)
    return place is not None and place.kind in FORUMS


def _starter(raw: Raw, thread: str) -> Raw | None:
    told = table(raw, "referenced_message")
    return told if identity(told, "id") == thread else None


def _messages(page: Sequence[Raw], known: DiscordParseContext) -> tuple[Message, ...]:
    found = (parse_message(raw, known) for raw in page)
    return tuple(message for message in found if isinstance(message, Message))


def is_in(place: DiscordChannel | None, channel: str) -> bool:
    """Whether a thread belongs to a channel."""
    return place is not None and place.is_thread and place.parent == channel


async def find_sent(client: DiscordClient, parcel: Parcel, *, bot: str) -> Receipt | None:
    """The bot's message with this text and these files since the parcel was made; old messages carry no key."""
    query: dict[str, object] = {"limit": PAGE}
    if parcel.created is not None:
        query["after"] = first_at(parcel.created - SKEW)
    for _ in range(MOST_SENT_PAGES if parcel.created is not None else 1):
        try:
            page = as_tables(await client.call("GET", MESSAGES, channel_of(parcel.conversation), query=query))
        except DiscordRefused:
            return None  # a channel that cannot be read cannot be written either: sending reports why
        for message in page:
            if bot and identity(table(message, "author"), "id") == bot and _is_it(message, parcel):
                return Receipt(message_id=identity(message, "id"), sent=iso_time(message, "timestamp") or client.now())
        if len(page) < PAGE:
            break
        query["after"] = max((identity(message, "id") or "0" for message in page), key=int)
    return None


def _is_it(message: Raw, parcel: Parcel) -> bool:
    if nonce := words(message, "nonce"):
        return nonce == nonce_of(parcel)
    said = _letters(words(message, "content")) == _letters(parcel.text)
    sizes = sorted(count(file, "size") or 0 for file in tables(message, "attachments"))
    answered = identity(table(message, "message_reference"), "message_id")
    # A message whose replied-to message is deleted has no reference.
    return (
        said and sizes == sorted(file.size for file in parcel.files) and answered in ("", as_identity(parcel.reply_to))
    )


def _letters(text: str) -> str:
    """The part of a text that Discord does not strip; all of it, if it has no letters."""
    return "".join(sign for sign in text if sign.isalnum()) or text.strip()


class DiscordCursor:
    """The cursor stored with each arrival, from which a restarted bot continues."""

    def __init__(self, written: str | None) -> None:
        told = from_json(written or "")
        held = as_table(told.get("session"))
        seq = count(held, "seq")
        complete = words(held, "id") and seq is not None
        self.session = GatewaySession(id=words(held, "id"), seq=seq or 0, url=words(held, "url")) if complete else None
        self.newest: dict[str, str] = {}
        """By channel, least recently active first: the id of its newest message."""
        self.channels: dict[str, DiscordChannel] = {}
        """The types of the same channels, which are not sent again to a resumed session."""
        for channel, entry in as_table(told.get("channels")).items():
            newest, own = identity(as_table(entry), "newest"), as_identity(channel)
            if own and newest:
                self.newest[own] = newest
                parent = identity(as_table(entry), "parent")
                self.channels[own] = DiscordChannel(kind=count(as_table(entry), "kind") or 0, parent=parent)
        roles = told.get("roles")
        self.roles = frozenset(filter(None, map(as_identity, roles if isinstance(roles, list) else [])))

    def heard(self, channel: str, message: str, place: DiscordChannel | None) -> None:
        """Note a message; messages may come in any order."""
        before = self.newest.pop(channel, "0")
        self.newest[channel] = max(before, message, key=int)
        if place is not None:
            self.channels[channel] = place
        while len(self.newest) > MOST_CHANNELS:
            oldest = next(iter(self.newest))
            del self.newest[oldest]
            self.channels.pop(oldest, None)

    def written(self, session: GatewaySession | None, roles: Iterable[str]) -> str:
        channels = {
            channel: {"newest": newest, **_kept(self.channels.get(channel))} for channel, newest in self.newest.items()
        }
        told: dict[str, object] = {"channels": channels, "roles": sorted(roles)[:MOST_ROLES]}
        if session is not None:
            told["session"] = {"id": session.id, "seq": session.seq, "url": session.url}
        return json.dumps(told, separators=(",", ":"))


def _kept(place: DiscordChannel | None) -> dict[str, object]:
    if place is None:
        return {}
    return {"kind": place.kind} | ({"parent": place.parent} if place.is_thread else {})
